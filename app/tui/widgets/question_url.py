"""A question in URL mode: an address to be visited, by a person who has seen where it leads.

Nothing is ever fetched from here. ``accept`` says that the person agreed to go there, not that anything is
done (elicitation, "URL mode").
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Button

from app.tui.widgets.host import in_background, is_alive
from app.tui.widgets.inert import InertText, Part, content, joined
from app.tui.widgets.question_card import QuestionCard
from app.tui.widgets.url_review import UrlReview, open_in_browser, review_url
from storage.records import QuestionRecord


class QuestionUrl(QuestionCard):
    """Asks to go somewhere."""

    DEFAULT_CSS = """
    QuestionUrl .host { text-style: bold; }
    QuestionUrl .consent { height: auto; display: none; margin: 0 0 1 0; }
    QuestionUrl .consent Button { margin: 0 1 0 0; }
    QuestionUrl .consent.asked { display: block; }
    QuestionUrl .consent .words { width: auto; margin: 0 2 0 0; }
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
        self.review: UrlReview = review_url(url if isinstance(url, str) else "")
        self._opener = opener
        self._consent = Horizontal(classes="consent")
        self._not_now = Button(content("Not now"), compact=True, classes="answer not-now")
        self._go = Button(content("Open"), "success", compact=True, classes="answer go")

    def body(self) -> ComposeResult:
        review = self.review
        parts: list[Part] = [("Host  ", "$text-muted"), (review.host or "‹none›", "bold")]
        yield InertText(joined(*parts), classes="host")
        yield InertText(joined(("Full address  ", "$text-muted"), review.url or "‹no address›"))
        warnings = [*review.warnings, *([review.problem] if review.problem else [])]
        if warnings:
            yield InertText("\n".join(f"! {text}" for text in warnings), "$text-warning")
        yield InertText("")
        with self._consent:
            yield InertText(f"Open {review.host} in your browser?", classes="words")
            yield self._not_now
            yield self._go

    def buttons(self) -> ComposeResult:
        openable = self.review.problem is None
        if openable:
            yield Button(content("Open in browser…"), "success", compact=True, classes="answer open")
            yield Button(content("Copy & accept"), compact=True, classes="answer copy")
        yield Button(content("Decline"), compact=True, classes="answer decline warns")
        yield Button(content("Dismiss"), compact=True, classes="answer dismiss")

    def pressed(self, button: Button) -> None:
        """Ask before opening; everything else is the card's."""
        if button.has_class("open"):
            self.action_accept()
        elif button is self._not_now:
            self._consent.remove_class("asked")
            self.focus_form()
        elif button is self._go:
            self._open()
        elif button.has_class("copy"):
            if self.armed:
                self.app.copy_to_clipboard(self.review.url)
            self.give("accept")
        else:
            super().pressed(button)

    def action_accept(self) -> None:
        """Ask whether to open the address; the safe button has the focus."""
        if self.phase != "asking" or self.review.problem is not None:
            return
        self._consent.add_class("asked")
        self._not_now.focus()

    def _open(self) -> None:
        if self.phase != "asking" or not self.armed:
            return
        self._consent.remove_class("asked")
        self._say("Opening your browser…")
        in_background(self.app, self._open_then_accept(), group="browser")

    async def _open_then_accept(self) -> None:
        opened = await asyncio.to_thread(self._opener, self.review.url)
        if not is_alive(self):
            return
        if opened:
            self.give("accept")
        else:
            self._say(
                "No browser could be opened from here, and nothing was answered. "
                "Copy & accept puts the address on the clipboard.",
                "$text-error",
            )
