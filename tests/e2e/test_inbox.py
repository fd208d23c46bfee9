"""Answers outside the chat, and what a page needs to show them: the example server's inbox."""

import asyncio
import json
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from sqlite3 import connect
from urllib.request import Request, urlopen

import pytest

from agui_runs import digest

REFUND = {"orderId": "A-1042", "amount": "20.00", "currency": "EUR"}
LESS = {**REFUND, "amount": "12.50"}
QUESTION = "The cup of A-1042 arrived broken."
FOLLOWED = ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT"]


def said(thread, run, text=QUESTION):
    message = {"id": f"message-{run}", "role": "user", "content": text}
    return {"threadId": thread, "runId": run, "messages": [message]}


def pause(server, thread="thread-1", run="run-1", text=QUESTION):
    """Return what answers to the first request of a run that asks for an approval."""
    _, events = server.post("/agent", said(thread, run, text))
    [interrupt, *_] = events[-1]["outcome"]["interrupts"]
    return {"threadId": thread, "runId": run, "interruptId": interrupt["id"]}


def answer(server, asked, decision, actor="alice", **more):
    return server.post(
        "/answer", {**asked, "decision": decision, **more}, **{"x-demo-actor": actor}
    )


def follow(server, run_id, thread="thread-1"):
    """Return the events of a run up to its ending."""
    return server.get("/follow", threadId=thread, runId=run_id)[1]


def thread(server, name="thread-1", **query):
    return server.get("/thread", threadId=name, **query)[1]


@contextmanager
def database(server):
    with closing(connect(server.database, timeout=60)) as db, db:
        yield db


# --- An answer ----------------------------------------------------------------------------------


def test_an_approval_outside_the_chat_leads_to_the_call(server):
    status, answered = answer(server, pause(server), "approved")
    events = follow(server, answered["resumedBy"])
    assert (status, events[-1]["outcome"], server.calls) == (200, {"type": "success"}, [REFUND])


def test_the_run_that_goes_on_says_where_it_comes_from(server):
    _, answered = answer(server, pause(server), "approved")
    [paused, resumed] = thread(server)["runs"]
    assert resumed["runId"] == answered["resumedBy"]
    assert resumed["input"]["parentRunId"] == paused["runId"]
    assert resumed["input"]["messages"] == paused["input"]["messages"] + paused["messages"]


def test_a_denial_outside_the_chat_is_told_to_the_agent(server):
    _, answered = answer(server, pause(server), "denied")
    follow(server, answered["resumedBy"])
    messages = thread(server)["runs"][-1]["messages"]
    assert messages[-1]["content"] == "This is what became of it. The request was denied."
    assert server.calls == []


def test_of_two_requests_the_first_answer_waits_for_the_second(server):
    asked = pause(server, text="A-1 and B-2 arrived broken.")
    first, second = server.get("/approvals")[1]["approvals"]
    _, half = answer(server, {**asked, "interruptId": first["interrupt"]["id"]}, "approved")
    assert (half["resumedBy"], server.calls) == (None, [])
    asked["interruptId"] = second["interrupt"]["id"]
    _, whole = answer(server, asked, "denied", actor="bob")
    follow(server, whole["resumedBy"])
    assert [call["orderId"] for call in server.calls] == ["A-1"]


@pytest.mark.parametrize("second", ["approved", "denied", "cancelled"])
def test_a_second_click_is_refused_in_words(server, second):
    asked = pause(server)
    answer(server, asked, "approved")
    status, refusal = answer(server, asked, second, actor="bob")
    assert (status, refusal) == (
        409,
        {
            "code": "interrupt_decided",
            "message": f"interrupt '{asked['interruptId']}' is already approved; "
            "that decision stands",
        },
    )


def test_a_late_click_is_refused_in_words(server):
    asked = pause(server)
    server.clock.now += timedelta(minutes=10)
    status, refusal = answer(server, asked, "approved")
    assert (status, refusal) == (
        409,
        {
            "code": "interrupt_expired",
            "message": f"interrupt '{asked['interruptId']}' has expired; it can only be cancelled",
        },
    )


