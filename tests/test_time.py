"""Times: aware and in UTC inside, one form of text outside."""

from datetime import UTC, date, datetime, timedelta, timezone, tzinfo

import pytest

from agui_runs import ConfigurationError, Interrupt
from builders import HOUR, SEC, T0, make_ask, make_run, via_json
from examples import (
    ASK,
    ASK_2,
    ROW,
    RUN,
    SECRET,
    YES,
    YES_ROW,
    each,
    each_record,
    label,
    load,
    refusal,
)

NAIVE, EXPIRY, MICRO = datetime(2026, 3, 2, 9, 5), ASK.expires_at, SEC / 1_000_000
FIRST, LAST = (edge.replace(tzinfo=UTC) for edge in (datetime.min, datetime.max))
CREATE = {"tool_call_id": "call-1", "arguments_digest": SECRET}
TIMES = {
    "ask expires_at": lambda time: make_ask(expires_at=time),
    "ask decided_at": lambda time: make_ask(status="denied", decided_at=time),
    "ask created_at": lambda time: make_ask(created_at=time),
    "create expires_at": lambda time: Interrupt.create(**CREATE, expires_at=time),
    "create created_at": lambda t: Interrupt.create(**CREATE, expires_at=None, created_at=t),
    "run updated_at": lambda time: make_run(updated_at=time),
    "run created_at": lambda time: make_run(created_at=time),
}
NOW = {
    "is_expired": lambda record, time: (*record.interrupts, ASK)[0].is_expired(time),
    "is_answerable": lambda record, time: (*record.interrupts, YES)[0].is_answerable(time),
    "decide": lambda record, time: (*record.interrupts, YES)[0].decide("denied", now=time),
    "start": lambda record, time: record.start(now=time),
    "advance": lambda record, time: record.advance(now=time),
    "interrupted": lambda record, time: record.interrupted([ASK, ASK_2], now=time),
    "finish": lambda record, time: record.finish("succeeded", now=time),
    "replace_interrupt": lambda record, time: record.replace_interrupt(ASK, now=time),
}
STORED_TIMES = [(YES_ROW, "expiresAt"), (YES_ROW, "decidedAt"), (YES_ROW, "createdAt")]
STORED_TIMES += [(ROW, "createdAt"), (ROW, "updatedAt")]
each_stored_time = each(("row", "key"), STORED_TIMES, ids=[key for _, key in STORED_TIMES])


class Nowhere(tzinfo):
    def utcoffset(self, when):
        return None


WRONG = [NAIVE, date(2026, 3, 2), HOUR, 1772442600, 1.5, True, [SECRET], {"$date": 1}]
WRONG += [LAST.replace(tzinfo=timezone(-HOUR)), FIRST.replace(tzinfo=timezone(HOUR))]
WRONG += [NAIVE.replace(tzinfo=Nowhere()), "2026-03-02T09:00:00", SECRET.encode()]


@each("time", WRONG, ids=label)
@each("name", TIMES)
def test_a_time_that_is_no_aware_datetime_is_refused_by_name(name, time):
    assert f": {name.split()[1]} " in refusal(TIMES[name], time)


@each("call", NOW.values(), ids=NOW)
@each_record
def test_a_wrong_now_is_refused_before_the_state_is_looked_at(record, call):
    for time in [*WRONG, None]:
        assert ": now " in refusal(call, record, time)


@each("value", [*WRONG, T0, "soon"], ids=label)
@each_stored_time
def test_a_stored_value_that_is_no_time_with_a_zone_is_refused_by_key(row, key, value):
    assert f": {key} " in refusal(load, {**row, key: value})


def test_times_survive_storage_to_the_microsecond_in_text_of_the_same_order():
    steps = [0 * SEC, MICRO, 10 * MICRO, SEC / 2, SEC, HOUR, 99_999 * HOUR]
    times = [FIRST, datetime(987, 6, 5, tzinfo=UTC), *(T0 + step for step in steps), LAST]
    asks = [make_ask(expires_at=t, status="denied", decided_at=t, created_at=t) for t in times]
    runs = [RUN.start(now=time) for time in times]
    assert [via_json(value) for value in asks + runs] == asks + runs
    texts = [run.to_storage()["updatedAt"] for run in runs]
    assert texts == sorted(texts)
    assert texts[1] == "0987-06-05T00:00:00.000000Z"


class NotATime(datetime):
    """As pandas' NaT: a datetime until it is asked anything."""

    def utcoffset(self):
        raise ValueError("it does not support utcoffset")


def test_a_datetime_that_is_no_time_is_refused():
    with pytest.raises(ConfigurationError, match="datetime, not NotATime"):
        ASK.is_expired(NotATime(2026, 3, 2))


class Clock(datetime):
    """A subclass of datetime, as test clocks and data frames bring."""


