"""What must hold on every edge of the lifecycle, explored to the last state there is."""

from dataclasses import replace
from itertools import product
from typing import get_args

import pytest

import model
from agui_runs import Interrupt, RunRecord
from agui_runs.errors import StreamErrorCode
from builders import HOUR
from model import EARLY, FIRST, LATEST, PROPERTIES, SECOND, START, Step, answered, call

LIVE = START.start(now=EARLY)
PAUSED = LIVE.interrupted([FIRST, SECOND], now=EARLY)
YES = FIRST.decide("approved", now=EARLY)
ANSWERED = PAUSED.replace_interrupt(YES, now=EARLY)
DONE, GONE = (LIVE.finish(status, now=EARLY) for status in ("succeeded", "cancelled"))
ADVANCE, ANSWER = call("advance"), call("answer", [])

by_name = pytest.mark.parametrize("holds", PROPERTIES, ids=lambda holds: holds.__name__)


def holding(*interrupts):
    return replace(PAUSED, interrupts=interrupts)


class Lying:
    """A record that has one method of another one, which no sound package can make."""

    from_storage = RunRecord.from_storage

    def __init__(self, record, method, other):
        self.record = record
        setattr(self, method, getattr(other, method))

    def __getattr__(self, name):
        return getattr(self.record, name)

    def __eq__(self, other):
        return self.record == other

    __hash__ = None


@by_name
def test_every_step_keeps(holds):
    assert [step for step in model.explore().steps if not holds(step)] == []


def test_no_call_takes_a_wrong_argument_changes_its_record_or_looks_at_the_sequence():
    assert model.explore().faults == []


def test_every_status_and_every_pair_of_answers_is_reached():
    states = model.explore().states
    pairs = {tuple(ask.status for ask in state.interrupts) for state in states}
    assert {state.status for state in states} == {*RunRecord.STATUSES}
    assert pairs >= {*product(Interrupt.STATUSES, repeat=2)}


def test_every_refusal_of_a_transition_is_met():
    codes = {*get_args(StreamErrorCode)} - {"run_not_ended"}
    assert {*model.explore().refused} == {*codes, "ConfigurationError"}


# A step that must not be, for each property in turn.
FORBIDDEN = [
    Step(GONE, ADVANCE, DONE),
    Step(LIVE, ADVANCE, START),
    Step(ANSWERED, ANSWER, PAUSED),
    Step(PAUSED, ANSWER, holding(answered(FIRST)[2], SECOND)),
    Step(PAUSED, ANSWER, holding(FIRST.decide("cancelled", now=LATEST), SECOND)),
    Step(PAUSED, ANSWER, ANSWERED),
    Step(PAUSED, ANSWER, holding(SECOND, FIRST)),
    Step(LIVE, call("start"), replace(LIVE, sequence=1)),
    Step(GONE, ANSWER, replace(GONE, snapshot=1)),
    Step(LIVE, ADVANCE, replace(LIVE, digest="other")),
    Step(LIVE, ADVANCE, replace(LIVE, updated_at=EARLY + HOUR)),
    Step(LIVE, call("start"), replace(LIVE, updated_at=EARLY + HOUR)),
    Step(LIVE, ADVANCE, Lying(GONE, "to_protocol", DONE)),
    Step(LIVE, ADVANCE, Lying(GONE, "to_storage", DONE)),
]


@pytest.mark.parametrize(("holds", "step"), [*zip(PROPERTIES, FORBIDDEN, strict=True)])
def test_a_forbidden_step_is_noticed(holds, step):
    assert not holds(step)


@pytest.mark.parametrize(
    ("result", "its_result"),
    [
        (ADVANCE.on(LIVE), LIVE),
        (ADVANCE.on(LIVE), replace(LIVE, sequence=9, updated_at=EARLY)),
        (LIVE, replace(LIVE, sequence=7)),
        (model.outcome(GONE, ADVANCE), LIVE),
        (model.outcome(GONE, ADVANCE), model.outcome(DONE, ADVANCE)),
    ],
)
def test_a_twin_that_goes_another_way_is_noticed(result, its_result):
    twin = replace(LIVE, sequence=7)
    assert not model.is_alike(LIVE, result, twin, its_result)
