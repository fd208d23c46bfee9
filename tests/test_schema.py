"""The JSON Schemas of the stored shapes: never stricter than `from_storage`, and where laxer."""

import json
import re
import sys
from datetime import date

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from agui_runs import ConfigurationError, Interrupt, RunRecord, _schema
from builders import FAILURE, T0, make_ask, make_run, nested
from strategies import interrupts, nearly_times, records, spoiled, values
from test_stored_rows import DATA
from test_time import NO_TIMES, NOT_ASCII, SPACED

SCHEMAS = {Interrupt: _schema.interrupt_schema(), RunRecord: _schema.run_record_schema()}
VALIDATORS = {cls: Draft202012Validator(schema) for cls, schema in SCHEMAS.items()}
ASK, DENIED = make_ask(), make_ask().decide("denied", now=T0)
LIVE = make_run().start(now=T0)
PAUSED = LIVE.interrupted([ASK, make_ask(id="ask-2")], now=T0)
GONE = LIVE.finish("cancelled", now=T0)
FAILED = LIVE.finish("failed", now=T0, failure=FAILURE)
BLANK = "\u3000\x1c\x85\n "


def takes(cls, row):
    return VALIDATORS[cls].is_valid(row)


def refusal(cls, row):
    """Return what `from_storage` says against the row, or nothing where it takes it."""
    try:
        cls.from_storage(row)
    except ConfigurationError as refused:
        return str(refused)
    return ""


def row(value, *lost, **over):
    """Return the class of the value and its row, with some keys changed and some lost."""
    stored = {**value.to_storage(), **over}
    return type(value), {key: stored[key] for key in stored if key not in lost}


# Rows that the schema refuses, as `from_storage` does.
REFUSED = {
    **{f"an interrupt without {key}": row(ASK, key) for key in SCHEMAS[Interrupt]["required"]},
    **{f"a record without {key}": row(LIVE, key) for key in SCHEMAS[RunRecord]["required"]},
    **{f"a blank {key}": row(ASK, **{key: " "}) for key in ("id", "toolCallId", "reason")},
    **{f"a blank {key}": row(LIVE, **{key: ""}) for key in ("scope", "threadId", "runId")},
    "a blank digest of arguments": row(ASK, argumentsDigest=BLANK),
    "a blank digest": row(LIVE, digest=BLANK),
    "a null reason": row(ASK, reason=None),
    "a message that is no text": row(ASK, message=7),
    "an interrupt of no status": row(ASK, status="Approved"),
    "a record of no status": row(LIVE, status="running"),
    "a status that is true": row(ASK, status=True),
    "a pending one with a decision time": row(ASK, decidedAt=T0.isoformat()),
    "a decided one without its time": row(DENIED, "decidedAt"),
    "a decided one with a null time": row(DENIED, decidedAt=None),
    "a time that is a number": row(ASK, createdAt=0),
    "a record with a null time": row(LIVE, createdAt=None),
    "a negative sequence": row(LIVE, sequence=-1),
    "a sequence that is true": row(LIVE, sequence=True),
    "a sequence that is text": row(LIVE, sequence="7"),
    "a fraction of a sequence": row(LIVE, sequence=0.5),
    "a paused record without interrupts": row(PAUSED, "interrupts"),
    "a paused record with null interrupts": row(PAUSED, interrupts=None),
    "a paused record with no interrupts": row(PAUSED, interrupts=[]),
    "a started record with interrupts": row(PAUSED, status="started"),
    "a failed record with interrupts": row(PAUSED, status="failed"),
    "interrupts that are an object": row(PAUSED, interrupts={}),
    "interrupts that are text": row(LIVE, interrupts="[]"),
    "an interrupt that is null": row(PAUSED, interrupts=[ASK.to_storage(), None]),
    "a broken interrupt inside": row(PAUSED, interrupts=[row(ASK, "expiresAt")[1]]),
    "a failure on a cancelled record": row(GONE, failure=FAILURE),
    "a failure on a paused record": row(PAUSED, failure=FAILURE),
    "a failure that is text": row(FAILED, failure="x"),
    "a failure without its message": row(FAILED, failure={"code": "x"}),
    "a failure with a blank message": row(FAILED, failure={"message": " "}),
    "a failure with a blank code": row(FAILED, failure={"message": "x", "code": ""}),
    "a failure with a further key": row(FAILED, failure={**FAILURE, "trace": "x"}),
    **{f"no object: {value!r}": (RunRecord, value) for value in (None, [], "", 7, True)},
    "no object but a list of pairs": (Interrupt, [*ASK.to_storage().items()]),
}
# Rows that the schema takes, and `from_storage` does not: docs/storage.md lists their kinds.
TOO_MUCH_TO_SAY = {
    "nested deeper": row(LIVE, snapshot=nested(101)),
    "4300 digits": row(LIVE, snapshot=10**4300),
    "must have at most 4300 digits": row(LIVE, sequence=10**4300),
    "sequence must be an int, not float": row(LIVE, sequence=7.0),
    "lone surrogate": row(LIVE, snapshot="\ud800"),
    "repeats the id": row(PAUSED, interrupts=[ASK.to_storage(), DENIED.to_storage()]),
    "must be an ISO 8601 time": row(ASK, createdAt="2026-02-29T09:00Z"),
    "leaves the calendar": row(ASK, createdAt="9999-12-31T23:59-01"),
}


