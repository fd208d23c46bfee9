"""A run at work: one task that carries a run out, step by step, each step saved before it is seen.

What `agui_runs` decides is not decided here a second time. What it leaves to a host is marked
"Duty". Of the codes that a `StreamError` has, the recorded ending is replayed on `run_ended`, for
somebody else was faster; every other one ends the run that met it as failed, with that code in its
RUN_ERROR. docs/wire.md says more of each.
"""

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, TypeAlias
from uuid import uuid4

from ag_ui import core
from agent import TOOL_NAME, Arguments, Proposal, authorise, corrected, proposal
from frames import Frames
from store import By, Change, Claim, HostError, Key, Row, Store, update
from watch import Watch

from agui_runs import Interrupt, RunRecord, StreamError, digest

Agent: TypeAlias = Callable[[str, list[str]], AsyncIterator[str | Proposal]]
Tool: TypeAlias = Callable[[Arguments], Awaitable[str]]
Clock: TypeAlias = Callable[[], datetime]
Ending: TypeAlias = Literal["cancelled", "failed"]

LOG = logging.getLogger(__name__)


class Host(NamedTuple):
    """What a run needs around it."""

    store: Store
    clock: Clock
    agent: Agent
    tool: Tool
    open_for: timedelta  # How long a request for approval can be answered.
    lease: timedelta  # After so long without a renewal a worker is dead, however slow its tool.
    runs: Watch[Key, Row]
    calls: Watch[Key, Claim | None]


