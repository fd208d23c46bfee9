"""The example store: what is beside a record agrees with it, and no question reads all rows."""

import asyncio
import json
from datetime import UTC, datetime

import pytest
from hypothesis import assume, given

import strategies
from agui_runs import RunRecord
from builders import make_ask

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
COLUMNS = "scope, thread_id, run_id, status, created_at, updated_at"
REQUESTS = "scope, thread_id, interrupt_id, run_id, tool_call_id, status, expires_at"


def beside(run: RunRecord):
    """Return the columns and the requests that go with a record."""
    stored = run.to_storage()
    columns = (*run.key, run.status, stored["createdAt"], stored["updatedAt"])
    scope, thread_id, run_id = run.key
    requests = {
        (scope, thread_id, ask["id"], run_id, ask["toolCallId"], ask["status"], expiry(ask))
        for ask in stored["interrupts"]
    }
    return columns, requests


def expiry(ask):
    return ask["expiresAt"] or "never"


def found(store):
    [columns] = store.db.execute(f"SELECT {COLUMNS} FROM runs").fetchall()
    return columns, set(store.db.execute(f"SELECT {REQUESTS} FROM requests"))


def has_nul(run: RunRecord) -> bool:
    return "\\u0000" in json.dumps(run.to_storage())


def in_store(story):
    """Run a story on a new store, in memory."""
    from stores.sqlite import SqliteStore

    async def told():
        store = SqliteStore(":memory:")
        try:
            return await story(store)
        finally:
            await store.close()

    return asyncio.run(told())


@given(strategies.records, strategies.records)
def test_what_is_beside_a_record_is_what_the_record_says(first, second):
    """SQLite ends a text of JSON at NUL, and the ids of this host hold none."""
    from store import New

    assume(not has_nul(first) and not has_nul(second))
    second = RunRecord.from_storage(
        {**second.to_storage(), "scope": first.scope, "threadId": first.thread_id}
        | {"runId": first.run_id}
    )

    async def story(store):
        row, _ = await store.reserve(New(first, {}, "alice", NOW))
        after_insert = found(store)
        await store.save(row, second)
        return after_insert, found(store)

    assert in_store(story) == (beside(first), beside(second))


@given(strategies.records)
def test_a_run_that_is_removed_takes_its_requests_along(run):
    from store import New

    async def story(store):
        await store.reserve(New(run, {}, "alice", NOW))
        store.db.execute("DELETE FROM runs")
        return store.db.execute("SELECT count(*) FROM requests").fetchall()

    assert in_store(story) == [(0,)]


@given(strategies.records)
def test_a_run_comes_back_as_it_was_saved(run):
    from store import New

    async def story(store):
        await store.reserve(New(run, {"a": 1}, "alice", NOW))
        return await store.load(run.key)

    row = in_store(story)
    assert (row.run, row.input, row.actor, row.alive_until) == (run, {"a": 1}, "alice", NOW)


def test_of_two_who_save_one_row_the_second_finds_out():
    from store import New

    run = RunRecord(scope="s", thread_id="t", run_id="r", digest="d", created_at=NOW)

    async def story(store):
        row, _ = await store.reserve(New(run, {}, "alice", NOW))
        first = await store.save(row, run.advance(now=NOW))
        second = await store.save(row, run.finish("cancelled", now=NOW))
        return first is not None, second, (await store.load(run.key)).run.sequence

    assert in_store(story) == (True, None, 1)


def test_who_loses_the_swap_reserves_no_run_and_writes_no_audit():
    from store import By, New, made_between

    run = RunRecord(scope="s", thread_id="t", run_id="r", digest="d", created_at=NOW)
    other = New(
        RunRecord(scope="s", thread_id="t", run_id="r-2", digest="d", created_at=NOW), {}, "a", NOW
    )
    paused = run.interrupted([make_ask()], now=NOW)
    answered = paused.replace_interrupt(make_ask().decide("denied", now=NOW), now=NOW)

    async def story(store):
        row, _ = await store.reserve(New(paused, {}, "alice", NOW))
        await store.save(row, answered)
        audit = made_between(paused, answered, By("bob", "answer 1"))
        lost = await store.save(row, answered, audit, other)
        count = "SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM decisions)"
        return lost, store.db.execute(count).fetchall()

    assert in_store(story) == (None, [(1, 0)])


QUESTIONS = [
    "LOAD",
    "THREAD",
    "THREAD_BEFORE",
    "BUSY",
    "HOLDER",
    "AWAITING",
    "APPROVALS",
    "EXPIRED",
    "SILENT",
    "CLAIMED",
    "UNFINISHED",
    "DECISIONS",
    "REMOVE",
]


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_is_answered_by_an_index(name):
    from stores import sqlite

    async def story(store):
        sql = getattr(sqlite, name)
        plan = store.db.execute("EXPLAIN QUERY PLAN " + sql, ("x",) * sql.count("?")).fetchall()
        return [step for *_, step in plan if step.startswith("SCAN")]

    # What a client has listed is a table too, and the index of what is unfinished holds no more.
    allowed = ("SCAN json_each", "SCAN executions USING INDEX unfinished_by_time")
    assert [step for step in in_store(story) if not step.startswith(allowed)] == []
