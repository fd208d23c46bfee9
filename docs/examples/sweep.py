"""What must happen by itself: requests that nobody can answer any more, runs that nobody works on.

The server does this every few seconds. It is also a command, for cron or by hand:

    python docs/examples/sweep.py agent_server.sqlite3 30

It prints what it did and the calls that were begun and never finished, and removes what ended more
than thirty days ago; without a number of days it removes nothing.
"""

import asyncio
import sys
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from store import By, Claim, New, Row, Store, update
from succession import end_lost, successor

from agui_runs import Interrupt, RunRecord
from stores import open_store

AT_ONCE = 100


class Swept(NamedTuple):
    """What a sweep did, and what it leaves to others."""

    expired: int
    lost: int
    removed: int
    to_take_up: list[Row]  # Reserved runs that nobody has begun, for a server.
    unfinished: list[Claim]  # Calls that were begun and have no worker, for a person.


async def sweep(store: Store, now: datetime, keep: timedelta | None = None) -> Swept:
    """Close what has expired, end what is lost, and remove what ended longer ago than `keep`."""
    expired = await store.expired(now, AT_ONCE)
    for row in expired:
        await close_expired(store, row, now)
    silent = await store.silent(now, AT_ONCE)
    lost = [row for row in silent if row.run.is_started]
    for row in lost:
        await end_lost(store, row, now, "worker_lost", "The server lost this run.")
    removed = 0 if keep is None else await remove_all(store, now - keep)
    # Those that are still reserved have lost nothing, and a run that follows a lost one is new.
    to_take_up = [row for row in await store.silent(now, AT_ONCE) if not row.run.is_started]
    unfinished = await store.unfinished(None, now, AT_ONCE)
    return Swept(len(expired), len(lost), removed, to_take_up, unfinished)


async def remove_all(store: Store, before: datetime) -> int:
    """Remove what ended before that time, a few at a time, so that nobody waits for long."""
    removed = 0
    while some := await store.remove_ended(before, AT_ONCE):
        removed += some
    return removed


async def close_expired(store: Store, row: Row, now: datetime) -> None:
    """Cancel the requests of a run that have expired; an answer that was faster stands."""
    made = await store.decisions(row.run.scope, row.run.thread_id, [row.run.run_id])
    answered = [each for each in made if each.decision != Interrupt.CANCELLED]

    def close(run: RunRecord) -> RunRecord:
        for ask in run.pending_interrupts:
            if ask.is_expired(now):
                run = run.replace_interrupt(ask.decide("cancelled", now=now), now=now)
        return run

    def go_on(run: RunRecord) -> New | None:
        # What was answered beside them waits no longer, and goes on for who answered last.
        if not answered or run.is_awaiting_approval:
            return None
        return successor(row, run, answered[0].actor, now)

    await update(store, row, close, By("server", "sweep", "expired"), go_on)


async def main(database: str, days: str = "") -> None:
    """Sweep once, and say what was done."""
    store = open_store(database)
    keep = timedelta(days=float(days)) if days else None
    swept = await sweep(store, datetime.now(UTC), keep)
    await store.close()
    print(f"{swept.expired} paused runs had requests that have expired")
    print(f"{swept.lost} runs were lost, and {len(swept.to_take_up)} wait for a server")
    print(f"{swept.removed} ended runs were removed")
    for claim in swept.unfinished:
        print(f"began at {claim.claimed_at:%Y-%m-%d %H:%M:%S} and never finished: {claim.call}")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
