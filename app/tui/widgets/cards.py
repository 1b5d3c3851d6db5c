"""Which card a question gets."""

from __future__ import annotations

import time
from collections.abc import Callable

from app.tui.widgets.browser import open_in_browser
from app.tui.widgets.question_card import QuestionCard, request_params
from app.tui.widgets.question_form import QuestionForm
from app.tui.widgets.question_other import QuestionOther
from app.tui.widgets.question_url import QuestionUrl
from storage.records import QuestionRecord


def make_card(
    question: QuestionRecord,
    draft_json: str | None,
    *,
    opener: Callable[[str], bool] = open_in_browser,
    monotonic: Callable[[], float] = time.monotonic,
) -> QuestionCard:
    """Return the card for *question*; *opener* opens an address in a browser."""
    if question.method != "elicitation/create":
        return QuestionOther(question, monotonic=monotonic)
    # A form may leave its mode out (elicitation, "Elicitation Requests").
    mode = request_params(question).get("mode", "form")
    if mode == "url":
        return QuestionUrl(question, opener=opener, monotonic=monotonic)
    if mode == "form":
        return QuestionForm(question, draft_json, monotonic=monotonic)
    return QuestionOther(question, monotonic=monotonic)
