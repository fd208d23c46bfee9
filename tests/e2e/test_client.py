"""AG-UI's own client talks to the example server, and sees the right thing or nothing."""

from datetime import UTC, datetime, timedelta

import pytest

YES = {"status": "resolved", "payload": {"approved": True}}
NO = {"status": "resolved", "payload": {"approved": False}}
DROP = {"status": "cancelled"}
QUESTION = [{"id": "message-1", "role": "user", "content": "The cup of A-1042 arrived broken."}]
TWO = [{"id": "message-1", "role": "user", "content": "A-1042 and B-7 arrived broken."}]
SMALL_TALK = [{"id": "message-1", "role": "user", "content": "Hello?"}]
REFUND = {"orderId": "A-1042", "amount": "20.00", "currency": "EUR"}
TEXT = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
RELOAD = ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT"]
PROPOSAL = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "STATE_SNAPSHOT"]


def types(seen):
    return [event["type"] for event in seen["events"]]


def statuses(seen):
    """Return what became of each order: a stored object does not keep the order of its keys."""
    calls = seen["state"]["refunds"].values()
    return {call["arguments"]["orderId"]: call["status"] for call in calls}


def entries(asked, *answers):
    """Return the resume list of a client that is not AG-UI's own, or has forgotten."""
    pairs = zip(asked["pending"], answers, strict=False)
    return [{"interruptId": interrupt["id"], **answer} for interrupt, answer in pairs]


@pytest.fixture
def user(server, browser):
    """Return a user with one client, whose first message is given."""

    class User:
        def opens(self, agent, messages, state=None, **headers):
            headers = {"x-demo-actor": "alice", **headers}
            more = {"messages": messages, "state": state or {}, "headers": headers}
            browser.do(agent, "open", url=server.url + "/agent", threadId="thread-1", **more)

        def asks(self, messages, run="run-1", agent="a"):
            self.opens(agent, messages)
            return browser.do(agent, "run", runId=run)

        def answers(self, asked, *answers, run="run-2", agent="a"):
            ids = [interrupt["id"] for interrupt in asked["pending"]]
            responses = dict(zip(ids, answers, strict=False))
            return browser.do(agent, "answer", runId=run, responses=responses)

        def sends(self, resume, run="run-2", agent="a"):
            return browser.do(agent, "run", runId=run, resume=resume)

        def reloads(self, messages, run="run-1", state=None, agent="reloaded", **more):
            self.opens(agent, messages, state)
            return browser.do(agent, "run", runId=run, **more)

    return User()


def test_a_run_pauses_for_its_approval(server, user):
    asked = user.asks(QUESTION)
    assert types(asked) == ["RUN_STARTED", *TEXT, *PROPOSAL, "RUN_FINISHED"]
    assert (asked["outcome"], asked["error"], asked["thrown"]) == ("interrupt", None, None)
    [call_id] = asked["state"]["refunds"]
    [interrupt] = asked["pending"]
    assert interrupt == {
        "id": interrupt["id"],
        "reason": "tool_call",
        "toolCallId": call_id,
        "message": "Refund 20.00 EUR for order A-1042?",
        "expiresAt": "2126-03-02T09:10:00.000Z",
    }
    assert asked["state"]["refunds"][call_id] == {"arguments": REFUND, "status": "pending"}
    assert server.calls == []


def test_every_stream_declares_the_version_of_the_protocol(user):
    asked = user.asks(QUESTION)
    opened = {"type": "RUN_STARTED", "threadId": "thread-1", "runId": "run-1"}
    assert asked["events"][0] == {**opened, "protocolVersion": "1.0"}


def test_an_approval_makes_the_call_once_and_sends_its_result(server, user):
    answered = user.answers(user.asks(QUESTION), YES)
    assert types(answered) == [
        "RUN_STARTED",
        "STATE_SNAPSHOT",
        "TOOL_CALL_RESULT",
        *TEXT,
        "RUN_FINISHED",
    ]
    assert (answered["outcome"], answered["pending"]) == ("success", [])
    assert answered["events"][2]["content"] == "Refunded 20.00 EUR for A-1042."
    assert (statuses(answered), server.calls) == ({"A-1042": "approved"}, [REFUND])


