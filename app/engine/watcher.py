"""Observing tasks: one look (`Observer`), and looking again and again while a stream may tell, too
(`Watch`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal
from weakref import WeakValueDictionary

from app.engine import reconcile, schedule
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
from storage.errors import StorageError, UnknownTask
from storage.reader import StoreReader
from storage.records import QuestionRecord, TaskKey, TaskRecord, TaskState, TaskWrites

OVERTAKEN_MOST: Final = 3
"""A reply that was overtaken by another change is dropped and asked for anew, up to this many times."""
FAULTS_NOTED: Final = 20
"""Different faults of one task that are put into its log."""
KEPT_CHARS: Final = 64 * 1024
"""A snapshot longer than this is asked for instead of being kept until it is its turn: those of all tasks
together must fit into memory, whatever a server sends."""
AFTER_A_BUG_S: Final = 60.0
AFTER_STORAGE_S: Final = 5.0

log = logging.getLogger(__name__)


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

    def lock(self, key: TaskKey) -> asyncio.Lock:
        """Return the lock under which a task is looked at, and its answers delivered."""
        found = self._locks.get(key)
        if found is None:
            found = self._locks[key] = asyncio.Lock()
        return found

    async def look(self, key: TaskKey) -> Look:
        """Ask for the task once and store what changed; raises `StorageError` only."""
        async with self.lock(key):
            return await self.look_locked(key)

    async def look_locked(self, key: TaskKey) -> Look:
        """As `look`, for those who hold the task's lock."""
        for attempt in range(1, OVERTAKEN_MOST + 1):
            begun = self._clock.now()
            try:
                task = await self._servers.request(key.server, lambda client: client.get_task(key.id))
            except ServerError as error:
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

        await self.change(key, decide)
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


