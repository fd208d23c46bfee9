"""What the stores read and write, as texts and times: a record is JSON text, whatever keeps it."""

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from store import Claim, Decision, Row, time_text

from agui_runs import ConfigurationError, RunRecord

LOG = logging.getLogger(__name__)


def as_text(run: RunRecord) -> str:
    """Return the text to store: one value has one text, so that texts can be compared."""
    return json.dumps(run.to_storage(), sort_keys=True)


def as_row(text: str, input: str, actor: str, alive_until: str) -> Row:
    """Return the run that a stored text holds, beside that text, which the next save must find."""
    run = RunRecord.from_storage(json.loads(text))
    return Row(run, text, json.loads(input), actor, datetime.fromisoformat(alive_until))


def readable(found: Iterable[Sequence[Any]], read: Callable[..., Row] = as_row) -> list[Row]:
    """Return the rows that can be read, and log those that cannot."""
    rows = []
    for columns in found:
        try:
            rows.append(read(*columns))
        except ConfigurationError as problem:
            LOG.error("a stored run cannot be read: %s", problem)
    return rows


def decision_columns(decision: Decision) -> list[str | None]:
    """Return a row of the audit as it is written."""
    correction = decision.correction and json.dumps(decision.correction)
    written = {"decided_at": time_text(decision.decided_at), "correction": correction}
    return list((decision._asdict() | written).values())


def as_decision(*columns: Any) -> Decision:
    """Return a row of the audit as it was read."""
    *_, decided_at, _, _, _, correction = columns
    return Decision(*columns)._replace(
        decided_at=datetime.fromisoformat(decided_at),
        correction=correction and json.loads(correction),
    )


def as_claim(*columns: Any) -> Claim:
    """Return a claim as it was read."""
    *call, run_id, claimed_at, alive_until, result = columns
    scope, thread_id, tool_call_id = call
    alive = None if alive_until is None else datetime.fromisoformat(alive_until)
    claimed = datetime.fromisoformat(claimed_at)
    return Claim((scope, thread_id, tool_call_id), run_id, claimed, alive, result)
