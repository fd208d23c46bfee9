"""What a call costs grows with what it is given and no faster, counted in lines and bytes.

The fuzzer looks for any value that is dear. Here each way to be long is made four times as long.
"""

import pytest

from agui_runs import RunRecord, digest
from builders import FAILURE, T0, make_ask, make_run
from fuzz.doors import measured

LIVE = make_run().start(now=T0)


def pause(size):
    return LIVE.interrupted([make_ask(id=f"ask-{number}") for number in range(size)], now=T0)


def drops(size):
    return [{"interruptId": f"ask-{number}", "status": "cancelled"} for number in range(size)]


def row(size, **over):
    last = {**make_ask(id="last").to_storage(), **over}
    stored = pause(size).to_storage()
    return {**stored, "interrupts": [*stored["interrupts"], last]}


LAST = [{"x": float("nan")}]
CASES = {
    "load interrupts": lambda size: (RunRecord.from_storage, row(size)),
    "load a bad last interrupt": lambda size: (RunRecord.from_storage, row(size, status="x")),
    "load a repeated last id": lambda size: (RunRecord.from_storage, row(size, id="ask-0")),
    "load long text": lambda size: (RunRecord.from_storage, {**row(1), "scope": "é" * size * 99}),
    "load a long time": lambda size: (
        RunRecord.from_storage,
        {**row(1), "createdAt": f"2026-03-02T09:00:00.{'9' * size * 99}Z"},
    ),
    "load a long broken time": lambda size: (
        RunRecord.from_storage,
        {**row(1), "createdAt": f"2026-03-02T09:00:00.{'9' * size * 99}"},
    ),
    "answer": lambda size: (answer(size), drops(size)),
    "answer all but the last": lambda size: (answer(size), drops(size - 1)),
    "answer nothing": lambda size: (answer(size), []),
    "answer one more": lambda size: (answer(size), drops(size + 1)),
    "answer the last twice": lambda size: (answer(size), [*drops(size), *drops(size)[-1:]]),
    "pause": lambda size: (lambda asks: LIVE.interrupted(asks, now=T0), pause(size).interrupts),
    "replace the last": lambda size: (
        lambda run: run.replace_interrupt(run.interrupts[-1].decide("denied", now=T0), now=T0),
        pause(size),
    ),
    "fail in many keys": lambda size: (
        lambda failure: LIVE.finish("failed", now=T0, failure=failure),
        {**FAILURE, **{str(number): 1 for number in range(size)}},
    ),
    "write": lambda size: (RunRecord.to_storage, pause(size)),
    "tell": lambda size: (RunRecord.to_protocol, pause(size)),
    "a long array": lambda size: (advance, [0.5] * size),
    "a long array that ends badly": lambda size: (advance, [0.5] * size + LAST),
    "an array of arrays": lambda size: (advance, [[]] * size),
    "an object of many keys": lambda size: (advance, dict.fromkeys(map(str, range(size)))),
    "an object of unusual keys": lambda size: (
        advance,
        {chr(0x1000 + number): number for number in range(size)},
    ),
    "a long text in a snapshot": lambda size: (advance, "é" * size * 99),
    "a digest of many keys": lambda size: (digest, {str(key): [1] for key in range(size)}),
    "a digest of a long array": lambda size: (digest, [0.5, "é", None] * size),
}


def answer(size):
    run = pause(size)
    return lambda entries: run.answer(entries, now=T0)


def advance(snapshot):
    return LIVE.advance(now=T0, snapshot=snapshot)


def cost(case, size):
    _, lines, taken = measured(*CASES[case](size))
    return lines, taken


@pytest.mark.parametrize("case", CASES)
def test_four_times_as_long_costs_four_times_as_much_at_most(case):
    cost(case, 100)  # What is imported or kept at first use is not counted.
    lines, taken = cost(case, 200)
    more_lines, more_taken = cost(case, 800)
    # A hash table doubles when it is full, so bytes come in steps.
    assert (more_lines <= 4 * lines + 100, more_taken <= 6 * taken + 5_000) == (True, True)


def test_what_costs_the_square_is_noticed():
    costs = [measured(lambda runs: [advance(runs) for _ in runs], [0] * size) for size in (20, 80)]
    assert costs[1][1] > 8 * costs[0][1]
