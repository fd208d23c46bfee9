"""The digest: what it is a digest of, proven by the RFC, by its Python package and by itself.

`tests/e2e/test_javascript_digest.py` asks JavaScript as well.
"""

import json
import math
import re
import struct
from collections import ChainMap, OrderedDict, UserDict
from decimal import Decimal
from enum import IntEnum, StrEnum
from hashlib import sha256
from types import MappingProxyType

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from agui_runs import ConfigurationError, digest
from builders import make_run, nested
from strategies import json_of, json_values, junk

each = pytest.mark.parametrize


def sha(text):
    return sha256(text.encode()).hexdigest()


def double(bits):
    """Return the number that has these bits, as RFC 8785 names it."""
    [number] = struct.unpack(">d", bytes.fromhex(bits))
    return number


# --- The examples of RFC 8785 -------------------------------------------------------------------

NUMBERS = """
    0000000000000000  0
    8000000000000000  0
    0000000000000001  5e-324
    8000000000000001  -5e-324
    7fefffffffffffff  1.7976931348623157e+308
    ffefffffffffffff  -1.7976931348623157e+308
    4340000000000000  9007199254740992
    c340000000000000  -9007199254740992
    4430000000000000  295147905179352830000
    44b52d02c7e14af5  9.999999999999997e+22
    44b52d02c7e14af6  1e+23
    44b52d02c7e14af7  1.0000000000000001e+23
    444b1ae4d6e2ef4e  999999999999999700000
    444b1ae4d6e2ef4f  999999999999999900000
    444b1ae4d6e2ef50  1e+21
    3eb0c6f7a0b5ed8c  9.999999999999997e-7
    3eb0c6f7a0b5ed8d  0.000001
    41b3de4355555553  333333333.3333332
    41b3de4355555554  333333333.33333325
    41b3de4355555555  333333333.3333333
    41b3de4355555556  333333333.3333334
    41b3de4355555557  333333333.33333343
    becbf647612f3696  -0.0000033333333333333333
    43143ff3c1cb0959  1424953923781206.2
"""


@each(("bits", "text"), [line.split() for line in NUMBERS.strip().splitlines()])
def test_a_number_of_appendix_b_is_written_as_there(bits, text):
    assert digest(double(bits)) == sha(text)


@each("bits", ["7fffffffffffffff", "7ff0000000000000"])
def test_a_number_that_appendix_b_refuses_is_refused(bits):
    with pytest.raises(ConfigurationError) as raised:
        digest(double(bits))
    assert str(raised.value) == "digest: value: a float that is not finite is not a JSON value"


INPUT = r"""{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}"""
OUTPUT = """
    7b 22 6c 69 74 65 72 61 6c 73 22 3a 5b 6e 75 6c 6c 2c 74 72
    75 65 2c 66 61 6c 73 65 5d 2c 22 6e 75 6d 62 65 72 73 22 3a
    5b 33 33 33 33 33 33 33 33 33 2e 33 33 33 33 33 33 33 2c 31
    65 2b 33 30 2c 34 2e 35 2c 30 2e 30 30 32 2c 31 65 2d 32 37
    5d 2c 22 73 74 72 69 6e 67 22 3a 22 e2 82 ac 24 5c 75 30 30
    30 66 5c 6e 41 27 42 5c 22 5c 5c 5c 5c 5c 22 2f 22 7d
"""


def test_the_sample_of_section_3_2_2_gives_the_bytes_of_section_3_2_4():
    assert digest(json.loads(INPUT)) == sha256(bytes.fromhex(OUTPUT)).hexdigest()


def test_the_keys_of_section_3_2_3_are_sorted_as_there():
    value = {
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\U0001f600": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis",
    }
    assert digest(value) == sha(
        '{"\\r":"Carriage Return","1":"One","\u0080":"Control",'
        '"\u00f6":"Latin Small Letter O With Diaeresis","\u20ac":"Euro Sign",'
        '"\U0001f600":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}'
    )


# --- The text, piece by piece -------------------------------------------------------------------


def test_a_digest_is_lower_case_hex_sha_256():
    empty = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert digest({}) == empty == sha("{}")


@each(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-7, "-7"),
        ("", '""'),
        ([], "[]"),
        ((), "[]"),
        ([[], {}], "[[],{}]"),
        ({"a": [1, "b", None]}, '{"a":[1,"b",null]}'),
        ({"": ""}, '{"":""}'),
    ],
)
def test_a_value_is_written_without_spaces(value, text):
    assert digest(value) == sha(text)


