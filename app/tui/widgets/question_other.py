"""A question of a kind that this installation does not answer (sampling, roots, or one that is not known)."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.app import ComposeResult
from textual.widgets import Button

from app.tui.messages import CancelRequested
from app.tui.widgets.inert import InertText, content
from app.tui.widgets.json_view import pretty
from app.tui.widgets.question_card import QuestionCard
from storage.records import QuestionRecord


class QuestionOther(QuestionCard):
    """Shown as what it is; refusing it has no place on the wire, so cancelling the task is offered."""

    def __init__(
        self,
        question: QuestionRecord,
        why: str,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """*why* says why it is not answered here, and what can be done."""
        super().__init__(question, monotonic=monotonic)
        self._why = why

    def body(self) -> ComposeResult:
        yield InertText(f"{self._why}\n", "$text-warning")
        yield InertText(pretty(self.question.request_json), "$text-muted")

    def buttons(self) -> ComposeResult:
        yield Button(content("Cancel task…"), compact=True, classes="answer cancel-task danger")

    def pressed(self, button: Button) -> None:
        """Offer to cancel the task; everything else is the card's."""
        if button.has_class("cancel-task"):
            self.post_message(CancelRequested(self.question.task))
        else:
            super().pressed(button)

    def action_accept(self) -> None:
        """Nothing here can be accepted."""
