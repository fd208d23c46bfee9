"""The chat: runs that a client begins, follows, finds again after a reload, and cancels."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

from ag_ui import core
from agent import authorise
from door import body_of, json_of, key_in, text_in, whose
from frames import as_frame
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from store import By, HostError, New, Row, update
from succession import PREFIX, end_lost
from work import Host, end, is_alive, state_events
from workers import Workers

from agui_runs import RunRecord, digest


class Chat:
    """What a client of AG-UI asks."""

    def __init__(self, host: Host, workers: Workers) -> None:
        self.host = host
        self.workers = workers

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
        row = await end(self.host, row, "cancelled", by)
        if row.run.is_awaiting_approval:
            row = await self.close(row, by)
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
