"""What was done in a form, field by field, so that it can be undone; pure, and blind to what a state is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

T = TypeVar("T")

MOST_STEPS: Final = 500
"""Steps that are remembered; the oldest go first."""

TYPED_AT_ONCE: Final = 8
"""Characters by which a text may change and still count as typing: keys that came together."""


@dataclass(frozen=True, slots=True)
class Step(Generic[T]):
    """A change of one field."""

    name: str
    before: T
    after: T


class History(Generic[T]):
    """A stack of changes over all fields of a form. What is typed in one go is one step: a word, about."""

    def __init__(self) -> None:
        self._done: list[Step[T]] = []
        self._undone: list[Step[T]] = []
        self._paused = False

    def pause(self) -> None:
        """Let the next change be a step of its own, however much it looks like typing."""
        self._paused = True

    def record(self, name: str, before: T, after: T) -> None:
        """Remember a change that a person made; what had been undone can't be redone any more."""
        self._undone.clear()
        step = Step(name, before, after)
        if self._done and not self._paused and _goes_on(self._done[-1], step):
            step = Step(name, self._done.pop().before, after)
        self._paused = False
        self._done.append(step)
        del self._done[:-MOST_STEPS]

    def undo(self) -> tuple[str, T] | None:
        """Return the field to be set back and the state it is set to; ``None``: there is nothing to undo."""
        if not self._done:
            return None
        step = self._done.pop()
        self._undone.append(step)
        return step.name, step.before

    def redo(self) -> tuple[str, T] | None:
        """Return the field to be set again and the state it is set to; ``None``: nothing was undone."""
        if not self._undone:
            return None
        step = self._undone.pop()
        self._done.append(step)
        return step.name, step.after


def _goes_on(last: Step[T], step: Step[T]) -> bool:
    """Say whether *step* only types on, or rubs out on, where *last* did."""
    if last.name != step.name or last.after != step.before:
        return False
    before, after = _text(step.before), _text(step.after)
    if before is None or after is None or before.count("\n") != after.count("\n"):
        return False
    growth = len(after) - len(before)
    if not 0 < abs(growth) <= TYPED_AT_ONCE or (growth > 0) != (_growth(last) > 0):
        return False
    return growth < 0 or not (before[-1:].isspace() and not after[-1:].isspace())


def _growth(step: Step[T]) -> int:
    return len(_text(step.after) or "") - len(_text(step.before) or "")


def _text(state: object) -> str | None:
    """Return what was typed, of several texts one a line; ``None``: nothing was."""
    if isinstance(state, list):
        return "\n".join(map(str, state))
    return state if isinstance(state, str) else None
