"""Two service processes on one folder, killed and paused at random: every task ends, no step is done twice.

``DEMO_KILLS_SEED`` repeats a run's choices; the moments of the kills among the processes' own steps are the
machine's.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fakes.demo import DemoProcess
from fakes.demo_wire import DECLINE, DISMISS, DemoWire, RpcFailure, accept

pytestmark = pytest.mark.e2e

TASKS = 200
KILLS = 50
LEASE_MS = 400
ENDED = ("completed", "failed", "cancelled")
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("generate_report", {"size": "small"}),
    ("two_questions", {}),
    ("approve_in_browser", {}),
    ("send_newsletter", {"batches": 5}),
    ("restore_backup", {}),
    ("publish_release", {}),
    ("flaky_job", {}),
    ("broken_tool", {}),
)
ANSWERS: dict[str, list[dict[str, Any]]] = {
    "approve_outline": [accept(approved=True), accept(approved=False), DECLINE],
    "colour": [accept(colour="red"), DECLINE],
    "count": [accept(count=3), DISMISS],
    "approve_in_browser": [{"action": "accept"}, DECLINE],
}
STEPS: dict[str, int] = {"flaky_job": 3, "broken_tool": 2, "publish_release": 6}
"""How many steps these take, whatever anybody does meanwhile."""


class Pair:
    """Two processes on one folder, and a client that asks whichever of them answers."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.chance = chance
        lease = ("--lease-ms", str(LEASE_MS))
        self.processes = [
            DemoProcess(folder / "data", speed=0.1, poll_ms=50, options=lease) for _ in range(2)
        ]
        self.wires: list[DemoWire] = []
        self.kills = 0
        self.pauses = 0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Pair]:
        async with contextlib.AsyncExitStack() as stack:
            for process in self.processes:
                stack.enter_context(process)
                self.wires.append(await stack.enter_async_context(DemoWire(process.url)))
            yield self

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask either process until one has answered; what was asked of one that died is asked again."""
        while True:
            wire = self.chance.choice(self.wires)
            try:
                return await wire.call(method, params)
            except (httpx.TransportError, RpcFailure) as error:
                # The service says so where its file was held for too long by a process that is paused.
                if isinstance(error, RpcFailure) and error.code != -32603:
                    raise
                await asyncio.sleep(0.02)

    async def kill(self, process: DemoProcess) -> None:
        """Kill a process at some moment, and start it again; before, every fourth time, only pause it."""
        await asyncio.sleep(self.chance.uniform(0, 0.5))
        if self.chance.random() < 0.25:
            os.kill(process.pid, signal.SIGSTOP)
            await asyncio.sleep(1.5 * LEASE_MS / 1000)
            os.kill(process.pid, signal.SIGCONT)
            await asyncio.sleep(self.chance.uniform(0, 0.2))
            self.pauses += 1
        await asyncio.to_thread(process.restart)
        self.kills += 1


async def live(pair: Pair, number: int) -> str:
    """Call a tool and see its task through to its end; return the task's id."""
    tool, arguments = CALLS[number % len(CALLS)]
    task_id: str = (await pair.ask("tools/call", name=tool, arguments=arguments))["taskId"]
    await see_through(pair, task_id)
    return task_id


async def see_through(pair: Pair, task_id: str) -> None:
    """Answer what a task asks, or cancel it on the way, until it has ended."""
    chance = random.Random(pair.chance.random())
    cancels = chance.random() < 0.2
    while True:
        task = await pair.ask("tasks/get", taskId=task_id)
        if task["status"] in ENDED:
            return
        asked = list(task.get("inputRequests", ()))
        if asked:
            # One at a time, as people answer.
            key = chance.choice(asked)
            await pair.ask("tasks/update", taskId=task_id, inputResponses={key: chance.choice(ANSWERS[key])})
        elif cancels and chance.random() < 0.2:
            await pair.ask("tasks/cancel", taskId=task_id)
        await asyncio.sleep(chance.uniform(0.05, 0.2))


def check_the_ledger(path: Path) -> str:
    """Hold what the file says of every task to its ledger of steps; return the figures."""
    with sqlite3.connect(path) as db:
        tasks = db.execute("SELECT id, tool, status, position, due_ms, holder, cancel_requested FROM task")
        found = {task[0]: task[1:] for task in tasks}
        entries = db.execute("SELECT task_id, position, holder, attempts FROM step").fetchall()
    steps: dict[str, list[int]] = {task_id: [] for task_id in found}
    for task_id, position, _, _ in entries:
        steps[task_id].append(position)
    for task_id, (tool, status, position, due, holder, cancelled) in found.items():
        assert (status in ENDED, due, holder) == (True, None, None), (task_id, tool, status)
        # As many entries as steps that counted, one for each: none is missing, and none came twice.
        assert sorted(steps[task_id]) == list(range(position)), (task_id, tool)
        if tool in STEPS and (tool == "publish_release" or not cancelled):
            assert len(steps[task_id]) == STEPS[tool], (task_id, tool)
    holders = len({holder for _, _, holder, _ in entries})
    again = sum(attempts > 1 for _, _, _, attempts in entries)
    return f"{len(entries)} steps by {holders} processes, {again} of them begun more than once"


def orphans(path: Path, task_ids: list[str]) -> list[str]:
    """The tasks whose handles were lost with the process that made them."""
    with sqlite3.connect(path) as db:
        return [row[0] for row in db.execute("SELECT id FROM task") if row[0] not in task_ids]


@pytest.mark.timeout(240)
async def test_two_processes_and_many_kills_leave_every_task_ended_and_no_step_done_twice(tmp_path):
    seed = int(os.environ.get("DEMO_KILLS_SEED", "20260728"))
    file = tmp_path / "data" / "tasks.db"
    pair = Pair(tmp_path, random.Random(seed))
    async with pair.running():
        living: list[asyncio.Task[str]] = []

        async def kill_again_and_again(process: DemoProcess) -> None:
            for _ in range(KILLS // 2):
                # New tasks at each kill, so that there is something to interrupt at every one of them.
                for _ in range(TASKS // KILLS):
                    living.append(asyncio.create_task(live(pair, len(living))))
                await pair.kill(process)

        await asyncio.gather(*map(kill_again_and_again, pair.processes))
        late = sum(not each.done() for each in living)
        task_ids = await asyncio.gather(*living)
        lost = orphans(file, task_ids)
        await asyncio.gather(*(see_through(pair, task_id) for task_id in lost))
    assert (len(set(task_ids)), pair.kills) == (TASKS, KILLS)
    figures = check_the_ledger(file)
    print(f"seed {seed}: {KILLS} kills and {pair.pauses} pauses, {TASKS} tasks and {len(lost)} whose handle")
    print(f"was lost, all ended, {late} of them after the last kill; {figures}")
