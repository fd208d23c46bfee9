"""What goes over the wire: the event that ends a run, and the answers that come back."""

import json
from collections import ChainMap, OrderedDict, UserDict, UserString, defaultdict, deque
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import MappingProxyType, SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_runs import ConfigurationError, Interrupt, RunRecord, StreamError
from builders import FAILURE, HOUR, SEC, T0, make_ask, make_run
from strategies import interrupts, junk, names, records, times

ASK = make_ask()
ASK_2 = make_ask(id="ask-2", tool_call_id="call-2")
ASK_3 = make_ask(id="ask-3", tool_call_id="call-3")
EXPIRY = ASK.expires_at
YES = ASK.decide("approved", now=T0)
NO_2 = ASK_2.decide("denied", now=T0)

RUN = make_run()
LIVE = RUN.start(now=T0)
PAUSED = LIVE.interrupted([ASK, ASK_2], now=T0)
HALF = PAUSED.replace_interrupt(YES, now=T0)
DONE = HALF.replace_interrupt(NO_2, now=T0)
GONE = LIVE.finish("cancelled", now=T0)
FAILED = LIVE.finish("failed", now=T0, failure=FAILURE)
FINISHED = {"type": "RUN_FINISHED", "threadId": "thread-1", "runId": "run-1"}
RECORDS = (RUN, LIVE, PAUSED, HALF, DONE, GONE, FAILED, LIVE.finish("succeeded", now=T0))
BEFORE = [json.dumps(record.to_storage()) for record in RECORDS]

each = pytest.mark.parametrize


@pytest.fixture(autouse=True)
def _everything_made_before_is_as_it_was():
    yield
    assert [json.dumps(record.to_storage()) for record in RECORDS] == BEFORE


def says(interrupt, approved, **more):
    payload = {"approved": approved, **more}
    return {"interruptId": interrupt.id, "status": "resolved", "payload": payload}


def drops(interrupt):
    return {"interruptId": interrupt.id, "status": "cancelled"}


def refusal(record, entries, now=T0):
    """Return the code and the text of the refusal that an answer must meet."""
    with pytest.raises(StreamError) as raised:
        record.answer(entries, now=now)
    return raised.value.code, str(raised.value)


def code(record, entries, now=T0):
    return refusal(record, entries, now)[0]


# --- The event that ends a run ------------------------------------------------------------------


def test_a_succeeded_run_ends_in_a_success():
    event = LIVE.finish("succeeded", now=T0).to_protocol()
    assert event == {**FINISHED, "outcome": {"type": "success"}}


def test_a_cancelled_run_ends_in_a_cancellation():
    assert GONE.to_protocol() == {**FINISHED, "outcome": {"type": "cancelled"}}


def test_a_failed_run_ends_in_the_error_that_was_stored_and_carries_no_ids():
    assert FAILED.to_protocol() == {
        "type": "RUN_ERROR",
        "message": "Mail service unavailable",
        "code": "mail_down",
    }


@each("failure", [{"message": "Down"}, {"message": "Down", "code": None}])
def test_a_failure_without_a_code_sends_none(failure):
    event = LIVE.finish("failed", now=T0, failure=failure).to_protocol()
    assert event == {"type": "RUN_ERROR", "message": "Down"}


def test_a_failed_run_without_a_failure_says_the_fixed_text():
    event = LIVE.finish("failed", now=T0).to_protocol()
    assert event == {"type": "RUN_ERROR", "message": "The run failed."}


def test_a_paused_run_lists_its_requests_in_their_order():
    interrupts = [ASK.to_protocol(), ASK_2.to_protocol()]
    outcome = {"type": "interrupt", "interrupts": interrupts}
    assert PAUSED.to_protocol() == {**FINISHED, "outcome": outcome}


def test_a_half_answered_pause_lists_what_is_still_open():
    outcome = {"type": "interrupt", "interrupts": [ASK_2.to_protocol()]}
    assert HALF.to_protocol() == {**FINISHED, "outcome": outcome}


@each("decisions", [("approved", "denied"), ("cancelled", "cancelled"), ("approved", "approved")])
def test_an_answered_pause_lists_everything_and_is_no_success(decisions):
    record = PAUSED
    for ask, decision in zip((ASK, ASK_2), decisions, strict=True):
        record = record.replace_interrupt(ask.decide(decision, now=T0), now=T0)
    interrupts = [ASK.to_protocol(), ASK_2.to_protocol()]
    outcome = {"type": "interrupt", "interrupts": interrupts}
    assert record.to_protocol() == {**FINISHED, "outcome": outcome}


