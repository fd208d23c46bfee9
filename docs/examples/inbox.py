"""The inbox: what waits for an answer, the answers given there, and what became of everything."""

from typing import Any, TypeAlias
from uuid import uuid4

from agent import CORRECTABLE, REVIEWERS, TOOL_NAME, authorise, corrected
from door import json_of, key_in, text_in, whose
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from store import By, Decision, HostError, New, Row, time_text, update
from succession import successor
from work import Host, arguments_of
from workers import Workers

from agui_runs import ConfigurationError, Interrupt, RunRecord

Body: TypeAlias = dict[str, Any]

# How many runs or requests are in one answer.
PAGE = 50


class Inbox:
    """Approvals outside the chat, over all threads of a tenant."""

    def __init__(self, host: Host, workers: Workers) -> None:
        self.host = host
        self.workers = workers

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
            for claim in await self.host.store.unfinished(scope, self.host.clock(), PAGE)
        ]
        return JSONResponse({"claims": claims})


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
        "correctable": CORRECTABLE,
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
