"""One request takes one answer, in time; and a pause waits for all of them."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timezone
from functools import partial

import pytest

from agui_runs import Interrupt
from builders import HOUR, SEC, T0, make_ask, via_json
from examples import (
    ASK,
    ASK_2,
    DONE,
    DROPPED,
    HALF,
    LIVE,
    NO,
    PAUSED,
    SECRET,
    STATEFUL,
    YES,
    code,
    each,
    each_decision,
)

EXPIRY, MICRO = ASK.expires_at, SEC / 1_000_000
LAST = datetime.max.replace(tzinfo=UTC)


@each("later", [0 * SEC, SEC, HOUR], ids=["at once", "later", "after expiry"])
@each("second", Interrupt.DECISIONS)
@each("first", Interrupt.DECISIONS)
def test_an_answered_interrupt_takes_no_second_answer(first, second, later):
    decided = ASK.decide(first, now=T0)
    assert code(decided.decide, second, now=T0 + later) == "interrupt_decided"
    held = PAUSED.replace_interrupt(decided, now=T0)
    again = replace(ASK, status=second, decided_at=T0 + later + MICRO)
    assert code(held.replace_interrupt, again, now=T0) == "interrupt_decided"
    assert code(held.replace_interrupt, ASK, now=T0) == "interrupt_decided"


@each("answer", [YES, NO, DROPPED], ids=lambda answer: answer.status)
def test_cancelling_what_is_pending_leaves_the_answer_given(answer):
    record = PAUSED.replace_interrupt(answer, now=T0)
    for waiting in record.pending_interrupts:
        record = record.replace_interrupt(waiting.decide("cancelled", now=T0), now=T0)
    assert record.interrupts == (answer, ASK_2.decide("cancelled", now=T0))


@each("late", [-MICRO, 0 * SEC, HOUR], ids=["a microsecond before", "at the expiry", "after"])
@each_decision
def test_from_the_expiry_on_both_doors_take_nothing_but_a_cancellation(decision, late):
    at = EXPIRY + late
    answer = replace(ASK, status=decision, decided_at=at)
    if decision == "cancelled" or at < EXPIRY:
        assert ASK.decide(decision, now=at) == answer
        assert PAUSED.replace_interrupt(answer, now=LAST).interrupt("ask-1") == answer
    else:
        assert code(ASK.decide, decision, now=at) == "interrupt_expired"
        assert code(PAUSED.replace_interrupt, answer, now=T0) == "interrupt_expired"


CREATE = {"tool_call_id": "call-1", "arguments_digest": SECRET}


@each("zone", [UTC, timezone(9 * HOUR)], ids=["utc", "elsewhere"])
@each("early", [0 * SEC, MICRO], ids=["at the expiry", "a microsecond before"])
def test_the_expiry_instant_itself_is_expired(early, zone):
    at = (EXPIRY - early).astimezone(zone)
    assert (ASK.is_expired(at), ASK.is_answerable(at)) == (not early, bool(early))
    assert not any(answer.is_answerable(at) for answer in (YES, NO, DROPPED))


def test_an_expiry_and_an_outcome_have_no_default():
    for call in Interrupt.create, partial(Interrupt, id="ask-1"):
        assert call(**CREATE, expires_at=None).is_answerable(LAST)
        with pytest.raises(TypeError):
            call(**CREATE)
    with pytest.raises(TypeError):
        LIVE.finish(now=T0)


def test_several_requests_for_one_tool_call_survive_the_pause_in_order():
    asks = [make_ask(id=name) for name in ("c", "a", "b")]
    stored = via_json(LIVE.interrupted(iter(asks), now=T0 + SEC))
    assert [ask.to_protocol()["id"] for ask in stored.interrupts] == ["c", "a", "b"]
    assert stored.updated_at == T0 + SEC


def test_a_pause_waits_until_the_last_answer():
    waiting = [(r.is_awaiting_approval, r.pending_interrupts) for r in (PAUSED, HALF, DONE)]
    assert waiting == [(True, (ASK, ASK_2)), (True, (ASK_2,)), (False, ())]
    assert PAUSED.status == HALF.status == DONE.status == "interrupted"


@each("state", [{}, [], "", False, 0, 0.0], ids=repr)
def test_an_empty_or_false_state_replaces_the_old_one_and_none_keeps_it(state):
    for call in STATEFUL.start, STATEFUL.advance:
        assert json.dumps(call(now=T0, snapshot=state).snapshot) == json.dumps(state)
        assert call(now=T0, snapshot=None).snapshot == STATEFUL.snapshot