def test_an_expired_request_is_listed_until_somebody_closes_it():
    expired = LIVE.interrupted([make_ask(expires_at=T0)], now=T0 + HOUR)
    [listed] = expired.to_protocol()["outcome"]["interrupts"]
    assert listed["expiresAt"] == "2026-03-02T09:00:00.000Z"


# How AG-UI names each way in which a run ends; the failure is an event of its own.
ENDINGS = {
    "succeeded": ("RUN_FINISHED", "success"),
    "interrupted": ("RUN_FINISHED", "interrupt"),
    "cancelled": ("RUN_FINISHED", "cancelled"),
    "failed": ("RUN_ERROR", None),
}


@each("status", RunRecord.TERMINAL_STATUSES)
def test_every_terminal_status_goes_out_under_its_own_name(status):
    interrupts = [ASK] if status == "interrupted" else []
    event = make_run(status=status, interrupts=interrupts).to_protocol()
    assert (event["type"], event.get("outcome", {}).get("type")) == ENDINGS[status]


@each("record", [RUN, LIVE, RUN.advance(now=T0), LIVE.advance(now=T0, snapshot={"n": 1})])
def test_a_live_run_has_no_ending_to_send(record):
    with pytest.raises(StreamError) as raised:
        record.to_protocol()
    assert raised.value.code == "run_not_ended"
    assert str(raised.value) == f"run 'run-1' is {record.status}; it has no ending to replay yet"


def test_every_event_is_a_fresh_dict_that_belongs_to_the_caller():
    event = PAUSED.to_protocol()
    event["outcome"]["interrupts"][0].clear()
    event.clear()
    assert PAUSED.to_protocol()["outcome"]["interrupts"][0] == ASK.to_protocol()


def has_null(value):
    if isinstance(value, dict):
        return any(map(has_null, value.values()))
    return any(map(has_null, value)) if isinstance(value, list) else value is None


@given(records)
def test_an_event_is_plain_json_without_null_or_none_is_given(record):
    if not record.is_terminal:
        with pytest.raises(StreamError):
            record.to_protocol()
        return
    event = record.to_protocol()
    assert json.loads(json.dumps(event)) == event
    assert not has_null(event)


@given(records)
def test_only_a_succeeded_run_is_ever_reported_as_a_success(record):
    if record.is_terminal:
        said = record.to_protocol().get("outcome", {}).get("type") == "success"
        assert said == (record.status == "succeeded")


# --- One request --------------------------------------------------------------------------------


def test_a_request_goes_out_whole():
    assert ASK.to_protocol() == {
        "id": "ask-1",
        "reason": "tool_call",
        "toolCallId": "call-1",
        "message": "Send the mail?",
        "expiresAt": "2026-03-02T09:10:00.000Z",
    }


def test_absent_values_of_a_request_are_left_out():
    bare = make_ask(message=None, expires_at=None).to_protocol()
    assert bare == {"id": "ask-1", "reason": "tool_call", "toolCallId": "call-1"}


def test_an_empty_message_is_a_message():
    assert make_ask(message="").to_protocol()["message"] == ""


def test_a_decision_makes_no_difference_on_the_wire():
    assert YES.to_protocol() == ASK.to_protocol()


@each(
    ("time", "text"),
    [
        (T0, "2026-03-02T09:00:00.000Z"),
        (T0 + timedelta(microseconds=999_999), "2026-03-02T09:00:00.999Z"),
        (T0 + timedelta(microseconds=999), "2026-03-02T09:00:00.000Z"),
        (datetime(987, 6, 5, tzinfo=UTC), "0987-06-05T00:00:00.000Z"),
        (datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC), "9999-12-31T23:59:59.999Z"),
    ],
)
def test_an_expiry_has_milliseconds_that_are_cut(time, text):
    assert make_ask(expires_at=time).to_protocol()["expiresAt"] == text


@given(interrupts)
def test_no_client_thinks_a_request_open_for_longer_than_the_server_does(interrupt):
    sent = interrupt.to_protocol().get("expiresAt")
    if sent is not None:
        cut = datetime.fromisoformat(sent)
        assert cut <= interrupt.expires_at < cut + timedelta(milliseconds=1)


