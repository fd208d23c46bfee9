"""What a host may pass, in all its variety: valid values by construction, and junk."""

from collections import ChainMap, OrderedDict, UserDict, defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from types import SimpleNamespace
from typing import Any
from zoneinfo import available_timezones

from hypothesis import strategies as st

from agui_runs import Interrupt, RunRecord
from builders import HOUR, T0, make_ask, nested


class Way(StrEnum):
    MAIL = "mail"
    DONE = "succeeded"


class Level(IntEnum):
    LOW = 0
    HIGH = 3


class Half(float, Enum):
    HALF = 0.5


@dataclass
class Ghost(Mapping[Any, Any]):
    """A mapping that lists keys which it does not hold."""

    names: list[Any]

    def __getitem__(self, key: Any) -> Any:
        raise KeyError(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


class Husk(dict[Any, Any]):
    """A dict that lists a key which it does not hold."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def keys(self) -> Any:
        return {"message": None}.keys()

    def __repr__(self) -> str:
        return "Husk()"


characters = st.characters(codec="utf-8")
texts = st.text(characters, max_size=12)
names = st.text(characters, min_size=1, max_size=12).filter(lambda text: not text.isspace())

small_integers = st.integers(-(2**63), 2**63 - 1)
big_integers = st.builds(
    lambda digits, sign: sign * (10**digits - 1), st.integers(1, 4300), st.sampled_from([1, -1])
)
floats = st.floats(allow_nan=False, allow_infinity=False)


def evenly(*kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return each of these as often; `one_of` would weigh a kind by its alternatives."""
    return st.sampled_from(kinds).flatmap(lambda kind: kind)


def json_of(integers: st.SearchStrategy[int]) -> st.SearchStrategy[Any]:
    """Return every form in which a host may hold a JSON value with such integers."""
    scalars = st.none() | st.booleans() | integers | floats | texts
    members = st.sampled_from([*Way, *Level, *Half])

    def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        arrays = st.lists(inner, max_size=4)
        objects = st.dictionaries(texts | st.sampled_from(Way), inner, max_size=4)
        kinds = st.sampled_from([OrderedDict, UserDict, ChainMap])
        return (
            arrays
            | arrays.map(tuple)
            | objects
            | st.builds(lambda kind, items: kind(items), kinds, objects)
        )

    deep = st.integers(1, 80).map(nested)
    plain = scalars | members | deep
    return evenly(plain, st.recursive(plain, containers, max_leaves=12))


integers = st.integers() | big_integers
json_values = json_of(integers)


def _local(time: datetime, zone: tzinfo) -> datetime:
    try:
        return time.astimezone(zone)
    except OverflowError:
        return time


_day = timedelta(days=1) - timedelta.resolution
_zones = st.timedeltas(-_day, _day).map(timezone)
zones = _zones | st.timezones() if available_timezones() else _zones
times = st.builds(_local, st.datetimes(timezones=st.just(UTC)), zones)
_spellings = ["2026-03-02T09:00:00.000000Z", "2026-03-02 09:00:00.5+05:30", "2026-03-02T09:00-05"]
_bits = st.text("0123456789-:.,+TtZzW \0", max_size=7) | st.sampled_from(
    ["W10-1", "24", "60", "Z\0\0"]
)
nearly_times = st.builds(
    lambda text, start, end, bit: text[:start] + bit + text[end:],
    st.sampled_from(_spellings),
    st.integers(0, 27),
    st.integers(0, 27),
    _bits,
)


def _interrupts(status: str) -> st.SearchStrategy[Interrupt]:
    return st.builds(
        Interrupt,
        id=names,
        tool_call_id=names,
        arguments_digest=names,
        expires_at=st.none() | times,
        reason=names,
        message=st.none() | texts,
        status=st.just(status),
        decided_at=st.none() if status == "pending" else times,
        created_at=st.none() | times,
    )


interrupts = st.one_of(map(_interrupts, Interrupt.STATUSES))
failures = st.fixed_dictionaries({"message": names}, optional={"code": st.none() | names})


def records_of(integers: st.SearchStrategy[int]) -> st.SearchStrategy[RunRecord]:
    """Return records of every status, each with what goes with it."""
    snapshots = json_of(integers)
    raised = st.lists(interrupts, min_size=1, max_size=3, unique_by=lambda raised: raised.id)

    def records(status: str) -> st.SearchStrategy[RunRecord]:
        return st.builds(
            RunRecord,
            scope=names,
            thread_id=names,
            run_id=names,
            digest=names,
            created_at=times,
            status=st.just(status),
            sequence=integers.map(abs),
            snapshot=snapshots,
            interrupts=raised if status == "interrupted" else st.just(()),
            failure=st.none() | failures if status == "failed" else st.none(),
            updated_at=st.none() | times,
        )

    return st.one_of(map(records, RunRecord.STATUSES))


records = records_of(integers)
values = interrupts | records

_hashable_junk = st.one_of(
    st.sampled_from([float("nan"), float("inf"), -float("inf"), Decimal("7"), 1j, ...]),
    st.sampled_from(["\ud800", "a\udc88", "", " ", "soon", "2026-03-02T09:00:00", "pending"]),
    st.sampled_from([datetime.max, date(2026, 3, 2), T0.timetz(), timedelta(1), UTC]),
    st.sampled_from([datetime.max.replace(tzinfo=timezone(-HOUR)), datetime.min, T0]),
    st.sampled_from([make_ask(), make_ask().decide("denied", now=T0), Way.DONE, Level.LOW]),
    st.sampled_from([Interrupt, len, range(3), b"", b"x", frozenset("x")]),
    st.text(st.characters(), max_size=3) | st.integers() | st.floats() | st.booleans() | st.none(),
)
_mutable_junk = st.one_of(
    st.builds(bytearray),
    st.builds(SimpleNamespace, message=texts),
    st.sets(texts, max_size=2),
    st.lists(texts | st.integers(), min_size=1, max_size=2).map(Ghost),
    st.builds(Husk),
    st.integers(101, 150).map(nested),
)


def _junk_containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = st.sampled_from(["message", "code", "id"]) | _hashable_junk
    objects = st.dictionaries(keys, inner, max_size=3)
    arrays = st.lists(inner, max_size=3)
    return st.one_of(
        arrays,
        arrays.map(tuple),
        arrays.map(deque),
        objects,
        objects.map(UserDict),
        objects.map(lambda items: defaultdict(list, items)),
    )


_plain_junk = _hashable_junk | _mutable_junk | json_values
_nested_junk = st.recursive(_plain_junk, _junk_containers, max_leaves=6)
junk = evenly(_plain_junk, _nested_junk)


@st.composite
def spoiled(draw: st.DrawFn, values: st.SearchStrategy[Interrupt | RunRecord]) -> dict[str, Any]:
    """Return a stored row with one value in it, at any depth, lost or replaced by junk."""
    row: Any = draw(values).to_storage()
    place = row
    while True:
        key = draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
        inner = place[key]
        if not isinstance(inner, (dict, list)) or not inner or draw(st.booleans()):
            break
        place = inner
    place[key] = draw(junk)
    if draw(st.integers(0, 7)) == 7:
        del place[key]
    return row
