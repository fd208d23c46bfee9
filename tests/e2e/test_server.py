"""The example server without a client: what a restart, a crash and a hostile request meet."""

import json
import os
import re
import shlex
import subprocess
import sys
from contextlib import closing, contextmanager
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from sqlite3 import connect
from urllib.request import Request, urlopen

import pytest

from agui_runs import RunRecord, digest

SCRIPT = Path(__file__).parent.parent.parent / "docs" / "examples" / "agent_server.py"
REFUND = {"orderId": "A-1042", "amount": "20.00", "currency": "EUR"}
REFUNDED = "Refunded 20.00 EUR for A-1042."
UNKNOWN = "It is not known what became of this call."
QUESTION = [{"id": "message-1", "role": "user", "content": "The cup of A-1042 arrived broken."}]
TWO = [{"id": "message-1", "role": "user", "content": "A-1 and A-2 arrived broken."}]
INPUT = {"threadId": "thread-1", "runId": "run-1", "messages": QUESTION}


def types(events):
    return [event["type"] for event in events]


def asks(server):
    """Return the interrupt with which a first run ends."""
    _, events = server.post("/agent", INPUT)
    [interrupt] = events[-1]["outcome"]["interrupts"]
    return interrupt


def answer(*interrupts, run="run-2"):
    """Return the input that approves these."""
    yes = {"status": "resolved", "payload": {"approved": True}}
    resume = [{"interruptId": interrupt["id"], **yes} for interrupt in interrupts]
    return {**INPUT, "runId": run, "resume": resume}


def asks_about_two(server):
    """Return the interrupts with which a first run ends that is about A-1 and A-2."""
    _, events = server.post("/agent", {**INPUT, "messages": TWO})
    return events[-1]["outcome"]["interrupts"]


def results(events):
    return [event["content"] for event in events if event["type"] == "TOOL_CALL_RESULT"]


def begin(server, interrupt):
    """Claim a call as a server does that crashes before it has the result."""
    with database(server) as db:
        claim = ("shop-1", "thread-1", interrupt["toolCallId"], "run-of-old", "2126-03-02")
        db.execute("INSERT INTO executions VALUES (?, ?, ?, ?, ?, NULL)", claim)


def insert(server, run, posted):
    """Store a run that a process has left behind."""
    columns = "scope, thread_id, run_id, record, input, actor, alive_until"
    texts = (json.dumps(run.to_storage(), sort_keys=True), json.dumps(posted))
    with database(server) as db:
        db.execute(
            f"INSERT INTO runs ({columns}) VALUES (?, ?, ?, ?, ?, 'alice', ?)",
            (*run.key, *texts, "2126-03-02T09:00:30.000000Z"),
        )


@contextmanager
def database(server):
    with closing(connect(server.database, timeout=60)) as db, db:
        yield db


def stored(server, run="run-1"):
    with database(server) as db:
        [(text,)] = db.execute("SELECT record FROM runs WHERE run_id = ?", (run,)).fetchall()
    return RunRecord.from_storage(json.loads(text))


def deep(levels):
    return (
        b'{"threadId": "t", "runId": "r", "messages": [], "state": ' + b"[" * levels + b"]" * levels
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        {},
        {**INPUT, "threadId": 5},
        {**INPUT, "threadId": " "},
        {**INPUT, "runId": ""},
        {**INPUT, "runId": "\ud800"},
        {**INPUT, "messages": None},
        {**INPUT, "state": float("nan")},
        {**INPUT, "forwardedProps": {"text": "\udc00"}},
        {**INPUT, "resume": {}},
        {**INPUT, "resume": [7]},
        {**INPUT, "resume": [{"interruptId": 7, "status": "cancelled"}]},
        {**INPUT, "resume": [{"interruptId": "i", "status": "approved"}]},
        deep(101) + b"}",
        deep(100_000) + b"}",
        b'{"n": ' + b"9" * 5000 + b"}",
    ],
)
def test_what_is_no_input_is_refused_and_reserves_nothing(server, body):
    status, refusal = server.post("/agent", body)
    assert (status, refusal["code"]) == (400, "input_invalid")
    with database(server) as db:
        assert db.execute("SELECT count(*) FROM runs").fetchall() == [(0,)]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"7",
        b'"threadId"',
        b"\xff",
        {},
        {"threadId": "t"},
        {"threadId": 5, "runId": "r"},
        {"threadId": None, "runId": "r"},
        {"threadId": "t", "runId": {}},
        {"threadId": "t", "runId": ["r"]},
        {"threadId": "\ud800", "runId": "r"},
        {"threadId": "t", "runId": "\udfff"},
        deep(100_000),
    ],
)
def test_what_names_no_run_cancels_nothing(server, body):
    status, refusal = server.post("/cancel", body)
    assert (status, refusal["code"]) == (400, "input_invalid")


