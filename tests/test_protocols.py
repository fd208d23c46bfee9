"""Python's own protocols, and the encoders that know a dataclass when they see one."""

import copy
import inspect
import json
import pprint
import reprlib
import subprocess
import sys
import traceback
from dataclasses import asdict, astuple, fields, is_dataclass, replace

import msgspec
import pytest
import rich.pretty
from hypothesis import given
from hypothesis import strategies as st

from agui_runs import ConfigurationError, Interrupt, RunRecord
from builders import T0, make_ask, make_run, nested
from strategies import records_of, small_integers, values

each = pytest.mark.parametrize

SECRET = "s3cr3t"  # What a host keeps in its values, and no way of showing them may show.
ASK = make_ask(message=SECRET)
PAUSED = make_run(snapshot={"items": [1, {"secret": SECRET}]}).interrupted([ASK], now=T0)
FAILED = make_run(snapshot=[SECRET]).finish("failed", now=T0, failure={"message": SECRET})
VALUES = {"interrupt": ASK, "paused": PAUSED, "failed": FAILED}
each_value = each("value", VALUES.values(), ids=VALUES)


# --- dataclasses --------------------------------------------------------------------------------


def plain(item, gather):
    """Return what a field must become: plain containers, and each dataclass gathered so."""
    if is_dataclass(item):
        return gather(
            (field.name, plain(getattr(item, field.name), gather)) for field in fields(item)
        )
    if isinstance(item, dict):
        return {key: plain(inner, gather) for key, inner in item.items()}
    if isinstance(item, (list, tuple)):
        made = [plain(inner, gather) for inner in item]
        return tuple(made) if isinstance(item, tuple) else made
    return item


def in_order(pairs):
    return tuple(item for _, item in pairs)


def kinds(item):
    """Return the types of all containers inside."""
    if isinstance(item, dict):
        return {type(item)}.union(*map(kinds, item.values()))
    return {type(item)}.union(*map(kinds, item)) if isinstance(item, (list, tuple)) else set()


def spoil(item):
    """Change every container inside that takes a change."""
    for inner in item.values() if isinstance(item, dict) else item:
        if isinstance(inner, (dict, list, tuple)):
            spoil(inner)
    if not isinstance(item, tuple):
        item.clear()


@each(("take", "gather"), [(asdict, dict), (astuple, in_order)])
@given(value=values)
def test_the_fields_are_given_as_plain_dicts_and_lists(take, gather, value):
    made = take(value)
    assert made == plain(value, gather)
    assert kinds(made) <= {dict, list, tuple}


@each("take", [asdict, astuple])
@given(value=values)
def test_what_asdict_and_astuple_give_belongs_to_the_caller(take, value):
    before = json.dumps(value.to_storage())
    spoil(take(value))
    assert json.dumps(value.to_storage()) == before


def test_the_deepest_snapshot_has_a_plain_dict_too():
    assert asdict(make_run(snapshot=nested(100)))["snapshot"] == nested(100)


REPLACES = [
    replace,
    pytest.param(
        getattr(copy, "replace", None),
        marks=pytest.mark.skipif(
            sys.version_info < (3, 13), reason="copy.replace is new in Python 3.13"
        ),
    ),
]


@each("change", REPLACES)
@each_value
def test_replace_without_a_change_makes_an_equal_value(change, value):
    assert change(value) == value


@each("change", REPLACES)
def test_replace_makes_another_value_and_leaves_the_first(change):
    other = change(ASK, message="Another?")
    assert (other.message, ASK.message) == ("Another?", SECRET)


@each("change", REPLACES)
@each(
    ("value", "wrong"),
    [
        (ASK, {"id": " "}),
        (ASK, {"status": "approved"}),
        (PAUSED, {"interrupts": ()}),
        (FAILED, {"status": "cancelled"}),
    ],
)
def test_replace_goes_through_the_checks_of_the_constructor(change, value, wrong):
    with pytest.raises(ConfigurationError):
        change(value, **wrong)


@each("change", REPLACES)
def test_replace_knows_no_other_field(change):
    with pytest.raises(TypeError, match="stauts"):
        change(PAUSED, stauts="failed")


SIGNATURES = {
    Interrupt: "id tool_call_id arguments_digest expires_at reason='tool_call' message=None "
    "status='pending' decided_at=None created_at=None",
    RunRecord: "scope thread_id run_id digest created_at status='reserved' sequence=0 "
    "snapshot=None interrupts=() failure=None updated_at=None",
}


@each(("cls", "said"), SIGNATURES.items())
def test_the_signature_of_a_constructor_is_that_of_its_fields(cls, said):
    parameters = inspect.signature(cls).parameters.values()
    assert {parameter.kind for parameter in parameters} == {inspect.Parameter.KEYWORD_ONLY}
    assert said.split() == [
        parameter.name
        if parameter.default is parameter.empty
        else f"{parameter.name}={parameter.default!r}"
        for parameter in parameters
    ]