def test_whoever_may_not_decide_cannot_answer(server):
    asked = pause(server)
    assert answer(server, asked, "denied", actor="mallory")[0] == 403
    assert len(server.get("/approvals")[1]["approvals"]) == 1


@pytest.mark.parametrize("decision", [None, True, "Approved", "pending", ["approved"], {}])
def test_what_is_no_decision_is_refused(server, decision):
    status, refusal = answer(server, pause(server), decision)
    assert (status, refusal["code"]) == (400, "input_invalid")


@pytest.mark.parametrize("changed", [{"interruptId": "i-9"}, {"runId": "run-9"}])
def test_an_answer_to_what_was_not_asked_is_refused(server, changed):
    status, _ = answer(server, {**pause(server), **changed}, "approved")
    assert status == 404


def test_a_run_of_the_server_cannot_be_posted_by_a_client(server):
    status, refusal = server.post("/agent", said("thread-1", "resume-1"))
    assert (status, refusal["code"]) == (400, "input_invalid")


# --- Changed arguments --------------------------------------------------------------------------


def test_a_correction_denies_the_request_and_makes_another(server):
    asked = pause(server)
    _, answered = answer(server, asked, "denied", correctedArguments=LESS)
    [again] = follow(server, answered["resumedBy"])[-1]["outcome"]["interrupts"]
    [old, new] = [run["requests"][0] for run in thread(server)["runs"]]
    assert (old["status"], new["status"], new["arguments"]) == ("denied", "pending", LESS)
    assert (again["id"] != asked["interruptId"], server.calls) == (True, [])


def test_the_corrected_request_has_a_digest_of_its_own(server):
    answer(server, pause(server), "denied", correctedArguments=LESS)
    [run] = [run for run in thread(server)["runs"] if run["runId"] != "run-1"]
    follow(server, run["runId"])
    with database(server) as db:
        query = "SELECT record FROM runs WHERE run_id = ?"
        [(text,)] = db.execute(query, (run["runId"],)).fetchall()
    assert json.loads(text)["interrupts"][0]["argumentsDigest"] == digest(LESS)


def test_the_corrected_refund_is_made_once_it_is_approved(server):
    _, answered = answer(server, pause(server), "denied", correctedArguments=LESS)
    follow(server, answered["resumedBy"])
    [waiting] = server.get("/approvals")[1]["approvals"]
    asked = {name: waiting[name] for name in ("threadId", "runId")}
    asked["interruptId"] = waiting["interrupt"]["id"]
    _, approved = answer(server, asked, "approved", actor="bob")
    follow(server, approved["resumedBy"])
    assert server.calls == [LESS]


def test_a_correction_can_come_with_a_resume_list(server):
    asked = pause(server)
    payload = {"approved": False, "correctedArguments": LESS}
    entry = {"interruptId": asked["interruptId"], "status": "resolved", "payload": payload}
    _, events = server.post("/agent", {**said("thread-1", "run-2"), "resume": [entry]})
    [again] = events[-1]["outcome"]["interrupts"]
    assert again["message"] == "Refund 12.50 EUR for order A-1042?"


def test_the_same_correction_brought_again_makes_no_second_request(server):
    asked = pause(server)
    _, answered = answer(server, asked, "denied", correctedArguments=LESS)
    follow(server, answered["resumedBy"])
    payload = {"approved": False, "correctedArguments": LESS}
    entry = {"interruptId": asked["interruptId"], "status": "resolved", "payload": payload}
    _, events = server.post("/agent", {**said("thread-1", "run-2"), "resume": [entry]})
    assert events[-1]["outcome"] == {"type": "success"}
    assert len(server.get("/approvals")[1]["approvals"]) == 1


@pytest.mark.parametrize(
    "correction",
    [
        REFUND,
        {**LESS, "orderId": "B-7"},
        {**LESS, "more": "x"},
        {"amount": "12.50"},
        {**LESS, "amount": "lots"},
        {**LESS, "amount": "-1.00"},
        {**LESS, "amount": 12.5},
        [],
        "12.50",
    ],
)
def test_a_correction_that_makes_no_sense_is_refused_and_denies_nothing(server, correction):
    status, refusal = answer(server, pause(server), "denied", correctedArguments=correction)
    assert (status, refusal["code"]) == (400, "correction_invalid")
    assert thread(server)["runs"][0]["requests"][0]["status"] == "pending"


