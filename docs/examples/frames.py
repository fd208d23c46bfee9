"""The frames of a stream, kept for a connection that may read slowly or be gone.

What a run sends is put here without waiting, and at most `LIMIT` frames are kept. A reader that
falls behind misses what comes after them, except that each message and tool call which it has seen
begin is closed, as AG-UI demands. The run gives it the whole state again before the ending.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from ag_ui import core
from ag_ui.encoder import EventEncoder

LIMIT = 1000


class Frames:
    """One reader's frames, in order."""

    def __init__(self) -> None:
        self.waiting: deque[str] = deque()
        self.news = asyncio.Event()
        self.open: set[str] = set()
        self.has_missed = False
        self.is_ended = False
        self.is_gone = False

    def put(self, event: core.BaseEvent) -> None:
        """Keep an event, unless the reader is gone or has fallen behind."""
        if self.is_gone or not self._is_wanted(event):
            return
        self.waiting.append(as_frame(event))
        self.news.set()

    def end(self, *events: dict[str, Any]) -> None:
        """Keep the last events, however many there are already, and let the reader finish."""
        if not self.is_gone:
            self.waiting.extend(as_frame(event) for event in events)
        self.is_ended = True
        self.news.set()

    async def read(self) -> AsyncIterator[str]:
        """Yield the frames as they come."""
        try:
            while self.waiting or not self.is_ended:
                while self.waiting:
                    yield self.waiting.popleft()
                if not self.is_ended:
                    self.news.clear()
                    await self.news.wait()
        finally:
            self.is_gone = True
            self.waiting.clear()

    def _is_wanted(self, event: core.BaseEvent) -> bool:
        """Tell whether to keep an event, and remember what it opens and closes."""
        if isinstance(event, core.TextMessageEndEvent | core.ToolCallEndEvent):
            # `discard` gives nothing back, so what was opened is looked for first.
            was_open = opened_by(event) in self.open
            self.open.discard(opened_by(event))
            return was_open
        self.has_missed = self.has_missed or len(self.waiting) >= LIMIT
        if self.has_missed:
            return False
        if isinstance(event, core.TextMessageStartEvent | core.ToolCallStartEvent):
            self.open.add(opened_by(event))
        return True


def opened_by(event: core.BaseEvent) -> str:
    """Return the id of the message or the call that an event is about."""
    return str(getattr(event, "message_id", None) or getattr(event, "tool_call_id", None))


def as_frame(event: core.BaseEvent | dict[str, Any]) -> str:
    """Return an event, or what `to_protocol` gives, as Server-Sent Events have it."""
    if isinstance(event, core.BaseEvent):
        return EventEncoder().encode(event)
    return f"data: {json.dumps(event)}\n\n"
