"""What an editor shows of a public name is whole, and its examples run."""

import ast
import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import agui_runs

SOURCES = sorted(Path(agui_runs.__file__).parent.glob("*.py"))
VALUES = ("Interrupt", "RunRecord")


class Name(NamedTuple):
    """A public name, what its docstring says, and whether it is to be called or read."""

    path: str
    doc: str | None
    runs: bool


def names() -> Iterator[Name]:
    """Yield each public name with its docstring, also those that only an editor can see.

    The docstring of a field, a constant or a type alias is the text that follows it.
    """
    for source in SOURCES:
        module = ast.parse(source.read_text(encoding="utf-8"))
        yield from documented(module.body, "")


def documented(body: list[ast.stmt], owner: str) -> Iterator[Name]:
    for node, following in zip(body, [*body[1:], None], strict=True):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                doc, runs = ast.get_docstring(node), True
            case ast.AnnAssign(target=ast.Name(id=name)):
                doc, runs = text(following), not owner
            case _:
                continue
        if name.startswith("_") or not (owner or name in agui_runs.__all__):
            continue
        yield Name(f"{owner}{name}", doc, runs)
        if name in VALUES:
            assert isinstance(node, ast.ClassDef)
            yield from documented(node.body, f"{name}.")


def text(node: ast.stmt | None) -> str | None:
    match node:
        case ast.Expr(value=ast.Constant(value=str(words))):
            return words
    return None


NAMES = list(names())


def test_every_public_name_is_found():
    assert {name.path for name in NAMES if "." not in name.path} == set(agui_runs.__all__)
    for value in VALUES:
        found = {name.path for name in NAMES if name.path.startswith(f"{value}.")}
        public = {f"{value}.{name}" for name in dir(getattr(agui_runs, value)) if name[0] != "_"}
        assert found == public


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name.path)
def test_a_public_name_has_a_summary_of_one_line(name):
    assert re.match(r"\S[^\n]*[.:](\s|$)", name.doc or "")


@pytest.mark.parametrize("name", [name for name in NAMES if name.runs], ids=lambda name: name.path)
def test_a_public_name_has_an_example_that_does_what_it_shows(name):
    parsed = doctest.DocTestParser().get_doctest(
        name.doc or "", {**vars(agui_runs)}, name.path, None, 0
    )
    assert parsed.examples
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(parsed).failed == 0
