"""What moves the tasks: one step at a time, each committed before the next.

Nothing about a task lives in memory between two steps, so a process that dies loses at most a step that was
never committed, and the next process computes it again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

from app.demo_server.errors import INTERNAL_ERROR, RpcError
from app.demo_server.store import Change, Store, Task
from app.demo_server.tools import Ask, Done, Job, Outcome, Tool, Work

REST_MS: Final = 5000
"""The longest look away: another process on the same folder may have left work behind."""

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
    ) -> None:
        self._store = store
        self._tools = tools
        self._step_ms = step_ms
        self._now_ms = now_ms
        self._token = token
        self._news = asyncio.Event()

    def wake(self) -> None:
        """Look again for work: a task was made, answered, or asked to stop."""
        self._news.set()

    async def step(self) -> str | None:
        """Do the step that has been due longest; return the task's id, or ``None`` where nothing is due."""
        now = self._now_ms()
        task = self._store.due(now)
        if task is None:
            return None
        self._store.advance(task, self._change(task, now), now)
        await asyncio.sleep(0)
        return task.id

    async def run(self) -> None:
        """Do steps as they fall due, until cancelled."""
        while True:
            self._news.clear()
            if await self.step() is None:
                await self._rest()

    async def _rest(self) -> None:
        due = self._store.next_due()
        wait_ms = REST_MS if due is None else min(REST_MS, max(0, due - self._now_ms()))
        try:
            async with asyncio.timeout(wait_ms / 1000):
                await self._news.wait()
        except TimeoutError:
            pass

    def _change(self, task: Task, now: int) -> Change:
        if task.cancel_requested:
            return Change("cancelled", "Cancelled on request", task.state)
        try:
            outcome = self._outcome(task)
        except RpcError as error:
            return Change("failed", f"Failed: {error.message}", task.state, error=error.body())
        match outcome:
            case Work(message, state, pause, pause_ms):
                state = task.state if state is None else state
                rest_ms = round(self._step_ms * pause) if pause_ms is None else pause_ms
                return Change("working", message, state, due_ms=now + rest_ms)
            case Ask(message, requests):
                return Change("input_required", message, task.state, asks=requests)
            case Done(message, result):
                return Change("completed", message, task.state, result=result)

    def _outcome(self, task: Task) -> Outcome:
        tool = self._tools.get(task.tool)
        if tool is None or tool.step is None:
            raise RpcError(INTERNAL_ERROR, f"this service no longer has the tool {task.tool}")
        answers = {q.key: q.response for q in task.questions if q.response is not None}
        job = Job(task.arguments, task.position, task.state, answers, self._token())
        try:
            return tool.step(job)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # Steps are pure functions: these are their faults, and one tool's fault must neither stop the
            # other tasks nor leave its own task working for ever.
            _log.exception("a step of %s failed", task.tool)
            raise RpcError(INTERNAL_ERROR, f"the tool {task.tool} broke at step {task.position}") from error
