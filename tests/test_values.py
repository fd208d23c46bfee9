"""One checklist for both values."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, fields, replace
from uuid import UUID

import pytest

from agui_runs import ConfigurationError, Interrupt, RunRecord
from builders import SEC, T0, make_ask, make_run, via_json

each = pytest.mark.parametrize

STATE = {"items": [1, {"secret": "s3cr3t"}], "done": False}
ASK = make_ask(message="s3cr3t")
PAUSED = make_run(snapshot=STATE).interrupted([ASK, make_ask(id="ask-2")], now=T0)
FAILURE = {"message": "s3cr3t", "code": "mail_down"}
FAILED = make_run(snapshot=STATE).finish("failed", now=T0, failure=FAILURE)
VALUES = {"interrupt": ASK, "paused": PAUSED, "failed": FAILED}

MINIMAL = {
    Interrupt: {"id": "i", "tool_call_id": "c", "arguments_digest": "a", "expires_at": None},
    RunRecord: {"scope": "s", "thread_id": "t", "run_id": "r", "digest": "d", "created_at": T0},
}
DEFAULTS = {
    Interrupt: {
        "reason": "tool_call",
        "message": None,
        "status": "pending",
        "decided_at": None,
        "created_at": None,
    },
    RunRecord: {
        "status": "reserved",
        "sequence": 0,
        "snapshot": None,
        "interrupts": (),
        "failure": None,
        "updated_at": T0,
    },
}
CONSTANTS = {
    Interrupt: {
        "REASON_TOOL_CALL": "tool_call",
        "DECISIONS": ("approved", "denied", "cancelled"),
        "STATUSES": ("pending", "approved", "denied", "cancelled"),
    },
    RunRecord: {
        "TERMINAL_STATUSES": ("succeeded", "interrupted", "cancelled", "failed"),
        "STATUSES": ("reserved", "started", "succeeded", "interrupted", "cancelled", "failed"),
    },
}
REPRS = {
    ASK: "Interrupt(id='ask-1', tool_call_id='call-1', reason='tool_call', status='pending', "
    "expires_at='2026-03-02T09:10:00.000000Z', decided_at=None, "
    "created_at='2026-03-02T09:00:00.000000Z')",
    PAUSED: "RunRecord(scope='tenant-1', thread_id='thread-1', run_id='run-1', "
    "status='interrupted', sequence=0, pending_interrupts=2)",
    FAILED: "RunRecord(scope='tenant-1', thread_id='thread-1', run_id='run-1', "
    "status='failed', sequence=0, code='mail_down')",
}
OTHERS = [
    *[(ASK, {name: "x"}) for name in ("id", "tool_call_id", "arguments_digest", "reason")],
    *[(ASK, {name: None}) for name in ("message", "expires_at", "created_at")],
    (ASK, {"status": "denied", "decided_at": T0}),
    *[(PAUSED, {name: "x"}) for name in ("scope", "thread_id", "run_id", "digest", "snapshot")],
    *[(PAUSED, {name: T0 + SEC}) for name in ("created_at", "updated_at")],
    (PAUSED, {"sequence": 1}),
    (PAUSED, {"interrupts": (ASK,)}),
    (FAILED, {"failure": None}),
    (FAILED, {"failure": None, "status": "cancelled"}),
]

each_value = each("value", VALUES.values(), ids=VALUES)
each_class = each("cls", MINIMAL)


@each_class
def test_positional_arguments_are_not_taken(cls):
    with pytest.raises(TypeError, match="positional argument"):
        cls(*MINIMAL[cls].values())


@each(("cls", "name"), [(cls, name) for cls, minimal in MINIMAL.items() for name in minimal])
def test_what_has_no_safe_default_must_be_said(cls, name):
    with pytest.raises(TypeError, match=name):
        cls(**{key: value for key, value in MINIMAL[cls].items() if key != name})


@each_class
def test_everything_else_has_a_default(cls):
    value = cls(**MINIMAL[cls])
    kept = {field.name: getattr(value, field.name) for field in fields(cls)}
    assert kept == MINIMAL[cls] | DEFAULTS[cls]


def test_create_makes_a_pending_request_with_an_id_that_nobody_can_guess():
    given = {**MINIMAL[Interrupt], "reason": "refund", "message": "?", "created_at": T0}
    del given["id"]
    one, two = Interrupt.create(**given), Interrupt.create(**given)
    assert (one.id != two.id, UUID(one.id).version, one) == (True, 4, Interrupt(id=one.id, **given))


@each_class
def test_every_status_has_a_constant_of_its_own_name(cls):
    constants = {name: value for name, value in vars(cls).items() if name.isupper()}
    names = {status.upper(): status for status in CONSTANTS[cls]["STATUSES"]}
    assert constants == names | CONSTANTS[cls]


@each_value
def test_a_field_can_be_neither_assigned_nor_deleted(value):
    for field in fields(value):
        with pytest.raises(FrozenInstanceError):
            setattr(value, field.name, getattr(value, field.name))
        with pytest.raises(FrozenInstanceError):
            delattr(value, field.name)


@each_value
def test_there_is_no_place_for_further_attributes(value):
    assert not hasattr(value, "__dict__")
    with pytest.raises((AttributeError, TypeError)):
        value.note = "x"


@each_class
def test_a_value_class_cannot_be_extended(cls):
    with pytest.raises(TypeError, match=f"{cls.__name__} is final"):
        type("Mine", (cls,), {})


@each_value
def test_equal_values_hash_equal_and_are_one_in_a_set(value):
    assert (via_json(value) == value, {via_json(value), value}) == (True, {value})


@each(("value", "change"), OTHERS)
def test_values_differ_where_a_field_does(value, change):
    assert replace(value, **change) != value


def test_the_fields_that_make_values_differ_are_all_of_them():
    changed = {(type(value), name) for value, change in OTHERS for name in change}
    assert changed == {(cls, field.name) for cls in MINIMAL for field in fields(cls)}


@each_value
def test_a_stranger_has_its_own_say_about_equality(value):
    assert value.__eq__(value.to_storage()) is NotImplemented


@each_value
def test_repr_shows_identity_and_progress_only(value):
    assert repr(value) == REPRS[value]


@each_value
def test_a_second_construction_changes_nothing(value):
    before = via_json(value)
    value.__init__(**MINIMAL[type(value)])
    assert value == before


@each_value
def test_the_state_of_a_value_cannot_be_set(value):
    before = via_json(value)
    with pytest.raises(TypeError, match="is frozen"):
        value.__setstate__([])
    assert value == before


@each_value
def test_a_pickle_is_checked_as_a_row_is(value):
    status = value.status.encode()
    with pytest.raises(ConfigurationError, match="status must be one of"):
        pickle.loads(pickle.dumps(value).replace(status, b"x" * len(status)))


@each_value
def test_a_value_can_be_copied_and_pickled_by_every_protocol(value):
    twins = [copy.copy(value), copy.deepcopy(value)]
    twins += [pickle.loads(pickle.dumps(value, n)) for n in range(pickle.HIGHEST_PROTOCOL + 1)]
    assert twins == [value] * len(twins)


def test_threads_that_share_one_record_get_independent_results():
    def work(number):
        now = T0 + number * SEC
        decided = ASK.decide(Interrupt.DECISIONS[number % 3], now=now)
        kept = PAUSED.replace_interrupt(decided, now=now).interrupts[0] == decided
        advanced = live.advance(now=now, snapshot={"n": number})
        return kept, advanced.sequence, advanced.snapshot

    live, stored = make_run(), PAUSED.to_storage()
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(300)))
    assert results == [(True, 1, {"n": number}) for number in range(300)]
    assert (live, PAUSED.to_storage()) == (make_run(), stored)
