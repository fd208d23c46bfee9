"""Every state that a record of up to two interrupts can reach, and every call on each of them.

`python tests/model.py` explores to the fixpoint, checks what must hold and prints the counts;
test_model.py shows that each check can fail. The state diagrams in the documents are drawn
from the steps found here.

The space is finite because times, snapshots, failures and interrupts come from the few classes
that some rule tells apart, and because two fields are left out of a state: `sequence` and
`updated_at`, with which every event would be a state of its own. That is sound if no call looks
at them but to count on and to write the time. So every call is made again on TWINS of its state,
which differ in these two alone: a twin must come to the twin of the same state, or be refused
in the same words. They stand on both sides of the one number that the code treats in another
way (more than nine digits) and at the last one, where `advance` alone may differ.
"""

import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import cache
from itertools import permutations, product
from typing import Any, NamedTuple, TypeAlias

from agui_runs import AguiRunsError, ConfigurationError, Interrupt, RunRecord, StreamError
from builders import FAILURE, HOUR, SEC, T0, make_ask, make_run, via_json

# Before both expiries, at the first, and at the second: the instant itself is too late.
TIMES = EARLY, LATER, LATEST = (T0 + 5 * SEC, T0 + 10 * SEC, T0 + 20 * SEC)
NAIVE = T0.replace(tzinfo=None)
FIRST = make_ask(id="ask-1", expires_at=LATER)
SECOND = make_ask(id="ask-2", expires_at=LATEST)
ENDLESS = replace(SECOND, expires_at=None)
CHANGED = replace(FIRST, arguments_digest="ff" * 32)
FOREIGN = make_ask(id="ask-3")
SNAPSHOTS = (None, {"step": 1}, {})

LAST = 10**4300 - 1
TWINS = ((7, T0 + HOUR), (999_999_999, T0 - HOUR), (LAST, T0))


class Call(NamedTuple):
    """A call with its arguments, of which `given` is the first and `now` the time."""

    method: str
    given: Any
    now: datetime
    on: Callable[[RunRecord], RunRecord]


class Step(NamedTuple):
    """A call that gave another record."""

    before: RunRecord
    call: Call
    after: RunRecord


# --- The table of calls -------------------------------------------------------------------------


def call(method: str, *arguments: Any, now: datetime = EARLY, **more: Any) -> Call:
    given = arguments[0] if arguments else None
    return Call(method, given, now, lambda run: getattr(run, method)(*arguments, now=now, **more))


def answered(ask: Interrupt) -> list[Interrupt]:
    """Return the request with every answer at every time, also those that `decide` refuses."""
    answers = product(Interrupt.DECISIONS, TIMES)
    return [replace(ask, status=decision, decided_at=time) for decision, time in answers]


def deciding(id: str, decision: Any, now: datetime) -> Call:
    """Return the usual way to an answer: decide on what the record holds and put it back."""

    def on(run: RunRecord) -> RunRecord:
        held = run.interrupt(id) or FOREIGN
        return run.replace_interrupt(held.decide(decision, now=now), now=now)

    return Call("replace_interrupt", id, now, on)


def pauses() -> Iterator[list[Interrupt]]:
    """Yield what a host pauses for: one, two in both orders, or one beside a pre-decided one."""
    yield from ([FIRST], [SECOND], [ENDLESS])
    for pair in ((FIRST, SECOND), (FIRST, ENDLESS)):
        yield from map(list, permutations(pair))
    yield from ([by_policy, FIRST] for by_policy in answered(SECOND))


def entry(id: str, answer: Any) -> dict[str, Any]:
    if answer == "cancelled":
        return {"interruptId": id, "status": "cancelled"}
    approved = {"approved": True, "denied": False}.get(answer, answer)
    return {"interruptId": id, "status": "resolved", "payload": {"approved": approved}}


def resumes() -> Iterator[list[dict[str, Any]]]:
    """Yield what a client sends: each request left out or answered, or what is forbidden."""
    for first, second in product((None, *Interrupt.DECISIONS), repeat=2):
        both = (("ask-1", first), ("ask-2", second))
        yield [entry(ask, answer) for ask, answer in both if answer]
    yield [entry("ask-1", "approved")] * 2
    yield [entry("ask-3", "denied")]
    yield [entry("ask-1", "true")]


def calls() -> Iterator[Call]:
    """Yield every transition with every class of good arguments."""
    for now in TIMES:
        for snapshot in SNAPSHOTS:
            yield call("start", now=now, snapshot=snapshot)
            yield call("advance", now=now, snapshot=snapshot)
        for raised in pauses():
            yield call("interrupted", raised, now=now)
        for status in RunRecord.TERMINAL_STATUSES:
            yield call("finish", status, now=now)
        yield call("finish", "failed", now=now, failure=FAILURE)
        for ask in (FIRST, SECOND, ENDLESS, CHANGED, FOREIGN):
            for held_elsewhere in (ask, *answered(ask)):
                yield call("replace_interrupt", held_elsewhere, now=now)
        for ask, decision in product((FIRST, SECOND), Interrupt.DECISIONS):
            yield deciding(ask.id, decision, now)
        for entries in resumes():
            yield call("answer", entries, now=now)


