"""Every store answers every question of the example server as the one in SQLite does."""

import asyncio
import random
from datetime import timedelta

import pytest
from crowd import LATER, NOW, THREAD, new_pause, new_run

from agui_runs import ConfigurationError, Interrupt, RunRecord

SEC = timedelta(seconds=1)
SCOPE = THREAD[0]


def shown(row):
    """Return all of a row that a server sees; what the next save must find differs."""
    return row.run, row.input, row.actor, row.alive_until


def keys(rows):
    return [row.run.run_id for row in rows]


@pytest.fixture
def tells(store, runner):
    """Return a function that runs a story on a store."""
    return lambda story: runner.run(story(store))


def test_a_run_is_reserved_once_and_comes_back_as_it_was_saved(tells):
    async def story(store):
        new = new_run("r", snapshot={"items": [1, None, {"ü": "\u2028"}], "half": 0.5})
        first, is_new = await store.reserve(new)
        second, is_new_again = await store.reserve(new_run("r", "other"))
        return new, first, is_new, second, is_new_again

    new, first, is_new, second, is_new_again = tells(story)
    assert (is_new, is_new_again) == (True, False)
    assert shown(first) == shown(second) == (new.run, new.input, "alice", LATER)


def test_of_two_who_save_one_row_the_second_has_lost_and_writes_nothing(tells):
    async def story(store):
        from store import By, made_between

        row, _ = await store.reserve(new_pause("p"))
        [ask] = row.run.interrupts
        yes = row.run.replace_interrupt(ask.decide("approved", now=LATER), now=LATER)
        no = row.run.replace_interrupt(ask.decide("denied", now=LATER), now=LATER)
        by = By("alice", "answer", "why", {"p": {"amount": "5.00"}})
        await store.save(row, yes, made_between(row.run, yes, by), new_run("next"))
        lost = await store.save(row, no, made_between(row.run, no, by), new_run("other"))
        runs = await store.thread(*THREAD, None, 9)
        return lost, await store.decisions(*THREAD, ["p"]), sorted(keys(runs))

    lost, [made], runs = tells(story)
    assert lost is None
    assert (made.decision, made.actor, made.note) == ("approved", "alice", "why")
    assert (made.decided_at, made.correction) == (LATER, {"amount": "5.00"})
    assert runs == ["next", "p"]


def test_who_renews_a_lease_loses_no_swap_against_the_run(tells):
    async def story(store):
        row, _ = await store.reserve(new_run("r"))
        await store.renew([row.run.key, (*THREAD, "unknown")], LATER + SEC)
        saved = await store.save(row, row.run.start(now=NOW))
        return saved is not None, (await store.load(row.run.key)).alive_until

    assert tells(story) == (True, LATER + SEC)


def test_a_row_that_cannot_be_read_is_logged_and_keeps_no_other_waiting(tells, caplog, monkeypatch):
    refuse = RunRecord.from_storage

    def from_storage(row):
        if row["runId"] == "broken":
            raise ConfigurationError("run record: it is broken")
        return refuse(row)

    async def story(store):
        for run_id in ("broken", "whole"):
            await store.reserve(new_run(run_id)._replace(alive_until=NOW))
        monkeypatch.setattr(RunRecord, "from_storage", from_storage)
        return keys(await store.silent(NOW, 9))

    # Reserving reads the run, and it can still be read then.
    assert tells(story) == ["whole"]
    assert caplog.messages == ["a stored run cannot be read: run record: it is broken"]


def test_a_claim_goes_with_the_last_run_that_holds_its_approval(tells):
    async def story(store):
        call = (*THREAD, "call")
        for run_id in ("first", "second"):
            ask = Interrupt(id=run_id, tool_call_id="call", arguments_digest="c3", expires_at=None)
            paused = new_run(run_id).run.interrupted([ask], now=NOW)
            approved = paused.replace_interrupt(ask.decide("approved", now=NOW), now=NOW)
            await store.reserve(new_run(run_id)._replace(run=approved))
        found = [await store.remove_ended(LATER, 9)]  # The call has not been made.
        await store.claim(call, "first", NOW)
        found.append(await store.remove_ended(LATER, 9))  # Nobody knows what became of it.
        await store.keep_result(call, "done")
        for _ in range(2):
            found.append((await store.remove_ended(LATER, 1), bool(await store.claimed(call))))
        return found

    assert tells(story) == [0, 0, (1, True), (1, False)]


def test_nothing_is_removed_from_a_thread_at_work(tells):
    async def story(store):
        old = new_run("old")
        await store.reserve(old._replace(run=old.run.finish("succeeded", now=NOW)))
        row, _ = await store.reserve(new_run("live"))
        removed = [await store.remove_ended(LATER, 9)]
        await store.save(row, row.run.finish("cancelled", now=LATER))
        removed.append(await store.remove_ended(LATER, 9))
        return removed, keys(await store.thread(*THREAD, None, 9))

    assert tells(story) == ([0, 1], ["live"])


# --- The same random story, told to each store and to SQLite in memory --------------------------

THREADS = [("tenant-1", "t 1"), ("tenant-1", "t-2"), ("tenant-2", "t 1")]
OFTEN = ["reserve", "pause", "answer", "claim", "keep"]
STEPS = [*OFTEN, *OFTEN, "answer", "finish", "renew", "remove", "start"]


