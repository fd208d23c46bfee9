"""A process of the load test: the example server with a tool that leaves a line for each call."""

import asyncio
import os
import sys
from datetime import timedelta
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent.parent / "docs" / "examples"))

from agent_server import build_app
from graceful import GracefulServer
from stores.sqlite import SqliteStore


def main(database: str, calls: str) -> None:
    log = os.open(calls, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def tool(arguments: dict[str, str]) -> str:
        # One write to a file opened for appending is whole, whichever process does it.
        os.write(log, f"{arguments['orderId']}\n".encode())
        await asyncio.sleep(0.05)
        return f"Refunded {arguments['orderId']}."

    app = build_app(SqliteStore(database), tool=tool, lease=timedelta(seconds=5), sweep_every=0.5)
    options = {"host": "127.0.0.1", "port": 0, "access_log": False}
    GracefulServer(app, 5, backlog=500, **options).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
