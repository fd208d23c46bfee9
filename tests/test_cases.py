"""Ways in which code of this kind is known to go wrong, each kind closed as a whole."""

import copy
import json
import pickle
from collections import ChainMap, Counter, OrderedDict, UserDict, defaultdict, namedtuple
from dataclasses import replace
from datetime import UTC, date, datetime, timezone, tzinfo
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from functools import partial
from types import MappingProxyType

import pytest

from agui_runs import ConfigurationError, Interrupt, RunRecord, StreamError
from builders import HOUR, SEC, T0, make_ask, make_run, nested, via_json

SECRET = "s3cr3t"  # What a host keeps in its values, and no refusal in this module may show.
FAILURE = {"message": SECRET, "code": SECRET}
ASK = make_ask(message=SECRET, arguments_digest=SECRET)
ASK_2, FORGED = replace(ASK, id="ask-2"), replace(ASK, id="ask-9", tool_call_id="call-9")
YES, NO, DROPPED = (ASK.decide(decision, now=T0) for decision in Interrupt.DECISIONS)
RUN, STATEFUL = make_run(), make_run(snapshot={"items": [1, [], {"apiKey": SECRET}]})
LIVE = RUN.start(now=T0)
PAUSED = LIVE.interrupted([ASK, ASK_2], now=T0)
HALF = PAUSED.replace_interrupt(YES, now=T0)
DONE = HALF.replace_interrupt(ASK_2.decide("denied", now=T0), now=T0)
SUCCEEDED, GONE = (LIVE.finish(status, now=T0) for status in ("succeeded", "cancelled"))
FAILED = LIVE.finish("failed", now=T0, failure=FAILURE)
ENDED = {"succeeded": SUCCEEDED, "interrupted": PAUSED, "cancelled": GONE, "failed": FAILED}
RECORDS = {"reserved": RUN, "started": LIVE, **ENDED, "half answered": HALF, "answered": DONE}
RECORDS |= {"with a state": STATEFUL, "deep": make_run(snapshot=nested(100))}
VALUES = {**RECORDS, "ask": ASK, "answer": YES}
BEFORE = {name: json.dumps(value.to_storage()) for name, value in VALUES.items()}
ROW, ASK_ROW, YES_ROW = STATEFUL.to_storage(), ASK.to_storage(), YES.to_storage()

NAIVE, EXPIRY, MICRO = datetime(2026, 3, 2, 9, 5), ASK.expires_at, SEC / 1_000_000
FIRST, LAST = (edge.replace(tzinfo=UTC) for edge in (datetime.min, datetime.max))
Plain, Way = Enum("Plain", {"YES": "approved"}), StrEnum("Way", {"MAIL": "mail"})
Level = IntEnum("Level", {"HIGH": 3})

each = pytest.mark.parametrize
each_record = each("record", RECORDS.values(), ids=RECORDS)
each_ended = each("record", ENDED.values(), ids=ENDED)
each_decision = each("decision", Interrupt.DECISIONS)


@pytest.fixture(autouse=True)
def _everything_made_before_is_as_it_was():
    yield
    assert {name: json.dumps(value.to_storage()) for name, value in VALUES.items()} == BEFORE


def told(error):
    """Return all that an error says, and those that are chained to it."""
    chained = [told(other) for other in (error.__cause__, error.__context__) if other]
    return f"{error} {error!r} {vars(error)} {chained}"


def refusal(call, *args, **kwargs):
    """Return the text of the ConfigurationError that the call raises."""
    with pytest.raises(ConfigurationError) as caught:
        call(*args, **kwargs)
    assert SECRET not in told(caught.value)
    return str(caught.value)


def code(call, *args, **kwargs):
    """Return the code of the StreamError that the call raises."""
    with pytest.raises(StreamError) as caught:
        call(*args, **kwargs)
    assert SECRET not in told(caught.value)
    return caught.value.code


def load(row):
    return (Interrupt if "toolCallId" in row else RunRecord).from_storage(row)


def without(row, key):
    return {name: value for name, value in row.items() if name != key}


def label(value):
    return repr(value) if isinstance(value, str | bool | None) else type(value).__name__


# 1. Approval integrity
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


