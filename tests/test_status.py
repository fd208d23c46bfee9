"""Status names and sequence numbers, exactly; and what goes with which status."""

from collections import UserDict
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType

import pytest

from agui_runs import ConfigurationError, Interrupt, RunRecord
from builders import T0, make_run, via_json
from examples import (
    ASK,
    ASK_ROW,
    FAILED,
    FAILURE,
    LIVE,
    RECORDS,
    ROW,
    SECRET,
    VALUES,
    YES_ROW,
    Plain,
    each,
    each_decision,
    label,
    load,
    refusal,
)
from strategies import Level, Way


@each("status", [status for status in RunRecord.STATUSES if status != "failed"])
def test_a_failure_stands_on_a_failed_record_only(status):
    assert "failure" in refusal(replace, RECORDS[status], failure=FAILURE)
    assert "failure" in refusal(load, {**RECORDS[status].to_storage(), "failure": FAILURE})


@each_decision
def test_a_decision_and_its_time_stand_together_or_not_at_all(decision):
    assert "decided_at" in refusal(replace, ASK, status=decision)
    assert "decidedAt" in refusal(load, {**ASK_ROW, "status": decision})
    assert "decided_at" in refusal(replace, ASK.decide(decision, now=T0), status="pending")
    assert "decidedAt" in refusal(load, {**YES_ROW, "status": "pending"})


ERROR = RuntimeError(f"login to db-7 with {SECRET} refused")
FAILURES = [{}, {"code": SECRET}, {"message": None}, {"message": 1}, {"message": ERROR}, [], ""]
FAILURES += [{"message": text, "code": SECRET} for text in ("", " ", "\n\t", "\u2003")]
FAILURES += [{"message": SECRET, "code": code} for code in ("", " ", 7, True, [SECRET])]
FAILURES += [{**FAILURE, key: SECRET} for key in ("Message", "traceback", "", 1, None)]
FAILURES += [ERROR, str(ERROR), SECRET.encode(), [("message", SECRET)], True, 0, object()]


@each("failure", FAILURES, ids=label)
def test_a_failure_of_another_shape_is_refused_at_every_door(failure):
    assert ": failure" in refusal(LIVE.finish, "failed", now=T0, failure=failure)
    assert ": failure" in refusal(FAILED.finish, "failed", now=T0, failure=failure)
    assert ": failure" in refusal(make_run, status="failed", failure=failure)
    assert ": failure" in refusal(load, {**ROW, "status": "failed", "failure": failure})


@each("code", [{}, {"code": None}, {"code": "mail_down"}], ids=len)
@each("mapping", [dict, UserDict, MappingProxyType])
def test_a_failure_has_one_shape_with_and_without_a_code(mapping, code):
    failed = LIVE.finish("failed", now=T0, failure=mapping({"message": "Down", **code}))
    assert failed.failure == via_json(failed).failure == {"message": "Down", "code": None} | code


NO_STATUS = [True, False, 1, 0, 1.0, None, "", "true", "yes", "expired", "success", "canceled"]
NO_STATUS += ["APPROVED", "Failed", " approved", "failed\n", b"approved", ["approved"], Plain.YES]
NO_STATUS += [{"status": "failed"}, {"approved"}, object(), "\udc88"]


@each("status", NO_STATUS, ids=label)
def test_what_is_not_exactly_a_status_is_refused_everywhere(status):
    for value in VALUES.values():
        decide = value.decide if isinstance(value, Interrupt) else value.finish
        assert " must be one of" in refusal(decide, status, now=T0)
        assert ": status must be one of" in refusal(replace, value, status=status)
        assert ": status must be one of" in refusal(load, {**value.to_storage(), "status": status})


NO_NUMBERS = [True, False, None, -1, 1.0, "1", "", Decimal("7"), Level.HIGH, [1], b"1", 10**4300]


@each("power", [0, 53, 63, 14_000])
def test_two_writers_from_one_stored_row_go_on_with_one_number(power):
    stored = load({**ROW, "sequence": 2**power})
    writers = [via_json(stored.advance(now=T0)) for _ in range(2)]
    assert [record.sequence - 2**power for record in (*writers, stored)] == [1, 1, 0]


@each("number", NO_NUMBERS, ids=label)
def test_what_is_not_exactly_a_number_is_refused(number):
    assert ": sequence must" in refusal(load, {**ROW, "sequence": number})
    assert ": sequence must" in refusal(make_run, sequence=number)


@each("status", RunRecord.STATUSES)
def test_interrupts_stand_on_an_interrupted_record_and_only_there(status):
    interrupts = [] if status == "interrupted" else [ASK]
    row = {**ROW, "status": status, "interrupts": [ask.to_storage() for ask in interrupts]}
    assert ": interrupts must " in refusal(make_run, status=status, interrupts=interrupts)
    assert ": interrupts must " in refusal(load, row)
    if status in ("reserved", "started"):
        assert "interrupted()" in refusal(RECORDS[status].finish, "interrupted", now=T0)


def test_an_enum_member_is_as_good_as_the_status_it_equals():
    statuses = [make_run(status=Way.DONE).status, make_run().finish(Way.DONE, now=T0).status]
    assert (statuses, {*map(type, statuses)}) == (["succeeded"] * 2, {str})


def test_a_sequence_that_json_cannot_write_is_neither_taken_nor_handed_out():
    last = make_run(sequence=10**4300 - 1)
    for call in (lambda: make_run(sequence=10**4300), lambda: last.advance(now=T0)):
        with pytest.raises(ConfigurationError, match="sequence must have at most 4300 digits"):
            call()


@each("value", VALUES.values(), ids=VALUES)
def test_a_status_is_plain_text_also_where_it_comes_from_a_row(value):
    assert {type(value.status), type(via_json(value).status)} == {str}
