"""Watching one task: looking again and again, and taking in what a stream tells of it meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from app.engine import reconcile, schedule
from app.engine.clock import Clock
from app.engine.observed import Observed
from app.engine.watcher import Look, Observer
from storage.errors import StorageError
from storage.reader import StoreReader
from storage.records import QuestionRecord, TaskKey, TaskRecord, TaskState, TaskWrites

KEPT_CHARS: Final = 64 * 1024
"""A snapshot longer than this is asked for instead of being kept until it is its turn: those of all tasks
together must fit into memory, whatever a server sends."""
AFTER_A_BUG_S: Final = 60.0
AFTER_STORAGE_S: Final = 5.0

log = logging.getLogger(__name__)


class Teller(Protocol):
    """A stream that should tell of a task."""

    @property
    def has_told(self) -> bool:
        """Say whether it has told anything yet: one that has not is acknowledged, and no more."""

    def distrust(self) -> None:
        """Count on it no more: something happened that it did not tell of."""


class Watch:
    """Looks at one task for as long as there is something to see.

    While a stream tells of the task, what it tells is taken in between two looks, and the looks become few:
    once it has told anything at all, for an acknowledgement alone is no promise kept. A stream that did not
    tell what a look then found is given up.
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
        self._may_take_at = float("-inf")
        """What is told is stored no more often than a task is looked at, however often it is told."""
        self._stream: Teller | None = None
        self._untold_until: float | None = None
        """A look found what the stream should have told, and has until then to tell."""
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

    @property
    def is_failing(self) -> bool:
        """Say whether the last look did not succeed."""
        return self._failures > 0

    def follow(self, stream: Teller) -> None:
        """*stream*, which is acknowledged, tells of the task from now on."""
        self._stream = stream
        self._untold_until = None

    def fall_back(self) -> None:
        """No stream tells of the task any more: look within one interval, and go on at its pace."""
        self._stream = None
        self._is_followed = False
        self._untold_until = None
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
            self._told = None  # the look shows what is newer
            stream, before = self._stream, self._reader.task(self.key)
            look = await self._observer.look(self.key)
            stored = self._reader.task(self.key)
            if stored is None or look.kind == "gone":
                return
            if look.seen is not None:
                is_same = stream is not None and stream is self._stream
                if is_same and self._is_followed and _differ(before, stored):
                    self._untold_until = self._clock.elapsed() + schedule.GRACE_S
                self._is_followed = is_same
                self._newest = look.seen.last_updated_at
                if _owes_cancel(stored.state) and await self._cancel(self.key) is None:
                    self._quick = 0
            pause = self._pause(look, stored.state)
            if pause is None or await self._rest(pause):
                return
            late = self._untold_until is not None and self._clock.elapsed() >= self._untold_until
            if late and self._told is None and self._stream is not None:
                self._stream.distrust()

    async def _rest(self, pause: float) -> bool:
        """Wait until the next look is due and take in what is told meanwhile; True: there is none to come."""
        began = self._clock.elapsed()
        due = began + pause
        while True:
            self._woken.clear()
            now = self._clock.elapsed()
            if self._told is not None and now >= self._may_take_at:
                state = await self._take_told()
                if state is not None:
                    if state.tracking in ("ended", "stopped"):
                        return True
                    if _owes_cancel(state):
                        return False
                    if self._quick is None:
                        due = self._clock.elapsed() + self._next(state.poll_interval_ms)
                continue
            if self._is_asked:
                if self._quick == 0:
                    await self._clock.wait(asyncio.Event(), self._next(None))
                return False
            due = min(due, self._brought_forward(began))
            if now >= due:
                return False
            next_step = due if self._told is None else min(due, self._may_take_at)
            if not await self._clock.wait(self._woken, next_step - now) and self._told is None:
                return False

    async def _take_told(self) -> TaskState | None:
        """Take in the newest snapshot that was told; ``None``: it can't be used, and a look is due soon."""
        assert self._told is not None
        (seen, received), self._told = self._told, None
        self._may_take_at = self._clock.elapsed() + schedule.FLOOR_MS / 1000
        stored = None
        if await self._observer.take_told(self.key, seen, received, self._newest):
            stored = self._reader.task(self.key)
        if stored is None:
            self._is_stale = True  # or it was forgotten, which the look finds out, too
            return None
        self._is_followed = self._stream is not None
        self._untold_until = None
        self._newest = seen.last_updated_at
        self._failures = 0
        return stored.state

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
        if self._quick is None and self._is_followed and self._stream is not None:
            if self._untold_until is not None:
                return min(schedule.GRACE_S, schedule.next_look(poll_interval_ms, self._clock.chance()))
            if self._stream.has_told:
                return schedule.safety_look(poll_interval_ms, self._clock.chance())
        pause = schedule.next_look(poll_interval_ms, self._clock.chance(), quick=self._quick)
        if self._quick is not None:
            self._quick = self._quick + 1 if self._quick + 1 < len(schedule.QUICK_MS) else None
        return pause


def _differ(before: TaskRecord | None, after: TaskRecord) -> bool:
    """Say whether a look showed something that a stream would have told."""
    if before is None:
        return False
    was, now = before.state, after.state
    return (was.status, was.status_message, was.result_json) != (
        now.status,
        now.status_message,
        now.result_json,
    )


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
