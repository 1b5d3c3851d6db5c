"""Which card a question gets."""

from __future__ import annotations

import time
from collections.abc import Callable

from app.config import NONE, Abilities
from app.engine.commands import answerable, unanswerable
from app.tui.widgets.browser import open_in_browser
from app.tui.widgets.question_card import QuestionCard
from app.tui.widgets.question_form import QuestionForm
from app.tui.widgets.question_other import QuestionOther
from app.tui.widgets.question_roots import QuestionRoots
from app.tui.widgets.question_sampling import QuestionSampling
from app.tui.widgets.question_url import QuestionUrl
from storage.records import QuestionRecord


def make_card(
    question: QuestionRecord,
    draft_json: str | None,
    abilities: Abilities = NONE,
    *,
    opener: Callable[[str], bool] = open_in_browser,
    monotonic: Callable[[], float] = time.monotonic,
) -> QuestionCard:
    """Return the card for *question*; *opener* opens an address in a browser.

    *abilities* are what its server may ask beside elicitations.
    """
    kind = answerable(question, abilities)
    if kind == "sampling":
        return QuestionSampling(question, draft_json, abilities, monotonic=monotonic)
    if kind == "roots":
        return QuestionRoots(question, abilities, monotonic=monotonic)
    if kind == "url":
        return QuestionUrl(question, opener=opener, monotonic=monotonic)
    if kind == "form":
        return QuestionForm(question, draft_json, monotonic=monotonic)
    return QuestionOther(question, unanswerable(question, abilities) or "", monotonic=monotonic)