@each("held", [PAUSED, HALF], ids=["still pending", "answered"])
@each("answer", [ASK, YES, NO, DROPPED], ids=lambda answer: answer.status)
@each("name", ["tool_call_id", "arguments_digest", "expires_at", "reason", "message", "created_at"])
def test_an_answer_to_anything_but_what_was_asked_is_refused(name, answer, held):
    swapped = replace(answer, **{name: EXPIRY + HOUR if name.endswith("_at") else "other"})
    assert code(held.replace_interrupt, swapped, now=T0) == "interrupt_changed"


@each_decision
@each_record
def test_what_was_never_asked_or_was_answered_before_grants_nothing(record, decision):
    answered = [ask.decide(decision, now=T0) for ask in (ASK, FORGED)]
    assert "'ask-9'" in refusal(record.replace_interrupt, FORGED, now=T0)
    assert "'ask-9'" in refusal(record.replace_interrupt, answered[1], now=T0)
    assert "pending" in refusal(record.interrupted, answered, now=T0)


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


# 2. State that is not storable JSON
PLACES = {
    "snapshot": lambda value: value,
    "snapshot.b": lambda value: {"a": SECRET, "b": value},
    "snapshot[1]": lambda value: (SECRET, value),
    "snapshot.m": lambda value: UserDict(m=value),
    "snapshot.todo[0].dueAt": lambda value: {"todo": [{"dueAt": value}]},
}
DOORS = {
    "constructor": lambda state: make_run(snapshot=state),
    "start": lambda state: RUN.start(now=T0, snapshot=state),
    "advance": lambda state: LIVE.advance(now=T0, snapshot=state),
    "from_storage": lambda state: load({**ROW, "snapshot": state}),
}
each_door = each("door", DOORS.values(), ids=DOORS)
NOT_JSON = [T0, date(2026, 3, 2), SEC, Decimal("1.5"), 1j, SECRET.encode(), {SECRET}, range(3)]
NOT_JSON += [iter([]), {}.keys(), object(), ..., Plain.YES, ASK, RUN, RuntimeError(SECRET), len]
NOT_JSON += [float("nan"), float("inf"), float("-inf"), 10**4300, -(10**4300)]
NO_KEYS = [1, 1.5, True, None, (SECRET,), SECRET.encode(), T0, Level.HIGH, "\udc88"]
MAPPINGS = [{Way.MAIL: 2}, Counter(mail=2), OrderedDict(mail=2), defaultdict(int, mail=2)]
MAPPINGS += [UserDict(mail=2), ChainMap({"mail": 2}, {"mail": 3}), MappingProxyType({"mail": 2})]
PLAIN = [*((mapping, {"mail": 2}) for mapping in MAPPINGS), (Level.HIGH, 3), (Way.MAIL, "mail")]
PLAIN += [((1, 2), [1, 2]), (namedtuple("Pos", "x y")(1, 2), [1, 2])]
PLAIN += [(number, number) for number in (10**4300 - 1, 1 - 10**4300)]
HALVES = [f"{SECRET}\udc88", f"\ud800{SECRET}", f"{SECRET}\udbff\u00e9", "\ud83d", "\ude00"]
WHOLES = ["\x00", "Send\x00 it?", "\\u0000", "\U0001f600", " e\u0301 / 1", "a\u2028", "{}", "[]"]
WHOLES += ["abc", "g" * 64, "sha256:" + "A1" * 32]


def failing(**failure):
    return make_run(status="failed", failure={"message": SECRET, **failure})


ASK_NAMES = ("id", "tool_call_id", "arguments_digest", "reason")
RUN_NAMES = ("scope", "thread_id", "run_id", "digest")
NAMES = {name: lambda text, name=name: make_ask(**{name: text}) for name in ASK_NAMES}
NAMES |= {name: lambda text, name=name: make_run(**{name: text}) for name in RUN_NAMES}
NAMES |= {"failure.message": lambda text: failing(message=text)}
NAMES |= {"failure.code": lambda text: failing(code=text)}
TEXTS = {
    **NAMES,
    "message": lambda text: make_ask(message=text),
    "snapshot": lambda text: make_run(snapshot=text),
    "deep in a snapshot": lambda text: make_run(snapshot={"a": ["", text]}),
}


def objects(depth):
    value = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


