"""PostgreSQL and Redis for the tests: servers of their own, on loopback, in a folder of their own.

Both write to the disk before they acknowledge, as a server with anything to lose has them do.
"""

import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 60.0

IS_REQUIRED = os.environ.get("AGUI_RUNS_STORES") == "required"

# Debian keeps the programs of PostgreSQL out of the path, in a folder for each version.
FOLDERS = (os.environ["PATH"], *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"))))
DRIVERS = {
    "sqlite": (),
    "postgresql": ("psycopg", "psycopg_pool"),
    "sqlalchemy": ("psycopg", "sqlalchemy"),
    "redis": ("redis",),
}
PROGRAMS = {
    "sqlite": (),
    "postgresql": ("initdb", "pg_ctl"),
    "sqlalchemy": ("initdb", "pg_ctl"),
    "redis": ("redis-server",),
}


def program(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join(FOLDERS))


def missing(store: str) -> str:
    """Return what a store misses and the command that brings it, or nothing."""
    if os.name == "nt":
        return "no process is forked on Windows, and none is killed with SIGKILL"
    for module in DRIVERS[store]:
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed: pip install --editable '.[stores]'"
    for name in PROGRAMS[store]:
        if program(name) is None:
            return f"{name} is not installed: apt-get install postgresql redis-server"
    return ""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


@contextmanager
def own_folder(user: str | None) -> Iterator[Path]:
    """Make a folder for a server that runs as this user, and remove it with all that is in it."""
    with tempfile.TemporaryDirectory(prefix="agui-runs-") as folder:
        if user:
            shutil.chown(folder, user)
        yield Path(folder)


@contextmanager
def postgresql() -> Iterator[str]:
    """Run PostgreSQL; return the URL of its server, without a database."""
    # It refuses to be run by root, and Debian's package has made a user for it.
    user = "postgres" if os.geteuid() == 0 else None
    initdb, pg_ctl = program("initdb"), program("pg_ctl")
    with own_folder(user) as folder:

        def run(*command: object) -> None:
            subprocess.run(
                list(map(str, command)),
                user=user,
                cwd=folder,
                check=True,
                stdout=subprocess.DEVNULL,
            )

        data, port = folder / "data", free_port()
        run(
            initdb, "--pgdata", data, "--username", "tests", "--auth", "trust", "--encoding", "UTF8"
        )
        settings = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
        with (data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
        log = folder / "log"
        run(pg_ctl, "start", "--pgdata", data, "--wait", "--timeout", 60, "--log", log)
        try:
            yield f"postgresql://tests@127.0.0.1:{port}"
        finally:
            run(pg_ctl, "stop", "--pgdata", data, "--wait", "--mode", "immediate")


@contextmanager
def redis() -> Iterator[str]:
    """Run Redis; return the URL of its server."""
    with own_folder(None) as folder:
        port = free_port()
        settings = {"port": port, "bind": "127.0.0.1", "dir": folder, "save": ""}
        durable = {"appendonly": "yes", "appendfsync": "always", "logfile": folder / "log"}
        options = [
            str(word)
            for name, value in {**settings, **durable}.items()
            for word in (f"--{name}", value)
        ]
        with subprocess.Popen([program("redis-server"), *options]) as server:
            try:
                deadline = time.monotonic() + PATIENCE
                while not answers(port):
                    assert server.poll() is None, "Redis does not start"
                    assert time.monotonic() < deadline, "Redis does not answer"
                    time.sleep(0.05)
                yield f"redis://127.0.0.1:{port}"
            finally:
                server.terminate()


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True
