"""A refund that waits for a human: one story, each act in a process of its own.

Run it with `python docs/examples/approval.py`; beside the standard library it needs only
`agui_runs`. A customer wants money back, the agent proposes to call its refund tool, and
the server pauses the run until a reviewer has answered. Then comes what goes wrong in the
field: a second click, a second reviewer, swapped arguments, an answer that is too late, a
cancellation while the success is on its way, a failure that must not leak.

Every act knows nothing but the database, as after a restart. The file reads from top to
bottom: the store, the tool, the server, the timeline, the acts, and `main`, which plays
them. Rows and tables are those of the example server, in stores/sqlite.py. A line of the
timeline is printed once it is proven; at the first one that is not, the script says so
and exits non-zero.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from store import By, HostError, Key, New, Row, made_between
from stores.rows import as_text
from stores.sqlite import SqliteStore

from agui_runs import Interrupt, JSONValue, RunRecord, StreamError, digest

Request: TypeAlias = dict[str, Any]

# Whose data this is. A server takes it from the session, never from the request.
SCOPE = "shop-1"

# The cast: each run by its key, which is scope, thread id and run id.
REFUND = (SCOPE, "thread-1", "run-1")  # It pauses for the approval of a refund,
ANSWER = (SCOPE, "thread-1", "run-2")  # and this one brings the answer.
LATE_REFUND = (SCOPE, "thread-2", "run-3")  # It pauses too,
LATE_ANSWER = (SCOPE, "thread-2", "run-4")  # but this one comes after the expiry.
STOPPED = (SCOPE, "thread-3", "run-5")  # Its user cancels it.
BROKEN = (SCOPE, "thread-4", "run-6")  # Its refund service is down.


# --- The store: that of the server, one call at a time --------------------------------------


class Store:
    """The database, as a host would keep it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.kept = SqliteStore(path)

    def reserve(self, request: Request, now: datetime) -> Row:
        """Take the key for this request, or attach to the run that the same request made."""
        run = RunRecord(
            scope=SCOPE,
            thread_id=request["threadId"],
            run_id=request["runId"],
            digest=digest(request),
            created_at=now,
        )
        row, _ = asyncio.run(self.kept.reserve(New(run, request, "customer", now)))
        if row.run.digest != run.digest:
            raise HostError("input_conflict", "this run id has been used for another input")
        return row

    def load(self, key: Key) -> Row:
        """Read a run back."""
        return asyncio.run(self.kept.load(key))

    def load_paused(self, thread_id: str, interrupt_id: str) -> Row:
        """Find the run that raised an interrupt: on the client's own thread, and nowhere else."""
        row = asyncio.run(self.kept.awaiting(SCOPE, thread_id, [interrupt_id]))
        if row is None or row.run.interrupt(interrupt_id) is None:
            raise HostError("interrupt_unknown", "no run of this thread has raised it")
        return row

    def save(self, row: Row, run: RunRecord, who: str = "server") -> Row:
        """Put the run in the place of the row, if nobody has written there since it was read."""
        if run is row.run:
            return row  # A transition that changes nothing returns the same object.
        audit = made_between(row.run, run, By(who, "approval.py"))
        saved = asyncio.run(self.kept.save(row, run, audit))
        if saved is None:
            raise HostError("stale_copy", "the row has changed since it was read")
        return saved

    def claim(self, call: Key, run_id: str, now: datetime) -> bool:
        """Take a tool call for a run; return False where it was taken before."""
        return asyncio.run(self.kept.claim(call, run_id, now))

    def keep_result(self, call: Key, result: str) -> None:
        """Keep what a claimed call has given."""
        asyncio.run(self.kept.keep_result(call, result))

    def count(self, table: str) -> int:
        """Say how many rows a table has: how many runs there are, or executions of a tool."""
        [(rows,)] = self.kept.db.execute(f"SELECT count(*) FROM {table}").fetchall()
        return int(rows)

    def close(self) -> None:
        asyncio.run(self.kept.close())


