"""Nobody else ever sees a value before it is whole: no other thread, no look at all objects."""

import gc
import pickle
import sys
import threading
import time
from collections import Counter
from dataclasses import fields, replace

import pytest

from agui_runs import Interrupt, RunRecord
from builders import FAILURE, SEC, T0, make_ask, make_run

SLOTS = {cls: [field.name for field in fields(cls)] for cls in (Interrupt, RunRecord)}
ASK = make_ask()
RUN = make_run(snapshot={"items": [1, {"a": [2]}]})
PAUSED = RUN.interrupted([ASK, make_ask(id="ask-2")], now=T0)
ROW, ASK_ROW = PAUSED.to_storage(), ASK.to_storage()
YES = [
    {"interruptId": name, "status": "resolved", "payload": {"approved": True}}
    for name in ("ask-1", "ask-2")
]
# All that makes a value.
MAKING = {
    "constructor": lambda: (make_run(snapshot={"a": [1]}), make_ask()),
    "create": lambda: Interrupt.create(tool_call_id="c", arguments_digest="a", expires_at=T0),
    "from_storage": lambda: (RunRecord.from_storage(ROW), Interrupt.from_storage(ASK_ROW)),
    "pickle": lambda: pickle.loads(pickle.dumps(PAUSED)),
    "replace": lambda: (replace(PAUSED, sequence=1), replace(ASK, message="?")),
    "start": lambda: RUN.start(now=T0),
    "advance": lambda: RUN.advance(now=T0, snapshot={**RUN.snapshot, "step": [1]}),
    "interrupted": lambda: RUN.interrupted([ASK], now=T0),
    "finish": lambda: RUN.finish("failed", now=T0, failure=FAILURE),
    "decide": lambda: ASK.decide("approved", now=T0 + SEC),
    "replace_interrupt": lambda: PAUSED.replace_interrupt(ASK.decide("denied", now=T0), now=T0),
    "answer": lambda: PAUSED.answer(YES, now=T0),
}


def lacking(found):
    """Return the slots that are empty in a value, or None where the object is no value of ours."""
    slots = SLOTS.get(type(found))
    return slots and [name for name in slots if not hasattr(found, name)]


def unsealed(known=()):
    """Look at all objects there are, and count the values and those that lack a slot."""
    seen = Counter()
    for found in gc.get_objects():
        missing = lacking(found)
        if missing is not None and not any(found is shell for shell in known):
            seen["whole" if not missing else "unsealed"] += 1
    return seen


@pytest.mark.parametrize("make", MAKING.values(), ids=MAKING)
def test_between_any_two_lines_no_value_lacks_a_slot(make):
    """The tracer looks after every line, also in the middle of writing a value."""
    seen = Counter()

    def look(frame, event, arg):
        if "agui_runs" not in frame.f_globals.get("__name__", ""):
            return None
        held = [*frame.f_locals.values(), *gc.get_referents(*frame.f_locals.values())]
        for found in held:
            missing = lacking(found)
            if missing is not None:
                seen["whole" if not missing else "unsealed"] += 1
        seen.update(lines=1)
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        made = make()
    finally:
        sys.settrace(before)
    assert made
    assert (seen["unsealed"], seen["lines"] > 0) == (0, True)


def test_another_thread_never_finds_an_unsealed_object():
    """One thread looks at all objects again and again while others make values."""
    stop, made, seen = threading.Event(), Counter(), Counter()

    def work(name):
        while not stop.is_set():
            MAKING[name]()
            made[name] += 1

    shells = [found for found in gc.get_objects() if lacking(found)]  # Of other tests.
    workers = [threading.Thread(target=work, args=[name]) for name in MAKING]
    interval = sys.getswitchinterval()
    gc.freeze()  # What is there already is no longer listed, so that a look is quick.
    sys.setswitchinterval(1e-6)
    try:
        for worker in workers:
            worker.start()
        deadline = time.monotonic() + 60
        # At least so many looks, and at least one value by every road, while it looked.
        while time.monotonic() < deadline and not (
            seen["looks"] >= 100 and seen["whole"] and len(made) == len(MAKING)
        ):
            seen.update(unsealed(shells), looks=1)
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        gc.unfreeze()
        for worker in workers:
            worker.join()
    assert {*made} == {*MAKING}
    assert (seen["unsealed"], seen["whole"] > 0, seen["looks"] >= 100) == (0, True, True)


def test_an_object_that_lacks_a_slot_is_found_by_a_look_at_all_objects():
    shell = object.__new__(RunRecord)
    assert (lacking(shell), unsealed()["unsealed"] > 0) == (SLOTS[RunRecord], True)