def test_an_approval_cannot_have_a_correction(server):
    status, refusal = answer(server, pause(server), "approved", correctedArguments=LESS)
    assert (status, refusal["code"]) == (400, "correction_invalid")


# --- Cancel -------------------------------------------------------------------------------------


def test_cancelling_a_paused_run_cancels_every_open_request(server):
    asked = pause(server, text="A-1 and B-2 arrived broken.")
    status, _ = server.post("/cancel", asked)
    [run] = thread(server)["runs"]
    cancelled = [(each["status"], each["decidedBy"]) for each in run["requests"]]
    assert (status, cancelled) == (200, [("cancelled", "alice"), ("cancelled", "alice")])
    assert server.get("/approvals")[1]["approvals"] == []


def test_a_run_that_pauses_while_it_is_being_cancelled_is_cancelled_as_a_paused_one(
    server, monkeypatch
):
    server.in_agent.wanted = True
    load = server.store.load
    with urlopen(server.request("/agent", said("thread-1", "run-1")), timeout=60) as response:
        server.in_agent.wait()
        key = ("shop-1", "thread-1", "run-1")
        live = asyncio.run_coroutine_threadsafe(load(key), server.loop).result(60)
        server.in_agent.released.set()
        response.read()
    rows = [live]

    async def live_at_first(key):
        return rows.pop() if rows else await load(key)

    monkeypatch.setattr(server.store, "load", live_at_first)
    server.post("/cancel", {"threadId": "thread-1", "runId": "run-1"})
    assert thread(server)["runs"][0]["requests"][0]["status"] == "cancelled"


def test_an_answer_to_a_server_that_is_stopping_is_taken_and_acted_on_elsewhere(server):
    asked = pause(server)
    server.workers.is_stopping = True
    status, answered = answer(server, asked, "approved")
    with type(server)(Path(server.database), server.clock.now).running() as other:
        follow(other, answered["resumedBy"])
    assert (status, server.calls, other.calls) == (200, [], [REFUND])


def test_after_a_paused_run_was_cancelled_the_thread_goes_on(server):
    server.post("/cancel", pause(server))
    _, events = server.post("/agent", said("thread-1", "run-2", "Hello?"))
    assert events[-1]["outcome"] == {"type": "success"}


def test_what_was_approved_before_a_paused_run_was_cancelled_is_never_made(server):
    asked = pause(server, text="A-1 and B-2 arrived broken.")
    answer(server, asked, "approved")
    server.post("/cancel", asked)
    [run] = thread(server)["runs"]
    yes = {"status": "resolved", "payload": {"approved": True}}
    first, second = (each["interrupt"]["id"] for each in run["requests"])
    resume = [{"interruptId": first, **yes}, {"interruptId": second, "status": "cancelled"}]
    _, events = server.post("/agent", {**said("thread-1", "run-2"), "resume": resume})
    told = [event["content"] for event in events if event["type"] == "TOOL_CALL_RESULT"]
    assert told[0] == "The run was cancelled before this call."
    assert server.calls == []


def test_an_expired_request_is_cancelled_with_its_run(server):
    asked = pause(server)
    server.clock.now += timedelta(hours=1)
    server.post("/cancel", asked)
    assert thread(server)["runs"][0]["requests"][0]["status"] == "cancelled"


# --- What is shown ------------------------------------------------------------------------------


def test_what_waits_is_listed_over_all_threads_by_expiry(server):
    for name in ("c", "a", "b"):
        pause(server, thread=name)
        server.clock.now += timedelta(minutes=1)
    waiting = server.get("/approvals")[1]
    assert [each["threadId"] for each in waiting["approvals"]] == ["c", "a", "b"]
    assert waiting["approvals"][0] == {
        "threadId": "c",
        "runId": "run-1",
        "interrupt": waiting["approvals"][0]["interrupt"],
        "toolName": "refund",
        "arguments": REFUND,
        "mayAnswer": ["alice", "bob"],
        "correctable": ["amount"],
        "createdAt": "2126-03-02T09:00:00.000000Z",
        "expiresAt": "2126-03-02T09:10:00.000000Z",
    }
    assert waiting["now"] == "2126-03-02T09:03:00.000000Z"


