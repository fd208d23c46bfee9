"""What type checkers see of the public names. It is checked and never run.

`assert_type` pins what a caller gets. Each `type: ignore` marks a misuse that must be
found: where it is not, the unused comment is the error.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypedDict, assert_never, assert_type

from agui_runs import (
    AguiRunsError,
    ConfigurationError,
    Decision,
    Interrupt,
    InterruptStatus,
    JSONValue,
    RunRecord,
    RunStatus,
    StreamError,
    TerminalStatus,
    digest,
)
from agui_runs.run_record import Failure


def interrupt(ask: Interrupt, now: datetime, row: Mapping[str, object]) -> None:
    assert_type(Interrupt.create(tool_call_id="c", arguments_digest="a", expires_at=now), Interrupt)
    assert_type(Interrupt.from_storage(row), Interrupt)
    assert_type(ask.id, str)
    assert_type(ask.tool_call_id, str)
    assert_type(ask.arguments_digest, str)
    assert_type(ask.expires_at, datetime | None)
    assert_type(ask.reason, str)
    assert_type(ask.message, str | None)
    assert_type(ask.status, InterruptStatus)
    assert_type(ask.decided_at, datetime | None)
    assert_type(ask.created_at, datetime | None)
    assert_type(ask.is_pending, bool)
    assert_type(ask.is_decided, bool)
    assert_type(ask.is_approved, bool)
    assert_type(ask.is_denied, bool)
    assert_type(ask.is_cancelled, bool)
    assert_type(ask.is_expired(now), bool)
    assert_type(ask.is_answerable(now), bool)
    assert_type(ask.decide("approved", now=now), Interrupt)
    assert_type(ask.to_protocol(), dict[str, str])
    assert_type(ask.to_dict(), dict[str, str | None])
    assert_type(ask.to_storage(), dict[str, str | None])


def interrupt_constants() -> None:
    assert_type(Interrupt.PENDING, Literal["pending"])
    assert_type(Interrupt.APPROVED, Literal["approved"])
    assert_type(Interrupt.DENIED, Literal["denied"])
    assert_type(Interrupt.CANCELLED, Literal["cancelled"])
    assert_type(Interrupt.DECISIONS, tuple[Decision, ...])
    assert_type(Interrupt.STATUSES, tuple[InterruptStatus, ...])
    assert_type(Interrupt.REASON_TOOL_CALL, Literal["tool_call"])


def interrupt_misuse(ask: Interrupt, now: datetime) -> None:
    Interrupt("i", "c", "a", None)  # type: ignore[call-arg]
    Interrupt(id="i", tool_call_id="c", arguments_digest="a")  # type: ignore[call-arg]
    Interrupt.create(tool_call_id="c", arguments_digest="a")  # type: ignore[call-arg]
    ask.decide(True, now=now)  # type: ignore[arg-type]
    ask.decide("pending", now=now)  # type: ignore[arg-type]
    ask.decide("approved", now)  # type: ignore[call-arg]
    ask.decide("approved")  # type: ignore[call-arg]
    ask.is_expired()  # type: ignore[call-arg]
    ask.status = "approved"  # type: ignore[misc]


class MyInterrupt(Interrupt):  # type: ignore[misc]
    pass


def record(run: RunRecord, ask: Interrupt, now: datetime, row: dict[str, Any]) -> None:
    assert_type(RunRecord.from_storage(row), RunRecord)
    assert_type(run.scope, str)
    assert_type(run.thread_id, str)
    assert_type(run.run_id, str)
    assert_type(run.digest, str)
    assert_type(run.created_at, datetime)
    assert_type(run.status, RunStatus)
    assert_type(run.sequence, int)
    assert_type(run.snapshot, Any)
    assert_type(run.interrupts, tuple[Interrupt, ...])
    assert_type(run.failure, Failure | None)
    assert_type(run.updated_at, datetime)
    assert_type(run.key, tuple[str, str, str])
    assert_type(run.is_started, bool)
    assert_type(run.is_interrupted, bool)
    assert_type(run.is_terminal, bool)
    assert_type(run.is_awaiting_approval, bool)
    assert_type(run.pending_interrupts, tuple[Interrupt, ...])
    assert_type(run.interrupt("i"), Interrupt | None)
    assert_type(run.start(now=now), RunRecord)
    assert_type(run.advance(now=now, snapshot={"step": [1, 2.5, "x", None, True]}), RunRecord)
    assert_type(run.interrupted((ask for _ in "x"), now=now), RunRecord)
    assert_type(run.finish("failed", now=now, failure={"message": "Down"}), RunRecord)
    assert_type(run.finish("failed", now=now, failure={"message": "m", "code": None}), RunRecord)
    assert_type(run.replace_interrupt(ask, now=now), RunRecord)
    assert_type(run.answer([], now=now), RunRecord)
    failure = {"message": "Down"}
    assert_type(run.finish("failed", now=now, failure=failure), RunRecord)
    if ended := run.failure:
        assert_type(run.finish("failed", now=now, failure=ended), RunRecord)
        assert_type((ended["message"], ended["code"]), tuple[str, str | None])
    assert_type(run.to_protocol(), dict[str, Any])
    assert_type(run.to_dict(), dict[str, Any])
    assert_type(run.to_storage(), dict[str, Any])


class State(TypedDict):
    step: int


def a_host_names_the_shape_of_its_snapshots(run: RunRecord) -> int:
    state: State = run.snapshot
    return state["step"]


def a_host_reads_a_snapshot_as_it_comes(run: RunRecord, now: datetime) -> RunRecord:
    value: JSONValue = run.snapshot["step"]
    return run.advance(now=now, snapshot={**run.snapshot, "step": [value, 8]})


def record_constants() -> None:
    assert_type(RunRecord.RESERVED, Literal["reserved"])
    assert_type(RunRecord.STARTED, Literal["started"])
    assert_type(RunRecord.SUCCEEDED, Literal["succeeded"])
    assert_type(RunRecord.INTERRUPTED, Literal["interrupted"])
    assert_type(RunRecord.CANCELLED, Literal["cancelled"])
    assert_type(RunRecord.FAILED, Literal["failed"])
    assert_type(RunRecord.TERMINAL_STATUSES, tuple[TerminalStatus, ...])
    assert_type(RunRecord.STATUSES, tuple[RunStatus, ...])


def record_misuse(run: RunRecord, now: datetime) -> None:
    RunRecord("s", "t", "r", "d", now)  # type: ignore[call-arg]
    RunRecord(scope="s", thread_id="t", run_id="r", digest="d")  # type: ignore[call-arg]
    run.start()  # type: ignore[call-arg]
    run.advance(now=now, snapshot={now: 1})  # type: ignore[dict-item]
    run.interrupted(["ask-1"], now=now)  # type: ignore[list-item]
    run.finish(now=now)  # type: ignore[call-arg]
    run.finish("started", now=now)  # type: ignore[arg-type]
    run.finish("interrupted", now=now)  # type: ignore[arg-type]
    run.finish("failed", now=now, failure=RuntimeError())  # type: ignore[arg-type]
    run.finish("failed", now=now, failure={"message": 1})  # type: ignore[dict-item]
    run.replace_interrupt("ask-1", now=now)  # type: ignore[arg-type]
    run.status = "succeeded"  # type: ignore[misc]


class MyRecord(RunRecord):  # type: ignore[misc]
    pass


def every_status_is_known(status: RunStatus) -> TerminalStatus | None:
    match status:
        case "reserved" | "started":
            return None
        case "succeeded" | "interrupted" | "cancelled" | "failed":
            return status
        case _:
            assert_never(status)


def a_status_that_is_not_pending_is_a_decision(status: InterruptStatus) -> Decision | None:
    return None if status == Interrupt.PENDING else status


def digests() -> None:
    assert_type(digest({"to": ["a", 1, 2.5, None]}), str)
    digest({1})  # type: ignore[arg-type]
    digest({1: "a"})  # type: ignore[dict-item]


def errors(wrong: ConfigurationError, refused: StreamError) -> None:
    general: tuple[AguiRunsError, AguiRunsError, ValueError] = (wrong, refused, wrong)
    assert_type(general[1].args, tuple[Any, ...])
    assert refused.code != "run_over"  # type: ignore[comparison-overlap]
