"""JSON values: checked and frozen once on the way in, whichever way they come."""

import copy
import json
import pickle
from collections import ChainMap, Counter, OrderedDict, UserDict, defaultdict, namedtuple
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from pydantic import TypeAdapter

from agui_runs import ConfigurationError
from builders import SEC, T0, make_run, nested, via_json
from examples import (
    ASK,
    FAILED,
    LIVE,
    ROW,
    RUN,
    SECRET,
    STATEFUL,
    Plain,
    each,
    label,
    load,
    refusal,
)
from strategies import Level, Way

PLACES = {
    "snapshot": lambda value: value,
    "snapshot.b": lambda value: {"a": SECRET, "b": value},
    "snapshot[1]": lambda value: (SECRET, value),
    "snapshot.m": lambda value: UserDict(m=value),
    "snapshot.todo[0].dueAt": lambda value: {"todo": [{"dueAt": value}]},
}
DOORS = {
    "constructor": lambda state: make_run(snapshot=state),
    "start": lambda state: RUN.start(now=T0, snapshot=state),
    "advance": lambda state: LIVE.advance(now=T0, snapshot=state),
    "from_storage": lambda state: load({**ROW, "snapshot": state}),
}
each_door = each("door", DOORS.values(), ids=DOORS)
NOT_JSON = [T0, date(2026, 3, 2), SEC, Decimal("1.5"), 1j, SECRET.encode(), {SECRET}, range(3)]
NOT_JSON += [iter([]), {}.keys(), object(), ..., Plain.YES, ASK, RUN, RuntimeError(SECRET), len]
NOT_JSON += [float("nan"), float("inf"), float("-inf"), 10**4300, -(10**4300)]
NO_KEYS = [1, 1.5, True, None, (SECRET,), SECRET.encode(), T0, Level.HIGH, "\udc88"]
MAPPINGS = [{Way.MAIL: 2}, Counter(mail=2), OrderedDict(mail=2), defaultdict(int, mail=2)]
MAPPINGS += [UserDict(mail=2), ChainMap({"mail": 2}, {"mail": 3}), MappingProxyType({"mail": 2})]
PLAIN = [*((mapping, {"mail": 2}) for mapping in MAPPINGS), (Level.HIGH, 3), (Way.MAIL, "mail")]
PLAIN += [((1, 2), [1, 2]), (namedtuple("Pos", "x y")(1, 2), [1, 2])]
PLAIN += [(number, number) for number in (10**4300 - 1, 1 - 10**4300)]


def objects(depth):
    value = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


LOOP, HIDDEN_LOOP = {"apiKey": SECRET}, []
LOOP["self"] = LOOP
HIDDEN_LOOP.append({"a": (UserDict(a=HIDDEN_LOOP),)})
ENDLESS = [[SECRET, build(depth)] for build in (nested, objects) for depth in (100, 50_000)]
ENDLESS += [LOOP, HIDDEN_LOOP]


@each_door
@each(("path", "put"), PLACES.items(), ids=PLACES)
@each("value", NOT_JSON, ids=label)
def test_what_is_not_json_is_refused_by_place_and_type(value, path, put, door):
    said = refusal(door, put(value))
    assert said.startswith(f"run record: {path}: ")
    assert type(value).__name__ in said


@each("key", NO_KEYS, ids=label)
def test_a_key_that_is_no_text_is_refused_also_beside_its_text(key):
    said = refusal(make_run, snapshot={"m": {str(key): SECRET, key: SECRET}})
    assert said.encode().startswith(b"run record: snapshot.m: ")


@each("mapping", [dict, OrderedDict, UserDict, MappingProxyType])
def test_keys_that_fall_together_as_text_are_refused(mapping):
    class Apart(str):
        __slots__ = ()
        __eq__, __hash__ = object.__eq__, object.__hash__

    assert "'a'" in refusal(make_run, snapshot=mapping({Apart("a"): SECRET, "a": SECRET}))


