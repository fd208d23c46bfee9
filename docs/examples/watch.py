"""One look for all who wait: a hundred readers of one row cost as many reads as one reader."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Watch(Generic[K, V]):
    """Looks at what other processes may change, again and again, while anybody waits for it."""

    def __init__(self, look: Callable[[K], Awaitable[V]], every: float) -> None:
        self.look = look
        self.every = every
        self.looks: dict[K, asyncio.Task[V]] = {}

    async def next(self, key: K) -> V:
        """Wait for the next look at this key, and return what it has found."""
        if key not in self.looks:
            self.looks[key] = asyncio.create_task(self._look_later(key))
        # One that waits may be cancelled, as its connection goes, and the others wait on.
        return await asyncio.shield(self.looks[key])

    async def _look_later(self, key: K) -> V:
        await asyncio.sleep(self.every)
        # Who comes from here on may have seen more than this look finds, and waits for the next.
        del self.looks[key]
        return await self.look(key)
