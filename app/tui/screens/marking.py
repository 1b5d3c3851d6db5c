"""A screen whose list holds tasks that can be marked, to answer the same question of several at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import Binding, BindingType

from app.tui.marks import Marks
from app.tui.screens.filtered import FilteredScreen
from app.tui.widgets.inert import say
from storage.errors import StorageError
from storage.records import QuestionRecord, TaskKey

if TYPE_CHECKING:
    from app.tui.app import InboxApp
    from app.tui.widgets.task_list import TaskList


class MarkingScreen(FilteredScreen):
    """Keeps the marks true: by task, wherever it stands in the list, until its question is gone."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "mark", "Mark, to answer several together", id="inbox.mark"),
        Binding("A", "answer_marked", "Answer the marked together", id="inbox.answer-marked"),
    ]
    _tasks: TaskList

    def __init__(self) -> None:
        super().__init__()
        self.marks = Marks()

    def marks_changed(self) -> None:
        """Show the marks."""
        self._tasks.show_marks(self.marks.keys)

    def follow_marks(self) -> None:
        """Let marks go whose question is gone. Raises `StorageError`."""
        if len(self.marks) and self.marks.follow(self._asked):
            self.marks_changed()

    def clear_marks(self) -> None:
        """Let all marks go."""
        if len(self.marks):
            self.marks.clear()
            self.marks_changed()

    def _asked(self, key: TaskKey) -> list[QuestionRecord]:
        return cast("InboxApp", self.app).reader.questions(key)

    def action_mark(self) -> None:
        """Mark the highlighted task, or take its mark away, and go on to the next one."""
        key = self._tasks.highlighted
        if key is None or not self._tasks.has_focus:
            return
        try:
            problem = self.marks.toggle(key, self._asked(key))
        except StorageError as error:
            problem = f"The store can't be read: {error}"
        if problem is not None:
            say(self.app, problem, "warning")
            return
        self.marks_changed()
        self._tasks.action_step(1)

    def action_answer_marked(self) -> None:
        """Show what the marked tasks ask, and all that will be answered."""
        try:
            self.follow_marks()
        except StorageError as error:
            say(self.app, f"The store can't be read: {error}", "error")
            return
        questions = self.marks.together()
        if not questions:
            say(self.app, "Mark tasks that ask the same first: Space.")
            return
        from app.tui.screens.together import TogetherScreen
        from app.tui.widgets.drafts import drafts_of

        screen = TogetherScreen(questions, drafts_of(self.app).of(questions[0]))
        self.app.push_screen(screen, lambda _: self.drafts_changed())

    def drafts_changed(self) -> None:
        """What was typed for several may be the draft of a question that is shown here."""