@pytest.mark.parametrize("run", ["run-9", "", "\x00"])
def test_a_run_that_there_is_not_cannot_be_cancelled(server, run):
    status, refusal = server.post("/cancel", {"threadId": "thread-1", "runId": run})
    assert (status, refusal["code"]) == (404, "run_unknown")


def test_a_cancelled_run_can_be_cancelled_again(server):
    server.in_agent.wanted = True
    with urlopen(server.request("/agent", INPUT), timeout=60) as response:
        server.in_agent.wait()
        key = {"threadId": "thread-1", "runId": "run-1"}
        assert server.post("/cancel", key) == server.post("/cancel", key)
        server.in_agent.released.set()
        assert b'"cancelled"' in response.read()
    assert stored(server).status == "cancelled"


@pytest.mark.parametrize("path", ["/agent", "/cancel"])
@pytest.mark.parametrize("actor", [None, ""])
def test_a_request_that_names_no_actor_is_refused(server, path, actor):
    status, refusal = server.post(path, INPUT, **{"x-demo-actor": actor})
    assert (status, refusal["code"]) == (401, "not_authenticated")


@pytest.mark.parametrize("path", ["/agent", "/cancel"])
@pytest.mark.parametrize(
    "content_type", ["", "text/plain", "application/x-www-form-urlencoded", "application/json-seq"]
)
def test_what_a_page_of_another_site_can_post_is_refused(server, path, content_type):
    status, refusal = server.post(path, INPUT, **{"content-type": content_type})
    assert (status, refusal["code"]) == (415, "content_type_invalid")


def test_a_content_type_may_have_parameters_and_capitals(server):
    status, _ = server.post("/agent", INPUT, **{"content-type": "Application/JSON; charset=utf-8"})
    assert status == 200


def test_whoever_may_not_decide_cannot_cancel(server):
    server.in_agent.wanted = True
    with urlopen(server.request("/agent", INPUT), timeout=60) as response:
        server.in_agent.wait()
        mallory = {"x-demo-actor": "mallory"}
        status, refusal = server.post("/cancel", INPUT, **mallory)
        server.in_agent.released.set()
        assert b'"interrupt"' in response.read()
    assert (status, refusal["code"]) == (403, "not_authorised")


def test_the_same_input_in_another_spelling_attaches(server):
    _, first = server.post("/agent", INPUT)
    spelt = json.dumps(dict(reversed(INPUT.items())), indent=2).replace("cup", "\\u0063up")
    _, again = server.post("/agent", spelt.encode())
    assert again[-1] == first[-1]


def test_events_are_numbered_and_the_state_stored_is_the_state_sent(server):
    _, events = server.post("/agent", INPUT)
    run = stored(server)
    [sent] = [event["snapshot"] for event in events if event["type"] == "STATE_SNAPSHOT"]
    # RUN_STARTED and the ending are of the record itself; those between them are numbered.
    assert (run.sequence, run.snapshot["state"]) == (len(events) - 2, sent)


def test_what_is_asked_about_is_what_is_stored(server):
    asked = asks(server)
    [interrupt] = stored(server).interrupts
    assert interrupt.to_protocol() == asked
    assert interrupt.arguments_digest == digest(REFUND)


def test_an_answer_arrives_after_a_restart(server, tmp_path):
    asked = asks(server)
    with type(server)(Path(server.database), server.clock.now).running() as restarted:
        _, events = restarted.post("/agent", answer(asked))
    assert events[-1]["outcome"] == {"type": "success"}
    assert (server.calls, restarted.calls) == ([], [REFUND])


def test_two_servers_on_one_database_make_one_call(server):
    asked = asks(server)
    server.in_tool.wanted = True
    with type(server)(Path(server.database), server.clock.now).running() as other:
        with urlopen(server.request("/agent", answer(asked)), timeout=60) as response:
            server.in_tool.wait()
            other.clock.now += timedelta(minutes=1)  # The lease of the first one is over.
            _, early = other.post("/agent", answer(asked, run="run-3"))
            server.in_tool.released.set()
            assert b'"success"' in response.read()
        _, later = other.post("/agent", answer(asked, run="run-4"))
    assert (results(early), results(later)) == ([UNKNOWN], [REFUNDED])
    assert (server.calls, other.calls) == ([REFUND], [])


def test_the_same_answer_while_the_tool_runs_waits_for_the_result(server, monkeypatch):
    look = server.store.claimed

    async def look_and_release(call):
        found = await look(call)
        server.in_tool.released.set()
        return found

    monkeypatch.setattr(server.store, "claimed", look_and_release)
    asked = asks(server)
    server.in_tool.wanted = True
    with urlopen(server.request("/agent", answer(asked)), timeout=60) as response:
        server.in_tool.wait()
        _, events = server.post("/agent", answer(asked, run="run-3"))
        response.read()
    assert (results(events), server.calls) == ([REFUNDED], [REFUND])


