"""An AG-UI server whose agent must ask before it acts, to be copied and changed.

Run it with `python docs/examples/agent_server.py [database] [port]`, after
`pip install 'agui-runs[server]'`, and open http://127.0.0.1:8000 in a browser. An AG-UI client
posts a `RunAgentInput` to /agent and gets a stream of events; it wants JSON and a header that
names the actor, alice or bob:

    curl -N 127.0.0.1:8000/agent -H 'x-demo-actor: alice' -H 'content-type: application/json' -d '
        {"threadId": "t-1", "runId": "r-1",
         "messages": [{"id": "m-1", "role": "user", "content": "A-1042 arrived broken."}]}'

docs/wire.md has all that it answers. What stands in this file is the door: who asks, for what, and
in which shape. Behind it are, each in a file of its own, the agent and its tool (agent.py), a run
at work (work.py), all that is at work here (workers.py), the run that goes on after an answer
(succession.py), what must happen by itself (sweep.py), the streams (frames.py, watch.py) and the
store (store.py, run_store.py).
"""

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias
from uuid import uuid4

import uvicorn
from ag_ui import core
from agent import REVIEWERS, TOOL_NAME, authorise, corrected, refund, scripted_agent
from frames import as_frame
from run_store import SqliteStore
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from store import By, Decision, HostError, Key, New, Row, Store, time_text, update
from succession import PREFIX, end_lost, successor
from sweep import sweep
from watch import Watch
from work import Agent, Clock, Host, Tool, arguments_of, end, is_alive, state_events
from workers import Workers

from agui_runs import ConfigurationError, Interrupt, RunRecord, StreamError, digest

Body: TypeAlias = dict[str, Any]

LOG = logging.getLogger(__name__)
HERE = Path(__file__).parent

# A worker that has not renewed its lease for so long is dead. It does so three times as often.
LEASE = timedelta(seconds=30)

# How often, in seconds, the server looks at what is not its own, and at what must happen by itself.
LOOK_EVERY = 0.05
SWEEP_EVERY = 10.0

# How long, in seconds, a stopping server lets its runs go on before it ends them.
GRACE = 10.0

# What a client may send: bytes of a body, characters of an id. Yours may need more.
BODY_LIMIT = 1_000_000
ID_LIMIT = 200

# How many runs or requests are in one answer.
PAGE = 50


def whose(request: Request) -> tuple[str, str]:
    """Return the scope of a request and its actor.

    Duty: a real host takes both from its authentication, and believes no header.
    """
    actor = request.headers.get("x-demo-actor")
    if not actor:
        raise HostError("not_authenticated", "the header x-demo-actor is missing", 401)
    return "shop-1", actor


async def body_of(request: Request) -> Any:
    """Return the JSON that was posted; it raises a ValueError or a RecursionError at other text."""
    # A page of another site can post a form in the name of its visitor, but it cannot post JSON.
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise HostError("content_type_invalid", "the content type must be application/json", 415)
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > BODY_LIMIT:
            raise HostError("body_too_large", f"a body has at most {BODY_LIMIT} bytes", 413)
    return json.loads(body)


def text_in(fields: Any, name: str) -> str:
    """Return an id that a client has sent."""
    text = fields.get(name) if hasattr(fields, "get") else None
    if not isinstance(text, str) or len(text) > ID_LIMIT or not is_storable(text):
        problem = f"{name} must be text of at most {ID_LIMIT} characters"
        raise HostError("input_invalid", problem, 400)
    return text


