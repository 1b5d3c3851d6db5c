"""A QR code over the whole screen, as large windows as small ones need it."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Center
from textual.geometry import Size
from textual.screen import ModalScreen

from app.tui.widgets.inert import InertLine, InertText, joined_line
from app.tui.widgets.qr_code import NoCode, qr_content, qr_lines


def room_for_code(window: Size) -> Size:
    """Return the cells there are for a code in a *window*: one line says what it is."""
    return Size(window.width, max(0, window.height - 1))


class QrScreen(ModalScreen[None]):
    """The code of one address; Escape closes it."""

    DEFAULT_CSS = """
    QrScreen { background: $background; align: center middle; }
    QrScreen > Center { height: 1fr; align: center middle; }
    QrScreen .code { width: auto; }
    QrScreen > InertLine { dock: top; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "close", "Close", id="qr.close")]

    def __init__(self, url: str, host: str) -> None:
        super().__init__()
        self._url = url
        self._head = joined_line((host, "bold"), "  for your phone · Escape closes this")
        self._code = InertText("", classes="code")

    def compose(self) -> ComposeResult:
        yield InertLine(self._head)
        with Center():
            yield self._code

    def on_mount(self) -> None:
        """Draw the code."""
        self._draw()

    def on_resize(self) -> None:
        """Draw it again where there is another amount of room."""
        self._draw()

    def _draw(self) -> None:
        try:
            lines = qr_lines(self._url, room_for_code(self.app.size))
        except NoCode as why:
            self._code.show(str(why), "$text-warning")
        else:
            self._code.show(qr_content(lines))

    def action_close(self) -> None:
        """Go back."""
        self.dismiss(None)