def wrong_calls() -> Iterator[Call]:
    """Yield every transition with arguments that no record takes."""
    yield call("start", now=NAIVE)
    yield call("start", snapshot={1})
    yield call("advance", now=NAIVE)
    yield call("advance", snapshot={1})
    yield call("interrupted", [FIRST], now=NAIVE)
    for raised in ([], answered(FIRST)[:1], [FIRST, FIRST], {FIRST: 1}, "ask-1", [None], None):
        yield call("interrupted", raised)
    for status in RunRecord.TERMINAL_STATUSES:
        yield call("finish", status, now=NAIVE)
    for status in ("reserved", "started", "Failed", True, None):
        yield call("finish", status)
    for status in ("succeeded", "interrupted", "cancelled"):
        yield call("finish", status, failure=FAILURE)
    for failure in ("x", {}, {**FAILURE, "trace": "x"}, RuntimeError("x")):
        yield call("finish", "failed", failure=failure)
    yield call("replace_interrupt", FIRST, now=NAIVE)
    for decided in (None, FIRST.to_storage(), FOREIGN):
        yield call("replace_interrupt", decided)
    for decision in ("pending", "Approved", True, None):
        yield deciding("ask-1", decision, EARLY)
    yield call("answer", [], now=NAIVE)


# --- What must hold of every step ---------------------------------------------------------------

TOLD = {
    "succeeded": "success",
    "interrupted": "interrupt",
    "cancelled": "cancelled",
    "failed": "RUN_ERROR",
}
Property: TypeAlias = Callable[[Step], bool]


def a_terminal_status_never_changes(step: Step) -> bool:
    return not step.before.is_terminal or step.after.status == step.before.status


def a_run_never_comes_back_to_an_earlier_status(step: Step) -> bool:
    order = RunRecord.STATUSES.index
    return order(step.before.status) <= order(step.after.status)


def a_decision_never_changes(step: Step) -> bool:
    return all(new == old for old, new in kept(step) if old.is_decided)


def nothing_is_approved_or_denied_past_its_expiry(step: Step) -> bool:
    return not any(
        new.is_expired(new.decided_at)
        for old, new in kept(step)
        if old.is_pending and (new.is_approved or new.is_denied)
    )


def an_answer_is_taken_now(step: Step) -> bool:
    return step.call.method != "answer" or all(
        new == old or new == old.decide(new.status, now=step.call.now) for old, new in kept(step)
    )


def an_answer_of_a_client_leaves_nothing_open(step: Step) -> bool:
    return step.call.method != "answer" or not step.after.is_awaiting_approval


def interrupts_never_appear_vanish_move_or_change_what_they_ask(step: Step) -> bool:
    if step.call.method == "interrupted":
        return step.after.interrupts == tuple(step.call.given) and not step.before.interrupts
    return [*map(asked, step.before.interrupts)] == [*map(asked, step.after.interrupts)]


def the_sequence_counts_the_events(step: Step) -> bool:
    return step.after.sequence - step.before.sequence == (step.call.method == "advance")


def an_ended_run_changes_in_its_answers_and_its_time_alone(step: Step) -> bool:
    return not step.before.is_terminal or step.before == replace(
        step.after, interrupts=step.before.interrupts, updated_at=step.before.updated_at
    )


def what_was_reserved_stays(step: Step) -> bool:
    return all(
        (run.key, run.digest, run.created_at) == (START.key, START.digest, START.created_at)
        for run in (step.before, step.after)
    )


def a_change_has_the_time_of_its_call(step: Step) -> bool:
    return step.after.updated_at == step.call.now


def a_step_changes_more_than_the_time(step: Step) -> bool:
    return replace(step.after, updated_at=step.before.updated_at) != step.before


def the_event_tells_the_status_and_a_success_of_nothing_else(step: Step) -> bool:
    try:
        event = step.after.to_protocol()
    except StreamError:
        return not step.after.is_terminal
    told = event["outcome"]["type"] if "outcome" in event else event["type"]
    return told == TOLD[step.after.status]


def every_record_survives_storage(step: Step) -> bool:
    return via_json(step.after) == step.after


