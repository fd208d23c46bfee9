"""The runs at work in this process: taken up, kept alive by a lease, and brought to an end.

The lease of a run is renewed for as long as its task is at work, in a column of its own: not by
events, for a tool that takes long has none. A worker whose process is gone renews nothing.
"""

import asyncio
import logging
from datetime import timedelta

from store import HostError, Key, Row
from succession import end_lost
from sweep import sweep
from work import Host, Work

from agui_runs import RunRecord

LOG = logging.getLogger(__name__)


class Workers:
    """All that is at work here."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.at_work: dict[asyncio.Task[None], Work] = {}
        self.is_stopping = False
        self.is_stopped = False

    async def take(self, row: Row) -> Work | None:
        """Take up a reserved run and return its work, or None where somebody else has it.

        A process that is about to end leaves it to another one.
        """
        if self.is_stopping or row.run.status != RunRecord.RESERVED:
            return None
        now = self.host.clock()
        # The lease comes first: a started run without one would be a lost run.
        await self.renew([row.run.key])
        started = await self.host.store.save(row, row.run.start(now=now))
        if started is None:
            return None
        # A connection may go away. The run is a task of its own, and goes on.
        work = Work(self.host, started)
        task = asyncio.create_task(work.to_the_end())
        self.at_work[task] = work
        task.add_done_callback(self.at_work.pop)
        return work

    def refuse_when_stopping(self) -> None:
        """Refuse new work where the process is about to end."""
        if self.is_stopping:
            raise HostError("server_stopping", "the server is stopping; ask another one", 503)

    async def renew(self, keys: list[Key]) -> None:
        """Renew the lease of these runs."""
        await self.host.store.renew(keys, self.host.clock() + self.host.lease)

    async def keep_alive(self, every: timedelta) -> None:
        """Renew every lease, again and again."""
        while True:
            await asyncio.sleep(every.total_seconds())
            try:
                await self.renew([work.row.run.key for work in self.at_work.values()])
            except Exception:
                LOG.exception("leases were not renewed")

    async def sweep_forever(self, every: float) -> None:
        """Do what must happen by itself, and take up what waits for a server, again and again."""
        while True:
            try:
                swept = await sweep(self.host.store, self.host.clock())
                for row in swept.to_take_up:
                    await self.take(row)
            except Exception:
                LOG.exception("a sweep has failed")
            await asyncio.sleep(every)

    async def stop(self, grace: float) -> None:
        """Let the runs end by themselves for so many seconds, and then end those that have not.

        What they have saved stands. A tool that is at work then is not waited for: its claim stays
        without a result, and so it is listed for a person.
        """
        self.is_stopping = True
        if self.at_work:
            await asyncio.wait(self.at_work, timeout=grace)
        message = "The server was stopped."
        for task, work in list(self.at_work.items()):
            now = self.host.clock()
            work.row = await end_lost(self.host.store, work.row, now, "server_stopping", message)
            task.cancel()
        if self.at_work:
            await asyncio.wait(self.at_work)
        self.is_stopped = True
