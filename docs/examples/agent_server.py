"""An AG-UI server whose agent must ask before it acts, to be copied and changed.

Run it with `python docs/examples/agent_server.py [database] [port]`, after
`pip install 'agui-runs[server]'`. POST /agent takes a `RunAgentInput` and streams AG-UI events;
POST /cancel takes `{"threadId": ..., "runId": ...}` and gives the event that ended the run. Both
want JSON and a header that names the actor, alice or bob:

    curl -N 127.0.0.1:8000/agent -H 'x-demo-actor: alice' -H 'content-type: application/json' -d '
        {"threadId": "t-1", "runId": "r-1",
         "messages": [{"id": "m-1", "role": "user", "content": "A-1042 arrived broken."}]}'

The agent is a script and needs no model: it proposes a refund for each order that the user names
and pauses, and the run that brings the approval makes exactly the refund that was approved, once.

What `agui_runs` decides is not decided here a second time. What it leaves to a host is marked
"Duty". Of the codes that a `StreamError` has, the server replays the recorded ending on
`run_ended`, for somebody else was faster; every other one ends the run that met it as failed,
with that code in its RUN_ERROR. docs/wire.md says more of each.

It reads from top to bottom: the agent and its tool, a run at work, the server. The store stands
beside it, in run_store.py.
"""

import asyncio
import json
import logging
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple, TypeAlias
from uuid import uuid4

import uvicorn
from ag_ui import core
from ag_ui.encoder import EventEncoder
from run_store import Change, HostError, Key, Row, Store
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from agui_runs import Interrupt, RunRecord, StreamError, digest

Arguments: TypeAlias = dict[str, str]
Ending: TypeAlias = Literal["cancelled", "failed"]

LOG = logging.getLogger(__name__)

# A live run that has saved nothing for so long has lost its worker. It must be longer than the
# slowest step of the agent, or a run that is still at work is given up.
WORKER_LOST_AFTER = timedelta(minutes=5)

# How often, in seconds, the server looks at a run or a call that is not its own.
LOOK_EVERY = 0.05

# How many times a run looks for the result of a call that another run has begun: for half a
# minute. Keep that below WORKER_LOST_AFTER, for meanwhile the run that looks saves nothing.
LOOKS_FOR_RESULT = 600


# --- The agent and its tool: a script, where yours has a model ---------------------------------


class Proposal(NamedTuple):
    """A tool call that the agent wants made, and may not make by itself."""

    call_id: str
    arguments: Arguments
    question: str


async def scripted_agent(question: str, results: list[str]) -> AsyncIterator[str | Proposal]:
    """Yield what the agent says and proposes, given a question or the results of its calls."""
    if results:
        yield f"This is what became of it. {' '.join(results)}"
        return
    orders = re.findall(r"\b[A-Z]-\d+\b", question)
    yield "I propose a refund." if orders else "Which order is it about?"
    for order in orders:
        arguments = {"orderId": order, "amount": "20.00", "currency": "EUR"}
        yield Proposal(f"call-{uuid4()}", arguments, f"Refund 20.00 EUR for order {order}?")


async def refund(arguments: Arguments) -> str:
    """Make the refund. Yours may take long, fail, and tell secrets in its exceptions.

    Where it cannot tell whether it has failed, as after a timeout, let it return a text saying so.
    """
    return f"Refunded {arguments['amount']} {arguments['currency']} for {arguments['orderId']}."


def authorise(actor: str) -> None:
    """Refuse whoever may not decide about refunds, or no longer may."""
    if actor not in {"alice", "bob"}:
        raise HostError("not_authorised", "you may not decide about refunds", 403)


Agent: TypeAlias = Callable[[str, list[str]], AsyncIterator[str | Proposal]]
Tool: TypeAlias = Callable[[Arguments], Awaitable[str]]
Clock: TypeAlias = Callable[[], datetime]


class Host(NamedTuple):
    """What a run needs around it."""

    store: Store
    clock: Clock
    agent: Agent
    tool: Tool
    open_for: timedelta


