"""The inbox's shell over a real store, with an engine that records what it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fakes.engine import RecordingEngine
from fakes.stored import Ticking, writes
from fakes.stored import asked as question
from textual.pilot import Pilot
from textual.widgets import Button

from app.config import NONE, Abilities, ConfigError
from app.engine.commands import Changes, Engine, EngineError, ServerReport
from app.tui.app import InboxApp
from app.tui.screens.confirm import Confirm
from app.tui.screens.inbox import InboxScreen
from app.tui.widgets.task_list import TaskList
from storage.records import NewTask, QuestionChange, TaskKey, TaskState
from storage.store import Store


@dataclass
class ShellEngine(RecordingEngine):
    """As `RecordingEngine`, and it can crash, and it counts what the shell alone asks."""

    crash: asyncio.Event = field(default_factory=asyncio.Event)
    runs: int = 0
    closed: bool = False
    reloads: int = 0
    report: ServerReport | EngineError | None = None

    async def run(self) -> None:
        self.runs += 1
        self.crash.clear()
        await self.crash.wait()
        raise RuntimeError("[/foo] a bug \x1b[31m")

    async def cancel(self, task: TaskKey) -> str:
        await self._wait()
        return await super().cancel(task)

    async def archive(self, task: TaskKey) -> None:
        await self._wait()
        self.store.archive(task)
        self.changed(task)

    async def unarchive(self, task: TaskKey) -> None:
        self.store.unarchive(task)
        self.changed(task)

    async def forget(self, task: TaskKey) -> None:
        self.store.forget(task)
        self.changed(task)

    async def reload_servers(self) -> None:
        self.reloads += 1
        for listener in list(self.listeners):
            listener(Changes(servers=frozenset({"*"})))

    async def test_server(self, server: str) -> ServerReport:
        if isinstance(self.report, EngineError):
            raise self.report
        assert self.report is not None
        return self.report

    async def aclose(self) -> None:
        self.closed = True


@dataclass
class Entries:
    """A servers file in memory, with the refusals of the real one that matter here."""

    urls: dict[str, str] = field(default_factory=dict)
    headers: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def list(self) -> list[tuple[str, str]]:
        return list(self.urls.items())

    def add(self, name: str, url: str, headers: Mapping[str, str] | None = None) -> tuple[str, ...]:
        if not url.startswith("http"):
            raise ConfigError(f"The URL must begin with http:// or https://: {url!r}.")
        self.urls[name] = url
        self.headers[name] = dict(headers or {})
        return ()

    def abilities(self, name: str) -> Abilities:
        return NONE

    def remove(self, name: str) -> None:
        del self.urls[name]


class Shell:
    """An app, its store and its engine, and what tests do with them."""

    def __init__(self, folder: Path, *, connects: bool = True, servers: Entries | None = None) -> None:
        self.clock = Ticking(now=1_800_000_000_000, step=1)
        self.store = Store.open(folder / "inbox.db", clock=self.clock)
        self.engine = ShellEngine(self.store)
        self.gate = asyncio.Event()
        if connects:
            self.gate.set()
        self.connect_error: Exception | None = None
        self.servers = servers or Entries({"ci": "https://ci.example.com/mcp"})
        self.app = InboxApp(self.store.reader, self._connect, self.servers, clock=lambda: self.clock.now)

    async def _connect(self) -> Engine:
        await self.gate.wait()
        if self.connect_error is not None:
            raise self.connect_error
        return self.engine

    def add(
        self, id: str, *questions: str, server: str = "ci", tool: str = "deploy", **state: object
    ) -> TaskKey:
        """Add a task with these questions open."""
        key = TaskKey(server, id)
        state.setdefault("status", "input_required" if questions else "working")
        new = NewTask(key, tool=tool, state=TaskState(**state))  # type: ignore[arg-type]
        self.store.add_task(new, questions=tuple(question(q, fingerprint=f"{id}-{q}") for q in questions))
        return key

    def end(self, key: TaskKey, status: str = "completed") -> None:
        """Let a task end, as the engine would record it."""
        record = self.store.reader.task(key)
        assert record is not None
        gone = tuple(QuestionChange(q.id, "withdrawn") for q in self.store.reader.questions(key))
        self.store.change_task(
            key, writes(state=TaskState(status=status, tracking="ended"), question_changes=gone)
        )
        self.engine.changed(key)

    @property
    def screen(self) -> InboxScreen:
        """The inbox's own screen."""
        return next(screen for screen in self.app.screen_stack if isinstance(screen, InboxScreen))

    @property
    def tasks(self) -> TaskList:
        """The list."""
        return self.screen.query_one(TaskList)

    @property
    def highlighted(self) -> str | None:
        """The highlighted task's id."""
        key = self.tasks.highlighted
        return None if key is None else key.id

    @property
    def listed(self) -> list[str]:
        """The ids in the list."""
        return [key.id for key in self.tasks.keys]


async def until(pilot: Pilot[None], true: Callable[[], bool], *, turns: int = 600) -> None:
    """Let the app work until *true* is; fails when it never is."""
    for _ in range(turns):
        if true():
            return
        await pilot.pause(0.01)
    raise AssertionError("it never came true")


async def asked(shell: Shell, pilot: Pilot[None]) -> None:
    """Wait until the person is asked to confirm something, and can read it."""
    await until(
        pilot,
        lambda: (
            isinstance(shell.app.screen, Confirm)
            and isinstance(shell.app.focused, Button)
            and shell.app.focused.id == "confirm-keep"
            and "Keep it" in painted(shell.app)
        ),
    )


def painted(app: InboxApp) -> str:
    """Return the text on the screen, line by line."""
    return "\n".join(
        "".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()
    )