# --- The tool: it needs an approval, and it runs once ---------------------------------------

REVIEWERS = {"alice", "bob"}


def authorise(reviewer: str) -> None:
    """Refuse a reviewer who may not, or may no longer, decide about refunds."""
    if reviewer not in REVIEWERS:
        raise HostError("not_authorised", "you may not decide about refunds")


def refund(
    store: Store, paused: RunRecord, arguments: dict[str, str], reviewer: str, now: datetime
) -> bool:
    """Run the tool for an approved interrupt; return False where it has run before.

    An approval is an answer and not a permission: these checks are the duty of the host.
    """
    authorise(reviewer)
    [ask] = paused.interrupts
    if not ask.is_approved:
        raise HostError("not_approved", "this refund has not been approved")
    if digest(arguments) != ask.arguments_digest:
        raise HostError("arguments_changed", "these are not the arguments that were approved")
    # Claim, then run: a crash in between loses the refund, and never repeats it. A remote service
    # would get ask.id with it, to know a retry when it sees one.
    call = (paused.scope, paused.thread_id, ask.tool_call_id)
    if not store.claim(call, paused.run_id, now):
        return False
    store.keep_result(call, f"Refunded {arguments['amount']} for {arguments['orderId']}.")
    return True


# --- The server: what it does with a request ------------------------------------------------

# What the model would say; this server asks none.
FUNCTION = {"name": "refund", "arguments": '{"orderId": "A-1042", "amount": "20.00"}'}
TOOL_CALL = {"id": "call-1", "type": "function", "function": FUNCTION}
REPLY = {"id": "message-2", "role": "assistant", "content": "I am sorry. I propose a refund."}
PROPOSAL: dict[str, Any] = {**REPLY, "toolCalls": [TOOL_CALL]}


def request_for(key: Key, **changes: object) -> Request:
    """Return the AG-UI `RunAgentInput` that a client sends for this run."""
    text = Path(__file__).with_name("refund_input.json").read_text(encoding="utf-8")
    return {**json.loads(text), "threadId": key[1], "runId": key[2], **changes}


def approval_for(key: Key, ask: Interrupt) -> Request:
    """Return the `RunAgentInput` of a new run that brings a reviewer's yes."""
    entry = {"interruptId": ask.id, "status": "resolved", "payload": {"approved": True}}
    return request_for(key, resume=[entry])


def begin(store: Store, request: Request, now: datetime, *said: JSONValue) -> Row:
    """Reserve a run and start it, unless somebody is on it; `said` is the model's part so far."""
    row = store.reserve(request, now)
    started = row.run.start(now=now, snapshot={"messages": [*request["messages"], *said]})
    if started is row.run:
        raise HostError("already_started", "somebody is on it")
    return store.save(row, started)


def proposed_call(run: RunRecord) -> tuple[str, dict[str, str]]:
    """Return id and arguments of the tool call as they are stored, not as a client sends them."""
    call = run.to_storage()["snapshot"]["messages"][-1]["toolCalls"][0]
    return call["id"], json.loads(call["function"]["arguments"])


def pause(store: Store, row: Row, now: datetime) -> Row:
    """End the run with a request for the approval of its tool call."""
    call_id, arguments = proposed_call(row.run)
    # The id is random, so that nobody can guess it; the timeline does not print it.
    ask = Interrupt.create(
        tool_call_id=call_id,
        arguments_digest=digest(arguments),
        message=f"Refund {arguments['amount']} EUR for order {arguments['orderId']}?",
        created_at=now,
        expires_at=now + timedelta(minutes=5),
    )
    return store.save(row, row.run.interrupted([ask], now=now))


