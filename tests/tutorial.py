"""Follow the tutorial as its reader does: `python tests/tutorial.py dist`.

In an empty folder, with the wheel in `dist` and nothing of this checkout: the commands are run as
printed, the blocks make `server.py`, and what is typed into Python answers as shown.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

PAGE = Path(__file__).parent.parent / "docs/tutorial.md"
PATIENCE = 60.0
CHECK = """
import doctest
import server
found = doctest.testfile(
    "typed.txt", module_relative=False, optionflags=doctest.ELLIPSIS, globs=vars(server)
)
print(f"{found.attempted} lines typed, {found.failed} answered otherwise")
raise SystemExit(bool(found.failed or not found.attempted))
"""


def blocks(language: str) -> list[str]:
    """Return the code of the page that is in one language."""
    fence = rf"^```{language}\n(.*?)^```$"
    return re.findall(fence, PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def follow(folder: Path, wheels: Path) -> None:
    """Do all that the page says, in this folder."""
    install, serve, ask = blocks("sh")
    python = blocks("python")
    # A reader gets the package from an index, and we this very wheel from where it was built.
    [wheel] = wheels.glob("*.whl")
    chosen = folder / "constraints.txt"
    chosen.write_text(f"agui-runs=={wheel.name.split('-')[1]}\n", encoding="utf-8")
    more = {"PIP_FIND_LINKS": str(wheels), "PIP_CONSTRAINT": str(chosen)}
    environment = {**os.environ, **more}
    shell = ["bash", "-euo", "pipefail", "-c"]
    subprocess.run([*shell, install], cwd=folder, env=environment, check=True)
    code = [block for block in python if not block.startswith(">>>")]
    typed = [block for block in python if block.startswith(">>>")]
    folder.joinpath("server.py").write_text("\n\n".join(code), encoding="utf-8")
    folder.joinpath("typed.txt").write_text("\n\n".join(typed), encoding="utf-8")
    subprocess.run([".venv/bin/python", "-c", CHECK], cwd=folder, check=True)
    with subprocess.Popen([*shell, f"exec {serve}"], cwd=folder) as server:
        try:
            answer = asked(shell, ask, server)
        finally:
            server.terminate()
    events = [json.loads(line[6:])["type"] for line in answer.splitlines() if line]
    if len(events) != 5 or events[-1] != "RUN_FINISHED":
        raise SystemExit(f"the server answered {events}")
    print(f"over HTTP: {', '.join(events)}")


def asked(shell: list[str], command: str, server: subprocess.Popen[bytes]) -> str:
    """Return what the command gives, once the server listens."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        done = subprocess.run([*shell, command], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout
        time.sleep(0.1)
    raise SystemExit(f"no answer to {command}")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        follow(Path(folder), Path(sys.argv[1]).resolve())
