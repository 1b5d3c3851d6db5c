"""What moves the tasks: one step at a time, each committed before the next.

Nothing about a task lives in memory between two steps, so a process that dies loses at most a step that was
never committed. Before a step is computed its task is leased: of all the processes on a folder one works on
it, and only while the lease is its own can it commit. A step may be computed twice; it is committed once, and
what a step does happens in that commit alone.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import sqlite3
import threading
from collections.abc import Callable, Mapping
from typing import Final

from app.demo_server.errors import INTERNAL_ERROR, RpcError
from app.demo_server.migrations import is_busy
from app.demo_server.records import CANCELLED, Change, Task
from app.demo_server.store import Store
from app.demo_server.tools import Ask, Done, Job, Outcome, Stopped, Tool, Work

BUSY_PAUSE_S: Final = 0.5
"""Before the next try where another process holds the data: each try waits on the thread of all requests."""
REST_MS: Final = 5000
"""The longest look away: another process on the same folder may have left work behind."""
LEASE_MS: Final = 5000
"""How long a task waits for a process that has died, or that the machine has paused."""
STEP_SECONDS_LIMIT: Final = 10.0
"""How long a step may take: steps are small, and one that hangs would hold up all others."""
ATTEMPTS: Final = 10
"""How often a step is begun. A step that ends its process each time must not do so for ever."""
ASKING_TTL_MS: Final = 24 * 3600 * 1000
"""A question prolongs its task's life to this, from when it is asked: a person may sleep over it."""

_BAD_OUTCOME: Final = (
    ArithmeticError,
    AttributeError,
    RecursionError,
    TypeError,
    ValueError,
    sqlite3.DataError,
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)
"""What an outcome raises that can't be stored: no JSON, no text, a key that was asked before."""

_log = logging.getLogger(__name__)


