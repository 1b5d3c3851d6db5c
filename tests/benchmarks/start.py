"""Measure the start in a real terminal: a bare Textual app, and the inbox on stores of several sizes.

Run: ``python tests/benchmarks/start.py [RUNS]``. A run begins with the process and ends when the text that it
waits for is on the screen: the bare app's header, or the inbox drawn from the store (before engine, httpx and
pydantic are imported). The cases take turns, so that a busy machine is busy for all.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fakes.running_inbox import home
from fakes.terminal import Terminal

from storage.records import NewTask, TaskKey, TaskState
from storage.store import Store

BARE = """
from textual.app import App
from textual.widgets import DataTable, Footer, Header
class Bare(App):
    TITLE = "bare app"
    def compose(self):
        yield Header(); yield DataTable(); yield Footer()
Bare().run()
"""
TASKINBOX = str(Path(sys.executable).with_name("taskinbox"))
NOW = time.time_ns() // 1_000_000


def fill(folder: Path, count: int) -> dict[str, str]:
    """Make an installation with *count* running tasks; nothing listens where its server should be."""
    paths = home(folder, lab="http://127.0.0.1:9/mcp")
    store = Store.open(paths.database, clock=lambda: NOW)
    with store.group():
        for number in range(count):
            state = TaskState(status="working", created_at=NOW, ttl_ms=3_600_000, poll_interval_ms=5000)
            key = TaskKey("lab", f"tsk_{number:08}")
            store.add_task(NewTask(key, tool="build", params_json='{"name": "build"}', state=state))
    store.close()
    return {"TASKINBOX_HOME": str(folder)}


def start(argv: list[str], env: dict[str, str], text: str) -> float:
    """Return the milliseconds from the start of the process until *text* is drawn."""
    begun = time.perf_counter()
    with Terminal(argv, env=env) as terminal:
        terminal.wait_for(text, timeout=60)
        return (time.perf_counter() - begun) * 1000


def main() -> None:
    """Print a line a case: median, best and worst, and the ratio to the bare app."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with tempfile.TemporaryDirectory() as folder:
        cases = {"bare Textual app": ([sys.executable, "-c", BARE], {}, "bare app")}
        for count in (10, 1_000, 10_000):
            env = fill(Path(folder) / str(count), count)
            cases[f"taskinbox, {count:,} tasks"] = ([TASKINBOX], env, f"Running {count:,}")
        times: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(runs):
            for name, case in cases.items():
                times[name].append(start(*case))
    bare = statistics.median(times["bare Textual app"])
    for name, values in times.items():
        median = statistics.median(values)
        spread = f"{min(values):.0f} to {max(values):.0f}"
        print(f"{name:26} median {median:5.0f} ms ({spread}), {median / bare:.2f} × the bare app")


if __name__ == "__main__":
    main()