def test_the_order_of_keys_makes_no_difference_at_any_depth():
    one = {"to": "a", "n": {"y": 1, "x": [{"b": 1, "a": 2}]}}
    other = {"n": {"x": [{"a": 2, "b": 1}], "y": 1}, "to": "a"}
    assert digest(one) == digest(other) == sha('{"n":{"x":[{"a":2,"b":1}],"y":1},"to":"a"}')


def test_the_order_of_an_array_makes_a_difference():
    assert digest([1, 2]) != digest([2, 1])


@each(
    ("keys", "order"),
    [
        ({"b", "a", "B", "_", "10", "2", "1"}, ["1", "10", "2", "B", "_", "a", "b"]),
        ({"\ufb33", "\U0001f600"}, ["\U0001f600", "\ufb33"]),
        ({"\uffff", "\U0010ffff", "\ud7ff"}, ["\ud7ff", "\U0010ffff", "\uffff"]),
        ({"a\uffff", "a\U00010000", "a"}, ["a", "a\U00010000", "a\uffff"]),
        ({"\xe9", "e", "z"}, ["e", "z", "\xe9"]),
    ],
)
def test_keys_are_sorted_by_utf_16_units(keys, order):
    text = ",".join(f'"{key}":0' for key in order)
    assert digest(dict.fromkeys(keys, 0)) == sha("{" + text + "}")


@each(
    ("text", "written"),
    [
        ('"\\/', '"\\"\\\\/"'),
        ("\b\t\n\f\r", '"\\b\\t\\n\\f\\r"'),
        ("\x00\x0b\x1f", '"\\u0000\\u000b\\u001f"'),
        ("\x7f\x80\x9f", '"\x7f\x80\x9f"'),
        ("\u00e9\u2028\u2029\ufeff", '"\u00e9\u2028\u2029\ufeff"'),
        ("\U0001f600", '"\U0001f600"'),
    ],
)
def test_only_what_must_be_escaped_is_escaped(text, written):
    assert digest(text) == sha(written)
    assert digest({text: 0}) == sha(f"{{{written}:0}}")


def test_text_is_not_normalised():
    assert digest("\u00e9") != digest("e\u0301")


@each(
    ("number", "text"),
    [
        (5.0, "5"),
        (-5.0, "-5"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (-1.5, "-1.5"),
        (100.0, "100"),
        (123456.789, "123456.789"),
        (1e16, "10000000000000000"),
        (1.5e16, "15000000000000000"),
        (123456789012345680.0, "123456789012345680"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.5e21, "1.5e+21"),
        (-1e21, "-1e+21"),
        (1e100, "1e+100"),
        (0.001, "0.001"),
        (0.0001, "0.0001"),
        (0.00001, "0.00001"),
        (1e-6, "0.000001"),
        (1.5e-6, "0.0000015"),
        (-1.5e-6, "-0.0000015"),
        (1e-7, "1e-7"),
        (-1.5e-7, "-1.5e-7"),
        (1e-10, "1e-10"),
        (1e-100, "1e-100"),
    ],
)
def test_a_float_is_written_as_javascript_writes_it(number, text):
    assert digest(number) == sha(text)


@each("number", [0, 1, -1, 2**53, -(2**53), 2**53 - 1])
def test_a_whole_float_and_the_int_agree_up_to_2_to_the_53(number):
    assert digest(float(number)) == digest(number) == sha(str(number))


@each("number", [2**53 + 1, 2**64, -(2**64) - 1, 10**30, 10**4300 - 1])
def test_a_larger_int_is_written_digit_by_digit(number):
    assert digest(number) == sha(str(number))


def test_neighbours_beyond_2_to_the_53_differ_as_ints():
    assert len({digest(2**53 + step) for step in range(4)}) == 4


@each(("one", "other"), [(True, 1), (False, 0), (None, 0), (1, "1"), (None, "null"), ([], {})])
def test_values_of_different_kinds_differ(one, other):
    assert digest(one) != digest(other)
    assert digest({"n": one}) != digest({"n": other})


# --- One value in its many forms ----------------------------------------------------------------


@each("kind", [dict, OrderedDict, UserDict, ChainMap, MappingProxyType])
def test_every_mapping_is_an_object(kind):
    assert digest(kind({"b": [1], "a": None})) == sha('{"a":null,"b":[1]}')


def test_members_of_enums_are_their_plain_values():
    level, way = IntEnum("Level", {"HIGH": 3}), StrEnum("Way", {"MAIL": "mail"})
    assert digest({way.MAIL: level.HIGH, "way": way.MAIL}) == sha('{"mail":3,"way":"mail"}')


def test_a_frozen_snapshot_and_its_plain_copy_agree():
    value = {"items": (1, {"b": 2.0, "a": [None]}), "\ufb33": "\U0001f600"}
    run = make_run(snapshot=value)
    plain = run.to_storage()["snapshot"]
    assert digest(run.snapshot) == digest(plain) == digest(value)


@given(json_values)
def test_frozen_plain_and_stored_agree(value):
    run = make_run(snapshot=value)
    plain = run.to_storage()["snapshot"]
    stored = json.loads(json.dumps(plain))
    assert digest(value) == digest(run.snapshot) == digest(plain) == digest(stored)


@given(json_of(st.integers(-(2**53) + 1, 2**53 - 1)))
def test_the_python_package_of_the_rfc_agrees(value):
    plain = make_run(snapshot=value).to_storage()["snapshot"]
    assert digest(value) == sha256(rfc8785.dumps(plain)).hexdigest()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_python_package_of_the_rfc_agrees_on_every_float(number):
    assert digest(number) == sha256(rfc8785.dumps(number)).hexdigest()


def test_the_python_package_of_the_rfc_agrees_on_floats_of_every_exponent():
    powers = [math.ldexp(1.0, exponent) for exponent in range(-1074, 1024)]
    tens = [float(f"1e{exponent}") for exponent in range(-323, 309)]
    for power in powers + tens:
        for number in (power, -power, math.nextafter(power, 0), math.nextafter(power, math.inf)):
            assert math.isinf(number) or digest(number) == sha256(rfc8785.dumps(number)).hexdigest()


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), st.none()))
def test_the_python_package_of_the_rfc_agrees_on_every_key(value):
    assert digest(value) == sha256(rfc8785.dumps(value)).hexdigest()


