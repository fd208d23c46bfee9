"""Times: aware and in UTC inside, ISO 8601 text outside.

The stored text has always six fraction digits and always `Z`, so that the order
of the texts is the order of the times, which lets a store index and compare them.
"""

import re
from datetime import UTC, datetime

from ._fields import Where, kind, shown
from .errors import ConfigurationError

# What other writers of the same rows use beside our own form. `fromisoformat` takes
# more (week dates, 24:00, a comma), and not the same on every Python version.
_ISO_8601 = (
    r"(\d{4}-\d\d-\d\d)[T ]"
    r"((?:[01]\d|2[0-3]):[0-5]\d)(?::([0-5]\d)(?:\.(\d+))?)?"
    r"(Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)"
)

_ZEROS = bytes.maketrans(b"123456789", b"000000000")

# Looked up once, since to find it costs as much as to call it.
_fromisoformat = datetime.fromisoformat


def utc(value: object, where: Where, name: str) -> datetime:
    """Check a time that came as an argument, and move it to UTC."""
    if type(value) is datetime and value.tzinfo is UTC:
        return value
    if not isinstance(value, datetime):
        raise ConfigurationError(
            f"{where.of(name)} must be a timezone-aware datetime, not {kind(value)}"
        )
    try:
        offset = value.utcoffset()
        if offset is None:
            problem = "must be a timezone-aware datetime, not a naive one"
        else:
            moved = value.replace(tzinfo=None) - offset
            # A subclass (a test clock's, pandas') becomes what a store brings back.
            return datetime.combine(moved.date(), moved.time(), UTC)
    except OverflowError:
        problem = "leaves the calendar when moved to UTC"
    except ValueError:
        # pandas' "not a time" is a datetime too, until it is asked anything.
        problem = f"must be a timezone-aware datetime, not {kind(value)}"
    raise ConfigurationError(f"{where.of(name)} {problem}")


def to_text(time: datetime) -> str:
    """Return the stored form, such as `2026-11-30T10:00:00.000000Z`."""
    # The parts are formatted one by one because an aware isoformat works out its offset,
    # and with a timespec only where it says something, because reading one takes time.
    clock = time.time().isoformat() if time.microsecond else time.time().isoformat("microseconds")
    return f"{time.date().isoformat()}T{clock}Z"


def to_text_or_none(time: datetime | None) -> str | None:
    """Return the stored form of a time that may be missing."""
    return None if time is None else to_text(time)


def to_wire(time: datetime) -> str:
    """Return the form for clients: JavaScript's milliseconds, cut and never rounded up."""
    return f"{time.date().isoformat()}T{time.time().isoformat('milliseconds')}Z"


def from_text(value: object, where: Where, name: str) -> datetime:
    """Read a stored time."""
    if isinstance(value, str):
        text = value if type(value) is str else str.__str__(value)
        try:
            # Nearly every text is our own, in whose form fromisoformat is strict everywhere,
            # but for the hour 24.
            in_zeros = text.encode().translate(_ZEROS)
            if in_zeros == b"0000-00-00T00:00:00.000000Z" and "T24" not in text:
                return _fromisoformat(text)
            time = _fromisoformat(_respelled(text))
        except ValueError:
            given = shown(text)
        else:
            return utc(time, where, name)
    else:
        given = kind(value)
    raise ConfigurationError(f"{where.of(name)} must be an ISO 8601 time with a zone, not {given}")


def _respelled(text: str) -> str:
    """Return the accepted spellings in one that fromisoformat reads everywhere."""
    match = re.fullmatch(_ISO_8601, text, re.ASCII)
    if match is None:
        raise ValueError
    date, minutes, seconds, fraction, zone = match.groups()
    return f"{date}T{minutes}:{seconds or '00'}.{(fraction or '')[:6]:0<6}{zone}"
