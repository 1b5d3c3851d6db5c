"""The real engine on a real store in a folder of its own, in a world where time runs faster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.config import ServersFile
from app.engine.clock import Clock, wait_for_event
from app.engine.commands import Answer
from app.engine.engine import InboxEngine
from app.paths import Paths
from mcp_client import Limits
from storage.reader import StoreReader
from storage.records import QuestionRecord, TaskKey, TaskRecord
from storage.store import Store

FASTER = 25
"""The engine's pauses are this many times shorter."""
PATIENCE = 20.0
"""Seconds until what should happen counts as not happening."""


def fast_clock(faster: int = FASTER) -> Clock:
    """Return a clock that tells the true time and waits less."""

    async def wait(event: asyncio.Event, seconds: float) -> bool:
        return await wait_for_event(event, seconds / faster)

    return Clock(wait=wait, elapsed=lambda: time.monotonic() * faster)


@dataclass
class Inbox:
    """One installation, and a program on it."""

    paths: Paths
    engine: InboxEngine
    reader: StoreReader

    @classmethod
    async def open(
        cls,
        root: Path,
        servers: Mapping[str, str],
        *,
        limits: Limits | None = None,
        environ: Mapping[str, str] | None = None,
        faster: int = FASTER,
    ) -> Inbox:
        """Open a program on the installation at *root*; several may be open at a time."""
        paths = Paths(root / "config", root / "data", root / "state").make()
        file = ServersFile(paths.servers_file)
        for name, url in servers.items():
            if name not in file.entries():
                file.add(name, url)
        engine = await InboxEngine.open(
            database=paths.database,
            programs=paths.state / "programs",
            stderr=paths.stderr,
            servers=file,
            environ=environ or {},
            clock=fast_clock(faster),
            limits=limits or Limits(request_seconds=15, call_seconds=15),
        )
        return cls(paths, engine, StoreReader.open(paths.database))

    async def close(self) -> None:
        """End the program."""
        await self.engine.aclose()
        self.reader.close()

    def task(self, key: TaskKey) -> TaskRecord:
        """Return what is stored of a task."""
        found = self.reader.task(key)
        assert found is not None
        return found

    def question(self, key: TaskKey, name: str = "q") -> QuestionRecord:
        """Return the newest question of that key."""
        return [q for q in self.reader.questions(key) if q.key == name][-1]

    def states(self, key: TaskKey) -> dict[str, str]:
        """Return the state of each question (the newest of each key)."""
        return {q.key: q.state for q in self.reader.questions(key)}

    def facts(self, key: TaskKey) -> list[str]:
        """Return the names of the task's events."""
        return [one.kind for one in self.reader.events(key)]

    def accept(self, key: TaskKey, name: str = "q", content: str = '{"ok": true}') -> Answer:
        """Return an answer to a question as it is stored."""
        return Answer(self.question(key, name), "accept", content)

    async def until(self, true: Callable[[], object]) -> None:
        """Return once *true* holds; looked at whenever the engine tells of a change."""
        changed = asyncio.Event()
        end = self.engine.listen(lambda _: changed.set())
        try:
            async with asyncio.timeout(PATIENCE):
                while not true():
                    changed.clear()
                    await changed.wait()
        finally:
            end()

    async def eventually(self, true: Callable[[], object]) -> None:
        """Return once *true* holds because of another program: nothing in this one tells of it."""
        async with asyncio.timeout(PATIENCE):
            while not true():  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    @contextmanager
    def other_program(self) -> Iterator[Store]:
        """Write into the store as another program would."""
        store = Store.open(self.paths.database, clock=lambda: time.time_ns() // 1_000_000)
        try:
            yield store
        finally:
            store.close()


class Running:
    """The engine's `run`, beside a test: what it raises fails the test."""

    def __init__(self, engine: InboxEngine) -> None:
        self._engine = engine

    async def __aenter__(self) -> asyncio.Task[None]:
        self._task = asyncio.create_task(self._engine.run())
        await asyncio.sleep(0)
        return self._task

    async def __aexit__(self, *_: object) -> None:
        if not self._task.done():
            self._task.cancel()
        done, _ = await asyncio.wait([self._task])
        for task in done:
            if not task.cancelled():
                task.result()