def resume(store: Store, request: Request, reviewer: str, now: datetime) -> bool:
    """Take the answer that a new run brings; return whether the tool ran this time.

    Every step can be repeated, so a second try goes on where a crash has stopped the first.
    """
    authorise(reviewer)
    [entry] = request["resume"]
    paused = store.load_paused(request["threadId"], entry["interruptId"])
    # An answer that repeats the stored one changes nothing; another one, or a late one, is refused.
    paused = store.save(paused, paused.run.answer(request["resume"], now=now), reviewer)
    # Only now is the new run reserved, so that a refused answer leaves none behind.
    row = store.reserve(request, now)
    if row.run.is_terminal:
        return False
    store.save(row, row.run.start(now=now, snapshot=paused.run.snapshot))
    [ask] = paused.run.interrupts
    return ask.is_approved and refund(
        store, paused.run, proposed_call(paused.run)[1], reviewer, now
    )


# --- The timeline ---------------------------------------------------------------------------


def at(clock: str) -> datetime:
    """Return a time of the story; agui_runs reads no clock, so every act says when it is."""
    return datetime.fromisoformat(f"2026-11-30T{clock}+00:00")


def step(now: datetime, who: str, what: str, why: str, proof: bool) -> None:
    """Print what happened and why, or exit where the proof says that it did not happen."""
    if not proof:
        sys.exit(f"approval.py: this did not come true: {now:%H:%M:%S} {who} {what} ({why})")
    print(f"   {now:%H:%M:%S}  {who:<6}  {what:<26}  {why}", flush=True)


@contextmanager
def refused(now: datetime, what: str, code: str, why: str) -> Iterator[None]:
    """Hold an attempt that must be refused with this code: hosts go by codes, never by texts."""
    got = "no refusal"
    try:
        yield
    except (StreamError, HostError) as refusal:
        got = refusal.code
    if got != code:
        sys.exit(f"approval.py: {now:%H:%M:%S} server must refuse {what}: {code}, not {got}")
    step(now, "server", f"refuses {what}", f"{code}: {why}", True)


# --- The acts -------------------------------------------------------------------------------


def reserve(store: Store) -> None:
    """A request reserves its run."""
    now = at("10:00:00")
    run = store.reserve(request_for(REFUND), now).run
    step(now, "server", "reserves run-1", "its key was free", run.created_at == now)


def reserve_again(store: Store) -> None:
    """The same request comes again, then another one under the same key."""
    now = at("10:00:01")
    run = store.reserve(request_for(REFUND), now).run
    step(now, "server", "attaches to run-1", "the input is the same", run.created_at < now)
    with refused(now, "another input", "input_conflict", "run-1 is for the first one"):
        store.reserve(request_for(REFUND, messages=[]), now)
    step(now, "server", "still has one run", "nothing runs twice", store.count("runs") == 1)


def start_and_stream(store: Store) -> None:
    """The run starts with a snapshot, and sends numbered events."""
    now = at("10:00:02")
    request = request_for(REFUND)
    row = begin(store, request, now)
    step(now, "server", "starts run-1", "its snapshot is the question", row.run.is_started)
    with refused(now, "a second start", "already_started", "somebody is on it"):
        begin(store, request, now)
    question = request["messages"]
    for number, event, messages in (
        (1, "RUN_STARTED", question),
        (2, "TEXT_MESSAGE_CHUNK", [*question, REPLY]),
        (3, "TOOL_CALL_CHUNK", [*question, PROPOSAL]),
    ):
        now += timedelta(seconds=1)
        row = store.save(row, row.run.advance(now=now, snapshot={"messages": messages}))
        why = "saved first, with the state as of it"
        step(now, "agent", f"sends {number} {event}", why, row.run.sequence == number)


def pause_for_approval(store: Store) -> None:
    """The run pauses for the approval of a refund."""
    now = at("10:00:06")
    run = pause(store, store.load(REFUND), now).run
    why = "a pause ends the run; a new one will go on"
    step(now, "server", "ends run-1: interrupted", why, run.is_awaiting_approval)


