"""The store's verbs as coroutines, on one writer thread.

Observations are committed together, in windows of about 20 ms: a commit costs more than what it holds. What a
person or a call would lose is committed alone, at once, and is on the disk before the coroutine returns.
Verbs are carried out in the order in which they were asked for.

Cancelling a coroutine that waits here does not take back what it asked for.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from storage.errors import StorageError
from storage.records import (
    NewEvent,
    NewQuestion,
    NewTask,
    QuestionRecord,
    Reply,
    ServerRecord,
    TaskKey,
    TaskRecord,
    TaskRow,
    TaskWrites,
)
from storage.store import Decide, Store

WINDOW_S: Final = 0.02
"""How long the first observation of a group waits for others."""

GROUP_LIMIT: Final = 256
"""Observations in one commit; other programs can't write meanwhile."""

_log: Final = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Job:
    verb: Callable[[Store], Any]
    is_grouped: bool
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None

    def do(self, store: Store) -> None:
        try:
            self.result = self.verb(store)
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
            self.error = error

    def report(self) -> None:
        """Hand the outcome over to the loop, which may be gone by now."""
        try:
            self.loop.call_soon_threadsafe(self._resolve)
        except RuntimeError:
            self._complain()

    def _resolve(self) -> None:
        if self.future.done():
            self._complain()
        elif self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)

    def _complain(self) -> None:
        if self.error is not None:
            _log.error("a write failed, and nobody waits for it any more", exc_info=self.error)


class AsyncStore:
    """The writer, for an event loop. The verbs are those of `Store`, and raise what those raise.

    A verb after `aclose` raises `StorageError`.
    """

    def __init__(self, store: Store) -> None:
        """Take *store* over: from now on the writer thread alone uses it, and closes it; see `open`."""
        self._jobs = _Jobs()
        self._thread = threading.Thread(target=_write, args=(store, self._jobs), name="store", daemon=True)
        self._thread.start()

    @classmethod
    async def open(cls, path: Path, *, clock: Callable[[], int]) -> AsyncStore:
        """Open the database at *path* (see `Store.open`); *clock* is called on the writer thread."""
        return cls(await asyncio.to_thread(Store.open, path, clock=clock))

    async def aclose(self) -> None:
        """Carry out all that was asked for, and close the store."""
        self._jobs.close()
        await asyncio.to_thread(self._thread.join)

    async def _ask(self, verb: Callable[[Store], T], *, is_grouped: bool = False) -> T:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put(_Job(verb, is_grouped, loop, future))
        return await future

    async def add_task(
        self, new: NewTask, *, questions: Sequence[NewQuestion] = (), events: Sequence[NewEvent] = ()
    ) -> bool:
        """See `Store.add_task`; alone, synced."""
        return await self._ask(lambda store: store.add_task(new, questions=questions, events=events))

    async def change_task(self, key: TaskKey, decide: Decide, *, durable: bool = False) -> TaskWrites:
        """See `Store.change_task`; grouped, or alone and synced with *durable*.

        *decide* runs on the writer thread.
        """
        return await self._ask(
            lambda store: store.change_task(key, decide, durable=durable), is_grouped=not durable
        )

    async def archive(self, key: TaskKey) -> None:
        """See `Store.archive`; alone, synced."""
        await self._ask(lambda store: store.archive(key))

    async def unarchive(self, key: TaskKey) -> None:
        """See `Store.unarchive`; alone, synced."""
        await self._ask(lambda store: store.unarchive(key))

    async def forget(self, key: TaskKey) -> None:
        """See `Store.forget`; alone, synced."""
        await self._ask(lambda store: store.forget(key))

    async def queue_answers(self, task: TaskKey, replies: Sequence[Reply], *, by: str) -> None:
        """See `Store.queue_answers`; alone, synced."""
        await self._ask(lambda store: store.queue_answers(task, replies, by=by))

    async def claim(
        self, question_ids: Sequence[int], *, owner: str, dead: Callable[[str], bool]
    ) -> tuple[int, ...]:
        """See `Store.claim`; alone, synced. *dead* runs on the writer thread."""
        return await self._ask(lambda store: store.claim(question_ids, owner=owner, dead=dead))

    async def release(self, question_ids: Sequence[int], owner: str) -> None:
        """See `Store.release`; alone, synced."""
        await self._ask(lambda store: store.release(question_ids, owner))

    async def save_draft(self, question_id: int, draft_json: str | None) -> bool:
        """See `Store.save_draft`; grouped."""
        return await self._ask(lambda store: store.save_draft(question_id, draft_json), is_grouped=True)

    async def save_reply(self, fingerprint: str, name: str, draft_json: str) -> None:
        """See `Store.save_reply`; alone, synced."""
        await self._ask(lambda store: store.save_reply(fingerprint, name, draft_json))

    async def delete_reply(self, fingerprint: str, name: str) -> bool:
        """See `Store.delete_reply`; alone, synced."""
        return await self._ask(lambda store: store.delete_reply(fingerprint, name))

    async def pending_answers(self) -> list[QuestionRecord]:
        """See `Store.pending_answers`; sees all that was asked for before."""
        return await self._ask(Store.pending_answers)

    async def active_tasks(self) -> list[TaskRow]:
        """See `Store.active_tasks`; sees all that was asked for before."""
        return await self._ask(Store.active_tasks)

    async def calls_in_flight(self) -> list[TaskRecord]:
        """See `Store.calls_in_flight`; sees all that was asked for before."""
        return await self._ask(Store.calls_in_flight)

    async def set_server(self, server: ServerRecord) -> None:
        """See `Store.set_server`; grouped."""
        await self._ask(lambda store: store.set_server(server), is_grouped=True)

    async def forget_server(self, name: str) -> None:
        """See `Store.forget_server`; grouped."""
        await self._ask(lambda store: store.forget_server(name), is_grouped=True)

    async def log(self, event: NewEvent, key: TaskKey | None = None, server: str | None = None) -> int:
        """See `Store.log`; grouped."""
        return await self._ask(lambda store: store.log(event, key, server), is_grouped=True)


