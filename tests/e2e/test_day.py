"""What happens by itself on a server's day: expiry, slow tools, lost workers, a stop, old rows."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from sqlite3 import connect
from urllib.request import Request, urlopen

import pytest

from agui_runs import RunRecord, digest

EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"
REFUND = {"orderId": "A-1042", "amount": "20.00", "currency": "EUR"}
REFUNDED = "Refunded 20.00 EUR for A-1042."
UNKNOWN = "It is not known what became of this call."
HEADERS = {"content-type": "application/json", "x-demo-actor": "alice"}
YES = {"status": "resolved", "payload": {"approved": True}}


def said(run="run-1", text="The cup of A-1042 arrived broken."):
    message = {"id": "message-1", "role": "user", "content": text}
    return {"threadId": "thread-1", "runId": run, "messages": [message]}


def pause(server, text="The cup of A-1042 arrived broken."):
    """Return the requests with which a first run ends."""
    _, events = server.post("/agent", said(text=text))
    return events[-1]["outcome"]["interrupts"]


def approval(*interrupts, run="run-2"):
    resume = [{"interruptId": interrupt["id"], **YES} for interrupt in interrupts]
    return {**said(run), "resume": resume}


def results(events):
    return [event["content"] for event in events if event["type"] == "TOOL_CALL_RESULT"]


def runs(server):
    return server.get("/thread", threadId="thread-1")[1]["runs"]


def sweep(server, keep=None):
    """Sweep as the server does, at the time that the server is told."""
    from stores.sqlite import SqliteStore
    from sweep import sweep

    async def once():
        store = SqliteStore(server.database)
        try:
            return await sweep(store, server.clock.now, keep)
        finally:
            await store.close()

    return asyncio.run(once())


@contextmanager
def database(server):
    with closing(connect(server.database, timeout=60)) as db, db:
        yield db


@contextmanager
def held_in_tool(server, posted):
    """Post an input in the middle of whose tool call the block finds the server."""
    server.in_tool.wanted = True
    with urlopen(server.request("/agent", posted), timeout=60) as response:
        server.in_tool.wait()
        yield response
        server.in_tool.released.set()
        response.read()


def lose(server, run="run-1", **more):
    """Leave behind a run as a process does that was killed while it worked on it."""
    from store import time_text

    posted = {**said(run), **more}
    now = server.clock.now
    record = RunRecord(
        scope="shop-1", thread_id="thread-1", run_id=run, digest=digest(posted), created_at=now
    ).start(now=now)
    columns = "scope, thread_id, run_id, record, input, actor, alive_until"
    texts = (json.dumps(record.to_storage(), sort_keys=True), json.dumps(posted))
    with database(server) as db:
        db.execute(
            f"INSERT INTO runs ({columns}) VALUES (?, ?, ?, ?, ?, 'alice', ?)",
            (*record.key, *texts, time_text(now + timedelta(seconds=30))),
        )


@contextmanager
def sweeping(server):
    """Have another server on the same database, which sweeps as soon as it runs."""
    with type(server)(Path(server.database), server.clock.now).running() as other:
        yield other


# --- Requests that expire -----------------------------------------------------------------------


def test_a_request_that_has_expired_is_closed_by_the_sweep(server):
    pause(server)
    server.clock.now += timedelta(minutes=10)
    assert sweep(server).expired == 1
    [request] = runs(server)[0]["requests"]
    assert (request["status"], request["decidedBy"]) == ("cancelled", "server")


def test_a_request_that_is_still_open_is_left_alone_by_the_sweep(server):
    pause(server)
    server.clock.now += timedelta(minutes=9)
    assert sweep(server).expired == 0
    assert runs(server)[0]["requests"][0]["status"] == "pending"


def test_after_the_sweep_the_thread_takes_a_new_question(server):
    pause(server)
    server.clock.now += timedelta(minutes=10)
    sweep(server)
    _, events = server.post("/agent", said("run-2", "Hello?"))
    assert events[-1]["outcome"] == {"type": "success"}


def test_an_answer_after_the_sweep_is_refused(server):
    [asked] = pause(server)
    server.clock.now += timedelta(minutes=10)
    sweep(server)
    _, events = server.post("/agent", approval(asked))
    assert (events[-1]["code"], server.calls) == ("interrupt_decided", [])


def test_a_sweep_that_comes_after_an_answer_changes_nothing(server):
    from sweep import close_expired

    [asked] = pause(server)

    async def race():
        from stores.sqlite import SqliteStore

        store = SqliteStore(server.database)
        stale = await store.load(("shop-1", "thread-1", "run-1"))  # It is pending there.
        await asyncio.to_thread(server.post, "/agent", approval(asked))
        await close_expired(store, stale, server.clock.now + timedelta(hours=1))
        await store.close()

    asyncio.run(race())
    assert runs(server)[0]["requests"][0]["status"] == "approved"


def test_what_was_approved_beside_an_expired_request_is_made(server):
    first, _ = pause(server, "A-1 and B-2 arrived broken.")
    asked = {"threadId": "thread-1", "runId": "run-1", "interruptId": first["id"]}
    server.post("/answer", {**asked, "decision": "approved"})
    server.clock.now += timedelta(minutes=10)
    sweep(server)
    with sweeping(server) as other:
        other.get("/follow", threadId="thread-1", runId=runs(server)[1]["runId"])
    assert [call["orderId"] for call in other.calls] == ["A-1"]


def test_a_row_that_cannot_be_read_does_not_keep_the_others_open(server, caplog):
    pause(server)
    server.post("/agent", {**said(), "threadId": "thread-2"})
    with database(server) as db:
        db.execute(
            "UPDATE runs SET record = replace(record, '\"reason\"', '\"reasons\"') "
            "WHERE thread_id = 'thread-1'"
        )
    server.clock.now += timedelta(minutes=10)
    assert sweep(server).expired == 1
    assert "a stored run cannot be read: run record: interrupts[0].reason is missing" in caplog.text


# --- Slow and dead ------------------------------------------------------------------------------


def renew(server):
    """Renew the leases of a server as it does every ten seconds."""
    workers = server.workers
    keys = [work.row.run.key for work in workers.at_work.values()]
    asyncio.run_coroutine_threadsafe(workers.renew(keys), server.loop).result(60)


def test_a_tool_that_takes_six_minutes_is_not_lost(server):
    with held_in_tool(server, approval(*pause(server))) as response:
        for _ in range(18):
            server.clock.now += timedelta(seconds=20)
            renew(server)
        assert sweep(server).lost == 0
        server.in_tool.released.set()
        assert b'"success"' in response.read()


def test_a_worker_that_renews_nothing_is_lost(server):
    with held_in_tool(server, approval(*pause(server))) as response:
        server.clock.now += timedelta(seconds=31)
        assert sweep(server).lost == 1
        server.in_tool.released.set()
        assert b'"worker_lost"' in response.read()


def test_who_waits_for_a_slow_call_waits_as_long_as_its_worker_lives(server):
    [asked] = pause(server)
    with (
        held_in_tool(server, approval(asked)),
        urlopen(server.request("/agent", approval(asked, run="run-3")), timeout=60) as second,
    ):
        for _ in range(18):
            server.clock.now += timedelta(seconds=20)
            renew(server)
        server.in_tool.released.set()
        assert REFUNDED.encode() in second.read()


def test_who_waits_for_a_call_whose_worker_is_dead_is_told_that_nobody_knows(server):
    [asked] = pause(server)
    with held_in_tool(server, approval(asked)):
        server.clock.now += timedelta(seconds=31)
        _, events = server.post("/agent", approval(asked, run="run-3"))
    assert results(events) == [UNKNOWN]


def test_a_call_that_was_begun_and_never_finished_is_listed(server):
    [asked] = pause(server)
    with held_in_tool(server, approval(asked)):
        before = server.get("/unfinished")[1]["claims"]
        server.clock.now += timedelta(seconds=31)
        [claim] = server.get("/unfinished")[1]["claims"]
    assert before == []
    assert claim == {
        "threadId": "thread-1",
        "runId": "run-2",
        "toolCallId": asked["toolCallId"],
        "claimedAt": "2126-03-02T09:00:00.000000Z",
    }


def test_a_call_that_is_finished_late_is_listed_no_longer(server):
    with held_in_tool(server, approval(*pause(server))):
        server.clock.now += timedelta(seconds=31)
    assert server.get("/unfinished")[1]["claims"] == []


# --- A lost run and what follows it -------------------------------------------------------------


def test_a_lost_run_that_brought_an_approval_is_followed_by_one_that_makes_the_call(server):
    [asked] = pause(server)
    record_answer(server, asked)
    lose(server, "run-2", resume=[{"interruptId": asked["id"], **YES}])
    server.clock.now += timedelta(seconds=31)
    sweep(server)
    with sweeping(server) as other:
        other.get("/follow", threadId="thread-1", runId=runs(server)[2]["runId"])
    assert [run["status"] for run in runs(server)] == ["interrupted", "failed", "succeeded"]
    assert (server.calls, other.calls) == ([], [REFUND])


def record_answer(server, asked):
    """Record an approval as a process does that is killed before it makes the call."""
    with database(server) as db:
        [(text,)] = db.execute("SELECT record FROM runs WHERE run_id = 'run-1'").fetchall()
        run = RunRecord.from_storage(json.loads(text))
        run = run.answer([{"interruptId": asked["id"], **YES}], now=server.clock.now)
        db.execute(
            "UPDATE runs SET record = ? WHERE run_id = 'run-1'",
            (json.dumps(run.to_storage(), sort_keys=True),),
        )


def test_a_lost_run_whose_answer_was_not_recorded_is_followed_by_none(server):
    [asked] = pause(server)
    lose(server, "run-2", resume=[{"interruptId": asked["id"], **YES}])
    server.clock.now += timedelta(seconds=31)
    swept = sweep(server)
    assert (swept.lost, swept.to_take_up) == (1, [])


def test_a_lost_run_that_brought_no_answer_is_followed_by_none(server):
    lose(server)
    server.clock.now += timedelta(seconds=31)
    swept = sweep(server)
    assert (swept.lost, swept.to_take_up) == (1, [])


def test_a_run_that_kills_every_worker_is_followed_three_times_and_no_more(server):
    [asked] = pause(server)
    record_answer(server, asked)
    lose(server, "run-2", resume=[{"interruptId": asked["id"], **YES}])
    for _ in range(5):
        server.clock.now += timedelta(seconds=31)
        sweep(server)
        with database(server) as db:  # A worker takes it up, and is killed.
            db.execute(
                "UPDATE runs SET record = replace(record, '\"reserved\"', '\"started\"') "
                "WHERE status = 'reserved'"
            )
    assert [run["status"] for run in runs(server)] == ["interrupted", *["failed"] * 4]


def test_a_run_that_was_reserved_and_never_begun_is_taken_up(server):
    lose(server)
    with database(server) as db:
        db.execute("UPDATE runs SET record = replace(record, '\"started\"', '\"reserved\"')")
    server.clock.now += timedelta(seconds=31)
    with sweeping(server) as other:
        events = other.get("/follow", threadId="thread-1", runId="run-1")[1]
    assert events[-1]["outcome"]["type"] == "interrupt"


def test_of_two_servers_that_take_up_one_run_only_one_works_on_it(server):
    lose(server)
    with database(server) as db:
        db.execute("UPDATE runs SET record = replace(record, '\"started\"', '\"reserved\"')")

    async def take_both():
        row = await server.store.load(("shop-1", "thread-1", "run-1"))
        taken = [await server.workers.take(row), await server.workers.take(row)]
        return [work is not None for work in taken]

    taken = asyncio.run_coroutine_threadsafe(take_both(), server.loop).result(60)
    assert taken == [True, False]


# --- A stop -------------------------------------------------------------------------------------

SLOW = """
import asyncio, sys
sys.path.append({examples!r})
import agent_server
from graceful import GracefulServer
from stores.sqlite import SqliteStore

