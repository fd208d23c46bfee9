"""Eight processes that do the same thing to a store at the same time, and what they do."""

import asyncio
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from threading import BrokenBarrierError
from typing import Any, NamedTuple

EXAMPLES = str(Path(__file__).parent.parent.parent / "docs" / "examples")
if EXAMPLES not in sys.path:
    sys.path.append(EXAMPLES)

from store import By, Key, New, Row, Store, update  # noqa: E402

from agui_runs import Interrupt, RunRecord, StreamError  # noqa: E402
from stores import open_store  # noqa: E402

SIZE = 8
PATIENCE = 60.0
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
THREAD = ("tenant-1", "thread-1")

# A process forked from one that has imported all and opened nothing costs a few milliseconds. Where
# there is no such thing, on Windows, these tests are left out.
METHOD = "forkserver" if os.name != "nt" else "spawn"
CONTEXT = multiprocessing.get_context(METHOD)
CONTEXT.set_forkserver_preload(["crowd", "psycopg_pool", "sqlalchemy.orm", "redis.asyncio"])


class Crowd:
    """Eight processes that wait for something to do."""

    def __init__(self) -> None:
        self.all_meet = CONTEXT.Barrier(SIZE)
        self.pairs_meet = [CONTEXT.Barrier(2) for _ in range(SIZE // 2)]
        self.members = []
        for me in range(SIZE):
            ours, theirs = CONTEXT.Pipe()
            arguments = (theirs, me, self.all_meet, self.pairs_meet[me // 2])
            process = CONTEXT.Process(target=take_part, args=arguments, daemon=True)
            process.start()
            self.members.append((process, ours))

    def __enter__(self) -> "Crowd":
        return self

    def __exit__(self, *_: object) -> None:
        for process, pipe in self.members:
            pipe.send(None)
            process.join()

    def do(self, url: str, what: Callable[..., Awaitable[Any]], *arguments: Any) -> list[Any]:
        """Have every process do something to the store at the URL, and return what each gives."""
        for _, pipe in self.members:
            pipe.send((url, what, arguments))
        results = [pipe.recv() for _, pipe in self.members]
        problems = [result for result in results if isinstance(result, BaseException)]
        if problems:
            for barrier in (self.all_meet, *self.pairs_meet):
                barrier.reset()
            # Those who waited for one that has failed say no more than that.
            raise min(problems, key=lambda each: isinstance(each, BrokenBarrierError))
        return results


class Member:
    """One of the eight: its number, and where it meets the others."""

    def __init__(self, me: int, meet_all: Callable[[float], int], meet_other: Any) -> None:
        self.me = me
        self.meet_all = lambda: meet_all(PATIENCE)
        self.meet_other = lambda: meet_other(PATIENCE)


def take_part(pipe: Connection, me: int, all_meet: Any, pair_meets: Any) -> None:
    """Be one of the eight, until told to stop."""
    member = Member(me, all_meet.wait, pair_meets.wait)
    with asyncio.Runner() as runner:
        while task := pipe.recv():
            try:
                result = runner.run(do_once(member, *task))
            except BaseException as problem:
                # Nobody need wait for this one.
                all_meet.abort()
                pair_meets.abort()
                result = problem
            pipe.send(result)


async def do_once(
    member: Member, url: str, what: Callable[..., Awaitable[Any]], arguments: tuple[Any, ...]
) -> Any:
    store = open_store(url)
    try:
        return await what(store, member, *arguments)
    finally:
        await store.close()


# --- What they do -------------------------------------------------------------------------------


def new_run(run_id: str, digest: str = "a1", **more: Any) -> New:
    scope, thread_id = THREAD
    run = RunRecord(
        scope=scope, thread_id=thread_id, run_id=run_id, digest=digest, created_at=NOW, **more
    )
    return New(run, {"runId": run_id}, "alice", LATER)


async def reserve_the_same(store: Store, member: Member, runs: int) -> list[tuple[bool, bool, str]]:
    """Reserve each run when all others do, with one of two inputs.

    Return of each whether it was new, whether it has this input, and the input that it has.
    """
    digest = "a1" if member.me % 2 else "b2"
    found = []
    for number in range(runs):
        member.meet_all()
        row, is_new = await store.reserve(new_run(f"run-{number}", digest))
        found.append((is_new, row.run.digest == digest, row.run.digest))
    return found


def new_pause(run_id: str, **more: Any) -> New:
    """Return a run that waits for the answer to one request, which has the id of the run."""
    ask = Interrupt(
        id=run_id, tool_call_id=f"call-{run_id}", arguments_digest="c3", expires_at=None, **more
    )
    new = new_run(run_id)
    return new._replace(run=new.run.interrupted([ask], now=NOW))


DECISIONS = (Interrupt.APPROVED, Interrupt.DENIED, Interrupt.CANCELLED)


async def answer_the_same(store: Store, member: Member, pauses: list[Key]) -> Counter[str]:
    """Answer each pause when all others do."""
    outcomes: Counter[str] = Counter()
    for key in pauses:
        row = await store.load(key)
        member.meet_all()
        outcomes[await answered(store, row, member.me)] += 1
    return outcomes


async def answered(store: Store, row: Row, choice: int) -> str:
    """Answer a pause as it was read, through one of the two doors, and tell what came of it."""
    decision, is_same = DECISIONS[choice % 3], False
    [ask] = row.run.interrupts
    payload = {} if decision == "cancelled" else {"payload": {"approved": decision == "approved"}}
    status = "cancelled" if decision == "cancelled" else "resolved"
    entry = {"interruptId": ask.id, "status": status, **payload}

    def change(run: RunRecord) -> RunRecord:
        nonlocal is_same
        if choice % 2:
            after = run.answer([entry], now=LATER)
        else:
            after = run.replace_interrupt(ask.decide(decision, now=LATER), now=LATER)
        is_same = after is run
        return after

    try:
        await update(store, row, change, By("alice", f"answer {choice}"))
    except StreamError as refusal:
        return refusal.code
    return "same" if is_same else "stored"


async def answer_again(store: Store, member: Member, pending: Row, attempts: int) -> Counter[str]:
    """Answer a decided pause in every way: as it is now, and as it was when it was pending."""
    outcomes: Counter[str] = Counter()
    for attempt in range(attempts):
        choice = member.me + attempt
        if attempt % 3 == 0:
            outcomes[await answered(store, await store.load(pending.run.key), choice)] += 1
        elif attempt % 3 == 1:
            outcomes[await answered(store, pending, choice)] += 1
        else:
            decided = pending.run.interrupts[0].decide(DECISIONS[choice % 3], now=LATER)
            after = pending.run.replace_interrupt(decided, now=LATER)
            saved = await store.save(pending, after)
            outcomes["stored" if saved else "lost the swap"] += 1
    return outcomes


class Counted(NamedTuple):
    """The events that one writer has saved, how often it was too late, and how long it took."""

    numbers: list[int]
    too_late: int
    seconds: float


async def count_events(store: Store, member: Member, key: Key, last: int, writers: int) -> Counted:
    """Number events of a run until it has so many, one save for each."""
    numbers, too_late = [], 0
    row = await store.load(key)
    member.meet_all()
    if member.me >= writers:
        return Counted([], 0, 0.0)
    begun = time.perf_counter()
    while row.run.sequence < last:
        saved = await store.save(row, row.run.advance(now=LATER))
        if saved:
            row = saved
            numbers.append(row.run.sequence)
        else:
            too_late += 1
            row = await store.load(key)
    return Counted(numbers, too_late, time.perf_counter() - begun)


async def count_own_events(store: Store, member: Member, last: int, block: int) -> Counted:
    """Number events of a run of one's own, and save each of them, or the last one of each block."""
    row, _ = await store.reserve(new_run(f"own-{block}-{member.me}"))
    run, numbers = row.run, []
    member.meet_all()
    begun = time.perf_counter()
    while run.sequence < last:
        run = run.advance(now=LATER)
        if run.sequence % block == 0:
            saved = await store.save(row, run)
            assert saved is not None
            row = saved
        numbers.append(run.sequence)
    return Counted(numbers, 0, time.perf_counter() - begun)


ENDINGS = (RunRecord.SUCCEEDED, RunRecord.CANCELLED)


async def end_the_same(
    store: Store, member: Member, races: int
) -> dict[str, tuple[bool, dict[str, Any]]]:
    """End each run when another process ends it otherwise.

    Return of each whether this ending was stored, and the event that is reported.
    """
    ends: dict[str, tuple[bool, dict[str, Any]]] = {}
    for number in range(member.me // 2, races, SIZE // 2):
        run_id = f"race-{number}"
        row, _ = await store.reserve(new_run(run_id))
        member.meet_other()
        is_first, row = await ended(store, row, ENDINGS[member.me % 2])
        ends[run_id] = is_first, row.run.to_protocol()
    return ends


async def end_again(store: Store, member: Member, races: int) -> tuple[list[Any], int]:
    """End each run in both ways, and return what is reported then, and how often it was refused."""
    reported, refused = [], 0
    for number in range(member.me, races, SIZE):
        for ending in ENDINGS:
            row = await store.load((*THREAD, f"race-{number}"))
            is_stored, after = await ended(store, row, ending)
            refused += not is_stored
            reported.append((f"race-{number}", after.run.to_protocol()))
    return reported, refused


async def ended(store: Store, row: Row, ending: str) -> tuple[bool, Row]:
    """End a run, and return whether that was stored, and the row that stands."""
    try:
        after = await update(
            store, row, lambda run: run.finish(ending, now=LATER), By("alice", "end")
        )
    except StreamError:
        return False, await store.load(row.run.key)
    return after is not row, after


def be_a_writer(url: str, key: Key, pipe: Connection, is_held: bool) -> None:
    """Number five events, tell of each once it is stored, and come to the save of a sixth.

    There it waits for its end; or else it goes on, so that its end comes somewhere in the save.
    """

    async def write() -> None:
        store = open_store(url)
        for _ in range(5):
            row = await update(
                store, await store.load(key), lambda run: run.advance(now=LATER), By("a", "write")
            )
            pipe.send(row.run.sequence)
        row = await store.load(key)
        run = row.run.advance(now=LATER)
        pipe.send("between load and save")
        if is_held:
            pipe.recv()
        await store.save(row, run)
        pipe.recv()

    asyncio.run(write())
