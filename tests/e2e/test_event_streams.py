"""The page's reader of event streams gives what was sent, and what AG-UI's own client gives."""

import json
from urllib.request import urlopen

from hypothesis import given, settings
from hypothesis import strategies as st

QUESTION = [
    {"id": "message-1", "role": "user", "content": "A-1042 arrived broken. \u20ac\U0001f600"}
]
INPUT = {"threadId": "thread-1", "runId": "run-1", "messages": QUESTION}

texts = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("\u2028\u20ac\U0001f600")
)
line_ends = st.sampled_from(["\n", "\r\n", "\r"])
frames = st.lists(st.tuples(texts, st.sampled_from(["data: ", "data:"]), line_ends), max_size=5)
# Many streams in one example, since every example is a Node process.
streams = st.lists(st.tuples(frames, st.integers(1, 20)), min_size=10, max_size=20)


def read(node, reader, streams):
    return node("event_streams.mjs", {"reader": reader, "streams": streams})


def test_both_readers_give_the_same_however_the_network_cuts_a_run(server, node):
    with urlopen(server.request("/agent", INPUT), timeout=60) as response:
        text = response.read().decode()
    sent = [json.loads(frame[5:]) for frame in text.split("\n\n") if frame]
    cut = [[text, size] for size in range(1, 60)]
    assert read(node, "ours", cut) == [sent] * len(cut)
    assert read(node, "theirs", cut) == [sent] * len(cut)


@settings(max_examples=8)
@given(streams)
def test_every_spelling_that_the_standard_allows_is_read(node, streams):
    written = [
        [
            "".join(
                f"{field}{json.dumps(each, ensure_ascii=False)}{end}{end}"
                for each, field, end in frames
            ),
            size,
        ]
        for frames, size in streams
    ]
    assert read(node, "ours", written) == [[each for each, _, _ in frames] for frames, _ in streams]


def test_comments_other_fields_and_data_in_several_lines_are_read_as_the_standard_says(node):
    text = ': hi\n\nevent: x\nid: 1\ndata: {"a":\ndata:1}\nretry: 5\n\ndata\n: no end\ndata: 2\n\n'
    assert read(node, "ours", [[text, 3]]) == [[{"a": 1}, 2]]


def test_half_an_event_at_the_end_is_dropped(node):
    assert read(node, "ours", [["data: 1\n\ndata: 2\n", 4], ["data: 1\n\ndata: 2", 4]]) == [
        [1],
        [1],
    ]