def restart(store: Store) -> None:
    """The server restarts, and the client reconnects."""
    now = at("10:01:00")
    run, text, *_ = store.load(REFUND)
    step(now, "server", "restarts and reads run-1", "all of it was saved", as_text(run) == text)
    step(now, "client", "sees the state of event 3", "from the snapshot", run.sequence == 3)
    [ask] = [pending.to_protocol() for pending in run.pending_interrupts]
    asked = ask["message"], ask["expiresAt"]
    expected = "Refund 20.00 EUR for order A-1042?", "2026-11-30T10:05:06.000Z"
    step(now, "client", "is asked again", "the request is open until 10:05:06", asked == expected)


def two_reviewers(store: Store) -> None:
    """Two reviewers answer, one of them on a copy that has become stale."""
    now = at("10:01:50")
    stale = store.load(REFUND)
    [ask] = stale.run.interrupts
    step(now, "bob", "opens the request", "his process holds a copy of it", ask.is_pending)

    # While Bob thinks it over, each in a process of its own:
    play(alice_approves, store.path)
    play(alice_approves_again, store.path)

    now = at("10:02:30")
    denial = ask.decide("denied", now=now)
    step(now, "bob", "denies", "on his copy nobody has answered", denial.is_denied)
    with refused(now, "to save that", "stale_copy", "the row has changed since"):
        store.save(stale, stale.run.replace_interrupt(denial, now=now))
    fresh = store.load(REFUND).run
    with refused(now, "it after a reload", "interrupt_decided", "alice's answer stands"):
        fresh.replace_interrupt(denial, now=now)


def alice_approves(store: Store) -> None:
    """Alice says yes."""
    now = at("10:02:00")
    [ask] = store.load(REFUND).run.pending_interrupts
    ran = resume(store, approval_for(ANSWER, ask), "alice", now)
    [answered] = store.load(REFUND).run.interrupts
    step(now, "alice", "approves", "run-2 brings it, run-1 keeps it", answered.is_approved)
    why = "authorised, the same arguments, claimed"
    step(now, "server", "refunds 20.00", why, ran and store.count("executions") == 1)


def alice_approves_again(store: Store) -> None:
    """Alice's browser sends the same yes again."""
    now = at("10:02:01")
    before = store.load(REFUND)
    [answered] = before.run.interrupts
    ran = resume(store, approval_for(ANSWER, answered), "alice", now)
    unchanged = store.load(REFUND) == before
    step(now, "alice", "approves again", "the stored decision stands", unchanged)
    once = not ran and store.count("executions") == 1
    step(now, "server", "does not refund again", "the claim is taken", once)


def not_a_permission(store: Store) -> None:
    """The approval is tried on what it was not given for."""
    now = at("10:03:00")
    run = store.load(REFUND).run
    [approved] = run.interrupts
    _, arguments = proposed_call(run)
    more = {**arguments, "amount": "2000.00"}
    with refused(now, "mallory's refund", "not_authorised", "an approval is no permission"):
        refund(store, run, arguments, "mallory", now)
    with refused(now, "to refund 2000.00", "arguments_changed", "alice approved 20.00"):
        refund(store, run, more, "alice", now)
    with refused(now, "a forged approval", "interrupt_changed", "run-1 never asked for that"):
        run.replace_interrupt(replace(approved, arguments_digest=digest(more)), now=now)


def pause_once_more(store: Store) -> None:
    """Another customer's run pauses for an approval."""
    now = at("10:04:00")
    run = pause(store, begin(store, request_for(LATE_REFUND), now, PROPOSAL), now).run
    why = "its request is open until 10:09:00"
    step(now, "server", "ends run-3: interrupted", why, run.is_awaiting_approval)


def late_answer(store: Store) -> None:
    """The answer comes after the expiry."""
    now = at("10:09:00")
    row = store.load(LATE_REFUND)
    [ask] = row.run.pending_interrupts
    with refused(now, "alice's yes", "interrupt_expired", "10:09:00 sharp is too late"):
        resume(store, approval_for(LATE_ANSWER, ask), "alice", now)
    cancelled = ask.decide("cancelled", now=now)
    row = store.save(row, row.run.replace_interrupt(cancelled, now=now))
    closed = not row.run.is_awaiting_approval and store.count("executions") == 1
    step(now, "server", "cancels the request", "an expired one can still be closed", closed)


