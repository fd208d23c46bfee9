"""The example server without a client: what a restart, a crash and a hostile request meet."""

import json
import subprocess
import sys
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from sqlite3 import connect
from urllib.request import urlopen

import pytest

from agui_runs import RunRecord, digest

SCRIPT = Path(__file__).parent.parent.parent / "docs" / "examples" / "agent_server.py"
REFUND = {"orderId": "A-1042", "amount": "20.00", "currency": "EUR"}
QUESTION = [{"id": "message-1", "role": "user", "content": "The cup of A-1042 arrived broken."}]
INPUT = {"threadId": "thread-1", "runId": "run-1", "messages": QUESTION}


def types(events):
    return [event["type"] for event in events]


def asks(server):
    """Return the interrupt with which a first run ends."""
    _, events = server.post("/agent", INPUT)
    [interrupt] = events[-1]["outcome"]["interrupts"]
    return interrupt


def answer(interrupt, run="run-2", approved=True):
    payload = {"approved": approved}
    entry = {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}
    return {**INPUT, "runId": run, "resume": [entry]}


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


@pytest.mark.parametrize("body", [b"", b"[]", b"7", b"\xff", {}, {"threadId": "t"}, deep(100_000)])
def test_what_names_no_run_cancels_nothing(server, body):
    status, refusal = server.post("/cancel", body)
    assert (status, refusal["code"]) == (400, "input_invalid")


@pytest.mark.parametrize("run", ["run-9", 7, {"a": 1}, "\x00"])
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
    assert (run.sequence, run.snapshot) == (len(events) - 2, sent)


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
            _, refused = other.post("/agent", answer(asked, "run-3"))
            server.in_tool.released.set()
            assert b'"success"' in response.read()
        _, later = other.post("/agent", answer(asked, "run-4"))
    assert refused[-1]["code"] == "result_unknown"
    assert later[-1]["outcome"] == {"type": "success"}
    assert (server.calls, other.calls) == ([REFUND], [])


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
    with database(server) as db:
        claim = ("shop-1", "thread-1", asked["toolCallId"])
        db.execute("INSERT INTO executions VALUES (?, ?, ?, NULL)", claim)
    _, events = server.post("/agent", answer(asked))
    assert events[-1]["code"] == "result_unknown"
    assert server.calls == []


def test_a_run_whose_worker_is_lost_is_ended_and_not_run_again(server):
    abandoned = RunRecord(
        scope="shop-1",
        thread_id="thread-1",
        run_id="run-1",
        digest=digest(INPUT),
        created_at=server.clock.now,
    ).start(now=server.clock.now, snapshot={"refunds": {}})
    with database(server) as db:
        text = json.dumps(abandoned.to_storage(), sort_keys=True)
        db.execute("INSERT INTO runs VALUES (?, ?, ?, ?)", (*abandoned.key, text))
    server.clock.now += timedelta(minutes=6)
    _, events = server.post("/agent", INPUT)
    assert types(events) == ["RUN_STARTED", "STATE_SNAPSHOT", "RUN_ERROR"]
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
        stored(server).snapshot["refunds"][asked["toolCallId"]]["arguments"]["amount"] == "2000.00"
    )
    _, events = server.post("/agent", answer(asked))
    assert events[-1]["code"] == "arguments_changed"
    assert server.calls == []


def test_whoever_loses_the_right_between_answer_and_call_makes_no_call(server, monkeypatch):
    import agent_server

    asked = asks(server)
    rights = iter([True, False])

    def authorise(actor):
        if not next(rights):
            raise agent_server.HostError("not_authorised", "you may not decide about refunds")

    monkeypatch.setattr(agent_server, "authorise", authorise)
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


def test_the_script_serves_as_its_first_lines_say(tmp_path):
    command = [sys.executable, SCRIPT, tmp_path / "runs.sqlite3", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            [line] = [next(line for line in process.stderr if "running on" in line)]
            url = line.split("running on ")[1].split()[0]
            body = json.dumps(INPUT).encode()
            with urlopen(url + "/agent", body, timeout=60) as response:
                assert b"RUN_FINISHED" in response.read()
        finally:
            process.terminate()
