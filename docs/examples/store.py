"""What the example server asks of a store, and what it gives: the interface, without a database.

`stores/` keeps it in SQLite, PostgreSQL and Redis. To use another database write these methods for
it. Three things must be one transaction each: `reserve`, `save` with all that comes with it, and
`claim`.

What a store is searched by (status, thread, expiry) is derived from the record whenever it is
saved, by the database or in the same statement, so that it cannot disagree. What is not in the
record stands beside it: the input that the run was reserved for, the actor it works for, and its
lease.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, TypeAlias

from agui_runs import Interrupt, RunRecord

# Of a run: scope, thread id, run id. Of a call: scope, thread id, tool call id.
Key: TypeAlias = tuple[str, str, str]
Change: TypeAlias = Callable[[RunRecord], RunRecord]


class HostError(Exception):
    """What this host refuses on its own account, with a code as a `StreamError` has."""

    def __init__(self, code: str, message: str, status: int = 409) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class New(NamedTuple):
    """A run to reserve."""

    run: RunRecord
    input: dict[str, Any]  # The `RunAgentInput` as it came, for a reload and for a later run.
    actor: str
    alive_until: datetime


class Row(NamedTuple):
    """A run as it was read, and what its next save must still find."""

    run: RunRecord
    version: Any  # Text, number or whatever else the store compares; nobody else looks at it.
    input: dict[str, Any]
    actor: str
    alive_until: datetime  # The lease: its worker has promised to renew it before that time.


class By(NamedTuple):
    """Who changes a run, on which request, and why, and what is wanted instead, for the audit."""

    actor: str
    request: str
    note: str | None = None
    corrections: Mapping[str, Any] = {}  # By the interrupt that is denied for it.


class Decision(NamedTuple):
    """A row of the audit: one decision, for there is never a second one on an interrupt."""

    scope: str
    thread_id: str
    run_id: str
    interrupt_id: str
    decision: str
    decided_at: datetime
    actor: str
    request: str
    note: str | None
    correction: Any  # The arguments that are wanted instead, or None.


class Claim(NamedTuple):
    """A tool call that a run has taken, and what became of it."""

    call: Key
    run_id: str  # The run that took it, on the same thread.
    claimed_at: datetime
    alive_until: datetime | None  # The lease of that run; None where its row is gone.
    result: str | None


class Store(Protocol):
    """Every list is bounded by `limit`, and no method reads more rows than it returns."""

    async def reserve(self, new: New) -> tuple[Row, bool]:
        """Insert under the key of the run; return the row that has it, and whether it is new."""
        ...

    async def load(self, key: Key) -> Row:
        """Read a run, or raise `HostError("run_unknown")` with status 404."""
        ...

    async def save(
        self,
        row: Row,
        run: RunRecord,
        decisions: Sequence[Decision] = (),
        successor: New | None = None,
    ) -> Row | None:
        """Put the run in the place of the row, if that still is what was read; else return None.

        In the same transaction go the audit of what was decided, and a run to reserve that goes
        on from there. Where the key of that one is taken, by the same input, it is left alone.
        """
        ...

    async def thread(self, scope: str, thread_id: str, before: str | None, limit: int) -> list[Row]:
        """Read the runs of a thread, newest first, from before the run with this id."""
        ...

    async def is_busy(self, scope: str, thread_id: str, now: datetime) -> bool:
        """Tell whether a run of this thread is live and has a lease."""
        ...

    async def awaiting(self, scope: str, thread_id: str, asked: Sequence[str]) -> Row | None:
        """Read the run that answers on this thread are for.

        It is the newest that holds one of the interrupts asked for; where none does, the newest
        that waits for an answer.
        """
        ...

    async def approvals(self, scope: str, limit: int) -> list[tuple[Row, Interrupt]]:
        """Read what waits for an answer in a scope, over all threads, by expiry."""
        ...

    async def decisions(self, scope: str, thread_id: str, run_ids: Sequence[str]) -> list[Decision]:
        """Read the audit of these runs of a thread, newest first."""
        ...

    async def expired(self, now: datetime, limit: int) -> list[Row]:
        """Read runs, of every scope, with a pending interrupt that has expired.

        A row that cannot be read is logged and left out, here and by `silent`: it must not keep
        the others from being looked after.
        """
        ...

    async def silent(self, now: datetime, limit: int) -> list[Row]:
        """Read live runs, of every scope, whose lease has run out, longest first."""
        ...

    async def renew(self, keys: Iterable[Key], until: datetime) -> None:
        """Renew the lease of these runs, ended ones too: their worker may still be at work."""
        ...

    async def claim(self, call: Key, run_id: str, now: datetime) -> bool:
        """Take a tool call for a run; return False where it was taken before."""
        ...

    async def keep_result(self, call: Key, result: str) -> None:
        """Keep what a claimed call has given."""
        ...

    async def claimed(self, call: Key) -> Claim | None:
        """Read the claim on a call, if there is one."""
        ...

    async def unfinished(self, scope: str | None, now: datetime, limit: int) -> list[Claim]:
        """Read claims without a result and without a worker, oldest first; None is every scope."""
        ...

    async def remove_ended(self, before: datetime, limit: int) -> int:
        """Remove runs that ended before that time; return how many, which is at most `limit`.

        A run that waits for an answer stays, and so does one with an approved call that is not
        claimed, or is claimed without a result. A claim stays as long as any run holds the
        interrupt that approved the call, and for ever where it has no result. The audit stays.
        """
        ...

    async def close(self) -> None:
        """Let go of the database."""
        ...


async def update(
    store: Store,
    row: Row,
    change: Change,
    by: By,
    successor: Callable[[RunRecord], New | None] | None = None,
) -> Row:
    """Save what the change makes of the row, and return the row that then stands.

    Where somebody else has saved in between, the swap is lost. Then the change is made again, from
    what is there now, and that record decides: it refuses, or takes it too.
    """
    while (run := change(row.run)) is not row.run:
        new = successor(run) if successor else None
        saved = await store.save(row, run, made_between(row.run, run, by), new)
        if saved:
            return saved
        row = await store.load(run.key)
    return row  # A transition that changes nothing returns the same object.


def made_between(before: RunRecord, after: RunRecord, by: By) -> list[Decision]:
    """Return the audit of what was decided between two states of a run."""
    made = []
    for ask in after.interrupts:
        held = before.interrupt(ask.id)
        if ask.decided_at and (held is None or held.is_pending):
            decided = (ask.id, ask.status, ask.decided_at)
            correction = by.corrections.get(ask.id)
            made.append(Decision(*after.key, *decided, by.actor, by.request, by.note, correction))
    return made


def time_text(time: datetime) -> str:
    """Return a time as `to_storage` writes it: the order of the texts is the order of the times."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
