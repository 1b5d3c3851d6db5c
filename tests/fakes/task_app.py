"""A small app around one task view, on a real store and a recording engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fakes.engine import RecordingEngine
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widget import Widget

from app.engine.commands import Changes, Engine
from app.tui.messages import TaskMessage
from app.tui.theme import DARK, THEMES
from app.tui.widgets.field_rows import FieldRow
from app.tui.widgets.question_form import QuestionForm
from app.tui.widgets.task_view import TaskView
from storage.records import NewQuestion, NewTask, TaskKey, TaskState, TaskWrites
from storage.store import Store

KEY = TaskKey("ci", "tsk_786530c0")
NOW = 1_800_000_000_000


class Moving:
    """A monotonic clock that a test moves; each card's time of grace is over unless it says otherwise."""

    def __init__(self) -> None:
        self.now = 0.0
        self.step = 10.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


class TaskApp(App[None]):
    """What `TaskView` needs of the inbox, and nothing else."""

    def __init__(
        self,
        store: Store,
        key: TaskKey | None = KEY,
        *,
        connected: bool = True,
        opener: Callable[[str], bool] | None = None,
    ) -> None:
        super().__init__()
        self.store = store
        self.reader = store.reader
        self.recorder = RecordingEngine(store)
        self.engine: Engine | None = self.recorder if connected else None
        self.clock: Callable[[], int] = lambda: NOW
        self.moving = Moving()
        self.opened: list[str] = []
        self.messages: list[TaskMessage] = []
        self.view = TaskView(key, opener=opener or self._open, monotonic=self.moving)
        self.recorder.listen(self._changed)
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = DARK.name

    def _open(self, url: str) -> bool:
        self.opened.append(url)
        return True

    def compose(self) -> ComposeResult:
        yield self.view

    def _changed(self, changes: Changes) -> None:
        if self.view.is_mounted:
            self.view.refresh_task()

    def on_answered(self, message: TaskMessage) -> None:
        self.messages.append(message)

    on_cancel_requested = on_archive_requested = on_refresh_requested = on_open_task = on_answered


def form(
    properties: dict[str, Any],
    *,
    key: str = "approve",
    message: str = "Deploy build 4711 to production?",
    required: tuple[str, ...] = (),
    **more: Any,
) -> NewQuestion:
    """Return a question in form mode."""
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return question("elicitation/create", {"message": message, "requestedSchema": schema}, key=key, **more)


def question(method: str, params: dict[str, Any] | None, *, key: str = "approve", **more: Any) -> NewQuestion:
    """Return a question of any kind."""
    request = json.dumps({"method": method} if params is None else {"method": method, "params": params})
    more.setdefault("fingerprint", f"{key}-{hash(request)}")
    return NewQuestion(key=key, method=method, request_json=request, **more)


def ask(store: Store, *questions: NewQuestion, key: TaskKey = KEY, **state: Any) -> None:
    """Add a task with these questions."""
    state.setdefault("status", "input_required" if questions else "working")
    state.setdefault("created_at", NOW - 180_000)
    state.setdefault("ttl_ms", 900_000)
    new = NewTask(
        key, tool="deploy_service", params_json='{"name": "deploy_service"}', state=TaskState(**state)
    )
    store.add_task(new, questions=questions)


def change(store: Store, key: TaskKey = KEY, **writes: Any) -> None:
    """Apply these writes to a task."""
    store.change_task(key, lambda _task, _questions: TaskWrites(**writes))


def open_store(tmp_path: Path) -> Store:
    """Open a real store."""
    return Store.open(tmp_path / "data" / "inbox.db", clock=lambda: NOW)


def painted(app: App[Any]) -> str:
    """Return what stands on the screen."""
    return "\n".join(
        "".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()
    )


async def until(pilot: Pilot[Any], true: Callable[[], bool], seconds: float = 8.0) -> None:
    """Let the app go on until *true*; fails after a while."""
    async with asyncio.timeout(seconds):
        while not true():
            await pilot.pause()
            await asyncio.sleep(0.005)
    await pilot.pause()


async def press_calmly(pilot: Pilot[Any], key: str, true: Callable[[], bool]) -> None:
    """Press a key until *true*, giving it time: right after a question appeared it is not taken."""
    for _ in range(20):
        await pilot.press(key)
        try:
            await until(pilot, true, 1.0)
        except TimeoutError:
            continue
        return
    raise AssertionError(f"{key} did not do it")


def texts(widget: Widget) -> str:
    """Return all inert text within *widget* that is displayed."""
    from app.tui.widgets.inert import InertText

    return "\n".join(text.text for text in widget.query(InertText) if text.display)


async def shown(pilot: Pilot[Any]) -> QuestionForm:
    """Return the form of the only question, once it is there and has the focus."""
    app = pilot.app
    assert isinstance(app, TaskApp)
    await until(pilot, lambda: len(app.view.cards) == 1 and app.view.cards[0].is_mounted)
    card = app.view.cards[0]
    assert isinstance(card, QuestionForm)
    app.view.focus_question()
    await pilot.pause()
    return card


def row(card: QuestionForm, name: str) -> FieldRow:
    """Return the row of a field."""
    return next(row for row in card.fields.rows if row.field.name == name)
