"""One task over the whole screen, for terminals too narrow to show it beside the list."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from app.engine.commands import Changes
from app.tui.messages import ArchiveRequested, CancelRequested, RefreshRequested
from app.tui.widgets.status_bar import KeyBar
from app.tui.widgets.task_view import TaskView
from storage.records import TaskKey

_KEYS = (
    ("esc", "back", "back"),
    ("a", "answer", "answer"),
    ("^S", "accept", ""),
    ("c", "cancel task", "cancel_task"),
    ("e", "archive", "archive"),
    ("r", "look now", "look"),
)


class TaskScreen(Screen[None]):
    """A task; Escape goes back."""

    DEFAULT_CSS = """
    TaskScreen { layout: vertical; }
    """
    AUTO_FOCUS = "Overview"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", id="task.back"),
        Binding("a", "answer", "Answer", id="task.answer"),
        Binding("c", "cancel_task", "Cancel task", id="task.cancel"),
        Binding("e", "archive", "Archive", id="task.archive"),
        Binding("r", "look", "Look now", id="task.look"),
    ]

    def __init__(self, key: TaskKey, view: TaskView | None = None) -> None:
        super().__init__()
        self.key = key
        self.view = view or TaskView(key)
        self._keys = KeyBar()
        self._keys.show(_KEYS)

    def compose(self) -> ComposeResult:
        yield self.view
        yield self._keys

    def refresh_task(self) -> None:
        """The task has changed: read it again."""
        self.view.refresh_task()

    def on_mount(self) -> None:
        """Begin at the first open question."""
        self.call_after_refresh(self.view.focus_first)

    def changed(self, changes: Changes) -> None:
        """Read the task again when it is among those that changed."""
        shown = self.view.record
        if self.key in changes.tasks or (shown is not None and shown.key in changes.tasks):
            self.view.refresh_task()

    def action_back(self) -> None:
        """Leave a field first, then the task."""
        self.dismiss(None)

    def action_answer(self) -> None:
        """Go to the first open question."""
        self.view.focus_question()

    def action_cancel_task(self) -> None:
        """Ask for it to be cancelled."""
        self.post_message(CancelRequested(self.key))

    def action_archive(self) -> None:
        """Put it away, or bring it back."""
        record = self.view.record
        if record is not None:
            self.post_message(ArchiveRequested(record.key, archive=record.archived_at is None))

    def action_look(self) -> None:
        """Look at it now."""
        self.post_message(RefreshRequested(self.key))
