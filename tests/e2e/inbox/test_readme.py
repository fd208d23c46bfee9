"""The one command of the README that starts the inbox, as printed, in a fresh copy."""

import os
import re
import shutil
import signal
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent.parent
README = ROOT.joinpath("README.md").read_text("utf-8")
PATIENCE = 300.0


@contextmanager
def started(command, directory):
    """Start a command, and wait until it says that it serves."""
    process = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=directory,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    watchdog = threading.Timer(PATIENCE, os.killpg, (process.pid, signal.SIGKILL))
    watchdog.start()
    said = []
    try:
        for line in process.stderr:
            said.append(line)
            if "running on" in line:
                break
        else:
            raise AssertionError(f"it never served: {''.join(said)}")
        yield
    finally:
        watchdog.cancel()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=PATIENCE)


def test_the_command_of_the_readme_starts_the_inbox(person, tmp_path):
    [command] = re.findall(r"`(python3 -m venv [^`]*agent_server\.py)`", README)
    [address] = re.findall(r"open <(http://[^>]+)>", README)
    clone = tmp_path / "clone"
    for part in ("src", "docs", "pyproject.toml", "README.md", "LICENSE"):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        (clone / part).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / part, clone / part)
    alice = person()
    with started(command, clone):
        alice.opens(address)
        alice.asks("The cup of A-1042 arrived broken.")
        alice.answers("Approve", "Refund 20.00 EUR for order A-1042?")
        alice.sees("Refunded 20.00 EUR for A-1042.")
        alice.sees("Done")
    assert list(clone.glob("*.sqlite3"))