@pytest.mark.parametrize(("answer", "status"), [(NO, "denied"), (DROP, "cancelled")])
def test_a_refusal_ends_well_and_makes_no_call(server, user, answer, status):
    answered = user.answers(user.asks(QUESTION), answer)
    assert (answered["outcome"], statuses(answered)) == ("success", {"A-1042": status})
    assert answered["events"][2]["content"] == f"The request was {status}."
    assert server.calls == []


def test_of_two_requests_only_the_approved_one_is_carried_out(server, user):
    answered = user.answers(user.asks(TWO), NO, YES)
    assert statuses(answered) == {"A-1042": "denied", "B-7": "approved"}
    assert server.calls == [{**REFUND, "orderId": "B-7"}]


def test_the_helper_of_the_client_refuses_to_answer_one_of_two(user):
    asked = user.asks(TWO)
    refused = (
        f"buildResumeArray: missing responses for open interrupts: {asked['pending'][1]['id']}"
    )
    assert user.answers(asked, YES) == {"refused": refused}


def test_the_client_refuses_to_answer_one_of_two(server, user):
    asked = user.asks(TWO)
    answered = user.sends(entries(asked, YES))
    assert answered["thrown"]["message"] == (
        "Thread has 1 pending interrupt(s) not addressed by resume: " + asked["pending"][1]["id"]
    )
    assert (answered["events"], server.calls) == ([], [])


def test_the_server_refuses_one_of_two_from_a_client_that_has_forgotten(server, browser, user):
    asked = user.asks(TWO)
    browser.do("a", "forget")
    answered = user.sends(entries(asked, YES))
    assert types(answered) == ["RUN_STARTED", "RUN_ERROR"]
    assert answered["error"]["code"] == "resume_incomplete"
    assert asked["pending"][1]["id"] in answered["error"]["message"]
    assert server.calls == []


def test_after_a_refused_answer_the_right_one_is_still_taken(server, browser, user):
    asked = user.asks(TWO)
    browser.do("a", "forget")
    user.sends(entries(asked, YES))
    answered = user.sends(entries(asked, YES, YES), run="run-3")
    assert (answered["outcome"], len(server.calls)) == ("success", 2)


def test_the_server_refuses_a_new_question_where_an_answer_is_awaited(browser, user):
    user.asks(QUESTION)
    browser.do("a", "forget")
    ignored = browser.do("a", "run", runId="run-2")
    assert (types(ignored), ignored["error"]["code"]) == (
        ["RUN_STARTED", "RUN_ERROR"],
        "resume_incomplete",
    )


def test_the_same_approval_in_another_run_gets_the_result_and_no_second_call(server, user):
    asked = user.asks(QUESTION)
    first = user.answers(asked, YES)
    again = user.sends(entries(asked, YES), run="run-3")
    assert again["outcome"] == "success"
    assert again["events"][2] == first["events"][2]
    assert server.calls == [REFUND]


def test_a_second_answer_that_differs_is_refused(server, user):
    asked = user.asks(QUESTION)
    user.answers(asked, NO)
    again = user.sends(entries(asked, YES), run="run-3")
    assert (types(again), again["error"]["code"]) == (
        ["RUN_STARTED", "RUN_ERROR"],
        "interrupt_decided",
    )
    assert server.calls == []


def test_a_run_that_ends_in_an_error_resolves_and_keeps_what_is_pending(user, browser):
    asked = user.asks(QUESTION)
    invalid = user.sends(entries(asked, {"status": "resolved", "payload": {"approved": "true"}}))
    assert (invalid["error"]["code"], invalid["outcome"]) == ("resume_invalid", None)
    assert (invalid["thrown"], invalid["pending"]) == (None, asked["pending"])


