"""The authoritative progress of one reserved run.

A record is live (reserved, started) until it ends as one of the four terminal
statuses, and then it stays there: the one thing that still changes on it is an
interrupt, which goes from pending to its decision, once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, TypeAlias, TypedDict, cast, final

from ._fields import (
    NOT_MADE,
    Where,
    first_repeated,
    kind,
    nonblank_text,
    one_of,
    refuses_assignment,
    shown,
    stored_keys,
    stored_object,
)
from ._json import MAX_DIGITS, TOO_LARGE, JSONValue, freeze, thaw
from ._resume import read_resume
from ._time import from_text, to_text, utc
from .errors import ConfigurationError, StreamError
from .interrupt import Interrupt

RunStatus: TypeAlias = Literal[
    "reserved", "started", "succeeded", "interrupted", "cancelled", "failed"
]
"""The status of a run: live (the first two) or ended.

>>> RunRecord.STATUSES
('reserved', 'started', 'succeeded', 'interrupted', 'cancelled', 'failed')
"""

TerminalStatus: TypeAlias = Literal["succeeded", "interrupted", "cancelled", "failed"]
"""One of the four ways in which a run ends.

>>> RunRecord.TERMINAL_STATUSES
('succeeded', 'interrupted', 'cancelled', 'failed')
"""

_ARGUMENT = Where("run record")
_STORED = Where("run record", stored=True)


class Failure(TypedDict):
    """What a failed record holds: a message and a code that the host chose to show."""

    message: str
    """What every reconnect is told."""
    code: str | None
    """A short stable string of the host's own, or None."""


# How AG-UI 1.0 names the ways in which a run ends, but for the failure, which is an event.
_OUTCOMES = {"succeeded": "success", "interrupted": "interrupt", "cancelled": "cancelled"}


