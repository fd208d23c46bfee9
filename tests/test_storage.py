"""Stored rows: read from any mapping, written as plain JSON that belongs to the caller."""

import copy
import json
from collections import ChainMap, UserDict, defaultdict
from functools import partial
from types import MappingProxyType

from agui_runs import Interrupt, RunRecord
from builders import T0, make_run
from examples import (
    ASK,
    ASK_2,
    ASK_ROW,
    FAILED,
    FAILURE,
    LIVE,
    PAUSED,
    ROW,
    RUN,
    SECRET,
    VALUES,
    each,
    each_record,
    label,
    load,
    refusal,
    without,
)

REQUIRED = [(ASK_ROW, key) for key in ("id", "toolCallId", "argumentsDigest", "reason", "status")]
REQUIRED += [(ROW, key) for key in ("scope", "threadId", "runId", "digest", "status", "sequence")]
REQUIRED += [(ROW, "createdAt"), (ROW, "updatedAt"), (ASK_ROW, "expiresAt")]
OPTIONAL = [(ASK_ROW, key) for key in ("message", "decidedAt", "createdAt")]
OPTIONAL += [(ROW, "snapshot"), (ROW, "failure"), (ROW, "interrupts")]
OPTIONAL += [(FAILED.to_storage(), "failure")]
NO_ROWS = ["{}", "[]", b"{}", "", 7, True, [("id", "a")], {"id"}, ASK, RUN, iter([])]
EXTRA = {"_id": object(), "ttl": 86400, "version": 3, 7: None, "created_at": "soon"}


def test_keys_that_the_store_added_are_ignored():
    asks = [{**interrupt.to_storage(), **EXTRA} for interrupt in PAUSED.interrupts]
    assert load({**PAUSED.to_storage(), **EXTRA, "interrupts": asks}) == PAUSED


@each(("row", "key"), OPTIONAL)
def test_an_optional_key_may_be_absent_or_null(row, key):
    absent = {**row, key: [] if key == "interrupts" else None}
    assert load(without(row, key)).to_storage() == load({**row, key: None}).to_storage() == absent


@each(("row", "key"), REQUIRED)
def test_a_required_key_is_named_where_it_is_missing_and_null_only_for_no_expiry(row, key):
    cls = Interrupt if row is ASK_ROW else RunRecord
    assert f": {key} is missing" in refusal(cls.from_storage, without(row, key))
    assert f": {key} must be" in refusal(cls.from_storage, {**row, key: [SECRET]})
    if key == "expiresAt":
        assert cls.from_storage({**row, key: None}).expires_at is None
    else:
        assert f": {key} must be" in refusal(cls.from_storage, {**row, key: None})


@each("value", NO_ROWS, ids=label)
def test_what_is_no_object_is_no_row_and_never_skipped(value):
    assert ": the stored value must be a mapping" in refusal(Interrupt.from_storage, value)
    assert ": the stored value must be a mapping" in refusal(RunRecord.from_storage, value)
    row = {**PAUSED.to_storage(), "interrupts": [ASK_ROW, value]}
    assert ": interrupts[1] must be a mapping" in refusal(load, row)
    assert ": interrupts" in refusal(load, {**row, "interrupts": value})


@each("mapping", [dict, MappingProxyType, UserDict, ChainMap, partial(defaultdict, list)])
@each("value", VALUES.values(), ids=VALUES)
def test_loading_takes_any_mapping_without_optional_keys_and_changes_nothing(value, mapping):
    row = {key: item for key, item in value.to_storage().items() if item not in (None, [])}
    given = mapping(copy.deepcopy(row))
    assert type(value).from_storage(given) == type(value).from_storage(given) == value
    assert dict(given) == row


def test_the_caller_goes_on_changing_the_failure_and_the_interrupts_it_gave():
    failure, asks = dict(FAILURE), [ASK]
    failed, paused = LIVE.finish("failed", now=T0, failure=failure), LIVE.interrupted(asks, now=T0)
    loaded = load({**ROW, "status": "failed", "failure": failure})
    failure["message"] = "changed"
    asks.append(ASK_2)
    assert (failed.failure, loaded.failure, paused.interrupts) == (FAILURE, FAILURE, (ASK,))


def spoil(value):
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            spoil(item)
    value.clear()


@each("write", [RunRecord.to_storage, RunRecord.to_dict])
@each_record
def test_what_the_caller_gets_is_plain_json_of_its_own(record, write):
    before, out = json.dumps(write(record), allow_nan=False), write(record)
    assert json.loads(before) == out
    spoil(out)
    assert json.dumps(write(record)) == before


def test_the_reporting_shape_holds_no_digest_of_arguments():
    asks = [ask.to_dict() for ask in PAUSED.interrupts]
    assert ASK_ROW.keys() - ASK.to_dict() == {"argumentsDigest", "createdAt"}
    assert PAUSED.to_dict() == {**PAUSED.to_storage(), "interrupts": asks}


class Forgetful(dict):
    """A row that has its own way of saying that a key is missing."""

    def get(self, key, default=None):
        return self[key]


def test_a_mapping_that_raises_for_a_missing_key_is_read_like_any_other():
    row = make_run().to_storage()
    assert RunRecord.from_storage(Forgetful(row)) == make_run()
    del row["failure"], row["interrupts"]
    assert RunRecord.from_storage(Forgetful(row)) == make_run()
