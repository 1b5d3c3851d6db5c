"""A question in URL mode: an address to be visited, by a person who has seen where it leads.

Nothing is ever fetched from here. ``accept`` says that the person agreed to go there, not that anything is
done (elicitation, "URL mode").
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Button

from app.text import inert_line
from app.tui.screens.qr import QrScreen
from app.tui.widgets.address import Way, fits_as_code
from app.tui.widgets.browser import open_in_browser
from app.tui.widgets.host import host_of, in_background, is_alive, server_url
from app.tui.widgets.inert import InertText, Part, content, joined
from app.tui.widgets.question_card import QuestionCard
from app.urls import UrlReview, review_url
from storage.records import QuestionRecord

_ASKED: Final[dict[Way, tuple[str, str]]] = {
    "open": ("open {host} in your browser?", "Open"),
    "copy": ("copy the address, to go to {host}?", "Copy"),
    "qr": ("show the address as a QR code, to go to {host}?", "Show"),
}


class QuestionUrl(QuestionCard):
    """Asks to go somewhere."""

    DEFAULT_CSS = """
    QuestionUrl .host { text-style: bold; }
    QuestionUrl .consent { height: auto; display: none; margin: 0 0 1 0; }
    QuestionUrl .consent Horizontal { height: 1; }
    QuestionUrl .consent Button { margin: 0 1 0 0; }
    QuestionUrl .consent.asked { display: block; }
    QuestionUrl > .buttons Button { min-width: 9; }
    """

    def __init__(
        self,
        question: QuestionRecord,
        *,
        opener: Callable[[str], bool] = open_in_browser,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(question, monotonic=monotonic)
        url = self.params.get("url")
        self._url = url if isinstance(url, str) else ""
        self.review: UrlReview = review_url(self._url)
        self._opener = opener
        self._way: Way = "open"
        self._words = InertText("", classes="words")
        self._consent = Vertical(classes="consent")
        self._not_now = Button(content("Not now"), compact=True, classes="answer not-now")
        self._go = Button(content("Open"), "success", compact=True, classes="answer go")

    def body(self) -> ComposeResult:
        review = self.review = review_url(self._url, server_url(self, self.question.task.server))
        parts: list[Part] = [("Host  ", "$text-muted"), (review.host or "‹none›", "bold")]
        yield InertText(joined(*parts), classes="host")
        yield InertText(joined(("Full address  ", "$text-muted"), review.url or "‹no address›"))
        warnings = [*review.warnings, *([review.problem] if review.problem else [])]
        if warnings:
            yield InertText("\n".join(f"! {text}" for text in warnings), "$text-warning")
        yield InertText("")
        with self._consent:
            yield self._words
            with Horizontal():
                yield self._not_now
                yield self._go

    def buttons(self) -> ComposeResult:
        if self.review.problem is None:
            yield Button(content("Open…"), "success", compact=True, classes="answer open")
            yield Button(content("Copy…"), compact=True, classes="answer copy")
            yield Button(content("QR code…"), compact=True, classes="answer qr")
        yield Button(content("Decline"), compact=True, classes="answer decline warns")
        yield Button(content("Dismiss"), compact=True, classes="answer dismiss")

    def pressed(self, button: Button) -> None:
        """Ask before anything is done with the address; everything else is the card's."""
        if button.has_class("open"):
            self._ask("open")
        elif button.has_class("copy"):
            self._ask("copy")
        elif button.has_class("qr"):
            self._ask("qr")
        elif button is self._not_now:
            self._consent.remove_class("asked")
            self.focus_form()
        elif button is self._go:
            self._agree()
        else:
            super().pressed(button)

    def action_accept(self) -> None:
        """Ask whether to open the address."""
        self._ask("open")

    def _ask(self, way: Way) -> None:
        """Ask for consent; the safe button has the focus."""
        if self.phase != "asking" or self.review.problem is not None:
            return
        no_room = fits_as_code(self.app, self.review.url) if way == "qr" else None
        if no_room is not None:
            self._say(f"{no_room} Nothing was answered.", "$text-warning")
            return
        self._way = way
        words, act = _ASKED[way]
        server, host = inert_line(self.question.task.server, 60), inert_line(self.review.host, 300)
        self._words.show(f"Tell {server} that you agree, and {words.format(host=host)}")
        self._go.label = content(act)
        self._consent.add_class("asked")
        self._consent.scroll_visible()
        self._not_now.focus()

    def _agree(self) -> None:
        if self.phase != "asking" or not self._is_meant():
            return
        if host_of(self).engine is None:
            self._say("Still connecting: try again in a moment. Nothing was answered.", "$text-warning")
            return
        self._consent.remove_class("asked")
        if self._way == "open":
            self._say("Opening your browser…")
            in_background(self.app, self._open_then_accept(), group="browser")
            return
        if self._way == "copy":
            self.app.copy_to_clipboard(self.review.url)
        else:
            self.app.push_screen(QrScreen(self.review.url, self.review.host))
        self.give("accept")

    async def _open_then_accept(self) -> None:
        opened = await asyncio.to_thread(self._opener, self.review.url)
        if not is_alive(self):
            return
        if opened:
            self.give("accept")
        else:
            self._say(
                "No browser could be opened from here, and nothing was answered. "
                "Copy the address, or scan its QR code.",
                "$text-error",
            )
