"""The answers of AG-UI's own Python package, parsed and as plain dicts again."""

import pytest
from ag_ui.core import RunAgentInput

from agui_runs import StreamError
from builders import T0, make_ask, make_run

ASK, ASK_2 = make_ask(), make_ask(id="ask-2")
PAUSED = make_run().interrupted([ASK, ASK_2], now=T0)


def parsed():
    """Return the input of a client, as a server gets it from the package."""
    payload = {"approved": True}
    return RunAgentInput.model_validate(
        {
            "threadId": "thread-1",
            "runId": "run-2",
            "messages": [],
            "tools": [],
            "context": [],
            "state": None,
            "forwardedProps": None,
            "resume": [
                {"interruptId": "ask-1", "status": "resolved", "payload": payload},
                {"interruptId": "ask-2", "status": "cancelled"},
            ],
        }
    )


def test_entries_that_the_package_has_parsed_are_named_with_what_to_pass_instead():
    with pytest.raises(StreamError) as refused:
        PAUSED.answer(parsed().resume, now=T0)
    assert (refused.value.code, str(refused.value)) == (
        "resume_invalid",
        f"resume[0] must be an object, not {type(parsed().resume[0]).__name__}; "
        "pass plain dicts, as model_dump(by_alias=True) gives them",
    )


def test_the_same_entries_dumped_by_alias_are_an_answer():
    entries = [entry.model_dump(by_alias=True) for entry in parsed().resume]
    answered = PAUSED.answer(entries, now=T0)
    assert answered.interrupts == (
        ASK.decide("approved", now=T0),
        ASK_2.decide("cancelled", now=T0),
    )


def test_an_entry_dumped_without_the_aliases_answers_nothing():
    entries = [entry.model_dump() for entry in parsed().resume]
    with pytest.raises(StreamError, match=r"^resume\[0\]\.interruptId must be a string$"):
        PAUSED.answer(entries, now=T0)