# --- A run at work -----------------------------------------------------------------------------


class Work:
    """The one task that carries out a run, and the frames for the connection that started it."""

    def __init__(self, host: Host, row: Row, request: core.RunAgentInput, actor: str) -> None:
        self.host = host
        self.row = row
        self.request = request
        self.actor = actor
        self.frames: asyncio.Queue[str | None] = asyncio.Queue()

    async def to_the_end(self, resume: list[Any]) -> None:
        """Carry the run out, and send its recorded ending, whoever has recorded it."""
        try:
            await self.carry_out(resume)
        except (StreamError, HostError) as refusal:
            # The texts of both are fit to be sent. On run_ended the ending that stands is kept.
            failure = {"message": str(refusal), "code": refusal.code}
            self.row = await end(self.host, self.row, "failed", failure)
        except Exception:
            # Duty: sanitise. What an exception says is for the log, and for nobody else.
            LOG.exception("run %r has failed", self.row.run.key)
            failure = {"message": "The agent has failed.", "code": "agent_failed"}
            self.row = await end(self.host, self.row, "failed", failure)
        finally:
            if self.row.run.is_terminal:
                self.frames.put_nowait(as_frame(self.row.run.to_protocol()))
            self.frames.put_nowait(None)

    async def carry_out(self, resume: list[Any]) -> None:
        """Take the answers, make the approved calls, let the agent go on, and end the run."""
        await self.change(lambda run: run.start(now=self.host.clock()))
        state: dict[str, Any] = {"refunds": {}}
        results: list[str] = []
        paused = await self.take_answers(resume)
        if paused:
            # What was proposed is read from the store, never from what the client sends.
            state = paused.to_storage()["snapshot"]
            results = [await self.settle(ask, state) for ask in paused.interrupts]
        asks: list[Interrupt] = []
        async for said in self.host.agent(last_words(self.request), results):
            if isinstance(said, Proposal):
                asks.append(await self.propose(said, state))
            else:
                await self.say(said)
        now = self.host.clock()
        if asks:
            await self.change(lambda run: run.interrupted(asks, now=now))
        else:
            await self.change(lambda run: run.finish("succeeded", now=now))

    async def take_answers(self, resume: list[Any]) -> RunRecord | None:
        """Record the answers that this run brings, and return the paused run they are for."""
        if resume:
            authorise(self.actor)  # Duty: may this actor answer?
        named = {entry.interrupt_id for entry in self.request.resume or []}
        rows = await self.host.store.load_thread(self.row.run.scope, self.row.run.thread_id)
        asked = [row for row in rows if any(ask.id in named for ask in row.run.interrupts)]
        # One list answers one paused run, the newest that it names; an entry for another one is
        # refused. A run that answers nothing, on a thread that waits for an answer, is too.
        row = next(iter(asked or [row for row in rows if row.run.is_awaiting_approval]), None)
        if row:
            now = self.host.clock()
            row = await self.host.store.update(row, lambda run: run.answer(resume, now=now))
            return row.run
        if resume:
            raise HostError("resume_unknown", "nothing on this thread waits for this answer")
        return None

    async def settle(self, ask: Interrupt, state: dict[str, Any]) -> str:
        """Do what was decided about a tool call, and return and send its result."""
        call = state["refunds"][ask.tool_call_id]
        call["status"] = ask.status
        # Where this run was cancelled meanwhile, this save stops it before the tool runs.
        await self.show(state)
        result = f"The request was {ask.status}."
        if ask.is_approved:
            result = await self.execute(ask, call["arguments"])
        message_id = f"result-{ask.tool_call_id}"
        await self.send(
            core.ToolCallResultEvent(
                message_id=message_id, tool_call_id=ask.tool_call_id, content=result, role="tool"
            )
        )
        return result

    async def execute(self, ask: Interrupt, arguments: Arguments) -> str:
        """Run the tool for an approved request: once, however often the approval is brought."""
        authorise(self.actor)  # Duty: an approval is an answer, and no permission.
        if digest(arguments) != ask.arguments_digest:  # Duty: run what was approved.
            raise HostError("arguments_changed", "these are not the arguments that were approved")
        # Duty: claim, then run. A crash in between loses the call, and never repeats it. Give a
        # remote service ask.id as its idempotency key, and it can tell you what became of it.
        call = (self.row.run.scope, self.row.run.thread_id, ask.tool_call_id)
        if not await self.host.store.claim(call):
            return await self.result_of(call)
        try:
            result = await self.host.tool(arguments)
        except Exception:
            # Duty: sanitise. This result is kept as any other, so that the other calls go on.
            LOG.exception("call %r has failed", call)
            result = "The call failed."
        await self.host.store.keep_result(call, result)
        return result

    async def result_of(self, call: Key) -> str:
        """Wait for the result of a call that was claimed before, and may still be at work."""
        for _ in range(LOOKS_FOR_RESULT):
            result = await self.host.store.result(call)
            if result is not None:
                return result
            await asyncio.sleep(LOOK_EVERY)
        return "It is not known what became of this call."

    async def propose(self, proposal: Proposal, state: dict[str, Any]) -> Interrupt:
        """Show the tool call, and return the request for its approval."""
        call_id, arguments, question = proposal
        await self.send(core.ToolCallStartEvent(tool_call_id=call_id, tool_call_name="refund"))
        await self.send(core.ToolCallArgsEvent(tool_call_id=call_id, delta=json.dumps(arguments)))
        await self.send(core.ToolCallEndEvent(tool_call_id=call_id))
        state["refunds"][call_id] = {"arguments": arguments, "status": "pending"}
        await self.show(state)
        now = self.host.clock()
        return Interrupt.create(
            tool_call_id=call_id,
            arguments_digest=digest(arguments),
            message=question,
            created_at=now,
            expires_at=now + self.host.open_for,
        )

    async def say(self, text: str) -> None:
        message_id = str(uuid4())
        await self.send(core.TextMessageStartEvent(message_id=message_id, role="assistant"))
        await self.send(core.TextMessageContentEvent(message_id=message_id, delta=text))
        await self.send(core.TextMessageEndEvent(message_id=message_id))

    async def show(self, state: dict[str, Any]) -> None:
        await self.send(core.StateSnapshotEvent(snapshot=state), state)

    async def send(self, event: core.BaseEvent, state: Any = None) -> None:
        """Save the number of the event, and the state as of it, and only then send it."""
        now = self.host.clock()
        await self.change(lambda run: run.advance(now=now, snapshot=state))
        self.frames.put_nowait(as_frame(event))

    async def change(self, change: Change) -> None:
        """Save a step of this run; it raises `run_ended` where somebody else has ended it."""
        self.row = await self.host.store.update(self.row, change)


