"""The lifecycle against a table that a reader can compare with docs/lifecycle.md."""

from contextlib import suppress
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_runs import AguiRunsError, ConfigurationError, Interrupt, RunRecord, StreamError
from builders import FAILURE, HOUR, SEC, T0, make_ask, make_run, via_json

NOW = T0 + 60 * SEC
NAIVE = NOW.replace(tzinfo=None)
STATE = {"step": 1}
BAD_STATE = {"step": {1}}

# What the interrupted record of the table holds: an open request and an answered one.
OPEN = make_ask()
DONE = make_ask(id="ask-2").decide("denied", now=T0)
OTHER = make_ask(id="ask-3")
CHANGED = replace(OPEN, arguments_digest="ff" * 32)
SWAPPED = replace(DONE, reason="other")
LATE = OPEN.expires_at

RESERVED = make_run(snapshot={"step": 0})
STARTED = RESERVED.start(now=T0)
RECORDS = {
    "reserved": RESERVED,
    "started": STARTED,
    "succeeded": STARTED.finish("succeeded", now=T0),
    "interrupted": STARTED.interrupted([OPEN, DONE], now=T0),
    "cancelled": STARTED.finish("cancelled", now=T0),
    "failed": STARTED.finish("failed", now=T0, failure=FAILURE),
}


def say(status, interrupt=OPEN, at=NOW):
    """Return the interrupt with an answer on it, also one that `decide` would refuse."""
    return replace(interrupt, status=status, decided_at=at)


def call(method, *arguments, now=NOW, **more):
    """Return the call of this method, for any record."""
    return lambda run: getattr(run, method)(*arguments, now=now, **more)


# A cell is the status that follows, `same` for the very same object, `wrong` for
# ConfigurationError, or the code of a StreamError.
TABLE = """
call                     reserved    started     succeeded interrupted       cancelled failed
start                    started     same        run_ended run_ended         run_ended run_ended
start with a state       started     same        run_ended run_ended         run_ended run_ended
advance                  reserved    started     run_ended run_ended         run_ended run_ended
advance with a state     reserved    started     run_ended run_ended         run_ended run_ended
interrupted              interrupted interrupted run_ended run_ended         run_ended run_ended
interrupted as it is     interrupted interrupted run_ended same              run_ended run_ended
interrupted by fewer     interrupted interrupted run_ended run_ended         run_ended run_ended
interrupted in reverse   interrupted interrupted run_ended run_ended         run_ended run_ended
finish succeeded         succeeded   succeeded   same      run_ended         run_ended run_ended
finish cancelled         cancelled   cancelled   run_ended run_ended         same      run_ended
finish failed            failed      failed      run_ended run_ended         run_ended same
finish failed otherwise  failed      failed      run_ended run_ended         run_ended same
finish interrupted       wrong       wrong       run_ended same              run_ended run_ended
replace by an answer     wrong       wrong       wrong     interrupted       wrong     wrong
replace by a late save   wrong       wrong       wrong     interrupted       wrong     wrong
replace by a late cancel wrong       wrong       wrong     interrupted       wrong     wrong
replace by the same      wrong       wrong       wrong     same              wrong     wrong
replace by the answered  wrong       wrong       wrong     same              wrong     wrong
replace by a new request wrong       wrong       wrong     interrupt_changed wrong     wrong
replace by its answer    wrong       wrong       wrong     interrupt_changed wrong     wrong
replace late and wholly  wrong       wrong       wrong     interrupt_changed wrong     wrong
replace by the undecided wrong       wrong       wrong     interrupt_decided wrong     wrong
replace by a new answer  wrong       wrong       wrong     interrupt_decided wrong     wrong
replace by a new time    wrong       wrong       wrong     interrupt_decided wrong     wrong
replace by a late second wrong       wrong       wrong     interrupt_decided wrong     wrong
replace by a late yes    wrong       wrong       wrong     interrupt_expired wrong     wrong
replace by a late no     wrong       wrong       wrong     interrupt_expired wrong     wrong
"""

