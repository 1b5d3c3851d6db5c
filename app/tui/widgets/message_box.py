"""A server's words, in a box of their own."""

from __future__ import annotations

from textual import events
from textual.containers import VerticalScroll


class MessageBox(VerticalScroll):
    """The server's message: scrolls in its own box when it is long."""

    DEFAULT_CSS = """
    MessageBox { height: auto; max-height: 8; margin: 0 0 1 0; scrollbar-size-vertical: 1; }
    """

    _entered = False

    def enter(self) -> None:
        """Take the focus, even where there is nothing to scroll."""
        # A resize that comes before the focus does must not send it away.
        self._entered = self.can_focus = True
        self.focus()

    def on_blur(self) -> None:
        """Be an ordinary stop again."""
        self._entered = False

    def on_resize(self, _event: events.Resize) -> None:
        """Be a stop for the Tab key only where there is something to scroll."""
        self.can_focus = self.max_scroll_y > 0 or self._entered