class Work:
    """The task of a run that has been started for it, and the frames for who has begun it."""

    def __init__(self, host: Host, row: Row) -> None:
        self.host = host
        self.row = row
        self.request = core.RunAgentInput.model_validate(row.input)
        self.by = By(row.actor, f"run {row.run.run_id}")
        self.frames = Frames()
        self.messages: list[dict[str, Any]] = []
        self.state: dict[str, Any] = {"refunds": {}}
        self.corrections: dict[str, Arguments] = {}

    async def to_the_end(self) -> None:
        """Carry the run out, and send its recorded ending, whoever has recorded it."""
        try:
            await self.carry_out()
        except (StreamError, HostError) as refusal:
            # The texts of both are fit to be sent. On run_ended the ending that stands is kept.
            failure = {"message": str(refusal), "code": refusal.code}
            self.row = await end(self.host, self.row, "failed", self.by, failure)
        except Exception:
            # Duty: sanitise. What an exception says is for the log, and for nobody else.
            LOG.exception("run %r has failed", self.row.run.key)
            failure = {"message": "The agent has failed.", "code": "agent_failed"}
            self.row = await end(self.host, self.row, "failed", self.by, failure)
        finally:
            missed = state_events(self.row) if self.frames.has_missed else []
            ending = [self.row.run.to_protocol()] if self.row.run.is_terminal else []
            self.frames.end(*missed, *ending)

    async def carry_out(self) -> None:
        """Take the answers, make the approved calls, let the agent go on, and end the run."""
        results: list[str] = []
        asks: list[Interrupt] = []
        paused = await self.take_answers()
        if paused:
            # What was proposed is read from the store, never from what the client sends.
            self.state = paused.to_storage()["snapshot"]["state"]
            for ask in paused.interrupts:
                results.append(await self.settle(ask, asks))
        async for said in self.host.agent(last_words(self.request), results):
            if isinstance(said, Proposal):
                asks.append(await self.propose(said))
            else:
                await self.say(said)
        now = self.host.clock()
        if asks:
            await self.change(lambda run: run.interrupted(asks, now=now))
        else:
            await self.change(lambda run: run.finish("succeeded", now=now))

    async def take_answers(self) -> RunRecord | None:
        """Record the answers that this run brings, and return the paused run they are for."""
        resume = self.row.input.get("resume") or []
        if resume:
            authorise(self.row.actor)  # Duty: may this actor answer?
        # One list answers one paused run, the newest that it names; an entry for another one is
        # refused. A run that answers nothing, on a thread that waits for an answer, is too.
        scope, thread_id, _ = self.row.run.key
        named = [entry.interrupt_id for entry in self.request.resume or []]
        row = await self.host.store.awaiting(scope, thread_id, named)
        if row:
            return await self.record(row, resume)
        if resume:
            raise HostError("resume_unknown", "nothing on this thread waits for this answer")
        return None

    async def record(self, row: Row, resume: list[Any]) -> RunRecord:
        """Record the answers on the paused run, and find what was to be corrected."""
        now = self.host.clock()
        by = self.by._replace(corrections=corrections(row.run, resume))
        row = await update(self.host.store, row, lambda run: run.answer(resume, now=now), by)
        scope, thread_id, run_id = row.run.key
        # The audit is the home of corrections: others may have answered before, elsewhere.
        made = await self.host.store.decisions(scope, thread_id, [run_id])
        self.corrections = {each.interrupt_id: each.correction for each in made if each.correction}
        return row.run

    async def settle(self, ask: Interrupt, asks: list[Interrupt]) -> str:
        """Do what was decided about a tool call, and return and send its result."""
        call = self.state["refunds"][ask.tool_call_id]
        call["status"] = ask.status
        # Where this run was cancelled meanwhile, this save stops it before the tool runs.
        await self.show()
        result = f"The request was {ask.status}."
        if ask.is_approved:
            result = await self.execute(ask, call["arguments"])
        elif ask.id in self.corrections:
            result = await self.ask_again(ask, asks)
        message_id = f"result-{ask.tool_call_id}"
        self.messages.append(
            {"id": message_id, "role": "tool", "toolCallId": ask.tool_call_id, "content": result}
        )
        await self.send(
            core.ToolCallResultEvent(
                message_id=message_id, tool_call_id=ask.tool_call_id, content=result, role="tool"
            ),
            saves_state=True,
        )
        return result

    async def execute(self, ask: Interrupt, arguments: Arguments) -> str:
        """Run the tool for an approved request: once, however often the approval is brought."""
        authorise(self.row.actor)  # Duty: an approval is an answer, and no permission.
        if digest(arguments) != ask.arguments_digest:  # Duty: run what was approved.
            raise HostError("arguments_changed", "these are not the arguments that were approved")
        # Duty: claim, then run. A crash in between loses the call, and never repeats it. Give a
        # remote service ask.id as its idempotency key, and it can tell you what became of it.
        call = self.call_of(ask)
        if not await self.host.store.claim(call, self.row.run.run_id, self.host.clock()):
            return await self.result_of(call)
        try:
            result = await self.host.tool(arguments)
        except Exception:
            # Duty: sanitise. This result is kept as any other, so that the other calls go on.
            LOG.exception("call %r has failed", call)
            result = "The call failed."
        await self.host.store.keep_result(call, result)
        return result

    async def ask_again(self, ask: Interrupt, asks: list[Interrupt]) -> str:
        """Raise a new request for the corrected arguments of a denied one.

        Other arguments are another call with another digest, so its approval is another one too.
        The claim on the old call keeps a second run, with the same answer, from asking once more.
        """
        call = self.call_of(ask)
        if not await self.host.store.claim(call, self.row.run.run_id, self.host.clock()):
            return await self.result_of(call)
        asks.append(await self.propose(proposal(self.corrections[ask.id])))
        result = "The request was denied, and a corrected one was made."
        await self.host.store.keep_result(call, result)
        return result

    async def result_of(self, call: Key) -> str:
        """Wait for the result of a call that was claimed before, as long as its worker lives."""
        claim = await self.host.store.claimed(call)
        while claim and claim.result is None and is_alive(claim.alive_until, self.host.clock()):
            claim = await self.host.calls.next(call)
        if claim and claim.result is not None:
            return claim.result
        return "It is not known what became of this call."

    async def propose(self, wanted: Proposal) -> Interrupt:
        """Show the tool call, and return the request for its approval."""
        call_id, arguments, question = wanted
        text = json.dumps(arguments)
        await self.send(core.ToolCallStartEvent(tool_call_id=call_id, tool_call_name=TOOL_NAME))
        await self.send(core.ToolCallArgsEvent(tool_call_id=call_id, delta=text))
        await self.send(core.ToolCallEndEvent(tool_call_id=call_id))
        function = {"name": TOOL_NAME, "arguments": text}
        tool_call = {"id": call_id, "type": "function", "function": function}
        self.messages.append({"id": call_id, "role": "assistant", "toolCalls": [tool_call]})
        self.state["refunds"][call_id] = {"arguments": arguments, "status": "pending"}
        await self.show()
        now = self.host.clock()
        return Interrupt.create(
            tool_call_id=call_id,
            arguments_digest=digest(arguments),
            message=question,
            created_at=now,
            expires_at=now + self.host.open_for,
        )

    async def say(self, text: str) -> None:
        """Send a message, and have it in the state once it is complete."""
        message_id = str(uuid4())
        await self.send(core.TextMessageStartEvent(message_id=message_id, role="assistant"))
        await self.send(core.TextMessageContentEvent(message_id=message_id, delta=text))
        self.messages.append({"id": message_id, "role": "assistant", "content": text})
        await self.send(core.TextMessageEndEvent(message_id=message_id), saves_state=True)

    async def show(self) -> None:
        """Send the state."""
        await self.send(core.StateSnapshotEvent(snapshot=self.state), saves_state=True)

    async def send(self, event: core.BaseEvent, saves_state: bool = False) -> None:
        """Save the number of the event, and the state as of it, and only then send it."""
        now = self.host.clock()
        snapshot: Any = {"messages": self.messages, "state": self.state} if saves_state else None
        await self.change(lambda run: run.advance(now=now, snapshot=snapshot))
        self.frames.put(event)

    async def change(self, change: Change) -> None:
        """Save a step of this run; it raises `run_ended` where somebody else has ended it."""
        self.row = await update(self.host.store, self.row, change, self.by)

    def call_of(self, ask: Interrupt) -> Key:
        return self.row.run.scope, self.row.run.thread_id, ask.tool_call_id


