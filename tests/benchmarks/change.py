"""Measure the time from a server's change to the screen, in a real terminal.

Run: ``python tests/benchmarks/change.py [CHANGES]``. A scripted server changes one task's status message at
random moments; the clock runs from the change, and from the reply that carried it, until the new words are
drawn. The first includes the wait for the next poll (``pollIntervalMs`` 500, the shortest that is kept to).
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fakes.mcp_server import Exchange
from fakes.running_inbox import home
from fakes.task_script import TaskScript
from fakes.terminal import Terminal

from storage.records import NewTask, TaskKey, TaskState
from storage.store import Store

TASKINBOX = str(Path(sys.executable).with_name("taskinbox"))


class Timed(TaskScript):
    """Notes when each status message was first sent."""

    async def get(self, exchange: Exchange) -> None:
        """Answer tasks/get."""
        message = self.tasks[exchange.request.params["taskId"]]["statusMessage"]
        sent.setdefault(message, time.perf_counter())
        await super().get(exchange)


sent: dict[str, float] = {}


async def measure(changes: int, folder: Path) -> tuple[list[float], list[float]]:
    """Return the milliseconds from change and from reply to the screen."""
    from_change, from_reply = [], []
    async with Timed() as server:
        server.show("t1", statusMessage="step 0 of many", pollIntervalMs=500)
        paths = home(folder, lab=server.url)
        store = Store.open(paths.database, clock=lambda: time.time_ns() // 1_000_000)
        store.add_task(NewTask(TaskKey("lab", "t1"), tool="build", state=TaskState(status="working")))
        store.close()
        with Terminal([TASKINBOX], env={"TASKINBOX_HOME": str(folder)}) as terminal:
            terminal.wait_for("Running 1")
            terminal.send("2")
            await asyncio.to_thread(terminal.wait_for, "step 0 of")
            for number in range(1, changes + 1):
                await asyncio.sleep(random.uniform(0, 0.5))
                words = f"step {number} of many"
                begun = time.perf_counter()
                server.show("t1", statusMessage=words, pollIntervalMs=500)
                await asyncio.to_thread(terminal.wait_for, words)
                seen = time.perf_counter()
                from_change.append((seen - begun) * 1000)
                from_reply.append((seen - sent[words]) * 1000)
    return from_change, from_reply


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as folder:
        changes = int(sys.argv[1]) if len(sys.argv) > 1 else 40
        both = asyncio.run(measure(changes, Path(folder)))
        for name, values in zip(("change to screen", "reply to screen"), both, strict=True):
            p95 = statistics.quantiles(values, n=20)[-1]
            middle, worst = statistics.median(values), max(values)
            print(f"{name:17} median {middle:4.0f} ms, p95 {p95:4.0f} ms, worst {worst:4.0f} ms")


if __name__ == "__main__":
    main()
