"""What the documents say is run: code, diagrams, examples and docstrings."""

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import get_args

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

import agui_runs
import generated
from agui_runs.errors import StreamErrorCode

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
def test_python_in_a_document_does_what_it_shows(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # The server of the tutorial makes its database where it runs.
    for example in SYBIL.parse(document).examples():
        example.evaluate()


def allowed_in(document: Path) -> set[str]:
    """Return what else some check runs: `.ci/run` does it with the commands of two documents."""
    return {"sh"} if name(document) in ("README.md", "docs/tutorial.md") else set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_a_document_holds_only_code_that_some_check_runs(document):
    languages = re.findall(r"^```(\S*)\n.*?^```$", document.read_text("utf-8"), re.DOTALL | re.M)
    # Sphinx refuses a picture that it cannot draw, and a name that it cannot find.
    assert set(languages) <= {"python", "mermaid", "{eval-rst}"} | allowed_in(document)


def test_the_commands_that_ci_takes_from_the_readme_are_one_line_each():
    assert [block.count("\n") for block in blocks(ROOT / "README.md", "sh")] == [1, 1]


@pytest.mark.parametrize("path", [*DOCUMENTS, *ROOT.glob("docs/examples/*.py")], ids=name)
def test_every_request_that_an_example_makes_says_when_it_was_made(path):
    """Or a list of them, oldest first, has no order."""
    made = r"Interrupt(?:\.create)?\((?:[^()]|\([^()]*\))*\bexpires_at\b(?:[^()]|\([^()]*\))*\)"
    calls = re.findall(made, path.read_text(encoding="utf-8"))
    assert [call for call in calls if "created_at" not in call] == []


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_docstring_examples_do_what_they_show(module):
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_an_example_runs(example):
    subprocess.run([sys.executable, example], check=True)


def test_the_documents_that_hold_a_state_diagram_are_those_that_get_one():
    drawn = [name(path) for path in DOCUMENTS if "stateDiagram" in path.read_text("utf-8")]
    assert drawn == list(generated.WITH_DIAGRAM)


def test_what_is_generated_is_what_python_tests_generated_py_writes():
    stale = [name(path) for path, text in generated.documents() if path.read_text("utf-8") != text]
    assert stale == []


def test_every_test_that_the_security_page_names_is_there():
    text = (ROOT / "docs/security.md").read_text(encoding="utf-8")
    table = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ")][2:]
    named = [re.findall(r"`([\w.]+)`", tested) for _, duty, tested in table if duty.strip()]
    assert all(named)
    for place in chain(*named):
        module, function = place.rsplit(".", 1)
        source = (ROOT / f"tests/{module.replace('.', '/')}.py").read_text(encoding="utf-8")
        assert f"\ndef {function}(" in source, place


def test_the_errors_page_has_every_code_and_each_transition_with_all_that_it_raises():
    text = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    calls = {re.search(r"\w+", row[0])[0]: row for row in rows if len(row) == 3}
    codes = [re.search(r"\w+", row[0])[0] for row in rows]
    assert set(codes) >= set(get_args(StreamErrorCode))
    for method in ("start", "interrupted", "finish", "replace_interrupt", "answer"):
        assert codes_in(calls[method][2]) == raised_by(method)


def codes_in(text: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", text))


def raised_by(method: str) -> set[str]:
    """Return the codes with which a transition has refused, on any state there is."""
    found = [
        said
        for (made, _), all_said in generated.outcomes().items()
        for said in all_said
        if made == method
    ]
    return codes_in(" ".join(found)) - {"ConfigurationError"}
