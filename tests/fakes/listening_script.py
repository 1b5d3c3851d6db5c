"""A task server that takes subscriptions; a test says which tasks it accepts, and when a stream ends how."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fakes.listen_script import Item, ack_with, cancelled, event, finished, ids_of, told
from fakes.mcp_server import Exchange, head
from fakes.task_script import TaskScript, task


@dataclass(eq=False)
class Line:
    """One open stream, as the server sees it."""

    ids: tuple[str, ...]
    """The tasks that the request names."""
    accepted: tuple[str, ...]
    exchange: Exchange
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def say(self, *items: Item) -> None:
        """Send messages."""
        for item in items:
            await self.exchange.send(event(item(self.exchange.request)))

    async def finish(self) -> None:
        """End it with the final result."""
        await self.say(finished())
        self.exchange.writer.close()

    async def cancel(self) -> None:
        """Tear it down, and say so."""
        await self.say(cancelled("maintenance"))
        self.exchange.writer.close()

    async def drop(self) -> None:
        """Close the connection."""
        self.exchange.writer.close()

    async def cut(self) -> None:
        """Break off in the middle of a message."""
        await self.exchange.send(b"data: {")
        self.exchange.abort()


@dataclass
class ListeningScript(TaskScript):
    """`TaskScript` with ``subscriptions/listen``: each stream tells what `tell` is told to tell."""

    accepts: Callable[[str], bool] = lambda task_id: True
    greets: bool = True
    """An acknowledgement is followed by a snapshot of each accepted task."""
    lines: list[Line] = field(default_factory=list)
    """The streams that are open, the oldest first."""
    log: list[str] = field(default_factory=list)
    """``open t1,t2`` and ``close t1,t2``, in order."""
    most: int = 0
    """The most streams that were open at a time."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._moved = asyncio.Condition()
        self.on("subscriptions/listen", self.listen)

    async def listen(self, exchange: Exchange) -> None:
        """Acknowledge what is accepted, and keep the stream open until the client or a test ends it."""
        ids = ids_of(exchange.request)
        line = Line(tuple(ids), tuple(filter(self.accepts, ids)), exchange)
        await exchange.send(head(200, "text/event-stream", {"Connection": "close"}))
        named = ",".join(ids[:3])
        await self._change(f"open {named}", lambda: self.lines.append(line))
        try:
            await line.say(ack_with({"taskIds": list(line.accepted)} if line.accepted else {}))
            known = [self.tasks[one] for one in line.accepted if one in self.tasks]
            await line.say(*(told(one) for one in known if self.greets))
            await exchange.closed_by_client()
        finally:
            line.ended.set()
            await self._change(f"close {named}", lambda: self.lines.remove(line))

    async def _change(self, words: str, change: Callable[[], Any]) -> None:
        async with self._moved:
            change()
            self.log.append(words)
            self.most = max(self.most, len(self.lines))
            self._moved.notify_all()

    async def opened(self, count: int = 1) -> Line:
        """Return the newest stream once *count* are open."""
        await self.until(lambda: len(self.lines) == count)
        return self.lines[-1]

    async def until(self, true: Callable[[], object]) -> None:
        """Return once *true* holds; looked at whenever a stream opens or closes."""
        async with self._moved:
            await asyncio.wait_for(self._moved.wait_for(true), 30)

    async def tell(self, task_id: str, status: str = "working", **members: Any) -> None:
        """Say how a task is from now on, and tell every stream that has accepted it."""
        self.show(task_id, status, **members)
        for line in self.lines:
            if task_id in line.accepted:
                await line.say(told(task(task_id, status, **members)))