LOOP, HIDDEN_LOOP = {"apiKey": SECRET}, []
LOOP["self"] = LOOP
HIDDEN_LOOP.append({"a": (UserDict(a=HIDDEN_LOOP),)})
ENDLESS = [[SECRET, build(depth)] for build in (nested, objects) for depth in (100, 50_000)]
ENDLESS += [LOOP, HIDDEN_LOOP]


@each_door
@each(("path", "put"), PLACES.items(), ids=PLACES)
@each("value", NOT_JSON, ids=label)
def test_what_is_not_json_is_refused_by_place_and_type(value, path, put, door):
    said = refusal(door, put(value))
    assert said.startswith(f"run record: {path}: ")
    assert type(value).__name__ in said


@each("key", NO_KEYS, ids=label)
def test_a_key_that_is_no_text_is_refused_also_beside_its_text(key):
    said = refusal(make_run, snapshot={"m": {str(key): SECRET, key: SECRET}})
    assert said.encode().startswith(b"run record: snapshot.m: ")


@each("mapping", [dict, OrderedDict, UserDict, MappingProxyType])
def test_keys_that_fall_together_as_text_are_refused(mapping):
    class Apart(str):
        __slots__ = ()
        __eq__, __hash__ = object.__eq__, object.__hash__

    assert "'a'" in refusal(make_run, snapshot=mapping({Apart("a"): SECRET, "a": SECRET}))


@each("text", WHOLES)
@each("make", [*TEXTS.values(), lambda text: make_run(snapshot={text: 0})], ids=[*TEXTS, "key"])
def test_unusual_text_is_legal_and_kept_exactly(make, text):
    assert json.dumps(text) in json.dumps(via_json(make(text)).to_storage())
    assert via_json(make(text)) == make(text)


@each("text", HALVES)
@each("make", TEXTS.values(), ids=TEXTS)
def test_half_a_surrogate_pair_is_refused_in_words_that_can_be_written(make, text):
    row = json.dumps(make("whole").to_storage()).replace('"whole"', json.dumps(text))
    assert refusal(make, text).encode()
    assert refusal(load, json.loads(row)).encode()


@each(("given", "plain"), PLAIN, ids=label)
@each_door
def test_a_type_that_storage_does_not_bring_back_is_plain_at_once(door, given, plain):
    run = door({"given": given})
    assert run.snapshot == via_json(run).snapshot == {"given": plain}
    assert repr(run.to_storage()["snapshot"]) == repr({"given": plain})
    assert json.dumps(run.snapshot) == json.dumps({"given": plain})
    assert copy.copy(run.snapshot) is copy.deepcopy(run.snapshot) is run.snapshot


@each("value", ENDLESS)
@each_door
def test_nesting_without_end_is_refused_and_a_hundred_levels_are_not(door, value):
    assert "nested deeper" in refusal(door, value)
    assert door(objects(100)).snapshot == objects(100)


# 3. Terminal status overwritten or misreported
@each("status", RunRecord.TERMINAL_STATUSES)
@each_ended
def test_an_ended_run_never_ends_in_another_way(record, status):
    if status == record.status:
        assert record.finish(status, now=T0 + HOUR) is record
    else:
        assert code(record.finish, status, now=T0 + SEC) == "run_ended"


@each("asks", [[ASK_2], [ASK_2, ASK], [ASK, ASK_2, FORGED]], ids=["fewer", "reordered", "more"])
@each_ended
def test_nothing_happens_after_the_end(record, asks):
    assert code(record.start, now=T0) == "run_ended"
    assert code(record.advance, now=T0, snapshot={}) == "run_ended"
    assert code(record.interrupted, asks, now=T0) == "run_ended"


@each("record", [RUN, LIVE, STATEFUL], ids=["reserved", "started", "with a state"])
@each("status", ["succeeded", "cancelled", "failed"])
def test_a_run_may_end_before_and_after_it_starts(status, record):
    ended = record.finish(status, now=T0 + SEC)
    assert ended == via_json(ended) == replace(record, status=status, updated_at=T0 + SEC)


@each("status", [status for status in RunRecord.STATUSES if status != "failed"])
def test_a_failure_stands_on_a_failed_record_only(status):
    assert "failure" in refusal(replace, RECORDS[status], failure=FAILURE)
    assert "failure" in refusal(load, {**RECORDS[status].to_storage(), "failure": FAILURE})