CALLS = {
    "start": call("start"),
    "start with a state": call("start", snapshot=STATE),
    "advance": call("advance"),
    "advance with a state": call("advance", snapshot=STATE),
    "interrupted": call("interrupted", [OTHER]),
    "interrupted as it is": call("interrupted", [replace(OPEN), replace(DONE)]),
    "interrupted by fewer": call("interrupted", [OPEN]),
    "interrupted in reverse": call("interrupted", [DONE, OPEN]),
    "finish succeeded": call("finish", "succeeded"),
    "finish cancelled": call("finish", "cancelled"),
    "finish failed": call("finish", "failed"),
    "finish failed otherwise": call("finish", "failed", failure={"message": "Another"}),
    "finish interrupted": call("finish", "interrupted"),
    "replace by an answer": call("replace_interrupt", say("approved")),
    "replace by a late save": call("replace_interrupt", say("approved"), now=LATE),
    "replace by a late cancel": call("replace_interrupt", say("cancelled", at=LATE)),
    "replace by the same": call("replace_interrupt", replace(OPEN)),
    "replace by the answered": call("replace_interrupt", replace(DONE)),
    "replace by a new request": call("replace_interrupt", CHANGED),
    "replace by its answer": call("replace_interrupt", say("denied", CHANGED)),
    "replace late and wholly": call("replace_interrupt", say("approved", SWAPPED, at=LATE)),
    "replace by the undecided": call("replace_interrupt", say("pending", DONE, at=None)),
    "replace by a new answer": call("replace_interrupt", say("approved", DONE)),
    "replace by a new time": call("replace_interrupt", say("denied", DONE)),
    "replace by a late second": call("replace_interrupt", say("approved", DONE, at=LATE)),
    "replace by a late yes": call("replace_interrupt", say("approved", at=LATE)),
    "replace by a late no": call("replace_interrupt", say("denied", at=LATE + HOUR)),
}

# Arguments come before the state: no record takes these, not even one that would stay the same.
WRONG = {
    "start at a naive time": call("start", now=NAIVE),
    "start with a bad state": call("start", snapshot=BAD_STATE),
    "advance at a naive time": call("advance", now=NAIVE),
    "advance with a bad state": call("advance", snapshot=BAD_STATE),
    "interrupted at a naive time": call("interrupted", [OPEN, DONE], now=NAIVE),
    "interrupted by nothing": call("interrupted", []),
    "interrupted by None": call("interrupted", None),
    "interrupted by nothing pending": call("interrupted", [DONE]),
    "interrupted by one id twice": call("interrupted", [OPEN, CHANGED]),
    "interrupted by one Interrupt": call("interrupted", OPEN),
    "interrupted by a row": call("interrupted", [OPEN.to_storage()]),
    "interrupted by a mapping": call("interrupted", {OPEN: DONE}),
    "interrupted by text": call("interrupted", "ask-1"),
    "interrupted by bytes": call("interrupted", b""),
    "finish reserved": call("finish", "reserved"),
    "finish started": call("finish", "started"),
    "finish in another case": call("finish", "Failed"),
    "finish without a status": call("finish", None),
    "finish succeeded at a naive time": call("finish", "succeeded", now=NAIVE),
    "finish interrupted at a naive time": call("finish", "interrupted", now=NAIVE),
    "finish cancelled at a naive time": call("finish", "cancelled", now=NAIVE),
    "finish failed at a naive time": call("finish", "failed", now=NAIVE),
    "finish succeeded with a failure": call("finish", "succeeded", failure=FAILURE),
    "finish interrupted with a failure": call("finish", "interrupted", failure=FAILURE),
    "finish cancelled with a failure": call("finish", "cancelled", failure=FAILURE),
    "finish failed with an exception": call("finish", "failed", failure=RuntimeError("x")),
    "finish failed with text": call("finish", "failed", failure="x"),
    "finish failed without a message": call("finish", "failed", failure={"code": "x"}),
    "finish failed with a blank code": call("finish", "failed", failure={**FAILURE, "code": " "}),
    "finish failed with a traceback": call("finish", "failed", failure={**FAILURE, "trace": "x"}),
    "replace at a naive time": call("replace_interrupt", OPEN, now=NAIVE),
    "replace by a row": call("replace_interrupt", OPEN.to_storage()),
    "replace by an unknown one": call("replace_interrupt", say("denied", OTHER)),
    "replace by one in capitals": call("replace_interrupt", say("denied", make_ask(id="ASK-1"))),
}

HEADER, *ROWS = TABLE.strip().splitlines()
STATUSES = HEADER.split()[1:]
GRID = [
    (row[:25].strip(), status, outcome)
    for row in ROWS
    for status, outcome in zip(STATUSES, row[25:].split(), strict=True)
]
GRID += [(call, status, "wrong") for call in WRONG for status in STATUSES]

