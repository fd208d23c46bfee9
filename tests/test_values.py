"""One checklist for both values, for the frozen JSON inside them, and for their times."""

import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from uuid import UUID

import msgspec
import orjson
import pytest
from pydantic import TypeAdapter

from agui_runs import ConfigurationError, Interrupt, RunRecord
from builders import HOUR, SEC, T0, make_ask, make_run, nested, via_json
from strategies import Level, Way

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


def test_equality_and_hash_are_those_of_python_numbers():
    one, two = make_run(snapshot={"n": 1, "l": [2]}), make_run(snapshot={"l": [2.0], "n": True})
    assert (one == two, hash(one) == hash(two)) == (True, True)


@each_value
def test_a_stranger_has_its_own_say_about_equality(value):
    assert value.__eq__(value.to_storage()) is NotImplemented


@each_value
def test_repr_shows_identity_and_progress_only(value):
    assert repr(value) == REPRS[value]


@each(
    ("value", "change"),
    [
        (ASK, {"id": " "}),
        (ASK, {"status": "approved"}),
        (ASK, {"decided_at": T0}),
        (PAUSED, {"interrupts": ()}),
        (PAUSED, {"status": "started"}),
        (FAILED, {"status": "cancelled"}),
        (FAILED, {"sequence": -1}),
    ],
)
def test_replace_goes_through_the_same_checks(value, change):
    with pytest.raises(ConfigurationError):
        replace(value, **change)


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


@each(
    ("value", "names"),
    [
        (ASK, ["id", "tool_call_id", "arguments_digest", "reason", "message"]),
        (PAUSED, ["scope", "thread_id", "run_id", "digest", "snapshot"]),
    ],
)
def test_an_enum_member_becomes_plain_text(value, names):
    made = replace(value, **dict.fromkeys(names, Way.MAIL))
    kept = [getattr(made, name) for name in names]
    assert ({*kept}, {*map(type, kept)}) == ({"mail"}, {str})


def test_an_enum_member_is_as_good_as_the_status_it_equals():
    statuses = [make_run(status=Way.DONE).status, make_run().finish(Way.DONE, now=T0).status]
    assert (statuses, {*map(type, statuses)}) == (["succeeded"] * 2, {str})


def test_enum_members_in_a_snapshot_become_plain():
    snapshot = make_run(snapshot={Way.MAIL: [Level.HIGH, Way.MAIL]}).snapshot
    assert snapshot == {"mail": [3, "mail"]}
    assert [type(plain) for plain in [*snapshot, *snapshot["mail"]]] == [str, int, str]


@each("sign", [1, -1])
def test_an_int_has_as_many_digits_as_json_writes_and_no_more(sign):
    assert via_json(make_run(snapshot=sign * (10**4300 - 1))).snapshot == sign * (10**4300 - 1)
    with pytest.raises(ConfigurationError, match=r"snapshot\.n: an int of more than 4300 digits"):
        make_run(snapshot={"n": sign * 10**4300})


def test_a_sequence_that_json_cannot_write_is_neither_taken_nor_handed_out():
    last = make_run(sequence=10**4300 - 1)
    for call in (lambda: make_run(sequence=10**4300), lambda: last.advance(now=T0)):
        with pytest.raises(ConfigurationError, match="sequence must have at most 4300 digits"):
            call()


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


# The frozen containers

OBJECT: Any = make_run(snapshot={"a": [1]}).snapshot
ARRAY: Any = make_run(snapshot=[2, 1]).snapshot
READING = {
    *set(dir(object)) - {"__init__"},
    *("__class_getitem__", "__contains__", "__getitem__", "__iter__", "__len__", "__reversed__"),
    *("__add__", "__mul__", "__rmul__", "__or__", "__ror__", "fromkeys"),
    *("copy", "count", "get", "index", "items", "keys", "values"),
}
CHANGING = {
    OBJECT: {
        "__init__": ({"a": 2},),
        "__setitem__": ("a", 2),
        "__delitem__": ("a",),
        "__ior__": ({"a": 2},),
        "clear": (),
        "pop": ("a",),
        "popitem": (),
        "setdefault": ("b", 2),
        "update": ({"a": 2},),
    },
    ARRAY: {
        "__init__": ([2],),
        "__setitem__": (0, 3),
        "__delitem__": (0,),
        "__iadd__": ([2],),
        "__imul__": (2,),
        "append": (2,),
        "clear": (),
        "extend": ([2],),
        "insert": (0, 2),
        "pop": (),
        "remove": (1,),
        "reverse": (),
        "sort": (),
    },
}
each_container = each("frozen", CHANGING, ids=["object", "array"])


@each_container
def test_every_method_that_python_gives_a_container_is_known_here(frozen):
    assert set(dir(type(frozen).__base__)) - READING == set(CHANGING[frozen])


