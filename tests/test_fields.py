"""Every field stands wherever a field must stand; what is asked here follows from the fields.

Whoever adds a field adds it to `FULL` and `OTHER`, and is then told each place that lacks it.
"""

import inspect
import json
import re
from collections import UserDict
from dataclasses import fields, replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import Phase, find, settings

import strategies
from agui_runs import (
    ConfigurationError,
    Decision,
    Interrupt,
    InterruptStatus,
    RunRecord,
    RunStatus,
    StreamError,
    TerminalStatus,
)
from agui_runs.interrupt import _OpenInterrupt
from agui_runs.run_record import _OpenRecord
from builders import FAILURE, HOUR, SEC, T0, make_ask

each = pytest.mark.parametrize

ROOT = Path(__file__).parent.parent
NAMES = {cls: [field.name for field in fields(cls)] for cls in (Interrupt, RunRecord)}
each_class = each("cls", NAMES)

# A value for every field, none of them its default, and beside it another one.
FULL = {
    Interrupt: {
        "id": "ask-1",
        "tool_call_id": "call-1",
        "arguments_digest": "a1",
        "expires_at": T0 + HOUR,
        "reason": "refund",
        "message": "Refund?",
        "status": "denied",
        "decided_at": T0 + SEC,
        "created_at": T0,
    },
    RunRecord: {
        "scope": "tenant-1",
        "thread_id": "thread-1",
        "run_id": "run-1",
        "digest": "b2",
        "created_at": T0,
        "status": "started",
        "sequence": 7,
        "snapshot": {"items": [1]},
        "interrupts": (make_ask(), make_ask(id="ask-2").decide("denied", now=T0)),
        "failure": FAILURE,
        "updated_at": T0 + SEC,
    },
}
OTHER = {
    Interrupt: {
        "id": "ask-9",
        "tool_call_id": "call-9",
        "arguments_digest": "a9",
        "expires_at": T0 + 2 * HOUR,
        "reason": "other",
        "message": "Other?",
        "status": "cancelled",
        "decided_at": T0 + 9 * SEC,
        "created_at": T0 - HOUR,
    },
    RunRecord: {
        "scope": "tenant-9",
        "thread_id": "thread-9",
        "run_id": "run-9",
        "digest": "b9",
        "created_at": T0 - HOUR,
        "status": "reserved",
        "sequence": 9,
        "snapshot": [9],
        "interrupts": (make_ask(),),
        "failure": {"message": "Other", "code": None},
        "updated_at": T0 + 9 * SEC,
    },
}
# What stands on records of one status only.
ONLY_ON = {"interrupts": "interrupted", "failure": "failed"}
EACH = [(cls, name) for cls, names in NAMES.items() for name in names]
each_field = each(("cls", "name"), EACH, ids=[f"{cls.__name__}.{name}" for cls, name in EACH])


def key_of(name):
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def full(cls, status=None):
    """Return a value with every field that its status allows."""
    given = {**FULL[cls], "status": status or FULL[cls]["status"]}
    if cls is RunRecord:
        given = {
            name: item
            for name, item in given.items()
            if ONLY_ON.get(name) in (None, given["status"])
        }
    elif given["status"] == "pending":
        del given["decided_at"]
    return cls(**given)


def on(cls, name):
    """Return a value that may hold this field."""
    return full(cls, ONLY_ON.get(name) if cls is RunRecord else None)


# --- The tables of this module ------------------------------------------------------------------


@each("table", [FULL, OTHER], ids=["FULL", "OTHER"])
@each_class
def test_the_tables_here_have_every_field(cls, table):
    assert [*table[cls]] == NAMES[cls]


@each_field
def test_the_values_here_are_no_defaults_and_differ(cls, name):
    default = inspect.signature(cls).parameters[name].default
    assert FULL[cls][name] not in (default, OTHER[cls][name])


# --- The constructor and its checks -------------------------------------------------------------


@each_class
def test_the_constructor_takes_every_field_and_nothing_else(cls):
    assert [*inspect.signature(cls).parameters] == NAMES[cls]


@each_field
def test_the_constructor_keeps_every_field(cls, name):
    assert getattr(on(cls, name), name) == FULL[cls][name]


@each_field
def test_the_constructor_checks_every_field(cls, name):
    with pytest.raises(ConfigurationError, match=rf": {name}\b"):
        replace(on(cls, name), **{name: object()})


@each_field
def test_a_value_differs_where_any_field_does(cls, name):
    value = on(cls, name)
    assert replace(value, **{name: OTHER[cls][name]}) != value


@each_field
def test_an_open_value_has_every_field(cls, name):
    opened = {Interrupt: _OpenInterrupt, RunRecord: _OpenRecord}[cls]
    assert name in opened.__slots__


@each_field
def test_what_is_opened_again_holds_every_field_as_it_is(cls, name):
    value = on(cls, name)
    assert getattr(value._open(), name) is getattr(value, name)


# --- Storage ------------------------------------------------------------------------------------


@each_class
def test_a_row_has_a_key_for_every_field_and_nothing_else(cls):
    assert set(full(cls).to_storage()) == {*map(key_of, NAMES[cls])}


@each_field
def test_a_row_tells_values_apart_by_every_field(cls, name):
    value = on(cls, name)
    row, other = value.to_storage(), replace(value, **{name: OTHER[cls][name]}).to_storage()
    assert {key for key in row if row[key] != other[key]} == {key_of(name)}


