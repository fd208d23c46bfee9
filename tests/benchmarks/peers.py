"""The same two values as each peer would have them, as near to our rules as it comes.

Every peer has the same fields, checks text, times, statuses and interrupts on every way
in, and refuses what `advance`, `decide` and `replace_interrupt` refuse. What the library
has a natural way for is left to the library; the rest is the few functions at the top.
`rules.py` tries out what a peer still does not do, and the report says it.

No peer insists that interrupts stand on an interrupted record only. That spares them a
check, and lets `advance` be timed on a live record that holds interrupts.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isfinite
from types import MappingProxyType
from typing import Annotated, Any, Literal

import attrs
import cattrs
import mashumaro
import mashumaro.config
import msgspec
import pydantic
import pydantic.alias_generators
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override
from floor import types_only

import agui_runs
from agui_runs import _fields, _json

InterruptStatus = Literal["pending", "approved", "denied", "cancelled"]
RunStatus = Literal["reserved", "started", "succeeded", "interrupted", "cancelled", "failed"]
INTERRUPT_STATUSES = ("pending", "approved", "denied", "cancelled")
RUN_STATUSES = ("reserved", "started", "succeeded", "interrupted", "cancelled", "failed")
TERMINAL = ("succeeded", "interrupted", "cancelled", "failed")


@dataclass(kw_only=True)
class Peer:
    """A library's two classes, and the natural code for what has no method there."""

    name: str
    record: Any
    interrupt: Any
    load: str
    store: str
    make: str = "Record(**fields)"
    names: dict[str, Any] = field(default_factory=dict)


def utc(value: Any) -> datetime:
    if not isinstance(value, datetime):
        raise TypeError("not a datetime")
    if value.tzinfo is UTC:
        return value
    if value.utcoffset() is None:
        raise ValueError("naive")
    return value.astimezone(UTC)


def utc_or_none(value: Any) -> datetime | None:
    return None if value is None else utc(value)


def from_text(value: Any) -> datetime:
    return utc(datetime.fromisoformat(value))


def to_text(value: datetime) -> str:
    return value.isoformat(timespec="microseconds").replace("+00:00", "Z")


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("blank, or no text")
    return value


