"""Whether a key or a click was meant for what is on the screen, and not for what was there before.

Building a large form takes seconds; what is pressed meanwhile was meant for something else. So nothing counts
before the thing was painted, nothing that was pressed before that, and nothing for a moment after.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from textual import events
from textual.app import App

GRACE: Final = 0.4
"""Seconds in which nobody can have read what has just appeared."""


class Appearance:
    """When something came to the screen. *monotonic* gives seconds."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._since: float | None = None
        self._painted_at = float("inf")
        """By the clock that events are stamped with."""

    def seen(self) -> None:
        """It is being painted."""
        if self._since is None:
            self._since = self._monotonic()
            self._painted_at = events.Event().time

    def moved(self) -> None:
        """Begin the moment anew: it has moved under the person's hand."""
        if self._since is not None:
            self._since = self._monotonic()

    def is_settled(self, app: App[object]) -> bool:
        """Say whether what is pressed now was meant for it."""
        if self._since is None:
            return False
        pressed_at = getattr(app, "pressed_at", None)
        in_time = pressed_at is None or pressed_at >= self._painted_at
        return in_time and self._monotonic() >= self._since + GRACE
