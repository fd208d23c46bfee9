"""Whatever builds a value past its two doors ends in their checks, or in an error of its own.

What `object.__setattr__` forces into a value cannot be stopped. It is told apart at the next
door that the value comes to.
"""

import copyreg
import json
import pickle
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import cattrs
import cattrs.preconf.json
import dacite
import jsonpickle
import msgspec
import pytest
from dataclasses_json import dataclass_json
from hypothesis import given
from hypothesis import strategies as st
from mashumaro.codecs.basic import BasicDecoder
from polyfactory.factories import DataclassFactory
from pydantic import TypeAdapter, ValidationError

from agui_runs import AguiRunsError, ConfigurationError, Interrupt, RunRecord
from builders import FAILURE, SEC, T0, make_ask, make_run, via_json
from strategies import Way, interrupts, junk, records

each = pytest.mark.parametrize

NAIVE = T0.replace(tzinfo=None)
ASK = make_ask()
RUN = make_run(snapshot={"items": [1]})
PAUSED = RUN.interrupted([ASK], now=T0)
VALUES = {"interrupt": ASK, "record": RUN}


def fields_of(value):
    return {field.name: getattr(value, field.name) for field in fields(value)}


# --- By the fields of a dataclass ---------------------------------------------------------------


def in_text(given):
    """Return the fields with their times as text, as libraries for JSON take them."""
    return {
        name: item.isoformat() if isinstance(item, datetime) else item
        for name, item in given.items()
    }


@dataclass
class Asked:
    held: Interrupt


@dataclass
class Ran:
    held: RunRecord


HOLDERS = {Interrupt: dataclass_json(Asked), RunRecord: dataclass_json(Ran)}
CATTRS = cattrs.preconf.json.make_converter()
UNTYPED = dacite.Config(check_types=False)  # It does not know a TypedDict.


def in_holder(cls, given):
    """Return what dataclasses_json makes inside a dataclass of the host, as timestamps."""
    seconds = {
        name: item.timestamp() if isinstance(item, datetime) and item.tzinfo else item
        for name, item in given.items()
    }
    return HOLDERS[cls].from_dict({"held": seconds}).held


def from_attributes(cls, given):
    return msgspec.convert(SimpleNamespace(**given), cls, from_attributes=True)


def from_json(cls, given):
    return msgspec.json.decode(msgspec.json.encode(given), type=cls)


# These fill in the fields themselves and then ask `__post_init__`, which refuses.
FILLING = {
    "msgspec.convert": lambda cls, given: msgspec.convert(given, cls),
    "msgspec.convert from attributes": from_attributes,
    "msgspec.json.decode": from_json,
}
# These call the constructor, whose refusal comes out as it is or inside an error of theirs.
CALLING = {
    "cattrs": lambda cls, given: CATTRS.structure(in_text(given), cls),
    "dacite": lambda cls, given: dacite.from_dict(cls, given, UNTYPED),
    "mashumaro": lambda cls, given: BasicDecoder(cls).decode(in_text(given)),
    "dataclasses_json": in_holder,
    "polyfactory": lambda cls, given: DataclassFactory.create_factory(cls).build(**given),
    "copyreg.__newobj_ex__": lambda cls, given: copyreg.__newobj_ex__(cls, (), given),
}
SPOILED = [
    (ASK, {"id": " "}, "id must not be blank"),
    (ASK, {"expires_at": NAIVE}, "expires_at must be a timezone-aware datetime, not a naive one"),
    (ASK, {"status": "approved"}, "decided_at is missing, but the status is 'approved'"),
    (ASK, {"decided_at": T0}, "decided_at must not be set, since the status is 'pending'"),
    (RUN, {"run_id": ""}, "run_id must not be blank"),
    (RUN, {"created_at": NAIVE}, "created_at must be a timezone-aware datetime, not a naive one"),
    (RUN, {"sequence": -1}, "sequence must not be negative"),
    (RUN, {"status": "interrupted"}, "interrupts must hold at least one, since the status is"),
    (RUN, {"failure": FAILURE}, "failure belongs to a failed run, but the status is 'reserved'"),
    (RUN, {"snapshot": {"n": float("nan")}}, "snapshot.n: a float that is not finite is not a"),
]


