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
        self._is_touched = False

    def seen(self) -> None:
        """It is being painted."""
        if self._since is None:
            self._since = self._monotonic()

    def moved(self) -> None:
        """Begin the moment anew: it has moved under the person's hand."""
        if self._since is not None:
            self._since = self._monotonic()

    def touched(self) -> None:
        """A person has done something with it: from then on it grows under their own hand."""
        self._is_touched = True

    def grown(self) -> None:
        """It takes another room: what nobody has touched and takes its place only now was not read before."""
        if not self._is_touched:
            self.moved()

    def is_settled(self, app: App[object]) -> bool:
        """Say whether what is pressed now was meant for it.

        What was pressed too early begins the moment anew: a key that is held down never answers.
        """
        if self._since is None:
            return False
        pressed_at: float | None = getattr(app, "pressed_at", None)
        late = 0.0 if pressed_at is None else max(0.0, events.Event().time - pressed_at)
        pressed = self._monotonic() - late
        if pressed >= self._since + GRACE:
            return True
        self._since = max(self._since, pressed)
        return False
