"""An AG-UI server whose agent must ask before it acts, to be copied and changed.

Run it with `python docs/examples/agent_server.py [database] [port]`, after
`pip install 'agui-runs[server]'`, and open http://127.0.0.1:8000 in a browser. The database is a
file of SQLite or, after `pip install 'agui-runs[stores]'`, a URL that begins with `postgresql://`,
`postgresql+sqlalchemy://` or `redis://`. An AG-UI client posts a `RunAgentInput` to /agent and gets
a stream of events; it wants JSON and a header that names the actor, alice or bob:

    curl -N 127.0.0.1:8000/agent -H 'x-demo-actor: alice' -H 'content-type: application/json' -d '
        {"threadId": "t-1", "runId": "r-1",
         "messages": [{"id": "m-1", "role": "user", "content": "A-1042 arrived broken."}]}'

docs/wire.md has all that it answers. This file puts together what stands beside it, each in a file
of its own: the chat (chat.py) and the inbox (inbox.py), what a request says (door.py) and what is
sent (frames.py), the agent and its tool (agent.py), a run at work (work.py), all that is at work
here (workers.py), the run that goes on after an answer (succession.py), what must happen by itself
(sweep.py), a stop (graceful.py), and the store (store.py, stores/, watch.py).
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent import refund, scripted_agent
from chat import Chat
from door import refused
from graceful import GracefulServer
from inbox import Inbox
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from store import HostError, Store
from watch import Watch
from work import Agent, Clock, Host, Tool
from workers import Workers

from agui_runs import StreamError
from stores import open_store

HERE = Path(__file__).parent

# A worker that has not renewed its lease for so long is dead. It does so three times as often.
LEASE = timedelta(seconds=30)

# How often, in seconds, the server looks at what is not its own, and at what must happen by itself.
LOOK_EVERY = 0.05
SWEEP_EVERY = 10.0

# How long, in seconds, a stopping server lets its runs go on before it ends them.
GRACE = 10.0


def file(name: str) -> Route:
    """Return the route of a file that stands beside this one."""
    # Another site could show the page in a frame, and have its visitor click where an approval is.
    headers = {"content-security-policy": "frame-ancestors 'none'", "cache-control": "no-cache"}

    async def send(request: Request) -> Response:
        return FileResponse(HERE / (name or "inbox.html"), headers=headers)

    return Route(f"/{name}", send)


def system_clock() -> datetime:
    """Return the time. Nothing else in these files reads it."""
    return datetime.now(UTC)


def build_app(
    store: Store,
    *,
    clock: Clock = system_clock,
    agent: Agent = scripted_agent,
    tool: Tool = refund,
    approval_minutes: float = 10,
    lease: timedelta = LEASE,
    renew_every: timedelta | None = None,
    sweep_every: float = SWEEP_EVERY,
    grace: float = GRACE,
) -> Starlette:
    """Return the application; the arguments are what a test, or you, will want to replace."""
    runs, calls = Watch(store.load, LOOK_EVERY), Watch(store.claimed, LOOK_EVERY)
    open_for = timedelta(minutes=approval_minutes)
    host = Host(store, clock, agent, tool, open_for, lease, runs, calls)
    workers = Workers(host)
    chat, inbox = Chat(host, workers), Inbox(host, workers)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        renewing = workers.keep_alive(renew_every or lease / 3)
        tasks = [
            asyncio.create_task(renewing),
            asyncio.create_task(workers.sweep_forever(sweep_every)),
        ]
        yield
        await workers.stop(grace)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await store.close()

    app = Starlette(
        routes=[
            Route("/agent", chat.agent, methods=["POST"]),
            Route("/follow", chat.follow),
            Route("/cancel", chat.cancel, methods=["POST"]),
            Route("/approvals", inbox.approvals),
            Route("/answer", inbox.answer, methods=["POST"]),
            Route("/thread", inbox.thread),
            Route("/unfinished", inbox.unfinished),
            *map(file, ("", "inbox.css", "inbox.mjs", "elements.mjs", "events.mjs")),
        ],
        exception_handlers={HostError: refused, StreamError: refused},
        lifespan=lifespan,
    )
    app.state.workers = workers
    return app


def main(database: str = "agent_server.sqlite3", port: str = "8000") -> None:
    """Serve this machine until stopped."""
    app = build_app(open_store(database))
    GracefulServer(app, GRACE, host="127.0.0.1", port=int(port)).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
