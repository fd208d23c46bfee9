"""A server whose runs learn of a stop at once, and not when the last stream has been closed.

uvicorn waits for every stream before it tells the application that it stops, and a stream waits
for its run.
"""

import asyncio
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette


class GracefulServer(uvicorn.Server):
    """Tells the runs of SIGTERM as it comes, so that each stream still gets an ending."""

    def __init__(self, app: Starlette, grace: float, **options: Any) -> None:
        # The streams get their endings within the grace, and a little later none is left.
        super().__init__(uvicorn.Config(app, timeout_graceful_shutdown=int(grace) + 5, **options))
        self.app = app
        self.grace = grace
        self.stopping: asyncio.Task[None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self.loop.call_soon_threadsafe(self.stop_runs)

    def stop_runs(self) -> None:
        self.stopping = self.stopping or self.loop.create_task(
            self.app.state.workers.stop(self.grace)
        )

    async def serve(self, sockets: Any = None) -> None:
        self.loop = asyncio.get_running_loop()
        await super().serve(sockets)