def test_the_same_answer_after_a_first_look_in_vain_finds_the_result_later(server):
    asked = asks(server)
    begin(server, asked)
    server.post("/agent", answer(asked))
    with database(server) as db:
        db.execute("UPDATE executions SET result = ?", (REFUNDED,))
    _, events = server.post("/agent", answer(asked, run="run-3"))
    assert results(events) == [REFUNDED]


def test_a_call_that_fails_does_not_keep_the_other_from_being_made(server):
    asked = asks_about_two(server)
    server.tool_failures["A-1"] = RuntimeError("db-2.internal")
    _, events = server.post("/agent", answer(*asked))
    assert results(events) == ["The call failed.", "Refunded 20.00 EUR for A-2."]


def test_a_run_in_which_a_call_failed_still_ends_as_its_agent_ends_it(server):
    server.tool_failures["A-1042"] = RuntimeError("db-2.internal")
    _, events = server.post("/agent", answer(asks(server)))
    assert events[-1]["outcome"] == {"type": "success"}


def test_a_call_that_failed_is_not_made_again_by_the_same_answer(server):
    asked = asks(server)
    server.tool_failures["A-1042"] = RuntimeError("db-2.internal")
    server.post("/agent", answer(asked))
    server.tool_failures.clear()
    _, events = server.post("/agent", answer(asked, run="run-3"))
    assert (results(events), server.calls) == (["The call failed."], [REFUND])


def test_what_a_failing_call_says_is_for_the_log_alone(server, caplog):
    server.tool_failures["A-1042"] = RuntimeError("db-2.internal")
    _, events = server.post("/agent", answer(asks(server)))
    assert ("internal" in caplog.text, "internal" in json.dumps(events)) == (True, False)


def test_a_lost_call_does_not_keep_the_other_from_being_made(server):
    asked = asks_about_two(server)
    begin(server, asked[0])
    _, events = server.post("/agent", answer(*asked))
    assert results(events) == [UNKNOWN, "Refunded 20.00 EUR for A-2."]


@pytest.fixture
def two_paused_runs(server):
    """Return the interrupts of two runs that were at work on one thread at the same time."""
    server.in_agent.wanted = True
    with (
        urlopen(server.request("/agent", INPUT), timeout=60) as first,
        urlopen(server.request("/agent", {**INPUT, "runId": "run-2"}), timeout=60) as second,
    ):
        for response in (first, second):  # Each has looked for what waits, and found nothing.
            assert any(b"TEXT_MESSAGE_END" in line for line in response)
        server.in_agent.released.set()
        endings = [response.read().decode().split("\n\n")[-2] for response in (first, second)]
    return [json.loads(ending[5:])["outcome"]["interrupts"][0] for ending in endings]


def test_one_list_of_answers_is_not_for_two_paused_runs(server, two_paused_runs):
    _, events = server.post("/agent", answer(*two_paused_runs, run="run-3"))
    assert (events[-1]["code"], server.calls) == ("resume_unknown", [])


def test_two_paused_runs_are_answered_by_a_list_each(server, two_paused_runs):
    for interrupt, run in zip(two_paused_runs, ("run-3", "run-4"), strict=True):
        server.post("/agent", answer(interrupt, run=run))
    assert server.calls == [REFUND, REFUND]


def test_a_run_of_another_server_is_followed_to_its_end(server):
    server.in_agent.wanted = True
    with (
        type(server)(Path(server.database), server.clock.now).running() as other,
        urlopen(server.request("/agent", INPUT), timeout=60) as first,
        urlopen(other.request("/agent", INPUT), timeout=60) as second,
    ):
        server.in_agent.wait()
        server.in_agent.released.set()
        endings = [response.read().decode().split("\n\n")[-2] for response in (first, second)]
    assert endings[0] == endings[1]
    assert not other.in_agent.reached.is_set()


def test_a_call_whose_result_was_lost_in_a_crash_is_never_repeated(server):
    asked = asks(server)
    begin(server, asked)
    _, events = server.post("/agent", answer(asked))
    assert (results(events), server.calls) == ([UNKNOWN], [])


def test_a_run_whose_worker_is_lost_is_ended_and_not_run_again(server):
    abandoned = RunRecord(
        scope="shop-1",
        thread_id="thread-1",
        run_id="run-1",
        digest=digest(INPUT),
        created_at=server.clock.now,
    )
    abandoned = abandoned.start(now=server.clock.now, snapshot={"messages": [], "state": {}})
    insert(server, abandoned, INPUT)
    server.clock.now += timedelta(minutes=6)
    _, events = server.post("/agent", INPUT)
    assert types(events) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_ERROR"]
    assert events[-1]["code"] == stored(server).failure["code"] == "worker_lost"
    assert not server.in_agent.reached.is_set()