class Worker:
    """Advances the tasks of one store."""

    def __init__(
        self,
        store: Store,
        tools: Mapping[str, Tool],
        *,
        step_ms: int,
        now_ms: Callable[[], int],
        token: Callable[[], str],
        lease_ms: int = LEASE_MS,
        step_seconds_limit: float = STEP_SECONDS_LIMIT,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """*changed* is called after each step that was committed."""
        self._store = store
        self._tools = tools
        self._step_ms = step_ms
        self._now_ms = now_ms
        self._token = token
        self._lease_ms = lease_ms
        self._limit = step_seconds_limit
        self._changed = changed
        self._news = asyncio.Event()
        self.holder = token()
        """The name that this worker's leases are in: no other has the same."""

    def wake(self) -> None:
        """Look again for work: a task was made, answered, or asked to stop."""
        self._news.set()

    async def step(self) -> str | None:
        """Take the step that has been due longest; return the task's id, or ``None`` where nothing is due.

        Tasks past their time to live are dealt with first.
        """
        now = self._now_ms()
        self._store.clean(now)
        task = self._store.claim(self.holder, now, self._lease_ms)
        if task is None:
            return None
        outcome = await self._outcome(task)
        if outcome is not None:
            self._commit(task, outcome)
        return task.id

    async def run(self) -> None:
        """Take steps as they fall due, until cancelled."""
        while True:
            self._news.clear()
            try:
                if await self.step() is None:
                    await self._rest()
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise
                _log.warning("another process holds the data; trying again")
                await asyncio.sleep(BUSY_PAUSE_S)  # requests go first, which wait for the same data

    async def _rest(self) -> None:
        due = self._store.next_due()
        wait_ms = REST_MS if due is None else min(REST_MS, max(0, due - self._now_ms()))
        try:
            async with asyncio.timeout(wait_ms / 1000):
                await self._news.wait()
        except TimeoutError:
            pass

    def _commit(self, task: Task, outcome: Outcome | RpcError) -> None:
        now = self._now_ms()
        try:
            counted = self._store.advance(task, self._change(task, outcome, now), self.holder, now)
        except _BAD_OUTCOME as error:
            _log.error("a step of %s came to nothing that can be stored: %s", task.tool, error)
            counted = self._store.advance(task, _failed(task, _broke(task)), self.holder, now)
        if not counted:
            _log.warning("a step of %s came too late and did not count", task.tool)
        self._changed()

    def _change(self, task: Task, outcome: Outcome | RpcError, now: int) -> Change:
        match outcome:
            case RpcError():
                return _failed(task, outcome)
            case Work(message, state, pause, pause_ms):
                state = task.state if state is None else dict(state)
                rest_ms = round(self._step_ms * pause) if pause_ms is None else pause_ms
                return Change("working", message, state, due_ms=now + rest_ms)
            case Ask(message, requests):
                if not requests:
                    raise ValueError("a step that asks must ask something: this task would wait for ever")
                ttl = None if task.ttl_ms is None else max(task.ttl_ms, now - task.created_ms + ASKING_TTL_MS)
                tool = self._tools.get(task.tool)
                yields = tool is None or not tool.handles_cancel
                return Change(
                    "input_required", message, task.state, asks=requests, ttl_ms=ttl, yields_to_cancel=yields
                )
            case Done(message, result, keep_ms):
                ttl = None if keep_ms is None else now - task.created_ms + keep_ms
                return Change("completed", message, task.state, result=dict(result), ttl_ms=ttl)
            case Stopped(message):
                return Change("cancelled", message, task.state)
        raise TypeError("a step returns an outcome")

    async def _outcome(self, task: Task) -> Outcome | RpcError | None:
        """Compute a step; ``None`` where the lease was lost meanwhile."""
        tool = self._tools.get(task.tool)
        if tool is None or tool.step is None:
            return RpcError(INTERNAL_ERROR, f"this service no longer has the tool {task.tool}")
        if task.attempts > ATTEMPTS:
            return RpcError(
                INTERNAL_ERROR,
                f"the tool {task.tool} was at step {task.position} {ATTEMPTS} times and never came through",
            )
        if task.cancel_requested and not tool.handles_cancel:
            return Stopped(CANCELLED)
        answers = {q.key: q.response for q in task.questions if q.response is not None}
        job = Job(task.arguments, task.position, task.state, answers, self._token(), task.cancel_requested)
        return await self._computed(task, tool.step, job)

    async def _computed(
        self, task: Task, step: Callable[[Job], Outcome], job: Job
    ) -> Outcome | RpcError | None:
        running = asyncio.wrap_future(_begun(task.tool, step, job))
        loop = asyncio.get_running_loop()
        until = loop.time() + self._limit
        while True:
            wait = min(self._lease_ms / 3000, max(0.0, until - loop.time()))
            done, _ = await asyncio.wait([running], timeout=wait)
            if done:
                break
            if loop.time() >= until:
                # Nothing can end a thread; what this one still finds out is nobody's any more.
                return RpcError(
                    INTERNAL_ERROR,
                    f"the tool {task.tool} took more than {self._limit:g} seconds at step {task.position}",
                )
            if not self._store.renew(task, self.holder, self._now_ms(), self._lease_ms):
                return None
        outcome, error = running.result()
        if isinstance(error, RpcError):
            return error
        if error is not None:
            _log.error("a step of %s failed", task.tool, exc_info=error)
        return outcome or _broke(task)


def _begun(
    tool: str, step: Callable[[Job], Outcome], job: Job
) -> concurrent.futures.Future[tuple[Outcome | None, BaseException | None]]:
    """Run *step* in a thread of its own, which ends with the process however busy it is."""
    future: concurrent.futures.Future[tuple[Outcome | None, BaseException | None]] = (
        concurrent.futures.Future()
    )

    def run() -> None:
        try:
            future.set_result((step(job), None))
        except BaseException as error:  # noqa: BLE001 - whatever a tool does fails its own task, and no other
            future.set_result((None, error))

    threading.Thread(target=run, daemon=True, name=f"step of {tool}").start()
    return future


def _failed(task: Task, error: RpcError) -> Change:
    return Change("failed", f"Failed: {error.message}", task.state, error=error.body())


def _broke(task: Task) -> RpcError:
    return RpcError(INTERNAL_ERROR, f"the tool {task.tool} broke at step {task.position}")