# 4. Time
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
NO_TIMES = ["2026-03-02T09:10:00.000000", "2026-03-02", "2026-03-02T09Z", "soon", "", "\udc88", T0]
NO_TIMES += ["2026-03-02T24:00:00Z", "2026-03-02T09:60:00Z", "2026-02-30T09:10:00Z", *WRONG]
NO_TIMES += ["2026-03-02T09:10:00z", "2026-03-02T09:10:00 Z", "20260302T091000Z"]
NO_TIMES += ["2026-03-02T09:10:00,123456Z", "2026-03-02T09:10:00.Z", "2026-03-02T09:10:00Z\n"]
NO_TIMES += [
    "2026-03-02T09:10:00.5Z\x00567Z",
    "2026-03-02T09:10:Z\x00.123456Z",
    "2026-03-02T24:00:00.000000Z",
]
NO_TIMES += [
    "2026-03-02T09:10:00+24:00",
    "2026-03-02T09:10:00+00:00:01",
    "2026-W10-1T09:10:00.123456Z",
]
NO_TIMES += ["9999-12-31T23:59:59-00:01", "0001-01-01T00:00:00+00:01", "0000-01-01T00:00:00Z"]
SPELLINGS = {"09:10Z": "00", "09:10:07Z": "07", "14:40:07+05:30": "07", "14:40+0530": "00"}
SPELLINGS |= {"19:10:00.0+10": "00", "08:10:00.000009-01": "00.000009", "09:10:07.99Z": "07.99"}
SPELLINGS |= {"09:10:00.1234569Z": "00.123456", "09:10:59.9999999Z": "59.999999"}


@each("time", WRONG, ids=label)
@each("name", TIMES)
def test_a_time_that_is_no_aware_datetime_is_refused_by_name(name, time):
    assert f": {name.split()[1]} " in refusal(TIMES[name], time)


@each("call", NOW.values(), ids=NOW)
@each_record
def test_a_wrong_now_is_refused_before_the_state_is_looked_at(record, call):
    for time in [*WRONG, None]:
        assert ": now " in refusal(call, record, time)


@each("value", NO_TIMES, ids=label)
@each_stored_time
def test_a_stored_value_that_is_no_time_with_a_zone_is_refused_by_key(row, key, value):
    assert f": {key} " in refusal(load, {**row, key: value})


@each("day", ["2026-03-02T", "2026-03-02 "])
@each(("text", "seconds"), SPELLINGS.items(), ids=SPELLINGS)
@each_stored_time
def test_an_instant_in_another_spelling_is_the_same_and_never_rounded(row, key, text, seconds, day):
    stored = load({**row, key: day + text}).to_storage()[key]
    assert stored == f"2026-03-02T09:10:{float(seconds):09.6f}Z"


def test_times_survive_storage_to_the_microsecond_in_text_of_the_same_order():
    steps = [0 * SEC, MICRO, 10 * MICRO, SEC / 2, SEC, HOUR, 99_999 * HOUR]
    times = [FIRST, datetime(987, 6, 5, tzinfo=UTC), *(T0 + step for step in steps), LAST]
    asks = [make_ask(expires_at=t, status="denied", decided_at=t, created_at=t) for t in times]
    runs = [RUN.start(now=time) for time in times]
    assert [via_json(value) for value in asks + runs] == asks + runs
    texts = [run.to_storage()["updatedAt"] for run in runs]
    assert texts == sorted(texts)
    assert texts[1] == "0987-06-05T00:00:00.000000Z"


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


def test_two_events_in_one_instant_and_a_clock_behind_are_counted():
    late = LIVE.advance(now=T0).advance(now=T0).advance(now=T0 - SEC)
    assert (late.sequence, late.updated_at) == (3, T0 - SEC)


