"""The tasks that a person has marked, to answer the one question that all of them ask; pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from app.engine.commands import answerable
from storage.records import QuestionRecord, TaskKey

MOST_MARKS: Final = 100
"""Tasks at a time: what will be answered must be readable in a list."""


class Marks:
    """Marked tasks in the order in which they were marked, each with the questions it asked then.

    All of them have at least one fingerprint in common: only what is the same question, word for word, can be
    answered together.
    """

    def __init__(self) -> None:
        self._asked: dict[TaskKey, dict[str, QuestionRecord]] = {}

    @property
    def keys(self) -> frozenset[TaskKey]:
        """The marked tasks."""
        return frozenset(self._asked)

    def __len__(self) -> int:
        return len(self._asked)

    def toggle(self, key: TaskKey, questions: Sequence[QuestionRecord]) -> str | None:
        """Mark a task that has these questions, or take its mark away; returns why it can't be marked."""
        if key in self._asked:
            del self._asked[key]
            return None
        asked = _open(questions)
        if not asked:
            return "It has no open question that can be answered here."
        if len(self._asked) >= MOST_MARKS:
            return f"{MOST_MARKS} tasks are marked, and more can't be answered together."
        common = self._common()
        if common and not common & asked.keys():
            return "It asks something else than the marked tasks; together they must ask the same."
        self._asked[key] = asked
        return None

    def follow(self, read: Callable[[TaskKey], Sequence[QuestionRecord]]) -> bool:
        """Let marks go whose question is not open any more; returns whether any went."""
        shared = self._shared()
        gone = [key for key, asked in self._asked.items() if not _still(asked, shared, read(key))]
        for key in gone:
            del self._asked[key]
        return bool(gone)

    def clear(self) -> None:
        """Let all marks go."""
        self._asked.clear()

    def together(self) -> list[QuestionRecord]:
        """Return the question that all marked tasks ask, once for each of them."""
        shared = self._shared()
        return [asked[shared] for asked in self._asked.values()] if shared is not None else []

    def _common(self) -> set[str]:
        each = [set(asked) for asked in self._asked.values()]
        return set.intersection(*each) if each else set()

    def _shared(self) -> str | None:
        common = self._common()
        first = next(iter(self._asked.values()), {})
        return next((fingerprint for fingerprint in first if fingerprint in common), None)


def _open(questions: Sequence[QuestionRecord]) -> dict[str, QuestionRecord]:
    found: dict[str, QuestionRecord] = {}
    for question in questions:
        if question.is_open and answerable(question) is not None:
            found.setdefault(question.fingerprint, question)
    return found


def _still(asked: dict[str, QuestionRecord], shared: str | None, questions: Sequence[QuestionRecord]) -> bool:
    """Say whether the question that is to be answered is the very one that was asked, and open."""
    if shared is None:
        return False
    return any(question.is_open and question.id == asked[shared].id for question in questions)