# --- copy and match -----------------------------------------------------------------------------

FROZEN = {
    **VALUES,
    "object": PAUSED.snapshot,
    "array": PAUSED.snapshot["items"],
    "failure": FAILED.failure,
    "interrupts": PAUSED.interrupts,
}
each_frozen = each("value", FROZEN.values(), ids=FROZEN)


@each_frozen
def test_a_copy_is_the_very_object(value):
    assert copy.copy(value) is copy.deepcopy(value) is value


@each_frozen
def test_a_deep_copy_of_what_holds_it_holds_the_very_object(value):
    held = copy.deepcopy({"in": [(value, [])]})
    assert held["in"][0][0] is value


def test_a_value_matches_by_keyword():
    match PAUSED:
        case RunRecord(status="failed"):
            found = "failed"
        case RunRecord(status="interrupted", interrupts=(Interrupt(id=name),)):
            found = name
    assert found == "ask-1"


@each("cls", [Interrupt, RunRecord])
def test_a_value_matches_nothing_by_position(cls):
    assert cls.__match_args__ == ()


# --- What is shown ------------------------------------------------------------------------------


def with_locals(value):
    """Return a traceback that shows the variables of its frames."""
    held = {"value": [value]}
    try:
        raise LookupError
    except LookupError as error:
        shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    assert held
    return "".join(shown.format())


SHORT = reprlib.Repr()
SHORT.maxother = 1000

SHOWING = {
    "repr": repr,
    "str": str,
    "format": "{}".format,
    "percent": "%s".__mod__,
    "pprint": pprint.pformat,
    "pprint in a container": lambda value: pprint.pformat({"a": [value]}, width=20),
    "reprlib": SHORT.repr,
    "rich": rich.pretty.pretty_repr,
    "rich in a container": lambda value: rich.pretty.pretty_repr({"a": [value]}, max_width=20),
    "traceback": with_locals,
}


@each("show", SHOWING.values(), ids=SHOWING)
@each_value
def test_a_value_is_shown_by_its_repr_and_no_content_of_it(show, value):
    said = show(value)
    assert type(value).__name__ in said
    assert SECRET not in said


def test_pytest_shows_the_repr_of_a_local_variable(tmp_path):
    test = tmp_path / "test_it.py"
    test.write_text(
        "from datetime import UTC, datetime\n"
        "from agui_runs import RunRecord\n"
        "made = dict(thread_id='t', run_id='r', digest='d', created_at=datetime.now(UTC))\n"
        "HELD = RunRecord(scope='s', snapshot={'key': 'x' + 'yz'}, **made)\n"
        "def test_it():\n    local = HELD\n    assert not local\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--showlocals", "-vv"]
    run = subprocess.run(
        [*command, "-c", "/dev/null", str(test)], capture_output=True, text=True, cwd=tmp_path
    )
    assert "local      = RunRecord(scope='s', thread_id='t', run_id='r'" in run.stdout
    assert "xyz" not in run.stdout


# --- Encoders that take a dataclass by its fields -----------------------------------------------


def orjson_dumps(value, **more):
    return pytest.importorskip("orjson").dumps(value, **more)


def by_row(value):
    """Return the JSON text of a row, as the documents show it for orjson."""
    orjson = pytest.importorskip("orjson")
    return orjson.dumps(
        value,
        default=lambda held: held.to_storage(),
        option=orjson.OPT_PASSTHROUGH_DATACLASS,
    )


BY_FIELDS = {
    "orjson": orjson_dumps,
    "msgspec": msgspec.json.encode,
    "msgspec with a hook": lambda value: msgspec.json.encode(value, enc_hook=never),
    "msgspec.to_builtins": lambda value: json.dumps(msgspec.to_builtins(value)),
}


def never(value):
    raise AssertionError(value)


@each("encode", BY_FIELDS.values(), ids=BY_FIELDS)
@each_value
def test_an_encoder_that_takes_the_fields_writes_all_content_and_no_row(encode, value):
    written = json.loads(encode(value))
    assert list(written) == [field.name for field in fields(value)]
    assert SECRET in json.dumps(written)
    with pytest.raises(ConfigurationError, match="is missing"):
        type(value).from_storage(written)


@each_value
def test_orjson_writes_rows_where_it_is_told_to_pass_dataclasses_on(value):
    assert json.loads(by_row({"held": [value]})) == {"held": [value.to_storage()]}


@given(records_of(small_integers) | st.builds(make_ask))
def test_msgspec_writes_the_row_that_it_is_given(value):
    text = msgspec.json.encode({"held": value.to_storage()})
    assert type(value).from_storage(msgspec.json.decode(text)["held"]) == value


@each_value
def test_the_standard_encoder_takes_a_row_for_a_value_by_its_default(value):
    text = json.dumps({"held": value}, default=lambda held: held.to_storage())
    assert json.loads(text) == {"held": value.to_storage()}
