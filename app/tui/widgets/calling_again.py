"""A call whose outcome is not known: it is made again only after a warning."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Button

from app.tui.widgets.inert import InertText, content


class CallingAgain(Horizontal):
    """Asks whether a call is to be made once more; the safe button has the focus."""

    DEFAULT_CSS = """
    CallingAgain { height: auto; padding: 0 1; display: none; }
    CallingAgain.asked { display: block; }
    CallingAgain Button { margin: 0 1 0 0; }
    """

    class Wanted(Message):
        """It is to be called again."""

    class Left(Message):
        """It is not."""

    def __init__(self) -> None:
        super().__init__()
        self._yes = Button(content("Call it again"), "warning", compact=True)
        self._no = Button(content("Leave it"), compact=True)

    def compose(self) -> ComposeResult:
        """Lay out the warning and the two ways."""
        yield InertText("It may have run already, and may run twice. Call it again?", "$text-warning")
        yield self._no
        yield self._yes

    def ask(self) -> None:
        """Show the warning."""
        self.add_class("asked")
        self._no.focus()

    def leave(self) -> None:
        """Take the warning away."""
        self.remove_class("asked")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Take the person's word."""
        event.stop()
        self.leave()
        self.post_message(self.Wanted() if event.button is self._yes else self.Left())
