"""The change feed: which keys changed, coalesced, told to many listeners on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from app.engine.commands import Changes
from storage.records import TaskKey

INTERVAL = 0.05
"""Seconds between two tellings at the least: a screen can't show more than about twenty changes a second."""


class ChangeFeed:
    """Collects changed keys and tells them to its listeners; the first at once, the following together.

    All methods are called on the event loop's thread. A listener that raises is reported by the event loop,
    and does not keep the others from hearing.
    """

    def __init__(self, interval: float = INTERVAL) -> None:
        self._interval = interval
        self._tasks: set[TaskKey] = set()
        self._servers: set[str] = set()
        self._listeners: dict[object, Callable[[Changes], None]] = {}
        self._timer: asyncio.TimerHandle | asyncio.Handle | None = None
        self._told_at = float("-inf")

    def listen(self, listener: Callable[[Changes], None]) -> Callable[[], None]:
        """Call *listener* with what changed from now on; returns a function that ends it."""
        token = object()
        self._listeners[token] = listener

        def end() -> None:
            self._listeners.pop(token, None)

        return end

    def add(self, *tasks: TaskKey, server: str | None = None) -> None:
        """Note changed tasks, and a server whose health changed."""
        self._tasks.update(tasks)
        if server is not None:
            self._servers.add(server)
        if self._timer is None and (self._tasks or self._servers):
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(loop.time(), self._told_at + self._interval), self._tell)

    def close(self) -> None:
        """Tell nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._listeners.clear()

    def _tell(self) -> None:
        self._timer = None
        self._told_at = asyncio.get_running_loop().time()
        changes = Changes(frozenset(self._tasks), frozenset(self._servers))
        self._tasks.clear()
        self._servers.clear()
        for token in tuple(self._listeners):
            # Each in a turn of its own: the event loop reports one that raises, and goes on with the next.
            asyncio.get_running_loop().call_soon(self._tell_one, token, changes)

    def _tell_one(self, token: object, changes: Changes) -> None:
        listener = self._listeners.get(token)
        if listener is not None:
            listener(changes)