# --- Answers: what they do ----------------------------------------------------------------------


@each(
    ("entry", "status"),
    [(says(ASK, True), "approved"), (says(ASK, False), "denied"), (drops(ASK), "cancelled")],
)
def test_an_entry_becomes_its_decision(entry, status):
    answered = LIVE.interrupted([ASK], now=T0).answer([entry], now=T0 + SEC)
    assert answered.interrupts == (ASK.decide(status, now=T0 + SEC),)


def test_a_list_is_applied_as_a_whole_in_any_order():
    answered = PAUSED.answer([says(ASK_2, False), says(ASK, True)], now=T0 + SEC)
    expected = PAUSED.replace_interrupt(ASK.decide("approved", now=T0 + SEC), now=T0 + SEC)
    expected = expected.replace_interrupt(ASK_2.decide("denied", now=T0 + SEC), now=T0 + SEC)
    assert answered == expected


def test_an_answer_changes_the_answers_and_the_time_and_nothing_else():
    answered = PAUSED.answer([says(ASK, True), drops(ASK_2)], now=T0 + SEC)
    changed = {
        key: value
        for key, value in answered.to_storage().items()
        if value != PAUSED.to_storage()[key]
    }
    assert set(changed) == {"interrupts", "updatedAt"}
    assert answered.updated_at == T0 + SEC


def test_a_decision_that_stands_is_repeated_beside_a_new_one_and_keeps_its_time():
    answered = HALF.answer([says(ASK, True), says(ASK_2, False)], now=T0 + SEC)
    assert answered.interrupts == (YES, ASK_2.decide("denied", now=T0 + SEC))


def test_only_what_is_pending_must_be_answered():
    answered = HALF.answer([says(ASK_2, True)], now=T0 + SEC)
    assert answered.interrupts == (YES, ASK_2.decide("approved", now=T0 + SEC))


def test_a_replayed_list_gives_the_same_object():
    done = PAUSED.answer([says(ASK, True), says(ASK_2, False)], now=T0 + SEC)
    assert done.answer([says(ASK_2, False), says(ASK, True)], now=T0 + SEC) is done


def test_a_replayed_list_gives_the_same_object_also_after_the_expiry():
    assert DONE.answer([says(ASK, True), says(ASK_2, False)], now=EXPIRY + HOUR) is DONE


def test_a_replay_of_some_gives_the_same_object():
    assert DONE.answer([says(ASK, True)], now=T0) is DONE


def test_an_empty_list_changes_nothing_where_nothing_is_pending():
    assert DONE.answer([], now=T0) is DONE


def test_expired_requests_can_be_cancelled():
    closed = PAUSED.answer([drops(ASK), drops(ASK_2)], now=EXPIRY)
    assert [ask.status for ask in closed.interrupts] == ["cancelled", "cancelled"]


def test_a_replay_stands_beside_the_cancellation_of_an_expired_request():
    closed = HALF.answer([says(ASK, True), drops(ASK_2)], now=EXPIRY)
    assert closed.interrupts == (YES, ASK_2.decide("cancelled", now=EXPIRY))


def test_an_answer_is_in_time_up_to_the_last_microsecond():
    last = EXPIRY - timedelta.resolution
    answered = PAUSED.answer([says(ASK, True), says(ASK_2, True)], now=last)
    assert answered.pending_interrupts == ()


# --- Answers: what they may look like -----------------------------------------------------------


class Word(StrEnum):
    ASK = "ask-1"
    RESOLVED = "resolved"
    CANCELLED = "cancelled"


class Ghostly(dict):
    """A client's dict that is asked for nothing but what it has."""

    def __missing__(self, key):
        raise AssertionError(key)


@each("kind", [dict, OrderedDict, UserDict, MappingProxyType, ChainMap, Ghostly])
def test_any_mapping_is_an_entry_and_a_payload(kind):
    entry = says(ASK, True)
    entry = kind({**entry, "payload": kind(entry["payload"])})
    assert HALF.answer((entry, drops(ASK_2)), now=T0).interrupt("ask-1") == YES


