"""One contract for every store: each test here runs on each of them, on real servers.

Where a server or its driver is missing, the tests of that store are left out and say so, and so are
the races of many processes, which want the machine for themselves. With
`AGUI_RUNS_STORES=required` in the environment, as in `.ci/run`, all of them run, and what cannot
run fails.
"""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent.parent / "docs" / "examples")]

import databases  # noqa: E402
from crowd import Crowd  # noqa: E402
from databases import IS_REQUIRED  # noqa: E402

COUNTS = pytest.StashKey[list[str]]()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marked = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "kind" in metafunc.fixturenames and "kind" not in marked:
        metafunc.parametrize("kind", list(databases.DRIVERS), scope="session")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what cannot run, by a mark, for such skips are reported in one line a file."""
    for item in items:
        if not IS_REQUIRED and item.path.is_relative_to(HERE) and (problem := problem_of(item)):
            item.add_marker(pytest.mark.skip(reason=f"stores: {problem}"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail what is required and cannot run, before any of its fixtures does."""
    if IS_REQUIRED and (problem := problem_of(item)):
        pytest.fail(problem, pytrace=False)


def problem_of(item: pytest.Item) -> str:
    """Return why a test cannot run, or nothing."""
    if not IS_REQUIRED and "crowd" in item.fixturenames:
        return "many processes race where AGUI_RUNS_STORES=required"
    callspec = getattr(item, "callspec", None)
    return databases.missing(callspec.params.get("kind", "sqlite")) if callspec else ""


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    if counts := config.stash.get(COUNTS, []):
        terminalreporter.section("what the stores were put through")
        for line in counts:
            terminalreporter.write_line(line)


@pytest.fixture
def tell(request: pytest.FixtureRequest, kind: str):
    """Return a function that adds a line to what is printed at the end."""
    counts = request.config.stash.setdefault(COUNTS, [])
    return lambda line: counts.append(f"{kind:<11} {line}")


@pytest.fixture(scope="session")
def servers() -> Iterator[dict[str, str]]:
    """Return the URLs of the servers that this machine can run."""
    with ExitStack() as stack:
        urls = {}
        if not databases.missing("postgresql"):
            urls["postgresql"] = stack.enter_context(databases.postgresql())
        if not databases.missing("redis"):
            urls["redis"] = stack.enter_context(databases.redis())
        yield urls


@pytest.fixture(scope="session")
def new_url(servers: dict[str, str], tmp_path_factory: pytest.TempPathFactory):
    """Return a function that makes an empty database of a kind and returns its URL."""
    made = 0

    def make(kind: str) -> str:
        nonlocal made
        made += 1
        if kind == "sqlite":
            return f"sqlite:///{tmp_path_factory.mktemp('sqlite') / 'runs.sqlite3'}"
        if kind == "redis":
            from redis import Redis

            with Redis.from_url(servers["redis"]) as client:
                client.flushdb()
            return f"{servers['redis']}/0"
        import psycopg

        server = servers["postgresql"]
        with psycopg.connect(f"{server}/postgres", autocommit=True) as db:
            db.execute(f"CREATE DATABASE runs_{made}")
        scheme = "postgresql+sqlalchemy" if kind == "sqlalchemy" else "postgresql"
        return f"{scheme}://{urlsplit(server).netloc}/runs_{made}"

    return make


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as running:
        yield running


@pytest.fixture
def url(new_url, kind: str) -> str:
    return new_url(kind)


@pytest.fixture
def store(runner: asyncio.Runner, url: str):
    """Return an empty store, in this process."""
    from stores import open_store

    opened = open_store(url)
    yield opened
    runner.run(opened.close())


@pytest.fixture(scope="session")
def crowd() -> Iterator[Crowd]:
    with Crowd() as started:
        yield started