async def tool(arguments):
    print("in the tool", flush=True)
    await asyncio.sleep({seconds})
    return "Refunded."

app = agent_server.build_app(SqliteStore({database!r}), tool=tool)
GracefulServer(app, {grace}, host="127.0.0.1", port=0, access_log=False).run()
"""


@contextmanager
def process(database, seconds, grace):
    """Run the server in a process, with a tool that takes so long."""
    code = SLOW.format(examples=str(EXAMPLES), database=str(database), seconds=seconds, grace=grace)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], text=True, **pipes) as running:
        try:
            [line] = [next(line for line in running.stderr if "running on" in line)]
            running.url = line.split("running on ")[1].split()[0]
            yield running
        finally:
            running.kill()


def events_of(response):
    return [json.loads(frame[5:]) for frame in response.read().decode().split("\n\n") if frame]


def stop_in_tool(running):
    """Let a server make an approved call, stop it there, and return the stream of that run."""

    def post(posted):
        return urlopen(Request(running.url + "/agent", json.dumps(posted).encode(), HEADERS))

    with post(said()) as response:
        asked = events_of(response)[-1]["outcome"]["interrupts"]
    with post(approval(*asked)) as response:
        assert running.stdout.readline() == "in the tool\n"
        running.send_signal(signal.SIGTERM)
        return events_of(response)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM that a process could handle")
def test_a_server_that_is_stopped_lets_a_run_come_to_its_end(tmp_path):
    with process(tmp_path / "runs.sqlite3", seconds=0.5, grace=60) as running:
        events = stop_in_tool(running)
        code = running.wait(60)
    assert (events[-1]["outcome"], code) == ({"type": "success"}, -signal.SIGTERM)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM that a process could handle")
def test_a_server_that_is_stopped_ends_a_run_that_takes_too_long_with_a_code(tmp_path):
    with process(tmp_path / "runs.sqlite3", seconds=3600, grace=0.5) as running:
        events = stop_in_tool(running)
        running.wait(60)
    error = {"message": "The server was stopped.", "code": "server_stopping"}
    assert events[-1] == {"type": "RUN_ERROR", **error}
    with closing(connect(tmp_path / "runs.sqlite3")) as db:
        stored = db.execute("SELECT status, record FROM runs ORDER BY rowid").fetchall()
    assert [status for status, _ in stored] == ["interrupted", "failed", "reserved"]
    assert json.loads(stored[1][1])["failure"] == error


def test_a_server_that_is_stopping_takes_no_new_run(server):
    server.workers.is_stopping = True
    try:
        status, refusal = server.post("/agent", said())
    finally:
        server.workers.is_stopping = False
    assert (status, refusal["code"], runs(server)) == (503, "server_stopping", [])


# --- Old rows -----------------------------------------------------------------------------------

MONTH = timedelta(days=30)


def test_what_ended_long_ago_is_removed(server):
    server.post("/agent", said(text="Hello?"))
    server.clock.now += MONTH + timedelta(seconds=1)
    assert (sweep(server, MONTH).removed, runs(server)) == (1, [])


def test_what_ended_lately_stays(server):
    server.post("/agent", said(text="Hello?"))
    server.clock.now += MONTH
    assert sweep(server, MONTH).removed == 0


def test_a_claim_goes_with_the_last_run_whose_approval_it_guards(server):
    server.post("/agent", approval(*pause(server)))
    server.clock.now += MONTH + timedelta(seconds=1)
    assert sweep(server, MONTH).removed == 2
    with database(server) as db:
        left = [db.execute(f"SELECT count(*) FROM {t}").fetchall() for t in ("runs", "executions")]
    assert left == [[(0,)], [(0,)]]


def test_an_approval_whose_claim_is_removed_cannot_be_brought_again(server):
    asked = pause(server)
    server.post("/agent", approval(*asked))
    server.clock.now += MONTH + timedelta(seconds=1)
    sweep(server, MONTH)
    _, events = server.post("/agent", approval(*asked, run="run-3"))
    assert (events[-1]["code"], server.calls) == ("resume_unknown", [REFUND])


def test_a_claim_that_still_guards_a_call_stays(server):
    """The paused run was answered lately, and only the run that made the call is old."""
    asked = pause(server)
    server.post("/agent", approval(*asked))
    with database(server) as db:
        db.execute(
            "UPDATE runs SET record = replace(record, '\"2126-03', '\"2126-01') "
            "WHERE run_id = 'run-2'"
        )
    assert sweep(server, MONTH).removed == 1
    _, events = server.post("/agent", approval(*asked, run="run-3"))
    assert (results(events), server.calls) == ([REFUNDED], [REFUND])


def test_nothing_is_removed_from_a_thread_that_is_at_work(server):
    asked = pause(server)
    server.post("/agent", approval(*asked))
    server.clock.now += MONTH + timedelta(seconds=1)
    lose(server, "run-3")
    assert sweep(server, MONTH).removed == 0


def test_a_call_that_nobody_knows_the_result_of_is_never_forgotten(server):
    asked = pause(server)
    server.post("/agent", approval(*asked))
    with database(server) as db:
        db.execute("UPDATE executions SET result = NULL")
    server.clock.now += MONTH + timedelta(seconds=1)
    sweep(server, MONTH)
    assert len(server.get("/unfinished")[1]["claims"]) == 1
    assert [run["runId"] for run in runs(server)] == ["run-1"]


def test_all_that_is_old_is_removed_in_one_sweep(server):
    for number in range(250):
        lose(server, f"run-{number}")
    with database(server) as db:
        db.execute("UPDATE runs SET record = replace(record, '\"started\"', '\"succeeded\"')")
    server.clock.now += MONTH + timedelta(seconds=1)
    assert (sweep(server, MONTH).removed, runs(server)) == (250, [])


def test_the_audit_outlives_the_run(server):
    server.post("/agent", approval(*pause(server)))
    server.clock.now += MONTH + timedelta(seconds=1)
    sweep(server, MONTH)
    with database(server) as db:
        assert db.execute("SELECT decision, actor FROM decisions").fetchall() == [
            ("approved", "alice")
        ]


def test_the_sweep_is_a_command(server):
    pause(server)
    command = [sys.executable, EXAMPLES / "sweep.py", server.database, "30"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == (
        "0 paused runs had requests that have expired\n"
        "0 runs were lost, and 0 wait for a server\n"
        "0 ended runs were removed\n"
    )
