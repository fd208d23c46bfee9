"""What is timed. Each function runs one operation and returns plain figures for the report."""

import hashlib
import json
import time
from typing import Any

import measure
import rfc8785
import workloads
from floor import bare_advance
from measure import Times
from peers import MSGSPEC_FROZEN, OURS, PEERS, PLAIN, PYDANTIC, TYPES_ONLY, Peer, camel

import agui_runs

STANDARD_LIBRARY = "collections.abc, dataclasses, datetime, functools, math, re, typing"
"""The modules that importing agui_runs imports."""

DRAWN = (OURS, PYDANTIC, MSGSPEC_FROZEN, PLAIN)
"""Whose growth is measured."""


class Scale:
    """How much is measured: all of it, or just enough to see that the benchmarks run."""

    def __init__(self, *, quick: bool) -> None:
        self.rounds = 2 if quick else 25
        self.seconds = 0.0001 if quick else 0.002
        self.messages = 10 if quick else 1_000
        self.successive = 10 if quick else 1_000
        self.events = 100 if quick else 10_000
        self.records = 200 if quick else 100_000
        self.processes = 1 if quick else 15
        self.snapshots = [
            2**power for power in ((10, 12) if quick else (10, 12, 14, 16, 18, 20, 22, 24))
        ]
        self.interrupts = [1, 10] if quick else [1, 10, 100, 1_000, 10_000]


def names(peer: Peer, row: dict[str, Any]) -> dict[str, Any]:
    """Return what a peer's statements refer to; the record is the row, loaded."""
    known = {"Record": peer.record, "row": row, "now": workloads.NOW, **peer.names}
    known["record"] = eval(peer.load, known)
    return known


def constructing(peer: Peer, row: dict[str, Any]) -> dict[str, Any]:
    """Return the names with the arguments of the constructor, as a host would give them."""
    known = names(peer, row)
    made = known["record"]
    fields = {
        "scope": made.scope,
        "thread_id": made.thread_id,
        "run_id": made.run_id,
        "digest": made.digest,
        "created_at": workloads.CREATED,
        "status": made.status,
        "sequence": made.sequence,
        "snapshot": row["snapshot"],
        "interrupts": made.interrupts,
        "updated_at": workloads.CREATED,
    }
    known["fields"] = fields
    known["camel_fields"] = {camel(name): value for name, value in fields.items()}
    return known


def live(peer: Peer, row: dict[str, Any]) -> dict[str, Any]:
    """Return the names with a record that is started, whatever interrupts it holds.

    No live record of ours holds interrupts. It is put past the rule here, only to show
    that `advance` does not look at them.
    """
    if peer not in (OURS, TYPES_ONLY):
        return names(peer, {**row, "status": "started"})
    known = names(peer, row)
    object.__setattr__(known["record"], "status", "started")
    return known


def bare(peer: Peer, row: dict[str, Any]) -> dict[str, Any]:
    """Return the names with a record as live ones are: started, and without interrupts."""
    return names(peer, {**row, "status": "started", "interrupts": []})


def deciding(peer: Peer, row: dict[str, Any]) -> dict[str, Any]:
    known = names(peer, row)
    known["ask"] = known["record"].interrupts[-1]
    return known


def comparing(peer: Peer, row: dict[str, Any]) -> dict[str, Any]:
    return {**names(peer, row), "twin": names(peer, json.loads(json.dumps(row)))["record"]}


def figures(times: Times) -> dict[str, Any]:
    """Return the medians, and of each peer the ratio of our time to its."""
    ours = next(iter(times.samples))
    return {
        "seconds": {name: times.median(name) for name in times.samples},
        "ratio": {name: times.ratio(ours, name) for name in times.samples},
    }


