"""Two server processes on one database, 200 clients at once, and one process killed among them.

What must hold whatever the moment of the kill: no tool runs twice, no acknowledged answer is lost,
every stream ends in the ending that is recorded, or breaks off and does so when it is taken up
again. What cannot be known any more (a call that was begun in the killed process) is listed.
"""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from sqlite3 import connect
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from agui_runs import RunRecord

HERE = Path(__file__).parent
CLIENTS = 200
KILL_AFTER = 60  # acknowledged answers
PATIENCE = 120.0
HEADERS = {"content-type": "application/json", "x-demo-actor": "alice"}
BROKEN = (OSError, http.client.HTTPException)


@contextmanager
def process(database, calls):
    """Run a server process; return it once it serves."""
    command = [sys.executable, HERE / "load_server.py", database, calls]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        try:
            [line] = [next(line for line in running.stderr if "running on" in line)]
            running.url = line.split("running on ")[1].split()[0]
            # What it logs later, as of streams that broke, must not fill the pipe.
            threading.Thread(target=running.stderr.read, daemon=True).start()
            yield running
        finally:
            running.kill()


class Load:
    """What all clients share: the servers, one of which dies, and what they have counted."""

    def __init__(self, servers):
        self.servers = servers
        self.counts = Counter()
        self.acknowledged = {}
        self.endings = {}
        self.lock = threading.Lock()

    def count(self, name):
        with self.lock:
            self.counts[name] += 1

    def acknowledge(self, thread, decision):
        """Keep an answer that a server has taken, and kill one of them after so many."""
        with self.lock:
            self.acknowledged[thread] = "approved" if decision else "denied"
            if len(self.acknowledged) == KILL_AFTER:
                self.servers[0].kill()

    def send(self, number, path, body=None):
        """Send to this server or that until one answers, and return the status and the text."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            server = self.servers[number % 2]
            data = None if body is None else json.dumps(body).encode()
            try:
                with urlopen(Request(server.url + path, data, HEADERS), timeout=PATIENCE) as answer:
                    return answer.status, answer.read().decode()
            except HTTPError as refusal:
                with refusal:
                    return refusal.code, refusal.read().decode()
            except BROKEN:
                self.count("connections that broke")
                number += 1
        raise AssertionError("no server has answered")

    def stream(self, number, key, path, body=None):
        """Read the stream of a run to its ending, connecting again where it breaks off."""
        while True:
            _, text = self.send(number, path, body)
            events = [json.loads(frame[5:]) for frame in text.split("\n\n") if frame]
            last = events[-1]
            if last["type"] in ("RUN_FINISHED", "RUN_ERROR"):
                with self.lock:
                    self.endings.setdefault(key, []).append(last)
                return last
            number += 1


class Client:
    """One user, with one order that arrived broken, on a thread of its own."""

    def __init__(self, load, number):
        self.load = load
        self.number = number
        self.thread = f"thread-{number}"
        message = {"id": "m-1", "role": "user", "content": f"O-{number} arrived broken."}
        self.posted = {"threadId": self.thread, "messages": [message]}
        self.approves = number % 4 != 0

    def live(self):
        run_id, ending = self.asks()
        [interrupt] = ending["outcome"]["interrupts"]
        if self.number % 2:
            self.answers_in_the_chat(interrupt["id"])
        else:
            self.answers_in_the_inbox(run_id, interrupt["id"])
        self.sees_all_runs_end()

    def streams(self, posted):
        """Post an input and return the ending of its run."""
        return self.load.stream(self.number, (self.thread, posted["runId"]), "/agent", posted)

    def asks(self):
        """Ask until a run pauses: a user whose run was lost asks again."""
        for attempt in range(5):
            run_id = f"question-{attempt}"
            ending = self.streams({**self.posted, "runId": run_id})
            if ending["type"] == "RUN_FINISHED":
                return run_id, ending
        raise AssertionError(ending)

    def answers_in_the_chat(self, interrupt_id):
        payload = {"approved": self.approves}
        resume = [{"interruptId": interrupt_id, "status": "resolved", "payload": payload}]
        for attempt in range(5):
            posted = {**self.posted, "runId": f"answer-{attempt}", "resume": resume}
            ending = self.streams(posted)
            if ending["type"] == "RUN_FINISHED":
                return self.load.acknowledge(self.thread, self.approves)
        raise AssertionError(ending)

    def answers_in_the_inbox(self, run_id, interrupt_id):
        decision = "approved" if self.approves else "denied"
        ids = {"threadId": self.thread, "runId": run_id, "interruptId": interrupt_id}
        status, text = self.load.send(self.number, "/answer", {**ids, "decision": decision})
        # It may have been taken by a server that was killed before it said so.
        assert status == 200 or json.loads(text)["code"] == "interrupt_decided"
        self.load.acknowledge(self.thread, self.approves)

    def sees_all_runs_end(self):
        """Follow each run of the thread to its ending, also those that a server begins later."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            _, text = self.load.send(1, f"/thread?{urlencode({'threadId': self.thread})}")
            runs = json.loads(text)["runs"]
            live = [run["runId"] for run in runs if run["ending"] is None]
            for run_id in live:
                query = urlencode({"threadId": self.thread, "runId": run_id})
                self.load.stream(1, (self.thread, run_id), f"/follow?{query}")
            if not live:
                return
        raise AssertionError("a run has not ended")