@pytest.mark.parametrize("cls", SCHEMAS)
def test_a_schema_is_valid_itself_and_plain_json(cls):
    Draft202012Validator.check_schema(SCHEMAS[cls])
    assert json.loads(json.dumps(SCHEMAS[cls])) == SCHEMAS[cls]


@pytest.mark.parametrize("make", [_schema.interrupt_schema, _schema.run_record_schema])
def test_a_schema_needs_nothing_beside_it_and_belongs_to_the_caller(make):
    assert not {"$id", "$ref", "$defs"} & {*re.findall(r'"(\$\w+)"', json.dumps(make()))}
    make()["properties"].clear()
    assert make()["properties"]


@pytest.mark.parametrize("cls", SCHEMAS)
def test_a_schema_describes_the_keys_that_are_written_and_only_these(cls):
    value = ASK if cls is Interrupt else LIVE
    described = SCHEMAS[cls]["properties"]
    assert described.keys() == value.to_storage().keys()
    assert all(each["description"] for each in described.values())


def test_the_schemas_name_exactly_the_statuses():
    named = [tuple(SCHEMAS[cls]["properties"]["status"]["enum"]) for cls in (Interrupt, RunRecord)]
    assert named == [Interrupt.STATUSES, RunRecord.STATUSES]


@pytest.mark.parametrize("mode", ["validation", "serialization"])
@pytest.mark.parametrize("cls", SCHEMAS)
def test_a_field_of_a_pydantic_model_is_documented_by_the_schema(cls, mode):
    assert TypeAdapter(cls).json_schema(mode=mode) == SCHEMAS[cls]


@given(values)
def test_every_row_that_is_written_is_valid(value):
    VALIDATORS[type(value)].validate(value.to_storage())


@pytest.mark.parametrize("path", sorted(DATA.rglob("*.json")), ids=lambda path: path.stem)
def test_every_stored_row_is_valid(path):
    cls = Interrupt if path.stem.startswith("interrupt") else RunRecord
    VALIDATORS[cls].validate(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(("cls", "row"), REFUSED.values(), ids=REFUSED)
def test_what_a_schema_can_say_it_refuses(cls, row):
    assert (takes(cls, row), refusal(cls, row) != "") == (False, True)


@pytest.mark.parametrize(("reason", "case"), TOO_MUCH_TO_SAY.items(), ids=TOO_MUCH_TO_SAY)
def test_what_a_schema_cannot_say_is_left_to_from_storage(reason, case):
    assert takes(*case)
    assert reason in refusal(*case)


def is_alike(cls, row):
    """Say whether both take the row or neither does, but for what a schema cannot say."""
    said = refusal(cls, row)
    if takes(cls, row):
        return not said or any(reason in said for reason in TOO_MUCH_TO_SAY)
    return said != ""


def as_json(row):
    """Return the row as a store of JSON would give it, with text for what is no JSON."""
    text = json.dumps(row, default=str, skipkeys=True)
    return json.loads(text, parse_constant=str)


@given(spoiled(interrupts))
def test_a_spoiled_interrupt_row_is_taken_by_both_or_by_neither(row):
    assert is_alike(Interrupt, as_json(row))


@given(spoiled(records))
def test_a_spoiled_record_row_is_taken_by_both_or_by_neither(row):
    assert is_alike(RunRecord, as_json(row))


def is_alike_as_a_time(text):
    """Say whether both take the text as a time or neither does, but for the calendar."""
    said = refusal(*row(ASK, createdAt=text))
    if takes(*row(ASK, createdAt=text)):
        return not said or not is_in_the_calendar(text)
    return said != ""


@given(nearly_times)
def test_a_text_that_is_nearly_a_time_is_taken_by_both_or_by_neither(text):
    assert is_alike_as_a_time(text)


@pytest.mark.parametrize("text", [*NO_TIMES.split(), *NOT_ASCII, *SPACED], ids=ascii)
def test_a_text_that_is_no_time_is_refused_but_for_the_calendar(text):
    assert is_alike_as_a_time(text)


@pytest.mark.parametrize("zone", ["Z", "+00:00", "+00", "-00:00", "+0530", "-23:59", "+23"])
@pytest.mark.parametrize("clock", ["09:00", "23:59:59", "09:00:00.5", "09:00:00.123456789"])
@pytest.mark.parametrize("mark", ["T", " "])
def test_every_spelling_of_a_time_is_taken(mark, clock, zone):
    assert takes(*row(ASK, createdAt=f"2026-03-02{mark}{clock}{zone}"))


def is_in_the_calendar(text):
    """Say of a time of the right form whether there is such a day, wherever UTC moves it."""
    try:
        day = date.fromisoformat(text[:10])
    except ValueError:
        return False
    return date.min < day < date.max


@pytest.mark.parametrize("cls", [Interrupt, RunRecord])
def test_text_is_blank_for_a_schema_where_it_is_for_python(cls):
    pattern = SCHEMAS[cls]["properties"]["id" if cls is Interrupt else "runId"]["pattern"]
    everything = map(chr, range(sys.maxunicode + 1))
    assert [
        each for each in everything if (re.search(pattern, each) is None) != each.isspace()
    ] == []


def test_a_text_says_something_where_one_of_its_characters_does():
    assert takes(*row(ASK, id=" \n\u3000x\t"))
