"""One digest for one JSON value, whoever computes it: SHA-256 over RFC 8785 (JCS) text."""

from collections.abc import Callable
from functools import cache
from typing import Any

from ._fields import Where
from ._json import FrozenDict, FrozenList, JSONValue, freeze

_ARGUMENT = Where("digest")


def digest(value: JSONValue) -> str:
    """Return the lower-case hex SHA-256 of a JSON value's canonical text (RFC 8785).

    It is for `RunRecord.digest` and `Interrupt.arguments_digest`. Key order, spacing and
    escaping make no difference, nor does `1.0` for `1`, so every language that follows
    the RFC gets the same. Integers beyond 2**53 - 1, which the RFC leaves out, are
    written exactly, digit by digit. What a snapshot refuses raises `ConfigurationError`.

    >>> digest({"to": "a", "n": 1.0}) == digest({"n": 1, "to": "a"})
    True
    >>> digest({"n": True}) == digest({"n": 1})
    False
    """
    sha256, quoted = _imported()
    text = _canonical_text(freeze(value, _ARGUMENT, "value"), quoted)
    found: str = sha256(text.encode()).hexdigest()
    return found


@cache
def _imported() -> tuple[Callable[[bytes], Any], Callable[[str], str]]:
    """Return what is slow to import, and not needed before the first tool call."""
    from hashlib import sha256
    from json.encoder import encode_basestring

    return sha256, encode_basestring


def _canonical_text(value: Any, quoted: Callable[[str], str]) -> str:
    kind = type(value)
    if kind is str:
        return quoted(value)
    if kind is int:
        return str(value)
    if kind is FrozenDict:
        # RFC 8785 sorts keys by UTF-16 code units, which for ASCII is Python's own order.
        ascii_keys = "".join(value).isascii()
        keys = sorted(value) if ascii_keys else sorted(value, key=_utf_16)
        return (
            "{" + ",".join([f"{quoted(k)}:{_canonical_text(value[k], quoted)}" for k in keys]) + "}"
        )
    if kind is FrozenList:
        return "[" + ",".join([_canonical_text(item, quoted) for item in value]) + "]"
    if kind is float:
        return _number(value)
    return "null" if value is None else "true" if value else "false"


def _utf_16(key: str) -> bytes:
    return key.encode("utf-16-be")


def _number(value: float) -> str:
    """Return a float as ECMAScript writes it (RFC 8785, section 3.2.2.3).

    Python finds the same shortest digits; it differs in when it shows an exponent.
    """
    if value == 0:
        return "0"
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        return mantissa.removesuffix(".0")
    power = int(exponent)
    if not -7 < power < 21:
        return f"{mantissa}e{power:+d}"
    sign = "-" if value < 0 else ""
    digits = mantissa.lstrip("-").replace(".", "")
    if power > 0:
        return f"{sign}{digits:0<{power + 1}}"
    return f"{sign}0.{'0' * (-power - 1)}{digits}"