def test_a_defaultdict_neither_answers_by_itself_nor_grows():
    entry = defaultdict(lambda: True, {"interruptId": "ask-1", "status": "resolved"})
    assert code(HALF, [entry]) == "resume_invalid"
    payload = defaultdict(lambda: True)
    assert code(HALF, [{**entry, "payload": payload}]) == "resume_invalid"
    assert (len(entry), len(payload)) == (2, 0)


def test_words_may_be_of_a_subclass_of_str():
    entry = {"interruptId": Word.ASK, "status": Word.RESOLVED, "payload": {"approved": True}}
    assert HALF.answer([entry, drops(ASK_2)], now=T0).interrupt("ask-1") == YES
    entry = {"interruptId": Word.ASK, "status": Word.CANCELLED}
    assert LIVE.interrupted([ASK], now=T0).answer([entry], now=T0).pending_interrupts == ()


class Folded(str):
    """Text with an idea of equality of its own."""

    def __eq__(self, other):
        return self.casefold() == other.casefold()

    def __hash__(self):
        return hash(self.casefold())


def test_an_id_is_compared_as_plain_text():
    assert code(PAUSED, [{**drops(ASK), "interruptId": Folded("ASK-1")}]) == "resume_unknown"


@each(
    "entry",
    [
        {**says(ASK, True), "metadata": {"signature": "x"}},
        {**says(ASK, True), "metadata": None, "future": [1]},
        says(ASK, True, comment="fine", approvedBy="alice"),
        says(ASK, True, edited_args={}, editedargs={}),
    ],
)
def test_what_an_entry_holds_beside_the_answer_is_left_alone(entry):
    assert HALF.answer([entry, drops(ASK_2)], now=T0).interrupt("ask-1") == YES


@each("payload", [None, {}, {"approved": True}, {"editedArgs": {}}, "no", ["approved"], 0])
def test_the_payload_of_a_cancellation_is_left_alone(payload):
    answered = PAUSED.answer([{**drops(ASK), "payload": payload}, drops(ASK_2)], now=T0)
    assert [ask.status for ask in answered.interrupts] == ["cancelled", "cancelled"]


def test_the_entries_are_not_changed():
    entries = [says(ASK, True, comment={"text": "fine"}), drops(ASK_2)]
    before = json.dumps(entries)
    PAUSED.answer(entries, now=T0)
    assert json.dumps(entries) == before


# --- Answers: what is refused, in this order ----------------------------------------------------


@each("now", [datetime(2026, 3, 2, 9, 5), "2026-03-02T09:05:00Z", None, 0])
@each("record", RECORDS)
@each("entries", [[says(ASK, True)], [], "junk", None])
def test_a_bad_time_is_a_mistake_of_the_host_and_comes_first(record, entries, now):
    with pytest.raises(ConfigurationError, match=r"^run record: now must be a timezone-aware"):
        record.answer(entries, now=now)


@each(
    "entries",
    [
        None,
        {},
        says(ASK, True),
        "resolved",
        b"[]",
        {1, 2},
        iter([says(ASK, True)]),
        deque([says(ASK, True)]),
        UserDict({"0": says(ASK, True)}),
        7,
        True,
    ],
)
def test_what_is_no_list_is_invalid(entries):
    assert refusal(PAUSED, entries) == (
        "resume_invalid",
        f"resume must be a list, not {type(entries).__name__}",
    )


@each("entry", [None, "ask-1", 7, True, [], [says(ASK, True)], ("ask-1", "resolved"), {"ask-1"}])
def test_an_entry_that_is_no_object_is_invalid(entry):
    code, said = refusal(PAUSED, [says(ASK, True), entry])
    assert (code, said.partition(";")[0]) == (
        "resume_invalid",
        f"resume[1] must be an object, not {type(entry).__name__}",
    )


@each("id", [None, 7, 1.5, True, b"ask-1", ["ask-1"], {"id": "ask-1"}, UserString("ask-1")])
def test_an_id_that_is_no_text_is_invalid(id):
    assert refusal(PAUSED, [{**says(ASK, True), "interruptId": id}]) == (
        "resume_invalid",
        "resume[0].interruptId must be a string",
    )


@each("spelling", ["id", "interrupt_id", "interruptID", "InterruptId"])
def test_an_entry_without_its_id_is_invalid(spelling):
    entry = {spelling: "ask-1", "status": "cancelled"}
    assert refusal(PAUSED, [entry]) == (
        "resume_invalid",
        "resume[0].interruptId must be a string",
    )


