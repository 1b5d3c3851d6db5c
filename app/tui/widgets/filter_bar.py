"""The line in which a filter is typed; made when it is first asked for."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input


class FilterBar(Input):
    """Says what is typed at once; Enter and the arrow down go to the list."""

    DEFAULT_CSS = """
    FilterBar, FilterBar:focus {
        height: 1; border: none; padding: 0 1; background: $panel; background-tint: $foreground 0%;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "submit", "To the list", id="filter.down", show=False)
    ]

    class Typed(Message):
        """The filter has become another."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Done(Message):
        """The person goes on to the list."""

    def __init__(self) -> None:
        super().__init__(placeholder="server, tool, id or message; Escape clears", id="filter")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Say it."""
        event.stop()
        self.post_message(self.Typed(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Say it."""
        event.stop()
        self.post_message(self.Done())
