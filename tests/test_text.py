"""Text: its characters kept exactly as given, or refused."""

import json
from dataclasses import replace

from builders import make_ask, make_run, via_json
from examples import ASK, PAUSED, SECRET, Plain, each, label, load, refusal
from strategies import Way

HALVES = [f"{SECRET}\udc88", f"\ud800{SECRET}", f"{SECRET}\udbff\u00e9", "\ud83d", "\ude00"]
WHOLES = ["\x00", "Send\x00 it?", "\\u0000", "\U0001f600", " e\u0301 / 1", "a\u2028", "{}", "[]"]
WHOLES += ["abc", "g" * 64, "sha256:" + "A1" * 32]


def failing(**failure):
    return make_run(status="failed", failure={"message": SECRET, **failure})


ASK_NAMES = ("id", "tool_call_id", "arguments_digest", "reason")
RUN_NAMES = ("scope", "thread_id", "run_id", "digest")
NAMES = {name: lambda text, name=name: make_ask(**{name: text}) for name in ASK_NAMES}
NAMES |= {name: lambda text, name=name: make_run(**{name: text}) for name in RUN_NAMES}
NAMES |= {"failure.message": lambda text: failing(message=text)}
NAMES |= {"failure.code": lambda text: failing(code=text)}
TEXTS = {
    **NAMES,
    "message": lambda text: make_ask(message=text),
    "snapshot": lambda text: make_run(snapshot=text),
    "deep in a snapshot": lambda text: make_run(snapshot={"a": ["", text]}),
}


@each("text", WHOLES)
@each("make", [*TEXTS.values(), lambda text: make_run(snapshot={text: 0})], ids=[*TEXTS, "key"])
def test_unusual_text_is_legal_and_kept_exactly(make, text):
    assert json.dumps(text) in json.dumps(via_json(make(text)).to_storage())
    assert via_json(make(text)) == make(text)


@each("text", HALVES)
@each("make", TEXTS.values(), ids=TEXTS)
def test_half_a_surrogate_pair_is_refused_in_words_that_can_be_written(make, text):
    row = json.dumps(make("whole").to_storage()).replace('"whole"', json.dumps(text))
    assert refusal(make, text).encode()
    assert refusal(load, json.loads(row)).encode()


NO_NAMES = ["", " ", "\t\n", "\u00a0", SECRET.encode(), 7, True, [SECRET], Plain.YES]


@each("value", NO_NAMES, ids=label)
@each("name", NAMES)
def test_an_id_or_digest_that_is_blank_or_no_text_is_refused(name, value):
    assert f": {name} must" in refusal(NAMES[name], value)


@each("mark", [":", "/", "|", "\x00", "', '", " "])
def test_ids_that_contain_a_separator_stay_apart(mark):
    keys = [make_run(scope=f"t{mark}1").key, make_run(scope="t", thread_id=f"1{mark}thread-1").key]
    assert keys == [(f"t{mark}1", "thread-1", "run-1"), ("t", f"1{mark}thread-1", "run-1")]


@each(
    ("value", "names"),
    [
        (ASK, ["id", "tool_call_id", "arguments_digest", "reason", "message"]),
        (PAUSED, ["scope", "thread_id", "run_id", "digest", "snapshot"]),
    ],
)
def test_an_enum_member_becomes_plain_text(value, names):
    made = replace(value, **dict.fromkeys(names, Way.MAIL))
    kept = [getattr(made, name) for name in names]
    assert ({*kept}, {*map(type, kept)}) == ({"mail"}, {str})