def test_an_answer_to_a_request_of_another_thread_is_refused(server, user, browser):
    asked = user.asks(QUESTION)
    resume = entries(asked, YES)
    refused = server.post(
        "/agent", {"threadId": "thread-2", "runId": "run-2", "messages": [], "resume": resume}
    )
    assert refused[1][-1]["code"] == "resume_unknown"
    assert server.calls == []


def test_changed_arguments_are_refused(server, user):
    asked = user.asks(QUESTION)
    payload = {"approved": True, "editedArgs": {**REFUND, "amount": "2000.00"}}
    edited = user.answers(asked, {"status": "resolved", "payload": payload})
    assert (edited["error"]["code"], server.calls) == ("resume_invalid", [])


def test_an_approval_after_the_expiry_is_refused_by_the_server(server, user):
    asked = user.asks(QUESTION)
    server.clock.now += timedelta(minutes=10)
    late = user.answers(asked, YES)
    assert (types(late), late["error"]["code"]) == (
        ["RUN_STARTED", "RUN_ERROR"],
        "interrupt_expired",
    )
    assert server.calls == []


def test_an_expired_request_can_be_cancelled_and_the_thread_goes_on(server, user, browser):
    asked = user.asks(QUESTION)
    server.clock.now += timedelta(minutes=10)
    closed = user.answers(asked, DROP)
    assert (closed["outcome"], closed["pending"]) == ("success", [])
    assert browser.do("a", "run", runId="run-3")["outcome"] == "interrupt"
    assert server.calls == []


def test_the_client_refuses_to_answer_what_has_expired_by_its_own_clock(server, user):
    server.clock.now = datetime(2020, 3, 2, tzinfo=UTC)
    asked = user.asks(QUESTION)
    [interrupt] = asked["pending"]
    assert user.answers(asked, YES)["thrown"]["message"] == (
        f"Interrupt {interrupt['id']} expired at 2020-03-02T00:10:00.000Z and can no longer be "
        "answered. Cancel it to continue the thread."
    )
    assert user.answers(asked, DROP)["outcome"] == "success"


def test_whoever_may_not_decide_is_refused_and_the_request_stays_open(server, user, browser):
    asked = user.asks(QUESTION)
    user.opens("mallory", QUESTION, **{"x-demo-actor": "mallory"})
    refused = user.sends(entries(asked, YES), agent="mallory")
    assert (refused["error"]["code"], server.calls) == ("not_authorised", [])
    assert user.answers(asked, YES, run="run-3")["outcome"] == "success"


def test_a_stored_approval_gives_no_right_to_somebody_else(server, user):
    asked = user.asks(QUESTION)
    user.answers(asked, YES)
    user.opens("mallory", QUESTION, **{"x-demo-actor": "mallory"})
    replayed = user.sends(entries(asked, YES), run="run-3", agent="mallory")
    assert types(replayed) == ["RUN_STARTED", "RUN_ERROR"]
    assert server.calls == [REFUND]


# --- A reload: the same input again -------------------------------------------------------------


def test_a_reload_of_a_succeeded_run_gets_its_messages_and_its_ending(server, user):
    said = user.asks(SMALL_TALK)
    again = user.reloads(SMALL_TALK)
    assert (types(again), again["outcome"]) == ([*RELOAD, "RUN_FINISHED"], "success")
    assert again["messages"] == said["messages"]


def test_a_reload_of_a_succeeded_run_gets_its_state_and_makes_no_call(server, user):
    asked = user.asks(QUESTION)
    done = user.answers(asked, YES)
    resume = entries(asked, YES)
    again = user.reloads(asked["messages"], "run-2", asked["state"], resume=resume)
    assert types(again) == [*RELOAD, "RUN_FINISHED"]
    assert (again["outcome"], again["state"]) == ("success", done["state"])
    assert server.calls == [REFUND]


def test_a_reload_of_a_paused_run_gets_the_same_request(user):
    asked = user.asks(QUESTION)
    again = user.reloads(QUESTION)
    assert types(again) == [*RELOAD, "RUN_FINISHED"]
    assert (again["outcome"], again["pending"]) == ("interrupt", asked["pending"])
    assert again["state"] == asked["state"]


