"""Time and chance as the engine sees them: injected, so that a test owns them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic, time_ns


def now_ms() -> int:
    """Return the time in milliseconds since the Unix epoch."""
    return time_ns() // 1_000_000


async def wait_for_event(event: asyncio.Event, seconds: float) -> bool:
    """Return True as soon as *event* is set, False when *seconds* have passed without it."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Clock:
    """The time, waiting, and chance."""

    now: Callable[[], int] = now_ms
    """Milliseconds since the Unix epoch."""
    wait: Callable[[asyncio.Event, float], Awaitable[bool]] = wait_for_event
    """Whether the event came before that many seconds were over."""
    elapsed: Callable[[], float] = monotonic
    """Seconds from some fixed moment; goes on when the clock on the wall is set."""
    chance: Callable[[], float] = random.random
    """A number from 0 up to, and without, 1."""