@each("mapping", [dict, UserDict])
@each_field
def test_every_field_comes_back_from_a_row_of_any_kind(cls, name, mapping):
    value = on(cls, name)
    row = mapping(json.loads(json.dumps(value.to_storage())))
    assert getattr(cls.from_storage(row), name) == FULL[cls][name]


@each_field
def test_a_row_is_checked_at_every_key(cls, name):
    row = {**on(cls, name).to_storage(), key_of(name): object()}
    with pytest.raises(ConfigurationError, match=rf": {key_of(name)}\b"):
        cls.from_storage(row)


SECTIONS = {Interrupt: "## An interrupt, key by key", RunRecord: "## A run record, key by key"}


@each(("cls", "heading"), SECTIONS.items())
def test_the_documents_explain_every_key_of_a_row_in_its_table(cls, heading):
    text = (ROOT / "docs/storage.md").read_text(encoding="utf-8")
    section = text.partition(f"{heading}\n")[2].partition("\n## ")[0]
    explained = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)))
    assert sorted(explained) == sorted(map(key_of, NAMES[cls]))


# --- create -------------------------------------------------------------------------------------

CREATED = [name for name in NAMES[Interrupt] if name not in ("id", "status", "decided_at")]


def test_create_takes_every_field_that_a_new_request_may_have():
    assert [*inspect.signature(Interrupt.create).parameters] == CREATED


@each("name", CREATED)
def test_create_keeps_every_field(name):
    ask = Interrupt.create(**{name: FULL[Interrupt][name] for name in CREATED})
    assert getattr(ask, name) == FULL[Interrupt][name]


@each("name", CREATED)
def test_create_has_the_defaults_of_the_constructor(name):
    made, created = (inspect.signature(call).parameters for call in (Interrupt, Interrupt.create))
    assert made[name].default == created[name].default


# --- Transitions --------------------------------------------------------------------------------

YES = [{"interruptId": "ask-1", "status": "resolved", "payload": {"approved": True}}]
LATER = T0 + 60 * SEC
# A transition, the status it starts from, and the fields that it is for.
TRANSITIONS = {
    "start": ("reserved", {"status"}, lambda run: run.start(now=LATER)),
    "start with a state": (
        "reserved",
        {"status", "snapshot"},
        lambda run: run.start(now=LATER, snapshot={}),
    ),
    "advance": ("started", {"sequence"}, lambda run: run.advance(now=LATER)),
    "advance with a state": (
        "started",
        {"sequence", "snapshot"},
        lambda run: run.advance(now=LATER, snapshot={}),
    ),
    "interrupted": (
        "started",
        {"status", "interrupts"},
        lambda run: run.interrupted([make_ask()], now=LATER),
    ),
    "finish": (
        "started",
        {"status", "failure"},
        lambda run: run.finish("failed", now=LATER, failure=FAILURE),
    ),
    "replace_interrupt": (
        "interrupted",
        {"interrupts"},
        lambda run: run.replace_interrupt(run.interrupts[0].decide("approved", now=T0), now=LATER),
    ),
    "answer": ("interrupted", {"interrupts"}, lambda run: run.answer(YES, now=LATER)),
}


@each("name", NAMES[RunRecord])
@each("move", TRANSITIONS)
def test_a_transition_keeps_every_field_that_it_is_not_for(move, name):
    status, changes, call = TRANSITIONS[move]
    before = full(RunRecord, status)
    after = call(before)
    if name in {"updated_at", *changes}:
        assert getattr(after, name) != getattr(before, name)
    else:
        assert getattr(after, name) is getattr(before, name)


@each("name", NAMES[Interrupt])
def test_a_decision_keeps_every_field_of_its_request(name):
    before = full(Interrupt, "pending")
    after = before.decide("approved", now=T0)
    if name in ("status", "decided_at"):
        assert getattr(after, name) != getattr(before, name)
    else:
        assert getattr(after, name) is getattr(before, name)


@each("name", [name for name in NAMES[Interrupt] if name not in ("id", "status", "decided_at")])
def test_an_answer_is_compared_with_its_request_in_every_field(name):
    held = full(Interrupt, "pending")
    paused = replace(full(RunRecord, "interrupted"), interrupts=[held])
    answer = replace(held.decide("approved", now=T0), **{name: OTHER[Interrupt][name]})
    with pytest.raises(StreamError) as refused:
        paused.replace_interrupt(answer, now=T0)
    assert refused.value.code == "interrupt_changed"


# --- Beside the package -------------------------------------------------------------------------

STRATEGIES = {Interrupt: strategies.interrupts, RunRecord: strategies.records}


@each_field
def test_the_strategies_draw_something_for_every_field(cls, name):
    default = inspect.signature(cls).parameters[name].default
    drawn = find(
        STRATEGIES[cls],
        lambda value: getattr(value, name) != default,
        settings=settings(max_examples=1000, derandomize=True, phases=[Phase.generate]),
    )
    assert getattr(drawn, name) != default


@each_field
def test_the_type_of_every_field_is_pinned(cls, name):
    pinned = (ROOT / "tests/typing/api.py").read_text(encoding="utf-8")
    assert f"assert_type({'ask' if cls is Interrupt else 'run'}.{name}, " in pinned


@each(
    ("alias", "constants"),
    [
        (Decision, Interrupt.DECISIONS),
        (InterruptStatus, Interrupt.STATUSES),
        (TerminalStatus, RunRecord.TERMINAL_STATUSES),
        (RunStatus, RunRecord.STATUSES),
    ],
)
def test_the_names_of_a_type_are_the_constants_of_its_class(alias, constants):
    assert {*get_args(alias)} == {*constants}
