"""Work that goes on when whoever asked for it goes away, such as a screen that is closed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from app.engine.commands import EngineError

CLOSING_S: Final = 2.0
"""How long `Work.end` lets what is under way finish, a delivery for one."""

T = TypeVar("T")
log = logging.getLogger(__name__)


class Work:
    """What the engine is doing beside its `run`."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Do *work* to its end, even where the caller is cancelled meanwhile."""
        return await asyncio.shield(self.begin(work))

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Do *work* while the caller goes on."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def end(self) -> None:
        """Let everything finish for a moment, then cancel it."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSING_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, EngineError):  # its message may repeat what a server said of an answer
            log.info("A command did not succeed: %s", error.failure)
        else:
            log.error("A command failed", exc_info=error)
