"""The field checks that both values share, and the words in which they refuse.

A check takes the value, where it stands and its name. It returns the value in the
one form that the package keeps, or raises a `ConfigurationError` that names it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import FrozenInstanceError, fields
from typing import Any, NoReturn, TypeVar

from .errors import ConfigurationError

_Name = TypeVar("_Name", bound=str)
_Value = TypeVar("_Value")

NOT_ENCODABLE = "holds a lone surrogate, which no store can encode"
NOT_MADE = "was not made by its constructor or from_storage"

_LONGEST = 80
_MISSING: Any = object()


class Where:
    """Where a checked value stands, so that an error can say it.

    Arguments go by their Python names and stored values by their keys: one rule
    refuses `expires_at` of a call and `expiresAt` of a row.
    """

    __slots__ = ("path", "stored", "subject")

    def __init__(self, subject: str, path: str = "", *, stored: bool = False) -> None:
        self.subject = subject
        self.path = path
        self.stored = stored

    def at(self, path: str) -> "Where":
        """Return the place of an object that stands inside this one."""
        return Where(self.subject, path, stored=self.stored)

    def of(self, name: str) -> str:
        """Return the full name of a value, such as `run record: interrupts[1].expiresAt`."""
        if self.stored:
            name = stored_key(name)
        return f"{self.subject}: {self.path}.{name}" if self.path else f"{self.subject}: {name}"

    def whole(self) -> str:
        """Return the name of the object that the values belong to."""
        itself = "the stored value" if self.stored else "the value"
        return f"{self.subject}: {self.path or itself}"


def stored_key(name: str) -> str:
    """Return the key that a field is stored under: that of `expires_at` is `expiresAt`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def stored_keys(cls: Any) -> tuple[str, ...]:
    """Return the keys that a value of this dataclass is stored under."""
    return tuple([stored_key(field.name) for field in fields(cls)])


def cut(text: str) -> str:
    """Return the text short enough for an error."""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def shown(text: str) -> str:
    """Return the text quoted for an error: cut, and escaped so that it can forge no line."""
    quoted = repr(text[: _LONGEST + 1])
    if len(quoted) <= _LONGEST + 2:
        return quoted
    return f"{quoted[: _LONGEST + 1]}...{quoted[0]}"


def kind(value: object) -> str:
    """Return the name of the value's type, all that an error says of host content."""
    return shown(type(value).__name__)[1:-1]


def is_encodable(text: str) -> bool:
    """Say whether a store can write the text: no lone surrogate stands in it."""
    try:
        # Of the encodings that refuse a lone surrogate this is the one done soonest.
        text.encode("utf-16")
    except UnicodeEncodeError:
        return False
    return True


def any_text(value: object, where: Where, name: str) -> str:
    """Check text, which may be empty; its characters stay as given."""
    if type(value) is str and value.isascii():
        return value
    if not isinstance(value, str):
        raise ConfigurationError(f"{where.of(name)} must be a str, not {kind(value)}")
    plain = str.__str__(value)
    if not is_encodable(plain):
        raise ConfigurationError(f"{where.of(name)} {NOT_ENCODABLE}")
    return plain


def nonblank_text(value: object, where: Where, name: str) -> str:
    """Check text that must say something, such as an id."""
    # Nearly every text is plain ASCII that says something, and costs no further call.
    if type(value) is str and value.isascii() and value.strip():
        return value
    plain = any_text(value, where, name)
    if not plain.strip():
        raise ConfigurationError(f"{where.of(name)} must not be blank")
    return plain


def one_of(value: object, names: tuple[_Name, ...], where: Where, name: str) -> _Name:
    """Check a status name, and return the constant that equals it."""
    plain = value if type(value) is str else _plain(value)
    if plain in names:
        return names[names.index(plain)]
    given = kind(value) if plain is None else shown(plain)
    choice = ", ".join(map(repr, names))
    raise ConfigurationError(f"{where.of(name)} must be one of {choice}, not {given}")


def _plain(value: object) -> str | None:
    return str.__str__(value) if isinstance(value, str) else None


def first_repeated(ids: Sequence[str]) -> int | None:
    """Return the index of the first id that stands earlier in the list too."""
    seen: set[str] = set()
    for index, each in enumerate(ids):
        if each in seen:
            return index
        seen.add(each)
    return None


def get(mapping: Mapping[Any, Any], key: str, default: Any = None) -> Any:
    """Return what the mapping holds under the key, however it says that it holds nothing."""
    try:
        return mapping.get(key, default)
    except KeyError:
        return default


def stored_object(value: object, keys: tuple[str, ...], where: Where) -> dict[str, Any]:
    """Check that a stored value is an object, and return a dict to read our keys from.

    A plain dict is read as it is. Any other mapping is asked for our own keys only, and
    through `get`, which adds nothing to a defaultdict.
    """
    if type(value) is dict:
        return value
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{where.whole()} must be a mapping, not {kind(value)}")
    found = {key: get(value, key, _MISSING) for key in keys}
    return {key: item for key, item in found.items() if item is not _MISSING}


def refuses_assignment(cls: type[_Value]) -> type[_Value]:
    """Let a frozen dataclass with slots say what was assigned to, field or not.

    What `dataclass` writes fails with a riddle at a name that is no field, for its `super()`
    names the class as it was before it got its slots; and it lets nobody else write it.
    """
    names = frozenset([field.name for field in fields(cls)])  # type: ignore[arg-type]

    def refuse(self: object, name: str, *_: object) -> NoReturn:
        problem = "is frozen" if name in names else f"has no field {shown(name)}, and is frozen"
        raise FrozenInstanceError(f"{cls.__name__} {problem}: make another one instead")

    changed: Any = cls
    changed.__setattr__ = changed.__delattr__ = refuse
    return cls
