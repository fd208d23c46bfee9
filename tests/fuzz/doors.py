"""One JSON value through every door of the package, and what must hold whatever the value is.

A value comes out or an `AguiRunsError`; the input is as it was; what came out can be stored and
read again; and the price is linear in the length of the input's JSON text. The price is counted
and not timed: lines of the package that ran, and bytes that were taken at the worst moment. The
dearest values found cost 8 lines and 38 bytes for each byte of text. To that comes what does not
grow: a hundred levels of recursion, dear under a tracer. The bounds leave room, and still tell
from a few kilobytes on what is linear from what is not.
"""

import json
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

import agui_runs
from agui_runs import AguiRunsError, Interrupt, RunRecord, digest
from builders import T0, make_ask, make_run, via_json

PACKAGE = str(Path(agui_runs.__file__).parent)
LINES, LINES_PER_BYTE = 5_000, 20
BYTES, BYTES_PER_BYTE = 500_000, 200
# Counting is slow, and says nothing about a text that is shorter: it costs little either way.
SHORT = 500

Door: TypeAlias = Callable[[Any], object]

LIVE = make_run().start(now=T0)
PAUSED = LIVE.interrupted([make_ask(), make_ask(id="ask-2")], now=T0)
HALF = PAUSED.replace_interrupt(make_ask().decide("denied", now=T0), now=T0)

# What is imported or compiled at first use is no price of any value.
digest(None)
Interrupt.from_storage({**make_ask().to_storage(), "createdAt": "2026-03-02 09:00Z"})


def arguments(cls: type, row: Any) -> dict[str, Any]:
    """Return the arguments that a host would make of a row, with times where they are times."""
    found = {}
    for field in fields(cls):
        first, *rest = field.name.split("_")
        value = row.get(first + "".join(map(str.capitalize, rest)))
        if field.name.endswith("_at") and isinstance(value, str):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                value = None
        found[field.name] = value
    return found


def construct_interrupt(row: Any) -> object:
    return Interrupt(**arguments(Interrupt, row)) if isinstance(row, dict) else None


def construct_record(row: Any) -> object:
    if not isinstance(row, dict):
        return None
    given = arguments(RunRecord, row)
    if isinstance(given["interrupts"], list):
        given["interrupts"] = [*map(construct_interrupt, given["interrupts"])]
    return RunRecord(**given)


def load_and_answer(row: Any) -> object:
    """Load a row and answer it with the list that stands beside its own keys."""
    resume = row.get("resume") if isinstance(row, dict) else None
    return RunRecord.from_storage(row).answer(resume, now=T0)


DOORS: dict[str, Door] = {
    "Interrupt.from_storage": Interrupt.from_storage,
    "RunRecord.from_storage": RunRecord.from_storage,
    "Interrupt": construct_interrupt,
    "RunRecord": construct_record,
    "answer of a loaded row": load_and_answer,
    "answer": lambda value: PAUSED.answer(value, now=T0),
    "answer of a half answered pause": lambda value: HALF.answer(value, now=T0),
    "advance": lambda value: LIVE.advance(now=T0, snapshot=value),
    "finish": lambda value: LIVE.finish("failed", now=T0, failure=value),
    "digest": digest,
}


def check(value: Any, doors: dict[str, Door] = DOORS) -> None:
    """Pass the value through every door, and raise where something does not hold."""
    text = json.dumps(value)
    for name, door in doors.items():
        made, lines, taken = (through if len(text) < SHORT else measured)(door, value)
        assert json.dumps(value) == text, f"{name} changed its input"
        assert lines <= LINES + LINES_PER_BYTE * len(text), f"{name} ran {lines} lines"
        assert taken <= BYTES + BYTES_PER_BYTE * len(text), f"{name} took {taken} bytes"
        if isinstance(made, (Interrupt, RunRecord)):
            back = via_json(made)
            assert back == made, f"{name} gave what storage does not bring back"
            assert json.dumps(back.to_storage()) == json.dumps(made.to_storage()), name


def through(door: Door, value: Any) -> tuple[object, int, int]:
    """Return what the door gave, or None for a refusal; nothing is counted."""
    try:
        return door(value), 0, 0
    except AguiRunsError as refusal:
        str(refusal).encode()
        return None, 0, 0


def measured(door: Door, value: Any) -> tuple[object, int, int]:
    """Return what the door gave, how many lines of the package ran and how many bytes it took."""
    lines = 0

    def count(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        lines += event == "line"
        return count

    before = sys.gettrace()
    tracemalloc.start()
    sys.settrace(count)
    try:
        made, _, _ = through(door, value)
    finally:
        sys.settrace(before)
        _, taken = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return made, lines, taken