class _Jobs:
    """What was asked for and is not done yet, in its order; handed out in groups that are one commit each."""

    def __init__(self) -> None:
        self._waiting: deque[_Job] = deque()
        self._alone = 0
        self._is_closed = False
        self._changed = threading.Condition()

    def put(self, job: _Job) -> None:
        with self._changed:
            if self._is_closed:
                raise StorageError("the store is closed")
            self._waiting.append(job)
            self._alone += not job.is_grouped
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def next_group(self) -> list[_Job]:
        """Wait for work; an empty list when all is done and nothing more will come."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            if self._waiting and self._waiting[0].is_grouped:
                self._changed.wait_for(self._is_hurried, timeout=WINDOW_S)
            group: list[_Job] = []
            while self._waiting and len(group) < GROUP_LIMIT:
                if not self._waiting[0].is_grouped:
                    if not group:
                        self._alone -= 1
                        group.append(self._waiting.popleft())
                    break
                group.append(self._waiting.popleft())
            return group

    def _is_hurried(self) -> bool:
        return self._is_closed or self._alone > 0 or len(self._waiting) >= GROUP_LIMIT


def _write(store: Store, jobs: _Jobs) -> None:
    """Carry out *jobs* until they are closed; the writer thread."""
    try:
        while group := jobs.next_group():
            _carry_out(store, group)
            for job in group:
                job.report()
    finally:
        store.close()


def _carry_out(store: Store, group: list[_Job]) -> None:
    if not group[0].is_grouped:
        group[0].do(store)
        return
    try:
        with store.group():
            for job in group:
                job.do(store)
    except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
        for job in group:
            job.error = job.error or error