def test_a_reload_can_answer(server, user):
    user.asks(QUESTION)
    again = user.reloads(QUESTION)
    assert user.answers(again, YES, agent="reloaded")["outcome"] == "success"
    assert server.calls == [REFUND]


def test_a_reload_of_a_paused_run_that_was_answered_is_still_no_success(server, user):
    asked = user.asks(QUESTION)
    user.answers(asked, YES)
    again = user.reloads(QUESTION)
    assert (again["outcome"], again["pending"]) == ("interrupt", asked["pending"])


def test_a_reload_of_a_failed_run_gets_the_failure_and_no_secret(server, user):
    asked = user.asks(QUESTION)
    server.agent_failure = RuntimeError("db-2.internal refused svc_refund")
    failed = user.answers(asked, YES)
    resume = entries(asked, YES)
    again = user.reloads(asked["messages"], "run-2", asked["state"], resume=resume)
    error = {"type": "RUN_ERROR", "message": "The agent has failed.", "code": "agent_failed"}
    assert failed["error"] == again["error"] == error
    assert types(again) == [*RELOAD, "RUN_ERROR"]
    assert "internal" not in str(failed) + str(again)
    assert server.calls == [REFUND]


def test_a_reload_of_a_refused_answer_gets_the_refusal(user):
    asked = user.asks(QUESTION)
    user.answers(asked, NO)
    contradiction = entries(asked, YES)
    user.opens("b", QUESTION)
    refused = user.sends(contradiction, run="run-3", agent="b")
    again = user.reloads(QUESTION, "run-3", resume=contradiction)
    assert again["error"] == refused["error"]
    assert again["error"]["code"] == "interrupt_decided"


def test_a_reload_of_a_cancelled_run_gets_the_cancellation(server, user, browser):
    server.in_agent.wanted = True
    user.opens("a", QUESTION)
    running = browser.send("a", "run", runId="run-1")
    server.in_agent.wait()
    server.post("/cancel", {"threadId": "thread-1", "runId": "run-1"})
    server.in_agent.released.set()
    cancelled = browser.answer(running)
    again = user.reloads(QUESTION)
    assert (cancelled["outcome"], again["outcome"]) == ("cancelled", "cancelled")
    assert types(again) == [*RELOAD, "RUN_FINISHED"]


def test_a_reload_while_the_run_is_live_follows_it_to_its_end(server, user, browser):
    server.in_agent.wanted = True
    user.opens("a", QUESTION)
    running = browser.send("a", "run", runId="run-1")
    server.in_agent.wait()
    user.opens("reloaded", QUESTION)
    following = browser.send("reloaded", "run", runId="run-1")
    server.in_agent.released.set()
    asked, followed = browser.answer(running), browser.answer(following)
    assert (types(followed)[0], types(followed)[-1]) == ("RUN_STARTED", "RUN_FINISHED")
    assert (followed["state"], followed["messages"]) == (asked["state"], asked["messages"])
    assert (followed["outcome"], followed["pending"]) == ("interrupt", asked["pending"])


def test_a_run_goes_on_when_its_client_goes_away(server, user, browser):
    server.in_agent.wanted = True
    user.opens("a", QUESTION)
    running = browser.send("a", "run", runId="run-1")
    server.in_agent.wait()
    browser.do("a", "abort")
    assert browser.answer(running)["error"]["code"] == "abort"
    server.in_agent.released.set()
    assert user.reloads(QUESTION)["outcome"] == "interrupt"


def test_a_run_id_that_is_used_again_for_another_input_is_refused(user, browser):
    user.asks(QUESTION)
    browser.do("a", "forget")
    refused = browser.do("a", "run", runId="run-1")
    assert (refused["events"], refused["thrown"]["status"]) == ([], 409)
    assert refused["thrown"]["payload"]["code"] == "input_conflict"