def is_storable(text: str) -> bool:
    """Tell whether a text can be encoded; half of an emoji cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Endpoints:
    """What the server answers."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.workers = Workers(host)

    async def agent(self, request: Request) -> Response:
        """Reserve a run for this input and stream it, or attach to the run that it has."""
        scope, actor = whose(request)
        self.workers.refuse_when_stopping()
        try:
            body = await body_of(request)
            said = core.RunAgentInput.model_validate(body)
            now = self.host.clock()
            run = RunRecord(
                scope=scope,
                thread_id=text_in(body, "threadId"),
                run_id=text_in(body, "runId"),
                digest=digest(body),
                created_at=now,
            )
        except (ValueError, RecursionError):
            # A ConfigurationError is a ValueError too, and here the mistake is the client's.
            raise HostError("input_invalid", "the body is not a valid RunAgentInput", 400) from None
        if said.run_id.startswith(PREFIX):
            raise HostError("input_invalid", f"{PREFIX} begins the ids of the server's runs", 400)
        row, is_new = await self.host.store.reserve(New(run, body, actor, now + self.host.lease))
        if row.run.digest != run.digest:
            raise HostError("input_conflict", "this run id has been used for another input")
        work = await self.workers.take(row) if is_new else None
        # Duty: may this actor see a run that somebody else may have started? The scope keeps the
        # runs of other tenants apart, and nothing more.
        return as_stream(run, work.frames.read() if work else self.updates(row))

    async def follow(self, request: Request) -> Response:
        """Stream a run as a reconnect has it."""
        scope, _ = whose(request)
        row = await self.host.store.load(key_in(scope, request.query_params))
        return as_stream(row.run, self.updates(row))

    async def updates(self, row: Row) -> AsyncIterator[str]:
        """Yield the state as it changes and, once there is one, the recorded ending.

        Nothing is kept for a slow reader: it is shown the next state that there is by then.
        """
        shown: list[Any] = []
        while True:
            for event in state_events(row):
                if event not in shown:
                    yield as_frame(event)
            shown = state_events(row)
            if row.run.is_terminal:
                yield as_frame(row.run.to_protocol())
                return
            now = self.host.clock()
            if row.run.is_started and not is_alive(row.alive_until, now):
                message = "The server lost this run."
                row = await end_lost(self.host.store, row, now, "worker_lost", message)
            elif self.workers.is_stopped:
                return  # Another server has this run, and another one will show it.
            else:
                row = await self.host.runs.next(row.run.key)

    async def cancel(self, request: Request) -> Response:
        """End a live run, whose task finds that out at its next save, or close a paused one."""
        scope, actor = whose(request)
        authorise(actor)  # Duty: may this actor cancel this run?
        row = await self.host.store.load(key_in(scope, await json_of(request)))
        by = By(actor, f"cancel {uuid4()}")
        if row.run.is_awaiting_approval:
            row = await self.close(row, by)
        row = await end(self.host, row, "cancelled", by)
        return JSONResponse(row.run.to_protocol())

    async def close(self, row: Row, by: By) -> Row:
        """Cancel every open request of a paused run, and see that no call of it is made."""
        now = self.host.clock()

        def cancel_all(run: RunRecord) -> RunRecord:
            for ask in run.pending_interrupts:
                run = run.replace_interrupt(ask.decide("cancelled", now=now), now=now)
            return run

        row = await update(self.host.store, row, cancel_all, by)
        for ask in row.run.interrupts:
            # What was approved before and not begun is claimed, so that nobody makes it later.
            call = (row.run.scope, row.run.thread_id, ask.tool_call_id)
            if ask.is_approved and await self.host.store.claim(call, row.run.run_id, now):
                await self.host.store.keep_result(call, "The run was cancelled before this call.")
        return row

    async def approvals(self, request: Request) -> Response:
        """List what waits for an answer in the tenant, over all threads, by expiry."""
        scope, _ = whose(request)
        waiting = await self.host.store.approvals(scope, PAGE)
        approvals = [{**named(row.run), **request_shown(row.run, ask)} for row, ask in waiting]
        return JSONResponse({"now": time_text(self.host.clock()), "approvals": approvals})

    async def answer(self, request: Request) -> Response:
        """Record an answer to one request, given outside the chat, and let a run go on from it."""
        scope, actor = whose(request)
        authorise(actor)  # Duty: may this actor answer?
        body = await json_of(request)
        row = await self.host.store.load(key_in(scope, body))
        ask = row.run.interrupt(text_in(body, "interruptId"))
        if ask is None:
            raise HostError("interrupt_unknown", "this run has no such request", 404)
        decision = body.get("decision")
        note = None if body.get("note") is None else text_in(body, "note")
        by = By(actor, f"answer {uuid4()}", note)
        if body.get("correctedArguments") is not None:
            if decision != Interrupt.DENIED:
                raise HostError("correction_invalid", "only a denial can have a correction", 400)
            correction = corrected(arguments_of(row.run, ask), body["correctedArguments"])
            by = by._replace(corrections={ask.id: correction})
        row = await self.record(row, ask.id, decision, by)
        going_on = None if row.run.is_awaiting_approval else await self.go_on(row, by)
        requests = [each.to_dict() for each in row.run.interrupts]
        return JSONResponse({**named(row.run), "requests": requests, "resumedBy": going_on})

    async def record(self, row: Row, interrupt_id: str, decision: Any, by: By) -> Row:
        """Record one answer and, with the last one, reserve the run that goes on from there."""
        now = self.host.clock()

        def decide(run: RunRecord) -> RunRecord:
            asked = [ask for ask in run.interrupts if ask.id == interrupt_id]
            return run.replace_interrupt(asked[0].decide(decision, now=now), now=now)

        def go_on(run: RunRecord) -> New | None:
            return None if run.is_awaiting_approval else successor(row, run, by.actor, now)

        try:
            return await update(self.host.store, row, decide, by, go_on)
        except ConfigurationError as problem:
            raise HostError("input_invalid", str(problem), 400) from None

    async def go_on(self, row: Row, by: By) -> str:
        """Take up the run that goes on from an answered one here, and return its id."""
        new = successor(row, row.run, by.actor, self.host.clock()).run
        await self.workers.take(await self.host.store.load(new.key))
        return new.run_id

    async def thread(self, request: Request) -> Response:
        """Show a page of the runs of a thread, oldest first: all that a reload needs."""
        scope, _ = whose(request)
        thread_id = text_in(request.query_params, "threadId")
        before = request.query_params.get("before") and text_in(request.query_params, "before")
        rows = await self.host.store.thread(scope, thread_id, before, PAGE)
        run_ids = [row.run.run_id for row in rows]
        made = await self.host.store.decisions(scope, thread_id, run_ids)
        audit = {each.interrupt_id: each for each in made}
        return JSONResponse(
            {
                "now": time_text(self.host.clock()),
                "threadId": thread_id,
                "runs": [run_shown(row, audit) for row in reversed(rows)],
                "before": run_ids[-1] if len(rows) == PAGE else None,
            }
        )

    async def unfinished(self, request: Request) -> Response:
        """List the calls that were begun and whose worker is gone, for a person to look into."""
        scope, _ = whose(request)
        claims = [
            {
                "threadId": claim.call[1],
                "runId": claim.run_id,
                "toolCallId": claim.call[2],
                "claimedAt": time_text(claim.claimed_at),
            }
            for claim in await self.host.store.unfinished(self.host.clock(), PAGE)
            if claim.call[0] == scope
        ]
        return JSONResponse({"claims": claims})

    async def sweep_forever(self, every: float) -> None:
        """Do what must happen by itself, and take up what waits for a server, again and again."""
        while True:
            try:
                swept = await sweep(self.host.store, self.host.clock())
                for row in swept.to_take_up:
                    await self.workers.take(row)
            except HostError:
                return  # The server is stopping.
            except Exception:
                LOG.exception("a sweep has failed")
            await asyncio.sleep(every)


