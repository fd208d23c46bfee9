"""The parts of the documents that are made from the code: `python tests/generated.py` writes them.

test_docs.py refuses a document that is not what this file would write.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import model
from agui_runs._schema import interrupt_schema, run_record_schema

ROOT = Path(__file__).parent.parent
WITH_DIAGRAM = ("README.md", "docs/lifecycle.md")
SCHEMAS = {
    "docs/interrupt.schema.json": interrupt_schema,
    "docs/run-record.schema.json": run_record_schema,
}
DIALECT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}


def documents() -> Iterator[tuple[Path, str]]:
    """Yield each document that holds something generated, with the text that it should have."""
    drawn = f"```mermaid\n{model.diagram(model.explore().steps)}```"
    for name in WITH_DIAGRAM:
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        yield (
            path,
            re.sub(r"```mermaid\nstateDiagram.*?```", lambda _: drawn, text, flags=re.DOTALL),
        )
    for name, schema in SCHEMAS.items():
        yield ROOT / name, json.dumps({**DIALECT, **schema()}, indent=2) + "\n"


if __name__ == "__main__":
    for path, text in documents():
        path.write_text(text, encoding="utf-8", newline="\n")