@final
@refuses_assignment
@dataclass(init=False, frozen=True, slots=True, kw_only=True, repr=False)
class RunRecord:
    """The authoritative progress of one reserved run.

    `scope`, `thread_id` and `run_id` together are the reservation `key`, and `digest`
    is of the input that the run was reserved for: the same input attaches to the run,
    another one conflicts. `snapshot` is any JSON value; it is checked and frozen on
    entry. `interrupts` stand on an interrupted record only, `failure` on a failed one
    only, as `{"message": str, "code": str or None}`. Times are aware and kept in UTC.

    Every transition takes the aware time `now` and returns a new record, or this very
    object where nothing changes. Arguments are checked before the state: anything that
    cannot be right raises `ConfigurationError`, on every record; then `StreamError`
    says what the state forbids.

    >>> from datetime import datetime, timezone
    >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
    >>> run = RunRecord(
    ...     scope="tenant-1", thread_id="t-1", run_id="r-1", digest="9f86d081", created_at=now
    ... )
    >>> run.start(now=now).advance(now=now, snapshot={"step": 1})
    RunRecord(scope='tenant-1', thread_id='t-1', run_id='r-1', status='started', sequence=1)
    """

    RESERVED: ClassVar[Literal["reserved"]] = "reserved"
    """Its key is taken, and nobody is on it yet."""
    STARTED: ClassVar[Literal["started"]] = "started"
    """Somebody is on it."""
    SUCCEEDED: ClassVar[Literal["succeeded"]] = "succeeded"
    """It ended well."""
    INTERRUPTED: ClassVar[Literal["interrupted"]] = "interrupted"
    """It ended by asking for approval; what goes on is another run."""
    CANCELLED: ClassVar[Literal["cancelled"]] = "cancelled"
    """It was ended from outside."""
    FAILED: ClassVar[Literal["failed"]] = "failed"
    """It went wrong."""
    TERMINAL_STATUSES: ClassVar[tuple[TerminalStatus, ...]] = (
        SUCCEEDED,
        INTERRUPTED,
        CANCELLED,
        FAILED,
    )
    """The four ways in which a run ends."""
    STATUSES: ClassVar[tuple[RunStatus, ...]] = (RESERVED, STARTED, *TERMINAL_STATUSES)
    """All six statuses."""

    scope: str
    """The host's tenant, actor or thread scope: what keeps the runs of strangers apart."""
    thread_id: str
    """The conversation, AG-UI's `threadId`."""
    run_id: str
    """AG-UI's `runId`, unique within scope and thread."""
    digest: str
    """The `digest` of the input that the run was reserved for."""
    created_at: datetime
    """When it was reserved."""
    status: RunStatus
    """Where it stands."""
    sequence: int
    """The highest event number handed out, from 0."""
    snapshot: Any
    """The host's state that a reconnect serves, frozen to its last level, or None."""
    interrupts: tuple[Interrupt, ...]
    """What it asked for, oldest first: at least one if it is interrupted, else none."""
    failure: Failure | None
    """What a failed run may tell, or None."""
    updated_at: datetime
    """The `now` of the last transition, at first `created_at`."""

    # Written out, and `__new__`, as that of Interrupt is.
    def __new__(
        cls,
        *,
        scope: str,
        thread_id: str,
        run_id: str,
        digest: str,
        created_at: datetime,
        status: RunStatus = RESERVED,
        sequence: int = 0,
        snapshot: JSONValue = None,
        interrupts: Iterable[Interrupt] = (),
        failure: Failure | Mapping[str, str | None] | None = None,
        updated_at: datetime | None = None,
    ) -> "RunRecord":
        new: Any = _OpenRecord()
        new.scope = scope
        new.thread_id = thread_id
        new.run_id = run_id
        new.digest = digest
        new.created_at = created_at
        new.status = status
        new.sequence = sequence
        new.snapshot = snapshot
        new.interrupts = interrupts
        new.failure = failure
        new.updated_at = created_at if updated_at is None else updated_at
        return _checked(new, _ARGUMENT)

    def __init_subclass__(cls) -> None:
        raise TypeError("RunRecord is final: hold one instead of extending it")

    def __post_init__(self) -> None:
        # Called by what fills in the fields of a dataclass past its constructor, as msgspec does.
        raise TypeError("RunRecord is made by its constructor or from_storage, not field by field")

    @classmethod
    def from_storage(cls, stored: Mapping[str, object]) -> "RunRecord":
        """Return the record that `to_storage` wrote; the mapping is only read.

        `scope`, `threadId`, `runId`, `digest`, `status`, `sequence`, `createdAt` and
        `updatedAt` must be there; `snapshot`, `failure` and `interrupts` may be absent
        or null. Keys that are not ours are ignored. Nothing is guessed, skipped or read
        from text: what does not fit raises `ConfigurationError`.

        >>> from datetime import datetime, timezone
        >>> run = RunRecord(scope="s", thread_id="t", run_id="r", digest="d",
        ...                 created_at=datetime(2026, 11, 30, tzinfo=timezone.utc))
        >>> RunRecord.from_storage(run.to_storage()) == run
        True
        """
        row = stored if type(stored) is dict else stored_object(stored, _STORED_KEYS, _STORED)
        new: Any = _OpenRecord()
        try:
            new.scope = row["scope"]
            new.thread_id = row["threadId"]
            new.run_id = row["runId"]
            new.digest = row["digest"]
            new.status = row["status"]
            new.sequence = row["sequence"]
            new.created_at = row["createdAt"]
            new.updated_at = row["updatedAt"]
        except KeyError as missing:
            raise ConfigurationError(f"{_STORED.of(missing.args[0])} is missing") from None
        new.snapshot = row.get("snapshot")
        new.failure = row.get("failure")
        interrupts = row.get("interrupts")
        new.interrupts = () if interrupts is None else interrupts
        return _checked(new, _STORED)

    @property
    def key(self) -> tuple[str, str, str]:
        """The reservation key: `(scope, thread_id, run_id)`.

        >>> from datetime import datetime, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> run = RunRecord(scope="s", thread_id="t", run_id="r", digest="d", created_at=now)
        >>> run.key
        ('s', 't', 'r')
        """
        return self.scope, self.thread_id, self.run_id

    @property
    def is_started(self) -> bool:
        """Whether the run is under way: started, and not ended.

        >>> from datetime import datetime, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> run = RunRecord(scope="s", thread_id="t", run_id="r", digest="d", created_at=now)
        >>> run.is_started, run.start(now=now).is_started
        (False, True)
        """
        return self.status == "started"

    @property
    def is_interrupted(self) -> bool:
        """Whether the run ended by asking for approval, answered or not.

        >>> from datetime import datetime, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> run = RunRecord(scope="s", thread_id="t", run_id="r", digest="d", created_at=now)
        >>> ask = Interrupt(id="i-1", tool_call_id="c-1", arguments_digest="a1", expires_at=None)
        >>> paused = run.interrupted([ask], now=now)
        >>> paused.is_interrupted
        True
        """
        return self.status == "interrupted"

    @property
    def is_terminal(self) -> bool:
        """Whether the run has ended, in whichever way.

        >>> from datetime import datetime, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> run = RunRecord(scope="s", thread_id="t", run_id="r", digest="d", created_at=now)
        >>> run.is_terminal, run.finish("cancelled", now=now).is_terminal
        (False, True)
        """
        return self.status in self.TERMINAL_STATUSES

    @property
    def is_awaiting_approval(self) -> bool:
        """Whether some interrupt still waits for its answer.

        >>> from datetime import datetime, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> run = RunRecord(scope="s", thread_id="t", run_id="r", digest="d", created_at=now)
        >>> ask = Interrupt(id="i-1", tool_call_id="c-1", arguments_digest="a1", expires_at=None)
        >>> paused = run.interrupted([ask], now=now)
        >>> paused.is_awaiting_approval
        True
        >>> paused.replace_interrupt(ask.decide("denied", now=now), now=now).is_awaiting_approval
        False
        """
        return any(interrupt.is_pending for interrupt in self.interrupts)

    @property
    def pending_interrupts(self) -> tuple[Interrupt, ...]:
        """The interrupts without an answer, oldest first.

        >>> from datetime import datetime, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> run = RunRecord(scope="s", thread_id="t", run_id="r", digest="d", created_at=now)
        >>> ask = Interrupt(id="i-1", tool_call_id="c-1", arguments_digest="a1", expires_at=None)
        >>> paused = run.interrupted([ask], now=now)
        >>> paused.pending_interrupts == (ask,)
        True
        """
        # Of a list, for CPython cannot finish a tuple of a generator that another thread has got
        # hold of, through the collector, before it is finished.
        return tuple([interrupt for interrupt in self.interrupts if interrupt.is_pending])

    def interrupt(self, id: str) -> Interrupt | None:
        """Return the interrupt with exactly this id, or None.

        >>> from datetime import datetime, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> run = RunRecord(scope="s", thread_id="t", run_id="r", digest="d", created_at=now)
        >>> ask = Interrupt(id="i-1", tool_call_id="c-1", arguments_digest="a1", expires_at=None)
        >>> paused = run.interrupted([ask], now=now)
        >>> paused.interrupt("i-1").status, paused.interrupt("I-1")
        ('pending', None)
        """
        if not isinstance(id, str):
            raise ConfigurationError(f"{_ARGUMENT.of('id')} must be a str, not {kind(id)}")
        wanted = str.__str__(id)
        return next((held for held in self.interrupts if held.id == wanted), None)

    def start(self, *, now: datetime, snapshot: JSONValue = None) -> "RunRecord":
        """Return the record as started; a started one stays as it is, snapshot included.

        `None` keeps the snapshot. Raises `StreamError("run_ended")` on a terminal record.

        >>> from datetime import datetime, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> run = RunRecord(scope="s", thread_id="t", run_id="r", digest="d", created_at=now)
        >>> started = run.start(now=now, snapshot={"step": 1})
        >>> started.status, started.start(now=now, snapshot={"step": 2}) is started
        ('started', True)
        """
        now = utc(now, _ARGUMENT, "now")
        state = self.snapshot if snapshot is None else freeze(snapshot, _ARGUMENT, "snapshot")
        self._refuse_ended()
        if self.status == "started":
            return self
        new = self._open()
        new.status = "started"
        new.snapshot = state
        new.updated_at = now
        return _sealed(new)

    def advance(self, *, now: datetime, snapshot: JSONValue = None) -> "RunRecord":
        """Return the record with the next event's sequence number handed out.

        `snapshot` is the state as of that event. `None` keeps the old one, and `{}`
        clears it. Two callers who advance one copy get the same number, so save with a
        compare-and-swap. Raises `StreamError("run_ended")` on a terminal record.

        >>> from datetime import datetime, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> run = RunRecord(scope="s", thread_id="t", run_id="r", digest="d", created_at=now)
        >>> run = run.start(now=now).advance(now=now, snapshot={"step": 1}).advance(now=now)
        >>> run.sequence, run.snapshot
        (2, {'step': 1})
        """
        # This runs for every event of every run, so what other transitions call is written
        # out here: the usual case makes no call but for the new object.
        if type(now) is not datetime or now.tzinfo is not UTC:
            now = utc(now, _ARGUMENT, "now")
        state = self.snapshot if snapshot is None else freeze(snapshot, _ARGUMENT, "snapshot")
        if self.status != "started":
            self._refuse_ended()
        sequence = self.sequence + 1
        if sequence >= TOO_LARGE:
            _counted(sequence, _ARGUMENT)
        new: Any = _OpenRecord()
        new.scope = self.scope
        new.thread_id = self.thread_id
        new.run_id = self.run_id
        new.digest = self.digest
        new.created_at = self.created_at
        new.status = self.status
        new.sequence = sequence
        new.snapshot = state
        new.interrupts = self.interrupts
        new.failure = self.failure
        new.updated_at = now
        new.__class__ = RunRecord
        advanced: RunRecord = new
        return advanced

    def interrupted(self, interrupts: Iterable[Interrupt], *, now: datetime) -> "RunRecord":
        """Return the record ended by a pause for these interrupts, oldest first.

        At least one must be pending; others may have been decided by policy. Called
        again with equal interrupts it changes nothing. Raises `ConfigurationError` for
        anything but Interrupts with unique ids, `StreamError("run_ended")` on any other
        terminal record.

        >>> from datetime import datetime, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> run = RunRecord(scope="s", thread_id="t", run_id="r", digest="d", created_at=now)
        >>> ask = Interrupt(id="i-1", tool_call_id="c-1", arguments_digest="a1", expires_at=None)
        >>> paused = run.interrupted([ask], now=now)
        >>> paused.status, paused.interrupted([ask], now=now) is paused
        ('interrupted', True)
        """
        now = utc(now, _ARGUMENT, "now")
        raised = _interrupts(interrupts, _ARGUMENT)
        if not any(interrupt.is_pending for interrupt in raised):
            raise ConfigurationError(
                f"{_ARGUMENT.of('interrupts')} must hold at least one that is pending"
            )
        if self.is_interrupted and raised == self.interrupts:
            return self
        self._refuse_ended()
        new = self._open()
        new.status = "interrupted"
        new.interrupts = raised
        new.updated_at = now
        return _sealed(new)

    def finish(
        self,
        status: Literal["succeeded", "cancelled", "failed"],
        *,
        now: datetime,
        failure: Failure | Mapping[str, str | None] | None = None,
    ) -> "RunRecord":
        """Return the record ended with this status; there is no default outcome.

        `failure` goes with `"failed"` only, and is what every reconnect will be told:
        exactly `message` and optionally `code`, sanitised by the host. A record that
        already ended this way stays as it is, so the first failure wins. A pause has
        its own method, `interrupted`. Raises `StreamError("run_ended")` on a record
        that ended in another way.

        >>> from datetime import datetime, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> run = RunRecord(scope="s", thread_id="t", run_id="r", digest="d", created_at=now)
        >>> failed = run.finish("failed", now=now, failure={"message": "The mail is down."})
        >>> failed.failure
        {'message': 'The mail is down.', 'code': None}
        >>> failed.finish("succeeded", now=now)
        Traceback (most recent call last):
        agui_runs.errors.StreamError: run 'r' has ended as failed; replay that ending
        """
        ending = one_of(status, self.TERMINAL_STATUSES, _ARGUMENT, "status")
        now = utc(now, _ARGUMENT, "now")
        kept = _failure(failure, ending, _ARGUMENT)
        if self.status == ending:
            return self
        self._refuse_ended()
        if ending == "interrupted":
            raise ConfigurationError(
                f"{_ARGUMENT.of('status')} 'interrupted' needs interrupts: call interrupted()"
            )
        new = self._open()
        new.status = ending
        new.failure = kept
        new.updated_at = now
        return _sealed(new)

    def replace_interrupt(self, decided: Interrupt, *, now: datetime) -> "RunRecord":
        """Return the record with a decided interrupt in the place of the pending one.

        Beside `answer` it is all that changes a terminal record: the run is closed, and
        the answer is recorded on it. What equals the held interrupt changes nothing.
        Raises `ConfigurationError` where no interrupt with this id is held; then
        `StreamError("interrupt_changed")` where more than the decision differs; then
        what `Interrupt.decide` raises for a second or a late answer.

        >>> from datetime import datetime, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> run = RunRecord(scope="s", thread_id="t", run_id="r", digest="d", created_at=now)
        >>> ask = Interrupt(id="i-1", tool_call_id="c-1", arguments_digest="a1", expires_at=None)
        >>> paused = run.interrupted([ask], now=now)
        >>> answered = paused.replace_interrupt(ask.decide("approved", now=now), now=now)
        >>> answered.status, answered.interrupt("i-1").status
        ('interrupted', 'approved')
        """
        if type(decided) is not Interrupt:
            raise ConfigurationError(
                f"{_ARGUMENT.of('decided')} must be an Interrupt, not {kind(decided)}"
            )
        if type(now) is not datetime or now.tzinfo is not UTC:
            now = utc(now, _ARGUMENT, "now")
        try:
            wanted = decided.id
            for index, held in enumerate(self.interrupts):  # noqa: B007  Read after the loop.
                if held.id == wanted:
                    answered = held._answered_by(decided)
                    break
            else:
                unknown = shown(decided._rechecked().id)
                raise ConfigurationError(
                    f"{_ARGUMENT.of('decided')} must answer an interrupt that this run holds, "
                    f"not {unknown}"
                )
        except AttributeError:
            raise ConfigurationError(f"{_ARGUMENT.of('decided')} {NOT_MADE}") from None
        if answered is held:
            return self
        interrupts = list(self.interrupts)
        interrupts[index] = answered
        new = self._open()
        new.interrupts = tuple(interrupts)
        new.updated_at = now
        new.__class__ = RunRecord
        replaced: RunRecord = new
        return replaced

    def answer(self, entries: object, *, now: datetime) -> "RunRecord":
        """Return the record with one AG-UI `resume` list applied to it, whole or not at all.

        `entries` are the camelCase dicts of `RunAgentInput.resume`, as they come from the
        client: `{"interruptId": ..., "status": "resolved", "payload": {"approved": True}}`
        (or False), or `"status": "cancelled"`. Every pending interrupt must be answered,
        each id once. An entry that repeats the stored decision changes nothing, also
        after the expiry. Raises `ConfigurationError` for a bad `now`, and `StreamError`
        for all that is wrong with the entries, in this order: `resume_invalid`,
        `run_not_interrupted`, `resume_unknown`, `resume_duplicate`, `resume_incomplete`,
        then entry by entry `interrupt_decided` and `interrupt_expired`.

        >>> from datetime import datetime, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> run = RunRecord(scope="s", thread_id="t", run_id="r", digest="d", created_at=now)
        >>> ask = Interrupt(id="i-1", tool_call_id="c-1", arguments_digest="a1", expires_at=None)
        >>> paused = run.interrupted([ask], now=now)
        >>> resume = [{"interruptId": "i-1", "status": "resolved", "payload": {"approved": False}}]
        >>> answered = paused.answer(resume, now=now)
        >>> answered.interrupt("i-1").status, answered.answer(resume, now=now) is answered
        ('denied', True)
        """
        now = utc(now, _ARGUMENT, "now")
        answers = read_resume(entries)
        if not self.is_interrupted:
            raise StreamError(
                "run_not_interrupted",
                f"run {shown(self.run_id)} is {self.status} and waits for no answer",
            )
        held = {interrupt.id: interrupt for interrupt in self.interrupts}
        answered = [interrupt_id for interrupt_id, _ in answers]
        unknown = next((each for each in answered if each not in held), None)
        if unknown is not None:
            raise StreamError(
                "resume_unknown", f"run {shown(self.run_id)} holds no interrupt {shown(unknown)}"
            )
        repeated = first_repeated(answered)
        if repeated is not None:
            raise StreamError(
                "resume_duplicate",
                f"interrupt {shown(answered[repeated])} is answered more than once",
            )
        decisions = dict(answers)
        missing = [shown(each.id) for each in self.pending_interrupts if each.id not in decisions]
        if missing:
            raise StreamError(
                "resume_incomplete",
                f"every pending interrupt needs an answer, also {', '.join(missing)}",
            )
        decided = {
            interrupt_id: held[interrupt_id].decide(decision, now=now)
            for interrupt_id, decision in answers
            # One that repeats the stored decision is a replay and changes nothing.
            if held[interrupt_id].status != decision
        }
        if not decided:
            return self
        new = self._open()
        new.interrupts = tuple([decided.get(asked.id, asked) for asked in self.interrupts])
        new.updated_at = now
        return _sealed(new)

    def to_protocol(self) -> dict[str, Any]:
        """Return the AG-UI 1.0 event that ends this run, which every reconnect must replay.

        `RUN_FINISHED` with the outcome `success`, `cancelled` or `interrupt`, or
        `RUN_ERROR`; absent values are left out, never null. A pause lists what is still
        open, or all of it once everything is answered: an empty list is not valid AG-UI,
        and a success would be a lie. Raises `StreamError("run_not_ended")` on a live
        record.

        >>> from datetime import datetime, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> run = RunRecord(scope="s", thread_id="t", run_id="r", digest="d", created_at=now)
        >>> run.finish("cancelled", now=now).to_protocol()["outcome"]
        {'type': 'cancelled'}
        """
        if not self.is_terminal:
            raise StreamError(
                "run_not_ended",
                f"run {shown(self.run_id)} is {self.status}; it has no ending to replay yet",
            )
        if self.status == "failed":
            failure = self.failure or {"message": "The run failed."}
            said = {key: value for key, value in failure.items() if value is not None}
            return {"type": "RUN_ERROR", **said}
        outcome: dict[str, Any] = {"type": _OUTCOMES[self.status]}
        if self.status == "interrupted":
            asked = self.pending_interrupts or self.interrupts
            outcome["interrupts"] = [each.to_protocol() for each in asked]
        return {
            "type": "RUN_FINISHED",
            "threadId": self.thread_id,
            "runId": self.run_id,
            "outcome": outcome,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the reporting shape: plain JSON values, camelCase keys, times as text.

        The interrupts are in their reporting shape too, without digests.

        >>> from datetime import datetime, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> run = RunRecord(scope="s", thread_id="t", run_id="r", digest="d", created_at=now)
        >>> ask = Interrupt(id="i-1", tool_call_id="c-1", arguments_digest="a1", expires_at=None)
        >>> paused = run.interrupted([ask], now=now)
        >>> paused.to_dict()["interrupts"] == [ask.to_dict()]
        True
        """
        return self._to_dict([interrupt.to_dict() for interrupt in self.interrupts])

    def to_storage(self) -> dict[str, Any]:
        """Return the plain dict to persist; it is a fresh copy that belongs to the caller.

        `RunRecord.from_storage(json.loads(json.dumps(record.to_storage())))` equals the
        record, always.

        >>> from datetime import datetime, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> run = RunRecord(scope="s", thread_id="t", run_id="r", digest="d", created_at=now)
        >>> run.to_storage()["createdAt"]
        '2026-11-30T10:00:00.000000Z'
        """
        return self._to_dict([interrupt.to_storage() for interrupt in self.interrupts])

    def _to_dict(self, interrupts: list[dict[str, str | None]]) -> dict[str, Any]:
        return {
            "scope": self.scope,
            "threadId": self.thread_id,
            "runId": self.run_id,
            "digest": self.digest,
            "status": self.status,
            "sequence": self.sequence,
            "snapshot": None if self.snapshot is None else thaw(self.snapshot),
            "failure": None if self.failure is None else thaw(self.failure),
            "interrupts": interrupts,
            "createdAt": to_text(self.created_at),
            "updatedAt": to_text(self.updated_at),
        }

    def __copy__(self) -> "RunRecord":
        return self

    def __deepcopy__(self, memo: object) -> "RunRecord":
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> dict[str, Any]:
        from ._pydantic import pydantic_schema

        return pydantic_schema(cls)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: object, handler: object) -> dict[str, Any]:
        from ._schema import run_record_schema

        return run_record_schema()

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickle comes back through the same door as a row, and is checked there.
        return RunRecord.from_storage, (self.to_storage(),)

    def __setstate__(self, state: object) -> None:
        raise TypeError("RunRecord is frozen: its pickles load through from_storage")

    def __repr__(self) -> str:
        more = f", pending_interrupts={len(self.pending_interrupts)}" if self.interrupts else ""
        if self.failure is not None:
            more = f", code={self.failure['code']!r}"
        return (
            f"RunRecord(scope={self.scope!r}, thread_id={self.thread_id!r}, "
            f"run_id={self.run_id!r}, status={self.status!r}, sequence={self.sequence}{more})"
        )

    def _refuse_ended(self) -> None:
        if self.is_terminal:
            raise StreamError(
                "run_ended",
                f"run {shown(self.run_id)} has ended as {self.status}; replay that ending",
            )

    def _open(self) -> Any:
        new: Any = _OpenRecord()
        new.scope = self.scope
        new.thread_id = self.thread_id
        new.run_id = self.run_id
        new.digest = self.digest
        new.created_at = self.created_at
        new.status = self.status
        new.sequence = self.sequence
        new.snapshot = self.snapshot
        new.interrupts = self.interrupts
        new.failure = self.failure
        new.updated_at = self.updated_at
        return new

    def _rechecked(self) -> "RunRecord":
        """Return the record as the checks make it, as that of Interrupt does."""
        try:
            new = self._open()
        except AttributeError:
            raise ConfigurationError(f"{_ARGUMENT.whole()} {NOT_MADE}") from None
        return _checked(new, _ARGUMENT)


class _OpenRecord:
    """A RunRecord that is still being written, as `_OpenInterrupt` is for an Interrupt.

    A transition opens a copy, assigns what changes and seals it. What it does not touch
    was checked when it came in, and is neither looked at nor copied again, so the price
    of a transition does not grow with the snapshot.
    """

    __slots__ = RunRecord.__slots__


_STORED_KEYS = stored_keys(RunRecord)


def _sealed(new: Any) -> RunRecord:
    new.__class__ = RunRecord
    sealed: RunRecord = new
    return sealed


def _checked(new: Any, where: Where) -> RunRecord:
    """Check an open record, bring its fields into their kept form, and seal it."""
    moment = from_text if where.stored else utc
    new.scope = nonblank_text(new.scope, where, "scope")
    new.thread_id = nonblank_text(new.thread_id, where, "thread_id")
    new.run_id = nonblank_text(new.run_id, where, "run_id")
    new.digest = nonblank_text(new.digest, where, "digest")
    new.created_at = moment(new.created_at, where, "created_at")
    new.status = one_of(new.status, RunRecord.STATUSES, where, "status")
    new.sequence = _counted(new.sequence, where)
    if new.snapshot is not None:
        new.snapshot = freeze(new.snapshot, where, "snapshot")
    new.interrupts = _interrupts(new.interrupts, where)
    if new.failure is not None:
        new.failure = _failure(new.failure, new.status, where)
    new.updated_at = moment(new.updated_at, where, "updated_at")
    if new.interrupts:
        if new.status != "interrupted":
            raise ConfigurationError(
                f"{where.of('interrupts')} must be empty, since the status is {new.status!r}"
            )
    elif new.status == "interrupted":
        raise ConfigurationError(
            f"{where.of('interrupts')} must hold at least one, since the status is 'interrupted'"
        )
    new.__class__ = RunRecord
    sealed: RunRecord = new
    return sealed


def _counted(value: object, where: Where) -> int:
    """Check a sequence number, which has no bound but that of JSON writers."""
    if type(value) is not int:
        raise ConfigurationError(f"{where.of('sequence')} must be an int, not {kind(value)}")
    if value < 0:
        raise ConfigurationError(f"{where.of('sequence')} must not be negative")
    if value >= TOO_LARGE:
        raise ConfigurationError(f"{where.of('sequence')} must have at most {MAX_DIGITS} digits")
    return value


def _interrupts(value: object, where: Where) -> tuple[Interrupt, ...]:
    """Check the interrupts of one run: each of them whole, and no id twice."""
    if type(value) in (list, tuple) and not value:
        return ()
    read = []
    inside = where.at("")  # One for all of them: it is looked at only by a refusal.
    if where.stored:
        if not isinstance(value, (list, tuple)):
            raise ConfigurationError(f"{where.of('interrupts')} must be a list, not {kind(value)}")
        for index, stored in enumerate(value):
            inside.path = f"interrupts[{index}]"
            read.append(Interrupt._from_storage(stored, inside))
    else:
        # A mapping or a text is iterable too, and never what the caller means.
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            raise ConfigurationError(
                f"{where.of('interrupts')} must be an iterable of Interrupts, not {kind(value)}"
            )
        for index, interrupt in enumerate(value):
            inside.path = f"interrupts[{index}]"
            if not isinstance(interrupt, Interrupt):
                raise ConfigurationError(
                    f"{inside.whole()} must be an Interrupt, not {kind(interrupt)}"
                )
            read.append(interrupt._rechecked(inside))
    ids = [interrupt.id for interrupt in read]
    repeated = first_repeated(ids)
    if repeated is not None:
        raise ConfigurationError(
            f"{where.of('interrupts')}[{repeated}] repeats the id {shown(ids[repeated])}"
        )
    return tuple(read)


def _failure(value: object, status: str, where: Where) -> Any:
    """Check a sanitised failure and freeze it; the shape is the same with and without a code.

    A further key is refused, because a reconnect would leak what it holds.
    """
    if value is None:
        return None
    inside = where.at("failure")
    row = stored_object(value, ("message", "code"), inside)
    for key in cast(Mapping[object, object], value):
        if key != "message" and key != "code":
            given = shown(key) if isinstance(key, str) else kind(key)
            raise ConfigurationError(
                f"{inside.whole()} may hold message and code only, not {given}"
            )
    if "message" not in row:
        raise ConfigurationError(f"{inside.of('message')} is missing")
    message = nonblank_text(row["message"], inside, "message")
    code = row.get("code")
    if code is not None:
        code = nonblank_text(code, inside, "code")
    if status != "failed":
        raise ConfigurationError(
            f"{inside.whole()} belongs to a failed run, but the status is {status!r}"
        )
    return freeze({"message": message, "code": code}, inside, "")
