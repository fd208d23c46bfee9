"""AG-UI's own schemas, in TypeScript and in Python, take whatever `to_protocol` gives."""

import pytest
from ag_ui.core import Event
from ag_ui.core import Interrupt as ProtocolInterrupt
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from builders import FAILURE, T0, make_ask, make_run
from strategies import interrupts, records

EVENTS = TypeAdapter(Event)
ASK, ASK_2 = make_ask(), make_ask(id="ask-2", tool_call_id="call-2", message=None, expires_at=None)
LIVE = make_run().start(now=T0)
PAUSED = LIVE.interrupted([ASK, ASK_2], now=T0)
HALF = PAUSED.replace_interrupt(ASK.decide("approved", now=T0), now=T0)
DONE = HALF.replace_interrupt(ASK_2.decide("cancelled", now=T0), now=T0)

REQUESTS = [ASK, ASK_2, make_ask(message=""), make_ask(reason="\u00e9", message="\x00\u2028")]
ENDED = [
    PAUSED,
    HALF,
    DONE,
    LIVE.finish("succeeded", now=T0),
    LIVE.finish("cancelled", now=T0),
    LIVE.finish("failed", now=T0),
    LIVE.finish("failed", now=T0, failure={"message": "Down"}),
    LIVE.finish("failed", now=T0, failure=FAILURE),
]

# Many values in one example, since every example is a Node process.
many_requests = st.lists(interrupts, min_size=10, max_size=20)
many_ended = st.lists(records, min_size=10, max_size=20).map(
    lambda some: [record for record in some if record.is_terminal]
)
few_examples = settings(max_examples=8)


def events(ended):
    schema = {"RUN_FINISHED": "RunFinishedEventSchema", "RUN_ERROR": "RunErrorEventSchema"}
    sent = [record.to_protocol() for record in ended]
    return [[name, event] for event in sent for name in ("EventSchema", schema[event["type"]])]


def requests(asked):
    return [["InterruptSchema", request.to_protocol()] for request in asked]


def test_the_schemas_in_typescript_know_every_key_of_every_ending(node):
    assert node("schemas.mjs", events(ENDED)) == []


def test_the_schemas_in_typescript_know_every_key_of_a_request(node):
    assert node("schemas.mjs", requests(REQUESTS)) == []


@few_examples
@given(many_ended)
def test_the_schemas_in_typescript_take_whatever_ending_there_is(node, ended):
    assert node("schemas.mjs", events(ended)) == []


@few_examples
@given(many_requests)
def test_the_schemas_in_typescript_take_whatever_request_there_is(node, asked):
    assert node("schemas.mjs", requests(asked)) == []


BARE = {"id": "i", "reason": "r"}
RUN = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}


@pytest.mark.parametrize(
    ("schema", "value", "complaint"),
    [
        ("InterruptSchema", {**BARE, "status": "pending"}, ".status is unknown"),
        ("InterruptSchema", {"id": "i"}, "reason"),
        ("InterruptSchema", {**BARE, "message": None}, "message"),
        ("EventSchema", {**RUN, "failure": {}}, ".failure is unknown"),
        ("EventSchema", {**RUN, "outcome": {"type": "success", "x": 1}}, ".outcome.x is unknown"),
        ("EventSchema", {**RUN, "outcome": {"type": "interrupt", "interrupts": []}}, "interrupts"),
        (
            "EventSchema",
            {**RUN, "outcome": {"type": "interrupt", "interrupts": [{**BARE, "x": 1}]}},
            ".outcome.interrupts[0].x is unknown",
        ),
    ],
)
def test_the_check_by_these_schemas_can_fail(node, schema, value, complaint):
    [said] = node("schemas.mjs", [[schema, value]])
    assert complaint in said


@pytest.mark.parametrize("record", ENDED)
def test_the_models_in_python_give_an_ending_back_unchanged(record):
    event = record.to_protocol()
    assert EVENTS.validate_python(event).model_dump(mode="json", by_alias=True) == event


@pytest.mark.parametrize("ask", REQUESTS)
def test_the_models_in_python_give_a_request_back_unchanged(ask):
    model = ProtocolInterrupt.model_validate(ask.to_protocol())
    assert model.model_dump(mode="json", by_alias=True) == ask.to_protocol()


def strangers(model):
    """Return the keys that a model has kept and does not know."""
    inner = [getattr(model, "outcome", None), *(getattr(model, "interrupts", None) or [])]
    found = set(model.model_extra)
    return found.union(*(strangers(each) for each in inner if each is not None))


@given(records)
def test_the_models_in_python_know_every_key_of_whatever_ending_there_is(record):
    if record.is_terminal:
        event = EVENTS.validate_python(record.to_protocol())
        assert strangers(event) == set()
        assert event.model_dump(mode="json", by_alias=True) == record.to_protocol()


@given(interrupts)
def test_the_models_in_python_know_every_key_of_whatever_request_there_is(asked):
    model = ProtocolInterrupt.model_validate(asked.to_protocol())
    assert strangers(model) == set()
    assert model.model_dump(mode="json", by_alias=True) == asked.to_protocol()
