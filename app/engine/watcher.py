"""Looking at tasks, and taking in what is seen or told of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal
from weakref import WeakValueDictionary

from app.engine import reconcile
from app.engine.changes import ChangeFeed
from app.engine.clock import Clock
from app.engine.commands import EngineError
from app.engine.observed import Observed
from app.engine.problems import UNREACHABLE, describe
from app.engine.reconcile import event
from app.engine.servers import Servers
from app.engine.sight import observed
from app.text import inert_line
from mcp_client import McpError, ServerError
from storage.async_store import AsyncStore
from storage.errors import UnknownTask
from storage.reader import StoreReader
from storage.records import QuestionRecord, TaskKey, TaskRecord, TaskWrites

OVERTAKEN_MOST: Final = 3
"""A reply that was overtaken by another change is dropped and asked for anew, up to this many times."""
FAULTS_NOTED: Final = 20
"""Different faults of one task that are put into its log."""


@dataclass(frozen=True, slots=True)
class Look:
    """What came of looking at a task once."""

    kind: Literal["seen", "lost", "failed", "gone"]
    """``gone``: it is not in the store any more. ``failed``: see ``error``."""
    seen: Observed | None = None
    error: McpError | EngineError | None = None


class Observer:
    """Looks at tasks and brings the store up to date; one look at a task at a time."""

    def __init__(
        self, store: AsyncStore, reader: StoreReader, servers: Servers, feed: ChangeFeed, clock: Clock
    ) -> None:
        self._store = store
        self._reader = reader
        self._servers = servers
        self._feed = feed
        self._clock = clock
        self._locks: WeakValueDictionary[TaskKey, asyncio.Lock] = WeakValueDictionary()
        self._faults: dict[TaskKey, set[str]] = {}
        self._told: dict[TaskKey, int] = {}
        """When a notification last changed a task."""
        self.on_completed: Callable[[TaskKey], None] = lambda key: None
        """Told each task whose result was just stored."""

    def lock(self, key: TaskKey) -> asyncio.Lock:
        """Return the lock under which a task is looked at, and its answers delivered."""
        found = self._locks.get(key)
        if found is None:
            found = self._locks[key] = asyncio.Lock()
        return found

    async def look(self, key: TaskKey) -> Look:
        """Ask for the task once and store what changed; raises `StorageError` only."""
        try:
            # First the place, then the lock: an answer to the task must not wait for a place with it.
            async with self._servers.slot(key.server), self.lock(key):
                return await self.look_locked(key)
        except EngineError as error:
            return await self._failed(key, error)

    async def look_locked(self, key: TaskKey) -> Look:
        """As `look`, for those who hold the task's lock."""
        for attempt in range(1, OVERTAKEN_MOST + 1):
            begun = self._clock.now()
            try:
                task = await self._servers.request(key.server, lambda client: client.get_task(key.id))
            except ServerError as error:
                if error.is_invalid_params and self._servers.may_run_elsewhere(key.server):
                    return await self._failed(key, elsewhere(key))
                if error.is_invalid_params:
                    return await self._lost(key, error)
                return await self._failed(key, error)
            except (McpError, EngineError) as error:
                return await self._failed(key, error)
            seen = observed(task)
            try:
                if await self.take_in(key, seen, begun if attempt < OVERTAKEN_MOST else None):
                    return Look("seen", seen)
            except UnknownTask:
                return Look("gone")
        raise AssertionError("the last attempt is taken in whatever happened meanwhile")

    async def change(
        self,
        key: TaskKey,
        decide: Callable[[TaskRecord, tuple[QuestionRecord, ...]], TaskWrites],
        *,
        durable: bool = False,
    ) -> TaskWrites:
        """Change a task in the store and tell of it; raises `UnknownTask`."""
        writes = await self._store.change_task(key, decide, durable=durable)
        if writes or writes.unarchive:
            self._feed.add(key)
        return writes

    async def take_in(self, key: TaskKey, seen: Observed, begun: int | None = None) -> bool:
        """Store what was seen; False when the task changed after *begun*, when the look began.

        Raises `UnknownTask`.
        """
        await self._note_faults(key, seen)
        stored = self._reader.task(key)
        if stored is None:
            raise UnknownTask(str(key))
        if not self._is_overtaken(stored, begun):
            own = self._reader.questions(key)
            if not reconcile.reconcile(stored, own, seen):
                return True  # nothing to write, as it is most of the time: no transaction
        overtaken = False

        def decide(task: TaskRecord, questions: tuple[QuestionRecord, ...]) -> TaskWrites:
            nonlocal overtaken
            overtaken = self._is_overtaken(task, begun)
            return TaskWrites() if overtaken else reconcile.reconcile(task, questions, seen)

        writes = await self.change(key, decide)
        if writes.state is not None and writes.state.status == "completed":
            self.on_completed(key)
        return not overtaken

    async def take_told(self, key: TaskKey, seen: Observed, received: int, newest: int | None) -> bool:
        """Store the snapshot of a notification; False: it may be an old one, so that a look is due.

        *received* is when it came, *newest* the ``lastUpdatedAt`` of what was last seen, both in
        milliseconds. Raises `StorageError` only.
        """
        async with self.lock(key):
            stored = self._reader.task(key)
            if stored is None:
                return True
            shown = seen.last_updated_at
            if any(shown < known for known in (newest, stored.state.last_updated_at) if known and shown):
                return False
            try:
                # One stream tells in order: a change that an earlier notification made overtakes nothing.
                if not await self.take_in(key, seen, max(received, self._told.get(key, received))):
                    return False
            except UnknownTask:
                return True
            now = self._reader.task(key)
            if now is not None and now.state.snapshot_json == seen.snapshot_json:
                self._told[key] = now.changed_at
        return True

    def _is_overtaken(self, task: TaskRecord, begun: int | None) -> bool:
        # Another program, or a person's answer, changed the task while the reply was on its way: the reply
        # may show the state before, and would withdraw a question or settle an answer wrongly.
        # (A change in the future is one from before the clock was set back, and overtakes nothing.)
        return begun is not None and begun < task.changed_at <= self._clock.now()

    async def _lost(self, key: TaskKey, error: ServerError) -> Look:
        now = self._clock.now()
        try:
            await self.change(
                key,
                lambda task, questions: reconcile.lost(task, questions, now=now, words=error.message),
            )
        except UnknownTask:
            return Look("gone")
        return Look("lost", error=error)

    async def _failed(self, key: TaskKey, error: McpError | EngineError) -> Look:
        words = error.message if isinstance(error, EngineError) else describe(error)
        stored = self._reader.task(key)
        if stored is None:
            return Look("gone")
        known = stored.state.problem or ""
        if words.startswith(UNREACHABLE) and known.startswith(UNREACHABLE):
            words = known  # one outage is one problem, whether it refuses, resets or times out just now
        if reconcile.problem(stored, words):
            try:
                await self.change(key, lambda task, _: reconcile.problem(task, words))
            except UnknownTask:
                return Look("gone")
        return Look("failed", error=error)

    async def _note_faults(self, key: TaskKey, seen: Observed) -> None:
        """Put each fault of a reply into the task's log once."""
        if not seen.faults:
            return
        noted = self._faults.get(key)
        if noted is None:
            noted = {e.data_json for e in self._reader.events(key) if e.kind == "fault_noted"}
            self._faults[key] = noted
        for fault in seen.faults:
            fact = event("fault_noted", {"fault": inert_line(fault)})
            if fact.data_json not in noted and len(noted) < FAULTS_NOTED:
                noted.add(fact.data_json)
                await self._store.log(fact, key)
                self._feed.add(key)


def elsewhere(key: TaskKey) -> EngineError:
    """Return what to say where `Servers.may_run_elsewhere`, and our process of the server does not know the
    task."""
    return EngineError(
        "unreachable",
        f"Server {key.server}: the process of it that this program started does not know "
        f"{inert_line(key.id, 200)}; that of another program, which is open now, may, and what is saved is "
        "delivered there.",
    )