# 5. Restoring stored rows
REQUIRED = [(ASK_ROW, key) for key in ("id", "toolCallId", "argumentsDigest", "reason", "status")]
REQUIRED += [(ROW, key) for key in ("scope", "threadId", "runId", "digest", "status", "sequence")]
REQUIRED += [(ROW, "createdAt"), (ROW, "updatedAt"), (ASK_ROW, "expiresAt")]
OPTIONAL = [(ASK_ROW, key) for key in ("message", "decidedAt", "createdAt")]
OPTIONAL += [(ROW, "snapshot"), (ROW, "failure"), (ROW, "interrupts")]
OPTIONAL += [(FAILED.to_storage(), "failure")]
NO_ROWS = ["{}", "[]", b"{}", "", 7, True, [("id", "a")], {"id"}, ASK, RUN, iter([])]
EXTRA = {"_id": object(), "ttl": 86400, "version": 3, 7: None, "created_at": "soon"}


@each_decision
def test_a_decision_and_its_time_stand_together_or_not_at_all(decision):
    assert "decided_at" in refusal(replace, ASK, status=decision)
    assert "decidedAt" in refusal(load, {**ASK_ROW, "status": decision})
    assert "decided_at" in refusal(replace, ASK.decide(decision, now=T0), status="pending")
    assert "decidedAt" in refusal(load, {**YES_ROW, "status": "pending"})


def test_keys_that_the_store_added_are_ignored():
    asks = [{**interrupt.to_storage(), **EXTRA} for interrupt in PAUSED.interrupts]
    assert load({**PAUSED.to_storage(), **EXTRA, "interrupts": asks}) == PAUSED


@each(("row", "key"), OPTIONAL)
def test_an_optional_key_may_be_absent_or_null(row, key):
    absent = {**row, key: [] if key == "interrupts" else None}
    assert load(without(row, key)).to_storage() == load({**row, key: None}).to_storage() == absent


@each(("row", "key"), REQUIRED)
def test_a_required_key_is_named_where_it_is_missing_and_null_only_for_no_expiry(row, key):
    cls = Interrupt if row is ASK_ROW else RunRecord
    assert f": {key} is missing" in refusal(cls.from_storage, without(row, key))
    assert f": {key} must be" in refusal(cls.from_storage, {**row, key: [SECRET]})
    if key == "expiresAt":
        assert cls.from_storage({**row, key: None}).expires_at is None
    else:
        assert f": {key} must be" in refusal(cls.from_storage, {**row, key: None})


@each("value", NO_ROWS, ids=label)
def test_what_is_no_object_is_no_row_and_never_skipped(value):
    assert ": the stored value must be a mapping" in refusal(Interrupt.from_storage, value)
    assert ": the stored value must be a mapping" in refusal(RunRecord.from_storage, value)
    row = {**PAUSED.to_storage(), "interrupts": [ASK_ROW, value]}
    assert ": interrupts[1] must be a mapping" in refusal(load, row)
    assert ": interrupts" in refusal(load, {**row, "interrupts": value})


@each("mapping", [dict, MappingProxyType, UserDict, ChainMap, partial(defaultdict, list)])
@each("value", VALUES.values(), ids=VALUES)
def test_loading_takes_any_mapping_without_optional_keys_and_changes_nothing(value, mapping):
    row = {key: item for key, item in value.to_storage().items() if item not in (None, [])}
    given = mapping(copy.deepcopy(row))
    assert type(value).from_storage(given) == type(value).from_storage(given) == value
    assert dict(given) == row


# 6. The set of interrupts
@each("twin", [ASK, YES, replace(FORGED, id="ask-1")], ids=["itself", "decided", "another"])
def test_two_requests_with_one_id_are_refused_at_every_door(twin):
    asks, said = [ASK, ASK_2, twin], "interrupts[2] repeats the id 'ask-1'"
    row = {**PAUSED.to_storage(), "interrupts": [ask.to_storage() for ask in asks]}
    assert said in refusal(LIVE.interrupted, asks, now=T0)
    assert said in refusal(PAUSED.interrupted, asks, now=T0)
    assert said in refusal(make_run, status="interrupted", interrupts=asks)
    assert said in refusal(load, row)


def test_several_requests_for_one_tool_call_survive_the_pause_in_order():
    asks = [make_ask(id=name) for name in ("c", "a", "b")]
    stored = via_json(LIVE.interrupted(iter(asks), now=T0 + SEC))
    assert [ask.to_protocol()["id"] for ask in stored.interrupts] == ["c", "a", "b"]
    assert stored.updated_at == T0 + SEC