async def end(
    host: Host, row: Row, status: Ending, by: By, failure: dict[str, str] | None = None
) -> Row:
    """End a run, unless it has ended, for then that ending stands."""
    now = host.clock()

    def finish(run: RunRecord) -> RunRecord:
        return run if run.is_terminal else run.finish(status, now=now, failure=failure)

    return await update(host.store, row, finish, by)


def corrections(paused: RunRecord, resume: list[Any]) -> dict[str, Arguments]:
    """Return the corrected arguments in a list of answers, by the interrupt, or refuse them.

    Only a denial can have them. The answers themselves are for `RunRecord.answer` to judge.
    """
    found = {}
    for entry in resume:
        payload, ask = entry.get("payload"), paused.interrupt(entry["interruptId"])
        if ask and isinstance(payload, dict) and "correctedArguments" in payload:
            if payload.get("approved") is not False:
                raise HostError("correction_invalid", "only a denial can have a correction", 400)
            correction = payload["correctedArguments"]
            found[ask.id] = corrected(arguments_of(paused, ask), correction)
    return found


def arguments_of(paused: RunRecord, ask: Interrupt) -> Arguments:
    """Return the arguments that a request is about, as they are stored."""
    state: Any = paused.to_storage()["snapshot"]["state"]
    arguments: Arguments = state["refunds"][ask.tool_call_id]["arguments"]
    return arguments


def state_events(row: Row) -> list[dict[str, Any]]:
    """Return the events that bring a client up to date which has missed others, or all."""
    snapshot: Any = row.run.to_storage()["snapshot"]
    if snapshot is None:
        return []
    return [
        {"type": "MESSAGES_SNAPSHOT", "messages": row.input["messages"] + snapshot["messages"]},
        {"type": "STATE_SNAPSHOT", "snapshot": snapshot["state"]},
    ]


def last_words(request: core.RunAgentInput) -> str:
    """Return the last text of the user."""
    texts = [message.content for message in request.messages if message.role == "user"]
    return texts[-1] if texts and isinstance(texts[-1], str) else ""


def is_alive(alive_until: datetime | None, now: datetime) -> bool:
    """Tell whether a lease has not run out."""
    return alive_until is not None and now < alive_until