class Watch:
    """Looks at one task for as long as there is something to see.

    While a stream tells of the task, what it tells is taken in between two looks, and the looks become few.
    """

    def __init__(
        self,
        key: TaskKey,
        observer: Observer,
        reader: StoreReader,
        clock: Clock,
        cancel: Callable[[TaskKey], Awaitable[object]],
    ) -> None:
        """Watch *key*; *cancel* passes a saved wish to cancel on."""
        self.key = key
        self._cancel = cancel
        self._observer = observer
        self._reader = reader
        self._clock = clock
        self._woken = asyncio.Event()
        self._is_asked = False
        """Somebody wants a look now."""
        self._is_stale = False
        """Something was told of the task that only a look can show."""
        self._has_fallen_back = False
        self._told: tuple[Observed, int] | None = None
        """The newest snapshot that a stream brought and that is not taken in yet, and when it came."""
        self._has_stream = False
        self._is_followed = False
        """The task was seen since its stream opened, so that the stream can't have missed anything."""
        self._newest: int | None = None
        """The ``lastUpdatedAt`` of what was last seen."""
        self._quick: int | None = None
        self._failures = 0
        self._lost_looks = 0
        self.first_pause = 0.0
        """Seconds before the first look."""

    def wake(self) -> None:
        """Look now: its server answers again, or a person asked."""
        self._is_asked = True
        self._woken.set()

    def hurry(self) -> None:
        """Look soon, a few times: the server acknowledged something and will show it in a while."""
        self._quick = 0
        self.wake()

    def follow(self) -> None:
        """A stream that is acknowledged tells of the task from now on."""
        self._has_stream = True

    def fall_back(self) -> None:
        """No stream tells of the task any more: look within one interval, and go on at its pace."""
        self._has_stream = self._is_followed = False
        self._has_fallen_back = True
        self._woken.set()

    def tell(self, seen: Observed, received: int) -> None:
        """Take in what a stream shows of the task, received at *received* (milliseconds)."""
        if len(seen.snapshot_json or "") > KEPT_CHARS:
            self.look_again()
            return
        self._told = (seen, received)
        self._woken.set()

    def look_again(self) -> None:
        """Look soon, but no more often than any task is looked at: something was told and can't be used."""
        self._told = None
        self._is_stale = True
        self._woken.set()

    async def run(self) -> None:
        """Look until the task is over, gone, or no longer watched; raises `StorageError` only."""
        if self.first_pause:
            await self._clock.wait(self._woken, self.first_pause)
        while True:
            self._is_asked = self._is_stale = self._has_fallen_back = False
            has_stream = self._has_stream
            look = await self._observer.look(self.key)
            stored = self._reader.task(self.key)
            if stored is None or look.kind == "gone":
                return
            if look.seen is not None:
                self._is_followed = has_stream and self._has_stream
                self._newest = look.seen.last_updated_at
                if _owes_cancel(stored.state) and await self._cancel(self.key) is None:
                    self._quick = 0
            pause = self._pause(look, stored.state)
            if pause is None or await self._rest(pause):
                return

    async def _rest(self, pause: float) -> bool:
        """Wait until the next look is due and take in what is told meanwhile; True: there is none to come."""
        began = self._clock.elapsed()
        due = began + pause
        while True:
            self._woken.clear()
            if self._told is not None:
                (seen, received), self._told = self._told, None
                if not await self._observer.take_told(self.key, seen, received, self._newest):
                    self._is_stale = True
                    continue
                stored = self._reader.task(self.key)
                if stored is None or stored.state.tracking in ("ended", "stopped"):
                    return True
                if _owes_cancel(stored.state):
                    return False
                self._is_followed = self._has_stream
                self._newest = seen.last_updated_at
                self._failures = 0
                if self._quick is None:
                    due = self._clock.elapsed() + self._next(stored.state.poll_interval_ms)
                continue
            if self._is_asked:
                if self._quick == 0:
                    await self._clock.wait(asyncio.Event(), self._next(None))
                return False
            due = min(due, self._brought_forward(began))
            left = due - self._clock.elapsed()
            if left <= 0 or not await self._clock.wait(self._woken, left):
                return False

    def _brought_forward(self, began: float) -> float:
        """Return when to look for other reasons than that the pause is over; for ever: there are none."""
        due = float("inf")
        if self._is_stale:
            self._is_stale = False
            due = began + schedule.FLOOR_MS / 1000
        if self._has_fallen_back:
            self._has_fallen_back = False
            stored = self._reader.task(self.key)
            interval = None if stored is None else stored.state.poll_interval_ms
            due = min(due, self._clock.elapsed() + schedule.fall_back(interval, self._clock.chance()))
        return due

    def _pause(self, look: Look, state: TaskState) -> float | None:
        chance = self._clock.chance()
        if state.tracking == "lost":
            pause = schedule.after_loss(self._lost_looks, chance)
            self._lost_looks += 1
            return pause
        if state.tracking != "active":
            return None
        self._lost_looks = 0
        if look.kind == "failed":
            self._failures += 1
            return schedule.after_failure(self._failures, state.poll_interval_ms, chance)
        self._failures = 0
        return self._next(state.poll_interval_ms)

    def _next(self, poll_interval_ms: int | None) -> float:
        if self._quick is None and self._is_followed:
            return schedule.safety_look(poll_interval_ms, self._clock.chance())
        pause = schedule.next_look(poll_interval_ms, self._clock.chance(), quick=self._quick)
        if self._quick is not None:
            self._quick = self._quick + 1 if self._quick + 1 < len(schedule.QUICK_MS) else None
        return pause


def _owes_cancel(state: TaskState) -> bool:
    return (
        state.tracking == "active"
        and state.cancel_requested_at is not None
        and state.cancel_acknowledged_at is None
    )


async def supervise(watch: Watch, observer: Observer, clock: Clock) -> None:
    """Keep *watch* going whatever happens in it: a bug is logged and shown at its task, and stops no
    other."""
    never = asyncio.Event()
    while True:
        try:
            await watch.run()
            return
        except StorageError as error:
            log.error("Watching %s: %s", watch.key, error)
            await clock.wait(never, AFTER_STORAGE_S)
        except Exception as error:
            log.exception("A fault of this program while watching %s", watch.key)
            words = (
                f"A fault of this program ({type(error).__name__}); see its log. Looking again in a minute."
            )
            await _show(observer, watch.key, words)
            await clock.wait(never, AFTER_A_BUG_S)


async def _show(observer: Observer, key: TaskKey, words: str) -> None:
    def decide(task: TaskRecord, _: tuple[QuestionRecord, ...]) -> TaskWrites:
        return reconcile.problem(task, words)

    try:
        await observer.change(key, decide)
    except StorageError as error:
        log.error("The fault can't be shown at %s: %s", key, error)