def cancelled_before_success(store: Store) -> None:
    """A run is cancelled while its success is on the way."""
    now = at("10:10:00")
    row = begin(store, request_for(STOPPED), now)
    step(now, "agent", "works on run-5", "its process holds a copy of it", row.run.is_started)

    play(user_cancels, store.path)

    now = at("10:10:06")
    with refused(now, "to save success", "stale_copy", "the row has changed since"):
        store.save(row, row.run.finish("succeeded", now=now))
    fresh = store.load(STOPPED).run
    with refused(now, "it after a reload", "run_ended", "an end is final"):
        fresh.finish("succeeded", now=now)
    ending = store.load(STOPPED).run.status
    step(now, "client", "sees run-5 cancelled", "no success was stored", ending == "cancelled")


def user_cancels(store: Store) -> None:
    """The user stops the run."""
    now = at("10:10:05")
    row = store.load(STOPPED)
    run = store.save(row, row.run.finish("cancelled", now=now)).run
    step(now, "user", "cancels run-5", "it is stored first, so it wins", run.status == "cancelled")


def second_run_finishes(store: Store) -> None:
    """The run that brought the answer finishes."""
    now = at("10:11:00")
    row = store.load(ANSWER)
    row = store.save(row, row.run.advance(now=now))
    why = "run-2 counts its own events"
    step(now, "agent", "sends 1 RUN_STARTED", why, row.run.sequence == 1)
    snapshot = row.run.to_storage()["snapshot"]  # A plain copy, which may be changed.
    result = {"id": "message-3", "role": "tool", "toolCallId": "call-1", "content": "Refunded."}
    snapshot["messages"].append(result)
    row = store.save(row, row.run.advance(now=now, snapshot=snapshot))
    why = "its snapshot holds the result"
    step(now, "agent", "sends 2 TOOL_CALL_RESULT", why, row.run.sequence == 2)
    run = store.save(row, row.run.finish("succeeded", now=now)).run
    done = run.status == "succeeded"
    step(now, "server", "ends run-2: succeeded", "run-1 stays interrupted", done)
    step(now, "server", "has refunded once", "one yes, one refund", store.count("executions") == 1)


def failed_run(store: Store) -> None:
    """A run fails, and what it tells is sanitised."""
    now = at("10:12:00")
    row = begin(store, request_for(BROKEN), now)
    error = ConnectionError("db-2.internal refused svc_refund")  # This is for the log alone.
    failure = {"message": "The refund service is down.", "code": "refund_down"}
    row = store.save(row, row.run.finish("failed", now=now, failure=failure))
    clean = row.run.failure == failure and str(error) not in row.version
    step(now, "server", "ends run-6: failed", "a reconnect is told message and code", clean)


# --- The play -------------------------------------------------------------------------------

Act: TypeAlias = Callable[[Store], None]
STORY: tuple[Act, ...] = (
    reserve,
    reserve_again,
    start_and_stream,
    pause_for_approval,
    restart,
    two_reviewers,
    not_a_permission,
    pause_once_more,
    late_answer,
    cancelled_before_success,
    second_run_finishes,
    failed_run,
)


def play(act: Act, path: str) -> None:
    """Play an act in a process of its own, and end the story where the act goes wrong."""
    done = subprocess.run([sys.executable, __file__, act.__name__, path])
    if done.returncode != 0:
        sys.exit(done.returncode)


def main() -> None:
    """Play the story, or the one act that the command line names."""
    if len(sys.argv) > 1:
        name, path = sys.argv[1:]
        with closing(Store(path)) as store:
            globals()[name](store)
        return
    with TemporaryDirectory() as folder:
        for number, act in enumerate(STORY, 1):
            print(f"{number}. {act.__doc__}", flush=True)
            play(act, str(Path(folder, "runs.sqlite3")))
    print("Every step turned out as it must.")


if __name__ == "__main__":
    main()