@each(
    ("frozen", "method"), [(frozen, method) for frozen in CHANGING for method in CHANGING[frozen]]
)
def test_a_frozen_container_refuses_each_change_that_a_plain_one_takes(frozen, method):
    arguments, plain = CHANGING[frozen][method], frozen.copy()
    with pytest.raises(TypeError, match=f"{type(frozen).__name__} is frozen"):
        getattr(frozen, method)(*arguments)
    assert frozen == plain
    getattr(plain, method)(*arguments)


@each_container
def test_calling_the_class_of_a_frozen_container_gives_a_plain_copy(frozen):
    copied = type(frozen)(frozen)
    assert (type(copied), copied) == (type(frozen).__base__, frozen)


def test_keys_are_made_into_a_plain_dict():
    assert type(OBJECT.fromkeys(["a"], [])) is type(type(OBJECT).fromkeys("a")) is dict


@each_container
def test_a_frozen_container_has_no_attributes_and_keeps_its_class(frozen):
    assert not hasattr(frozen, "__dict__")
    with pytest.raises(TypeError):
        frozen.__class__ = type(frozen).__base__


@each_container
def test_a_frozen_container_equals_its_plain_counterpart(frozen):
    plain = json.loads(json.dumps(frozen))
    assert (type(plain), plain == frozen, frozen == plain) == (type(frozen).__base__, True, True)


@each_container
def test_equal_frozen_containers_hash_equal(frozen):
    assert {make_run(snapshot=frozen.copy()).snapshot, frozen} == {frozen}


@each_container
def test_a_frozen_container_that_comes_in_again_is_kept_as_it_is(frozen):
    assert make_run().advance(now=T0, snapshot=frozen).snapshot is frozen


def test_frozen_containers_count_as_levels_too():
    deepest = make_run(snapshot=nested(100)).snapshot
    assert deepest == nested(100)
    for deeper in ([deepest], {"d": deepest}, nested(101)):
        with pytest.raises(ConfigurationError, match="nested deeper than 100 levels"):
            make_run(snapshot=deeper)


@each_container
def test_a_copy_of_a_frozen_container_is_itself(frozen):
    assert copy.copy(frozen) is copy.deepcopy(frozen) is frozen


class Liar(str):
    """Text that says of itself what makes it pass."""

    def isascii(self):
        return True

    def encode(self, *args):
        return b""

    def find(self, *args):
        return 26

    def __getitem__(self, place):
        return "--T::."

    def __len__(self):
        return 27


class Huge(int):
    def __lt__(self, other):
        return True

    __gt__ = __lt__


@each("value", [Liar("\ud800"), Huge(10**4300)], ids=["text", "int"])
def test_a_scalar_is_judged_by_what_it_is_and_not_by_what_it_says(value):
    with pytest.raises(ConfigurationError):
        make_run(snapshot=[value])


def test_a_stored_time_is_judged_by_what_it_is():
    with pytest.raises(ConfigurationError, match="ISO 8601 time with a zone"):
        read(Liar("2026-03-02T09:00:00"))


class Forgetful(dict):
    """A row that has its own way of saying that a key is missing."""

    def get(self, key, default=None):
        return self[key]


def test_a_mapping_that_raises_for_a_missing_key_is_read_like_any_other():
    row = make_run().to_storage()
    assert RunRecord.from_storage(Forgetful(row)) == make_run()
    del row["failure"], row["interrupts"]
    assert RunRecord.from_storage(Forgetful(row)) == make_run()


class NotATime(datetime):
    """As pandas' NaT: a datetime until it is asked anything."""

    def utcoffset(self):
        raise ValueError("it does not support utcoffset")


def test_a_datetime_that_is_no_time_is_refused():
    with pytest.raises(ConfigurationError, match="datetime, not NotATime"):
        ASK.is_expired(NotATime(2026, 3, 2))


@each("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_frozen_container_pickles_frozen_all_the_way_down(protocol):
    one, two = pickle.loads(pickle.dumps([OBJECT, ARRAY], protocol))
    assert (one, two) == (OBJECT, ARRAY)
    assert [type(one), type(two), type(one["a"])] == [type(OBJECT), type(ARRAY), type(ARRAY)]


@each(
    "encode",
    [
        lambda value: json.dumps(value),
        lambda value: json.dumps(value, indent=1),
        orjson.dumps,
        msgspec.json.encode,
        lambda value: json.dumps(msgspec.msgpack.decode(msgspec.msgpack.encode(value))),
        TypeAdapter(Any).dump_json,
        lambda value: json.dumps(TypeAdapter(Any).dump_python(value)),
    ],
    ids=["json", "json in Python", "orjson", "msgspec", "msgpack", "pydantic", "pydantic python"],
)
def test_encoders_take_a_frozen_snapshot_as_it_is(encode):
    assert json.loads(encode(PAUSED.snapshot)) == STATE


def test_a_failure_is_frozen_too():
    with pytest.raises(TypeError, match="is frozen"):
        FAILED.failure["message"] = "x"


# Times


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
