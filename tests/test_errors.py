"""Every refusal of the package, word for word, and what the errors themselves can do."""

import copy
import pickle
import re
import traceback
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import get_args

import pytest

from agui_runs import AguiRunsError, ConfigurationError, Interrupt, RunRecord, StreamError
from agui_runs.errors import StreamErrorCode
from builders import HOUR, T0, make_ask, make_run, nested

SECRET = "s3cr3t"  # What a host keeps in its values, and no error may show.
FAILURE = {"message": SECRET, "code": SECRET}
ASK, ASK_2 = make_ask(message=SECRET, arguments_digest=SECRET), make_ask(id="ask-2")
YES, LIVE = ASK.decide("approved", now=T0), make_run(snapshot={"apiKey": SECRET}).start(now=T0)
PAUSED, GONE = LIVE.interrupted([ASK, ASK_2], now=T0), LIVE.finish("cancelled", now=T0)
ANSWERED = PAUSED.replace_interrupt(YES, now=T0)
LATE, OTHER = replace(YES, decided_at=ASK.expires_at), replace(YES, message=SECRET * 2)
ASK_ROW, ROW, TIME = ASK.to_storage(), LIVE.to_storage(), "2026-03-02T09:00:00Z"
NAIVE, EDGE = datetime(2026, 3, 2, 9), datetime.max.replace(tzinfo=timezone(-HOUR))
NAN, HUGE, DEEP, LONG = float("nan"), 10**4300, nested(100), "x" * 81


class Twin(str):
    __slots__ = ()
    __eq__, __hash__ = object.__eq__, object.__hash__


class Lost(Mapping):
    __iter__, __len__ = lambda self: iter(["message"]), lambda self: 1

    def __getitem__(self, key):
        raise KeyError(SECRET)


def load_ask(*lost, **over):
    row = {**ASK_ROW, **over}
    return Interrupt.from_storage({key: row[key] for key in row if key not in lost})


def load_run(*lost, **over):
    row = {**ROW, **over}
    return RunRecord.from_storage({key: row[key] for key in row if key not in lost})


def load_pause(*lost, **over):
    row = {**ASK_2.to_storage(), **over}
    return load_run(interrupts=[ASK_ROW, {key: row[key] for key in row if key not in lost}])


def state(value):
    return make_run(snapshot=value)


def fail(failure, status="failed"):
    return LIVE.finish(status, now=T0, failure=failure)


