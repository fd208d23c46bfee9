"""The store in SQLite: one row for each run, each save a compare-and-swap.

The columns by which runs and requests are found are made from the record by the database itself:
generated columns, and triggers where there are several values. So whoever writes a record, in
whatever way, writes them too. The one connection is used in a thread of its own, since SQLite has
one writer anyway; other processes have theirs.
"""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

from store import Claim, Decision, HostError, Key, New, Row, time_text

from agui_runs import Interrupt, RunRecord
from stores.rows import as_claim, as_decision, as_row, as_text, decision_columns, readable

T = TypeVar("T")
Statement: TypeAlias = tuple[str, Sequence[object]]

SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    scope TEXT, thread_id TEXT, run_id TEXT,
    record TEXT NOT NULL,
    input TEXT NOT NULL, actor TEXT NOT NULL, alive_until TEXT NOT NULL,
    status TEXT AS (json_extract(record, '$.status')) STORED,
    created_at TEXT AS (json_extract(record, '$.createdAt')) STORED,
    updated_at TEXT AS (json_extract(record, '$.updatedAt')) STORED,
    PRIMARY KEY (scope, thread_id, run_id)
);
CREATE INDEX IF NOT EXISTS runs_of_thread ON runs (scope, thread_id, created_at);
CREATE INDEX IF NOT EXISTS live_of_thread ON runs (scope, thread_id)
    WHERE status IN ('reserved', 'started');
CREATE INDEX IF NOT EXISTS live_by_lease ON runs (alive_until)
    WHERE status IN ('reserved', 'started');
CREATE INDEX IF NOT EXISTS ended_by_age ON runs (updated_at)
    WHERE status NOT IN ('reserved', 'started');

-- One row for each interrupt of each paused run. An expiry of null is 'never', which as text comes
-- after every time.
CREATE TABLE IF NOT EXISTS requests (
    scope TEXT, thread_id TEXT, interrupt_id TEXT, run_id TEXT, tool_call_id TEXT,
    status TEXT, expires_at TEXT,
    PRIMARY KEY (scope, thread_id, interrupt_id)
);
CREATE INDEX IF NOT EXISTS requests_of_run ON requests (scope, thread_id, run_id);
CREATE INDEX IF NOT EXISTS requests_of_call ON requests (scope, thread_id, tool_call_id);
CREATE INDEX IF NOT EXISTS pending_of_thread ON requests (scope, thread_id)
    WHERE status = 'pending';
CREATE INDEX IF NOT EXISTS pending_of_scope ON requests (scope, expires_at)
    WHERE status = 'pending';
CREATE INDEX IF NOT EXISTS pending_by_expiry ON requests (expires_at) WHERE status = 'pending';

CREATE TABLE IF NOT EXISTS executions (
    scope TEXT, thread_id TEXT, tool_call_id TEXT, run_id TEXT, claimed_at TEXT, result TEXT,
    PRIMARY KEY (scope, thread_id, tool_call_id)
);
CREATE INDEX IF NOT EXISTS unfinished_by_time ON executions (claimed_at) WHERE result IS NULL;

-- The key says it again: there is one decision on an interrupt, and never a second one.
CREATE TABLE IF NOT EXISTS decisions (
    scope TEXT, thread_id TEXT, run_id TEXT, interrupt_id TEXT, decision TEXT, decided_at TEXT,
    actor TEXT, request TEXT, note TEXT, correction TEXT,
    PRIMARY KEY (scope, thread_id, interrupt_id)
);
CREATE INDEX IF NOT EXISTS decisions_of_run ON decisions (scope, thread_id, run_id);

CREATE TRIGGER IF NOT EXISTS run_saved AFTER UPDATE OF record ON runs
WHEN 'interrupted' IN (old.status, new.status) BEGIN
    DELETE FROM requests
    WHERE scope = old.scope AND thread_id = old.thread_id AND run_id = old.run_id;
    INSERT INTO requests SELECT
        new.scope, new.thread_id, json_extract(value, '$.id'), new.run_id,
        json_extract(value, '$.toolCallId'), json_extract(value, '$.status'),
        coalesce(json_extract(value, '$.expiresAt'), 'never')
    FROM json_each(new.record, '$.interrupts');
END;
CREATE TRIGGER IF NOT EXISTS run_inserted AFTER INSERT ON runs WHEN new.status = 'interrupted' BEGIN
    UPDATE runs SET record = record WHERE rowid = new.rowid;
END;
CREATE TRIGGER IF NOT EXISTS run_removed AFTER DELETE ON runs BEGIN
    DELETE FROM requests
    WHERE scope = old.scope AND thread_id = old.thread_id AND run_id = old.run_id;