# What a call may change beside `updated_at`.
CHANGES = {
    "start": {"status", "snapshot"},
    "advance": {"sequence", "snapshot"},
    "interrupted": {"status", "interrupts"},
    "finish": {"status", "failure"},
    "replace": {"interrupts"},
}


def make(call, status):
    return {**CALLS, **WRONG}[call](RECORDS[status])


def test_the_table_has_every_status_and_every_call():
    assert (tuple(STATUSES), {call for call, *_ in GRID}) == (RunRecord.STATUSES, {*CALLS, *WRONG})


@pytest.mark.parametrize(("call", "status", "outcome"), GRID)
def test_a_call_ends_as_the_table_says(call, status, outcome):
    try:
        after = make(call, status)
    except StreamError as error:
        found = error.code
    except ConfigurationError:
        found = "wrong"
    else:
        found = "same" if after is RECORDS[status] else after.status
    assert found == outcome


@pytest.mark.parametrize(("call", "status"), [cell[:2] for cell in GRID])
def test_a_call_leaves_its_record_as_it_was(call, status):
    record = RECORDS[status]
    before, stored = via_json(record), record.to_storage()
    with suppress(AguiRunsError):
        make(call, status)
    assert (record, record.to_storage()) == (before, stored)


@pytest.mark.parametrize(
    ("call", "status"), [cell[:2] for cell in GRID if cell[2] in RunRecord.STATUSES]
)
def test_a_call_changes_only_what_it_is_for_and_the_time(call, status):
    before, after = RECORDS[status], make(call, status)
    changed = {
        field.name
        for field in fields(RunRecord)
        if getattr(before, field.name) != getattr(after, field.name)
    }
    assert {"updated_at"} < changed <= {"updated_at", *CHANGES[call.split()[0]]}
    assert after.updated_at == (LATE if call == "replace by a late save" else NOW)


@pytest.mark.parametrize(
    ("call", "field", "value"),
    [
        ("start", "snapshot", {"step": 0}),
        ("start with a state", "snapshot", STATE),
        ("advance", "snapshot", {"step": 0}),
        ("advance", "sequence", 1),
        ("advance with a state", "snapshot", STATE),
        ("advance with a state", "sequence", 1),
        ("interrupted in reverse", "interrupts", (DONE, OPEN)),
        ("finish failed", "failure", None),
        ("finish failed otherwise", "failure", {"message": "Another", "code": None}),
    ],
)
def test_a_call_gives_what_it_was_asked_for(call, field, value):
    assert getattr(make(call, "reserved"), field) == value


def test_an_interrupt_is_found_by_exactly_its_id():
    run = RECORDS["interrupted"]
    assert [run.interrupt(each) for each in ("ask-1", "ask-2", "ASK-2")] == [OPEN, DONE, None]


def test_the_key_is_what_the_run_was_reserved_by():
    assert RESERVED.key == ("tenant-1", "thread-1", "run-1")


def test_an_answer_takes_the_place_of_its_request():
    assert make("replace by an answer", "interrupted").interrupts == (say("approved"), DONE)


@pytest.mark.parametrize(
    ("status", "true"),
    [
        ("reserved", set()),
        ("started", {"is_started"}),
        ("succeeded", {"is_terminal"}),
        ("interrupted", {"is_terminal", "is_interrupted", "is_awaiting_approval"}),
        ("cancelled", {"is_terminal"}),
        ("failed", {"is_terminal"}),
    ],
)
def test_a_record_is_what_its_status_says(status, true):
    run = RECORDS[status]
    assert {name for name in dir(run) if name[:3] == "is_" and getattr(run, name)} == true


@pytest.mark.parametrize(
    ("ask", "true"),
    [
        (OPEN, {"is_pending"}),
        (say("approved"), {"is_decided", "is_approved"}),
        (say("denied"), {"is_decided", "is_denied"}),
        (say("cancelled"), {"is_decided", "is_cancelled"}),
    ],
)
def test_an_interrupt_is_what_its_status_says(ask, true):
    assert {name for name in dir(ask) if name[:3] == "is_" and getattr(ask, name) is True} == true


# What `decide` answers at NOW, and whether the request is expired and answerable then.
DECIDE = """
state             approved          denied            cancelled         expired answerable
open              approved          denied            cancelled         no      yes
endless           approved          denied            cancelled         no      yes
expired           interrupt_expired interrupt_expired cancelled         yes     no
long_expired      interrupt_expired interrupt_expired cancelled         yes     no
decided           interrupt_decided interrupt_decided interrupt_decided no      no
decided_endless   interrupt_decided interrupt_decided interrupt_decided no      no
decided_expired   interrupt_decided interrupt_decided interrupt_decided yes     no
"""
EXPIRY = {"endless": None, "expired": NOW, "long_expired": NOW - HOUR}
ASKS = {state: make_ask(expires_at=EXPIRY[state]) for state in EXPIRY} | {"open": OPEN}
ASKS |= {"decided": DONE} | {
    f"decided_{state}": say("denied", ASKS[state], T0) for state in ("endless", "expired")
}