def told(error):
    """Return what an error says, and those that it groups."""
    return " ".join([str(error), *map(told, getattr(error, "exceptions", ()))])


@each("build", FILLING.values(), ids=FILLING)
@each("value", VALUES.values(), ids=VALUES)
def test_what_fills_in_fields_is_refused_also_where_they_are_right(build, value):
    name = type(value).__name__
    with pytest.raises(
        msgspec.ValidationError,
        match=f"^{name} is made by its constructor or from_storage, not field by field$",
    ):
        build(type(value), fields_of(value))


@each("build", CALLING.values(), ids=CALLING)
@each("value", VALUES.values(), ids=VALUES)
def test_what_calls_the_constructor_makes_a_checked_value(build, value):
    assert build(type(value), fields_of(value)) == value


@each(("value", "change", "problem"), SPOILED, ids=[problem for *_, problem in SPOILED])
@each("build", CALLING.values(), ids=CALLING)
def test_what_calls_the_constructor_meets_its_checks(build, value, change, problem):
    with pytest.raises((ConfigurationError, cattrs.ClassValidationError)) as caught:
        build(type(value), {**fields_of(value), **change})
    assert problem in told(caught.value)


@each("build", [*FILLING.values(), *CALLING.values()], ids=[*FILLING, *CALLING])
def test_a_row_is_no_set_of_fields(build):
    own = (msgspec.ValidationError, cattrs.ClassValidationError, dacite.DaciteError)
    with pytest.raises((*own, LookupError, TypeError, AguiRunsError)):
        build(Interrupt, ASK.to_storage())


@each("text", ['{"id": " "}', '{"py/state": [null, {"id": " "}]}', '{"py/newargs": []}'])
@each("cls", VALUES)
def test_jsonpickle_makes_no_value(cls, text):
    path = {"interrupt": "interrupt.Interrupt", "record": "run_record.RunRecord"}[cls]
    made = jsonpickle.decode(
        json.dumps({"py/object": f"agui_runs.{path}", **json.loads(text)}), keys=True
    )
    assert type(made) is dict


# --- By the parts of a pickle -------------------------------------------------------------------


@each("cls", [Interrupt, RunRecord])
def test_an_empty_value_cannot_be_asked_for(cls):
    with pytest.raises(TypeError, match="missing"):
        copyreg.__newobj__(cls)


STATE = pickle.dumps((None, {"status": "failed"}), 2)[2:-1]
BUILD = STATE + pickle.BUILD + b"."


@each("value", VALUES.values(), ids=VALUES)
def test_a_pickle_cannot_write_over_the_value_that_it_brings(value):
    whole = pickle.dumps(value, 2)
    with pytest.raises(TypeError, match="is frozen: its pickles load through from_storage"):
        pickle.loads(whole[:-1] + BUILD)


@each("cls", [Interrupt, RunRecord])
def test_a_pickle_cannot_fill_in_an_empty_value(cls):
    made = pickle.dumps(Shell(cls), 2)
    assert type(pickle.loads(made)) is cls
    with pytest.raises(TypeError, match="is frozen: its pickles load through from_storage"):
        pickle.loads(made[:-1] + BUILD)


class Shell:
    """It pickles as a call that makes an empty object of the class."""

    def __init__(self, cls):
        self.cls = cls

    def __reduce__(self):
        return copyreg._reconstructor, (self.cls, object, None)


# --- By force -----------------------------------------------------------------------------------


def force(value, changes):
    for name, item in changes.items():
        object.__setattr__(value, name, item)
    return value


def on_a_shell(value, changes):
    """Return an object that never saw a check, each field of it set by force."""
    return force(object.__new__(type(value)), {**fields_of(value), **changes})