END;
-- A claim with a result goes with the last request that could have it made again.
CREATE TRIGGER IF NOT EXISTS request_removed AFTER DELETE ON requests
WHEN NOT EXISTS (
    SELECT * FROM runs
    WHERE scope = old.scope AND thread_id = old.thread_id AND run_id = old.run_id
) BEGIN
    DELETE FROM executions
    WHERE scope = old.scope AND thread_id = old.thread_id AND tool_call_id = old.tool_call_id
    AND result IS NOT NULL AND NOT EXISTS (
        SELECT * FROM requests
        WHERE scope = old.scope AND thread_id = old.thread_id AND tool_call_id = old.tool_call_id
    );
END;
"""

RUN = "runs.record, runs.input, runs.actor, runs.alive_until"
ONE_RUN = "scope = ? AND thread_id = ? AND run_id = ?"
ONE_CALL = "scope = ? AND thread_id = ? AND tool_call_id = ?"
LIVE = "status IN ('reserved', 'started')"

LOAD = f"SELECT {RUN} FROM runs WHERE {ONE_RUN}"
RESERVE = """
INSERT INTO runs (scope, thread_id, run_id, record, input, actor, alive_until)
VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
SWAP = f"UPDATE runs SET record = ? WHERE {ONE_RUN} AND record = ?"
RENEW = f"UPDATE runs SET alive_until = ? WHERE {ONE_RUN}"
DECIDE = "INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

NEWEST = "ORDER BY runs.created_at DESC, runs.rowid DESC LIMIT ?"
THREAD = f"SELECT {RUN} FROM runs WHERE scope = ? AND thread_id = ? {NEWEST}"
THREAD_BEFORE = f"""
SELECT {RUN} FROM runs WHERE scope = ? AND thread_id = ?
AND (created_at, rowid) < (SELECT created_at, rowid FROM runs WHERE {ONE_RUN}) {NEWEST}
"""
BUSY = f"SELECT 1 FROM runs WHERE scope = ? AND thread_id = ? AND {LIVE} AND alive_until > ?"

# CROSS JOIN is SQLite's way to say which table comes first: the requests, for they are few.
OF_REQUESTS = "FROM requests CROSS JOIN runs USING (scope, thread_id, run_id)"
HOLDER = f"""
SELECT {RUN} {OF_REQUESTS} WHERE requests.scope = ? AND requests.thread_id = ?
AND interrupt_id IN (SELECT value FROM json_each(?)) {NEWEST}
"""
AWAITING = f"""
SELECT {RUN} {OF_REQUESTS} WHERE requests.scope = ? AND requests.thread_id = ?
AND requests.status = 'pending' {NEWEST}
"""
APPROVALS = f"""
SELECT {RUN}, interrupt_id {OF_REQUESTS} WHERE requests.scope = ? AND requests.status = 'pending'
ORDER BY expires_at LIMIT ?
"""
EXPIRED = f"""
SELECT {RUN} {OF_REQUESTS} WHERE requests.status = 'pending' AND expires_at <= ?
GROUP BY runs.rowid LIMIT ?
"""
SILENT = f"SELECT {RUN} FROM runs WHERE {LIVE} AND alive_until <= ? ORDER BY alive_until LIMIT ?"

CLAIM = "INSERT INTO executions VALUES (?, ?, ?, ?, ?, NULL) ON CONFLICT DO NOTHING"
KEEP = f"UPDATE executions SET result = ? WHERE {ONE_CALL}"
CLAIMS = """
SELECT executions.scope, executions.thread_id, tool_call_id, executions.run_id, claimed_at,
alive_until, result FROM executions LEFT JOIN runs USING (scope, thread_id, run_id)
"""
CLAIMED = f"{CLAIMS} WHERE {ONE_CALL.replace('scope', 'executions.scope', 1)}"
UNFINISHED = f"""
{CLAIMS} WHERE result IS NULL AND (? IS NULL OR executions.scope = ?)
AND (alive_until IS NULL OR alive_until <= ?)
ORDER BY claimed_at LIMIT ?
"""
DECISIONS = """
SELECT * FROM decisions WHERE scope = ? AND thread_id = ?
AND run_id IN (SELECT value FROM json_each(?)) ORDER BY decided_at DESC, rowid DESC
"""
# A live run of the thread may be about to make a call that a claim has to stop, so it has to end
# before anything is taken away.
REMOVE = f"""
DELETE FROM runs WHERE rowid IN (
    SELECT rowid FROM runs AS ended WHERE status NOT IN ('reserved', 'started') AND updated_at < ?
    AND NOT EXISTS (
        SELECT * FROM runs WHERE scope = ended.scope AND thread_id = ended.thread_id AND {LIVE}
    ) AND NOT EXISTS (
        SELECT * FROM requests LEFT JOIN executions USING (scope, thread_id, tool_call_id)
        WHERE requests.scope = ended.scope AND requests.thread_id = ended.thread_id
        AND requests.run_id = ended.run_id
        AND (status = 'pending' OR (status = 'approved' AND result IS NULL))
    ) ORDER BY updated_at LIMIT ?
)
"""