@each(
    "status",
    [
        None,
        True,
        1,
        "",
        " ",
        "Resolved",
        "resolved ",
        "approved",
        "denied",
        "pending",
        ["resolved"],
        UserString("resolved"),
    ],
)
def test_a_status_that_agui_does_not_know_is_invalid(status):
    assert refusal(PAUSED, [{**says(ASK, True), "status": status}]) == (
        "resume_invalid",
        "resume[0].status must be 'resolved' or 'cancelled'",
    )


@each(
    "looks", [None, 1, 0, 1.0, 0.0, "true", "false", "yes", "", [], [True], {}, {"approved": True}]
)
def test_only_true_and_false_are_an_answer(looks):
    assert refusal(PAUSED, [says(ASK, looks), drops(ASK_2)]) == (
        "resume_invalid",
        "resume[0].payload.approved must be true or false",
    )


@each("payload", [{}, {"Approved": True}, {"answer": True}])
def test_a_resolved_entry_without_an_answer_is_invalid(payload):
    entry = {"interruptId": "ask-1", "status": "resolved", "payload": payload}
    assert refusal(PAUSED, [drops(ASK_2), entry]) == (
        "resume_invalid",
        "resume[1].payload.approved must be true or false",
    )


@each("payload", [None, True, "approved", [], [True], 1])
def test_a_payload_that_is_no_object_is_invalid(payload):
    entry = {"interruptId": "ask-1", "status": "resolved", "payload": payload}
    code, said = refusal(PAUSED, [drops(ASK_2), entry])
    assert (code, said.partition(";")[0]) == (
        "resume_invalid",
        f"resume[1].payload must be an object, not {type(payload).__name__}",
    )


@pytest.mark.parametrize("parsed", [SimpleNamespace(interrupt_id="ask-1"), object(), b"{}"])
@pytest.mark.parametrize("place", ["resume[0]", "resume[0].payload"])
def test_what_the_host_has_parsed_is_named_with_what_to_pass_instead(place, parsed):
    entry = {"interruptId": "ask-1", "status": "resolved", "payload": parsed}
    assert refusal(PAUSED, [entry if place.endswith("payload") else parsed]) == (
        "resume_invalid",
        f"{place} must be an object, not {type(parsed).__name__}; "
        "pass plain dicts, as model_dump(by_alias=True) gives them",
    )


class Forgetful(dict):
    """A mapping that has its own way of saying that a key is missing."""

    def get(self, key, default=None):
        return self[key]


@each("entry", [Forgetful(), {**says(ASK, True), "payload": Forgetful()}], ids=["entry", "payload"])
def test_a_mapping_that_raises_for_a_missing_key_is_invalid(entry):
    assert code(PAUSED, [entry]) == "resume_invalid"


class AnyCase(str):
    """Text that compares without regard to case, as header names do."""

    def __eq__(self, other):
        return self.lower() == other.lower()

    __hash__ = str.__hash__


@each("status", ["CANCELLED", "Resolved"])
def test_a_status_is_judged_by_its_characters(status):
    assert code(PAUSED, [{**says(ASK, True), "status": AnyCase(status)}]) == "resume_invalid"


def test_a_resolved_entry_without_a_payload_is_invalid():
    entry = {"interruptId": "ask-1", "status": "resolved"}
    assert code(PAUSED, [entry, drops(ASK_2)]) == "resume_invalid"


@each("edited", [None, {}, {"amount": 2}, "", False, []])
@each("approved", [True, False])
def test_changed_arguments_are_a_different_request(approved, edited):
    assert refusal(PAUSED, [says(ASK, approved, editedArgs=edited), drops(ASK_2)]) == (
        "resume_invalid",
        "resume[0].payload.editedArgs changes the request; ask for a new approval",
    )


@each("record", [RUN, LIVE, GONE, FAILED, LIVE.finish("succeeded", now=T0)])
@each("entries", [[says(ASK, True)], [drops(ASK)], [], ()])
def test_a_run_that_is_not_paused_waits_for_no_answer(record, entries):
    assert refusal(record, entries) == (
        "run_not_interrupted",
        f"run 'run-1' is {record.status} and waits for no answer",
    )