# A call, and below it the whole text of its ConfigurationError.
REFUSED = r"""
make_ask(id=[SECRET])
  interrupt: id must be a str, not list
make_ask(message=SECRET.encode())
  interrupt: message must be a str, not bytes
load_ask(toolCallId=7)
  interrupt: toolCallId must be a str, not int
make_run(thread_id="\n")
  run record: thread_id must not be blank
load_run(threadId="")
  run record: threadId must not be blank
load_pause(toolCallId=" ")
  run record: interrupts[1].toolCallId must not be blank
make_ask(message=SECRET + "\ud83d")
  interrupt: message holds a lone surrogate, which no store can encode
load_ask(argumentsDigest="\ud83d")
  interrupt: argumentsDigest holds a lone surrogate, which no store can encode
PAUSED.interrupt(7)
  run record: id must be a str, not int
make_ask(status="\ud800")
  interrupt: status must be one of 'pending', 'approved', 'denied', 'cancelled', not '\ud800'
load_ask(status=[SECRET])
  interrupt: status must be one of 'pending', 'approved', 'denied', 'cancelled', not list
ASK.decide(True, now=T0)
  interrupt: decision must be one of 'approved', 'denied', 'cancelled', not bool
ASK.decide("pending", now=T0)
  interrupt: decision must be one of 'approved', 'denied', 'cancelled', not 'pending'
load_run(status=None)
  run record: status must be one of 'reserved', 'started', 'succeeded', 'interrupted',
  'cancelled', 'failed', not NoneType
LIVE.finish("started", now=T0)
  run record: status must be one of 'succeeded', 'interrupted', 'cancelled', 'failed', not 'started'
Interrupt.from_storage(None)
  interrupt: the stored value must be a mapping, not NoneType
RunRecord.from_storage(SECRET)
  run record: the stored value must be a mapping, not str
load_run(interrupts=[[ASK_ROW]])
  run record: interrupts[0] must be a mapping, not list
load_ask("expiresAt")
  interrupt: expiresAt is missing
load_run("sequence")
  run record: sequence is missing
load_pause("expiresAt")
  run record: interrupts[1].expiresAt is missing
make_ask(expires_at=NAIVE)
  interrupt: expires_at must be a timezone-aware datetime, not a naive one
GONE.start(now=None)
  run record: now must be a timezone-aware datetime, not NoneType
make_run(updated_at=EDGE)
  run record: updated_at leaves the calendar when moved to UTC
load_ask(createdAt="0001-01-01T00:00+01")
  interrupt: createdAt leaves the calendar when moved to UTC
load_run(createdAt=T0)
  run record: createdAt must be an ISO 8601 time with a zone, not datetime
load_pause(expiresAt="soon")
  run record: interrupts[1].expiresAt must be an ISO 8601 time with a zone, not 'soon'
make_ask(decided_at=T0)
  interrupt: decided_at must not be set, since the status is 'pending'
load_pause(decidedAt=TIME)
  run record: interrupts[1].decidedAt must not be set, since the status is 'pending'
make_ask(status="denied")
  interrupt: decided_at is missing, but the status is 'denied'
load_ask(status="cancelled")
  interrupt: decidedAt is missing, but the status is 'cancelled'
state({"messages": [0, {"sentAt": T0}]})
  run record: snapshot.messages[1].sentAt: datetime is not a JSON value
LIVE.start(now=T0, snapshot={SECRET})
  run record: snapshot: set is not a JSON value
load_run(snapshot={"it's": [NAN]})
  run record: snapshot["it's"][0]: a float that is not finite is not a JSON value
LIVE.advance(now=T0, snapshot=["\ud800"])
  run record: snapshot[0]: text holds a lone surrogate, which no store can encode
state({"": HUGE})
  run record: snapshot['']: an int of more than 4300 digits cannot be written
state({"a b": {7: SECRET}})
  run record: snapshot['a b']: a key must be a str, not int
state({"\u00e9": {"\ud800": SECRET}})
  run record: snapshot.é: the key '\ud800' holds a lone surrogate, which no store can encode
state({"a": SECRET, Twin("a"): SECRET})
  run record: snapshot: two keys are the same text 'a'
state([Lost()])
  run record: snapshot[0]: the mapping lists a key 'message' that it does not hold
RunRecord.from_storage(Lost())
  run record: scope is missing
load_run(sequence="7")
  run record: sequence must be an int, not str
make_run(sequence=-1)
  run record: sequence must not be negative
make_run(sequence=HUGE - 1).advance(now=T0)
  run record: sequence must have at most 4300 digits
LIVE.interrupted(SECRET, now=T0)
  run record: interrupts must be an iterable of Interrupts, not str
LIVE.interrupted([ASK, ASK_ROW], now=T0)
  run record: interrupts[1] must be an Interrupt, not dict
load_run(interrupts={})
  run record: interrupts must be a list, not dict
LIVE.interrupted([ASK, ASK], now=T0)
  run record: interrupts[1] repeats the id 'ask-1'
load_pause(id="ask-1")
  run record: interrupts[1] repeats the id 'ask-1'
LIVE.interrupted([YES], now=T0)
  run record: interrupts must hold at least one that is pending
load_run(status="interrupted")
  run record: interrupts must hold at least one, since the status is 'interrupted'
load_pause()
  run record: interrupts must be empty, since the status is 'started'
fail(None, "interrupted")
  run record: status 'interrupted' needs interrupts: call interrupted()
PAUSED.replace_interrupt(ASK_ROW, now=T0)
  run record: decided must be an Interrupt, not dict
GONE.replace_interrupt(YES, now=T0)
  run record: decided must answer an interrupt that this run holds, not 'ask-1'
fail(RuntimeError(SECRET))
  run record: failure must be a mapping, not RuntimeError
fail({**FAILURE, "trace\nback": SECRET})
  run record: failure may hold message and code only, not 'trace\nback'
load_run(failure={**FAILURE, 7: SECRET})
  run record: failure may hold message and code only, not int
fail({"code": SECRET})
  run record: failure.message is missing
fail(Lost())
  run record: failure.message is missing
fail({"message": " "})
  run record: failure.message must not be blank
load_run(failure={**FAILURE, "code": 7})
  run record: failure.code must be a str, not int
load_run(failure=FAILURE)
  run record: failure belongs to a failed run, but the status is 'started'
PAUSED.replace_interrupt(make_ask(id=LONG), now=T0)
  run record: decided must answer an interrupt that this run holds, not
  'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'
PAUSED.replace_interrupt(make_ask(id=LONG[1:]), now=T0)
  run record: decided must answer an interrupt that this run holds, not
  'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'
make_run(status="\n" * 81)
  run record: status must be one of 'reserved', 'started', 'succeeded', 'interrupted',
  'cancelled', 'failed', not
  '\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n...'
load_run(createdAt="\0" * 10**6)
  run record: createdAt must be an ISO 8601 time with a zone, not
  '\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00...'
state({LONG: {1}})
  run record:
  snapshot.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...:
  set is not a JSON value
state({"\ud800" * 10**6: SECRET})
  run record: snapshot: the key
  '\ud800\ud800\ud800\ud800\ud800\ud800\ud800\ud800\ud800\ud800\ud800\ud800\ud800\u...'
  holds a lone surrogate, which no store can encode
state({"a": DEEP})
  run record:
  snapshot.a[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]...:
  nested deeper than 100 levels, or inside itself
"""
# A call, and below it the code and the whole text of its StreamError.
FORBIDDEN = r"""
GONE.start(now=T0)
  run_ended: run 'run-1' has ended as cancelled; replay that ending
GONE.advance(now=T0)
  run_ended: run 'run-1' has ended as cancelled; replay that ending
PAUSED.interrupted([ASK], now=T0)
  run_ended: run 'run-1' has ended as interrupted; replay that ending
fail(FAILURE).finish("succeeded", now=T0)
  run_ended: run 'run-1' has ended as failed; replay that ending
YES.decide("denied", now=T0)
  interrupt_decided: interrupt 'ask-1' is already approved; that decision stands
ANSWERED.replace_interrupt(ASK, now=T0)
  interrupt_decided: interrupt 'ask-1' is already approved; that decision stands
ASK.decide("approved", now=EDGE - HOUR)
  interrupt_expired: interrupt 'ask-1' has expired; it can only be cancelled
PAUSED.replace_interrupt(LATE, now=T0)
  interrupt_expired: interrupt 'ask-1' has expired; it can only be cancelled
PAUSED.replace_interrupt(OTHER, now=T0)
  interrupt_changed: interrupt 'ask-1' is not the request that was asked about; raise a new
  interrupt for a changed one
"""
# A call, and below it the text of the TypeError with which Python refuses a misuse.
MISUSE = r"""
type("Mine", (Interrupt,), {})
  Interrupt is final: hold one instead of extending it
type("Mine", (RunRecord,), {})
  RunRecord is final: hold one instead of extending it
LIVE.snapshot.update(a=1)
  FrozenDict is frozen: change a plain copy and pass that on
state([1]).snapshot.append(2)
  FrozenList is frozen: change a plain copy and pass that on
"""


