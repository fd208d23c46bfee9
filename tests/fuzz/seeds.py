"""Where fuzzing starts: the stored rows of tests/data, and what clients send."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data"
YES = {"interruptId": "ask-1", "status": "resolved", "payload": {"approved": True}}
NO = {"interruptId": "ask-2", "status": "resolved", "payload": {"approved": False}}
DROP = {"interruptId": "ask-2", "status": "cancelled", "metadata": {}}


def seeds() -> Iterator[Any]:
    for path in sorted(DATA.rglob("*.json")):
        row = json.loads(path.read_text(encoding="utf-8"))
        yield row
        if row.get("interrupts"):
            answers = [{**DROP, "interruptId": ask["id"]} for ask in row["interrupts"]]
            yield {**row, "resume": answers}
    yield from ([YES, NO], [YES, DROP], [NO], {"message": "Down", "code": "x"})
    yield {"arguments": {"to": "a", "n": [1, 1.5, -0.0, 1e21, 2**64, "\u20ac", None]}}
