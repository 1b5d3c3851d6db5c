"""What a person can do to one task, from the list, the task's own view or the palette alike.

Each takes the key that was highlighted or shown when the key was pressed; what needs a confirmation repeats
server, tool and task in it. All of them run as work of the app, so that they go on when their screen is
gone.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from app.engine.commands import Engine, EngineError
from app.tui.widgets.inert import say
from storage.errors import StorageError
from storage.records import TaskKey, TaskRecord

if TYPE_CHECKING:
    from app.tui.app import InboxApp


def named(record: TaskRecord) -> str:
    """Return a task's name for a sentence: server › tool."""
    return f"{record.key.server} › {record.tool or record.key.id}"


def facts_of(record: TaskRecord) -> tuple[tuple[str, str], ...]:
    """Return what tells this task from every other: server, tool and id."""
    what = "call" if record.kind == "call" else "task"
    return (("server", record.key.server), ("tool", record.tool or "(not known)"), (what, record.key.id))


class TaskActions:
    """The actions; the app has one of these."""

    def __init__(self, app: InboxApp) -> None:
        self._app = app

    def cancel(self, key: TaskKey) -> None:
        """Ask the person, then the server, to cancel a task; a call is given up here."""
        self._app.start(self._cancel(key), "act")

    def archive(self, key: TaskKey, archive: bool | None = None) -> None:
        """Put a task away, or bring it back; ``None``: whichever it is not."""
        self._app.start(self._archive(key, archive), "act")

    def forget(self, key: TaskKey) -> None:
        """Ask the person, then delete our record of a task."""
        self._app.start(self._forget(key), "act")

    def look(self, key: TaskKey) -> None:
        """Look at a task now."""
        self._app.start(self._look(key), "act")

    def _found(self, key: TaskKey) -> tuple[TaskRecord, Engine] | None:
        try:
            record = self._app.reader.task(key)
        except StorageError as error:
            say(self._app, f"The store can't be read: {error}", "error")
            return None
        if record is None:
            say(self._app, f"There is no record of {key} any more.", "warning")
            return None
        engine = self._app.engine
        if engine is None:
            say(self._app, self._app.no_engine_words, "warning")
            return None
        return record, engine

    async def _cancel(self, key: TaskKey) -> None:
        found = self._found(key)
        if found is None:
            return
        from app.tui.screens.confirm import Confirm

        record, engine = found
        if record.state.tracking == "ended":
            say(self._app, f"{named(record)} is over: there is nothing to cancel.")
            return
        if record.kind == "call":
            title, act = "Give this call up?", "Give it up"
            words = "Nothing is sent: its questions leave the inbox, and the call is not repeated."
        else:
            title, act = "Cancel this task?", "Cancel the task"
            words = "Its server is asked to stop. It may still complete: cancelling is a wish, not a command."
        if await self._app.push_screen_wait(Confirm(title, facts_of(record), words, keep="Keep it", act=act)):
            await self._carried_out(record, engine.cancel(record.key))

    async def _archive(self, key: TaskKey, archive: bool | None) -> None:
        found = self._found(key)
        if found is None:
            return
        record, engine = found
        away = record.archived_at is None if archive is None else archive
        self._app.expect_departure(record.key)
        if away:
            words = f"Archived {named(record)}. New activity brings it back; so does e in Archived."
            await self._carried_out(record, engine.archive(record.key), words)
        else:
            await self._carried_out(record, engine.unarchive(record.key), f"Brought back {named(record)}.")

    async def _forget(self, key: TaskKey) -> None:
        found = self._found(key)
        if found is None:
            return
        from app.tui.screens.confirm import Confirm

        record, engine = found
        words = (
            "Our record is deleted: questions, drafts, answers and result. "
            "Its server is told nothing, and the task goes on there."
        )
        if await self._app.push_screen_wait(
            Confirm("Forget this?", facts_of(record), words, keep="Keep it", act="Forget it")
        ):
            self._app.expect_departure(record.key)
            await self._carried_out(record, engine.forget(record.key), f"Forgot {named(record)}.")

    async def _look(self, key: TaskKey) -> None:
        found = self._found(key)
        if found is not None:
            record, engine = found
            await self._carried_out(record, engine.refresh(record.key), f"Looked at {named(record)}.")

    async def _carried_out(self, record: TaskRecord, work: Awaitable[str | None], words: str = "") -> None:
        try:
            said = await work
        except (EngineError, StorageError) as error:
            self._app.expect_departure(record.key, expected=False)
            say(self._app, str(error), "error", timeout=10)
        else:
            say(self._app, words or str(said))