class Autumn(tzinfo):
    """A zone in the hour that comes twice."""

    def utcoffset(self, time):
        return HOUR if time.fold else 2 * HOUR


@each(
    ("given", "kept"),
    [
        (Clock(2026, 3, 2, 9, tzinfo=UTC), T0),
        (datetime(2026, 3, 2, 14, 30, tzinfo=timezone(5.5 * HOUR)), T0),
        (datetime(2026, 3, 2, 9, 0, 1, 7, tzinfo=timezone(SEC)), T0 + timedelta(microseconds=7)),
        (datetime(2026, 3, 2, 11, tzinfo=Autumn()), T0),
        (datetime(2026, 3, 2, 10, fold=1, tzinfo=Autumn()), T0),
        (datetime.min.replace(tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_time_is_kept_as_a_plain_datetime_in_utc(given, kept):
    time = make_ask(created_at=given).created_at
    assert (time, type(time), time.tzinfo, time.fold) == (kept, datetime, UTC, 0)


def read(text):
    return Interrupt.from_storage({**make_ask().to_storage(), "createdAt": text}).created_at


@each(
    ("text", "micros"),
    [
        ("2026-03-02T09:00:00.000000Z", 0),
        ("2026-03-02T09:00:00Z", 0),
        ("2026-03-02T09:00Z", 0),
        ("2026-03-02 09:00:00+00:00", 0),
        ("2026-03-02T09:00:00+00", 0),
        ("2026-03-02T09:00:00-00:00", 0),
        ("2026-03-02T14:30:00+0530", 0),
        ("2026-03-02T14:30:00.0+05:30", 0),
        ("2026-03-03T08:59:00+23:59", 0),
        ("2026-03-01T09:01:00-23:59", 0),
        ("2026-03-02T08:00:00.5-01", 500_000),
        ("2026-03-02T09:00:00.1234569Z", 123_456),
        ("2026-03-02T09:00:00." + "9" * 5000 + "Z", 999_999),
    ],
)
def test_the_spellings_of_other_writers_are_read(text, micros):
    assert (read(text), read(text).tzinfo) == (T0 + timedelta(microseconds=micros), UTC)


NO_TIMES = """
soon 2026-03-02 2026-03-02T09:00:00 2026-03-02T09:00:00.000000 2026-03-02T09Z 09:00:00Z
20260302T090000Z 2026-03-02T090000Z 2026-W10-1T09:00:00Z 2026-W10-1T09:00:00.000000Z
2026-061T09:00:00Z 2026-061T09:00:00.0000000Z 2026-02-29T09:00:00Z 2026-02-29T09:00:00.000000Z
2026-13-02T09:00:00Z 0000-03-02T09:00:00.000000Z -026-03-02T09:00:00Z 12026-03-02T09:00:00Z
2026-03-02T24:00:00Z 2026-03-02T24:00:00.000000Z 2026-03-02T09:60Z 2026-03-02T09:60:00.000000Z
2026-03-02T09:00:60Z 2026-03-02T09:00:60.000000Z 2026-03-02T09:00:00.00000xZ
2026-03-02T09:00:00,5Z 2026-03-02T09:00:00,000000Z 2026-03-02T09:00:00.Z 2026-03-02T09:00.5Z
2026-03-02T09:00:00z 2026-03-02T09:00:00.000000z 2026-03-02t09:00:00Z 2026-03-02_09:00:00Z
2026-03-02t09:00:00.000000Z 2026-03-02T09:00:00+00:00:01 2026-03-02T09:00:00+000001
2026-03-02T09:00:00+24:00 2026-03-02T09:00:00+00:60 2026-03-02T09:00:00+5 2026-03-02T09:00:00UTC
2026-03-02T09:00:00+00:00[UTC] 0001-01-01T00:00:00+00:01 9999-12-31T23:59:59.999999-00:01
"""
NOT_ASCII = [
    "2026-03-02T09:00:00.\ud80000000Z",
    "2026-03-02T09:00:00.\N{ARABIC-INDIC DIGIT FIVE}00000Z",
    "2026-03-02T0\N{FULLWIDTH DIGIT NINE}:00:00Z",
    "2026-03-02T09:00:00\N{MINUS SIGN}05:00",
]
SPACED = [
    "",
    "2026-03-02T09:00:00.1Z\x00000Z",
    "2026-03-02T09:00:00 Z",
    "2026-03-02T09:00:00Z\n",
    " 2026-03-02T09:00:00Z",
]


@each("text", [*NO_TIMES.split(), *NOT_ASCII, *SPACED], ids=ascii)
def test_any_other_text_is_refused_as_a_time(text):
    with pytest.raises(ConfigurationError, match=r"createdAt (must be an ISO 8601|leaves the cal)"):
        read(text)