def test_what_is_answered_waits_no_longer(server):
    answer(server, pause(server), "denied")
    assert server.get("/approvals")[1]["approvals"] == []


def test_a_reload_finds_who_decided_what_and_why(server):
    answer(server, pause(server), "denied", actor="bob", note="Not without a photo.")
    request = thread(server)["runs"][0]["requests"][0]
    decided = [request[name] for name in ("status", "decidedBy", "decidedAt", "note")]
    assert decided == ["denied", "bob", "2126-03-02T09:00:00.000000Z", "Not without a photo."]


def test_a_reload_finds_each_run_with_its_input_and_its_ending(server):
    _, events = server.post("/agent", said("thread-1", "run-1"))
    [run] = thread(server)["runs"]
    assert (run["input"], run["ending"]) == (said("thread-1", "run-1"), events[-1])


def test_a_thread_that_there_is_not_has_no_runs(server):
    assert thread(server, "thread-9")["runs"] == []


def test_a_long_thread_is_shown_page_by_page(server):
    for number in range(53):
        server.clock.now += timedelta(seconds=1)
        server.post("/agent", said("thread-1", f"run-{number:02}", "Hello?"))
    newest = thread(server)
    oldest = thread(server, before=newest["before"])
    pages = [[run["runId"] for run in page["runs"]] for page in (oldest, newest)]
    assert pages == [
        [f"run-{number:02}" for number in range(3)],
        [f"run-{number:02}" for number in range(3, 53)],
    ]
    assert oldest["before"] is None


def test_a_second_tab_follows_a_run_from_its_ids(server):
    _, first = server.post("/agent", said("thread-1", "run-1"))
    second = follow(server, "run-1")
    assert [event["type"] for event in second] == [*FOLLOWED, "RUN_FINISHED"]
    assert second[-1] == first[-1]


@pytest.mark.parametrize("path", ["/approvals", "/thread?threadId=t", "/unfinished", "/follow"])
def test_whoever_names_no_actor_is_shown_nothing(server, path):
    status, refusal = server.send(Request(server.url + path))
    assert (status, refusal["code"]) == (401, "not_authenticated")


# --- The audit ----------------------------------------------------------------------------------


def audit(server):
    with database(server) as db:
        return db.execute(
            "SELECT run_id, decision, actor, request, note FROM decisions ORDER BY rowid"
        ).fetchall()


def test_each_decision_is_in_the_audit_with_the_request_it_came_from(server):
    asked = pause(server, text="A-1, B-2 and C-3 arrived broken.")
    ids = [each["interrupt"]["id"] for each in server.get("/approvals")[1]["approvals"]]
    answer(server, {**asked, "interruptId": ids[0]}, "denied", actor="bob", note="No.")
    yes = {"status": "resolved", "payload": {"approved": True}}
    resume = [{"interruptId": ids[0], "status": "resolved", "payload": {"approved": False}}]
    resume += [{"interruptId": ids[1], **yes}, {"interruptId": ids[2], "status": "cancelled"}]
    server.post("/agent", {**said("thread-1", "run-2"), "resume": resume})
    first, *others = audit(server)
    assert (first[:3], first[3].startswith("answer "), first[4]) == (
        ("run-1", "denied", "bob"),
        True,
        "No.",
    )
    assert others == [
        ("run-1", "approved", "alice", "run run-2", None),
        ("run-1", "cancelled", "alice", "run run-2", None),
    ]


def test_a_decision_whose_audit_cannot_be_written_is_not_made(server):
    asked = pause(server)
    with database(server) as db:
        db.execute(
            "CREATE TRIGGER full BEFORE INSERT ON decisions BEGIN SELECT RAISE(ABORT, ''); END"
        )
    with pytest.raises(ValueError, match="Expecting value"):  # It is no JSON, but a 500.
        answer(server, asked, "approved")
    assert thread(server)["runs"][0]["requests"][0]["status"] == "pending"
