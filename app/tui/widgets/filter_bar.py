"""The line in which a filter is typed; made when it is first asked for."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input

from app.tui.widgets.inert import InertLine


class FilterInput(Input):
    """Where it is typed; Enter and the arrow down go to the list."""

    takes_what_follows: ClassVar[bool] = True
    """Letters on their way to the list when this is opened are meant for it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "submit", "To the list", id="filter.down", show=False)
    ]


class FilterBar(Horizontal):
    """Says what is typed, key by key."""

    DEFAULT_CSS = """
    FilterBar { height: 1; background: $panel; }
    FilterBar InertLine { width: 3; padding: 0 1; color: $primary; text-style: bold; }
    FilterBar FilterInput, FilterBar FilterInput:focus {
        width: 1fr; height: 1; border: none; padding: 0; background: $panel; background-tint: $foreground 0%;
    }
    """

    class Typed(Message):
        """The filter has become another."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Done(Message):
        """The person goes on to the list."""

    def __init__(self) -> None:
        super().__init__()
        self.input = FilterInput(placeholder="server, tool, id or message; Escape clears")

    def compose(self) -> ComposeResult:
        """Lay out the mark and the field."""
        yield InertLine("/")
        yield self.input

    def on_input_changed(self, event: Input.Changed) -> None:
        """Say it."""
        event.stop()
        self.post_message(self.Typed(event.value))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Say it."""
        event.stop()
        self.post_message(self.Done())