@pytest.mark.parametrize("row", DECIDE.strip().splitlines()[1:], ids=lambda row: row.split()[0])
def test_a_request_is_decided_as_the_table_says(row):
    state, *outcomes, expired, answerable = row.split()
    ask, found = ASKS[state], []
    for decision in Interrupt.DECISIONS:
        try:
            decided = ask.decide(decision, now=NOW)
        except StreamError as error:
            found.append(error.code)
        else:
            found.append(decided.status)
            assert decided == say(decision, ask)
    assert found == outcomes
    assert (ask.is_expired(NOW), ask.is_answerable(NOW)) == (expired == "yes", answerable == "yes")


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
@pytest.mark.parametrize(
    ("decision", "now"),
    [("pending", NOW), ("Approved", NOW), (True, NOW), (None, NOW), ("denied", NAIVE)],
)
def test_a_wrong_answer_is_refused_on_every_request(ask, decision, now):
    with pytest.raises(ConfigurationError):
        ask.decide(decision, now=now)


FIRST, SECOND = make_ask(), make_ask(id="ask-2")
MOVES = {
    "start": lambda run, now: run.start(now=now, snapshot=STATE),
    "advance": lambda run, now: run.advance(now=now),
    "succeed": lambda run, now: run.finish("succeeded", now=now),
    "cancel": lambda run, now: run.finish("cancelled", now=now),
    "fail": lambda run, now: run.finish("failed", now=now, failure=FAILURE),
    "pause": lambda run, now: run.interrupted([FIRST, SECOND], now=now),
    "pause otherwise": lambda run, now: run.interrupted([SECOND], now=now),
    "approve": lambda run, now: run.replace_interrupt(FIRST.decide("approved", now=now), now=now),
    "deny": lambda run, now: run.replace_interrupt(FIRST.decide("denied", now=now), now=now),
    "drop": lambda run, now: run.replace_interrupt(SECOND.decide("cancelled", now=now), now=now),
    "undo": lambda run, now: run.replace_interrupt(FIRST, now=now),
    "swap": lambda run, now: run.replace_interrupt(say("approved", CHANGED, now), now=now),
}
# The clocks of several processes differ, so a later call may come with an earlier time.
walks = st.lists(st.tuples(st.sampled_from([*MOVES, "advance"]), st.integers(-60, 660)))


def steps(walk):
    """Return each step of the walk that changed something: move, time, before and after."""
    record, taken = make_run(), []
    for move, seconds in walk:
        now = T0 + seconds * SEC
        before = record
        with suppress(AguiRunsError):
            record = MOVES[move](before, now)
        if record is not before:
            taken.append((move, now, before, record))
    return taken


@given(walks)
def test_no_walk_leaves_a_terminal_status_or_comes_back_to_reserved(walk):
    for _, _, before, after in steps(walk):
        assert before.status in ("reserved", "started", after.status)
        assert after.status != "reserved" or before.status == "reserved"


@given(walks)
def test_on_a_walk_a_request_is_decided_once_and_never_changed(walk):
    for _, now, before, after in steps(walk):
        if before.is_terminal:
            for old, new in zip(before.interrupts, after.interrupts, strict=True):
                assert new == old or (old.is_pending and new == old.decide(new.status, now=now))


@given(walks)
def test_every_advance_of_a_walk_counts_one_and_nothing_else_counts(walk):
    for move, _, before, after in steps(walk):
        assert after.sequence - before.sequence == (move == "advance")


@given(walks)
def test_the_last_change_of_a_walk_is_its_updated_at(walk):
    assert all(after.updated_at == now for _, now, _, after in steps(walk))


@given(walks)
def test_an_earlier_record_of_a_walk_never_changes(walk):
    records, stored = [make_run()], [make_run().to_storage()]
    for move, seconds in walk:
        with suppress(AguiRunsError):
            records.append(MOVES[move](records[-1], T0 + seconds * SEC))
            stored.append(records[-1].to_storage())
    assert [record.to_storage() for record in records] == stored
