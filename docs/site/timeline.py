"""A pause and its answer across two runs: what happens, and what each stored row then says."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from svg import WIDTH, box, drawing, line, text

from agui_runs import Interrupt, RunRecord

LINE, LEFT = 14, {"r-1": 12, "r-2": 36}


class Event(NamedTuple):
    """Something that happens, and the record that is stored then."""

    time: datetime
    what: str
    record: RunRecord


def story() -> Iterator[Event]:
    """Yield what happens, as the package has it."""
    asked = datetime(2026, 11, 30, 10, 0, tzinfo=UTC)
    ask = Interrupt(
        id="i-1",
        tool_call_id="call-7",
        arguments_digest="c0de",
        created_at=asked,
        expires_at=asked + timedelta(minutes=10),
    )
    run = RunRecord(
        scope="tenant-1", thread_id="t-1", run_id="r-1", digest="9f86", created_at=asked
    )
    yield Event(asked, "A client sends run r-1: reserve it", run)
    now = asked + timedelta(seconds=1)
    run = run.start(now=now)
    yield Event(now, "A worker takes it: start", run)
    now += timedelta(seconds=1)
    run = run.advance(now=now, snapshot={"step": "refund"})
    yield Event(now, "Before each event: advance", run)
    now += timedelta(seconds=1)
    paused = run.interrupted([ask], now=now)
    yield Event(now, "A tool needs a yes: interrupted", paused)
    answered = asked + timedelta(minutes=4)
    second = RunRecord(
        scope="tenant-1", thread_id="t-1", run_id="r-2", digest="81b6", created_at=answered
    )
    yield Event(answered, "The answer comes with run r-2: reserve", second)
    second = second.start(now=answered)
    yield Event(answered, "A worker takes it: start", second)
    resume = [{"interruptId": "i-1", "status": "resolved", "payload": {"approved": True}}]
    paused = paused.answer(resume, now=answered)
    yield Event(answered, "On the record of r-1: answer", paused)
    now = answered + timedelta(seconds=1)
    second = second.advance(now=now, snapshot={"step": "refunded"})
    yield Event(now, "The tool has run, once: advance", second)
    now += timedelta(seconds=1)
    second = second.finish("succeeded", now=now)
    yield Event(now, "It is done: finish", second)


def changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return what the new row says that the old one did not, key by key."""
    said = []
    for key, value in after.items():
        old = before.get(key)
        if value == old or key in ("scope", "threadId", "createdAt", "updatedAt"):
            continue
        if key == "interrupts":
            was = old[0] if old else {}
            for inner in ("id", "status", "expiresAt", "decidedAt"):
                if value and value[0][inner] not in (None, was.get(inner)):
                    said.append(f"interrupts[0].{inner}: {_short(value[0][inner])}")
        elif value is not None:
            said.append(f"{key}: {_short(value)}")
    return said


def _short(value: object) -> str:
    found = json.dumps(value)
    return f'"{found[12:20]}"' if found.startswith('"2026-') else found


def draw() -> str:
    """Return the picture."""
    parts: list[str] = []
    rows: dict[str, dict[str, Any]] = {}
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    y = 20.0
    before = None
    for time, what, record in story():
        if before and record.run_id == "r-2" and "r-2" not in first:
            parts.append(text(WIDTH / 2, y + 6, "r-1 has ended. A human decides.", "soft"))
            y += 26
        row, run = record.to_storage(), record.run_id
        said = changed(rows.get(run, {}), row)
        rows[run], before = row, time
        first.setdefault(run, y)
        last[run] = y
        x = LEFT[run]
        parts.append(f'<circle class="mark" cx="{x}" cy="{y:g}" r="4"/>')
        parts.append(text(x + 10, y + 4, f"{time:%H:%M:%S}", "soft label", "start"))
        parts.append(text(x + 68, y + 4, what, "label", "start"))
        y += 11
        height = LINE * len(said) + 8
        parts.append(box(x + 10, y, WIDTH - x - 12, height))
        parts.append(text(WIDTH - 8, y + 15, run, "name", "end"))
        for number, each in enumerate(said, 1):
            parts.append(text(x + 18, y + LINE * number + 1, each, "", "start"))
        y += height + 20
    lanes = [line(LEFT[run], first[run], LEFT[run], last[run], "life") for run in first]
    return drawing(
        y - 8, "A pause and its answer, and what each stored row then says", lanes + parts
    )
