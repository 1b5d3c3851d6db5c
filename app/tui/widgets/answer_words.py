"""What became of an answer, or of a question, in words."""

from __future__ import annotations

from typing import Final, Literal

from app.text import inert_line
from storage.records import QuestionRecord

Action = Literal["accept", "decline", "cancel"]

ACTION_WORDS: Final[dict[Action, str]] = {
    "accept": "accepted",
    "decline": "declined",
    "cancel": "dismissed",
}

DELIVERY_WORDS: Final[dict[str, str]] = {
    "acknowledged": "Sent, and the server has it.",
    "saved": "Saved. It is delivered as soon as the server can be reached.",
    "waiting": "Saved. The call goes on once its other questions are answered, too.",
    "refused": "The server refused this answer; the question is open again.",
    "withdrawn": "The question changed or vanished meanwhile; nothing was sent.",
    "unknown": "Sent, but no reply came: whether the call went on is not known.",
}


def why_gone(question: QuestionRecord | None) -> str:
    """Say why a question takes no answer any more; *question* as it stands now, ``None``: it is not there."""
    if question is None or question.state == "withdrawn":
        return "The server no longer asks this."
    if question.state in ("queued", "sent", "acknowledged", "settled"):
        by = f" by {inert_line(question.answered_by, 60)}" if question.answered_by else ""
        return f"This was answered elsewhere{by}."
    return "This question has changed."
