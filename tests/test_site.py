"""The parts of the site that are ours: what draws, what checks, what maps a link.

They need no Sphinx, which only `.ci/run` has.
"""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "docs/site"))

import check  # noqa: E402
import pages  # noqa: E402
import sequence  # noqa: E402
import states  # noqa: E402

WHOLE = {
    "index.html": '<a href="other.html#there">x</a><a href="https://example.org">y</a>',
    "other.html": '<p id="there"></p><img src="data:image/png;base64,AA==">',
    "index.md": "[x](other.md#there)",
    "other.md": "# There\n",
    "llms.txt": "[x](index.md)",
}
LIFE = """stateDiagram-v2
[*] --> reserved
reserved --> started: start
reserved --> failed: finish
started --> failed: finish
failed --> failed: answer
failed --> [*]
"""
TALK = """sequenceDiagram
participant Client
participant Server
Client->>Server: <hello>
loop each event
Server-->>Client: an event
end
Note over Client: Waits.
"""


def found_in(folder, **changes):
    for name, text in {**WHOLE, **changes}.items():
        if text is not None:
            folder.joinpath(name).write_text(text, encoding="utf-8")
    return list(check.problems(folder))


def test_a_whole_site_has_no_problems(tmp_path):
    assert found_in(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("index.html", '<a href="x.html">', "index.html links to x.html, which is not there"),
        (
            "index.html",
            '<a href="other.html#x">',
            "index.html links to other.html#x, and there is no such place on that page",
        ),
        (
            "index.html",
            '<script src="https://cdn.example/x.js">',
            "index.html loads https://cdn.example/x.js from elsewhere",
        ),
        (
            "index.html",
            '<link rel="stylesheet" href="//cdn.example/x.css">',
            "index.html loads //cdn.example/x.css from elsewhere",
        ),
        ("more.html", "", "more.html has no Markdown copy"),
        ("index.md", "[x](x.md)", "index.md links to x.md, which is not there"),
        (
            "index.md",
            "[x](other.md#x)",
            "index.md links to other.md#x, and there is no such heading",
        ),
        ("llms.txt", None, "llms.txt is not there"),
    ],
)
def test_what_is_broken_in_a_site_is_named(tmp_path, name, text, problem):
    assert found_in(tmp_path, **{name: text}) == [problem]


def test_a_folder_without_pages_is_no_site(tmp_path):
    assert f"{tmp_path} holds no page" in check.problems(tmp_path)


def test_a_state_diagram_shows_every_state_and_call():
    picture = states.draw(LIFE)
    assert all(f">{name}<" in picture for name in ("reserved", "started", "failed", "answer"))


@pytest.mark.parametrize(
    "more",
    [
        "started --> reserved: undo",
        "failed --> started: retry",
        "started --> failed: abort",
        "started --> lost: vanish",
        "note left of started",
    ],
)
def test_a_lifecycle_that_the_picture_would_not_tell_is_not_drawn(more):
    with pytest.raises(ValueError, match=r"can be drawn|not tell all") as refused:
        states.draw(LIFE + more)
    assert more in str(refused.value)


def test_a_sequence_diagram_shows_all_that_is_said_escaped():
    picture = sequence.draw(TALK)
    assert all(f">{said}<" in picture for said in ("&lt;hello&gt;", "an event", "Waits."))


def test_a_step_that_is_not_understood_is_not_left_out():
    with pytest.raises(ValueError, match="not a step of a sequence diagram that can be drawn: x"):
        sequence.draw(TALK + "x")


def test_a_page_from_elsewhere_in_the_repository_links_into_the_site():
    text = pages.markdown("index")
    assert "[The life of a run](lifecycle.md)" in text
    assert "[Contributing](contributing.md)" in text
    assert "](examples/approval.py)" in text


def test_a_link_to_a_folder_is_one_to_an_archive():
    assert '<a href="examples.zip">the folder</a>' in pages.markdown("wire")


def test_a_link_that_leaves_the_site_is_its_name_alone():
    text = pages.markdown("security")
    assert "tests/model.py" in text
    assert "](../" not in text


def test_every_document_is_a_page_of_the_contents():
    listed = pages.DOCS.joinpath("index.md").read_text("utf-8").splitlines()
    there = {path.stem for path in pages.DOCS.glob("*.md")} - {"index"}
    assert there <= set(listed)
