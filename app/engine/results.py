"""Answers that are results of their own: sampling and roots, checked before they are saved.

Whatever gave it, nothing else goes out than what the published schema and the person's own settings allow.
"""

from __future__ import annotations

from typing import Any

import simplejson

from app.config import Abilities
from app.engine.commands import Answer, EngineError
from app.forms import roots
from app.forms.sampling import SamplingForm
from app.text import inert_line
from storage.records import QuestionRecord


def check_result(answer: Answer, abilities: Abilities) -> None:
    """Raise `EngineError` ``invalid`` unless *answer* is a result that its question may be answered with."""
    question = answer.question
    if answer.action != "accept" or answer.content_json is None:
        raise EngineError(
            "invalid",
            f"{inert_line(question.method, 80)} has no word for no on the wire: "
            "answer it, refuse it here, or cancel its task.",
        )
    if question.method == roots.METHOD:
        errors = roots.fill_json(answer.content_json, abilities.roots).errors
    else:
        errors = SamplingForm(params_of(question)).fill_json(answer.content_json).errors
    if errors:
        reasons = "; ".join(f"{name or 'the whole'}: {why}" for name, why in errors.items())
        raise EngineError(
            "invalid", f"The answer to {inert_line(question.key, 80)} can't be sent: {reasons}."
        )


def params_of(question: QuestionRecord) -> dict[str, Any]:
    """Return the parameters of a question's request; empty where they can't be read."""
    try:
        request = simplejson.loads(question.request_json, use_decimal=True)
    except (ValueError, ArithmeticError, RecursionError):
        return {}
    params = request.get("params") if isinstance(request, dict) else None
    return params if isinstance(params, dict) else {}
