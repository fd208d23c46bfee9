"""What a store makes of a row: docs/storage.md says it, and these tests hold it."""

import json

import pytest
from crowd import THREAD, new_run

from agui_runs import RunRecord, digest

NUMBERS = [1e300, 1e23, 1e22, 1e21, 1e16, 1.0, -0.0, 0.1, 1e-7, 5e-324, 2**53 + 1, 10**400]


@pytest.fixture
def sent(runner, store):
    """Return a function that puts a snapshot into the store and gives what comes back."""

    def send(snapshot, run_id="r"):
        async def story():
            await store.reserve(new_run(run_id, snapshot=snapshot))
            return (await store.load((*THREAD, run_id))).run

        return runner.run(story()).snapshot

    return send


KEEPS_TEXT = pytest.mark.parametrize("kind", ["sqlite", "redis"], scope="session")
KEEPS_VALUES = pytest.mark.parametrize("kind", ["postgresql", "sqlalchemy"], scope="session")


@KEEPS_TEXT
def test_a_store_of_text_gives_back_every_number_as_it_was(sent):
    assert [json.dumps(number) for number in sent(NUMBERS)] == list(map(json.dumps, NUMBERS))


@KEEPS_VALUES
def test_jsonb_writes_large_floats_as_ints_and_a_zero_without_its_sign(sent):
    back = sent(NUMBERS)
    assert list(map(json.dumps, back)) == [
        "1" + 300 * "0",
        "1" + 23 * "0",
        "1" + 22 * "0",
        "1" + 21 * "0",
        "1" + 16 * "0",
        "1.0",
        "0.0",
        "0.1",
        "1e-07",
        "5e-324",
        "9007199254740993",
        "1" + 400 * "0",
    ]
    # A float and the int of its digits are one value only where the double is that int.
    assert [was == now for was, now in zip(NUMBERS, back, strict=True)] == [False, False] + 10 * [
        True
    ]


@KEEPS_VALUES
@pytest.mark.parametrize("number", NUMBERS)
def test_a_digest_over_what_jsonb_gives_back_fits_but_for_floats_from_1e21(sent, number):
    fits = digest({"amount": number}) == digest(sent({"amount": number}))
    assert fits == (not isinstance(number, float) or number < 1e21)


@KEEPS_VALUES
def test_json_text_in_a_snapshot_comes_back_from_jsonb_as_it_was(sent):
    arguments = json.dumps({"amount": 1e300, "zero": -0.0})
    assert sent({"arguments": arguments}) == {"arguments": arguments}


@KEEPS_VALUES
def test_jsonb_puts_keys_into_an_order_of_its_own(sent):
    assert list(sent({"bb": 1, "a": 2, "c": 3})) == ["a", "c", "bb"]


@KEEPS_VALUES
def test_a_swap_is_by_value_so_a_row_that_jsonb_writes_otherwise_can_be_saved(runner, store):
    async def story():
        row, _ = await store.reserve(new_run("r", snapshot=NUMBERS))
        saved = await store.save(row, row.run.advance(now=row.run.created_at))
        again = await store.save(saved, saved.run.advance(now=row.run.created_at))
        return again.run.sequence

    assert runner.run(story()) == 2


@KEEPS_VALUES
def test_jsonb_refuses_nul(sent):
    import psycopg
    import sqlalchemy.exc

    refusals = (psycopg.errors.UntranslatableCharacter, sqlalchemy.exc.DBAPIError)
    with pytest.raises(refusals, match="unsupported Unicode escape sequence"):
        sent({"tool": "a\0b"})


@KEEPS_VALUES
def test_an_id_with_nul_is_refused_by_text(runner, store):
    import psycopg
    import sqlalchemy.exc

    with pytest.raises((psycopg.DataError, sqlalchemy.exc.DBAPIError), match="NUL"):
        runner.run(store.reserve(new_run("a\0b")))


@KEEPS_TEXT
def test_a_store_of_text_keeps_nul_in_a_snapshot(sent):
    assert sent({"tool": "a\0b"}) == {"tool": "a\0b"}


@pytest.mark.parametrize("kind", ["redis"], scope="session")
def test_redis_gives_bytes_unless_told_otherwise_and_json_takes_them(servers, kind):
    from redis import Redis

    run = new_run("r").run
    with Redis.from_url(servers["redis"]) as db:
        db.set("row", json.dumps(run.to_storage()))
        raw = db.get("row")
        db.delete("row")
    assert type(raw) is bytes
    assert RunRecord.from_storage(json.loads(raw)) == run
