"""What the parts of the screen tell the app, in the past tense or as a wish: messages up, method calls down.

The task view and the call screen post these; the **app** handles them (``on_open_task`` and so on), since a
message bubbles from a widget through its own screen to the app and never meets another screen. Each carries
keys alone: the store has the state.
"""

from __future__ import annotations

from typing import Literal

from textual.message import Message

from storage.records import TaskKey


class TaskMessage(Message):
    """A message about one task or call."""

    def __init__(self, key: TaskKey) -> None:
        super().__init__()
        self.key = key


class OpenTask(TaskMessage):
    """A person wants to see this task: the inbox shows it beside the list, or over it."""


class CancelRequested(TaskMessage):
    """A person wants this task cancelled (or this call given up): the app asks to confirm, then does it."""


class ArchiveRequested(TaskMessage):
    """A person wants this task put away, or brought back."""

    def __init__(self, key: TaskKey, *, archive: bool) -> None:
        super().__init__(key)
        self.archive = archive


class RefreshRequested(TaskMessage):
    """A person wants this task looked at, now."""


class Answered(TaskMessage):
    """An answer was given and saved (or refused at once); nothing is left to do for whoever hears this."""

    def __init__(
        self,
        key: TaskKey,
        question_id: int,
        action: Literal["accept", "decline", "cancel"],
        delivery: Literal["acknowledged", "saved", "waiting", "refused", "withdrawn", "unknown"],
    ) -> None:
        super().__init__(key)
        self.question_id = question_id
        self.action = action
        self.delivery = delivery


__all__ = ["Answered", "ArchiveRequested", "CancelRequested", "OpenTask", "RefreshRequested", "TaskMessage"]