def text_or_none(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError("not text")
    return value


def freeze(value: Any) -> Any:
    """Check and freeze a JSON value, in the text-book way; once frozen it is left alone."""
    if isinstance(value, MappingProxyType | tuple):
        return value
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("a key is not text")
        return MappingProxyType({key: freeze(item) for key, item in value.items()})
    if isinstance(value, list):
        return tuple([freeze(item) for item in value])
    if value is None or isinstance(value, str | int) or isfinite(value):
        return value
    raise ValueError("not JSON")


def thaw(value: Any) -> Any:
    if isinstance(value, MappingProxyType):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [thaw(item) for item in value]
    return value


def check_decided(interrupt: Any) -> None:
    if (interrupt.status == "pending") != (interrupt.decided_at is None):
        raise ValueError("status and decided_at disagree")


def check_record(record: Any) -> None:
    if record.sequence < 0:
        raise ValueError("negative")
    if record.failure is not None and record.status != "failed":
        raise ValueError("failure without having failed")
    if len({interrupt.id for interrupt in record.interrupts}) != len(record.interrupts):
        raise ValueError("an id twice")


def check_live(record: Any, now: Any) -> datetime:
    if record.status in TERMINAL:
        raise ValueError("ended")
    return utc(now)


def check_decision(interrupt: Any, decision: str, now: Any) -> datetime:
    now = utc(now)
    if decision not in ("approved", "denied", "cancelled"):
        raise ValueError("no decision")
    if interrupt.status != "pending":
        raise ValueError("decided")
    expires_at = interrupt.expires_at
    if decision != "cancelled" and expires_at is not None and now >= expires_at:
        raise ValueError("expired")
    return now


def with_decided(record: Any, decided: Any) -> tuple[Any, ...]:
    """Return the interrupts with one decided, by the rules of `replace_interrupt`."""
    interrupts = record.interrupts
    ids = [interrupt.id for interrupt in interrupts]
    index = ids.index(decided.id)
    held = interrupts[index]
    if (
        held.tool_call_id != decided.tool_call_id
        or held.arguments_digest != decided.arguments_digest
        or held.expires_at != decided.expires_at
        or held.reason != decided.reason
        or held.message != decided.message
        or held.created_at != decided.created_at
    ):
        raise ValueError("changed")
    check_decision(held, decided.status, decided.decided_at)
    return (*interrupts[:index], decided, *interrupts[index + 1 :])


# agui_runs itself

OURS = Peer(
    name="agui_runs",
    record=agui_runs.RunRecord,
    interrupt=agui_runs.Interrupt,
    load="Record.from_storage(row)",
    store="record.to_storage()",
)

TYPES_ONLY = dataclasses.replace(
    OURS,
    name="types only",
    record=types_only.RunRecord,
    interrupt=types_only.Interrupt,
)


# pydantic

Text = Annotated[str, pydantic.Field(strict=True, pattern=r"\S")]
Utc = Annotated[pydantic.AwareDatetime, pydantic.AfterValidator(utc)]


class PydanticModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(
        frozen=True,
        allow_inf_nan=False,
        alias_generator=pydantic.alias_generators.to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )


class PydanticInterrupt(PydanticModel):
    id: Text
    tool_call_id: Text
    arguments_digest: Text
    expires_at: Utc | None
    reason: Text = "tool_call"
    message: Annotated[str, pydantic.Field(strict=True)] | None = None
    status: InterruptStatus = "pending"
    decided_at: Utc | None = None
    created_at: Utc | None = None

    @pydantic.model_validator(mode="after")
    def agrees(self) -> "PydanticInterrupt":
        check_decided(self)
        return self

    def decide(self, decision: str, *, now: datetime) -> "PydanticInterrupt":
        now = check_decision(self, decision, now)
        return self.model_copy(update={"status": decision, "decided_at": now})


class PydanticFailure(PydanticModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    message: Text
    code: Text | None = None


class PydanticRecord(PydanticModel):
    scope: Text
    thread_id: Text
    run_id: Text
    digest: Text
    created_at: Utc
    status: RunStatus = "reserved"
    sequence: Annotated[int, pydantic.Field(strict=True, ge=0)] = 0
    snapshot: pydantic.JsonValue = None
    interrupts: tuple[PydanticInterrupt, ...] = ()
    failure: PydanticFailure | None = None
    updated_at: Utc

    @pydantic.model_validator(mode="after")
    def agrees(self) -> "PydanticRecord":
        check_record(self)
        return self

    def finish(self, status: str, *, now: datetime) -> "PydanticRecord":
        now = check_live(self, now)
        return self.model_copy(update={"status": status, "updated_at": now})

    def advance(self, *, now: datetime) -> "PydanticRecord":
        now = check_live(self, now)
        return self.model_copy(update={"sequence": self.sequence + 1, "updated_at": now})

    def replace_interrupt(self, decided: Any, *, now: datetime) -> "PydanticRecord":
        interrupts = with_decided(self, decided)
        return self.model_copy(update={"interrupts": interrupts, "updated_at": utc(now)})


PYDANTIC = Peer(
    name="pydantic",
    record=PydanticRecord,
    interrupt=PydanticInterrupt,
    load="Record.model_validate(row)",
    store="record.model_dump(mode='json', by_alias=True)",
)


# msgspec

MsgspecText = Annotated[str, msgspec.Meta(pattern=r"\S")]
MsgspecTime = Annotated[datetime, msgspec.Meta(tz=True)]


class MsgspecInterrupt(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    id: MsgspecText
    tool_call_id: MsgspecText
    arguments_digest: MsgspecText
    expires_at: MsgspecTime | None
    reason: MsgspecText = "tool_call"
    message: str | None = None
    status: InterruptStatus = "pending"
    decided_at: MsgspecTime | None = None
    created_at: MsgspecTime | None = None

    def __post_init__(self) -> None:
        check_decided(self)

    def decide(self, decision: str, *, now: datetime) -> "MsgspecInterrupt":
        now = check_decision(self, decision, now)
        return msgspec.structs.replace(self, status=decision, decided_at=now)


class MsgspecFailure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    message: MsgspecText
    code: MsgspecText | None = None


class MsgspecRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    scope: MsgspecText
    thread_id: MsgspecText
    run_id: MsgspecText
    digest: MsgspecText
    created_at: MsgspecTime
    status: RunStatus = "reserved"
    sequence: int = 0
    snapshot: Any = None
    interrupts: tuple[MsgspecInterrupt, ...] = ()
    failure: MsgspecFailure | None = None
    updated_at: MsgspecTime

    def __post_init__(self) -> None:
        check_record(self)

    def finish(self, status: str, *, now: datetime) -> "MsgspecRecord":
        now = check_live(self, now)
        return msgspec.structs.replace(self, status=status, updated_at=now)

    def advance(self, *, now: datetime) -> "MsgspecRecord":
        now = check_live(self, now)
        return msgspec.structs.replace(self, sequence=self.sequence + 1, updated_at=now)

    def replace_interrupt(self, decided: Any, *, now: datetime) -> "MsgspecRecord":
        interrupts = with_decided(self, decided)
        return msgspec.structs.replace(self, interrupts=interrupts, updated_at=utc(now))


MSGSPEC = Peer(
    name="msgspec",
    record=MsgspecRecord,
    interrupt=MsgspecInterrupt,
    load="convert(row, Record)",
    store="to_builtins(record)",
    make="convert(camel_fields, Record)",
    names={"convert": msgspec.convert, "to_builtins": msgspec.to_builtins},
)

WHERE = _fields.Where("record")


class MsgspecFrozenRecord(MsgspecRecord, frozen=True, kw_only=True, rename="camel"):
    """The same, with the snapshot checked and frozen by our own code, for equal work."""

    def __post_init__(self) -> None:
        frozen = _json.freeze(self.snapshot, WHERE, "snapshot")
        msgspec.structs.force_setattr(self, "snapshot", frozen)
        check_record(self)


MSGSPEC_FROZEN = dataclasses.replace(
    MSGSPEC,
    name="msgspec, frozen",
    record=MsgspecFrozenRecord,
)


# attrs with cattrs


def _is_text(instance: Any, attribute: Any, value: Any) -> None:
    text(value)


def _is_int(instance: Any, attribute: Any, value: Any) -> None:
    if type(value) is not int:
        raise TypeError("no int")


@attrs.frozen(kw_only=True)
class AttrsInterrupt:
    id: str = attrs.field(validator=_is_text)
    tool_call_id: str = attrs.field(validator=_is_text)
    arguments_digest: str = attrs.field(validator=_is_text)
    expires_at: datetime | None = attrs.field(converter=utc_or_none)
    reason: str = attrs.field(validator=_is_text, default="tool_call")
    message: str | None = attrs.field(converter=text_or_none, default=None)
    status: InterruptStatus = attrs.field(
        validator=attrs.validators.in_(INTERRUPT_STATUSES), default="pending"
    )
    decided_at: datetime | None = attrs.field(converter=utc_or_none, default=None)
    created_at: datetime | None = attrs.field(converter=utc_or_none, default=None)

    def __attrs_post_init__(self) -> None:
        check_decided(self)

    def decide(self, decision: Any, *, now: datetime) -> "AttrsInterrupt":
        now = check_decision(self, decision, now)
        return attrs.evolve(self, status=decision, decided_at=now)


@attrs.frozen(kw_only=True)
class AttrsFailure:
    message: str = attrs.field(validator=_is_text)
    code: str | None = attrs.field(converter=text_or_none, default=None)


@attrs.frozen(kw_only=True)
class AttrsRecord:
    scope: str = attrs.field(validator=_is_text)
    thread_id: str = attrs.field(validator=_is_text)
    run_id: str = attrs.field(validator=_is_text)
    digest: str = attrs.field(validator=_is_text)
    created_at: datetime = attrs.field(converter=utc)
    status: RunStatus = attrs.field(
        validator=attrs.validators.in_(RUN_STATUSES), default="reserved"
    )
    sequence: int = attrs.field(validator=_is_int, default=0)
    snapshot: Any = attrs.field(converter=freeze, default=None)
    interrupts: tuple[AttrsInterrupt, ...] = attrs.field(converter=tuple, default=())
    failure: AttrsFailure | None = None
    updated_at: datetime = attrs.field(converter=utc)

    def __attrs_post_init__(self) -> None:
        check_record(self)

    def finish(self, status: Any, *, now: datetime) -> "AttrsRecord":
        return attrs.evolve(self, status=status, updated_at=check_live(self, now))

    def advance(self, *, now: datetime) -> "AttrsRecord":
        now = check_live(self, now)
        return attrs.evolve(self, sequence=self.sequence + 1, updated_at=now)

    def replace_interrupt(self, decided: Any, *, now: datetime) -> "AttrsRecord":
        return attrs.evolve(self, interrupts=with_decided(self, decided), updated_at=utc(now))


def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(detailed_validation=False)
    converter.register_structure_hook(datetime, lambda value, _: from_text(value))
    converter.register_unstructure_hook(datetime, to_text)
    converter.register_structure_hook(str, lambda value, _: value)
    converter.register_structure_hook(int, lambda value, _: value)
    for kind in (AttrsInterrupt, AttrsFailure, AttrsRecord):
        names = {f.name: override(rename=camel(f.name)) for f in attrs.fields(kind)}
        reads = {**names}
        writes = {**names}
        if kind is AttrsRecord:
            reads["snapshot"] = override(rename="snapshot", struct_hook=lambda value, _: value)
            writes["snapshot"] = override(rename="snapshot", unstruct_hook=thaw)
        if kind is AttrsFailure:
            reads["_cattrs_forbid_extra_keys"] = True
        converter.register_structure_hook(kind, make_dict_structure_fn(kind, converter, **reads))
        converter.register_unstructure_hook(
            kind, make_dict_unstructure_fn(kind, converter, **writes)
        )
    return converter


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


CONVERTER = _converter()
ATTRS = Peer(
    name="attrs, cattrs",
    record=AttrsRecord,
    interrupt=AttrsInterrupt,
    load="converter.structure(row, Record)",
    store="converter.unstructure(record)",
    names={"converter": CONVERTER},
)


# mashumaro


class MashumaroConfig(mashumaro.config.BaseConfig):
    serialize_by_alias = True
    serialization_strategy = {  # noqa: RUF012  # mashumaro reads a plain dict.
        datetime: {"deserialize": from_text, "serialize": to_text}
    }


@dataclass(frozen=True, kw_only=True)
class MashumaroInterrupt(mashumaro.DataClassDictMixin):
    id: str
    tool_call_id: str
    arguments_digest: str
    expires_at: datetime | None
    reason: str = "tool_call"
    message: str | None = None
    status: InterruptStatus = "pending"
    decided_at: datetime | None = None
    created_at: datetime | None = None

    class Config(MashumaroConfig):
        aliases = {  # noqa: RUF012  # mashumaro reads a plain dict.
            "tool_call_id": "toolCallId",
            "arguments_digest": "argumentsDigest",
            "expires_at": "expiresAt",
            "decided_at": "decidedAt",
            "created_at": "createdAt",
        }

    def __post_init__(self) -> None:
        text(self.id)
        text(self.tool_call_id)
        text(self.arguments_digest)
        text(self.reason)
        check_decided(self)

    def decide(self, decision: Any, *, now: datetime) -> "MashumaroInterrupt":
        now = check_decision(self, decision, now)
        return dataclasses.replace(self, status=decision, decided_at=now)


@dataclass(frozen=True, kw_only=True)
class MashumaroFailure(mashumaro.DataClassDictMixin):
    message: str
    code: str | None = None

    class Config(mashumaro.config.BaseConfig):
        forbid_extra_keys = True


@dataclass(frozen=True, kw_only=True)
class MashumaroRecord(mashumaro.DataClassDictMixin):
    scope: str
    thread_id: str
    run_id: str
    digest: str
    created_at: datetime
    status: RunStatus = "reserved"
    sequence: int = 0
    snapshot: Any = None
    interrupts: tuple[MashumaroInterrupt, ...] = ()
    failure: MashumaroFailure | None = None
    updated_at: datetime

    class Config(MashumaroConfig):
        aliases = {  # noqa: RUF012  # mashumaro reads a plain dict.
            "thread_id": "threadId",
            "run_id": "runId",
            "created_at": "createdAt",
            "updated_at": "updatedAt",
        }

    def __post_init__(self) -> None:
        text(self.scope)
        text(self.thread_id)
        text(self.run_id)
        text(self.digest)
        check_record(self)

    def finish(self, status: Any, *, now: datetime) -> "MashumaroRecord":
        return dataclasses.replace(self, status=status, updated_at=check_live(self, now))

    def advance(self, *, now: datetime) -> "MashumaroRecord":
        now = check_live(self, now)
        return dataclasses.replace(self, sequence=self.sequence + 1, updated_at=now)

    def replace_interrupt(self, decided: Any, *, now: datetime) -> "MashumaroRecord":
        interrupts = with_decided(self, decided)
        return dataclasses.replace(self, interrupts=interrupts, updated_at=utc(now))


MASHUMARO = Peer(
    name="mashumaro",
    record=MashumaroRecord,
    interrupt=MashumaroInterrupt,
    load="Record.from_dict(row)",
    store="record.to_dict()",
)


# the standard library alone


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainInterrupt:
    id: str
    tool_call_id: str
    arguments_digest: str
    expires_at: datetime | None
    reason: str = "tool_call"
    message: str | None = None
    status: str = "pending"
    decided_at: datetime | None = None
    created_at: datetime | None = None

    def __post_init__(self) -> None:
        text(self.id)
        text(self.tool_call_id)
        text(self.arguments_digest)
        text(self.reason)
        text_or_none(self.message)
        if self.status not in INTERRUPT_STATUSES:
            raise ValueError("no status")
        object.__setattr__(self, "expires_at", utc_or_none(self.expires_at))
        object.__setattr__(self, "decided_at", utc_or_none(self.decided_at))
        object.__setattr__(self, "created_at", utc_or_none(self.created_at))
        check_decided(self)

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> "PlainInterrupt":
        return cls(
            id=row["id"],
            tool_call_id=row["toolCallId"],
            arguments_digest=row["argumentsDigest"],
            expires_at=None if row["expiresAt"] is None else from_text(row["expiresAt"]),
            reason=row["reason"],
            message=row.get("message"),
            status=row["status"],
            decided_at=from_text(row["decidedAt"]) if row.get("decidedAt") else None,
            created_at=from_text(row["createdAt"]) if row.get("createdAt") else None,
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "toolCallId": self.tool_call_id,
            "reason": self.reason,
            "message": self.message,
            "expiresAt": to_text(self.expires_at) if self.expires_at else None,
            "status": self.status,
            "decidedAt": to_text(self.decided_at) if self.decided_at else None,
            "argumentsDigest": self.arguments_digest,
            "createdAt": to_text(self.created_at) if self.created_at else None,
        }

    def decide(self, decision: str, *, now: datetime) -> "PlainInterrupt":
        now = check_decision(self, decision, now)
        return dataclasses.replace(self, status=decision, decided_at=now)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainRecord:
    scope: str
    thread_id: str
    run_id: str
    digest: str
    created_at: datetime
    status: str = "reserved"
    sequence: int = 0
    snapshot: Any = None
    interrupts: tuple[PlainInterrupt, ...] = ()
    failure: Mapping[str, str | None] | None = None
    updated_at: datetime

    def __post_init__(self) -> None:
        text(self.scope)
        text(self.thread_id)
        text(self.run_id)
        text(self.digest)
        if self.status not in RUN_STATUSES:
            raise ValueError("no status")
        if type(self.sequence) is not int:
            raise TypeError("no int")
        object.__setattr__(self, "created_at", utc(self.created_at))
        object.__setattr__(self, "updated_at", utc(self.updated_at))
        object.__setattr__(self, "snapshot", freeze(self.snapshot))
        object.__setattr__(self, "interrupts", tuple(self.interrupts))
        object.__setattr__(self, "failure", freeze(self.failure))
        check_record(self)

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> "PlainRecord":
        return cls(
            scope=row["scope"],
            thread_id=row["threadId"],
            run_id=row["runId"],
            digest=row["digest"],
            created_at=from_text(row["createdAt"]),
            status=row["status"],
            sequence=row["sequence"],
            snapshot=row.get("snapshot"),
            interrupts=tuple([PlainInterrupt.from_dict(each) for each in row["interrupts"]]),
            failure=row.get("failure"),
            updated_at=from_text(row["updatedAt"]),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "scope": self.scope,
            "threadId": self.thread_id,
            "runId": self.run_id,
            "digest": self.digest,
            "status": self.status,
            "sequence": self.sequence,
            "snapshot": thaw(self.snapshot),
            "failure": thaw(self.failure),
            "interrupts": [interrupt.to_dict() for interrupt in self.interrupts],
            "createdAt": to_text(self.created_at),
            "updatedAt": to_text(self.updated_at),
        }

    def finish(self, status: str, *, now: datetime) -> "PlainRecord":
        return dataclasses.replace(self, status=status, updated_at=check_live(self, now))

    def advance(self, *, now: datetime) -> "PlainRecord":
        now = check_live(self, now)
        return dataclasses.replace(self, sequence=self.sequence + 1, updated_at=now)

    def replace_interrupt(self, decided: Any, *, now: datetime) -> "PlainRecord":
        interrupts = with_decided(self, decided)
        return dataclasses.replace(self, interrupts=interrupts, updated_at=utc(now))


PLAIN = Peer(
    name="dataclass",
    record=PlainRecord,
    interrupt=PlainInterrupt,
    load="Record.from_dict(row)",
    store="record.to_dict()",
)

PEERS = (OURS, TYPES_ONLY, PYDANTIC, MSGSPEC, MSGSPEC_FROZEN, ATTRS, MASHUMARO, PLAIN)
