"""An address that a person has agreed to visit: at hand while its task is watched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Literal

from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Button

from app.tui.screens.qr import QrScreen, room_for_code
from app.tui.widgets.host import in_background
from app.tui.widgets.inert import InertText, content, joined, say
from app.tui.widgets.json_view import response_action
from app.tui.widgets.qr_code import NoCode, qr_lines
from app.tui.widgets.question_card import request_params
from app.urls import UrlReview, review_url
from storage.records import QuestionRecord

Way = Literal["open", "copy", "qr"]

NO_BROWSER: Final = "No browser could be opened from here. Copy the address, or scan its QR code."


def agreed_url(question: QuestionRecord) -> str | None:
    """Return the address of a question in URL mode that was accepted; ``None``: it is none."""
    if question.is_open or response_action(question.response_json) != "accept":
        return None
    params = request_params(question)
    url = params.get("url")
    if params.get("mode") != "url" or not isinstance(url, str):
        return None
    return url if review_url(url).problem is None else None


def fits_as_code(app: App[Any], url: str) -> str | None:
    """Return why *url* can't be shown as a QR code here, for a person; ``None``: it can."""
    try:
        qr_lines(url, room_for_code(app.size))
    except NoCode as why:
        return str(why)
    return None


class AddressAtHand(Vertical):
    """The address, and the ways to it; nothing here answers anything."""

    DEFAULT_CSS = """
    AddressAtHand { height: auto; margin: 0 0 1 0; }
    AddressAtHand Horizontal { height: 1; }
    AddressAtHand Button { margin: 0 1 0 0; min-width: 8; }
    """

    def __init__(self, url: str, opener: Callable[[str], bool]) -> None:
        super().__init__()
        self.review: UrlReview = review_url(url)
        self._opener = opener

    def compose(self) -> ComposeResult:
        host, url = self.review.host, self.review.url
        yield InertText(
            joined(("You agreed to visit  ", "$text-muted"), (host, "bold"), f"\n{url}"), limit=10_000
        )
        with Horizontal():
            yield Button(content("Open"), compact=True, classes="open")
            yield Button(content("Copy"), compact=True, classes="copy")
            yield Button(content("QR code"), compact=True, classes="qr")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Go there once more."""
        event.stop()
        way = next(way for way in ("open", "copy", "qr") if event.button.has_class(way))
        if way == "open":
            in_background(self.app, self._open(), group="browser")
        elif way == "copy":
            self.app.copy_to_clipboard(self.review.url)
            say(self.app, "The address is on the clipboard.")
        else:
            self.app.push_screen(QrScreen(self.review.url, self.review.host))

    async def _open(self) -> None:
        app = self.app
        if not await asyncio.to_thread(self._opener, self.review.url):
            say(app, NO_BROWSER, "warning", timeout=10)
