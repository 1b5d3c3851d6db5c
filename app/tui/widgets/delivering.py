"""From cards to the engine and back: what was given is sent, and each card says what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from textual.app import App

from app.engine.commands import Answer, Engine, EngineError
from app.tui.messages import Answered
from app.tui.widgets.answer_words import DELIVERY_WORDS, Action
from app.tui.widgets.drafts import drafts_of
from app.tui.widgets.host import is_alive
from app.tui.widgets.inert import say

if TYPE_CHECKING:
    from app.tui.widgets.question_card import QuestionCard


async def deliver(
    app: App[Any], engine: Engine, action: Action, given: Sequence[tuple[QuestionCard, str | None]]
) -> None:
    """Send answers, all of one task, in one update; *given*: those cards, each with its content."""
    drafts = drafts_of(app)
    # What is typed must be safe even if saving the answer fails, and no draft may follow the answer.
    await drafts.save()
    asked = [card.question for card, _ in given]
    task, alone = asked[0].task, len(given) == 1
    try:
        delivery = await engine.answer(task, [Answer(c.question, action, content) for c, content in given])
    except EngineError as error:
        for card, _ in given:
            card.failed(error, alone=alone)
        if not any(is_alive(card) for card, _ in given):
            say(app, f"{task.server}: {error.message}", "error")
        return
    is_given = delivery.state not in ("refused", "withdrawn")
    for (card, _), question in zip(given, asked, strict=True):
        if is_given:
            drafts.drop(question.id)
        card.delivered(action, delivery)
        told = Answered(task, question.id, action, delivery.state)
        (card if is_alive(card) else app).post_message(told)
    if not is_given and not any(is_alive(card) for card, _ in given):
        say(app, f"{task.server}: {delivery.message or DELIVERY_WORDS[delivery.state]}", "error")
