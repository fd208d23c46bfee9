"""The store in PostgreSQL, with psycopg: one row for each run, each save a compare-and-swap.

The record is JSONB, which keeps a value and not its text. So the swap compares values, whatever
the text that was read looks like, and the columns by which runs and requests are found are made
from the record by the database, as in `sqlite.py`. The input stays text: nobody searches in it.
Where your arguments can hold numbers that JSONB writes otherwise, keep them in the snapshot as JSON
text; docs/storage.md says which those are.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, LiteralString, TypeAlias

import psycopg
from psycopg_pool import AsyncConnectionPool
from store import Claim, Decision, HostError, Key, New, Row, time_text

from agui_runs import Interrupt, RunRecord
from stores.rows import as_claim, as_decision, as_row, as_text, decision_columns, readable

Statement: TypeAlias = tuple[LiteralString, Sequence[object]]

# Two servers that start at once must not both make the tables.
SCHEMA = """
SELECT pg_advisory_xact_lock(8273);

CREATE TABLE IF NOT EXISTS runs (
    scope text, thread_id text, run_id text,
    number bigint GENERATED ALWAYS AS IDENTITY,
    record jsonb NOT NULL,
    input text NOT NULL, actor text NOT NULL, alive_until text COLLATE "C" NOT NULL,
    status text GENERATED ALWAYS AS (record ->> 'status') STORED,
    created_at text COLLATE "C" GENERATED ALWAYS AS (record ->> 'createdAt') STORED,
    updated_at text COLLATE "C" GENERATED ALWAYS AS (record ->> 'updatedAt') STORED,
    PRIMARY KEY (scope, thread_id, run_id)
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS runs_of_thread ON runs (scope, thread_id, created_at, number);
CREATE INDEX IF NOT EXISTS live_of_thread ON runs (scope, thread_id)
    WHERE status IN ('reserved', 'started');
CREATE INDEX IF NOT EXISTS live_by_lease ON runs (alive_until)
    WHERE status IN ('reserved', 'started');
CREATE INDEX IF NOT EXISTS ended_by_age ON runs (updated_at)
    WHERE status NOT IN ('reserved', 'started');

-- An expiry of null is 'never', which as text comes after every time.
CREATE TABLE IF NOT EXISTS requests (
    scope text, thread_id text, interrupt_id text, run_id text, tool_call_id text,
    status text, expires_at text COLLATE "C",
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
    scope text, thread_id text, tool_call_id text, run_id text, claimed_at text COLLATE "C",
    result text,
    PRIMARY KEY (scope, thread_id, tool_call_id)
);
CREATE INDEX IF NOT EXISTS unfinished_by_time ON executions (claimed_at) WHERE result IS NULL;

CREATE TABLE IF NOT EXISTS decisions (
    scope text, thread_id text, run_id text, interrupt_id text, decision text,
    decided_at text COLLATE "C", actor text, request text, note text, correction text,
    number bigint GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (scope, thread_id, interrupt_id)
);
CREATE INDEX IF NOT EXISTS decisions_of_run ON decisions (scope, thread_id, run_id);

CREATE OR REPLACE FUNCTION keep_requests() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM requests
        WHERE scope = old.scope AND thread_id = old.thread_id AND run_id = old.run_id;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO requests SELECT
            new.scope, new.thread_id, ask ->> 'id', new.run_id, ask ->> 'toolCallId',
            ask ->> 'status', coalesce(ask ->> 'expiresAt', 'never')
        FROM jsonb_array_elements(new.record -> 'interrupts') AS ask;
    ELSE
        -- A claim with a result goes with the last request that could have it made again.
        DELETE FROM executions USING jsonb_array_elements(old.record -> 'interrupts') AS ask
        WHERE scope = old.scope AND thread_id = old.thread_id
        AND tool_call_id = ask ->> 'toolCallId' AND result IS NOT NULL AND NOT EXISTS (
            SELECT FROM requests WHERE requests.scope = old.scope
            AND requests.thread_id = old.thread_id
            AND requests.tool_call_id = executions.tool_call_id
        );
    END IF;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER run_inserted AFTER INSERT OR DELETE ON runs
    FOR EACH ROW EXECUTE FUNCTION keep_requests();
CREATE OR REPLACE TRIGGER run_saved AFTER UPDATE OF record ON runs
    FOR EACH ROW WHEN ('interrupted' IN (old.status, new.status))
    EXECUTE FUNCTION keep_requests();
"""

RUN = "runs.record::text, runs.input, runs.actor, runs.alive_until"
ONE_RUN = "scope = %s AND thread_id = %s AND run_id = %s"
ONE_CALL = "scope = %s AND thread_id = %s AND tool_call_id = %s"
LIVE = "status IN ('reserved', 'started')"

LOAD = f"SELECT {RUN} FROM runs WHERE {ONE_RUN}"
RESERVE = """
INSERT INTO runs (scope, thread_id, run_id, record, input, actor, alive_until)
VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
"""
SWAP = f"UPDATE runs SET record = %s WHERE {ONE_RUN} AND record = %s::jsonb"
RENEW = f"UPDATE runs SET alive_until = %s WHERE {ONE_RUN}"
DECIDE = "INSERT INTO decisions VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"

NEWEST = "ORDER BY runs.created_at DESC, runs.number DESC LIMIT %s"
THREAD = f"SELECT {RUN} FROM runs WHERE scope = %s AND thread_id = %s {NEWEST}"
THREAD_BEFORE = f"""
SELECT {RUN} FROM runs WHERE scope = %s AND thread_id = %s
AND (created_at, number) < (SELECT created_at, number FROM runs WHERE {ONE_RUN}) {NEWEST}
"""
BUSY = f"SELECT FROM runs WHERE scope = %s AND thread_id = %s AND {LIVE} AND alive_until > %s"

OF_REQUESTS = "FROM requests JOIN runs USING (scope, thread_id, run_id)"
HOLDER = f"""
SELECT {RUN} {OF_REQUESTS} WHERE scope = %s AND thread_id = %s AND interrupt_id = ANY(%s) {NEWEST}
"""
AWAITING = f"""
SELECT {RUN} {OF_REQUESTS} WHERE scope = %s AND thread_id = %s
AND requests.status = 'pending' {NEWEST}
"""
APPROVALS = f"""
SELECT {RUN}, interrupt_id {OF_REQUESTS} WHERE scope = %s AND requests.status = 'pending'
ORDER BY expires_at LIMIT %s
"""
EXPIRED = f"""
SELECT {RUN} FROM runs WHERE (scope, thread_id, run_id) IN (
    SELECT scope, thread_id, run_id FROM requests WHERE status = 'pending' AND expires_at <= %s
) LIMIT %s
"""
SILENT = f"SELECT {RUN} FROM runs WHERE {LIVE} AND alive_until <= %s ORDER BY alive_until LIMIT %s"

CLAIM = "INSERT INTO executions VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
KEEP = f"UPDATE executions SET result = %s WHERE {ONE_CALL}"
CLAIMS = """
SELECT scope, thread_id, tool_call_id, run_id, claimed_at, alive_until, result
FROM executions LEFT JOIN runs USING (scope, thread_id, run_id)
"""
CLAIMED = f"{CLAIMS} WHERE {ONE_CALL}"
UNFINISHED = f"""
{CLAIMS} WHERE result IS NULL AND (%s::text IS NULL OR scope = %s)
AND (alive_until IS NULL OR alive_until <= %s) ORDER BY claimed_at LIMIT %s
"""
DECISIONS = """
SELECT scope, thread_id, run_id, interrupt_id, decision, decided_at, actor, request, note,
correction FROM decisions WHERE scope = %s AND thread_id = %s AND run_id = ANY(%s)
ORDER BY decided_at DESC, number DESC
"""
# A run that is reserved while this looks for runs at work would not be seen, so nobody writes
# meanwhile, as in SQLite. Such a run may be about to make a call that a claim has to stop.
ALONE = "LOCK TABLE runs IN SHARE ROW EXCLUSIVE MODE"
REMOVE = f"""
DELETE FROM runs WHERE number IN (
    SELECT number FROM runs AS ended WHERE status NOT IN ('reserved', 'started')
    AND updated_at < %s AND NOT EXISTS (
        SELECT FROM runs WHERE scope = ended.scope AND thread_id = ended.thread_id AND {LIVE}
    ) AND NOT EXISTS (
        SELECT FROM requests LEFT JOIN executions USING (scope, thread_id, tool_call_id)
        WHERE scope = ended.scope AND thread_id = ended.thread_id
        AND requests.run_id = ended.run_id
        AND (status = 'pending' OR (status = 'approved' AND result IS NULL))
    ) ORDER BY updated_at LIMIT %s
)
"""


class PostgresStore:
    """The store of `store.py` in one PostgreSQL database, for any number of processes."""

    def __init__(self, url: str) -> None:
        with psycopg.connect(url) as db:
            db.execute(SCHEMA)
        # A statement alone is a transaction, and one trip to the server instead of three.
        options = {"autocommit": True}
        self.pool = AsyncConnectionPool(url, kwargs=options, min_size=1, max_size=8, open=False)
        self._opening = asyncio.Lock()

    async def reserve(self, new: New) -> tuple[Row, bool]:
        is_new = await self._write(reservation(new))
        return await self.load(new.run.key), is_new

    async def load(self, key: Key) -> Row:
        for found in await self._read(LOAD, *key):
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
        more: list[Statement] = [(DECIDE, decision_columns(made)) for made in decisions]
        if successor:
            more.append(reservation(successor))
        return row._replace(run=run, version=text) if await self._write(swap, *more) else None

    async def thread(self, scope: str, thread_id: str, before: str | None, limit: int) -> list[Row]:
        if before is None:
            return await self._rows(THREAD, scope, thread_id, limit)
        return await self._rows(THREAD_BEFORE, scope, thread_id, scope, thread_id, before, limit)

    async def is_busy(self, scope: str, thread_id: str, now: datetime) -> bool:
        return bool(await self._read(BUSY, scope, thread_id, time_text(now)))

    async def awaiting(self, scope: str, thread_id: str, asked: Sequence[str]) -> Row | None:
        found = await self._rows(HOLDER, scope, thread_id, list(asked), 1)
        found = found or await self._rows(AWAITING, scope, thread_id, 1)
        return found[0] if found else None

    async def approvals(self, scope: str, limit: int) -> list[tuple[Row, Interrupt]]:
        found = []
        for *columns, interrupt_id in await self._read(APPROVALS, scope, limit):
            row = as_row(*columns)
            found += [(row, ask) for ask in row.run.interrupts if ask.id == interrupt_id]
        return found

    async def decisions(self, scope: str, thread_id: str, run_ids: Sequence[str]) -> list[Decision]:
        found = await self._read(DECISIONS, scope, thread_id, list(run_ids))
        return [as_decision(*columns) for columns in found]

    async def expired(self, now: datetime, limit: int) -> list[Row]:
        return readable(await self._read(EXPIRED, time_text(now), limit))

    async def silent(self, now: datetime, limit: int) -> list[Row]:
        return readable(await self._read(SILENT, time_text(now), limit))

    async def renew(self, keys: Iterable[Key], until: datetime) -> None:
        # All who renew take the rows in one order, and cannot block each other.
        values = [(time_text(until), *key) for key in sorted(keys)]
        async with self._connection() as db, db.transaction():
            await db.cursor().executemany(RENEW, values)

    async def claim(self, call: Key, run_id: str, now: datetime) -> bool:
        return await self._write((CLAIM, (*call, run_id, time_text(now))))

    async def keep_result(self, call: Key, result: str) -> None:
        await self._write((KEEP, (result, *call)))

    async def claimed(self, call: Key) -> Claim | None:
        found = await self._read(CLAIMED, *call)
        return as_claim(*found[0]) if found else None

    async def unfinished(self, scope: str | None, now: datetime, limit: int) -> list[Claim]:
        found = await self._read(UNFINISHED, scope, scope, time_text(now), limit)
        return [as_claim(*columns) for columns in found]

    async def remove_ended(self, before: datetime, limit: int) -> int:
        async with self._connection() as db, db.transaction():
            await db.execute(ALONE)
            return (await db.execute(REMOVE, (time_text(before), limit))).rowcount

    async def close(self) -> None:
        await self.pool.close()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        async with self._opening:
            await self.pool.open()  # The first time, for it belongs to the loop it is used in.
        async with self.pool.connection() as db:
            yield db

    async def _rows(self, sql: LiteralString, *values: object) -> list[Row]:
        return [as_row(*found) for found in await self._read(sql, *values)]

    async def _read(self, sql: LiteralString, *values: object) -> list[tuple[Any, ...]]:
        async with self._connection() as db:
            return await (await db.execute(sql, values)).fetchall()

    async def _write(self, first: Statement, *others: Statement) -> bool:
        """Execute statements in one transaction, the others only where the first has written."""
        async with self._connection() as db:
            if not others:
                return bool((await db.execute(*first)).rowcount)
            async with db.transaction():
                if not (await db.execute(*first)).rowcount:
                    return False
                for statement in others:
                    await db.execute(*statement)
                return True


def reservation(new: New) -> Statement:
    """Return the insert that reserves a run, where its key is free."""
    values = (as_text(new.run), json.dumps(new.input), new.actor, time_text(new.alive_until))
    return RESERVE, (*new.run.key, *values)
