"""JSON values: checked and frozen once on the way in, thawed on the way out.

`FrozenDict` and `FrozenList` are real dicts and lists, so every encoder takes them
as they are and they equal their plain counterparts; only changing them is refused.
Each knows how deep it nests, which is all that a second check would have to find out,
so what is frozen already is taken as it is, wherever it stands.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, NoReturn, TypeAlias

from ._fields import NOT_ENCODABLE, Where, cut, is_encodable, kind, shown
from .errors import ConfigurationError

JSONValue: TypeAlias = (
    bool | int | float | str | Sequence["JSONValue"] | Mapping[str, "JSONValue"] | None
)
"""What a snapshot takes: null, bool, int, finite float, str, arrays and objects of these.

>>> from agui_runs import digest
>>> value: JSONValue = {"step": 1, "items": ["A-1042", None]}
>>> digest(value)[:8]
'e6dfefae'
"""

MAX_DEPTH = 100
"""How deep arrays and objects may nest: every common encoder takes this much."""

MAX_DIGITS = 4300
"""How many digits an int may have: `json` writes no more unless Python is told to."""

TOO_LARGE = 10**MAX_DIGITS

_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels, or inside itself"


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError(f"{type(self).__name__} is frozen: change a plain copy and pass that on")


# It stands in for methods of every signature.
_refused: Any = _refuse


class FrozenDict(dict[str, JSONValue]):
    """A JSON object that cannot change; only `freeze` makes one."""

    __slots__ = ("depth",)

    depth: int

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # dataclasses.asdict calls the class for a copy, and a copy belongs to the caller.
        return dict(*args, **kwargs)

    __init__ = __setitem__ = __delitem__ = __ior__ = __setattr__ = __delattr__ = _refused
    clear = pop = popitem = setdefault = update = _refused

    def __hash__(self) -> int:  # type: ignore[override]  # A dict can change, so it has none.
        return hash(frozenset(self.items()))

    def __copy__(self) -> "FrozenDict":
        return self

    def __deepcopy__(self, memo: object) -> "FrozenDict":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (thaw(self),)


class FrozenList(list[JSONValue]):
    """A JSON array that cannot change; only `freeze` makes one."""

    __slots__ = ("depth",)

    depth: int

    def __new__(cls, *args: Any) -> Any:
        return list(*args)

    __init__ = __setitem__ = __delitem__ = __iadd__ = __imul__ = _refused
    __setattr__ = __delattr__ = _refused
    append = clear = extend = insert = pop = remove = reverse = sort = _refused

    def __hash__(self) -> int:  # type: ignore[override]  # A list can change, so it has none.
        return hash(tuple(self))

    def __copy__(self) -> "FrozenList":
        return self

    def __deepcopy__(self, memo: object) -> "FrozenList":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (thaw(self),)


class _OpenDict(dict[str, JSONValue]):
    """A FrozenDict that is still being written, sealed like a record by its `__class__`."""

    __slots__ = ("depth",)


class _OpenList(list[JSONValue]):
    """A FrozenList that is still being written."""

    __slots__ = ("depth",)


_FROZEN = frozenset({FrozenDict, FrozenList})


def freeze(value: object, where: Where, name: str) -> Any:
    """Check a JSON value and return it frozen; what is frozen already stays itself."""
    if type(value) in _FROZEN and hasattr(value, "depth"):
        return value
    try:
        return _frozen(value, MAX_DEPTH)
    except _NotJSONError as refusal:
        path = cut("".join(map(_step, reversed(refusal.places))))
        problem = f"{where.of(name)}{path}: {refusal.problem}"
    raise ConfigurationError(problem)


def _unpickled(plain: object) -> Any:
    return freeze(plain, Where("pickle"), "value")


def thaw(value: Any) -> Any:
    """Return a plain copy, all the way down, that belongs to the caller."""
    if type(value) is FrozenDict:
        fields = value.copy()
        for key, item in value.items():
            if type(item) in _FROZEN:
                fields[key] = thaw(item)
        return fields
    if type(value) is FrozenList:
        return [thaw(item) if type(item) in _FROZEN else item for item in value]
    return value


class _NotJSONError(Exception):
    """A refusal on its way up: each container that it leaves adds the place it came from."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.places: list[int | str] = []


def _step(place: int | str) -> str:
    if isinstance(place, int):
        return f"[{place}]"
    return f".{place}" if place.isidentifier() else f"[{shown(place)}]"