@each("id", ["ask-3", "", " ", "ASK-1", "ask-1 ", "call-1", "run-1"])
def test_an_unknown_id_is_refused(id):
    stranger = {"interruptId": id, "status": "cancelled"}
    assert refusal(PAUSED, [says(ASK, True), says(ASK_2, True), stranger]) == (
        "resume_unknown",
        f"run 'run-1' holds no interrupt '{id}'",
    )


@each("id", ["\ud800", "x" * 10_000, "ask-1\n\x00", "\u202eask"])
def test_an_id_from_a_client_is_shown_short_and_encodable(id):
    _, text = refusal(PAUSED, [{"interruptId": id, "status": "cancelled"}])
    assert len(text.encode()) < 200
    assert text.isprintable()


@each("second", [says(ASK, True), says(ASK, False), drops(ASK)])
def test_an_id_that_is_answered_twice_is_refused_also_where_both_agree(second):
    assert refusal(PAUSED, [says(ASK, True), says(ASK_2, True), second]) == (
        "resume_duplicate",
        "interrupt 'ask-1' is answered more than once",
    )


def test_a_decision_that_is_repeated_twice_is_refused_too():
    assert code(DONE, [says(ASK, True), says(ASK, True)]) == "resume_duplicate"


@each(
    ("record", "entries", "missing"),
    [
        (PAUSED, [says(ASK, True)], "'ask-2'"),
        (PAUSED, [drops(ASK_2)], "'ask-1'"),
        (PAUSED, [], "'ask-1', 'ask-2'"),
        (HALF, [says(ASK, True)], "'ask-2'"),
        (HALF, [], "'ask-2'"),
        (HALF, [says(ASK, False)], "'ask-2'"),
    ],
)
def test_every_pending_request_must_be_answered(record, entries, missing):
    assert refusal(record, entries) == (
        "resume_incomplete",
        f"every pending interrupt needs an answer, also {missing}",
    )


@each("entry", [says(ASK, False), drops(ASK)])
def test_an_entry_that_contradicts_the_decision_is_refused(entry):
    expected = ("interrupt_decided", "interrupt 'ask-1' is already approved; that decision stands")
    assert refusal(DONE, [entry]) == expected
    assert refusal(DONE, [entry], now=EXPIRY + HOUR) == expected
    assert refusal(HALF, [says(ASK_2, True), entry]) == expected


@each("now", [EXPIRY, EXPIRY + HOUR])
@each("approved", [True, False])
def test_an_expired_request_takes_no_yes_and_no_no(approved, now):
    assert refusal(PAUSED, [drops(ASK), says(ASK_2, approved)], now) == (
        "interrupt_expired",
        "interrupt 'ask-2' has expired; it can only be cancelled",
    )


BAD = {
    "resume_invalid": {"interruptId": "ask-1", "status": "maybe"},
    "resume_unknown": drops(ASK_3),
}


@each(
    ("record", "entries", "first"),
    [
        # Each is wrong in two ways, and the one that stands first in the contract is named.
        (GONE, [BAD["resume_invalid"]], "resume_invalid"),
        (PAUSED, [BAD["resume_unknown"], BAD["resume_invalid"]], "resume_invalid"),
        (GONE, [BAD["resume_unknown"]], "run_not_interrupted"),
        (GONE, [drops(ASK), drops(ASK)], "run_not_interrupted"),
        (PAUSED, [drops(ASK), drops(ASK), BAD["resume_unknown"]], "resume_unknown"),
        (PAUSED, [BAD["resume_unknown"]], "resume_unknown"),
        (PAUSED, [drops(ASK), drops(ASK)], "resume_duplicate"),
        (HALF, [drops(ASK), drops(ASK)], "resume_duplicate"),
        (HALF, [drops(ASK)], "resume_incomplete"),
        (DONE, [drops(ASK), drops(ASK_3)], "resume_unknown"),
    ],
)
def test_of_two_faults_the_first_of_the_contract_is_named(record, entries, first):
    assert code(record, entries) == first


def test_a_late_answer_that_is_incomplete_is_called_incomplete():
    assert code(PAUSED, [says(ASK, True)], now=EXPIRY) == "resume_incomplete"