def on_a_genuine_value(value, changes):
    return force(replace(value), changes)


def on_its_answer(value, changes):
    """Return an answer of `decide`, which `replace_interrupt` looks at least closely."""
    return force(value.decide("approved", now=T0), changes)


def validated(cls, value):
    """Pass the value through a pydantic field, and let its refusal out of pydantic's error."""
    try:
        return TypeAdapter(cls).validate_python(value)
    except ValidationError as error:
        [refusal] = error.errors()
        raise refusal["ctx"]["error"] from None


DOORS = {
    "interrupted": lambda ask: RUN.interrupted([ask], now=T0).interrupts[0],
    "constructor": lambda ask: make_run(status="interrupted", interrupts=[ask]).interrupts[0],
    "replace of its record": lambda ask: replace(PAUSED, interrupts=(ask,)).interrupts[0],
    "replace_interrupt": lambda ask: PAUSED.replace_interrupt(ask, now=T0).interrupts[0],
    "pydantic": lambda ask: validated(Interrupt, ask),
    "replace": replace,
}
RECORD_DOORS = {"pydantic": lambda run: validated(RunRecord, run), "replace": replace}
FORCED = {
    "a blank id": {"id": " "},
    "an id that is no text": {"id": 7},
    "a message of bytes": {"message": b"x"},
    "a naive expiry": {"expires_at": NAIVE},
    "a creation that is no time": {"created_at": "2026-03-02T09:00:00Z"},
    "an unknown status": {"status": "expired", "decided_at": T0},
    "a status that is no text": {"status": ["approved"], "decided_at": T0},
    "approved without a time": {"status": "approved", "decided_at": None},
    "approved at a naive time": {"status": "approved", "decided_at": NAIVE},
    "approved at a text": {"status": "approved", "decided_at": "2026-03-02T09:00:00Z"},
    "pending with a time": {"status": "pending", "decided_at": T0},
}
RECORD_FORCED = {
    "a blank id": {"run_id": " "},
    "a scope that is no text": {"scope": 7},
    "a naive creation": {"created_at": NAIVE},
    "an update that is no time": {"updated_at": 7},
    "an unknown status": {"status": "expired"},
    "a sequence below none": {"sequence": -1},
    "a sequence that is no number": {"sequence": True},
    "a snapshot that is no JSON": {"snapshot": {"at": T0}},
    "interrupts on a live record": {"interrupts": (ASK,)},
    "interrupts that are none": {"interrupts": (1,)},
    "a half-made interrupt": {"status": "interrupted", "interrupts": (object.__new__(Interrupt),)},
    "a failure on a live record": {"failure": FAILURE},
}
PLACES = {"shell": on_a_shell, "genuine": on_a_genuine_value, "answer": on_its_answer}


@each("door", DOORS.values(), ids=DOORS)
@each("place", PLACES.values(), ids=PLACES)
@each("changes", FORCED.values(), ids=FORCED)
def test_what_was_forced_into_an_interrupt_is_told_apart_at_the_next_door(changes, place, door):
    with pytest.raises(AguiRunsError):
        door(place(ASK, changes))


@each("door", RECORD_DOORS.values(), ids=RECORD_DOORS)
@each("place", [on_a_shell, on_a_genuine_value])
@each("changes", RECORD_FORCED.values(), ids=RECORD_FORCED)
def test_what_was_forced_into_a_record_is_told_apart_at_the_next_door(changes, place, door):
    with pytest.raises(ConfigurationError):
        door(place(RUN, changes))


HALF_MADE = [{}, {"id": "ask-1", "status": "pending"}, {"id": "ask-1", "tool_call_id": "call-1"}]


@each("made", HALF_MADE, ids=["empty", "with a status", "with an id"])
@each("door", [name for name in DOORS if name != "replace"])
def test_a_half_made_interrupt_is_told_apart_at_the_next_door(door, made):
    with pytest.raises(AguiRunsError):
        DOORS[door](force(object.__new__(Interrupt), made))


