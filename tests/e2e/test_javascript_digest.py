"""The digest in JavaScript, a few lines over `JSON.stringify`, is ours on every value."""

import json
import math
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from agui_runs import digest
from builders import make_run
from strategies import json_of

# Many values in one example, since every example is a Node process.
few_examples = settings(max_examples=8)
safe_integers = st.integers(-(2**53) + 1, 2**53 - 1)
characters = st.characters(codec="utf-8")
unusual = st.one_of(
    characters,
    st.characters(min_codepoint=0, max_codepoint=0x9F),
    st.characters(min_codepoint=0xE000, max_codepoint=0xFFFF),
    st.characters(min_codepoint=0x10000),
    st.sampled_from(['"', "\\", "/", "\u2028", "\u2029", "\ufeff", "0", "9"]),
)
texts = st.text(unusual, max_size=6)


def agree(node, values):
    plain = [make_run(snapshot=value).to_storage()["snapshot"] for value in values]
    return node("digests.mjs", plain) == [digest(value) for value in values]


@few_examples
@given(st.lists(json_of(safe_integers), min_size=20, max_size=40))
def test_it_agrees_on_whatever_value_there_is(node, values):
    assert agree(node, values)


@few_examples
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=50, max_size=200))
def test_it_agrees_on_floats(node, numbers):
    assert agree(node, numbers)


def test_it_agrees_on_floats_of_every_exponent(node):
    powers = [math.ldexp(1.0, exponent) for exponent in range(-1074, 1024)]
    tens = [float(f"{lead}e{exponent}") for lead in (1, 1.5, 9) for exponent in range(-323, 308)]
    beside = [math.nextafter(number, side) for number in powers + tens for side in (0, math.inf)]
    numbers = [number for number in powers + tens + beside if number <= sys.float_info.max]
    assert len(numbers) > 10_000
    assert agree(node, numbers)
    assert agree(node, [-number for number in numbers])


@few_examples
@given(st.lists(st.dictionaries(texts, safe_integers, max_size=6), min_size=10, max_size=40))
def test_it_agrees_on_the_order_of_unusual_keys(node, objects):
    assert agree(node, objects)


@few_examples
@given(st.lists(texts, min_size=20, max_size=60))
def test_it_agrees_on_escapes(node, strings):
    assert agree(node, strings)


def test_it_agrees_on_every_character_below_the_surrogates_and_some_above(node):
    codes = [*range(0xD800), *range(0xE000, 0x10100), *range(0x1F600, 0x1F700), 0x10FFFF]
    assert agree(node, [chr(code) for code in codes])


def test_it_agrees_on_keys_that_javascript_treats_in_its_own_way(node):
    keys = ["__proto__", "constructor", "toString", "length", "10", "9", "1", "-1", "01", ""]
    assert agree(node, [{key: {key: None} for key in keys}, {key: [key] for key in reversed(keys)}])


def test_it_agrees_on_the_input_of_a_run_however_it_is_spelt(node):
    spelt = '{"threadId": "t", "n": 1.0, "s": "\\u00e9\\/", "z": -0.0, "e": 1E2}'
    assert node("digests.mjs", [json.loads(spelt)]) == [digest(json.loads(spelt))]
