"""Refusing where the wire has no word for it, and what stands on the task afterwards."""

from __future__ import annotations

from typing import Any

from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Button

from app.engine.commands import Engine, EngineError
from app.text import inert_line
from app.tui.messages import CancelRequested
from app.tui.widgets.drafts import drafts_of
from app.tui.widgets.host import host_of, in_background, is_alive
from app.tui.widgets.inert import InertText, content, say
from app.tui.widgets.question_card import QuestionCard
from storage.records import QuestionRecord


class Refusable(QuestionCard):
    """A question that can be answered, or refused here; its buttons of the class ``refuse`` do the latter."""

    def pressed(self, button: Button) -> None:
        """Refuse; everything else is the card's."""
        if button.has_class("refuse"):
            self.refuse()
        else:
            super().pressed(button)

    def refuse(self) -> None:
        """Record that this is not answered: nothing is sent."""
        engine = self._begun()
        if engine is None:
            return
        self._say("Refusing…")
        in_background(self.app, self._refuse(engine), group="answers")

    async def _refuse(self, engine: Engine) -> None:
        app = self.app
        await drafts_of(app).save()
        try:
            words = await engine.refuse(self.question)
        except EngineError as error:
            self.failed(error)
            return
        self.phase = "answered"
        self._say(words)
        say(app, words)
        if is_alive(self):
            self.post_message(self.Unanswered())


class RefusedHere(Vertical):
    """A question that was refused here: its task waits on, which may be ended, or the question answered."""

    DEFAULT_CSS = """
    RefusedHere { height: auto; margin: 0 0 1 0; }
    RefusedHere InertText { color: $text-warning; }
    RefusedHere Horizontal { height: 1; }
    RefusedHere Button { margin: 0 1 0 0; }
    RefusedHere .danger { color: $text-error; }
    """

    def __init__(self, question: QuestionRecord) -> None:
        super().__init__()
        self.question = question

    def compose(self) -> ComposeResult:
        what = f"{inert_line(self.question.method, 60)} ({inert_line(self.question.key, 24)})"
        yield InertText(f"You refused {what}. The server is not told; the task waits on.")
        with Horizontal():
            yield Button(content("Ask me again"), compact=True, classes="reopen")
            yield Button(content("Cancel task…"), compact=True, classes="danger")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Ask again, or offer to cancel."""
        event.stop()
        engine = host_of(self).engine
        if not event.button.has_class("reopen"):
            self.post_message(CancelRequested(self.question.task))
        elif engine is None:
            say(self.app, "Still connecting: try again in a moment.", "warning")
        else:
            in_background(self.app, _reopen(self.app, engine, self.question.id), group="answers")


async def _reopen(app: App[Any], engine: Engine, question_id: int) -> None:
    try:
        await engine.reopen(question_id)
    except EngineError as error:
        say(app, error.message, "error")
