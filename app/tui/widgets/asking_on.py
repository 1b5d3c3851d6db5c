"""The choice where a server was stopped from asking without end: let it ask on, or end it."""

from __future__ import annotations

from typing import Any

from textual.app import App, ComposeResult
from textual.containers import Horizontal
from textual.widgets import Button

from app.engine.commands import Engine, EngineError, asks_too_much
from app.tui.messages import CancelRequested
from app.tui.widgets.host import host_of, in_background
from app.tui.widgets.inert import content, say
from storage.records import TaskKey, TaskRecord


class AskingOn(Horizontal):
    """Two buttons, there only while there is that choice; why stands above them."""

    DEFAULT_CSS = """
    AskingOn { height: 1; display: none; }
    AskingOn Button { margin: 0 1 0 0; }
    AskingOn Button.danger { color: $text-error; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._key: TaskKey | None = None
        self._end = Button(content("Cancel task…"), compact=True, classes="danger end")

    def compose(self) -> ComposeResult:
        yield Button(content("Let it ask on"), compact=True, classes="on")
        yield self._end

    def show(self, record: TaskRecord) -> None:
        """Offer the choice where this task has it."""
        self._key = record.key
        self.display = asks_too_much(record)
        self._end.label = content("Give up…" if record.kind == "call" else "Cancel task…")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Do it, or offer to cancel."""
        event.stop()
        engine = host_of(self).engine
        if self._key is None:
            return
        if event.button is self._end:
            self.post_message(CancelRequested(self._key))
        elif engine is None:
            say(self.app, "Still connecting: try again in a moment.", "warning")
        else:
            in_background(self.app, _let_ask(self.app, engine, self._key), group="answers")


async def _let_ask(app: App[Any], engine: Engine, key: TaskKey) -> None:
    try:
        say(app, await engine.let_ask(key))
    except EngineError as error:
        say(app, error.message, "error")
