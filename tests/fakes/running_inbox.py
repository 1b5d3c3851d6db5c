"""The whole inbox over a store of its own: the real app, engine and client, driven by Pilot."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from app import wiring
from app.engine.commands import Answer, Changes, Delivery, Engine
from app.forms import read_form
from app.paths import Paths, find
from app.tui.app import InboxApp
from app.tui.servers_file import ServersFile
from storage.records import QuestionRecord, Reader, TaskKey, TaskRecord

PATIENCE = 60.0
"""Seconds until something that was to happen counts as not happening."""


def home(folder: Path, **servers: str) -> Paths:
    """Make an installation under *folder* with *servers* (name=URL) in its servers file."""
    paths = find({"TASKINBOX_HOME": str(folder)}).make()
    entries = {name: {"url": url} for name, url in servers.items()}
    paths.servers_file.write_text(json.dumps({"mcpServers": entries}))
    paths.servers_file.chmod(0o600)
    return paths


@dataclass
class Inbox:
    """A running inbox."""

    app: InboxApp
    pilot: Pilot[None]
    reader: Reader
    engine: Engine

    def text(self) -> str:
        """Return what is on the screen, line by line."""
        size = self.app.size
        strips = self.app.screen._compositor.render_strips()[: size.height]
        return "\n".join(strip.text.rstrip() for strip in strips)

    async def shows(self, *texts: str) -> str:
        """Return the screen once it shows every one of *texts*."""
        return await self.until(lambda: all(t in self.text() for t in texts), f"the screen to show {texts!r}")

    async def until(self, holds: Callable[[], Any], what: str) -> str:
        """Wait until *holds*, looking again after every refresh of the screen."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if holds():
                return self.text()
            await self.pilot.pause(0.05)
        raise AssertionError(f"waited {PATIENCE:g} s for {what}; the screen was\n{self.text()}")

    async def task(self, key: TaskKey, holds: Callable[[TaskRecord], bool]) -> TaskRecord:
        """Return the task's record once it *holds*."""

        def now() -> bool:
            record = self.reader.task(key)
            return record is not None and holds(record)

        await self.until(now, f"{key}, which was {self.reader.task(key)}")
        record = self.reader.task(key)
        assert record is not None
        return record

    async def questions(self, key: TaskKey, count: int = 1) -> list[QuestionRecord]:
        """Return the open questions once there are *count* (some servers rename the keys)."""

        def found() -> list[QuestionRecord]:
            return [q for q in self.reader.questions(key) if q.is_open]

        await self.until(lambda: len(found()) == count, f"{count} open questions of {key}")
        return found()

    async def answer(self, question: QuestionRecord, entries: Mapping[str, Any]) -> Delivery:
        """Accept *question* with what is typed, as the form would send it."""
        params = json.loads(question.request_json)["params"]
        if params.get("mode") == "url":
            return await self.engine.answer(question.task, [Answer(question, "accept")])
        filled = read_form(params["requestedSchema"]).fill(entries)
        assert not filled.errors, filled.errors
        return await self.engine.answer(question.task, [Answer(question, "accept", filled.content_json)])

    async def open(self, key: TaskKey) -> None:
        """Show a task."""
        self.app.inbox.go_to(key)
        await self.pilot.pause()


@asynccontextmanager
async def inbox(paths: Paths, size: tuple[int, int] = (140, 50)) -> AsyncIterator[Inbox]:
    """Run the inbox on *paths* and yield it once its engine is there."""
    reader = wiring.open_reader(paths)
    app = InboxApp(reader, wiring.engine_factory(paths), _servers(paths))
    async with app.run_test(size=size) as pilot:
        for _ in range(int(PATIENCE / 0.02)):
            if app.engine is not None:
                break
            await pilot.pause(0.02)
        assert app.engine is not None, "the engine did not open"
        yield Inbox(app, pilot, reader, app.engine)


def _servers(paths: Paths) -> ServersFile | None:
    return getattr(wiring, "tui_servers_file", wiring.servers_file)(paths)  # type: ignore[no-any-return]


@asynccontextmanager
async def engine(paths: Paths) -> AsyncIterator[tuple[Engine, Reader]]:
    """Run the engine alone on *paths*."""
    reader = wiring.open_reader(paths)
    opened = await wiring.open_engine(paths)
    running = asyncio.create_task(opened.run())
    try:
        yield opened, reader
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await opened.aclose()


async def changed(engine: Engine, holds: Callable[[], Any], what: str) -> None:
    """Wait until *holds*, looking again at each change that the engine tells of."""
    event = asyncio.Event()
    stop = engine.listen(lambda _: event.set())
    try:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                event.clear()
                await event.wait()
    except TimeoutError:
        raise AssertionError(f"waited {PATIENCE:g} s for {what}") from None
    finally:
        stop()


__all__ = ["Changes", "Inbox", "changed", "engine", "home", "inbox"]