def _frozen(value: object, room: int) -> Any:
    """Return the frozen form of a value that may nest as deep as there is room.

    A container that is frozen and does not fit is walked like a plain one, to name the place;
    so is one that was made by force and knows no depth.
    """
    if isinstance(value, (list, tuple)):
        return _frozen_array(value, room)
    if isinstance(value, Mapping):
        return _frozen_object(value if type(value) is dict else _plain_keys(value), room)
    return _plain_scalar(value)


def _frozen_object(value: dict[str, Any], room: int) -> Any:
    """Copy an object whole, then replace in the copy whatever cannot stay as it is."""
    if not room:
        raise _NotJSONError(_TOO_DEEP)
    frozen: Any = _OpenDict(value)
    depth = 0
    for key, item in frozen.items():
        if type(key) is not str or not (key.isascii() or is_encodable(key)):
            return _frozen_object(_plain_keys(frozen), room)
        # Nearly all that stands in a snapshot is plain scalars: they cost no call, and each of
        # their bounds is compared by itself, which takes CPython less time than a chain.
        what = type(item)
        if what is str:
            if item.isascii() or is_encodable(item):
                continue
        elif what is int:
            if item <= 999_999_999 and item >= -999_999_999:
                continue
        elif what is float:
            if item <= 1e300 and item >= -1e300:
                continue
        elif what is bool or item is None:
            continue
        try:
            if what is dict:
                child = frozen[key] = _frozen_object(item, room - 1)
            elif what is list:
                child = frozen[key] = _frozen_array(item, room - 1)
            elif what in _FROZEN and getattr(item, "depth", MAX_DEPTH) < room:
                child = item
            else:
                child = frozen[key] = _frozen(item, room - 1)
                if type(child) not in _FROZEN:
                    continue
        except _NotJSONError as refusal:
            refusal.places.append(key)
            raise
        if child.depth > depth:
            depth = child.depth
    frozen.depth = depth + 1
    frozen.__class__ = FrozenDict
    return frozen


def _frozen_array(value: Iterable[Any], room: int) -> Any:
    """Copy an array in the same way; the loop is written twice, for it takes all the time."""
    if not room:
        raise _NotJSONError(_TOO_DEEP)
    frozen: Any = _OpenList(value)
    depth = 0
    for index, item in enumerate(frozen):
        what = type(item)
        if what is str:
            if item.isascii() or is_encodable(item):
                continue
        elif what is int:
            if item <= 999_999_999 and item >= -999_999_999:
                continue
        elif what is float:
            if item <= 1e300 and item >= -1e300:
                continue
        elif what is bool or item is None:
            continue
        try:
            if what is dict:
                child = frozen[index] = _frozen_object(item, room - 1)
            elif what is list:
                child = frozen[index] = _frozen_array(item, room - 1)
            elif what in _FROZEN and getattr(item, "depth", MAX_DEPTH) < room:
                child = item
            else:
                child = frozen[index] = _frozen(item, room - 1)
                if type(child) not in _FROZEN:
                    continue
        except _NotJSONError as refusal:
            refusal.places.append(index)
            raise
        if child.depth > depth:
            depth = child.depth
    frozen.depth = depth + 1
    frozen.__class__ = FrozenList
    return frozen


def _plain_scalar(value: object) -> Any:
    """Check a scalar; one of a subclass, such as an enum's member, becomes plain."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        plain = str.__str__(value)
        if not is_encodable(plain):
            raise _NotJSONError(f"text {NOT_ENCODABLE}")
        return plain
    if isinstance(value, int):
        number = int.__int__(value)
        if not -TOO_LARGE < number < TOO_LARGE:
            raise _NotJSONError(f"an int of more than {MAX_DIGITS} digits cannot be written")
        return number
    if isinstance(value, float):
        real = float.__float__(value)
        if not isfinite(real):
            raise _NotJSONError("a float that is not finite is not a JSON value")
        return real
    raise _NotJSONError(f"{kind(value)} is not a JSON value")


def _plain_keys(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a dict of the mapping's items under exact, encodable str keys."""
    plain: dict[str, Any] = {}
    for key in mapping:
        if not isinstance(key, str):
            raise _NotJSONError(f"a key must be a str, not {kind(key)}")
        name = str.__str__(key)
        if not is_encodable(name):
            raise _NotJSONError(f"the key {shown(name)} {NOT_ENCODABLE}")
        if name in plain:
            raise _NotJSONError(f"two keys are the same text {shown(name)}")
        try:
            plain[name] = mapping[key]
        except KeyError:
            missing = True
        else:
            missing = False
        if missing:
            raise _NotJSONError(f"the mapping lists a key {shown(name)} that it does not hold")
    return plain
