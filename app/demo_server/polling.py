"""A limit on looking at a task more often than its ``pollIntervalMs`` says; off unless it is asked for.

The Tasks page ("Task Polling"): servers may rate-limit clients that poll more frequently than that.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from app.demo_server.errors import TOO_MANY, RpcError

TOLERANCE: Final = 0.8
"""The share of the interval after which a look is on time: a client's clock and the network are not exact."""
REMEMBERED: Final = 10_000
"""Tasks whose last look is remembered; of more, those not looked at for the longest are forgotten."""


class PollLimit:
    """Remembers when each task was last looked at, in memory: a restart forgives."""

    def __init__(self, poll_ms: int, now_ms: Callable[[], int]) -> None:
        self._least_ms = round(poll_ms * TOLERANCE)
        self._poll_ms = poll_ms
        self._now_ms = now_ms
        self._looks: OrderedDict[bytes, int] = OrderedDict()
        """By a digest: an id may be of any length."""

    def check(self, owner: str, task_id: str) -> None:
        """Count a look at a task, whether it exists or not.

        Raises:
            RpcError: 429, with the time to wait, for one that comes too soon. It is not counted, so that a
                client that asks too often still gets an answer once every interval.
        """
        key, now = sha256(f"{owner}\0{task_id}".encode()).digest(), self._now_ms()
        last = self._looks.get(key)
        if last is not None and last <= now < last + self._least_ms:
            wait_ms = last + self._poll_ms - now
            raise RpcError(
                TOO_MANY,
                f"this task may be looked at once in {self._poll_ms} ms",
                {"retryAfterMs": wait_ms},
                http_status=429,
                headers={"Retry-After": str(-(-wait_ms // 1000))},  # whole seconds, rounded up
            )
        self._looks[key] = now
        self._looks.move_to_end(key)
        if len(self._looks) > REMEMBERED:
            self._looks.popitem(last=False)