@each(("given", "plain"), PLAIN, ids=label)
@each_door
def test_a_type_that_storage_does_not_bring_back_is_plain_at_once(door, given, plain):
    run = door({"given": given})
    assert run.snapshot == via_json(run).snapshot == {"given": plain}
    assert repr(run.to_storage()["snapshot"]) == repr({"given": plain})
    assert json.dumps(run.snapshot) == json.dumps({"given": plain})
    assert copy.copy(run.snapshot) is copy.deepcopy(run.snapshot) is run.snapshot


@each("value", ENDLESS)
@each_door
def test_nesting_without_end_is_refused_and_a_hundred_levels_are_not(door, value):
    assert "nested deeper" in refusal(door, value)
    assert door(objects(100)).snapshot == objects(100)


@each_door
def test_the_caller_goes_on_changing_the_state_it_gave(door):
    state = {"items": [1]}
    record = door(state)
    state["items"].append(2)
    state["x"] = 1
    assert record.to_storage()["snapshot"] == record.snapshot == {"items": [1]}


class Lazy(dict):
    """A dict that reads its values from a store, which no longer holds one of them."""

    def keys(self):
        return iter(["lost"])

    __iter__ = keys

    def __getitem__(self, key):
        raise KeyError(SECRET)


@each_door
def test_a_key_that_a_lazy_dict_no_longer_holds_is_refused(door):
    assert ": snapshot.a: " in refusal(door, {"a": Lazy()})


EQUAL = [({"n": 1, "l": [2]}, {"l": [2.0], "n": True}), ([[], {}], ((), UserDict())), (0.0, -0.0)]


@each(("one", "other"), EQUAL, ids=repr)
def test_equal_states_are_equal_and_hash_equal(one, other):
    assert len({make_run(snapshot=state) for state in (one, other)}) == 1
    assert make_run(snapshot=one) != make_run(snapshot=[one])


# The frozen containers


def test_enum_members_in_a_snapshot_become_plain():
    snapshot = make_run(snapshot={Way.MAIL: [Level.HIGH, Way.MAIL]}).snapshot
    assert snapshot == {"mail": [3, "mail"]}
    assert [type(plain) for plain in [*snapshot, *snapshot["mail"]]] == [str, int, str]


@each("sign", [1, -1])
def test_an_int_has_as_many_digits_as_json_writes_and_no_more(sign):
    assert via_json(make_run(snapshot=sign * (10**4300 - 1))).snapshot == sign * (10**4300 - 1)
    with pytest.raises(ConfigurationError, match=r"snapshot\.n: an int of more than 4300 digits"):
        make_run(snapshot={"n": sign * 10**4300})


OBJECT: Any = make_run(snapshot={"a": [1]}).snapshot
ARRAY: Any = make_run(snapshot=[2, 1]).snapshot
READING = {
    *set(dir(object)) - {"__init__"},
    *("__class_getitem__", "__contains__", "__getitem__", "__iter__", "__len__", "__reversed__"),
    *("__add__", "__mul__", "__rmul__", "__or__", "__ror__", "fromkeys"),
    *("copy", "count", "get", "index", "items", "keys", "values"),
}
CHANGING = {
    OBJECT: {
        "__init__": ({"a": 2},),
        "__setitem__": ("a", 2),
        "__delitem__": ("a",),
        "__ior__": ({"a": 2},),
        "clear": (),
        "pop": ("a",),
        "popitem": (),
        "setdefault": ("b", 2),
        "update": ({"a": 2},),
    },
    ARRAY: {
        "__init__": ([2],),
        "__setitem__": (0, 3),
        "__delitem__": (0,),
        "__iadd__": ([2],),
        "__imul__": (2,),
        "append": (2,),
        "clear": (),
        "extend": ([2],),
        "insert": (0, 2),
        "pop": (),
        "remove": (1,),
        "reverse": (),
        "sort": (),
    },
}
each_container = each("frozen", CHANGING, ids=["object", "array"])


@each_container
def test_every_method_that_python_gives_a_container_is_known_here(frozen):
    assert set(dir(type(frozen).__base__)) - READING == set(CHANGING[frozen])