def named(run: RunRecord) -> Body:
    """Return the ids of a run."""
    return {"threadId": run.thread_id, "runId": run.run_id}


def request_shown(run: RunRecord, ask: Interrupt) -> Body:
    """Return a request for approval as the inbox shows it."""
    stored = ask.to_storage()
    return {
        "interrupt": ask.to_protocol(),
        "toolName": TOOL_NAME,
        "arguments": arguments_of(run, ask),
        "mayAnswer": REVIEWERS,
        "createdAt": stored["createdAt"],
        "expiresAt": stored["expiresAt"],
    }


def run_shown(row: Row, audit: dict[str, Decision]) -> Body:
    """Return a run as a reload needs it, with who decided what, and why."""
    run = row.run
    snapshot: Any = run.to_storage()["snapshot"] or {"messages": [], "state": None}
    requests = []
    for ask in run.interrupts:
        made = audit.get(ask.id)
        decided = {
            "status": ask.status,
            "decidedAt": ask.to_dict()["decidedAt"],
            "decidedBy": made and made.actor,
            "note": made and made.note,
            "correctedArguments": made and made.correction,
        }
        requests.append({**request_shown(run, ask), **decided})
    return {
        **named(run),
        "actor": row.actor,
        "status": run.status,
        "createdAt": time_text(run.created_at),
        "updatedAt": time_text(run.updated_at),
        "input": row.input,
        "messages": snapshot["messages"],
        "state": snapshot["state"],
        "requests": requests,
        "ending": run.to_protocol() if run.is_terminal else None,
    }