def test_a_half_made_interrupt_is_refused_in_words_that_say_what_to_do():
    for door, said in {
        "interrupted": "run record: interrupts[0] was not made by its constructor or from_storage",
        "replace_interrupt": "run record: decided was not made by its constructor or from_storage",
        "pydantic": "interrupt: the value was not made by its constructor or from_storage",
    }.items():
        with pytest.raises(ConfigurationError) as caught:
            DOORS[door](object.__new__(Interrupt))
        assert str(caught.value) == said


def test_a_half_made_record_is_refused_in_words_that_say_what_to_do():
    with pytest.raises(ConfigurationError) as caught:
        validated(RunRecord, object.__new__(RunRecord))
    assert str(caught.value) == (
        "run record: the value was not made by its constructor or from_storage"
    )


@each("cls", [Interrupt, RunRecord])
def test_replace_reads_the_fields_itself_and_finds_none_in_a_half_made_value(cls):
    with pytest.raises(AttributeError):
        replace(object.__new__(cls))


ELSEWHERE = T0.astimezone(timezone(timedelta(hours=2)))
TEXTS = ("id", "tool_call_id", "arguments_digest", "reason", "message")


@each("door", [name for name in DOORS if name != "replace_interrupt"])
def test_what_was_forced_and_can_be_right_is_brought_into_the_kept_form(door):
    odd = {"created_at": ELSEWHERE, **dict.fromkeys(TEXTS, Way.MAIL)}
    kept = DOORS[door](on_a_genuine_value(ASK, odd))
    assert kept == replace(ASK, created_at=T0, **dict.fromkeys(TEXTS, "mail"))
    assert (str(kept.created_at), {type(getattr(kept, name)) for name in TEXTS}) == (
        "2026-03-02 09:00:00+00:00",
        {str},
    )


@each("door", RECORD_DOORS.values(), ids=RECORD_DOORS)
def test_a_snapshot_that_was_forced_in_is_frozen_at_the_next_door(door):
    kept = door(on_a_genuine_value(RUN, {"snapshot": {"items": [1]}}))
    assert (kept, type(kept.snapshot)) == (RUN, type(RUN.snapshot))


def comes_back(value):
    row: Any = value.to_storage()
    return via_json(value) == value and via_json(value).to_storage() == row


@given(interrupts, junk, st.data())
def test_an_interrupt_with_junk_forced_into_it_comes_out_whole_or_not_at_all(ask, item, data):
    held = replace(ask, status="pending", decided_at=None)
    paused = make_run(status="interrupted", interrupts=[held])
    doors = {
        **DOORS,
        "replace_interrupt": lambda ask: paused.replace_interrupt(ask, now=T0).interrupts[0],
    }
    door = doors[data.draw(st.sampled_from(list(doors)))]
    name = data.draw(st.sampled_from([field.name for field in fields(Interrupt)]))
    forced = on_a_genuine_value(ask, {name: item})
    try:
        kept = door(forced)
    except AguiRunsError:
        return
    assert comes_back(kept)


@given(records, junk, st.data())
def test_a_record_with_junk_forced_into_it_comes_out_whole_or_not_at_all(run, item, data):
    door = RECORD_DOORS[data.draw(st.sampled_from(list(RECORD_DOORS)))]
    name = data.draw(st.sampled_from([field.name for field in fields(RunRecord)]))
    try:
        kept = door(on_a_genuine_value(run, {name: item}))
    except AguiRunsError:
        return
    assert comes_back(kept)


def test_a_forged_answer_that_shares_the_times_of_its_request_is_looked_at():
    late = {"status": "approved", "decided_at": ASK.expires_at + SEC}
    with pytest.raises(AguiRunsError, match="interrupt 'ask-1' has expired"):
        PAUSED.replace_interrupt(on_its_answer(PAUSED.interrupts[0], late), now=T0)
