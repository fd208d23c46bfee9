"""The example server runs on every store, by the one argument that it is started with."""

import json
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"
PATIENCE = 60.0
HEADERS = {"content-type": "application/json", "x-demo-actor": "alice"}


@contextmanager
def serving(url, port):
    """Run the server on the store at this URL; return its own URL once it serves."""
    command = [sys.executable, EXAMPLES / "agent_server.py", url, str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        try:
            lines = []
            for line in running.stderr:
                lines.append(line)
                if "running on" in line:
                    break
            else:
                raise AssertionError("".join(lines))
            threading.Thread(target=running.stderr.read, daemon=True).start()
            yield f"http://127.0.0.1:{port}"
        finally:
            running.terminate()


def ask(server, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(server + path, data, HEADERS), timeout=PATIENCE) as answer:
        text = answer.read().decode()
    if text.startswith("data:"):
        return [json.loads(frame[5:]) for frame in text.split("\n\n") if frame]
    return json.loads(text)


def runs_of(server):
    """Wait for all runs of the thread to end, and return them."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        runs = ask(server, "/thread?threadId=t-1")["runs"]
        if len(runs) > 1 and all(run["ending"] for run in runs):
            return runs
        time.sleep(0.05)
    raise AssertionError("a run has not ended")


def test_a_request_is_made_on_one_server_approved_on_another_and_swept(url):
    from databases import free_port

    message = {"id": "m-1", "role": "user", "content": "A-1042 arrived broken."}
    posted = {"threadId": "t-1", "runId": "r-1", "messages": [message]}
    with serving(url, free_port()) as first, serving(url, free_port()) as second:
        events = ask(first, "/agent", posted)
        [request] = events[-1]["outcome"]["interrupts"]
        [waiting] = ask(second, "/approvals")["approvals"]
        answer = {"threadId": "t-1", "runId": "r-1", "interruptId": request["id"]}
        ask(second, "/answer", {**answer, "decision": "approved"})
        paused, went_on = runs_of(first)
    assert waiting["interrupt"] == request
    assert [run["status"] for run in (paused, went_on)] == ["interrupted", "succeeded"]
    assert "Refunded 20.00 EUR for A-1042." in went_on["messages"][0]["content"]

    command = [sys.executable, EXAMPLES / "sweep.py", url, "-1"]
    swept = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "2 ended runs were removed" in swept.stdout