async def json_of(request: Request) -> Any:
    """Return the JSON that was posted, or refuse what is none."""
    try:
        return await body_of(request)
    except (ValueError, RecursionError):
        raise HostError("input_invalid", "the body is not JSON", 400) from None


def key_in(scope: str, fields: Any) -> Key:
    """Return the key of the run that a client has named."""
    return scope, text_in(fields, "threadId"), text_in(fields, "runId")


async def refused(request: Request, refusal: Exception) -> Response:
    """Answer a request for which no stream has begun."""
    assert isinstance(refusal, HostError | StreamError)
    status = refusal.status if isinstance(refusal, HostError) else 409
    return JSONResponse({"code": refusal.code, "message": str(refusal)}, status)


def as_stream(run: RunRecord, frames: AsyncIterator[str]) -> StreamingResponse:
    """Return the response: every stream opens with RUN_STARTED, also one that only replays."""
    started = core.RunStartedEvent(
        thread_id=run.thread_id, run_id=run.run_id, protocol_version=core.PROTOCOL_VERSION
    )

    async def stream() -> AsyncIterator[str]:
        yield as_frame(started)
        async for frame in frames:
            yield frame

    headers = {"cache-control": "no-store"}
    return StreamingResponse(stream(), media_type="text/event-stream", headers=headers)


def file(name: str) -> Route:
    """Return the route of a file that stands beside this one."""

    async def send(request: Request) -> Response:
        return FileResponse(HERE / (name or "inbox.html"))

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
    endpoints = Endpoints(host)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        renewing = endpoints.workers.keep_alive(renew_every or lease / 3)
        tasks = [
            asyncio.create_task(renewing),
            asyncio.create_task(endpoints.sweep_forever(sweep_every)),
        ]
        yield
        await endpoints.workers.stop(grace)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await store.close()

    app = Starlette(
        routes=[
            Route("/agent", endpoints.agent, methods=["POST"]),
            Route("/follow", endpoints.follow),
            Route("/cancel", endpoints.cancel, methods=["POST"]),
            Route("/approvals", endpoints.approvals),
            Route("/answer", endpoints.answer, methods=["POST"]),
            Route("/thread", endpoints.thread),
            Route("/unfinished", endpoints.unfinished),
            *map(file, ("", "inbox.css", "inbox.mjs")),
        ],
        exception_handlers={HostError: refused, StreamError: refused},
        lifespan=lifespan,
    )
    app.state.stop = endpoints.workers.stop
    return app


class GracefulServer(uvicorn.Server):
    """Tells the runs of a stop when it comes, and not when the last stream has been closed."""

    def __init__(self, app: Starlette, grace: float, **options: Any) -> None:
        # The streams get their endings within the grace, and a little later none is left.
        super().__init__(uvicorn.Config(app, timeout_graceful_shutdown=int(grace) + 5, **options))
        self.app = app
        self.grace = grace
        self.stopping: asyncio.Task[None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self.loop.call_soon_threadsafe(self.stop_runs)

    def stop_runs(self) -> None:
        self.stopping = self.stopping or self.loop.create_task(self.app.state.stop(self.grace))

    async def serve(self, sockets: Any = None) -> None:
        self.loop = asyncio.get_running_loop()
        await super().serve(sockets)


def main(database: str = "agent_server.sqlite3", port: str = "8000") -> None:
    """Serve this machine until stopped."""
    app = build_app(SqliteStore(database))
    GracefulServer(app, GRACE, host="127.0.0.1", port=int(port)).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
