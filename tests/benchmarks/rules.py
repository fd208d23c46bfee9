"""What each peer does of what agui_runs does, tried out, so that the figures can be judged."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import workloads
from operations import DECIDE, deciding, hashes, names
from peers import Peer


def refuses(**changes: Any) -> Callable[[Peer], bool]:
    """Return the rule that a row with these changes is not loaded."""
    return lambda peer: _raises(lambda: names(peer, {**ROW, **changes}))


def _raises(call: Callable[[], object]) -> bool:
    try:
        call()
    except Exception:
        return True
    return False


def _moves_to_utc(peer: Peer) -> bool:
    known = names(peer, {**ROW, "createdAt": "2026-11-30T10:00:00.000000+02:00"})
    return known["record"].created_at.utcoffset() == timedelta(0)


def _writes_sortable_times(peer: Peer) -> bool:
    def written(time: str) -> str:
        return eval(peer.store, names(peer, {**ROW, "createdAt": time}))["createdAt"]

    return written("2026-11-30T10:00:00Z") < written("2026-11-30T10:00:00.5Z")


def _snapshot_stays(peer: Peer) -> bool:
    known = names(peer, json.loads(json.dumps({**ROW, "snapshot": {"list": [1]}})))

    def change() -> None:
        known["record"].snapshot["list"][0] = 2

    return _raises(change)


def _keeps_nothing_of_the_row(peer: Peer) -> bool:
    row = {**ROW, "snapshot": {"list": [1]}}
    known = names(peer, row)
    row["snapshot"]["list"].append(2)
    return len(known["record"].snapshot["list"]) == 1


def _gives_a_fresh_copy(peer: Peer) -> bool:
    known = names(peer, {**ROW, "snapshot": {"list": [1]}})
    eval(peer.store, known)["snapshot"]["list"].append(2)
    return len(known["record"].snapshot["list"]) == 1


def _encodes(peer: Peer) -> bool:
    known = names(peer, {**ROW, "snapshot": {"list": [1]}})
    return not _raises(lambda: json.dumps(known["record"].snapshot))


def _refuses_at_construction(peer: Peer) -> bool:
    known = names(peer, ROW)
    fields = {"scope": 5, "thread_id": "t", "run_id": "r", "digest": "d"}
    fields |= {"created_at": workloads.NOW, "updated_at": workloads.NOW}
    return _raises(lambda: known["Record"](**fields))


def _refuses_a_second_decision(peer: Peer) -> bool:
    known = deciding(peer, {**ROW, "status": "interrupted", "interrupts": [ASK]})
    known["record"] = eval(DECIDE, known)
    return _raises(lambda: eval(DECIDE.replace("approved", "denied"), known))


def _refuses_a_late_decision(peer: Peer) -> bool:
    known = deciding(peer, {**ROW, "status": "interrupted", "interrupts": [ASK]})
    known["now"] = workloads.EXPIRES
    return _raises(lambda: eval(DECIDE, known))


def _refuses_to_advance_an_ended_run(peer: Peer) -> bool:
    known = names(peer, {**ROW, "status": "cancelled"})
    return _raises(lambda: known["record"].advance(now=workloads.NOW))


ROW = workloads.stored(0, 0)
ASK = workloads.stored_interrupt(0)
TRACEBACK = {"message": "No", "code": None, "traceback": "secret"}

RULES: dict[str, Callable[[Peer], bool]] = {
    "refuses to advance an ended run": _refuses_to_advance_an_ended_run,
    "refuses a second decision": _refuses_a_second_decision,
    "refuses a late decision": _refuses_a_late_decision,
    "refuses a decision without its time": refuses(
        status="interrupted", interrupts=[{**ASK, "status": "approved"}]
    ),
    "refuses an id twice": refuses(status="interrupted", interrupts=[ASK, ASK]),
    "refuses interrupts on a record that is not interrupted": refuses(interrupts=[ASK]),
    "refuses an unknown status": refuses(status="done"),
    "refuses blank text": refuses(scope=" "),
    "refuses a number as text": refuses(scope=5),
    "the same in the constructor": _refuses_at_construction,
    "refuses text as a number": refuses(sequence="7"),
    "refuses true as a number": refuses(sequence=True),
    "refuses a failure with a traceback": refuses(status="failed", failure=TRACEBACK),
    "refuses a time without a zone": refuses(createdAt="2026-11-30T10:00:00"),
    "refuses a number as a time": refuses(createdAt=1_800_000_000),
    "moves times to UTC": _moves_to_utc,
    "writes times whose text sorts": _writes_sortable_times,
    "refuses NaN in the snapshot": refuses(snapshot=[float("nan")]),
    "refuses an object that is not JSON in the snapshot": refuses(snapshot=[object()]),
    "refuses a lone surrogate in the snapshot": refuses(snapshot=["\ud800"]),
    "keeps nothing of the row it loaded": _keeps_nothing_of_the_row,
    "the snapshot cannot be changed in place": _snapshot_stays,
    "a record with a snapshot has a hash": lambda peer: hashes(peer, {**ROW, "snapshot": {"a": 1}}),
    "`json` takes the snapshot as it is": _encodes,
    "what it stores belongs to the caller": _gives_a_fresh_copy,
}