@given(json_values)
def test_the_canonical_text_is_json_of_the_same_value(value):
    plain = make_run(snapshot=value).to_storage()["snapshot"]
    assert digest(json.loads(json.dumps(plain, indent=2, ensure_ascii=True))) == digest(plain)


# --- What a snapshot refuses --------------------------------------------------------------------


@each(
    ("value", "problem"),
    [
        (Decimal("1.5"), "value: Decimal is not a JSON value"),
        (b"{}", "value: bytes is not a JSON value"),
        ({1, 2}, "value: set is not a JSON value"),
        (float("nan"), "value: a float that is not finite is not a JSON value"),
        ({"a": [0, float("inf")]}, "value.a[1]: a float that is not finite is not a JSON value"),
        ({"a": {1: 2}}, "value.a: a key must be a str, not int"),
        ({"a b": object()}, "value['a b']: object is not a JSON value"),
        ("\ud800", "value: text holds a lone surrogate, which no store can encode"),
        (
            {"\udfff": 1},
            "value: the key '\\udfff' holds a lone surrogate, which no store can encode",
        ),
    ],
)
def test_what_a_snapshot_refuses_is_refused_by_name(value, problem):
    with pytest.raises(ConfigurationError, match=f"^{re.escape('digest: ' + problem)}$"):
        digest(value)


def test_an_int_that_no_json_writer_takes_is_refused():
    with pytest.raises(ConfigurationError) as raised:
        digest({"n": 10**4300})
    problem = "digest: value.n: an int of more than 4300 digits cannot be written"
    assert str(raised.value) == problem


def test_a_value_may_be_as_deep_as_a_snapshot_and_no_deeper():
    assert digest(nested(100)) == sha("[" * 100 + "]" * 100)
    with pytest.raises(ConfigurationError) as raised:
        digest(nested(101))
    assert str(raised.value).endswith(": nested deeper than 100 levels, or inside itself")


def test_a_loop_is_refused():
    loop = {}
    loop["again"] = loop
    with pytest.raises(
        ConfigurationError, match=r"nested deeper than 100 levels, or inside itself$"
    ):
        digest(loop)


def test_what_is_refused_is_not_shown():
    with pytest.raises(ConfigurationError) as raised:
        digest({"apiKey": "s3cr3t", "n": float("nan")})
    assert "s3cr3t" not in str(raised.value)


def refusal(call, value):
    """Return what the call says against the value, or nothing where it takes it."""
    try:
        call(value)
    except ConfigurationError as refused:
        return str(refused)
    return ""


@given(junk)
def test_a_digest_takes_exactly_what_a_snapshot_takes(value):
    as_snapshot = refusal(lambda value: make_run(snapshot=value), value)
    assert refusal(digest, value) == as_snapshot.replace("run record: snapshot", "digest: value", 1)


def test_the_value_is_not_changed():
    value = {"b": [1, {"c": 2.0}], "a": ()}
    before = repr(value)
    digest(value)
    assert repr(value) == before
