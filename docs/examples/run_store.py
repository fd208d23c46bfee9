"""The store of `agent_server.py`: SQLite, one row for each run, each save a compare-and-swap.

For another database this is the file to write anew. What the server needs of it: an insert that
tells whether a key was free (`reserve`, `claim`), and an update that tells whether the row still
was what had been read (`update`).
"""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple, TypeAlias

from agui_runs import RunRecord

Key: TypeAlias = tuple[str, str, str]
Change: TypeAlias = Callable[[RunRecord], RunRecord]

SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    scope TEXT, thread_id TEXT, run_id TEXT, record TEXT NOT NULL,
    PRIMARY KEY (scope, thread_id, run_id)
);
CREATE TABLE IF NOT EXISTS executions (
    scope TEXT, thread_id TEXT, tool_call_id TEXT, result TEXT,
    PRIMARY KEY (scope, thread_id, tool_call_id)
);
"""
LOAD = "SELECT record FROM runs WHERE scope = ? AND thread_id = ? AND run_id = ?"
LOAD_THREAD = "SELECT record FROM runs WHERE scope = ? AND thread_id = ? ORDER BY rowid DESC"
RESERVE = "INSERT INTO runs VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
SWAP = "UPDATE runs SET record = ? WHERE scope = ? AND thread_id = ? AND run_id = ? AND record = ?"
CLAIM = "INSERT INTO executions VALUES (?, ?, ?, NULL) ON CONFLICT DO NOTHING"
KEEP = "UPDATE executions SET result = ? WHERE scope = ? AND thread_id = ? AND tool_call_id = ?"
RESULT = "SELECT result FROM executions WHERE scope = ? AND thread_id = ? AND tool_call_id = ?"


class HostError(Exception):
    """What this server refuses on its own account, with a code as a `StreamError` has."""

    def __init__(self, code: str, message: str, status: int = 409) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class Row(NamedTuple):
    """A run, and the text it was read from: the next save must still find that text."""

    run: RunRecord
    text: str


class Store:
    """The database. Each statement has a connection and a transaction of its own, in a thread."""

    def __init__(self, path: str) -> None:
        self.path = path
        with closing(sqlite3.connect(path)) as db:
            db.executescript(SCHEMA)

    async def reserve(self, run: RunRecord) -> tuple[Row, bool]:
        """Take the key for this run; return the row that has it, and whether it is this run."""
        text = as_text(run)
        _, inserted = await self._execute(RESERVE, *run.key, text)
        return (Row(run, text), True) if inserted else (await self.load(run.key), False)

    async def load(self, key: Key) -> Row:
        """Read a run back."""
        found, _ = await self._execute(LOAD, *key)
        if not found:
            raise HostError("run_unknown", "there is no such run", status=404)
        return as_row(*found[0])

    async def load_thread(self, scope: str, thread_id: str) -> list[Row]:
        """Read the runs of a thread, newest first."""
        found, _ = await self._execute(LOAD_THREAD, scope, thread_id)
        return [as_row(*texts) for texts in found]

    async def update(self, row: Row, change: Change) -> Row:
        """Save what the change makes of the row, and return the row that then stands.

        Where somebody else has saved in between, the swap is lost. Then the change is made
        again, from what is there now, and that record decides: it refuses, or takes it too.
        """
        while (run := change(row.run)) is not row.run:
            text = as_text(run)
            _, swapped = await self._execute(SWAP, text, *run.key, row.text)
            if swapped:
                return Row(run, text)
            row = await self.load(run.key)
        return row  # A transition that changes nothing returns the same object.

    async def claim(self, call: Key) -> bool:
        """Take a tool call for execution; return False where it was taken before."""
        _, inserted = await self._execute(CLAIM, *call)
        return inserted == 1

    async def keep_result(self, call: Key, result: str) -> None:
        """Keep what a claimed call has given."""
        await self._execute(KEEP, result, *call)

    async def result(self, call: Key) -> str | None:
        """Read what a claimed call has given; None while that is not known."""
        [(result,)], _ = await self._execute(RESULT, *call)
        return None if result is None else str(result)

    async def _execute(self, sql: str, *values: str) -> tuple[list[tuple[Any, ...]], int]:
        """Execute a statement; return the rows that it found, and how many it wrote."""

        def in_thread() -> tuple[list[tuple[Any, ...]], int]:
            with closing(sqlite3.connect(self.path, timeout=30)) as db, db:
                cursor = db.execute(sql, values)
                return cursor.fetchall(), cursor.rowcount

        return await asyncio.to_thread(in_thread)


def as_text(run: RunRecord) -> str:
    """Return the text to store: one value has one text, so that texts can be compared."""
    return json.dumps(run.to_storage(), sort_keys=True)


def as_row(text: str) -> Row:
    """Return the run that a stored text holds, beside that text."""
    return Row(RunRecord.from_storage(json.loads(text)), text)
