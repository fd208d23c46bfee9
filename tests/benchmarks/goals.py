"""The goals: each a ratio of two times, or of two amounts of memory, within one run."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Goal:
    """One ratio that must not be exceeded, and where in the figures it stands."""

    title: str
    at_most: float
    path: tuple[str, ...]
    is_left: bool = False
    """Whether it was given up: docs/performance.md says why, and it is not judged."""


def _against(operation: str, peer: str, left: str = "", **limits: float) -> list[Goal]:
    """Return a goal for each size: our time at most so much of the peer's."""
    return [
        Goal(
            f"{operation}, {size}: of {peer}",
            at_most,
            ("operations", f"{operation} {size}", "ratio", peer),
            is_left=size in left.split(),
        )
        for size, at_most in limits.items()
    ]


DECIDE = "decide, replace_interrupt"

GOALS = [
    *_against("advance", "pydantic", W1=0.15, W2=0.15, W3=0.15),
    *_against("advance", "dataclass", W1=0.08, W2=0.08, W3=0.08),
    *_against("advance", "msgspec", W1=1.1, W2=0.6, W3=0.25),
    Goal("advance, W3: of W1", 1.05, ("operations", "advance, W1 and W3", "ratio", "W1")),
    Goal("advance: of the bare copy", 1.3, ("operations", "advance, bare", "ratio", "bare")),
    *_against("from_storage", "types only", W1=2.3, W2=1.3, W3=1.15),
    *_against("construction", "types only", W1=2.3, W2=1.3, W3=1.15),
    Goal(
        "a snapshot with one key changed: of freezing it whole",
        0.01,
        ("sharing", "one key", "ratio", "whole"),
    ),
    Goal(
        "a list of 1,000 with one message more: of freezing it whole",
        0.05,
        ("sharing", "one message", "ratio", "whole"),
    ),
    Goal(
        "5,000 records that hold the state before twice: seconds until refused",
        1.0,
        ("sharing", "chain", "taken"),
    ),
    Goal("memory of 1,000 successive snapshots: of one", 2.0, ("sharing", "memory", "ratio")),
    *_against("from_storage", "pydantic", W1=0.40, W2=0.75, W3=0.90),
    *_against("from_storage", "msgspec, frozen", W2=1.2, W3=1.2),
    *_against("to_storage", "pydantic", W1=0.9, W2=0.45, W3=0.35),
    *_against(DECIDE, "pydantic", left="W3", W2=0.25, W3=0.25),
    *_against(DECIDE, "msgspec", left="W2", W2=0.65, W3=0.65),
    *_against("construction", "pydantic", W1=0.8, W2=1.0, W3=1.0),
    Goal("memory of a W1 record: of msgspec", 1.02, ("memory", "record", "msgspec")),
    Goal("memory of a W1 record: of pydantic", 0.36, ("memory", "record", "pydantic")),
    Goal(
        "import: of the standard-library modules",
        1.1,
        ("importing", "ratio", "its standard-library modules"),
        is_left=True,
    ),
    Goal("digest, small: of rfc8785", 0.7, ("digests", "small", "ratio", "rfc8785")),
    Goal("digest, 64 KB: of rfc8785", 0.7, ("digests", "64 KB", "ratio", "rfc8785")),
    Goal(
        "advance, snapshot of up to 16 MB: of none",
        1.1,
        ("flat", "snapshot", "most"),
    ),
    Goal(
        "advance, up to 10,000 interrupts: of none",
        1.1,
        ("flat", "interrupts", "most"),
    ),
    *[
        Goal(f"{operation}: exponent of growth", 1.2, ("growth", operation, "slope"))
        for operation in ("from_storage", "to_storage", "digest", "answer")
    ],
]

FAST = 2e-6
"""What takes less than this is measured in three processes, and the best one counts."""


def measured(goal: Goal, runs: list[dict[str, Any]]) -> float:
    """Return the ratio that counts for a goal: the best one where it is fast, else the middle."""
    kind, *path = goal.path
    if kind == "memory":
        *way, peer = path
        taken = _at(runs[0][kind], way)
        return taken["agui_runs"] / taken[peer]
    figures = [run[kind] for run in runs if kind in run]
    ratios = sorted(_at(each, path) for each in figures)
    times = _at(figures[0], path[:-2]).get("seconds", {})
    fast = kind == "flat" or next(iter(times.values()), FAST) < FAST
    return ratios[0] if fast else ratios[len(ratios) // 2]


def _at(figures: Any, path: list[str]) -> Any:
    for step in path:
        figures = figures[step]
    return figures
