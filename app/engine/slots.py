"""How many looks are under way at one server at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

IN_FLIGHT: Final = 16
"""Looks under way at one server; calls, answers and cancellations are not counted."""
SLOW_S: Final = 5.0
"""A look that takes longer gives its place to another: those that hang must not hold up the rest."""
SLOW_MOST: Final = 24
"""Looks that have given their place up; with the others they leave connections for other requests."""


class Slots:
    """Places for looks."""

    def __init__(self, places: int = IN_FLIGHT, slow_most: int = SLOW_MOST, slow_s: float = SLOW_S) -> None:
        self._free = asyncio.Semaphore(places)
        self._slow = 0
        self._slow_most = slow_most
        self._slow_s = slow_s

    @asynccontextmanager
    async def taken(self) -> AsyncGenerator[None, None]:
        """Wait for a place, and have it for the block, or for a while."""
        await self._free.acquire()
        has_place = True

        def give_up() -> None:
            nonlocal has_place
            if self._slow < self._slow_most:
                has_place = False
                self._slow += 1
                self._free.release()

        timer = asyncio.get_running_loop().call_later(self._slow_s, give_up)
        try:
            yield
        finally:
            timer.cancel()
            if has_place:
                self._free.release()
            else:
                self._slow -= 1
