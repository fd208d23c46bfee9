"""One request for the approval of one tool call, and the answer to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, TypeAlias, cast, final

from ._fields import (
    NOT_MADE,
    Where,
    any_text,
    nonblank_text,
    one_of,
    refuses_assignment,
    shown,
    stored_keys,
    stored_object,
)
from ._time import from_text, to_text_or_none, to_wire, utc
from .errors import ConfigurationError, StreamError

Decision: TypeAlias = Literal["approved", "denied", "cancelled"]
"""One of the three answers that an interrupt can have.

>>> Interrupt.DECISIONS
('approved', 'denied', 'cancelled')
"""

InterruptStatus: TypeAlias = Literal["pending", "approved", "denied", "cancelled"]
"""The status of an interrupt: an answer, or none yet.

>>> Interrupt.STATUSES
('pending', 'approved', 'denied', 'cancelled')
"""

_ARGUMENT = Where("interrupt")
_STORED = Where("interrupt", stored=True)


@final
@refuses_assignment
@dataclass(init=False, frozen=True, slots=True, kw_only=True, repr=False)
class Interrupt:
    """One request for the approval of one tool call, and the answer to it.

    `Interrupt.create` makes a new request, with an id that nobody can guess. It names
    one tool call, one digest of its arguments and one expiry, and it takes one
    decision, once. It is no permission: the host authorises the actor again before
    the tool runs, whatever the record says.

    Times are aware and kept in UTC. `expires_at` has no default, because a request
    that stays open for ever (`None`) is a choice to say aloud. `decided_at` is set if
    and only if the status is a decision. Anything that cannot be right raises
    `ConfigurationError`.

    >>> from datetime import datetime, timedelta, timezone
    >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
    >>> ask = Interrupt.create(
    ...     tool_call_id="call-7", arguments_digest="9f86d081", created_at=now,
    ...     expires_at=now + timedelta(minutes=10), message="Refund 20.00 EUR?",
    ... )
    >>> ask.decide("approved", now=now).status
    'approved'
    >>> ask.status
    'pending'
    """

    PENDING: ClassVar[Literal["pending"]] = "pending"
    """Nobody has answered yet."""
    APPROVED: ClassVar[Literal["approved"]] = "approved"
    """The answer is yes."""
    DENIED: ClassVar[Literal["denied"]] = "denied"
    """The answer is no."""
    CANCELLED: ClassVar[Literal["cancelled"]] = "cancelled"
    """Withdrawn without a yes or no."""
    DECISIONS: ClassVar[tuple[Decision, ...]] = (APPROVED, DENIED, CANCELLED)
    """The three answers."""
    STATUSES: ClassVar[tuple[InterruptStatus, ...]] = (PENDING, *DECISIONS)
    """All four statuses."""
    REASON_TOOL_CALL: ClassVar[Literal["tool_call"]] = "tool_call"
    """The usual `reason`: a tool call needs approval."""

    id: str
    """Unique on its thread; `create` makes one that nobody can guess."""
    tool_call_id: str
    """The one tool call that it concerns."""
    arguments_digest: str
    """The `digest` of the arguments that were asked about; compare before the tool runs."""
    expires_at: datetime | None
    """From this instant on it can only be cancelled; None: it never expires."""
    reason: str
    """Why it was raised, an open string."""
    message: str | None
    """What whoever answers is asked; it goes to the client."""
    status: InterruptStatus
    """Pending, or the decision."""
    decided_at: datetime | None
    """When it was decided: never None where `is_decided` is true, always None where it is not."""
    created_at: datetime | None
    """When it was created, if the host said so."""

    # The constructor is written out, because the one that a frozen dataclass gets pays dearly
    # for each field. It is `__new__`, so that no Interrupt exists before it is whole.
    def __new__(
        cls,
        *,
        id: str,
        tool_call_id: str,
        arguments_digest: str,
        expires_at: datetime | None,
        reason: str = REASON_TOOL_CALL,
        message: str | None = None,
        status: InterruptStatus = PENDING,
        decided_at: datetime | None = None,
        created_at: datetime | None = None,
    ) -> "Interrupt":
        new: Any = _OpenInterrupt()
        new.id = id
        new.tool_call_id = tool_call_id
        new.arguments_digest = arguments_digest
        new.expires_at = expires_at
        new.reason = reason
        new.message = message
        new.status = status
        new.decided_at = decided_at
        new.created_at = created_at
        return _checked(new, _ARGUMENT)

    def __init_subclass__(cls) -> None:
        raise TypeError("Interrupt is final: hold one instead of extending it")

    def __post_init__(self) -> None:
        # Called by what fills in the fields of a dataclass past its constructor, as msgspec does.
        raise TypeError("Interrupt is made by its constructor or from_storage, not field by field")

    @classmethod
    def create(
        cls,
        *,
        tool_call_id: str,
        arguments_digest: str,
        expires_at: datetime | None,
        reason: str = REASON_TOOL_CALL,
        message: str | None = None,
        created_at: datetime | None = None,
    ) -> "Interrupt":
        """Return a pending interrupt with a fresh random id (UUID4).

        >>> ask = Interrupt.create(tool_call_id="c-1", arguments_digest="a1", expires_at=None)
        >>> ask.status, len(ask.id)
        ('pending', 36)
        """
        from uuid import uuid4  # Slow to import, and a process that only reads never needs it.

        return cls(
            id=str(uuid4()),
            tool_call_id=tool_call_id,
            arguments_digest=arguments_digest,
            expires_at=expires_at,
            reason=reason,
            message=message,
            created_at=created_at,
        )

    @classmethod
    def from_storage(cls, stored: Mapping[str, object]) -> "Interrupt":
        """Return the interrupt that `to_storage` wrote; the mapping is only read.

        `id`, `toolCallId`, `argumentsDigest`, `reason`, `status` and `expiresAt` must be
        there, the last one null only if it says so: a lost expiry must not become an
        endless one. Keys that are not ours are ignored. Raises `ConfigurationError`.

        >>> ask = Interrupt.create(tool_call_id="c-1", arguments_digest="a1", expires_at=None)
        >>> Interrupt.from_storage(ask.to_storage()) == ask
        True
        """
        return cls._from_storage(stored, _STORED)

    @classmethod
    def _from_storage(cls, stored: object, where: Where) -> "Interrupt":
        row = stored if type(stored) is dict else stored_object(stored, _STORED_KEYS, where)
        new: Any = _OpenInterrupt()
        try:
            new.id = row["id"]
            new.tool_call_id = row["toolCallId"]
            new.arguments_digest = row["argumentsDigest"]
            new.reason = row["reason"]
            new.status = row["status"]
            new.expires_at = row["expiresAt"]
        except KeyError as missing:
            raise ConfigurationError(f"{where.of(missing.args[0])} is missing") from None
        new.message = row.get("message")
        new.decided_at = row.get("decidedAt")
        new.created_at = row.get("createdAt")
        return _checked(new, where)

    @property
    def is_pending(self) -> bool:
        """Whether nobody has answered yet; an expired request may still be pending.

        >>> ask = Interrupt.create(tool_call_id="c-1", arguments_digest="a1", expires_at=None)
        >>> ask.is_pending
        True
        """
        return self.status == "pending"

    @property
    def is_decided(self) -> bool:
        """Whether an answer stands: approved, denied or cancelled. Then `decided_at` is set.

        >>> from datetime import datetime, timedelta, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> ask = Interrupt.create(tool_call_id="c-1", arguments_digest="a1", expires_at=None)
        >>> denied = ask.decide("denied", now=now)
        >>> denied.is_decided, denied.decided_at == now
        (True, True)
        """
        return self.status != "pending"

    @property
    def is_approved(self) -> bool:
        """Whether the answer is yes.

        >>> from datetime import datetime, timedelta, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> ask = Interrupt.create(tool_call_id="c-1", arguments_digest="a1", expires_at=None)
        >>> ask.decide("approved", now=now).is_approved
        True
        """
        return self.status == "approved"

    @property
    def is_denied(self) -> bool:
        """Whether the answer is no.

        >>> from datetime import datetime, timedelta, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> ask = Interrupt.create(tool_call_id="c-1", arguments_digest="a1", expires_at=None)
        >>> ask.decide("denied", now=now).is_denied
        True
        """
        return self.status == "denied"

    @property
    def is_cancelled(self) -> bool:
        """Whether the request was withdrawn without a yes or no.

        >>> from datetime import datetime, timedelta, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> ask = Interrupt.create(tool_call_id="c-1", arguments_digest="a1", expires_at=None)
        >>> ask.decide("cancelled", now=now).is_cancelled
        True
        """
        return self.status == "cancelled"

    def is_expired(self, now: datetime) -> bool:
        """Say whether `now`, an aware time, is at or past the expiry.

        Raises `ConfigurationError` where `now` is not an aware datetime.

        >>> from datetime import datetime, timedelta, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> ask = Interrupt.create(tool_call_id="c-1", arguments_digest="a1", expires_at=now)
        >>> ask.is_expired(now), ask.is_expired(now - timedelta(seconds=1))
        (True, False)
        """
        return self._has_expired(utc(now, _ARGUMENT, "now"))

    def is_answerable(self, now: datetime) -> bool:
        """Say whether it can still be approved or denied: pending, and not expired at `now`.

        >>> from datetime import datetime, timedelta, timezone
        >>> now = datetime(2026, 11, 30, 10, 0, tzinfo=timezone.utc)
        >>> ask = Interrupt.create(tool_call_id="c-1", arguments_digest="a1", expires_at=now)
        >>> ask.is_pending, ask.is_answerable(now)
        (True, False)
        """
        return not self.is_expired(now) and self.is_pending

    def decide(self, decision: Decision, *, now: datetime) -> "Interrupt":
        """Return a copy that carries the decision, with `now` as its `decided_at`.

        A decision is final. Raises `ConfigurationError` where `decision` is not exactly
        one of `DECISIONS` or `now` is not aware; then `StreamError("interrupt_decided")`
        where an answer stands, even the same one, for a second answer is a replay or a
        conflict and never a new grant; then `StreamError("interrupt_expired")` at or past
        the expiry, unless the decision is `cancelled`: an expired request can be closed
        but no longer answered (AG-UI 1.0, interrupts).

        >>> from datetime import datetime, timezone
        >>> now = datetime(2026, 11, 30, tzinfo=timezone.utc)
        >>> ask = Interrupt.create(tool_call_id="c-1", arguments_digest="a1", expires_at=now)
        >>> ask.decide("cancelled", now=now).is_cancelled
        True
        """
        decision = one_of(decision, self.DECISIONS, _ARGUMENT, "decision")
        if type(now) is not datetime or now.tzinfo is not UTC:
            now = utc(now, _ARGUMENT, "now")
        self._refuse_answer(decision, now)
        new = self._open()
        new.status = decision
        new.decided_at = now
        new.__class__ = Interrupt
        decided: Interrupt = new
        return decided

    def _answered_by(self, other: "Interrupt") -> "Interrupt":
        """Return the copy of this interrupt that carries its answer, or itself where none is new.

        It is for `RunRecord.replace_interrupt`, which says what is refused.
        """
        if not (
            self.id == other.id
            and self.tool_call_id == other.tool_call_id
            and self.arguments_digest == other.arguments_digest
            and self.expires_at == other.expires_at
            and self.reason == other.reason
            and self.message == other.message
            and self.created_at == other.created_at
        ):
            raise StreamError(
                "interrupt_changed",
                f"interrupt {shown(self.id)} is not the request that was asked about; "
                "raise a new interrupt for a changed one",
            )
        if self.status == other.status and self.decided_at == other.decided_at:
            return self
        # What `decide` has made of this very request looks like this, and needs no second look.
        if (
            other.status not in self.DECISIONS
            or type(other.decided_at) is not datetime
            or other.decided_at.tzinfo is not UTC
            or other.expires_at is not self.expires_at
            or other.created_at is not self.created_at
        ):
            other = other._rechecked()
        # A pending copy of a pending request would be equal to it, so this one has its time.
        self._refuse_answer(other.status, cast(datetime, other.decided_at))
        return other

    def _refuse_answer(self, decision: str, at: datetime) -> None:
        """Raise `StreamError` where this interrupt may not take that decision at that time.

        The one rule behind every door to a decision; see `decide`.
        """
        if self.status != "pending":
            raise StreamError(
                "interrupt_decided",
                f"interrupt {shown(self.id)} is already {self.status}; that decision stands",
            )
        if decision != "cancelled" and self._has_expired(at):
            raise StreamError(
                "interrupt_expired",
                f"interrupt {shown(self.id)} has expired; it can only be cancelled",
            )

    def _has_expired(self, at: datetime) -> bool:
        return self.expires_at is not None and at >= self.expires_at

    def to_protocol(self) -> dict[str, str]:
        """Return the AG-UI 1.0 `Interrupt` object for the wire.

        Absent values are left out, never null. The expiry has milliseconds, cut, so
        that no client thinks the request open for longer than the server does.

        >>> ask = Interrupt(id="i-1", tool_call_id="c-1", arguments_digest="a1", expires_at=None)
        >>> ask.to_protocol()
        {'id': 'i-1', 'reason': 'tool_call', 'toolCallId': 'c-1'}
        """
        wire = {"id": self.id, "reason": self.reason, "toolCallId": self.tool_call_id}
        if self.message is not None:
            wire["message"] = self.message
        if self.expires_at is not None:
            wire["expiresAt"] = to_wire(self.expires_at)
        return wire

    def to_dict(self) -> dict[str, str | None]:
        """Return the reporting shape: no digest of arguments, no creation time.

        >>> ask = Interrupt(id="i-1", tool_call_id="c-1", arguments_digest="a1", expires_at=None)
        >>> sorted(ask.to_dict())
        ['decidedAt', 'expiresAt', 'id', 'message', 'reason', 'status', 'toolCallId']
        """
        return {
            "id": self.id,
            "toolCallId": self.tool_call_id,
            "reason": self.reason,
            "message": self.message,
            "expiresAt": to_text_or_none(self.expires_at),
            "status": self.status,
            "decidedAt": to_text_or_none(self.decided_at),
        }

    def to_storage(self) -> dict[str, str | None]:
        """Return the dict to persist: `to_dict()`, the digest and the creation time.

        It holds all that a store needs to verify later that an answer belongs to the
        call that was asked about.

        >>> ask = Interrupt(id="i-1", tool_call_id="c-1", arguments_digest="a1", expires_at=None)
        >>> ask.to_storage()["argumentsDigest"]
        'a1'
        """
        stored = self.to_dict()
        stored["argumentsDigest"] = self.arguments_digest
        stored["createdAt"] = to_text_or_none(self.created_at)
        return stored

    def __copy__(self) -> "Interrupt":
        return self

    def __deepcopy__(self, memo: object) -> "Interrupt":
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> dict[str, Any]:
        from ._pydantic import pydantic_schema  # Only where pydantic is, and asks.

        return pydantic_schema(cls)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: object, handler: object) -> dict[str, Any]:
        from ._schema import interrupt_schema

        return interrupt_schema()

    def __reduce__(self) -> tuple[Any, ...]:
        # A pickle comes back through the same door as a row, and is checked there.
        return Interrupt.from_storage, (self.to_storage(),)

    def __setstate__(self, state: object) -> None:
        raise TypeError("Interrupt is frozen: its pickles load through from_storage")

    def __repr__(self) -> str:
        return (
            f"Interrupt(id={self.id!r}, tool_call_id={self.tool_call_id!r}, "
            f"reason={self.reason!r}, status={self.status!r}, "
            f"expires_at={to_text_or_none(self.expires_at)!r}, "
            f"decided_at={to_text_or_none(self.decided_at)!r}, "
            f"created_at={to_text_or_none(self.created_at)!r})"
        )

    def _open(self) -> Any:
        new: Any = _OpenInterrupt()
        new.id = self.id
        new.tool_call_id = self.tool_call_id
        new.arguments_digest = self.arguments_digest
        new.expires_at = self.expires_at
        new.reason = self.reason
        new.message = self.message
        new.status = self.status
        new.decided_at = self.decided_at
        new.created_at = self.created_at
        return new

    def _rechecked(self, where: Where = _ARGUMENT) -> "Interrupt":
        """Return the interrupt as the checks make it; `object.__setattr__` gets past them."""
        try:
            new = self._open()
        except AttributeError:
            raise ConfigurationError(f"{where.whole()} {NOT_MADE}") from None
        return _checked(new, where)


class _OpenInterrupt:
    """An Interrupt that is still being written: the same slots, ordinary assignment.

    Construction, `from_storage` and `decide` all write one of these, line by line, and
    seal it by giving it the class `Interrupt`. A frozen dataclass can otherwise be filled
    in only through `object.__setattr__`, a generic call for each field.
    """

    __slots__ = Interrupt.__slots__


_STORED_KEYS = stored_keys(Interrupt)


def _checked(new: Any, where: Where) -> Interrupt:
    """Check an open interrupt, bring its fields into their kept form, and seal it."""
    moment = from_text if where.stored else utc
    new.id = nonblank_text(new.id, where, "id")
    new.tool_call_id = nonblank_text(new.tool_call_id, where, "tool_call_id")
    new.arguments_digest = nonblank_text(new.arguments_digest, where, "arguments_digest")
    if new.expires_at is not None:
        new.expires_at = moment(new.expires_at, where, "expires_at")
    new.reason = nonblank_text(new.reason, where, "reason")
    if new.message is not None:
        new.message = any_text(new.message, where, "message")
    new.status = one_of(new.status, Interrupt.STATUSES, where, "status")
    if new.decided_at is not None:
        new.decided_at = moment(new.decided_at, where, "decided_at")
    if new.created_at is not None:
        new.created_at = moment(new.created_at, where, "created_at")
    if new.status == "pending":
        if new.decided_at is not None:
            raise ConfigurationError(
                f"{where.of('decided_at')} must not be set, since the status is 'pending'"
            )
    elif new.decided_at is None:
        raise ConfigurationError(
            f"{where.of('decided_at')} is missing, but the status is {new.status!r}"
        )
    new.__class__ = Interrupt
    sealed: Interrupt = new
    return sealed
