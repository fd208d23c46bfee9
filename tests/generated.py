"""The parts of the documents that are made from the code: `python tests/generated.py` writes them.

test_docs.py refuses a document that is not what this file would write.
"""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import model
from agui_runs import AguiRunsError, StreamError
from agui_runs._schema import interrupt_schema, run_record_schema

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "docs/site"))

import timeline  # noqa: E402  It is found from here on.

WITH_DIAGRAM = ("README.md", "docs/lifecycle.md")
SCHEMAS = {
    "docs/interrupt.schema.json": interrupt_schema,
    "docs/run-record.schema.json": run_record_schema,
}
DIALECT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}


# The endings that are no pause refuse and keep alike, and share a column.
COLUMNS = (("reserved",), ("started",), ("interrupted",), ("succeeded", "cancelled", "failed"))
TABLE = re.compile(r"(<!-- generated: transitions -->\n).*?(<!-- end -->)", re.DOTALL)


@cache
def outcomes() -> dict[tuple[str, str], set[str]]:
    """Return what each transition has answered in each status, to arguments that can be right."""
    found = defaultdict(set)
    for state in model.explore().states:
        for made in model.calls():
            answer = model.outcome(state, made)
            if isinstance(answer, StreamError):
                said = f"`{answer.code}`"
            elif isinstance(answer, AguiRunsError):
                said = f"`{type(answer).__name__}`"
            else:
                said = "the same object" if answer is state else answer.status
            found[made.method, state.status].add(said)
    return found


def transitions() -> str:
    """Return the table of all transitions."""
    rows = [["call", *map(", ".join, COLUMNS)], ["---"] * (len(COLUMNS) + 1)]
    for method in dict.fromkeys(made.method for made in model.calls()):
        found = [set().union(*(outcomes()[method, each] for each in group)) for group in COLUMNS]
        rows.append([f"`{method}`", *[", ".join(sorted(each, key=rank)) for each in found]])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def rank(said: str) -> tuple[bool, bool, str]:
    """Sort what changes something first, and what is refused last."""
    return said[0] == "`", said == "the same object", said


def documents() -> Iterator[tuple[Path, str]]:
    """Yield each document that holds something generated, with the text that it should have."""
    drawn = f"```mermaid\n{model.diagram(model.explore().steps)}```"
    for name in WITH_DIAGRAM:
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"```mermaid\nstateDiagram.*?```", lambda _: drawn, text, flags=re.DOTALL)
        yield path, TABLE.sub(lambda found: f"{found[1]}\n{transitions()}\n{found[2]}", text)
    yield ROOT / "docs/pause-and-resume.svg", timeline.draw()
    for name, schema in SCHEMAS.items():
        yield ROOT / name, json.dumps({**DIALECT, **schema()}, indent=2) + "\n"


if __name__ == "__main__":
    for path, text in documents():
        path.write_text(text, encoding="utf-8", newline="\n")
