"""What runs beside the verbs: a watch for each active task, subscriptions, deliveries, and an eye on other
programs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable
from typing import Any, Final

from app.config import ConfigError
from app.engine import reconcile, schedule
from app.engine.calls import Calls
from app.engine.changes import ChangeFeed
from app.engine.clock import Clock
from app.engine.commands import EngineError
from app.engine.listening import Listening
from app.engine.outbox import Outbox
from app.engine.servers import Servers
from app.engine.watch import Watch, supervise
from app.engine.watcher import Observer
from app.text import inert_line
from storage.async_store import AsyncStore
from storage.errors import StorageError, StoreBusy, UnknownTask
from storage.reader import StoreReader
from storage.records import Kind, QuestionRecord, Section, TaskKey, TaskRecord, TaskRow, TaskWrites
from storage.store import Decide

FOLLOW_S: Final = 0.5
"""Seconds between two looks at what other programs wrote into the store and into the servers file."""
SWEEP_S: Final = 5.0
"""Seconds between two looks for answers and calls that another program left behind, and those that are
due."""
_STOPPED_IN: Final[tuple[Section, ...]] = ("lost", "archived")
LOST_MS: Final = 7 * 24 * 3_600_000
"""A task that was lost longer ago is not asked for again at the start; `refresh` still does."""
SPREAD_S: Final = 0.002
"""Seconds between the first looks of two tasks at the start: thousands at once would hold up the screen."""

log = logging.getLogger(__name__)


class Runner:
    """Runs until it is cancelled; does nothing before `run`."""

    def __init__(
        self,
        store: AsyncStore,
        reader: StoreReader,
        servers: Servers,
        observer: Observer,
        outbox: Outbox,
        calls: Calls,
        feed: ChangeFeed,
        clock: Clock,
    ) -> None:
        self._store = store
        self._reader = reader
        self._servers = servers
        self._observer = observer
        self._outbox = outbox
        self._calls = calls
        self._feed = feed
        self._clock = clock
        self.listening = Listening(servers, feed, clock)
        self._nudged = asyncio.Event()
        self._watches: dict[TaskKey, Watch] = {}
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}
        self._failures: dict[TaskKey, int] = {}
        self._not_before: dict[TaskKey, float] = {}
        self._is_running = False
        servers.on_recovery = self._recovered

    async def run(self) -> None:
        """Watch and deliver until cancelled; raises `StorageError` where the store fails for good."""
        self._is_running = True
        seq = self._reader.last_seq()
        try:
            stamp = self._servers.stamp()
            await self._reload_if_usable()
            await self._watch_all()
            swept = float("-inf")
            while True:
                self._nudged.clear()
                try:
                    seq, changed = self._follow(seq)
                    if self._servers.stamp() != stamp:
                        stamp = self._servers.stamp()
                        await self._reload_if_usable()
                    is_due = self._clock.elapsed() - swept >= SWEEP_S
                    if is_due:
                        swept = self._clock.elapsed()
                        await self._take_over()
                    if changed or is_due:
                        self._sweep()
                except StoreBusy as error:
                    log.warning("The store is busy, and is tried again: %s", error)
                await self._clock.wait(self._nudged, FOLLOW_S)
        finally:
            self._is_running = False
            await self.stop()

    async def stop(self) -> None:
        """End all watches and deliveries."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()
        self._watches.clear()
        await self.listening.stop()

    def nudge(self) -> None:
        """Something changed in the store: follow it now."""
        self._nudged.set()

    def hurry(self, key: TaskKey) -> None:
        """Look at a task soon, a few times."""
        if key in self._watches:
            self._watches[key].hurry()

    def unwatch(self, key: TaskKey) -> None:
        """End a task's watch."""
        self._watches.pop(key, None)
        self.listening.remove(key)
        task = self._tasks.pop(("watch", key), None)
        if task is not None:
            task.cancel()

    async def reload_servers(self) -> None:
        """Read the servers file again: tasks of servers that are gone stop, of those that are back go on.

        Raises `ConfigError` for an unusable file; then nothing changes.
        """
        await self._servers.reload()
        names = self._servers.names()
        for row in self._reader.active_tasks():
            if row.key.server not in names:
                self.unwatch(row.key)
                reason = f"The server {inert_line(row.key.server, 80)} is not in the servers file."
                await self._decide(row.key, _stopping(reason))
        for section in _STOPPED_IN:
            await asyncio.sleep(0)
            for row in self._reader.list_rows(section=section):
                if row.state.tracking == "stopped" and row.key.server in names:
                    await self._decide(row.key, _resuming)
        for watch in self._watches.values():
            watch.wake()
        self.listening.reconsider()
        self.nudge()

    async def _reload_if_usable(self) -> None:
        try:
            await self.reload_servers()
        except ConfigError as error:
            log.warning("The servers file was not read again: %s", error)

    async def _watch_all(self) -> None:
        active = self._reader.active_tasks()
        for number, row in enumerate(active):
            self._watch(row.key, first_pause=number * SPREAD_S, listen=False)
            if number % 50 == 49:
                await asyncio.sleep(0)  # a screen that is being drawn goes first
        for watch in [self._watches[row.key] for row in active if row.key in self._watches]:
            self.listening.add(watch)  # all at once, for as few streams as can be
        now = self._clock.now()
        for section in _STOPPED_IN:
            lost = (row for row in self._reader.list_rows(section=section) if _may_be_known_again(row, now))
            for number, row in enumerate(lost):
                self._watch(row.key, first_pause=number * SPREAD_S, listen=False)
                if number % 50 == 49:
                    await asyncio.sleep(0)

    def _watch(self, key: TaskKey, *, first_pause: float = 0.0, listen: bool = True) -> None:
        watch = self._watches.get(key)
        if watch is None:
            watch = Watch(key, self._observer, self._reader, self._clock, self._outbox.cancel)
            watch.first_pause = first_pause
            self._watches[key] = watch
            self._start(("watch", key), self._see_through(watch))
        if listen:  # or its server does not know it, so that there is nothing to tell
            self.listening.add(watch)

    async def _see_through(self, watch: Watch) -> None:
        try:
            await supervise(watch, self._observer, self._clock)
        finally:
            if self._watches.get(watch.key) is watch:
                del self._watches[watch.key]
                self.listening.remove(watch.key)

    def _start(self, name: Hashable, work: Coroutine[Any, Any, None]) -> None:
        if name in self._tasks and not self._tasks[name].done():
            work.close()
            return
        task = asyncio.create_task(work, name=str(name))
        self._tasks[name] = task

        def done(_: asyncio.Task[None]) -> None:
            if self._tasks.get(name) is task:
                del self._tasks[name]

        task.add_done_callback(done)

    def _follow(self, seq: int) -> tuple[int, set[TaskKey]]:
        """Take in what was written into the store since *seq*, by whomever."""
        newest, changed = self._reader.changed_since(seq)
        if newest == seq:
            return seq, set()
        self._feed.add(*changed)
        rows = self._reader.rows(sorted(changed))
        for key in changed:
            row = rows.get(key)
            if row is None:
                self.unwatch(key)
            elif row.kind == "task" and row.state.tracking == "active":
                self._watch(key)
            else:
                self.listening.remove(key)
        for name in self._servers.take_in(self._reader.servers()):
            self._feed.add(server=name)
        return newest, changed

    async def _take_over(self) -> None:
        """Take up the calls that other programs left behind."""
        await self._calls.recover()
        for key in self._calls.to_be_repeated():
            if self._is_due(key):
                self._start_delivery(key, "call")

    def _sweep(self) -> None:
        """Start the deliveries that are due."""
        for key in _tasks_of(q for q in self._reader.pending_answers() if self._outbox.is_ours(q)):
            record = self._reader.task(key)
            if record is None or record.key != key or record.state.tracking != "active":
                continue
            if record.owner is None and self._is_due(key):  # a call in somebody's hands is left there
                self._start_delivery(key, record.kind)

    def _is_due(self, key: TaskKey) -> bool:
        return self._not_before.get(key, float("-inf")) <= self._clock.elapsed()

    async def _deliver(self, key: TaskKey) -> bool:
        attempt = await self._outbox.deliver(key)
        if attempt.acknowledged:
            self.hurry(key)
        return attempt.error is None

    async def _go_on(self, key: TaskKey) -> bool:
        try:
            await self._calls.go_on(key)
        except EngineError as error:
            log.info("The call %s did not go on: %s", key, error.failure)
            return False
        return True

    def _start_delivery(self, key: TaskKey, kind: Kind) -> None:
        work = self._go_on if kind == "call" else self._deliver
        self._start(("deliver", key), self._supervise(key, work))

    async def _supervise(self, key: TaskKey, work: Callable[[TaskKey], Awaitable[bool]]) -> None:
        """Deliver once; whatever happens in it stops no other delivery, and is tried again after a pause."""
        done = False
        try:
            done = await work(key)
        except StorageError as error:
            log.error("Delivering answers to %s: %s", key, error)
        except Exception:
            log.exception("A fault of this program while delivering answers to %s", key)
        self._back_off(key, not done)

    def _back_off(self, key: TaskKey, failed: bool) -> None:
        if not failed:
            self._failures.pop(key, None)
            self._not_before.pop(key, None)
            return
        self._failures[key] = self._failures.get(key, 0) + 1
        pause = schedule.after_failure(self._failures[key], None, self._clock.chance())
        self._not_before[key] = self._clock.elapsed() + pause

    def _recovered(self, server: str) -> None:
        """A server answers again: nothing that failed there waits for the end of its pause."""
        for key, watch in self._watches.items():
            if key.server == server and watch.is_failing:
                watch.wake()
        self.listening.reconsider(server)
        for key in [key for key in self._not_before if key.server == server]:
            del self._not_before[key]
        self.nudge()

    async def _decide(self, key: TaskKey, decide: Decide) -> None:
        try:
            await self._observer.change(key, decide)
        except UnknownTask:
            pass


def _tasks_of(questions: Iterable[QuestionRecord]) -> list[TaskKey]:
    return list(dict.fromkeys(question.task for question in questions))


def _may_be_known_again(row: TaskRow, now: int) -> bool:
    """Say whether a lost task is worth asking for once more: its server may have been restored meanwhile."""
    if row.kind != "task" or row.state.tracking != "lost":
        return False
    expires = row.state.expires_at
    return row.changed_at >= now - LOST_MS and (expires is None or expires > now)


def _stopping(reason: str) -> Decide:
    def decide(task: TaskRecord, _: tuple[QuestionRecord, ...]) -> TaskWrites:
        return reconcile.stopped(task, reason)

    return decide


def _resuming(task: TaskRecord, _: tuple[QuestionRecord, ...]) -> TaskWrites:
    return reconcile.resumed(task)