@each(
    ("entries", "first"),
    [
        ([drops(ASK), says(ASK_2, True)], "interrupt_decided"),
        ([says(ASK_2, True), drops(ASK)], "interrupt_expired"),
    ],
)
def test_decisions_are_judged_entry_by_entry(entries, first):
    assert code(HALF, entries, now=EXPIRY) == first


def test_one_refused_entry_leaves_the_others_undone():
    first = make_ask(expires_at=T0 + HOUR)
    paused = LIVE.interrupted([first, ASK_2], now=T0)
    assert code(paused, [says(first, True), says(ASK_2, True)], now=EXPIRY) == "interrupt_expired"
    assert paused.pending_interrupts == (first, ASK_2)


# --- Answers: what always holds -----------------------------------------------------------------

waiting = st.lists(interrupts, min_size=1, max_size=4, unique_by=lambda asked: asked.id).map(
    lambda asked: make_run(status="interrupted", interrupts=asked)
)
words = st.sampled_from(["approved", "denied", "cancelled"])


def entry_for(interrupt_id, decision):
    if decision == "cancelled":
        return {"interruptId": interrupt_id, "status": "cancelled"}
    payload = {"approved": decision == "approved"}
    return {"interruptId": interrupt_id, "status": "resolved", "payload": payload}


@given(waiting, times, times, st.data())
def test_after_an_answer_nothing_is_pending_and_its_replay_changes_nothing(
    paused, now, later, data
):
    decisions = {
        asked.id: data.draw(words) if asked.is_pending else asked.status
        for asked in paused.interrupts
    }
    entries = [entry_for(*decision) for decision in decisions.items()]
    entries = data.draw(st.permutations(entries))
    late = any(
        asked.is_expired(now) and asked.is_pending and decisions[asked.id] != "cancelled"
        for asked in paused.interrupts
    )
    if late:
        assert code(paused, entries, now) == "interrupt_expired"
        return
    answered = paused.answer(entries, now=now)
    assert {asked.id: asked.status for asked in answered.interrupts} == decisions
    assert answered.pending_interrupts == ()
    assert answered.answer(entries, now=later) is answered
    assert RunRecord.from_storage(answered.to_storage()) == answered


@given(waiting, times, st.data())
def test_an_answer_is_what_replace_interrupt_gives_one_by_one(paused, now, data):
    pending = [asked for asked in paused.pending_interrupts if not asked.is_expired(now)]
    decisions = {asked.id: data.draw(words) for asked in pending}
    decisions |= {
        asked.id: "cancelled" for asked in paused.pending_interrupts if asked not in pending
    }
    expected = paused
    for interrupt_id, decision in decisions.items():
        decided = paused.interrupt(interrupt_id).decide(decision, now=now)
        expected = expected.replace_interrupt(decided, now=now)
    entries = [entry_for(*decision) for decision in decisions.items()]
    assert paused.answer(entries, now=now) == expected


loose_entries = st.fixed_dictionaries(
    {},
    optional={
        "interruptId": st.sampled_from(["ask-1", "ask-2"]) | names | junk,
        "status": st.sampled_from(["resolved", "cancelled"]) | junk,
        "payload": st.fixed_dictionaries(
            {}, optional={"approved": st.booleans() | junk, "editedArgs": junk}
        )
        | junk,
        "metadata": junk,
    },
)


@given(st.sampled_from(RECORDS), st.lists(loose_entries | junk, max_size=3) | junk, times)
def test_whatever_a_client_sends_there_is_a_record_or_a_stream_error(record, entries, now):
    try:
        answered = record.answer(entries, now=now)
    except StreamError as error:
        str(error).encode()
    else:
        assert answered.key == record.key
        assert answered.pending_interrupts == ()


@given(st.lists(loose_entries, max_size=3), times)
def test_junk_never_approves(entries, now):
    try:
        answered = PAUSED.answer(entries, now=now)
    except StreamError:
        return
    for asked in answered.interrupts:
        [entry] = [entry for entry in entries if entry["interruptId"] == asked.id]
        if asked.is_approved:
            assert entry["payload"]["approved"] is True
            assert entry["status"] == "resolved"
            assert now < EXPIRY


def test_a_decided_interrupt_is_never_touched_by_an_answer():
    statuses = [DONE.answer(entries, now=T0) for entries in ([], [says(ASK, True)])]
    assert all(record is DONE for record in statuses)
    assert isinstance(DONE.interrupts[0], Interrupt)
