"""The run that goes on from an answered pause, where no client brings one.

It is reserved in the same transaction as that which calls for it: the last answer, or the end of a
run that was lost while it went on from the pause. So an approval cannot be left without a run. Its
id and input follow from the record, so two who reserve it reserve the same. A server takes it up
as any reserved run that nobody works on.
"""

import re
from datetime import datetime
from typing import Any

from store import By, New, Row, Store, update

from agui_runs import Interrupt, RunRecord, digest

# How often a run that is lost is followed by another one. It may be the run that kills its worker.
TRIES = 3

# Runs of clients must not begin like this.
PREFIX = "resume-"


def successor(paused: Row, run: RunRecord, actor: str, now: datetime, number: int = 1) -> New:
    """Return the run that goes on from a pause, whose record is given as it is answered."""
    snapshot: Any = run.to_storage()["snapshot"]
    run_id = f"{PREFIX}{number}-{digest(list(run.key))[:32]}"
    posted = {
        **paused.input,
        "runId": run_id,
        "parentRunId": run.run_id,
        "messages": paused.input["messages"] + snapshot["messages"],
        "resume": [as_entry(ask) for ask in run.interrupts],
    }
    new = RunRecord(
        scope=run.scope,
        thread_id=run.thread_id,
        run_id=run_id,
        digest=digest(posted),
        created_at=now,
    )
    # Its lease is over at once, so whichever server looks first takes it up.
    return New(new, posted, actor, now)


def as_entry(ask: Interrupt) -> dict[str, Any]:
    """Return the entry of a `resume` list that says what was decided."""
    if ask.is_cancelled:
        return {"interruptId": ask.id, "status": "cancelled"}
    payload = {"approved": ask.is_approved}
    return {"interruptId": ask.id, "status": "resolved", "payload": payload}


async def end_lost(store: Store, row: Row, now: datetime, code: str, message: str) -> Row:
    """End a run that nobody works on any more, and reserve another one if it had answers.

    Nobody knows how far it came, so it is never started again. The other one is safe: what has been
    claimed is not made a second time.
    """
    failure = {"message": message, "code": code}

    def finish(run: RunRecord) -> RunRecord:
        return run if run.is_terminal else run.finish("failed", now=now, failure=failure)

    new = await successor_of_lost(store, row, now)
    return await update(store, row, finish, By("server", code), lambda _: new)


async def successor_of_lost(store: Store, row: Row, now: datetime) -> New | None:
    """Return the run that takes the place of a lost one; None where it had no answers to act on."""
    named = [entry["interruptId"] for entry in row.input.get("resume") or []]
    paused = await store.awaiting(row.run.scope, row.run.thread_id, named) if named else None
    if paused is None or paused.run.is_awaiting_approval:
        return None  # Its answers were not recorded: whoever gave them has not been told so.
    tried = re.match(rf"{PREFIX}(\d+)-", row.run.run_id)
    number = int(tried[1]) + 1 if tried else 1
    if number > TRIES:
        return None
    return successor(paused, paused.run, row.actor, now, number)
