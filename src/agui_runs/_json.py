"""JSON values: checked and frozen once on the way in, thawed on the way out.

`FrozenDict` and `FrozenList` are real dicts and lists, so every encoder takes them
as they are and they equal their plain counterparts; only changing them is refused.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, NoReturn, TypeAlias

from ._fields import Where, cut, is_encodable, kind, shown
from .errors import ConfigurationError

JSONValue: TypeAlias = (
    bool | int | float | str | Sequence["JSONValue"] | Mapping[str, "JSONValue"] | None
)

MAX_DEPTH = 100
"""How deep arrays and objects may nest: every common encoder takes this much."""

MAX_DIGITS = 4300
"""How many digits an int may have: `json` writes no more unless Python is told to."""

TOO_LARGE = 10**MAX_DIGITS
_TOO_LARGE_BITS = TOO_LARGE.bit_length()


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError(f"{type(self).__name__} is frozen: change a plain copy and pass that on")


# It stands in for methods of every signature.
_refused: Any = _refuse


class FrozenDict(dict[str, JSONValue]):
    """A JSON object that cannot change; only `freeze` makes one."""

    __slots__ = ()

    __init__ = __setitem__ = __delitem__ = __ior__ = _refused
    clear = pop = popitem = setdefault = update = _refused

    def __hash__(self) -> int:  # type: ignore[override]  # A dict can change, so it has none.
        return hash(frozenset(self.items()))

    def __copy__(self) -> "FrozenDict":
        return self

    def __deepcopy__(self, memo: object) -> "FrozenDict":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _frozen_container, (thaw(self), MAX_DEPTH)


class FrozenList(list[JSONValue]):
    """A JSON array that cannot change; only `freeze` makes one."""

    __slots__ = ()

    __init__ = __setitem__ = __delitem__ = __iadd__ = __imul__ = _refused
    append = clear = extend = insert = pop = remove = reverse = sort = _refused

    def __hash__(self) -> int:  # type: ignore[override]  # A list can change, so it has none.
        return hash(tuple(self))

    def __copy__(self) -> "FrozenList":
        return self

    def __deepcopy__(self, memo: object) -> "FrozenList":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _frozen_container, (thaw(self), MAX_DEPTH)


class _OpenDict(dict[str, JSONValue]):
    """A FrozenDict that is still being written, sealed like a record by its `__class__`."""

    __slots__ = ()


class _OpenList(list[JSONValue]):
    """A FrozenList that is still being written."""

    __slots__ = ()


def freeze(value: object, where: Where, name: str) -> Any:
    """Check a JSON value and return it frozen; what is frozen already stays itself."""
    if type(value) is FrozenDict or type(value) is FrozenList:
        return value
    try:
        return _frozen(value, MAX_DEPTH)
    except _NotJSONError as refusal:
        path = cut("".join(map(_step, reversed(refusal.places))))
        problem = f"{where.of(name)}{path}: {refusal.problem}"
    raise ConfigurationError(problem)


_FROZEN = frozenset({FrozenDict, FrozenList})


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
    """Return the frozen form of a value that may nest as deep as there is room."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        plain = str.__str__(value)
        if not is_encodable(plain):
            raise _NotJSONError("text holds a lone surrogate, which no store can encode")
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
    if isinstance(value, (dict, list, tuple, Mapping)):
        return _frozen_container(value, room)
    raise _NotJSONError(f"{kind(value)} is not a JSON value")


def _frozen_container(value: list[Any] | tuple[Any, ...] | Mapping[Any, Any], room: int) -> Any:
    """Copy a container whole, then replace in the copy whatever cannot stay as it is."""
    if not room:
        raise _NotJSONError(f"nested deeper than {MAX_DEPTH} levels, or inside itself")
    frozen: Any
    sealed: type
    places: Iterable[tuple[Any, Any]]
    if type(value) is not dict and isinstance(value, (list, tuple)):
        sealed, frozen = FrozenList, _OpenList(value)
        places = enumerate(frozen)
    else:
        plain = type(value) is dict or type(value) is FrozenDict
        sealed, frozen = FrozenDict, _OpenDict(value if plain else _plain_keys(value))
        for key in frozen:
            if type(key) is not str or not key.isascii():
                frozen = _OpenDict(_plain_keys(frozen))
                break
        places = frozen.items()
    for place, item in places:
        # Nearly all that stands in a snapshot is plain scalars, and they cost no call.
        what = type(item)
        if what is str:
            if item.isascii() or is_encodable(item):
                continue
        elif what is int:
            if item.bit_length() < _TOO_LARGE_BITS:
                continue
        elif what is float:
            if isfinite(item):
                continue
        elif item is None or what is bool:
            continue
        try:
            if what is dict or what is list:
                frozen[place] = _frozen_container(item, room - 1)
            else:
                frozen[place] = _frozen(item, room - 1)
        except _NotJSONError as refusal:
            refusal.places.append(place)
            raise
    frozen.__class__ = sealed
    return frozen


def _plain_keys(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a dict of the mapping's items under exact, encodable str keys."""
    plain: dict[str, Any] = {}
    for key in mapping:
        if not isinstance(key, str):
            raise _NotJSONError(f"a key must be a str, not {kind(key)}")
        name = str.__str__(key)
        if not is_encodable(name):
            raise _NotJSONError(
                f"the key {shown(name)} holds a lone surrogate, which no store can encode"
            )
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
