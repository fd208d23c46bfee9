"""Small changes to a JSON value, of the kinds that clients, stores and other writers make."""

import json
import random
from collections.abc import Callable
from typing import Any

KEYS = (
    *("scope", "threadId", "runId", "digest", "status", "sequence", "snapshot", "failure"),
    *("interrupts", "createdAt", "updatedAt", "id", "toolCallId", "argumentsDigest", "reason"),
    *("message", "expiresAt", "decidedAt", "code", "resume", "interruptId", "payload"),
    *("approved", "editedArgs", "\ud800", "", "a b"),
)
SCALARS = (
    *(None, True, False, 0, 1, -1, 7.0, 0.5, -0.0, 1e300, float("nan"), float("inf"), 2**64),
    *(10**4299, "", " ", "\u3000", "\0", "\ud800", "\U0001f600", "x", "a1", "ask-1", "ask-2"),
    *("reserved", "started", "succeeded", "interrupted", "cancelled", "failed", "pending"),
    *("approved", "denied", "resolved", "true", "2026-03-02T09:00:00.000000Z", "soon"),
    *("2026-03-02 09:00+00", "2026-02-29T09:00Z", "9999-12-31T23:59:59-01", "0001-01-01T00:00+01"),
)


def mutate(data: bytes, max_size: int, seed: int, bend: Callable[[bytes], bytes]) -> bytes:
    """Return the text of another value; `bend` changes bytes as the fuzzer has learnt to."""
    dice = random.Random(seed)
    try:
        value = json.loads(data)
        for _ in range(dice.choice((1, 1, 2, 4))):
            value = changed(value, dice, bend)
        text = json.dumps(value).encode()
    except (ValueError, RecursionError):
        text = bend(data)
    return text if len(text) <= max_size else bend(data)[:max_size]


def changed(value: Any, dice: random.Random, bend: Callable[[bytes], bytes]) -> Any:
    """Return the value with one place in it changed, at any depth."""
    if isinstance(value, dict) and value and dice.random() < 0.8:
        key = dice.choice([*value])
        match dice.randrange(8):
            case 0:
                return {each: value[each] for each in value if each != key}
            case 1:
                return {**value, dice.choice(KEYS): value[key]}
            case 2:
                return {**value, dice.choice(KEYS): dice.choice(SCALARS)}
            case _:
                return {**value, key: changed(value[key], dice, bend)}
    if isinstance(value, list) and value and dice.random() < 0.8:
        place = dice.randrange(len(value))
        match dice.randrange(8):
            case 0:
                return value[:place] + value[place + 1 :]
            case 1:
                return value * dice.choice((2, 3, 50))
            case _:
                inner = changed(value[place], dice, bend)
                return [*value[:place], inner, *value[place + 1 :]]
    match dice.randrange(6):
        case 0:
            return [value] * dice.choice((1, 2, 30))
        case 1:
            return {dice.choice(KEYS): value}
        case 2:
            for _ in range(dice.choice((2, 99, 120))):
                value = [value]
            return value
        case 3 if isinstance(value, str):
            return value * dice.choice((2, 100))
        case 4 if isinstance(value, str):
            return bend(value.encode(errors="surrogatepass")).decode(errors="surrogateescape")
        case _:
            return dice.choice(SCALARS)
