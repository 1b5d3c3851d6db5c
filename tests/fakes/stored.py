"""What tests put into the store: a clock that ticks, tasks and questions in one line each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from storage.records import (
    NewQuestion,
    NewTask,
    QuestionChange,
    QuestionRecord,
    QuestionState,
    TaskKey,
    TaskRecord,
    TaskState,
    TaskWrites,
)
from storage.store import Store

TASK = TaskKey("ci", "tsk_1")
CALL = TaskKey("ci", "call-1")


@dataclass
class Ticking:
    """A clock that moves by *step* milliseconds each time it is read."""

    now: int = 1_000_000
    step: int = 1

    def __call__(self) -> int:
        self.now += self.step
        return self.now


def asked(key: str = "approve", fingerprint: str = "f1", **more: Any) -> NewQuestion:
    """A question as it is first seen."""
    request = f'{{"method": "elicitation/create", "params": {{"message": "{key}?"}}}}'
    return NewQuestion(key, fingerprint, "elicitation/create", request, **more)


def task(key: TaskKey = TASK, **state: Any) -> NewTask:
    """A task to be added, in that state."""
    return NewTask(key, tool="deploy", state=TaskState(**state))


def sets(**state: Any) -> Callable[[TaskRecord, tuple[QuestionRecord, ...]], TaskWrites]:
    """A decision that changes those fields of the state."""
    return lambda stored, questions: TaskWrites(state=replace(stored.state, **state))


def writes(**parts: Any) -> Callable[[TaskRecord, tuple[QuestionRecord, ...]], TaskWrites]:
    """A decision that writes the same whatever is stored."""
    return lambda stored, questions: TaskWrites(**parts)


def move(store: Store, question: QuestionRecord, state: QuestionState, **marks: Any) -> QuestionRecord:
    """Move a question to another state and return it as it is then."""
    store.change_task(question.task, writes(question_changes=(QuestionChange(question.id, state, **marks),)))
    moved = store.reader.question(question.id)
    assert moved is not None
    return moved
