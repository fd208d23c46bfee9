"""A value of every kind, and what a test says of a refusal."""

from dataclasses import replace
from enum import Enum

import pytest

from agui_runs import ConfigurationError, Interrupt, RunRecord, StreamError
from builders import T0, make_ask, make_run, nested

SECRET = "s3cr3t"  # What a host keeps in these values, and no refusal may show.
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
ROW, ASK_ROW, YES_ROW = STATEFUL.to_storage(), ASK.to_storage(), YES.to_storage()
Plain = Enum("Plain", {"YES": "approved"})
each = pytest.mark.parametrize
each_record = each("record", RECORDS.values(), ids=RECORDS)
each_decision = each("decision", Interrupt.DECISIONS)


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