@each(
    ("frozen", "method"), [(frozen, method) for frozen in CHANGING for method in CHANGING[frozen]]
)
def test_a_frozen_container_refuses_each_change_that_a_plain_one_takes(frozen, method):
    arguments, plain = CHANGING[frozen][method], frozen.copy()
    with pytest.raises(TypeError, match=f"{type(frozen).__name__} is frozen"):
        getattr(frozen, method)(*arguments)
    assert frozen == plain
    getattr(plain, method)(*arguments)


@each_container
def test_calling_the_class_of_a_frozen_container_gives_a_plain_copy(frozen):
    copied = type(frozen)(frozen)
    assert (type(copied), copied) == (type(frozen).__base__, frozen)


def test_keys_are_made_into_a_plain_dict():
    assert type(OBJECT.fromkeys(["a"], [])) is type(type(OBJECT).fromkeys("a")) is dict


@each_container
def test_a_frozen_container_has_no_attributes_and_keeps_its_class(frozen):
    assert not hasattr(frozen, "__dict__")
    with pytest.raises(TypeError):
        frozen.__class__ = type(frozen).__base__


@each_container
def test_a_frozen_container_equals_its_plain_counterpart(frozen):
    plain = json.loads(json.dumps(frozen))
    assert (type(plain), plain == frozen, frozen == plain) == (type(frozen).__base__, True, True)


@each_container
def test_equal_frozen_containers_hash_equal(frozen):
    assert {make_run(snapshot=frozen.copy()).snapshot, frozen} == {frozen}


@each_container
def test_a_frozen_container_that_comes_in_again_is_kept_as_it_is(frozen):
    assert make_run().advance(now=T0, snapshot=frozen).snapshot is frozen


def test_frozen_containers_count_as_levels_too():
    deepest = make_run(snapshot=nested(100)).snapshot
    assert deepest == nested(100)
    for deeper in ([deepest], {"d": deepest}, nested(101)):
        with pytest.raises(ConfigurationError, match="nested deeper than 100 levels"):
            make_run(snapshot=deeper)


class Liar(str):
    """Text that says of itself what makes it pass."""

    def isascii(self):
        return True

    def encode(self, *args):
        return b""

    def find(self, *args):
        return 26

    def __getitem__(self, place):
        return "--T::."

    def __len__(self):
        return 27


class Huge(int):
    def __lt__(self, other):
        return True

    __gt__ = __lt__


@each("value", [Liar("\ud800"), Huge(10**4300)], ids=["text", "int"])
def test_a_scalar_is_judged_by_what_it_is_and_not_by_what_it_says(value):
    with pytest.raises(ConfigurationError):
        make_run(snapshot=[value])


@each("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_frozen_container_pickles_frozen_all_the_way_down(protocol):
    one, two = pickle.loads(pickle.dumps([OBJECT, ARRAY], protocol))
    assert (one, two) == (OBJECT, ARRAY)
    assert [type(one), type(two), type(one["a"])] == [type(OBJECT), type(ARRAY), type(ARRAY)]


@each(
    "encode",
    [
        lambda value: json.dumps(value),
        lambda value: json.dumps(value, indent=1),
        lambda value: pytest.importorskip("orjson").dumps(value),
        msgspec.json.encode,
        lambda value: json.dumps(msgspec.msgpack.decode(msgspec.msgpack.encode(value))),
        TypeAdapter(Any).dump_json,
        lambda value: json.dumps(TypeAdapter(Any).dump_python(value)),
    ],
    ids=["json", "json in Python", "orjson", "msgspec", "msgpack", "pydantic", "pydantic python"],
)
def test_encoders_take_a_frozen_snapshot_as_it_is(encode):
    assert json.loads(encode(STATEFUL.snapshot)) == STATEFUL.snapshot


def test_a_failure_is_frozen_too():
    with pytest.raises(TypeError, match="is frozen"):
        FAILED.failure["message"] = "x"