async def end(host: Host, row: Row, status: Ending, failure: Any = None) -> Row:
    """End a run, unless it has ended, for then that ending stands."""
    now = host.clock()

    def finish(run: RunRecord) -> RunRecord:
        return run if run.is_terminal else run.finish(status, now=now, failure=failure)

    return await host.store.update(row, finish)


def last_words(request: core.RunAgentInput) -> str:
    """Return the last text of the user."""
    texts = [message.content for message in request.messages if message.role == "user"]
    return texts[-1] if texts and isinstance(texts[-1], str) else ""


# --- The server --------------------------------------------------------------------------------


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
    # Duty: nothing here limits the size of a body. Let a proxy in front of the server do it.
    return json.loads(await request.body())


class Endpoints:
    """What the server answers."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.tasks: set[asyncio.Task[None]] = set()

    async def agent(self, request: Request) -> Response:
        """Reserve a run for this input and stream it, or attach to the run that it has."""
        scope, actor = whose(request)
        try:
            body = await body_of(request)
            said = core.RunAgentInput.model_validate(body)
            run = RunRecord(
                scope=scope,
                thread_id=said.thread_id,
                run_id=said.run_id,
                digest=digest(body),
                created_at=self.host.clock(),
            )
        except (ValueError, RecursionError):
            # A ConfigurationError is a ValueError too, and here the mistake is the client's.
            raise HostError("input_invalid", "the body is not a valid RunAgentInput", 400) from None
        row, reserved = await self.host.store.reserve(run)
        if row.run.digest != run.digest:
            raise HostError("input_conflict", "this run id has been used for another input")
        if not reserved:
            # Duty: may this actor see a run that somebody else may have started? The scope keeps
            # the runs of other tenants apart, and nothing more.
            return as_stream(run, self.follow(row))
        # A connection may go away. The run is a task of its own, and goes on.
        work = Work(self.host, row, said, actor)
        task = asyncio.create_task(work.to_the_end(body.get("resume") or []))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return as_stream(run, drain(work.frames))

    async def follow(self, row: Row) -> AsyncIterator[str]:
        """Yield the stored state and, once there is one, the recorded ending. Nothing is run."""
        shown = None
        while True:
            if row.run.snapshot is not None and row.run.snapshot != shown:
                shown = row.run.snapshot
                yield as_frame(core.StateSnapshotEvent(snapshot=shown))
            if row.run.is_terminal:
                yield as_frame(row.run.to_protocol())
                return
            if self.host.clock() - row.run.updated_at > WORKER_LOST_AFTER:
                # Nobody knows how far it came, so it is ended and never started again.
                failure = {"message": "The server lost this run.", "code": "worker_lost"}
                row = await end(self.host, row, "failed", failure)
            else:
                await asyncio.sleep(LOOK_EVERY)
                row = await self.host.store.load(row.run.key)

    async def cancel(self, request: Request) -> Response:
        """End a live run, whose task finds that out at its next save; return what ending stands."""
        scope, actor = whose(request)
        authorise(actor)  # Duty: may this actor cancel this run?
        try:
            body = await body_of(request)
            key = (scope, body["threadId"], body["runId"])
            "".join(key).encode()  # It raises where this is not text, or cannot be stored.
        except (ValueError, RecursionError, TypeError, KeyError):
            raise HostError("input_invalid", "threadId and runId must be text", 400) from None
        row = await end(self.host, await self.host.store.load(key), "cancelled")
        return JSONResponse(row.run.to_protocol())


async def refused(request: Request, refusal: Exception) -> Response:
    """Answer a request for which no stream has begun."""
    assert isinstance(refusal, HostError)
    return JSONResponse({"code": refusal.code, "message": str(refusal)}, refusal.status)


def as_frame(event: core.BaseEvent | dict[str, Any]) -> str:
    """Return an event, or what `to_protocol` gives, as Server-Sent Events have it."""
    if isinstance(event, core.BaseEvent):
        return EventEncoder().encode(event)
    return f"data: {json.dumps(event)}\n\n"


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


async def drain(frames: asyncio.Queue[str | None]) -> AsyncIterator[str]:
    """Yield frames as they come, up to None."""
    while (frame := await frames.get()) is not None:
        yield frame


def system_clock() -> datetime:
    """Return the time. Nothing else in this file reads it."""
    return datetime.now(UTC)


def build_app(
    database: str,
    *,
    clock: Clock = system_clock,
    agent: Agent = scripted_agent,
    tool: Tool = refund,
    approval_minutes: float = 10,
) -> Starlette:
    """Return the application; the arguments are what a test, or you, will want to replace."""
    open_for = timedelta(minutes=approval_minutes)
    endpoints = Endpoints(Host(Store(database), clock, agent, tool, open_for))
    return Starlette(
        routes=[
            Route("/agent", endpoints.agent, methods=["POST"]),
            Route("/cancel", endpoints.cancel, methods=["POST"]),
        ],
        exception_handlers={HostError: refused},
    )


def main(database: str = "agent_server.sqlite3", port: str = "8000") -> None:
    """Serve this machine until stopped."""
    uvicorn.run(build_app(database), host="127.0.0.1", port=int(port))


if __name__ == "__main__":
    main(*sys.argv[1:])
