"""The parts of the documents that are made from the code: `python tests/generated.py` writes them.

test_docs.py refuses a document that is not what this file would write.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import model

ROOT = Path(__file__).parent.parent
WITH_DIAGRAM = ("README.md", "docs/lifecycle.md")


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


if __name__ == "__main__":
    for path, text in documents():
        path.write_text(text, encoding="utf-8", newline="\n")
