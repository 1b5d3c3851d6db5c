"""Subscriptions to the tasks that are watched: few streams for many tasks, and polling where there is none.

A stream is a help, and never trusted by itself: a task that it tells of is still looked at now and then, and
one that it tells of no more is polled at once. Page: the Tasks extension ("Task Status Notifications").
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeGuard

from app.engine import schedule
from app.engine.changes import ChangeFeed
from app.engine.clock import Clock
from app.engine.commands import EngineError
from app.engine.plan import Wish, plan
from app.engine.servers import Servers
from app.engine.sight import observed
from app.engine.watch import AFTER_A_BUG_S, Watch
from app.text import inert_line
from mcp_client import (
    Ending,
    McpError,
    Missed,
    Subscription,
    SubscriptionEvent,
    TaskNotification,
    TransportError,
)
from storage.errors import StorageError
from storage.records import TaskKey

Observing = Literal["subscribed", "polling"]

SETTLE_S: Final = 0.2
"""Tasks that come or go within this time are one change of a stream."""
OVERLAP_S: Final = 1.0
"""A stream that has been replaced stays open this long: what it was told before may still be on its way."""
TRIES: Final = 3
"""A server that breaks off before it acknowledges, or says nothing, is asked this often again before it
counts as one that refuses."""
_TEMPORARY: Final = frozenset({408, 429, 502, 503, 504})
"""HTTP statuses of a server that is not well now; others say that it takes no subscriptions."""
_FOR_EVER_S: Final = 86_400.0

log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class Stream:
    """One subscription of a server."""

    asked: tuple[str, ...]
    began: float
    """By the clock that goes on."""
    accepted: frozenset[str] = frozenset()
    task: asyncio.Task[None] | None = None
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    """Acknowledged, or failed."""
    has_told: bool = False
    """It has told of a task: only then is it more than an acknowledgement."""
    given_up: Callable[[], None] = lambda: None
    """What to do when it turns out to tell nothing."""

    def distrust(self) -> None:
        """Count on it no more: something happened that it did not tell of."""
        self.given_up()


class Listening:
    """Listens at every server that has watched tasks."""

    def __init__(self, servers: Servers, feed: ChangeFeed, clock: Clock) -> None:
        self._servers = servers
        self._feed = feed
        self._clock = clock
        self._listeners: dict[str, Listener] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def add(self, watch: Watch) -> None:
        """Listen for the task of *watch*; a second time does nothing."""
        name = watch.key.server
        if name not in self._listeners:
            listener = Listener(name, self._servers, self._clock, lambda: self._feed.add(server=name))
            self._listeners[name] = listener
            self._tasks[name] = asyncio.create_task(_supervise(listener, self._clock), name=f"listen {name}")
        self._listeners[name].add(watch)

    def remove(self, key: TaskKey) -> None:
        """Listen no more for a task."""
        if key.server in self._listeners:
            self._listeners[key.server].remove(key.id)

    def reconsider(self, server: str | None = None) -> None:
        """Ask a server that refused once more: it was restarted, or its entry changed; ``None``: all of
        them."""
        for name, listener in self._listeners.items():
            if server in (None, name):
                listener.reconsider()

    def observing(self, server: str) -> Observing | None:
        """Say how the tasks of a server are observed; ``None``: none of them is watched."""
        listener = self._listeners.get(server)
        return None if listener is None else listener.observing

    async def stop(self) -> None:
        """Close every stream."""
        tasks, listeners = list(self._tasks.values()), list(self._listeners.values())
        self._tasks.clear()
        self._listeners.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for listener in listeners:
            await listener.stop()


class Listener:
    """Keeps the subscriptions of one server fitting to the tasks that are watched there."""

    def __init__(self, server: str, servers: Servers, clock: Clock, changed: Callable[[], None]) -> None:
        """Listen at *server*; *changed* is called when `observing` says something else."""
        self.server = server
        self._servers = servers
        self._clock = clock
        self._changed = changed
        self._wanted: dict[str, Watch] = {}
        self._live: dict[str, Stream] = {}
        """Which stream tells of a wanted task: the newest that was acknowledged for it."""
        self._declined: set[str] = set()
        """Wanted tasks that the server did not acknowledge."""
        self._streams: list[Stream] = []
        """Those that count, the oldest first; one that was replaced may be open a little longer."""
        self._work: set[asyncio.Task[None]] = set()
        self._failures = 0
        self._not_before = float("-inf")
        self._ask_again = float("inf")
        """When the declined tasks are asked for once more."""
        self._woken = asyncio.Event()
        self._said: Observing | None = None

    @property
    def observing(self) -> Observing | None:
        """Say how the wanted tasks are observed; ``None``: there are none."""
        if not self._wanted:
            return None
        told = len(self._live) == len(self._wanted) and all(one.has_told for one in self._live.values())
        return "subscribed" if told else "polling"

    def add(self, watch: Watch) -> None:
        """Want to be told of the task of *watch*."""
        task_id = watch.key.id
        if self._wanted.get(task_id) is watch:
            return
        self.remove(task_id)
        self._wanted[task_id] = watch
        for stream in self._streams:
            if task_id in stream.accepted:
                self._live[task_id] = stream
                watch.follow(stream)
        self._moved()

    def remove(self, task_id: str) -> None:
        """Want to be told of a task no more; its stream may well go on telling."""
        if self._wanted.pop(task_id, None) is not None:
            self._live.pop(task_id, None)
            self._declined.discard(task_id)
            self._moved()

    def reconsider(self) -> None:
        """Forget that the server refused, and ask again."""
        self._failures = 0
        self._not_before = float("-inf")
        self._declined.clear()
        self._woken.set()

    async def run(self) -> None:
        """Open, replace and close streams until cancelled."""
        while True:
            await self._clock.wait(self._woken, self._pause())
            await self._clock.wait(asyncio.Event(), SETTLE_S)
            self._woken.clear()
            if self._clock.elapsed() >= self._ask_again:
                self._declined.clear()
                self._ask_again = float("inf")
            for stream in [one for one in self._streams if one not in self._live.values()]:
                self._retire(stream, at_once=True)
            while (wish := self._wish()) is not None and self._clock.elapsed() >= self._not_before:
                await self._open(wish)

    async def stop(self) -> None:
        """Close all streams."""
        for task in list(self._work):
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    def _pause(self) -> float:
        now = self._clock.elapsed()
        due = self._ask_again
        if self._wish() is not None:
            due = min(due, self._not_before)
        return min(max(due - now, 0.0), _FOR_EVER_S)

    def _wish(self) -> Wish[Stream] | None:
        alive: dict[Stream, list[str]] = {stream: [] for stream in self._streams}
        for task_id, stream in self._live.items():
            alive[stream].append(task_id)
        missing = [one for one in self._wanted if one not in self._live and one not in self._declined]
        return plan(missing, [(stream, alive[stream], len(stream.accepted)) for stream in self._streams])

    async def _open(self, wish: Wish[Stream]) -> None:
        """Open a stream, and drop the one it replaces once it is acknowledged."""
        stream = Stream(tuple(wish.ids), self._clock.elapsed())
        stream.given_up = lambda: self._give_up(stream)
        stream.task = self._start(self._hold(stream, wish.instead_of))
        await stream.opened.wait()

    async def _hold(self, stream: Stream, old: Stream | None) -> None:
        """Open *stream* and pass on what it tells until it ends; whatever happens in it stops nothing
        else."""
        try:
            async with self._servers.listen(self.server, stream.asked) as told:
                if self._took(stream, told.accepted, old):
                    stream.opened.set()
                    async for event in told:
                        self._pass_on(stream, event)
                        await asyncio.sleep(0)  # a server that tells much holds up nobody
                    self._ended(stream, told)
        except (McpError, EngineError) as error:
            self._refused(error)
        except StorageError as error:
            log.error("Listening at %s: %s", inert_line(self.server), error)
            self._wait_for(AFTER_A_BUG_S)
        except Exception:
            log.exception("A fault of this program while listening at %s", inert_line(self.server))
            self._wait_for(AFTER_A_BUG_S)
        finally:
            self._drop(stream)
            stream.opened.set()

    def _took(self, stream: Stream, accepted: frozenset[str], old: Stream | None) -> bool:
        """Take in an acknowledgement; False: nothing was accepted, and the stream is of no use."""
        declined = [one for one in stream.asked if one not in accepted and one in self._wanted]
        if declined:
            self._declined.update(one for one in declined if one not in self._live or accepted)
            self._ask_again = self._clock.elapsed() + schedule.after_refusal(self._clock.chance())
            log.info("Server %s does not tell of %d of its tasks", inert_line(self.server), len(declined))
        if not accepted:
            self._wait_for(schedule.after_refusal(self._clock.chance()))
            return False
        stream.accepted = accepted
        self._streams.append(stream)
        for task_id in stream.asked:
            if task_id in accepted and task_id in self._wanted:
                self._live[task_id] = stream
                self._wanted[task_id].follow(stream)
        if old is not None:
            self._retire(old)
        self._moved()
        return True

    def _pass_on(self, stream: Stream, event: SubscriptionEvent) -> None:
        match event:
            case TaskNotification(task=task, received=received):
                if not stream.has_told:
                    stream.has_told = True
                    self._moved()
                watch = self._wanted.get(task.task_id)
                if watch is None:
                    pass
                elif self._live.get(task.task_id) is stream:
                    watch.tell(observed(task, by="subscription"), round(received * 1000))
                else:
                    watch.look_again()  # two streams have no order between them
            case Missed(task_id=task_id) if task_id in self._wanted:
                self._wanted[task_id].look_again()
            case _:
                pass

    def _give_up(self, stream: Stream) -> None:
        """Close a stream that did not tell what it should have told."""
        if stream in self._streams:
            log.info("The subscription at %s is silent about what happened", inert_line(self.server))
            self._wait_for(schedule.after_refusal(self._clock.chance()))
            self._retire(stream, at_once=True)

    def _ended(self, stream: Stream, told: Subscription) -> None:
        """Take in how a stream ended; the next one comes after a pause that grows while they are short."""
        ending = told.ending or Ending("dropped")
        name, words = inert_line(self.server), inert_line(ending.message or "", 200)
        log.info("The subscription at %s is %s: %s", name, ending.kind, words)
        for fault in told.faults:
            log.info("In the subscription at %s: %s", name, inert_line(fault, 200))
        if stream not in self._streams:
            return  # it was replaced before
        if self._clock.elapsed() - stream.began >= schedule.LIVED_WELL_S:
            self._failures = 0
        self._try_again_later()

    def _refused(self, error: McpError | EngineError) -> None:
        log.info("No subscription at %s: %s", inert_line(self.server), inert_line(error.message, 200))
        if _broke_off(error) and (self._failures < TRIES or not error.may_have_reached):
            self._try_again_later()
        else:
            self._wait_for(schedule.after_refusal(self._clock.chance()))

    def _try_again_later(self) -> None:
        if self._clock.elapsed() < self._not_before:
            return  # all streams of a server that ends break at once, and are one failure
        self._failures += 1
        self._wait_for(schedule.listen_again(self._failures, self._clock.chance()))

    def _wait_for(self, seconds: float) -> None:
        self._not_before = self._clock.elapsed() + seconds

    def _retire(self, stream: Stream, *, at_once: bool = False) -> None:
        """Let a stream go whose tasks are told of elsewhere, or not wanted any more."""
        self._drop(stream)
        if stream.task is not None:
            self._start(self._close(stream.task, 0 if at_once else OVERLAP_S))

    async def _close(self, task: asyncio.Task[None], seconds: float) -> None:
        await self._clock.wait(asyncio.Event(), seconds)
        task.cancel()

    def _drop(self, stream: Stream) -> None:
        """Count on *stream* no more: the tasks that only it told of are polled."""
        if stream in self._streams:
            self._streams.remove(stream)
        for task_id in [one for one, live in self._live.items() if live is stream]:
            del self._live[task_id]
            self._wanted[task_id].fall_back()
        self._moved()

    def _moved(self) -> None:
        self._woken.set()
        if self.observing != self._said:
            self._said = self.observing
            self._changed()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task


def _broke_off(error: McpError | EngineError) -> TypeGuard[TransportError]:
    """Say whether no answer came, rather than one that says no."""
    if not isinstance(error, TransportError):
        return False
    return error.status is None or error.status < 400 or error.status in _TEMPORARY


async def _supervise(listener: Listener, clock: Clock) -> None:
    """Keep *listener* going whatever happens in it: its server's tasks are polled meanwhile."""
    while True:
        try:
            await listener.run()
        except Exception:
            log.exception("A fault of this program while listening at %s", inert_line(listener.server))
            await clock.wait(asyncio.Event(), AFTER_A_BUG_S)
