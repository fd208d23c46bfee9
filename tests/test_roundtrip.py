"""Whatever goes in is refused by name or comes back whole, and is never touched."""

import copy
import json
import pickle
import re
from collections import UserDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from agui_runs import ConfigurationError, Interrupt, RunRecord, StreamError
from builders import make_ask, make_run, via_json
from strategies import (
    Ghost,
    Husk,
    evenly,
    failures,
    interrupts,
    json_values,
    junk,
    names,
    nearly_times,
    records,
    records_of,
    small_integers,
    spoiled,
    texts,
    times,
    values,
)

types = st.sampled_from([Interrupt, RunRecord])


def text_of(value: Interrupt | RunRecord) -> bytes:
    """Return the JSON text of a value in UTF-8, which tells `1`, `1.0` and `true` apart."""
    return json.dumps(value.to_storage(), allow_nan=False, ensure_ascii=False).encode()


def comes_back(value: Interrupt | RunRecord) -> bool:
    back = via_json(value)
    return back == value and hash(back) == hash(value) and text_of(back) == text_of(value)


def accepted(make: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return what the call makes of its arguments, or None where it refuses them as it should."""
    before = copy.deepcopy((args, kwargs))
    try:
        return make(*args, **kwargs)
    except ConfigurationError as error:
        str(error).encode()
        return None
    finally:
        assert (args, kwargs) == before


@given(values)
def test_a_value_comes_back_from_json_text(value):
    assert comes_back(value)


@given(json_values)
def test_a_snapshot_is_kept_as_the_standard_encoder_would_write_it(snapshot):
    kept = make_run(snapshot=snapshot).to_storage()["snapshot"]
    assert json.dumps(kept) == json.dumps(snapshot, default=dict)


@given(values)
def test_stored_rows_hold_plain_json_values_only(value):
    def plain(item):
        if type(item) is dict:
            return all(type(key) is str and plain(inner) for key, inner in item.items())
        if type(item) is list:
            return all(map(plain, item))
        return item is None or type(item) in (bool, int, float, str)

    assert plain(value.to_storage())


@pytest.mark.parametrize(
    ("encode", "decode"),
    [
        (
            lambda row: pytest.importorskip("orjson").dumps(row),
            lambda text: pytest.importorskip("orjson").loads(text),
        ),
        (msgspec.json.encode, msgspec.json.decode),
        (msgspec.msgpack.encode, msgspec.msgpack.decode),
    ],
    ids=["orjson", "msgspec.json", "msgspec.msgpack"],
)
@given(value=interrupts | records_of(small_integers))
def test_a_value_comes_back_from_other_encoders(encode, decode, value):
    back = type(value).from_storage(decode(encode(value.to_storage())))
    assert (back, text_of(back)) == (value, text_of(value))


@given(values)
def test_a_row_may_be_any_mapping(value):
    assert accepted(type(value).from_storage, UserDict(value.to_storage())) == value


@given(values)
def test_a_value_survives_pickling(value):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(value, protocol))
        assert (back, hash(back), text_of(back)) == (value, hash(value), text_of(value))


@given(interrupts)
def test_a_report_is_the_row_without_the_digest_and_the_creation(interrupt):
    row = interrupt.to_storage()
    del row["argumentsDigest"], row["createdAt"]
    assert interrupt.to_dict() == row


@given(interrupts)
def test_the_wire_leaves_out_what_is_absent_and_cuts_the_expiry(interrupt):
    row = interrupt.to_storage()
    wire = {key: row[key] for key in ("id", "reason", "toolCallId", "message")}
    wire["expiresAt"] = row["expiresAt"] and f"{row['expiresAt'][:23]}Z"
    assert interrupt.to_protocol() == {key: wire[key] for key in wire if wire[key] is not None}


@given(times)
def test_a_stored_time_has_one_form(time):
    stored = make_ask(created_at=time).to_storage()["createdAt"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", stored, re.ASCII)


@given(times)
def test_a_stored_time_is_the_time_that_was_given(time):
    assert via_json(make_ask(created_at=time)).created_at == time


@given(times)
def test_a_time_that_another_writer_wrote_in_its_own_zone_is_read(time):
    assume(not time.utcoffset() % timedelta(minutes=1))
    row = {**make_ask().to_storage(), "createdAt": time.isoformat()}
    assert Interrupt.from_storage(row).created_at == time


def as_written(text: str) -> datetime | None:
    """Read a stored time as slowly and as literally as the documents describe it."""
    form = (
        r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?"
        r"(?:Z|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)"
    )
    match = re.fullmatch(form, text, re.ASCII)
    if match is None:
        return None
    *whole, fraction, sign, hours, minutes = match.groups("0")
    micros = int(f"{fraction:0<6}"[:6])
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    try:
        local = datetime(*map(int, whole), micros, UTC)
        return local + offset if sign == "-" else local - offset
    except (ValueError, OverflowError):
        return None


@given(nearly_times)
def test_a_text_that_is_nearly_a_time_is_read_as_written_or_refused(text):
    made = accepted(Interrupt.from_storage, {**make_ask().to_storage(), "createdAt": text})
    assert as_written(text) == (made and made.created_at)
    assert made is None or comes_back(made)


@given(times, times)
def test_the_order_of_stored_times_is_the_order_of_the_times(one, two):
    texts = [make_ask(created_at=time).to_storage()["createdAt"] for time in (one, two)]
    assert (texts[0] < texts[1], texts[0] == texts[1]) == (one < two, one == two)


@given(types, json_values | junk)
def test_anything_read_as_a_row_is_accepted_whole_or_refused(cls, row):
    value = accepted(cls.from_storage, row)
    assert value is None or comes_back(value)


@given(spoiled(interrupts))
def test_a_spoiled_interrupt_row_is_accepted_whole_or_refused(row):
    value = accepted(Interrupt.from_storage, row)
    assert value is None or comes_back(value)


@given(spoiled(records))
def test_a_spoiled_record_row_is_accepted_whole_or_refused(row):
    value = accepted(RunRecord.from_storage, row)
    assert value is None or comes_back(value)


@given(values, junk, st.data())
def test_a_junk_field_is_accepted_whole_or_refused(value, junk, data):
    field = data.draw(st.sampled_from([field.name for field in fields(value)]))
    made = accepted(replace, value, **{field: junk})
    assert made is None or comes_back(made)


@given(junk)
@example(["\ud800"])
@example({"\ud800": 1})
@example(Ghost(["gone"]))
@example(Husk())
def test_a_junk_snapshot_is_accepted_whole_or_refused(junk):
    made = accepted(make_run, snapshot=junk)
    assert made is None or comes_back(made)


CREATE = {
    "tool_call_id": names,
    "arguments_digest": names,
    "expires_at": st.none() | times,
    "reason": names,
    "message": st.none() | texts,
    "created_at": st.none() | times,
}
METHODS = {
    "decide": {"decision": st.sampled_from(Interrupt.DECISIONS)},
    "start": {"snapshot": json_values},
    "advance": {"snapshot": json_values},
    "interrupted": {"interrupts": st.lists(interrupts, max_size=2)},
    "finish": {
        "status": st.sampled_from(RunRecord.TERMINAL_STATUSES),
        "failure": st.none() | failures | failures.map(UserDict),
    },
    "replace_interrupt": {"decided": interrupts},
}


def with_junk(draw: st.DrawFn, parameters: dict[str, st.SearchStrategy[Any]]) -> dict[str, Any]:
    """Return arguments for these parameters, any of which may be junk."""
    return {name: draw(evenly(good, good, junk)) for name, good in parameters.items()}


@given(st.data())
def test_junk_arguments_of_create_are_accepted_whole_or_refused(data):
    made = accepted(Interrupt.create, **with_junk(data.draw, CREATE))
    assert made is None or comes_back(made)


@pytest.mark.parametrize("method", METHODS)
@given(data=st.data())
def test_junk_arguments_of_a_transition_are_accepted_whole_or_refused(method, data):
    value = data.draw(interrupts if method == "decide" else records)
    before = text_of(value)
    arguments = with_junk(data.draw, {**METHODS[method], "now": times})
    with suppress(StreamError):
        made = accepted(getattr(value, method), **arguments)
        assert made is None or comes_back(made)
    assert text_of(value) == before


@given(interrupts, records, junk)
def test_a_junk_question_is_answered_or_refused(interrupt, record, junk):
    answers = [accepted(ask, junk) for ask in (interrupt.is_expired, interrupt.is_answerable)]
    assert {*map(type, answers)} <= {bool, type(None)}
    assert accepted(record.interrupt, junk) in (None, *record.interrupts)
