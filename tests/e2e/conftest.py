"""What the end-to-end tests stand on: the example server, AG-UI's client in Node, and Chromium.

They need more than the other tests, those that use Node or Chromium most. Where something is
missing they are left out and say so; with `AGUI_RUNS_E2E=required` in the environment, as in
`.ci/run`, they fail instead.
"""

import asyncio
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "docs" / "examples"

# How long a test waits for another thread or process before it gives up: never, on a good day.
PATIENCE = 60.0

# Far from today, since the client looks at its own clock too and must find nothing expired.
FUTURE = datetime(2126, 3, 2, 9, 0, tzinfo=UTC)

# What every request carries, unless a test says otherwise.
HEADERS = {"content-type": "application/json", "x-demo-actor": "alice"}


def missing_module() -> str:
    """Return what the server misses and the command that brings it, or nothing."""
    for module in ("starlette", "uvicorn"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed: pip install --editable '.[test,server]'"
    return ""


def missing_client() -> str:
    """Return what AG-UI's own client misses and the command that brings it, or nothing."""
    if shutil.which("node") is None:
        return "node is missing: install Node.js 20 or newer, then npm install --prefix tests/e2e"
    pinned = json.loads((HERE / "package.json").read_text("utf-8"))["dependencies"]
    for name, version in pinned.items():
        manifest = HERE / "node_modules" / name / "package.json"
        if not manifest.exists() or json.loads(manifest.read_text("utf-8"))["version"] != version:
            return f"{name} {version} is not installed: npm install --prefix tests/e2e"
    return ""


def missing_chromium() -> str:
    """Return what a test in a real browser misses and the command that brings it, or nothing."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed: pip install --editable '.[browser]'"
    if CHROMIUM is None:
        return "Chromium is missing: apt-get install chromium"
    return ""


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
NO_SERVER, NO_CLIENT, NO_CHROMIUM = missing_module(), missing_client(), missing_chromium()
IS_REQUIRED = os.environ.get("AGUI_RUNS_E2E") == "required"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what cannot run, by a mark, for such skips are reported in one line a file."""
    for item in items:
        if not IS_REQUIRED and item.path.is_relative_to(HERE) and (problem := problem_of(item)):
            item.add_marker(pytest.mark.skip(reason=f"end to end: {problem}"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail what is required and cannot run, before any of its fixtures does."""
    if IS_REQUIRED and (problem := problem_of(item)):
        pytest.fail(problem, pytrace=False)


def problem_of(item: pytest.Item) -> str:
    """Return why a test cannot run, or nothing: each tool is for those with one of its fixtures."""
    used = set(item.fixturenames)
    return (
        NO_SERVER
        or (used & {"node", "browser", "axe"} and NO_CLIENT)
        or (used & {"chromium_path"} and NO_CHROMIUM)
        or ""
    )


@pytest.fixture(scope="session", autouse=True)
def _examples_can_be_imported() -> None:
    sys.path.append(str(EXAMPLES))


@pytest.fixture(scope="session")
def chromium_path() -> str | None:
    return CHROMIUM


@pytest.fixture(scope="session")
def node():
    """Return a function that runs one of our scripts on a JSON value and gives its answer."""

    def run(script: str, value: object) -> Any:
        done = subprocess.run(
            ["node", HERE / script], input=json.dumps(value), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def tell(capsys):
    """Return a function that writes a line to the terminal, for what a test has counted."""

    def write(line: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{line}")

    return write


class Browser:
    """AG-UI's client, as many of them as a test opens, in one Node process."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            ["node", HERE / "client.mjs"], stdin=pipe, stdout=pipe, text=True
        )
        self.sent = 0
        self.answers: dict[int, Any] = {}

    def send(self, agent: str, does: str, **more: object) -> int:
        """Send a command, and return its number."""
        self.sent += 1
        command = {"number": self.sent, "agent": agent, "does": does, **more}
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return self.sent

    def answer(self, number: int) -> Any:
        """Wait for the answer to a command."""
        watchdog = threading.Timer(PATIENCE, self.process.kill)
        watchdog.start()
        while number not in self.answers:
            line = self.process.stdout.readline()
            assert line, "the client process is gone"
            answer = json.loads(line)
            self.answers[answer["number"]] = answer.get("result")
        watchdog.cancel()
        return self.answers.pop(number)

    def do(self, agent: str, does: str, **more: object) -> Any:
        """Send a command, and wait for its answer."""
        return self.answer(self.send(agent, does, **more))

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    started = Browser()
    yield started
    started.close()


class Clock:
    """The time that the server is told."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


class Hold:
    """A place in the server where a test can stop it, look around, and let it go on."""

    def __init__(self) -> None:
        self.wanted = False
        self.reached = threading.Event()
        self.released = threading.Event()

    async def here(self) -> None:
        self.reached.set()
        if self.wanted:
            assert await asyncio.to_thread(self.released.wait, PATIENCE)

    def wait(self) -> None:
        assert self.reached.wait(PATIENCE)


class Server:
    """The example server on a port of its own, with a tool and an agent that can be held."""

    def __init__(self, database: Path, now: datetime) -> None:
        from stores.sqlite import SqliteStore

        self.database = str(database)
        self.store = SqliteStore(self.database)
        self.clock = Clock(now)
        self.calls: list[dict[str, str]] = []
        self.in_tool = Hold()
        self.in_agent = Hold()
        self.tool_failures: dict[str, Exception] = {}  # by the order that the call is about
        self.agent_failure: Exception | None = None
        self.url = ""

    async def tool(self, arguments: dict[str, str]) -> str:
        self.calls.append(arguments)
        await self.in_tool.here()
        if failure := self.tool_failures.get(arguments["orderId"]):
            raise failure
        from agent import refund

        return await refund(arguments)

    async def agent(self, question: str, results: list[str]):
        from agent import scripted_agent

        if self.agent_failure:
            raise self.agent_failure
        async for said in scripted_agent(question, results):
            yield said
            await self.in_agent.here()

    def request(self, path: str, body: object, **headers: str | None) -> Request:
        """Return the request that posts this body, which is sent as it is where it is bytes.

        A header that is None is left out.
        """
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {name: value for name, value in {**HEADERS, **headers}.items() if value is not None}
        return Request(self.url + path, data, sent)

    def post(self, path: str, body: object, **headers: str | None) -> tuple[int, Any]:
        """Post without a client; return the status, and the JSON or the events of the answer."""
        return self.send(self.request(path, body, **headers))

    def get(self, path: str, **query: str) -> tuple[int, Any]:
        """Get without a client; return what `post` does."""
        return self.send(Request(f"{self.url}{path}?{urlencode(query)}", headers=HEADERS))

    def send(self, request: Request) -> tuple[int, Any]:
        try:
            with urlopen(request, timeout=PATIENCE) as response:
                text, status = response.read().decode(), response.status
        except HTTPError as error:
            with error:
                text, status = error.read().decode(), error.code
        if text.startswith("data:"):
            return status, [json.loads(frame[5:]) for frame in text.split("\n\n") if frame]
        return status, json.loads(text)

    @contextmanager
    def running(self) -> Iterator["Server"]:
        import uvicorn
        from agent_server import build_app

        # Nothing happens by itself: a test that wants a sweep or a renewal has one.
        never = 1e6
        app = build_app(
            self.store,
            clock=self.clock,
            agent=self.agent,
            tool=self.tool,
            renew_every=timedelta(seconds=never),
            sweep_every=never,
            grace=PATIENCE,
        )
        self.workers = app.state.workers
        config = uvicorn.Config(app, log_level="critical", ws="none")
        server = uvicorn.Server(config)
        # The socket listens before the server does, so nobody has to wait for the server.
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            begun = threading.Event()

            async def serve() -> None:
                self.loop = asyncio.get_running_loop()
                begun.set()
                await server.serve([listening])

            thread = threading.Thread(target=asyncio.run, args=(serve(),))
            thread.start()
            assert begun.wait(PATIENCE)
            try:
                yield self
            finally:
                self.in_tool.released.set()
                self.in_agent.released.set()
                server.should_exit = True
                thread.join()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "runs.sqlite3", FUTURE).running() as running:
        yield running