@pytest.mark.skipif(os.name == "nt", reason="no two processes append to one file on Windows")
def test_two_processes_under_load_one_of_them_killed(tmp_path, tell):
    database, calls = tmp_path / "runs.sqlite3", tmp_path / "calls"
    with process(database, calls) as first, process(database, calls) as second:
        load = Load([first, second])
        clients = [Client(load, number) for number in range(CLIENTS)]
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(Client.live, clients))
        _, text = load.send(1, "/unfinished")
    assert first.returncode == -9

    with closing(connect(database)) as db:
        texts = db.execute("SELECT record FROM runs").fetchall()
        claims = dict(db.execute("SELECT thread_id, result FROM executions"))
        [(audited,)] = db.execute("SELECT count(*) FROM decisions").fetchall()
    runs = [RunRecord.from_storage(json.loads(text)) for (text,) in texts]
    decided = {run.thread_id: ask.status for run in runs for ask in run.interrupts}
    made = Counter(calls.read_text("utf-8").split())
    unfinished = {claim["threadId"] for claim in json.loads(text)["claims"]}
    approved = {client.thread for client in clients if client.approves}
    statuses = Counter(run.status for run in runs)
    codes = Counter(run.failure["code"] for run in runs if run.failure)

    recorded = {(run.thread_id, run.run_id): run.to_protocol() for run in runs}
    streams = [(key, ending) for key, endings in load.endings.items() for ending in endings]
    otherwise = [key for key, ending in streams if ending != recorded[key]]
    lost = [thread for thread, status in load.acknowledged.items() if decided[thread] != status]
    twice = [order for order, times in made.items() if times > 1]
    called = {f"thread-{order[2:]}" for order in made}

    tell(f"{CLIENTS} clients, one of two servers killed after {KILL_AFTER} answers")
    tell(f"  {load.counts['connections that broke']} connections broke")
    tell(f"  {len(runs)} runs: {dict(statuses)}, failures: {dict(codes)}")
    tell(f"  {len(streams)} streams, {len(otherwise)} ended otherwise than is recorded")
    tell(f"  {len(load.acknowledged)} answers, {audited} in the audit, {len(lost)} lost")
    tell(f"  {made.total()} calls, {len(unfinished)} never finished, {len(twice)} made twice")

    assert (lost, twice, otherwise) == ([], [], [])
    assert (len(load.acknowledged), audited) == (CLIENTS, CLIENTS)
    # Each approval has led to its call or to a claim that is listed, and nothing else has.
    assert {thread for thread, result in claims.items() if result is None} == unfinished
    assert called | unfinished == set(claims) == approved
    assert all(run.is_terminal for run in runs)