PROPERTIES: tuple[Property, ...] = (
    a_terminal_status_never_changes,
    a_run_never_comes_back_to_an_earlier_status,
    a_decision_never_changes,
    nothing_is_approved_or_denied_past_its_expiry,
    an_answer_is_taken_now,
    an_answer_of_a_client_leaves_nothing_open,
    interrupts_never_appear_vanish_move_or_change_what_they_ask,
    the_sequence_counts_the_events,
    an_ended_run_changes_in_its_answers_and_its_time_alone,
    what_was_reserved_stays,
    a_change_has_the_time_of_its_call,
    a_step_changes_more_than_the_time,
    the_event_tells_the_status_and_a_success_of_nothing_else,
    every_record_survives_storage,
)


def kept(step: Step) -> Iterator[tuple[Interrupt, Interrupt]]:
    """Yield each interrupt from before the step with what stands in its place after it."""
    yield from zip(step.before.interrupts, step.after.interrupts, strict=False)


def asked(ask: Interrupt) -> Interrupt:
    """Return the request without its answer."""
    return replace(ask, status="pending", decided_at=None)


# --- The exploration ----------------------------------------------------------------------------

START = make_run()


class Found(NamedTuple):
    """All that there is, and what should not have been: faults, with what went wrong first."""

    states: list[RunRecord]
    edges: int
    steps: list[Step]
    refused: Counter[str]
    faults: list[tuple[str, RunRecord, Call]]


def outcome(run: RunRecord, made: Call) -> RunRecord | AguiRunsError:
    try:
        return made.on(run)
    except AguiRunsError as refusal:
        return refusal


def state_of(run: RunRecord) -> RunRecord:
    """Return the record without what the head of this file leaves out."""
    return replace(run, sequence=0, updated_at=T0)


def twins_of(state: RunRecord) -> list[RunRecord]:
    return [replace(state, sequence=sequence, updated_at=time) for sequence, time in TWINS]


def is_alike(state: RunRecord, result: object, twin: RunRecord, its_result: object) -> bool:
    """Say whether the twin of a state came out of a call as the state did."""
    if isinstance(result, AguiRunsError):
        return repr(its_result) == repr(result)
    if result is state:
        return its_result is twin
    assert isinstance(result, RunRecord)
    sequence = twin.sequence + result.sequence
    if sequence > LAST:
        return str(its_result) == "run record: sequence must have at most 4300 digits"
    return its_result == replace(result, sequence=sequence)


@cache
def explore() -> Found:
    """Make every call on every state that can be reached, until no new state comes up."""
    table = [(made, False) for made in calls()] + [(made, True) for made in wrong_calls()]
    states, steps, refused, faults = [START], [], Counter[str](), []
    known, waiting = {START}, deque([START])
    while waiting:
        state = waiting.popleft()
        row, twins = state.to_storage(), twins_of(state)
        for made, is_wrong in table:
            result = outcome(state, made)
            if is_wrong and not isinstance(result, ConfigurationError):
                faults.append(("a wrong argument was taken", state, made))
            if not all(is_alike(state, result, twin, outcome(twin, made)) for twin in twins):
                faults.append(("a twin went another way", state, made))
            if isinstance(result, AguiRunsError):
                refused[getattr(result, "code", "ConfigurationError")] += 1
            elif result is not state:
                steps.append(Step(state, made, result))
                new = state_of(result)
                if new not in known:
                    known.add(new)
                    waiting.append(new)
                    states.append(new)
        if state.to_storage() != row:
            faults.append(("a call changed its record", state, table[0][0]))
    return Found(states, len(states) * len(table), steps, refused, faults)


def diagram(steps: list[Step]) -> str:
    """Return the steps as a state diagram, in Mermaid's language."""
    order = RunRecord.STATUSES.index
    found = {(step.after.status, step.before.status, step.call.method) for step in steps}
    arrows = sorted(found, key=lambda arrow: (order(arrow[0]), order(arrow[1]), arrow[2]))
    lines = ["stateDiagram-v2", f"[*] --> {START.status}"]
    lines += [f"{before} --> {after}: {method}" for after, before, method in arrows]
    lines += [f"{status} --> [*]" for status in RunRecord.TERMINAL_STATUSES]
    return "\n    ".join(lines) + "\n"


def main() -> int:
    found = explore()
    broken = [each.__name__ for each in PROPERTIES if not all(map(each, found.steps))]
    print(f"{len(found.states):,} states, and no other can be reached")
    print(f"{found.edges:,} edges, each walked from {1 + len(TWINS)} sequence numbers:")
    print(f"  {len(found.steps):,} steps to a new record, checked for {len(PROPERTIES)} properties")
    print(f"  {found.edges - len(found.steps) - found.refused.total():,} gave the same object")
    for code, count in found.refused.most_common():
        print(f"  {count:,} refused: {code}")
    for fault, state, made in found.faults[:10]:
        print(f"FAULT: {fault}: {made.method}({made.given!r}) on {state!r}")
    for name in broken:
        print(f"FAULT: {name} does not hold")
    return bool(found.faults or broken)


if __name__ == "__main__":
    sys.exit(main())
