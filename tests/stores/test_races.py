"""Eight processes on one store: nothing acknowledged is lost, and nothing is stored twice."""

import signal
from collections import Counter

import crowd as they
from crowd import CONTEXT, PATIENCE, SIZE, THREAD

KEYS = 100
PAUSES = 30
ATTEMPTS = 1_000
KILLS = 200
EVENTS = 10_000
RACES = 500
WRITERS = 3
AT_ONCE = 4


def test_of_eight_who_reserve_one_key_one_has_it(crowd, url, tell):
    found = crowd.do(url, they.reserve_the_same, KEYS)
    by_key = list(zip(*found, strict=True))
    assert [sum(is_new for is_new, _, _ in key) for key in by_key] == [1] * KEYS
    assert [len({digest for _, _, digest in key}) for key in by_key] == [1] * KEYS
    assert all(is_same for key in by_key for is_new, is_same, _ in key if is_new)
    attached = sum(is_same and not is_new for key in by_key for is_new, is_same, _ in key)
    conflicts = sum(not is_same for key in by_key for _, is_same, _ in key)
    assert (attached, conflicts) == (KEYS * 3, KEYS * 4)
    tell(
        f"{SIZE * KEYS} reservations of {KEYS} keys by {SIZE} processes: {KEYS} new, "
        f"{attached} attached, {conflicts} refused as another input, given twice: 0"
    )


def test_of_eight_who_answer_one_pause_one_decides(crowd, store, runner, url, tell):
    async def pause():
        return [(await store.reserve(they.new_pause(f"p-{n}")))[0] for n in range(PAUSES)]

    async def look():
        rows = [await store.load(row.run.key) for row in pending]
        return rows, await store.decisions(*THREAD, [row.run.run_id for row in pending])

    pending = runner.run(pause())
    outcomes = sum(crowd.do(url, they.answer_the_same, [row.run.key for row in pending]), Counter())
    assert outcomes["stored"] == PAUSES
    assert set(outcomes) == {"stored", "same", "interrupt_decided"}
    decided, audit = runner.run(look())
    stands = {row.run.run_id: row.run.interrupts[0].status for row in decided}
    assert {made.run_id: made.decision for made in audit} == stands
    assert len(audit) == PAUSES

    more = sum(crowd.do(url, they.answer_again, pending[0], ATTEMPTS // SIZE), Counter())
    assert more["stored"] == 0
    assert more.total() == ATTEMPTS
    assert runner.run(look()) == (decided, audit)
    tell(
        f"{outcomes.total()} answers to {PAUSES} pauses by {SIZE} processes: {PAUSES} stored, "
        f"{outcomes['same']} the same, {outcomes['interrupt_decided']} refused; {ATTEMPTS} more "
        f"to one: {more['interrupt_decided']} refused, {more['lost the swap']} lost the swap, "
        f"{more['same']} the same, changed: 0"
    )


def test_a_writer_that_is_killed_loses_nothing_it_was_told_is_stored(store, runner, url, tell):
    """Half of them between load and save, and half somewhere in the save."""
    row, _ = runner.run(store.reserve(they.new_run("killed")))
    acknowledged = []
    for number in range(0, KILLS, AT_ONCE):
        writers = [start_writer(url, row.run.key, (number + n) % 2 == 0) for n in range(AT_ONCE)]
        for process, pipe in writers:
            while (told := next_told(pipe)) != "between load and save":
                acknowledged.append(told)
            process.kill()
        for process, pipe in writers:
            process.join()
            pipe.close()
            assert process.exitcode == -signal.SIGKILL
    stored = runner.run(store.load(row.run.key)).run.sequence
    assert len(acknowledged) == KILLS * 5
    assert len(set(acknowledged)) == len(acknowledged)
    assert set(acknowledged) <= set(range(1, stored + 1))
    landed = stored - len(acknowledged)
    # What was not acknowledged may be stored, once for each of those that were not held.
    assert 0 <= landed <= KILLS // 2
    tell(
        f"{KILLS} writers killed at the save: {len(acknowledged)} saves acknowledged, lost: 0, "
        f"{landed} stored before their writer could be told"
    )


def start_writer(url, key, is_held):
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(
        target=they.be_a_writer, args=(url, key, theirs, is_held), daemon=True
    )
    process.start()
    theirs.close()
    return process, ours


def next_told(pipe):
    assert pipe.poll(PATIENCE)
    return pipe.recv()


def test_events_of_several_writers_are_numbered_without_gap_or_double(
    crowd, store, runner, url, tell
):
    row, _ = runner.run(store.reserve(they.new_run("events")))
    counted = crowd.do(url, they.count_events, row.run.key, EVENTS, WRITERS)
    numbers = sorted(number for each in counted for number in each.numbers)
    assert numbers == list(range(1, EVENTS + 1))
    assert runner.run(store.load(row.run.key)).run.sequence == EVENTS
    seconds = max(each.seconds for each in counted)
    tell(
        f"{EVENTS} events of one run by {WRITERS} writers: 1 to {EVENTS}, gaps: 0, doubles: 0, "
        f"{sum(each.too_late for each in counted)} too late, {EVENTS / seconds:.0f} a second"
    )


def test_a_cancel_and_a_success_at_once_report_the_first_for_ever(crowd, store, runner, url, tell):
    ends = crowd.do(url, they.end_the_same, RACES)
    first = {run_id: event for each in ends for run_id, (won, event) in each.items() if won}
    assert sum(won for each in ends for won, _ in each.values()) == len(first) == RACES
    assert all(event == first[run_id] for each in ends for run_id, (_, event) in each.items())
    again = crowd.do(url, they.end_again, RACES)
    assert all(event == first[run_id] for reported, _ in again for run_id, event in reported)
    refused = sum(refused for _, refused in again)
    assert refused == 2 * RACES
    outcomes = Counter(event["outcome"]["type"] for event in first.values())
    tell(
        f"{RACES} races of a cancel and a success: {outcomes['cancelled']} cancelled, "
        f"{outcomes['success']} succeeded, {RACES + refused} later endings refused or the same, "
        f"reported otherwise: 0"
    )


def test_what_a_save_for_each_event_costs(crowd, url, tell):
    """A measurement: each writer has a run of its own, and saves each event or every hundredth."""
    events = 2_000
    rates = []
    for block in (1, 100):
        counted = crowd.do(url, they.count_own_events, events, block)
        assert all(each.numbers == list(range(1, events + 1)) for each in counted)
        rates.append(SIZE * events / max(each.seconds for each in counted))
    each, hundredth = rates
    tell(
        f"{SIZE} writers, a run each: {each:.0f} events a second, each saved; "
        f"{hundredth:.0f} where every 100th is"
    )