def compared(scale: Scale, statements: dict[str, tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    return figures(measure.interleaved(statements, rounds=scale.rounds, seconds=scale.seconds))


DECIDE = "record.replace_interrupt(ask.decide('approved', now=now), now=now)"


def operations(scale: Scale) -> dict[str, Any]:
    """Time every operation at every size, with every peer that has it."""
    found: dict[str, Any] = {}
    for size, (snapshot, interrupts) in workloads.SIZES.items():
        row = workloads.stored(snapshot, interrupts)
        check(row)
        kinds = {
            "advance": (live, lambda _: "record.advance(now=now)"),
            "from_storage": (names, lambda peer: peer.load),
            "to_storage": (names, lambda peer: peer.store),
            "construction": (constructing, lambda peer: peer.make),
            "equality": (comparing, lambda _: "record == twin"),
            "hash": (names, lambda _: "hash(record)"),
        }
        if interrupts:
            kinds["decide, replace_interrupt"] = (deciding, lambda _: DECIDE)
            kinds["advance, no interrupts"] = (bare, lambda _: "record.advance(now=now)")
        for operation, (prepare, code) in kinds.items():
            peers = PEERS
            if operation == "hash":
                peers = tuple(peer for peer in PEERS if hashes(peer, row))
            found[f"{operation} {size}"] = compared(
                scale, {peer.name: (code(peer), prepare(peer, row)) for peer in peers}
            )
    plain = workloads.stored(workloads.SIZES["W3"][0], 0)
    found["advance, W1 and W3"] = compared(
        scale,
        {
            "W3": ("record.advance(now=now)", live(OURS, workloads.stored(256 * 1024, 50))),
            "W1": ("record.advance(now=now)", live(OURS, workloads.stored(0, 0))),
            "W3 without interrupts": ("record.advance(now=now)", live(OURS, plain)),
        },
    )
    known = {**names(OURS, workloads.stored(0, 0)), "bare_advance": bare_advance}
    assert bare_advance(known["record"], workloads.NOW) == known["record"].advance(
        now=workloads.NOW
    )
    found["advance, bare"] = compared(
        scale,
        {
            "agui_runs": ("record.advance(now=now)", known),
            "bare": ("bare_advance(record, now)", known),
        },
    )
    return found


def sharing(scale: Scale) -> dict[str, Any]:
    """Time what a host does with a snapshot of which most is the last one, and its memory."""
    state = workloads.snapshot(workloads.SIZES["W3"][0])
    messages = [workloads.message(index) for index in range(scale.messages)]
    one_more = workloads.message(scale.messages)
    known = {
        "run": names(OURS, {**workloads.stored(0, 0), "snapshot": state})["record"],
        "talk": names(OURS, {**workloads.stored(0, 0), "snapshot": messages})["record"],
        "now": workloads.NOW,
        "whole": {**state, "step": 7},
        "whole_talk": [*messages, one_more],
        "one_more": one_more,
    }
    found = {
        "one key": compared(
            scale,
            {
                "shared": ("run.advance(now=now, snapshot={**run.snapshot, 'step': 7})", known),
                "whole": ("run.advance(now=now, snapshot=whole)", known),
            },
        ),
        "one message": compared(
            scale,
            {
                "shared": ("talk.advance(now=now, snapshot=[*talk.snapshot, one_more])", known),
                "whole": ("talk.advance(now=now, snapshot=whole_talk)", known),
            },
        ),
    }
    run = names(OURS, workloads.stored(0, 0))["record"].advance(now=workloads.NOW, snapshot={})
    begun = time.process_time()
    records = [run]
    while len(records) < 5_000:
        try:
            twice = {"history": [run.snapshot, run.snapshot]}
            run = run.advance(now=workloads.NOW, snapshot=twice)
        except agui_runs.ConfigurationError:
            break
        records.append(run)
    found["chain"] = {"records": len(records), "taken": time.process_time() - begun}
    first = known["run"]

    def successive(count: int) -> float:
        def make() -> list[Any]:
            run = first.advance(now=workloads.NOW, snapshot=json.loads(json.dumps(state)))
            kept = [run]
            for step in range(1, count):
                run = run.advance(now=workloads.NOW, snapshot={**run.snapshot, "step": step})
                kept.append(run)
            return kept

        return measure.bytes_each(make, 1)

    one, many = successive(1), successive(scale.successive)
    found["memory"] = {"one": one, "many": many, "ratio": many / one}
    return found


def hashes(peer: Peer, row: dict[str, Any]) -> bool:
    """Say whether a peer can hash the record; most cannot once it holds a snapshot."""
    try:
        hash(names(peer, row)["record"])
    except TypeError:
        return False
    return True


def check(row: dict[str, Any]) -> None:
    """Make sure that every peer does what it is timed for."""
    for peer in PEERS:
        known = names(peer, row)
        again = names(peer, json.loads(json.dumps(eval(peer.store, known))))["record"]
        assert again == known["record"], peer.name
        made = eval(peer.make, constructing(peer, row))
        assert made.updated_at == workloads.CREATED, peer.name
        advanced = live(peer, row)["record"].advance(now=workloads.NOW)
        assert (advanced.sequence, advanced.updated_at) == (1001, workloads.NOW), peer.name
        if row["interrupts"]:
            answered = eval(DECIDE, deciding(peer, row))
            assert answered.interrupts[-1].status == "approved", peer.name
            assert answered.interrupts[-1].decided_at == workloads.NOW, peer.name


def whole_run(scale: Scale) -> dict[str, Any]:
    """Time a run from start to finish, each event an `advance`, with and without a snapshot."""
    found = {}
    for title, size in (("no snapshot", 0), ("256 KB snapshot", workloads.SIZES["W3"][0])):
        row = workloads.stored(size, 0)
        statements = {}
        for peer in PEERS:
            known = constructing(peer, row)
            known["make"] = eval(f"lambda: {peer.make}", known)
            known["run"] = run
            statements[peer.name] = (f"run(make, {scale.events})", known)
        rounds = max(2, scale.rounds // 5)
        found[title] = figures(measure.interleaved(statements, rounds=rounds, seconds=0.0))
    return found


def run(make: Any, events: int) -> None:
    record = make()
    for _ in range(events):
        record = record.advance(now=workloads.NOW)
    record.finish("succeeded", now=workloads.NOW)


def answers(scale: Scale) -> dict[str, Any]:
    """Time one `answer` that approves all that is pending; no peer has it."""
    return {str(count): compared(scale, {"agui_runs": answering(count)}) for count in (2, 50)}


def answering(count: int) -> tuple[str, dict[str, Any]]:
    known = names(OURS, workloads.stored(0, count))
    return "record.answer(entries, now=now)", {**known, "entries": workloads.resume(count)}


def digests(scale: Scale) -> dict[str, Any]:
    """Time `digest` and the same through `rfc8785`."""
    found = {}
    for title, value in (
        ("small", workloads.SMALL_ARGUMENTS),
        ("64 KB", workloads.snapshot(64 * 1024)),
    ):
        known = {
            "digest": agui_runs.digest,
            "sha256": hashlib.sha256,
            "dumps": rfc8785.dumps,
            "value": value,
        }
        theirs = "sha256(dumps(value)).hexdigest()"
        assert agui_runs.digest(value) == eval(theirs, known)
        found[title] = compared(
            scale, {"agui_runs": ("digest(value)", known), "rfc8785": (theirs, known)}
        )
    return found


def memory(scale: Scale) -> dict[str, Any]:
    """Measure bytes for each W1 record as loaded from its row, and for each further advance."""
    found: dict[str, Any] = {"record": {}, "advance": {}}
    text = json.dumps(workloads.stored(0, 0))
    for peer in PEERS:
        known = {**names(peer, json.loads(text)), "loads": json.loads, "text": text}
        load = eval(f"lambda: {peer.load}".replace("row", "loads(text)"), known)
        found["record"][peer.name] = measure.bytes_each(load, scale.records)
        newest = [known["record"]]

        def advance(newest: list[Any] = newest) -> Any:
            newest[0] = newest[0].advance(now=workloads.NOW.replace())  # A time of its own.
            return newest[0]

        found["advance"][peer.name] = measure.bytes_each(advance, scale.records)
    return found


def importing(scale: Scale) -> dict[str, Any]:
    """Time the import in fresh processes, against the standard-library modules it needs."""
    codes = {
        "agui_runs": "import agui_runs",
        "its standard-library modules": f"import {STANDARD_LIBRARY}",
        measure.AGAIN: "import agui_runs",
        "pydantic": "import pydantic; pydantic.BaseModel",
        "msgspec": "import msgspec",
        "attrs, cattrs": "import attrs, cattrs",
        "mashumaro": "import mashumaro",
    }
    return figures(measure.imports(codes, rounds=scale.processes))


def flat(scale: Scale) -> dict[str, Any]:
    """Time `advance` on ever larger snapshots, and on ever more interrupts."""
    found: dict[str, Any] = {}
    advance = "record.advance(now=now)"
    rows = {size: workloads.stored(size, 0) for size in (0, *scale.snapshots)}
    times = measure.interleaved(
        {
            f"{peer.name} {size}": (advance, live(peer, row))
            for peer in DRAWN
            for size, row in rows.items()
        },
        rounds=scale.rounds,
        seconds=scale.seconds / 2,
    )
    found["snapshot"] = {
        "seconds": {
            peer.name: {size: times.median(f"{peer.name} {size}") for size in rows}
            for peer in DRAWN
        },
        "most": max(times.ratio(f"agui_runs {size}", "agui_runs 0") for size in rows),
    }
    counts = (0, *scale.interrupts)
    times = measure.interleaved(
        {str(count): (advance, live(OURS, workloads.stored(0, count))) for count in counts},
        rounds=scale.rounds,
        seconds=scale.seconds / 2,
    )
    found["interrupts"] = {
        "seconds": {"agui_runs": {count: times.median(str(count)) for count in counts}},
        "most": max(times.ratio(str(count), "0") for count in counts),
    }
    return found


def growth(scale: Scale) -> dict[str, Any]:
    """Time what grows: loading, storing and digests with the snapshot, `answer` with its list."""
    found: dict[str, Any] = {}
    values = {size: workloads.stored(size, 0) for size in scale.snapshots}
    for title, peers, code in (
        ("from_storage", DRAWN, lambda peer: peer.load),
        ("to_storage", DRAWN, lambda peer: peer.store),
        ("digest", (OURS,), lambda _: "digest(row['snapshot'])"),
    ):
        seconds: dict[str, dict[int, float]] = {peer.name: {} for peer in peers}
        for size, row in values.items():
            statements = {
                peer.name: (code(peer), {**names(peer, row), "digest": agui_runs.digest})
                for peer in peers
            }
            rounds = scale.rounds if size < 2**20 else max(2, scale.rounds // 5)
            times = measure.interleaved(statements, rounds=rounds, seconds=scale.seconds)
            for peer in peers:
                seconds[peer.name][size] = times.median(peer.name)
        found[title] = {
            "seconds": seconds,
            "slope": measure.slope(list(seconds["agui_runs"].items())),
        }
    answered = {
        count: measure.interleaved(
            {"agui_runs": answering(count)}, rounds=scale.rounds // 2 + 1, seconds=scale.seconds
        ).median("agui_runs")
        for count in scale.interrupts
    }
    found["answer"] = {
        "seconds": {"agui_runs": answered},
        "slope": measure.slope(list(answered.items())),
    }
    return found


FAST = {
    "operations": operations,
    "sharing": sharing,
    "answers": answers,
    "digests": digests,
    "flat": flat,
}
"""Measured in three processes."""

SLOW = {"whole_run": whole_run, "memory": memory, "importing": importing, "growth": growth}
"""Measured once."""
