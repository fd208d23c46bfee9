"""Rows as they were stored, which every later version must read; see data/README.md."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from agui_runs import Interrupt, RunRecord
from builders import FAILURE, HOUR, SEC, T0

DATA = Path(__file__).parent / "data"
EXACT = timedelta(microseconds=123_456)
MILLIS = timedelta(microseconds=250_000)


def ask(id, **more):
    return Interrupt(id=id, tool_call_id=f"call-{id}", arguments_digest="c0de", **more)


def run(status, **more):
    return RunRecord(
        scope="tenant-1",
        thread_id="thread-1",
        run_id=f"run-{status}",
        digest="b2" * 32,
        created_at=T0,
        status=status,
        **more,
    )


PENDING = ask("1", expires_at=T0 + HOUR, message="Refund 20.00 €?", created_at=T0 + MILLIS)
ENDLESS = ask("2", expires_at=None, reason="policy:two_eyes", message="")
BARE = ask("3", expires_at=T0 + HOUR)
APPROVED = ask("4", expires_at=T0 + HOUR, created_at=T0, status="approved", decided_at=T0 + MILLIS)
DENIED = ask(
    "5",
    expires_at=T0 + HOUR + EXACT,
    message="Two\nlines, and a NUL: \0",
    created_at=T0 + EXACT,
    status="denied",
    decided_at=T0 + HOUR,
)
CANCELLED = ask("6", expires_at=T0, status="cancelled", decided_at=T0 + 2 * HOUR)
LATE = ask("7", expires_at=T0, status="approved", decided_at=T0 + HOUR)

SNAPSHOT = {
    "messages": [
        {"role": "user", "content": "Übung 😀 \0 \u2028"},
        {"role": "tool", "content": ""},
    ],
    "numbers": [0, -1, 1.0, 0.1, 1e300, -0.0, 2**53 + 1, 2**64, 10**30],
    "flags": {"yes": True, "no": False, "none": None},
    "": [[], {}, [[]]],
}

# What each file of data/0.1.0 holds.
VALUES = {
    "interrupt-pending": PENDING,
    "interrupt-pending-endless": ENDLESS,
    "interrupt-pending-bare": BARE,
    "interrupt-approved": APPROVED,
    "interrupt-denied": DENIED,
    "interrupt-cancelled": CANCELLED,
    "interrupt-approved-late": LATE,
    "run-reserved": run("reserved"),
    "run-reserved-with-snapshot": run("reserved", snapshot={"step": 1}),
    "run-started": run("started", sequence=41, snapshot=SNAPSHOT, updated_at=T0 + EXACT),
    "run-started-snapshot-text": run("started", sequence=10**30, snapshot="{}"),
    "run-started-snapshot-false": run("started", snapshot=False, updated_at=T0 - SEC),
    "run-succeeded": run("succeeded", sequence=7, snapshot=[1], updated_at=T0 + SEC),
    "run-interrupted": run("interrupted", interrupts=(BARE, PENDING), updated_at=T0 + MILLIS),
    "run-interrupted-half": run("interrupted", interrupts=(APPROVED, ENDLESS)),
    "run-interrupted-answered": run("interrupted", interrupts=(APPROVED, DENIED, CANCELLED)),
    "run-cancelled": run("cancelled", snapshot={}),
    "run-failed": run("failed"),
    "run-failed-with-code": run("failed", failure=FAILURE, updated_at=T0 + HOUR),
    "run-failed-without-code": run("failed", failure={"message": "Down"}),
}
# What each file of data/ruby is another spelling of.
SPELLINGS = {
    "interrupt-pending-z": "interrupt-pending",
    "interrupt-pending-absent-keys": "interrupt-pending-bare",
    "interrupt-approved-offset": "interrupt-approved",
    "interrupt-denied-nanoseconds": "interrupt-denied",
    "interrupt-cancelled-nulls": "interrupt-cancelled",
    "run-reserved-required-keys": "run-reserved",
    "run-started-microseconds": "run-started",
    "run-succeeded-absent-keys": "run-succeeded",
    "run-interrupted-absent-keys": "run-interrupted",
    "run-interrupted-answered-offset": "run-interrupted-answered",
    "run-cancelled-nulls": "run-cancelled",
    "run-failed-null": "run-failed",
    "run-failed-with-code-offset": "run-failed-with-code",
    "run-failed-without-code-key": "run-failed-without-code",
}


def text(*parts):
    return DATA.joinpath(*parts).with_suffix(".json").read_text(encoding="utf-8")


def written(value):
    """Return the text of the value's row, in which `1`, `1.0`, `true` and the key order differ."""
    return json.dumps(value.to_storage(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read(name, text):
    return (Interrupt if name.startswith("interrupt") else RunRecord).from_storage(json.loads(text))


def test_every_file_is_read_by_a_test():
    expected = {f"0.1.0/{name}.json" for name in VALUES} | {
        f"ruby/{name}.json" for name in SPELLINGS
    }
    assert {path.relative_to(DATA).as_posix() for path in DATA.rglob("*.json")} == expected


def test_the_files_have_every_status():
    runs = {value.status for value in VALUES.values() if type(value) is RunRecord}
    asks = {value.status for value in VALUES.values() if type(value) is Interrupt}
    assert (runs, asks) == ({*RunRecord.STATUSES}, {*Interrupt.STATUSES})


@pytest.mark.parametrize("name", VALUES)
def test_a_row_of_an_earlier_version_is_read_as_the_value_it_was(name):
    assert read(name, text("0.1.0", name)) == VALUES[name]


@pytest.mark.parametrize("name", VALUES)
def test_a_row_of_an_earlier_version_is_written_as_it_was(name):
    stored = text("0.1.0", name)
    assert written(read(name, stored)) == stored


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_stored_as_an_earlier_version_stored_it(name):
    assert written(VALUES[name]) == text("0.1.0", name)


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_row_of_the_ruby_library_is_read_as_the_same_value(name):
    assert read(name, text("ruby", name)) == VALUES[SPELLINGS[name]]


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_row_of_the_ruby_library_is_written_as_a_row_of_ours(name):
    assert written(read(name, text("ruby", name))) == text("0.1.0", SPELLINGS[name])
