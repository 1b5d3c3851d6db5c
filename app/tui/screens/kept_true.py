"""What a screen may have so that the app keeps what it shows true."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Shows(Protocol):
    """A screen that shows one task."""

    def refresh_task(self) -> None:
        """Read the task again."""


@runtime_checkable
class Ticks(Protocol):
    """A screen on which ages go on."""

    def tick(self) -> None:
        """A second has passed."""
