"""All forms of one task, accepted together in one update, after a list of exactly what is sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Button

from app.text import inert_line, plural
from app.tui.appearing import Appearance
from app.tui.widgets.delivering import deliver
from app.tui.widgets.host import host_of, in_background
from app.tui.widgets.inert import InertText, Part, content, joined
from app.tui.widgets.question_card import QuestionCard
from app.tui.widgets.question_form import QuestionForm, preview


class AllAtOnce(Vertical):
    """Stands below the cards where several forms are open."""

    DEFAULT_CSS = """
    AllAtOnce { height: auto; display: none; margin: 0 0 1 0; }
    AllAtOnce.offered { display: block; }
    AllAtOnce .list { background: $surface; padding: 0 1; display: none; }
    AllAtOnce.asked .list { display: block; }
    AllAtOnce > Horizontal { height: 1; }
    AllAtOnce Button { margin: 0 1 0 0; }
    AllAtOnce Button:focus { background: $primary; color: $background; text-style: bold; }
    AllAtOnce .sure { display: none; }
    AllAtOnce.asked .sure { display: block; }
    AllAtOnce.asked .offer { display: none; }
    """

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._forms: tuple[QuestionForm, ...] = ()
        self._listed: list[tuple[int, str]] = []
        """What the list says is sent: each question with its response."""
        self._appearance = Appearance(monotonic)
        self._list = InertText("", classes="list")
        self._words = InertText("", "$text-warning")
        self._words.display = False
        self._offer = Button(content(""), compact=True, classes="offer")
        self._not_now = Button(content("Not now"), compact=True, classes="sure")
        self._send = Button(content(""), "success", compact=True, classes="sure")

    def compose(self) -> ComposeResult:
        """Lay out the offer, and the list that comes before anything is sent."""
        yield self._list
        yield self._words
        with Horizontal():
            yield self._offer
            yield self._not_now
            yield self._send

    def follow(self, cards: Sequence[QuestionCard]) -> None:
        """Offer it where several of *cards* are forms that wait for an answer."""
        forms = tuple(c for c in cards if type(c) is QuestionForm and c.phase == "asking")
        if forms == self._forms:
            return
        self._forms = forms
        self.set_class(len(forms) > 1, "offered")
        self._offer.label = content(f"Accept all {len(forms)} in one update…")
        self._send.label = content(f"Send all {len(forms)}")
        if self.has_class("asked"):
            self._leave("The questions have changed: nothing was sent.")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Show what would be sent, send it, or leave it."""
        event.stop()
        if event.button is self._offer:
            self._ask()
        elif event.button is self._send:
            self._accept()
        else:
            self._leave("")
            self._offer.focus()

    def _filled(self) -> list[tuple[QuestionForm, str]] | None:
        """Return each form with its content; ``None``: one is not valid, and shows why."""
        filled = [(form, form.fields.fill()) for form in self._forms]
        for form, found in filled:
            if not found.ok:
                form.fields.judge()
                self._leave(f"Nothing was sent: {inert_line(form.question.key, 40)} is not valid yet.")
                return None
        return [(form, found.content_json) for form, found in filled]

    def _ask(self) -> None:
        filled = self._filled()
        if filled is None:
            return
        self._listed = [(form.question.id, text) for form, text in filled]
        parts: list[Part] = [(f"{plural(len(filled), 'answer')} in one update:\n", "bold")]
        for form, _ in filled:
            parts.append((f"\n{inert_line(form.question.key, 60)}", "bold"))
            parts.append(f": {inert_line(form.message, 300)}\n{preview(form.question, form.fields)}\n")
        self._list.show(joined(*parts))
        self._leave("")
        self.add_class("asked")
        self._appearance = Appearance(self._monotonic)
        self.call_after_refresh(self._shown)

    def _shown(self) -> None:
        self._appearance.seen()
        self.scroll_visible(animate=False)
        self._not_now.focus()

    def _accept(self) -> None:
        filled = self._filled()
        if filled is None:
            return
        if [(form.question.id, text) for form, text in filled] != self._listed:
            self._ask()
            self._say("Something was typed meanwhile: look at the list again.")
            return
        if not self._appearance.is_settled(self.app):
            self._say("This list has only just appeared here: look at it, then press again.")
            return
        engine = host_of(self).engine
        if engine is None:
            self._say("Still connecting: try again in a moment. Nothing was sent.")
            return
        for form, _ in filled:
            form.begin_sending()
        self._leave("")
        in_background(self.app, deliver(self.app, engine, "accept", filled), group="answers")

    def _leave(self, words: str) -> None:
        self.remove_class("asked")
        self._say(words)

    def _say(self, words: str) -> None:
        self._words.display = bool(words)
        self._words.show(words, "$text-warning")