class SqliteStore:
    """The store of `store.py` in one SQLite file, which several processes may share."""

    def __init__(self, path: str) -> None:
        self.db = sqlite3.connect(path, timeout=60, isolation_level=None, check_same_thread=False)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")
        self._executor = ThreadPoolExecutor(1, "store")

    async def reserve(self, new: New) -> tuple[Row, bool]:
        is_new = await self._write(reservation(new))
        return await self.load(new.run.key), is_new

    async def load(self, key: Key) -> Row:
        for found in await self._read(LOAD, key):
            return as_row(*found)
        raise HostError("run_unknown", "there is no such run", status=404)

    async def save(
        self,
        row: Row,
        run: RunRecord,
        decisions: Sequence[Decision] = (),
        successor: New | None = None,
    ) -> Row | None:
        text = as_text(run)
        swap: Statement = (SWAP, (text, *run.key, row.version))
        more = [audited(decision) for decision in decisions]
        if successor:
            more.append(reservation(successor))
        return row._replace(run=run, version=text) if await self._write(swap, *more) else None

    async def thread(self, scope: str, thread_id: str, before: str | None, limit: int) -> list[Row]:
        if before is None:
            return await self._rows(THREAD, scope, thread_id, limit)
        return await self._rows(THREAD_BEFORE, scope, thread_id, scope, thread_id, before, limit)

    async def is_busy(self, scope: str, thread_id: str, now: datetime) -> bool:
        return bool(await self._read(BUSY, (scope, thread_id, time_text(now))))

    async def awaiting(self, scope: str, thread_id: str, asked: Sequence[str]) -> Row | None:
        found = await self._rows(HOLDER, scope, thread_id, json.dumps(asked), 1)
        found = found or await self._rows(AWAITING, scope, thread_id, 1)
        return found[0] if found else None

    async def approvals(self, scope: str, limit: int) -> list[tuple[Row, Interrupt]]:
        found = []
        for *columns, interrupt_id in await self._read(APPROVALS, (scope, limit)):
            row = as_row(*columns)
            found += [(row, ask) for ask in row.run.interrupts if ask.id == interrupt_id]
        return found

    async def decisions(self, scope: str, thread_id: str, run_ids: Sequence[str]) -> list[Decision]:
        found = await self._read(DECISIONS, (scope, thread_id, json.dumps(run_ids)))
        return [as_decision(*columns) for columns in found]

    async def expired(self, now: datetime, limit: int) -> list[Row]:
        return readable(await self._read(EXPIRED, (time_text(now), limit)))

    async def silent(self, now: datetime, limit: int) -> list[Row]:
        return readable(await self._read(SILENT, (time_text(now), limit)))

    async def renew(self, keys: Iterable[Key], until: datetime) -> None:
        values = [(time_text(until), *key) for key in keys]

        def renew_all() -> None:
            with transaction(self.db):
                self.db.executemany(RENEW, values)

        await self._in_thread(renew_all)

    async def claim(self, call: Key, run_id: str, now: datetime) -> bool:
        return await self._write((CLAIM, (*call, run_id, time_text(now))))

    async def keep_result(self, call: Key, result: str) -> None:
        await self._write((KEEP, (result, *call)))

    async def claimed(self, call: Key) -> Claim | None:
        found = await self._read(CLAIMED, call)
        return as_claim(*found[0]) if found else None

    async def unfinished(self, scope: str | None, now: datetime, limit: int) -> list[Claim]:
        values = (scope, scope, time_text(now), limit)
        return [as_claim(*found) for found in await self._read(UNFINISHED, values)]

    async def remove_ended(self, before: datetime, limit: int) -> int:
        def remove() -> int:
            with transaction(self.db):
                return self.db.execute(REMOVE, (time_text(before), limit)).rowcount

        return await self._in_thread(remove)

    async def close(self) -> None:
        await self._in_thread(self.db.close)
        self._executor.shutdown()

    async def _rows(self, sql: str, *values: object) -> list[Row]:
        return [as_row(*found) for found in await self._read(sql, values)]

    async def _read(self, sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        return await self._in_thread(lambda: self.db.execute(sql, values).fetchall())

    async def _write(self, first: Statement, *others: Statement) -> bool:
        """Execute statements in one transaction, the others only where the first has written."""

        def write() -> bool:
            with transaction(self.db):
                if not self.db.execute(*first).rowcount:
                    return False
                for statement in others:
                    self.db.execute(*statement)
                return True

        return await self._in_thread(write)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commit what the block does, or nothing of it; other writers wait until then."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def reservation(new: New) -> Statement:
    """Return the insert that reserves a run, where its key is free."""
    values = (as_text(new.run), json.dumps(new.input), new.actor, time_text(new.alive_until))
    return RESERVE, (*new.run.key, *values)


def audited(decision: Decision) -> Statement:
    """Return the insert of a row of the audit."""
    return DECIDE, decision_columns(decision)
