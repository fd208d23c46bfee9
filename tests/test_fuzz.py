"""The harness of tests/fuzz: it passes on its seeds, and each thing that it asks can fail.

Without the fuzzer itself, which only some Pythons have: `.ci/run` runs that for a minute.
"""

import json
import random

import pytest

from agui_runs import Interrupt
from builders import T0, make_ask
from fuzz import doors
from fuzz.mutation import mutate
from fuzz.seeds import seeds

LONG = [{"id": "x", "n": 1.0}] * 150
ROW = make_ask().to_storage()


def doubled(data):
    return data + data


@pytest.mark.parametrize("seed", [*seeds()], ids=lambda seed: f"{str(seed)[:40]!r}")
def test_a_seed_goes_through_every_door(seed):
    doors.check(seed)


def test_mutated_seeds_go_through_every_door():
    dice = random.Random(1)
    for value in seeds():
        text = json.dumps(value).encode()
        for _ in range(5):
            text = mutate(text, 4096, dice.getrandbits(32), doubled)
            assert len(text) <= 4096
            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                continue
            doors.check(value)


@pytest.mark.parametrize("door", doors.DOORS)
def test_every_door_opens_for_some_seed(door):
    made = [doors.through(doors.DOORS[door], seed)[0] for seed in seeds()]
    assert any(value is not None for value in made)


def squared(value):
    for _ in value:
        doors.through(doors.DOORS["advance"], value)


def greedy(value):
    return [[*range(1000)] for _ in value] and None


@pytest.mark.parametrize(
    ("door", "complaint"),
    [
        (lambda value: value.pop(), "planted changed its input"),
        (lambda value: value.append(True), "planted changed its input"),
        (squared, "planted ran"),
        (greedy, "planted took"),
    ],
)
def test_what_does_not_hold_is_noticed(door, complaint):
    with pytest.raises(AssertionError, match=f"^{complaint}"):
        doors.check([*LONG], {"planted": door})


def test_an_error_of_another_kind_is_noticed():
    with pytest.raises(KeyError):
        doors.check(LONG, {"planted": lambda value: {}["x"]})


def test_a_value_that_storage_does_not_bring_back_is_noticed(monkeypatch):
    decided = make_ask().decide("denied", now=T0)
    monkeypatch.setattr(Interrupt, "to_storage", lambda self: ROW)
    with pytest.raises(AssertionError, match=r"^planted gave what storage does not bring back"):
        doors.check(ROW, {"planted": lambda value: decided})
