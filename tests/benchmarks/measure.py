"""How time and memory are measured.

Whatever is compared takes turns of milliseconds, so that a busy machine slows all alike,
and it is the processor's time that counts, without the time that other programs had.
"""

import gc
import math
import os
import statistics
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from time import process_time
from timeit import Timer
from typing import Any

AGAIN = "again"
"""The name under which a statement is timed a second time, to show the noise."""


class Times:
    """The seconds that each of several statements took, round by round."""

    def __init__(self, samples: dict[str, list[float]]) -> None:
        self.samples = samples

    def median(self, name: str) -> float:
        """Return the median seconds of one execution."""
        return statistics.median(self.samples[name])

    def ratio(self, name: str, other: str) -> float:
        """Return the median, over the rounds, of one statement's time by another's.

        Both sides of each quotient were timed within milliseconds of one another, so
        what else the machine was doing mostly cancels out.
        """
        pairs = zip(self.samples[name], self.samples[other], strict=True)
        return statistics.median([mine / theirs for mine, theirs in pairs])


def interleaved(
    statements: dict[str, tuple[str, dict[str, Any]]], *, rounds: int, seconds: float
) -> Times:
    """Time statements, each with its globals, in turns of about that many seconds.

    The first one is timed a second time as `AGAIN`. Every round starts at another
    statement, and garbage is collected only between the rounds.
    """
    first = next(iter(statements))
    turns = {**statements, AGAIN: statements[first]}
    timers = {
        name: Timer(code, timer=process_time, globals=names)
        for name, (code, names) in turns.items()
    }
    loops = {name: _loops(timer, seconds) for name, timer in timers.items()}
    samples: dict[str, list[float]] = {name: [] for name in turns}
    order = list(turns)
    gc.disable()
    try:
        for _ in range(rounds):
            order.append(order.pop(0))
            for name in order:
                samples[name].append(timers[name].timeit(loops[name]) / loops[name])
            gc.collect()
    finally:
        gc.enable()
    return Times(samples)


def _loops(timer: Timer, seconds: float) -> int:
    """Return how many executions take about that long, after a warm-up."""
    loops = 1
    while True:
        took = timer.timeit(loops)
        if took >= seconds / 4 or took >= 0.05:
            return max(1, round(loops * seconds / took))
        loops *= 4


def bytes_each(make: Callable[[], object], count: int) -> float:
    """Return how much memory one more of what `make` returns takes, list entry included."""
    kept = [make() for _ in range(10)]  # Whatever is made once and kept for all is made here.
    kept.clear()
    gc.collect()
    tracemalloc.start()
    try:
        kept = [make() for _ in range(count)]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return taken / len(kept)


def imports(codes: dict[str, str], *, rounds: int) -> Times:
    """Time statements that import, each in a process of its own, in turns.

    Bytecode is kept for all of them alike, as an installation keeps it.
    """
    samples: dict[str, list[float]] = {name: [] for name in codes}
    with tempfile.TemporaryDirectory() as cache:
        kept = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        for turn in range(-1, rounds):
            for name, code in codes.items():
                timed = f"from time import process_time as t; s = t(); {code}; print(t() - s)"
                command = [sys.executable, "-c", timed]
                done = subprocess.run(command, env=kept, check=True, stdout=subprocess.PIPE)
                if turn >= 0:  # The first turn writes the bytecode.
                    samples[name].append(float(done.stdout))
    return Times(samples)


def slope(points: list[tuple[float, float]]) -> float:
    """Return the exponent of growth: the slope of the line through the points, log by log."""
    xs = [math.log(x) for x, _ in points]
    ys = [math.log(y) for _, y in points]
    return statistics.linear_regression(xs, ys).slope
