"""The field checks that both values share, and the words in which they refuse.

A check takes the value, where it stands and its name. It returns the value in the
one form that the package keeps, or raises a `ConfigurationError` that names it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from .errors import ConfigurationError

_Name = TypeVar("_Name", bound=str)

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
            first, *rest = name.split("_")
            name = first + "".join(word.capitalize() for word in rest)
        return f"{self.subject}: {self.path}.{name}" if self.path else f"{self.subject}: {name}"

    def whole(self) -> str:
        """Return the name of the object that the values belong to."""
        return f"{self.subject}: {self.path or 'the stored value'}"


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
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def string(value: object, where: Where, name: str) -> str:
    """Check text that may be empty."""
    if type(value) is str and value.isascii():
        return value
    if not isinstance(value, str):
        raise ConfigurationError(f"{where.of(name)} must be a str, not {kind(value)}")
    plain = str.__str__(value)
    if not is_encodable(plain):
        raise ConfigurationError(
            f"{where.of(name)} holds a lone surrogate, which no store can encode"
        )
    return plain


def text(value: object, where: Where, name: str) -> str:
    """Check text that must say something, such as an id; its characters stay as given."""
    # Nearly every text is plain ASCII that says something, and costs no further call.
    if type(value) is str and value and value.isascii() and not value.isspace():
        return value
    plain = string(value, where, name)
    if not plain or plain.isspace():
        raise ConfigurationError(f"{where.of(name)} must not be blank")
    return plain


def one_of(value: object, names: tuple[_Name, ...], where: Where, name: str) -> _Name:
    """Check a status name, and return the constant that equals it."""
    if isinstance(value, str):
        plain = value if type(value) is str else str.__str__(value)
        for known in names:
            if known == plain:
                return known
        given = shown(plain)
    else:
        given = kind(value)
    choice = ", ".join(map(repr, names))
    raise ConfigurationError(f"{where.of(name)} must be one of {choice}, not {given}")


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