def test_a_worker_that_was_thought_lost_ends_as_was_recorded(server):
    server.in_agent.wanted = True
    with urlopen(server.request("/agent", INPUT), timeout=60) as response:
        server.in_agent.wait()
        server.clock.now += timedelta(minutes=6)
        _, followed = server.post("/agent", INPUT)
        server.in_agent.released.set()
        ending = json.loads(response.read().decode().split("\n\n")[-2][5:])
    assert ending == followed[-1]
    assert ending["code"] == "worker_lost"


def test_arguments_that_changed_in_the_store_are_not_run(server):
    asked = asks(server)
    with database(server) as db:
        db.execute("UPDATE runs SET record = replace(record, '20.00\"', '2000.00\"')")
    assert (
        stored(server).snapshot["state"]["refunds"][asked["toolCallId"]]["arguments"]["amount"]
        == "2000.00"
    )
    _, events = server.post("/agent", answer(asked))
    assert events[-1]["code"] == "arguments_changed"
    assert server.calls == []


def test_whoever_loses_the_right_between_answer_and_call_makes_no_call(server, monkeypatch):
    import work

    asked = asks(server)
    rights = iter([True, False])

    def authorise(actor):
        if not next(rights):
            raise work.HostError("not_authorised", "you may not decide about refunds")

    monkeypatch.setattr(work, "authorise", authorise)
    _, events = server.post("/agent", answer(asked))
    assert events[-1]["code"] == "not_authorised"
    assert stored(server).interrupts[0].is_approved
    assert server.calls == []


def test_a_broken_row_is_a_failure_without_a_secret(server):
    asked = asks(server)
    with database(server) as db:
        db.execute("UPDATE runs SET record = replace(record, '\"pending\"', '\"s3cr3t\"')")
    _, events = server.post("/agent", answer(asked))
    assert events[-1] == {
        "type": "RUN_ERROR",
        "message": "The agent has failed.",
        "code": "agent_failed",
    }
    assert server.calls == []


def test_an_agent_that_fails_between_two_events_ends_its_run(server):
    async def fails(question, results):
        yield "One moment."
        raise RuntimeError("db-2.internal")

    failing = type(server)(Path(server.database), server.clock.now)
    failing.agent = fails
    with failing.running():
        _, events = failing.post("/agent", INPUT)
    assert types(events)[-2:] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert "internal" not in json.dumps(events)


def curl_command():
    """Return the path, the headers and the body of the request in the first lines of the script."""
    text = SCRIPT.read_text("utf-8")
    words = shlex.split(text[text.index("curl ") :].partition("\n\n")[0])
    options = list(pairwise(words))
    headers = dict(value.split(": ") for option, value in options if option == "-H")
    [body] = [value.encode() for option, value in options if option == "-d"]
    [path] = [word.partition("8000")[2] for word in words if ":8000/" in word]
    return path, headers, body


def test_the_script_serves_as_its_first_lines_say(tmp_path):
    command = [sys.executable, SCRIPT, tmp_path / "runs.sqlite3", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            [line] = [next(line for line in process.stderr if "running on" in line)]
            url = line.split("running on ")[1].split()[0]
            path, headers, body = curl_command()
            with urlopen(Request(url + path, body, headers), timeout=60) as response:
                assert b"RUN_FINISHED" in response.read()
        finally:
            process.terminate()


# --- A machine without Node ---------------------------------------------------------------------


@pytest.fixture
def pytest_without_node(tmp_path):
    """Return a function that runs end-to-end tests in a process that finds no Node."""

    def run(test, required=""):
        here = Path(__file__).parent
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", here / test]
        environ = {**os.environ, "PATH": str(tmp_path), "AGUI_RUNS_E2E": required}
        return subprocess.run(
            command, cwd=here.parent.parent, env=environ, capture_output=True, text=True
        ).stdout

    return run


def test_a_test_of_the_server_runs_without_node(pytest_without_node):
    test = "test_server.py::test_events_are_numbered_and_the_state_stored_is_the_state_sent"
    assert "1 passed" in pytest_without_node(test, "required")


def test_a_test_of_the_client_is_skipped_without_node_and_says_what_to_do(pytest_without_node):
    said = pytest_without_node("test_client.py::test_a_run_pauses_for_its_approval")
    assert re.search(r"1\].*npm install --prefix tests/e2e(.|\n)*1 skipped", said)


def test_a_test_of_the_client_fails_without_node_where_it_is_required(pytest_without_node):
    said = pytest_without_node("test_client.py::test_a_run_pauses_for_its_approval", "required")
    assert re.search(r"npm install --prefix tests/e2e(.|\n)*1 error", said)