def test_a_pause_waits_until_the_last_answer():
    waiting = [(r.is_awaiting_approval, r.pending_interrupts) for r in (PAUSED, HALF, DONE)]
    assert waiting == [(True, (ASK, ASK_2)), (True, (ASK_2,)), (False, ())]
    assert PAUSED.status == HALF.status == DONE.status == "interrupted"


@each("other", ["ASK-1", "ask-1 ", " ask-1", "ask", "ask-11", "ask-1\x00", "ask-\uff11", "*"])
def test_ids_are_compared_exactly(other):
    assert PAUSED.interrupt(other) is None
    assert "decided must answer" in refusal(PAUSED.replace_interrupt, make_ask(id=other), now=T0)


# 7. Aliasing
@each_door
def test_the_caller_goes_on_changing_the_state_it_gave(door):
    state = {"items": [1]}
    record = door(state)
    state["items"].append(2)
    state["x"] = 1
    assert record.to_storage()["snapshot"] == record.snapshot == {"items": [1]}


def test_the_caller_goes_on_changing_the_failure_and_the_interrupts_it_gave():
    failure, asks = dict(FAILURE), [ASK]
    failed, paused = LIVE.finish("failed", now=T0, failure=failure), LIVE.interrupted(asks, now=T0)
    loaded = load({**ROW, "status": "failed", "failure": failure})
    failure["message"] = "changed"
    asks.append(ASK_2)
    assert (failed.failure, loaded.failure, paused.interrupts) == (FAILURE, FAILURE, (ASK,))


def spoil(value):
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            spoil(item)
    value.clear()


@each("write", [RunRecord.to_storage, RunRecord.to_dict])
@each_record
def test_what_the_caller_gets_is_plain_json_of_its_own(record, write):
    before, out = json.dumps(write(record), allow_nan=False), write(record)
    assert json.loads(before) == out
    spoil(out)
    assert json.dumps(write(record)) == before


# 8. Text leaks (besides, each refusal in this module is searched for the secret)
class Lazy(dict):
    """A dict that reads its values from a store, which no longer holds one of them."""

    def keys(self):
        return iter(["lost"])

    __iter__ = keys

    def __getitem__(self, key):
        raise KeyError(SECRET)


@each_door
def test_a_key_that_a_lazy_dict_no_longer_holds_is_refused(door):
    assert ": snapshot.a: " in refusal(door, {"a": Lazy()})


@each("value", VALUES.values(), ids=VALUES)
def test_no_repr_shows_what_the_host_keeps(value):
    assert SECRET not in repr(value).replace(f"code={SECRET!r}", "")


# 9. Wire shape
ERROR = RuntimeError(f"login to db-7 with {SECRET} refused")
FAILURES = [{}, {"code": SECRET}, {"message": None}, {"message": 1}, {"message": ERROR}, [], ""]
FAILURES += [{"message": text, "code": SECRET} for text in ("", " ", "\n\t", "\u2003")]
FAILURES += [{"message": SECRET, "code": code} for code in ("", " ", 7, True, [SECRET])]
FAILURES += [{**FAILURE, key: SECRET} for key in ("Message", "traceback", "", 1, None)]
FAILURES += [ERROR, str(ERROR), SECRET.encode(), [("message", SECRET)], True, 0, object()]


@each("expires_at", [None, EXPIRY], ids=["endless", "with an expiry"])
@each("message", [None, "", "Send?"], ids=repr)
def test_what_is_absent_is_left_out_and_never_null(message, expires_at):
    wire = make_ask(message=message, expires_at=expires_at).to_protocol()
    optional = {"message": message, "expiresAt": expires_at and "2026-03-02T09:10:00.000Z"}
    present = {key: value for key, value in optional.items() if value is not None}
    assert wire == {"id": "ask-1", "reason": "tool_call", "toolCallId": "call-1", **present}


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


@each("micros", [0, 1, 999, 1_000, 999_999])
def test_the_wire_has_milliseconds_cut(micros):
    wire = make_ask(expires_at=T0 + micros * MICRO).to_protocol()["expiresAt"]
    assert wire == f"2026-03-02T09:00:00.{micros // 1_000:03}Z"


# 10. Coerced decisions and status names
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


# 11. Sequence numbers
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


# 12. Digests and identity
NO_NAMES = ["", " ", "\t\n", "\u00a0", SECRET.encode(), 7, True, [SECRET], Plain.YES]


