"""Plain values that every test module may start from; each argument can be overridden."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from agui_runs import Interrupt, RunRecord

Value = TypeVar("Value", Interrupt, RunRecord)

SEC = timedelta(seconds=1)
HOUR = timedelta(hours=1)
T0 = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
FAILURE = {"message": "Mail service unavailable", "code": "mail_down"}


def make_ask(**over: Any) -> Interrupt:
    """Return a pending request of T0 that stays open for ten minutes."""
    fields = {
        "id": "ask-1",
        "tool_call_id": "call-1",
        "arguments_digest": "a1" * 32,
        "expires_at": T0 + 600 * SEC,
        "message": "Send the mail?",
        "created_at": T0,
    }
    return Interrupt(**{**fields, **over})


def make_run(**over: Any) -> RunRecord:
    """Return a run that was reserved at T0 and has no state yet."""
    fields = {
        "scope": "tenant-1",
        "thread_id": "thread-1",
        "run_id": "run-1",
        "digest": "b2" * 32,
        "created_at": T0,
    }
    return RunRecord(**{**fields, **over})


def via_json(value: Value) -> Value:
    """Return what a store gives back that keeps standard JSON text."""
    return type(value).from_storage(json.loads(json.dumps(value.to_storage(), allow_nan=False)))


def nested(depth: int) -> list[Any]:
    """Return arrays nested this many levels deep, the innermost one empty."""
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value