def table(text):
    """Return each call of a table with what stands below it, its lines joined."""
    entries = [entry.splitlines() for entry in re.split(r"\n(?=\S)", text.strip())]
    return [(call, " ".join(line.strip() for line in said)) for call, *said in entries]


def raised(call):
    with pytest.raises(AguiRunsError) as caught:
        eval(call)
    return caught.value


each_call = pytest.mark.parametrize("call", [call for call, _ in table(REFUSED + FORBIDDEN)])


@pytest.mark.parametrize(("call", "said"), table(REFUSED))
def test_what_cannot_be_right_is_refused_in_these_words(call, said):
    error = raised(call)
    assert (type(error), str(error)) == (ConfigurationError, said)


@pytest.mark.parametrize(("call", "said"), table(FORBIDDEN))
def test_what_the_state_forbids_is_refused_in_these_words(call, said):
    error = raised(call)
    assert (type(error), f"{error.code}: {error}") == (StreamError, said)


@pytest.mark.parametrize(("call", "said"), table(MISUSE))
def test_a_misuse_is_refused_in_these_words(call, said):
    with pytest.raises(TypeError, match=f"^{re.escape(said)}$"):
        eval(call)


@each_call
def test_a_text_fits_on_a_line_of_any_log(call):
    text = str(raised(call))
    assert text.encode().decode().isprintable()
    assert len(text) <= 250


@each_call
def test_an_error_comes_alone_and_shows_nothing_of_what_the_host_keeps(call):
    error = raised(call)
    shown = "".join(traceback.format_exception(error))
    chained = [error, error.__cause__, error.__context__]
    assert shown.count("Traceback") == 1
    assert SECRET not in repr([(link, vars(link)) for link in chained if link])


@each_call
def test_an_error_survives_pickling_and_copying_with_all_its_attributes(call):
    error = raised(call)
    error.add_note("seen by the host")
    pickled = [pickle.dumps(error, protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    for twin in *map(pickle.loads, pickled), copy.copy(error), copy.deepcopy(error):
        assert (type(twin), str(twin), twin.args) == (type(error), str(error), error.args)
        assert vars(twin) == vars(error)


def test_the_codes_are_those_that_clients_are_promised():
    assert get_args(StreamErrorCode) == (
        *("run_ended", "run_not_ended", "run_not_interrupted"),
        *("interrupt_decided", "interrupt_expired", "interrupt_changed"),
        *("resume_unknown", "resume_duplicate", "resume_incomplete", "resume_invalid"),
    )


def test_a_host_catches_both_errors_as_one_and_a_mistake_as_a_value_error():
    assert ConfigurationError.__mro__[1:3] == (AguiRunsError, ValueError)
    assert StreamError.__mro__[1:3] == (AguiRunsError, Exception)
