"""What the example server costs at most, however long a thread or a stream is, and who asks.

Costs are counted and not timed: steps of SQLite's virtual machine, reads of a row, frames kept.
"""

import asyncio
import http.client
import json
from collections import Counter
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from sqlite3 import connect
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_runs import RunRecord, digest

YES = {"status": "resolved", "payload": {"approved": True}}
LIMIT = 1_000_000


def said(run="run-1", text="The cup of A-1042 arrived broken.", thread="thread-1"):
    message = {"id": "message-1", "role": "user", "content": text}
    return {"threadId": thread, "runId": run, "messages": [message]}


# --- What a client may send ---------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/agent", "/cancel", "/answer"])
def test_a_body_as_large_as_may_be_is_read(server, path):
    body = json.dumps({"filling": ""}).encode()
    body = body.replace(b'""', b'"' + b"x" * (LIMIT - len(body)) + b'"')
    status, refusal = server.post(path, body)
    assert (len(body), status, refusal["code"]) == (LIMIT, 400, "input_invalid")


@pytest.mark.parametrize("path", ["/agent", "/cancel", "/answer"])
def test_a_larger_body_is_refused_before_it_has_come(server, path):
    """Chunk by chunk, with no length given, and with no end."""
    client = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    with closing(client):
        client.putrequest("POST", path)
        for name, value in {"content-type": "application/json", "x-demo-actor": "alice"}.items():
            client.putheader(name, value)
        client.putheader("transfer-encoding", "chunked")
        client.endheaders()
        chunk = b"x" * 1000
        for _ in range(LIMIT // len(chunk) + 1):
            client.send(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        response = client.getresponse()
        refusal = json.loads(response.read())
    assert (response.status, refusal["code"]) == (413, "body_too_large")


@pytest.mark.parametrize("name", ["threadId", "runId"])
@pytest.mark.parametrize("path", ["/agent", "/cancel", "/answer"])
def test_an_id_has_at_most_two_hundred_characters(server, path, name):
    ids = said("x" * 200, "Hello?", "y" * 200)
    assert server.post("/agent", ids)[0] == 200
    status, refusal = server.post(path, {**ids, name: "x" * 201})
    problem = f"{name} must be text of at most 200 characters"
    assert (status, refusal["message"]) == (400, problem)


# --- A thread of 10,000 runs --------------------------------------------------------------------


@pytest.fixture
def steps(server):
    """Return a function that counts what the database does for a call, in steps of ten."""

    def count(call):
        counted = 0

        def step():
            nonlocal counted
            counted += 1

        watch(server, step)
        call()
        watch(server, None)
        return counted

    return count


def watch(server, step):
    """Have a function called for every ten steps, from between two statements on."""

    def begin():
        server.store.db.set_progress_handler(step, 10)

    # In the thread of the database: from another one it would wait for the lock that the database
    # holds, and hold the one that the function waits for.
    asyncio.run_coroutine_threadsafe(server.store._in_thread(begin), server.loop).result(60)


def fill(server, thread, runs):
    """Put so many runs on a thread that have ended, every tenth of them with an answered pause."""
    from agui_runs import Interrupt

    now = server.clock.now - timedelta(days=1)
    rows = []
    for number in range(runs):
        posted = said(f"old-{number}", thread=thread)
        run = RunRecord(
            scope="shop-1",
            thread_id=thread,
            run_id=posted["runId"],
            digest=digest(posted),
            created_at=now + timedelta(milliseconds=number),
            snapshot={"messages": [], "state": {"refunds": {"call-1": {"arguments": {}}}}},
        )
        if number % 10 == 0:
            ask = Interrupt(
                id=f"old-{number}", tool_call_id="call-1", arguments_digest="d", expires_at=None
            )
            run = run.interrupted([ask], now=now)
            run = run.replace_interrupt(ask.decide("denied", now=now), now=now)
        else:
            run = run.finish("succeeded", now=now)
        text = json.dumps(run.to_storage(), sort_keys=True)
        rows.append((*run.key, text, json.dumps(posted), "alice", "2126-03-01T09:00:00.000000Z"))
    columns = "scope, thread_id, run_id, record, input, actor, alive_until"
    with closing(connect(server.database, timeout=60)) as db, db:
        db.executemany(f"INSERT INTO runs ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", rows)


def life(server, thread):
    """Return what is asked of a thread in its life, by name."""
    asked = {}

    def pause():
        _, events = server.post("/agent", said("run-1", thread=thread))
        [interrupt] = events[-1]["outcome"]["interrupts"]
        asked.update(interruptId=interrupt["id"], threadId=thread, runId="run-1")

    def ignore():
        server.post("/agent", said("run-2", thread=thread))

    def answer():
        entry = {"interruptId": asked["interruptId"], **YES}
        server.post("/agent", {**said("run-3", thread=thread), "resume": [entry]})

    def late_answer():
        server.post("/answer", {**asked, "decision": "denied"})

    return {
        "a question": pause,
        "another one": ignore,
        "what waits": lambda: server.get("/approvals"),
        "an answer": answer,
        "a second one": late_answer,
        "a cancellation": lambda: server.post("/cancel", asked),
        "a reload of the run": lambda: server.get("/follow", threadId=thread, runId="run-1"),
        "a reload of the thread": lambda: server.get("/thread", threadId=thread),
    }


def test_a_thread_of_ten_thousand_runs_costs_no_more_than_a_short_one(server, steps, tell):
    # The page of a thread is full with sixty runs.
    sizes = {"long": 10_000, "short": 60}
    counted = {}
    for thread, runs in sizes.items():
        fill(server, thread, runs)
        counted[thread] = {name: steps(call) for name, call in life(server, thread).items()}
    ratios = {name: counted["long"][name] / counted["short"][name] for name in counted["long"]}
    tell("steps of the database, a thread of 10,000 runs to one of 60:")
    for name, ratio in ratios.items():
        tell(f"  {name}: {counted['long'][name]} to {counted['short'][name]}, {ratio:.2f}")
    assert max(ratios.values()) < 1.5


def test_the_sweep_does_not_read_what_has_ended(server, steps, tell):
    from sweep import sweep

    def once():
        done = asyncio.run_coroutine_threadsafe(sweep(server.store, server.clock.now), server.loop)
        done.result(60)

    fill(server, "short", 10)
    few = steps(once)
    fill(server, "long", 10_000)
    many = steps(once)
    tell(f"steps of a sweep, with 10,010 ended runs to 10: {many} to {few}")
    assert many <= few * 1.5


# --- A hundred followers ------------------------------------------------------------------------


@contextmanager
def at_work(server, *runs):
    """Hold runs in the agent of a server."""
    server.in_agent.wanted = True
    opened = [urlopen(server.request("/agent", said(run, thread=run)), timeout=60) for run in runs]
    server.in_agent.wait()
    try:
        yield
    finally:
        server.in_agent.released.set()
    for response in opened:
        response.read()
        response.close()


def test_a_hundred_followers_of_a_run_read_its_row_as_often_as_one(server, tmp_path, tell):
    """Both runs are followed at the same time, on a server that does not work on them."""
    other = type(server)(Path(server.database), server.clock.now)
    reads = Counter()
    load = other.store.load

    async def counting(key):
        reads[key[2]] += 1
        return await load(key)

    other.store.load = counting
    followed = [*["crowd"] * 100, "one"]
    with at_work(server, "crowd", "one"), other.running():
        opened = [
            urlopen(other.request("/agent", said(run, thread=run)), timeout=60) for run in followed
        ]
        reads.clear()
        deadline = asyncio.run_coroutine_threadsafe(wait_until(reads, 40), other.loop)
        deadline.result(60)
        counted = dict(reads)
        server.in_agent.released.set()
        endings = {response.read().split(b"\n\n")[-2] for response in opened}
        for response in opened:
            response.close()
    ratio = counted["crowd"] / counted["one"]
    tell(f"reads for 100 followers to those for one: {counted}, {ratio:.2f}")
    assert (len(endings), ratio < 1.5) == (2, True)


async def wait_until(reads, enough):
    """Wait until each run has been read so often."""
    while min(reads["crowd"], reads["one"]) < enough:
        await asyncio.sleep(0.01)


def test_who_comes_while_a_look_is_under_way_waits_for_the_next_one():
    """Or it would be given a look that is over, again and again, and nobody else a turn."""
    from watch import Watch

    async def story():
        looks, waiting = [], []

        async def look(key):
            looks.append(key)
            if len(looks) == 1:
                waiting.append(asyncio.create_task(watch.next(key)))
                await asyncio.sleep(0)
            return len(looks)

        watch = Watch(look, 0)
        first = await watch.next("key")
        return first, await waiting[0], looks

    assert asyncio.run(story()) == (1, 2, ["key", "key"])


def test_the_others_wait_on_when_one_of_them_goes():
    from watch import Watch

    async def story():
        async def look(key):
            return "found"

        watch = Watch(look, 0)
        gone, stays = (asyncio.create_task(watch.next("key")) for _ in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        return await stays

    assert asyncio.run(story()) == "found"


# --- A reader that is slow or gone --------------------------------------------------------------


def event(kind, id):
    from ag_ui import core

    return {
        "start": core.TextMessageStartEvent(message_id=id, role="assistant"),
        "text": core.TextMessageContentEvent(message_id=id, delta="x"),
        "end": core.TextMessageEndEvent(message_id=id),
    }[kind]


@given(st.lists(st.integers(1, 5), max_size=30), st.sets(st.integers(0, 200)))
def test_a_reader_sees_closed_messages_whenever_it_reads(lengths, reads):
    """It reads all there is at some moments, and falls behind between them."""
    import frames

    kept, seen, most = frames.Frames(), [], 0
    limit, frames.LIMIT = frames.LIMIT, 8
    sent = 0
    for number, length in enumerate(lengths):
        for kind in ("start", *["text"] * length, "end"):
            kept.put(event(kind, f"m-{number}"))
            most = max(most, len(kept.waiting))
            sent += 1
            if sent in reads:
                seen += kept.waiting
                kept.waiting.clear()
    frames.LIMIT = limit
    seen += kept.waiting
    opened = []
    for frame in seen:
        said = json.loads(frame[5:])
        if said["type"] == "TEXT_MESSAGE_START":
            opened.append(said["messageId"])
        else:
            assert opened == [said["messageId"]]
        if said["type"] == "TEXT_MESSAGE_END":
            opened.pop()
    assert (opened, most <= 8 + 1) == ([], True)


class Connection:
    """A connection that takes what is sent when the test says so, spoken to as ASGI has it."""

    def __init__(self, server, posted):
        self.server = server
        self.body = json.dumps(posted).encode()
        self.sent = []
        self.reads = asyncio.Event()
        self.goes = asyncio.Event()
        self.has_asked = False

    async def receive(self):
        if not self.has_asked:
            self.has_asked = True
            return {"type": "http.request", "body": self.body}
        await self.goes.wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        self.sent.append(message.get("body", b""))
        if len(self.sent) > 1:
            await self.reads.wait()

    async def request(self, app):
        headers = [(b"content-type", b"application/json"), (b"x-demo-actor", b"alice")]
        scope = {"type": "http", "method": "POST", "path": "/agent", "headers": headers}
        await app(
            {**scope, "query_string": b"", "asgi": {"spec_version": "2.3"}}, self.receive, self.send
        )


async def talkative(question, results):
    for number in range(100):
        yield f"This is sentence {number}."


def test_a_reader_that_does_not_read_costs_no_memory_that_grows_with_the_run(tmp_path, monkeypatch):
    from agent_server import build_app
    from stores.sqlite import SqliteStore

    monkeypatch.setattr("frames.LIMIT", 20)

    async def story():
        store = SqliteStore(str(tmp_path / "runs.sqlite3"))
        app = build_app(store, agent=talkative)
        connection = Connection(app, said())
        asking = asyncio.create_task(connection.request(app))
        [work] = [None]
        while not (work := next(iter(app.state.workers.at_work.values()), None)):
            await asyncio.sleep(0.01)
        [task] = app.state.workers.at_work
        await task
        kept = len(work.frames.waiting)
        connection.reads.set()
        await asking
        await store.close()
        return kept, b"".join(connection.sent).decode()

    kept, text = asyncio.run(story())
    events = [json.loads(frame[5:]) for frame in text.split("\n\n") if frame]
    last = [each["type"] for each in events[-3:]]
    assert kept <= 20 + 1 + len(last)
    assert last == ["MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED"]
    assert len(events[-3]["messages"]) == 1 + 100


def test_for_a_connection_that_is_gone_nothing_is_kept(tmp_path):
    from agent_server import build_app
    from stores.sqlite import SqliteStore

    async def story():
        store = SqliteStore(str(tmp_path / "runs.sqlite3"))
        app = build_app(store, agent=talkative)
        connection = Connection(app, said())
        connection.reads.set()
        connection.goes.set()
        await connection.request(app)
        [(task, work)] = app.state.workers.at_work.items()
        await task
        await store.close()
        return work

    work = asyncio.run(story())
    assert (work.row.run.status, len(work.frames.waiting)) == ("succeeded", 0)
