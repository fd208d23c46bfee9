"""The floor under our loading: this very package, with each check reduced to its test of types.

It is the package a second time, under another name, in which the functions that check are
replaced by ones that only look at the type. What it makes is what ours makes, by the same
code around the checks, so the ratio of the two is the price of the checks and nothing else.
"""

import importlib.util
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import agui_runs
from agui_runs import run_record


def _second_copy() -> ModuleType:
    """Return the package as imported once more, with modules and classes of its own."""
    name, home = "agui_runs_types_only", Path(agui_runs.__file__).parent
    spec = importlib.util.spec_from_file_location(
        name, home / "__init__.py", submodule_search_locations=[str(home)]
    )
    assert spec
    assert spec.loader
    package = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    return package


_fromisoformat = datetime.fromisoformat


def _text(value: object, where: object, name: str) -> str:
    if type(value) is not str:
        raise TypeError(name)
    return value


def _one_of(value: object, names: object, where: object, name: str) -> str:
    return _text(value, where, name)


def _time(value: object, where: object, name: str) -> datetime:
    if type(value) is not datetime:
        raise TypeError(name)
    return value


def _time_text(value: Any, where: object, name: str) -> datetime:
    return _fromisoformat(value)


def _count(value: object, where: object) -> int:
    if type(value) is not int:
        raise TypeError
    return value


def _frozen_object(value: dict[str, Any], room: int) -> Any:
    frozen: Any = json._OpenDict(value)
    depth = 0
    for key, item in frozen.items():
        if type(key) is not str:
            raise TypeError(key)
        what = type(item)
        if what is str or what is int or what is float or what is bool or item is None:
            continue
        if what is dict:
            child = _frozen_object(item, room - 1)
        elif what is list:
            child = _frozen_array(item, room - 1)
        else:
            raise TypeError(what)
        frozen[key] = child
        if child.depth > depth:
            depth = child.depth
    frozen.depth = depth + 1
    frozen.__class__ = json.FrozenDict
    return frozen


def _frozen_array(value: list[Any], room: int) -> Any:
    frozen: Any = json._OpenList(value)
    depth = 0
    for index, item in enumerate(frozen):
        what = type(item)
        if what is str or what is int or what is float or what is bool or item is None:
            continue
        if what is dict:
            child = _frozen_object(item, room - 1)
        elif what is list:
            child = _frozen_array(item, room - 1)
        else:
            raise TypeError(what)
        frozen[index] = child
        if child.depth > depth:
            depth = child.depth
    frozen.depth = depth + 1
    frozen.__class__ = json.FrozenList
    return frozen


types_only: Any = _second_copy()
json: Any = types_only._json
json._frozen_object, json._frozen_array = _frozen_object, _frozen_array
for module in (types_only.interrupt, types_only.run_record):
    module.nonblank_text = module.any_text = _text
    module.one_of, module.utc, module.from_text = _one_of, _time, _time_text
types_only.run_record._counted = _count


def bare_advance(record: agui_runs.RunRecord, *, now: datetime) -> Any:
    """Return what `advance` does with nothing checked but the time: the copy and its seal."""
    if type(now) is not datetime or now.tzinfo is not UTC:
        raise TypeError
    new: Any = run_record._OpenRecord()
    new.scope = record.scope
    new.thread_id = record.thread_id
    new.run_id = record.run_id
    new.digest = record.digest
    new.created_at = record.created_at
    new.status = record.status
    new.sequence = record.sequence + 1
    new.snapshot = record.snapshot
    new.interrupts = record.interrupts
    new.failure = record.failure
    new.updated_at = now
    new.__class__ = agui_runs.RunRecord
    return new
