"""What users import, and what the package brings along: nothing."""

import subprocess
import sys
from importlib import metadata, resources

import pytest

import agui_runs

NAMES = [
    "AguiRunsError",
    "ConfigurationError",
    "Decision",
    "Interrupt",
    "InterruptStatus",
    "JSONValue",
    "RunRecord",
    "RunStatus",
    "StreamError",
    "TerminalStatus",
    "digest",
]


def test_the_public_names_are_exactly_these():
    assert agui_runs.__all__ == NAMES


def test_a_star_import_brings_the_public_names_and_no_others():
    brought = {}
    exec("from agui_runs import *", brought)
    assert sorted(brought.keys() - {"__builtins__"}) == NAMES


def test_nothing_else_looks_public():
    modules = {"errors", "interrupt", "run_record"}
    assert {name for name in dir(agui_runs) if name[0] != "_"} - modules == set(NAMES)


@pytest.mark.parametrize(
    ("error", "bases"),
    [
        (agui_runs.AguiRunsError, (Exception,)),
        (agui_runs.ConfigurationError, (agui_runs.AguiRunsError, ValueError)),
        (agui_runs.StreamError, (agui_runs.AguiRunsError,)),
    ],
)
def test_an_error_is_what_callers_catch(error, bases):
    assert error.__bases__ == bases


def test_the_import_loads_nothing_but_the_standard_library():
    program = (
        "import sys; before = set(sys.modules); import agui_runs; print(*set(sys.modules) - before)"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-c", program], check=True, capture_output=True, text=True
    )
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert loaded - sys.stdlib_module_names == {"agui_runs"}


def test_the_import_says_and_warns_nothing():
    command = [sys.executable, "-I", "-W", "error", "-c", "import agui_runs"]
    run = subprocess.run(command, check=True, capture_output=True)
    assert (run.stdout, run.stderr) == (b"", b"")


def test_nothing_is_required_without_an_extra():
    assert [need for need in metadata.requires("agui-runs") or [] if "extra ==" not in need] == []


def test_the_types_are_shipped():
    assert resources.files("agui_runs").joinpath("py.typed").is_file()


def test_the_version_is_that_of_the_distribution():
    assert agui_runs.__version__ == metadata.version("agui-runs")
