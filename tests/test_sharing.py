"""What is frozen already is taken as it is, with the outcome that a plain copy of it has.

Every test compares two roads to one value: through parts of an earlier snapshot, and through
the plain copy of all of it.
"""

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_runs import ConfigurationError, digest
from builders import make_run, nested
from strategies import json_values, junk, texts


def frozen(value):
    """Return the value as a record holds it."""
    return make_run(snapshot=value).snapshot


def plain(value):
    """Return a copy without anything frozen in it; a host's own kind of container stays itself."""
    if type(value) in (dict, FROZEN_OBJECT):
        return {key: plain(item) for key, item in value.items()}
    if type(value) in (list, tuple, FROZEN_ARRAY):
        return [plain(item) for item in value]
    return value


FROZEN_OBJECT, FROZEN_ARRAY = type(frozen({})), type(frozen([]))


def outcome(value):
    """Return what becomes of a snapshot: its text, or the words in which it is refused."""
    try:
        return json.dumps(make_run(snapshot=value).to_storage()["snapshot"])
    except ConfigurationError as refusal:
        return str(refusal)


def levels(value):
    """Return how deep a value nests, as a reader would count it."""
    if not isinstance(value, list | dict):
        return 0
    return 1 + max(map(levels, value.values() if isinstance(value, dict) else value), default=0)


# A part is frozen, and may nest so deep that there is no more room for it where it is put.
parts = st.one_of(json_values, st.integers(90, 100).map(nested)).map(frozen)


def around(inner):
    arrays = st.lists(inner, max_size=3)
    objects = st.dictionaries(texts, inner, max_size=3)
    return arrays | arrays.map(tuple) | objects | st.integers(1, 60).flatmap(deeper(inner))


def deeper(inner):
    """Return a function that puts a value so many arrays deep."""

    def wrapped(depth):
        def put(value):
            for _ in range(depth):
                value = [value]
            return value

        return inner.map(put)

    return wrapped


mixed = st.recursive(parts | json_values, around, max_leaves=8)
spoiled = st.recursive(parts | junk, around, max_leaves=8)


@given(mixed)
def test_frozen_parts_make_the_snapshot_that_their_plain_copies_make(value):
    assert outcome(value) == outcome(plain(value))


@given(spoiled)
def test_beside_frozen_parts_the_same_is_refused_in_the_same_words(value):
    try:
        copied = plain(value)
    except RecursionError:
        return
    assert outcome(value) == outcome(copied)


@given(json_values.map(frozen), texts)
def test_a_frozen_part_is_not_copied(part, key):
    kept = frozen({key: [part]})
    assert kept[key][0] is part


@given(mixed)
def test_a_snapshot_with_shared_parts_hashes_equals_pickles_and_digests_like_a_plain_one(value):
    try:
        shared = frozen(value)
    except ConfigurationError:
        return
    alone = frozen(plain(value))
    assert (shared, hash(shared), digest(shared)) == (alone, hash(alone), digest(alone))
    assert pickle.loads(pickle.dumps(shared)) == copy.deepcopy(shared) == alone


@given(mixed)
def test_a_frozen_container_knows_how_deep_it_nests(value):
    try:
        shared = frozen([value])
    except ConfigurationError:
        return
    assert shared.depth == levels(shared)


def test_a_state_that_holds_the_state_before_twice_is_refused_at_its_101st_level():
    state = frozen({})
    for _ in range(49):
        state = frozen({"history": [state, state]})
    depth, refusal = state.depth, outcome({"history": [state, state]})
    assert (depth, refusal.partition(": ")[2][-47:]) == (
        99,
        "nested deeper than 100 levels, or inside itself",
    )


def test_the_place_where_shared_parts_nest_too_deep_is_named():
    deep = frozen({"short": [1], "long": nested(99)})
    assert outcome({"a": frozen([1]), "b": deep}) == (
        f"run record: snapshot.b.long{'[0]' * 24}[...: "
        "nested deeper than 100 levels, or inside itself"
    )


def test_one_changed_key_shares_all_the_rest():
    before = make_run(snapshot={"messages": [{"id": 1}, {"id": 2}], "step": 6})
    after = before.advance(now=before.created_at, snapshot={**before.snapshot, "step": 7})
    assert after.snapshot == {"messages": [{"id": 1}, {"id": 2}], "step": 7}
    assert after.snapshot["messages"] is before.snapshot["messages"]


def test_one_message_more_shares_the_messages_before():
    before = make_run(snapshot=[{"id": 1}, {"id": 2}])
    after = before.advance(now=before.created_at, snapshot=[*before.snapshot, {"id": 3}])
    assert after.snapshot == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert all(map(lambda old, new: old is new, before.snapshot, after.snapshot))


@pytest.mark.parametrize("kind", [dict, list])
def test_a_frozen_container_that_was_made_by_force_is_checked_like_a_plain_one(kind):
    forged = kind.__new__(type(frozen(kind())))
    kind.__init__(forged, [("a", {1})])
    assert outcome([forged]) == outcome([kind([("a", {1})])])
