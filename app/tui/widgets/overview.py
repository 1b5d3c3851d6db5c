"""The part of a task that scrolls."""

from __future__ import annotations

from textual.containers import VerticalScroll
from textual.message import Message


class Overview(VerticalScroll):
    """What scrolls: the questions and the result."""

    DEFAULT_CSS = """
    Overview { padding: 0 1; scrollbar-size-vertical: 1; }
    """

    class Resized(Message):
        """There is more or less room for the cards."""

    def on_resize(self) -> None:
        """Say so."""
        self.post_message(self.Resized())