# --- Two at the same moment ---------------------------------------------------------------------


def test_two_clients_that_approve_at_the_same_moment_make_one_call(server, user, browser):
    asked = user.asks(QUESTION)
    user.reloads(QUESTION, agent="b")
    server.in_tool.wanted = True
    resume = entries(asked, YES)
    running = browser.send("a", "run", runId="run-2", resume=resume)
    server.in_tool.wait()
    second = browser.send("b", "run", runId="run-3", resume=resume)
    server.in_tool.released.set()
    seen = [browser.answer(running), browser.answer(second)]
    assert [each["outcome"] for each in seen] == ["success", "success"]
    assert server.calls == [REFUND]


def test_twenty_clients_that_approve_at_once_make_one_call(server, user, browser):
    asked = user.asks(QUESTION)
    resume = entries(asked, YES)
    agents = [f"agent-{number}" for number in range(20)]
    for agent in agents:
        user.opens(agent, QUESTION)
    sent = [browser.send(agent, "run", runId=agent, resume=resume) for agent in agents]
    seen = [browser.answer(number) for number in sent]
    assert {each["outcome"] for each in seen} == {"success"}
    assert server.calls == [REFUND]


def test_of_two_clients_that_contradict_each_other_one_is_refused(server, user, browser):
    asked = user.asks(QUESTION)
    user.reloads(QUESTION, agent="b")
    yes = browser.send("a", "run", runId="run-2", resume=entries(asked, YES))
    no = browser.send("b", "run", runId="run-3", resume=entries(asked, NO))
    seen = [browser.answer(yes), browser.answer(no)]
    assert sorted(each["outcome"] or each["error"]["code"] for each in seen) == [
        "interrupt_decided",
        "success",
    ]
    assert len(server.calls) == (seen[0]["outcome"] == "success")


def test_the_same_input_twice_at_the_same_moment_runs_once(server, user, browser):
    user.opens("a", QUESTION)
    user.opens("b", QUESTION)
    sent = [browser.send(agent, "run", runId="run-1") for agent in ("a", "b")]
    seen = [browser.answer(number) for number in sent]
    assert seen[0]["pending"] == seen[1]["pending"]
    assert [len(each["state"]["refunds"]) for each in seen] == [1, 1]


# --- A cancelled run ----------------------------------------------------------------------------


def test_a_run_that_is_cancelled_while_its_tool_runs_is_never_a_success(server, user, browser):
    asked = user.asks(QUESTION)
    server.in_tool.wanted = True
    running = browser.send("a", "run", runId="run-2", resume=entries(asked, YES))
    server.in_tool.wait()
    status, ending = server.post("/cancel", {"threadId": "thread-1", "runId": "run-2"})
    server.in_tool.released.set()
    seen = browser.answer(running)
    assert (status, ending["outcome"]) == (200, {"type": "cancelled"})
    assert seen["outcome"] == "cancelled"
    assert types(seen) == ["RUN_STARTED", "STATE_SNAPSHOT", "RUN_FINISHED"]


def test_what_a_cancelled_run_has_done_is_known_to_the_next_one(server, user, browser):
    asked = user.asks(QUESTION)
    server.in_tool.wanted = True
    running = browser.send("a", "run", runId="run-2", resume=entries(asked, YES))
    server.in_tool.wait()
    server.post("/cancel", {"threadId": "thread-1", "runId": "run-2"})
    server.in_tool.released.set()
    browser.answer(running)
    again = user.sends(entries(asked, YES), run="run-3")
    assert again["events"][2]["content"] == "Refunded 20.00 EUR for A-1042."
    assert server.calls == [REFUND]


def test_a_run_that_has_ended_stays_as_it_ended_when_it_is_cancelled(server, user):
    asked = user.asks(SMALL_TALK)
    answered = server.post("/cancel", {"threadId": "thread-1", "runId": "run-1"})
    assert answered == (200, asked["events"][-1])
    assert user.reloads(SMALL_TALK)["outcome"] == "success"