@each("value", NO_NAMES, ids=label)
@each("name", NAMES)
def test_an_id_or_digest_that_is_blank_or_no_text_is_refused(name, value):
    assert f": {name} must" in refusal(NAMES[name], value)


@each("mark", [":", "/", "|", "\x00", "', '", " "])
def test_ids_that_contain_a_separator_stay_apart(mark):
    keys = [make_run(scope=f"t{mark}1").key, make_run(scope="t", thread_id=f"1{mark}thread-1").key]
    assert keys == [(f"t{mark}1", "thread-1", "run-1"), ("t", f"1{mark}thread-1", "run-1")]


# 13. Python object protocols
@each("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@each("value", VALUES.values(), ids=VALUES)
def test_every_value_survives_storage_pickling_and_copying(value, protocol):
    twins = via_json(value), pickle.loads(pickle.dumps(value, protocol)), copy.deepcopy(value)
    assert twins == (value, value, value)
    assert len({value, *twins}) == 1
    assert {(f"{twin.status}", type(twin.status)) for twin in twins} == {(value.status, str)}


# What follows from all that (what concerns the errors is in their own module)
EQUAL = [({"n": 1, "l": [2]}, {"l": [2.0], "n": True}), ([[], {}], ((), UserDict())), (0.0, -0.0)]


@each_record
def test_arguments_are_checked_before_the_state_of_every_record(record):
    assert "snapshot" in refusal(record.start, now=T0, snapshot={1})
    assert "snapshot" in refusal(record.advance, now=T0, snapshot={1})
    assert "interrupts" in refusal(record.interrupted, [], now=T0)
    assert "interrupts[1]" in refusal(record.interrupted, [ASK, ASK_ROW], now=T0)
    assert "interrupts" in refusal(record.interrupted, {ASK: 1}, now=T0)
    assert "decided" in refusal(record.replace_interrupt, ASK_ROW, now=T0)
    for status in "succeeded", "interrupted", "cancelled":
        assert "failure" in refusal(record.finish, status, now=T0, failure=FAILURE)


def test_a_repeated_call_gives_the_very_same_object():
    assert LIVE.start(now=T0 + HOUR, snapshot={"items": [2]}) is LIVE
    assert FAILED.finish("failed", now=T0 + HOUR, failure={"message": "Another"}) is FAILED
    assert PAUSED.interrupted(map(via_json, [ASK, ASK_2]), now=T0 + HOUR) is PAUSED
    assert PAUSED.replace_interrupt(via_json(ASK), now=T0 + HOUR) is PAUSED
    assert HALF.replace_interrupt(via_json(YES), now=T0 + HOUR) is HALF


@each(("one", "other"), EQUAL, ids=repr)
def test_equal_states_are_equal_and_hash_equal(one, other):
    assert len({make_run(snapshot=state) for state in (one, other)}) == 1
    assert make_run(snapshot=one) != make_run(snapshot=[one])


@each("state", [{}, [], "", False, 0, 0.0], ids=repr)
def test_an_empty_or_false_state_replaces_the_old_one_and_none_keeps_it(state):
    for call in STATEFUL.start, STATEFUL.advance:
        assert json.dumps(call(now=T0, snapshot=state).snapshot) == json.dumps(state)
        assert call(now=T0, snapshot=None).snapshot == STATEFUL.snapshot


@each("status", RunRecord.STATUSES)
def test_interrupts_stand_on_an_interrupted_record_and_only_there(status):
    interrupts = [] if status == "interrupted" else [ASK]
    row = {**ROW, "status": status, "interrupts": [ask.to_storage() for ask in interrupts]}
    assert ": interrupts must " in refusal(make_run, status=status, interrupts=interrupts)
    assert ": interrupts must " in refusal(load, row)
    if status in ("reserved", "started"):
        assert "interrupted()" in refusal(RECORDS[status].finish, "interrupted", now=T0)


def test_the_reporting_shape_holds_no_digest_of_arguments():
    asks = [ask.to_dict() for ask in PAUSED.interrupts]
    assert ASK_ROW.keys() - ASK.to_dict() == {"argumentsDigest", "createdAt"}
    assert PAUSED.to_dict() == {**PAUSED.to_storage(), "interrupts": asks}
