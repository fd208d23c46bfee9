"""What the documents say is run: code, diagrams, examples and docstrings."""

import contextlib
import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

import agui_runs
from agui_runs import AguiRunsError
from builders import T0, make_ask, make_run

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *ROOT.glob(".github/*.md")]
# tests/e2e runs the server, which goes on until it is stopped, and the sweep of its database.
ELSEWHERE = {ROOT / "docs/examples" / name for name in ("agent_server.py", "sweep.py")}
EXAMPLES = sorted(set(ROOT.glob("docs/examples/*.py")) - ELSEWHERE)
MODULES = [
    importlib.import_module(f"agui_runs.{module.name}")
    for module in pkgutil.iter_modules(agui_runs.__path__)
]
SYBIL = Sybil([PythonCodeBlockParser(doctest_optionflags=doctest.ELLIPSIS)])


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(document: Path, language: str) -> list[str]:
    fence = rf"^```{language}\n(.*?)^```$"
    return re.findall(fence, document.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_python_in_a_document_does_what_it_shows(document):
    for example in SYBIL.parse(document).examples():
        example.evaluate()


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_a_document_holds_only_code_that_some_check_runs(document):
    languages = re.findall(r"^```(\w*)\n.*?^```$", document.read_text("utf-8"), re.DOTALL | re.M)
    assert set(languages) <= {"python", "mermaid", "sh"}


def test_the_commands_that_ci_takes_from_the_readme_are_one_line_each():
    assert [block.count("\n") for block in blocks(ROOT / "README.md", "sh")] == [1, 1]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_docstring_examples_do_what_they_show(module):
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_an_example_runs(example):
    subprocess.run([sys.executable, example], check=True)


def diagram(document: Path) -> set[tuple[str, str, str]]:
    [drawn] = blocks(document, "mermaid")
    arrows = re.findall(r"^ *(\S+) --> (\w+): (\w+)$", drawn, re.MULTILINE)
    return set(arrows)


def transitions() -> set[tuple[str, str, str]]:
    """Try every call on a record of every status, and keep those that change it."""
    live = make_run()
    ends = ("succeeded", "cancelled", "failed")
    records = [live, live.start(now=T0), live.interrupted([make_ask()], now=T0)]
    records += [live.finish(end, now=T0) for end in ends]
    answered = make_ask().decide("approved", now=T0)
    cancelling = [{"interruptId": "ask-1", "status": "cancelled"}]
    calls = [
        ("start", lambda record: record.start(now=T0)),
        ("advance", lambda record: record.advance(now=T0)),
        ("interrupted", lambda record: record.interrupted([make_ask()], now=T0)),
        ("replace_interrupt", lambda record: record.replace_interrupt(answered, now=T0)),
        ("answer", lambda record: record.answer(cancelling, now=T0)),
        *(("finish", lambda record, end=end: record.finish(end, now=T0)) for end in ends),
    ]
    found = set()
    for record in records:
        for call, transition in calls:
            with contextlib.suppress(AguiRunsError):
                after = transition(record)
                if after is not record:
                    found.add((record.status, after.status, call))
    return found


@pytest.mark.parametrize("document", ["README.md", "docs/lifecycle.md"])
def test_the_state_diagram_shows_exactly_the_transitions_there_are(document):
    assert diagram(ROOT / document) == transitions()