async def random_step(store, dice, number, minted):
    """Do something to a store, by dice, and return what it gave."""
    now = NOW + number * SEC
    thread = dice.choice(THREADS)
    seen = minted.setdefault(thread, {"runs": [], "asks": [], "calls": []})
    known = dice.choice(seen["runs"]) if seen["runs"] else "unknown"
    what = dice.choice(STEPS)
    if what == "reserve":
        run_id = f"run {number}"
        scope, thread_id = thread
        run = RunRecord(scope=scope, thread_id=thread_id, run_id=run_id, digest="d", created_at=now)
        seen["runs"].append(run_id)
        lease = now + dice.randrange(40) * SEC
        new = new_run(run_id)._replace(run=run, alive_until=lease)
        row, is_new = await store.reserve(new)
        return shown(row), is_new
    if what == "renew":
        return await store.renew([(*thread, known)], now + dice.randrange(40) * SEC)
    if what in ("claim", "keep"):
        call = (*thread, dice.choice(seen["calls"] or ["no call"]))
        if what == "claim":
            return await store.claim(call, known, now)
        return await store.keep_result(call, f"result {number}")
    if what == "remove":
        return await store.remove_ended(now - dice.randrange(30) * SEC, 1000)
    return await change(store, dice, what, (*thread, known), now, seen)


async def change(store, dice, what, key, now, seen):
    """Make a transition, and save it with its audit."""
    from store import By, HostError, update

    try:
        row = await store.load(key)
    except HostError as refusal:
        return refusal.code
    asks = [
        Interrupt(
            id=f"ask {len(seen['asks']) + each}",
            tool_call_id=dice.choice([f"call {len(seen['calls'])}", *seen["calls"][-1:]]),
            arguments_digest="d",
            expires_at=dice.choice([None, now + 20 * SEC]),
        )
        for each in range(dice.randrange(1, 3))
    ]
    decision = dice.choice(["approved", "denied", "cancelled"])

    def make(run):
        if what == "pause" and not run.is_terminal:
            return run.interrupted(asks, now=now)
        if what == "answer" and run.pending_interrupts:
            ask = run.pending_interrupts[-1]
            if not ask.is_expired(now):
                return run.replace_interrupt(ask.decide(decision, now=now), now=now)
        if what == "finish" and not run.is_terminal:
            return run.finish("succeeded", now=now)
        return run if run.is_terminal else run.start(now=now)

    if what == "pause" and not row.run.is_terminal:
        seen["asks"] += [ask.id for ask in asks]
        seen["calls"] += [ask.tool_call_id for ask in asks]
    return shown(await update(store, row, make, By("alice", f"step {what}")))


async def all_questions(store, number, minted):
    """Ask a store all that it can be asked, without bounds and with them."""
    now = NOW + number * SEC
    found = []
    for scope, thread_id in THREADS:
        seen = minted.get((scope, thread_id), {"runs": [], "asks": [], "calls": []})
        runs = await store.thread(scope, thread_id, None, 1000)
        found.append([shown(row) for row in runs])
        if runs:
            middle = runs[len(runs) // 2].run.run_id
            found.append([shown(row) for row in await store.thread(scope, thread_id, middle, 2)])
        found.append(await store.is_busy(scope, thread_id, now))
        for asked in ([], seen["asks"][-3:-1], seen["asks"][:1]):
            row = await store.awaiting(scope, thread_id, asked)
            found.append(row and shown(row))
        made = await store.decisions(scope, thread_id, seen["runs"][-20:])
        found.append(sorted(made))
        found.append([each.decided_at for each in made])
        found += [await store.claimed((scope, thread_id, call)) for call in seen["calls"][-5:]]
    for scope in ("tenant-1", "tenant-2", "tenant-3"):
        waits = await store.approvals(scope, 1000)
        found.append(sorted((ask.id, row.run.key) for row, ask in waits))
        found.append([ask.expires_at for _, ask in waits])
        found.append(len(await store.approvals(scope, 2)))
    found.append(sorted(row.run.key for row in await store.expired(now, 1000)))
    silent = await store.silent(now, 1000)
    found.append(sorted(row.run.key for row in silent))
    found.append([row.alive_until for row in silent])
    for scope in (None, "tenant-1"):
        claims = await store.unfinished(scope, now, 1000)
        found.append([claim.claimed_at for claim in claims])
        found.append(sorted(claim.call for claim in claims))
    return found


async def told(store, seed):
    """Tell a random story to a store, and return all that it gave."""
    dice, minted, given = random.Random(seed), {}, []
    for number in range(150):
        given.append(await random_step(store, dice, number, minted))
        if number % 10 == 9:
            given.append(await all_questions(store, number, minted))
    return given


@pytest.mark.parametrize("seed", range(3))
def test_a_random_story_is_kept_as_by_sqlite(store, runner, seed):
    from stores.sqlite import SqliteStore

    async def in_memory():
        reference = SqliteStore(":memory:")
        given = await told(reference, seed)
        await reference.close()
        return given

    given = runner.run(told(store, seed))
    assert given == asyncio.run(in_memory())
    # The story comes to every kind of answer: it finds something, and is refused something.
    assert sum(bool(each) for each in given) > 100
