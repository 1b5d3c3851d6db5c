"""Asking before something that can't be undone: which server, which tool, which task, once more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button

from app.tui.widgets.inert import InertLine, InertText, content, joined_line


class Confirm(ModalScreen[bool]):
    """A question to the person with two buttons; the safe one has the focus, and Escape is the safe one."""

    DEFAULT_CSS = """
    Confirm {
        align: center middle;
        background: $background 60%;
    }
    Confirm #confirm-box {
        width: 66;
        max-width: 94%;
        height: auto;
        max-height: 90%;
        padding: 1 2;
        border: round $border;
        background: $surface;
    }
    Confirm #confirm-title { text-style: bold; margin-bottom: 1; }
    Confirm #confirm-words { margin-top: 1; color: $quiet; max-height: 8; }
    Confirm #confirm-buttons { height: auto; margin-top: 1; align-horizontal: right; }
    Confirm Button { margin-left: 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "keep", "Go back", id="confirm.keep"),
        Binding("left,up", "app.focus_previous", "Previous", show=False, id="confirm.previous"),
        Binding("right,down", "app.focus_next", "Next", show=False, id="confirm.next"),
    ]

    def __init__(
        self, title: str, facts: Sequence[tuple[str, str]], words: str, *, keep: str, act: str
    ) -> None:
        """Ask *title* about *facts* (a name and whoever's text), with *words* on what will happen."""
        super().__init__()
        self._title = title
        self._facts = tuple(facts)
        self._words = words
        self._keep = keep
        self._act = act

    def compose(self) -> ComposeResult:
        """Lay out the question."""
        with Vertical(id="confirm-box"):
            yield InertText(self._title, id="confirm-title")
            for name, text in self._facts:
                yield InertLine(joined_line((f"{name:<8}", "$quiet"), (text, "bold")))
            yield InertText(self._words, id="confirm-words")
            with Horizontal(id="confirm-buttons"):
                yield Button(content(self._keep), id="confirm-keep")
                yield Button(content(self._act), variant="error", id="confirm-act")

    def on_mount(self) -> None:
        """Give the safe button the focus: a key in flight must change nothing."""
        self.query_one("#confirm-keep", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Take the person's word."""
        event.stop()
        self.dismiss(event.button.id == "confirm-act")

    def action_keep(self) -> None:
        """Change nothing."""
        self.dismiss(False)
