"""The highlighted task beside the list: mounted after the first paint, and following the highlight calmly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Set
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from textual.containers import Container, VerticalScroll
from textual.timer import Timer

from app.tui.widgets.host import let_keys_act
from app.tui.widgets.inert import say
from storage.errors import StorageError
from storage.records import TaskKey

if TYPE_CHECKING:
    from app.tui.widgets.task_view import TaskView

SETTLE: Final = 0.08
"""Seconds the highlight rests on a task before it is read whole and shown."""


class TaskPane(Container):
    """Holds a `TaskView`; while the pane is hidden the view is empty, so that no form exists twice."""

    def __init__(
        self, start: Callable[[Coroutine[Any, Any, None]], object], *, id: str | None = None
    ) -> None:
        """Take *start*, which runs work for the app."""
        super().__init__(id=id)
        self._start = start
        self._view: TaskView | None = None
        self._loading = False
        self._wanted: TaskKey | None = None
        self._enter = False
        self._settle: Timer | None = None

    @property
    def shown(self) -> TaskKey | None:
        """The task a person sees here."""
        return self._view.key if self._view is not None else None

    def follow(self, key: TaskKey | None) -> None:
        """Show a task once the highlight has rested on it for a moment."""
        if self._enter and key != self._wanted:
            self.stay()
        self._wanted = key
        if self._settle is not None:
            self._settle.stop()
        self._settle = self.set_timer(SETTLE, self._show)

    def stay(self) -> None:
        """Give up what `enter` began: the person has gone elsewhere."""
        self._enter = False
        let_keys_act(self)

    def enter(self, key: TaskKey | None) -> None:
        """Show a task now and give its first open question (or itself) the focus."""
        self._wanted, self._enter = key, True
        self._show()

    def changed(self, tasks: Set[TaskKey]) -> None:
        """Read the shown task again where it is among *tasks*; a call may have become one of them.

        Raises `StorageError`.
        """
        view = self._view
        if view is not None and view.key is not None:
            record = view.record
            if view.key in tasks or record is None or record.kind == "call" or record.key in tasks:
                view.refresh_task()

    def take_drafts(self) -> None:
        """Show the drafts anew: something was typed elsewhere."""
        for card in self._view.cards if self._view is not None else ():
            card.take_draft()

    def tick(self) -> None:
        """Let ages go on."""
        if self._view is not None:
            self._view.tick()

    def turn(self, by: int) -> None:
        """Show the task's next pane: overview, timeline or JSON."""
        if self._view is not None:
            self._view.action_turn(by)

    def _show(self) -> None:
        if self._settle is not None:
            self._settle.stop()
        if self._view is None:
            if not self._loading and self._wanted is not None:
                self._loading = True
                self._start(self._mount_view())
            return
        try:
            self._view.show(self._wanted)
        except StorageError as error:
            self.stay()
            say(self.app, f"The store can't be read: {error}", "error")
            return
        if self._enter:
            self._enter = False
            self._view.call_after_refresh(self._focus_view)

    def _focus_view(self) -> None:
        # With nothing to answer, the arrow keys scroll what there is to read.
        if self._view is not None and not self._view.focus_question():
            self._view.query(VerticalScroll).first().focus()

    async def _mount_view(self) -> None:
        # The forms' imports are heavy: they wait until the list is on the screen, and happen in a thread.
        await asyncio.to_thread(import_module, "app.tui.widgets.task_view")
        from app.tui.widgets.task_view import TaskView

        view = TaskView()
        await self.mount(view)
        self._view = view
        self._show()
