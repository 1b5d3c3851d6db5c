"""The service as a process: its start, its end, and what a crash leaves."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from fakes.demo import PATIENCE, ROOT, DemoProcess
from fakes.demo_wire import DemoWire, accept

from app.demo_server.errors import ServeError
from app.demo_server.server import serve

pytestmark = pytest.mark.e2e

ENDED = ("completed", "failed", "cancelled")


def run_once(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the service where it is expected to end by itself."""
    return subprocess.run(
        [sys.executable, "-m", "app.demo_server", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )


async def tasks_until_the_service_dies(wire: DemoWire) -> list[str]:
    """Make tasks for as long as the service answers; return the ids it gave out."""
    handles: list[str] = []
    while True:
        try:
            handles.append((await wire.tool("broken_tool"))["taskId"])
        except httpx.TransportError:
            return handles


async def test_every_tool_reaches_its_end_with_nobody_driving_it(demo):
    async with DemoWire(demo.url) as wire:
        for tool, arguments, status in (
            ("flaky_job", {}, "failed"),
            ("broken_tool", {}, "completed"),
            ("long_build", {"minutes": 1}, "completed"),
        ):
            handle = await wire.tool(tool, arguments)
            assert (await wire.until(handle["taskId"], *ENDED))["status"] == status


async def test_tasks_outlive_a_kill_and_go_on_in_the_next_process(tmp_path):
    with DemoProcess(tmp_path / "data", speed=0.05) as demo:
        async with DemoWire(demo.url) as wire:
            waiting = (await wire.tool("two_questions"))["taskId"]
            await wire.until(waiting, "input_required")
            await wire.answer(waiting, count=accept(count=3))
            working = (await wire.tool("generate_report", {"size": "small"}))["taskId"]
            ended = (await wire.tool("flaky_job"))["taskId"]
            failed = await wire.until(ended, "failed")
            before, pid = await wire.get(waiting), demo.pid
            demo.restart()
            assert demo.pid != pid
        async with DemoWire(demo.url) as wire:
            assert await wire.get(ended) == failed
            assert await wire.get(waiting) == before
            assert list(before["inputRequests"]) == ["colour"]
            await wire.until(working, "input_required")
            await wire.answer(working, approve_outline=accept(approved=True))
            task = await wire.until(working, *ENDED)
            assert task["result"]["structuredContent"] == {"size": "small", "approved": True}
            await wire.answer(waiting, colour=accept(colour="red"))
            task = await wire.until(waiting, *ENDED)
            assert task["result"]["structuredContent"] == {"colour": "red", "count": 3}


async def test_a_call_that_asked_first_can_be_answered_after_a_kill(demo):
    async with DemoWire(demo.url) as wire:
        asked = await wire.tool("ask_first")
    demo.restart()
    async with DemoWire(demo.url) as wire:
        handle = await wire.tool(
            "ask_first", requestState=asked["requestState"], inputResponses={"who": accept(name="Ada")}
        )
        task = await wire.until(handle["taskId"], *ENDED)
        assert task["result"]["structuredContent"] == {"name": "Ada"}


async def test_after_any_number_of_kills_every_task_ends_and_none_is_lost(tmp_path):
    chance = random.Random(20260728)
    with DemoProcess(tmp_path / "data", speed=0.005) as demo:
        handles: list[str] = []
        for _ in range(6):
            async with DemoWire(demo.url) as wire:
                handles += [(await wire.tool(tool))["taskId"] for tool in ("flaky_job", "broken_tool")]
                handles.append((await wire.tool("long_build", {"minutes": 1}))["taskId"])
                # A kill at a moment nobody chose: while the client is waiting for replies.
                killer = threading.Timer(chance.uniform(0.0, 0.05), os.kill, (demo.pid, signal.SIGKILL))
                killer.start()
                handles += await tasks_until_the_service_dies(wire)
            demo.restart()
        async with DemoWire(demo.url) as wire:
            tasks: list[dict[str, Any]] = [await wire.until(task_id, *ENDED) for task_id in handles]
    assert {task["status"] for task in tasks} == {"completed", "failed"}
    assert len({task["taskId"] for task in tasks}) == len(handles) >= 18


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_process_cleanly(tmp_path, how):
    demo = DemoProcess(tmp_path / "data").start()
    async with DemoWire(demo.url) as wire:
        await wire.tool("long_build")
        assert demo.end(how) == (0, "", "")
    assert not list((tmp_path / "data").glob("*-wal"))


def test_the_url_is_one_line_on_stdout_and_accepts_connections(demo):
    assert httpx.post(demo.url, json={"jsonrpc": "2.0", "method": "notifications/x"}).status_code == 202


@pytest.mark.rule("http.local-only")
def test_a_port_in_use_is_one_clear_line_and_touches_no_data(demo, tmp_path):
    ended = run_once("--port", str(demo.port), "--data", str(tmp_path / "other"))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.count("\n") == 1
    assert f"port {demo.port} on 127.0.0.1 can't be used" in ended.stderr
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--port", "99999"], "port 99999"),
        (["--tools", "nonsense"], "nonsense"),
    ],
)
def test_what_cannot_be_served_is_one_clear_line(tmp_path, arguments, words):
    ended = run_once("--data", str(tmp_path / "data"), *arguments)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.count("\n") == 1
    assert words in ended.stderr


async def test_a_service_whose_data_is_destroyed_ends_and_says_so(demo):
    async with DemoWire(demo.url) as wire:
        handle = await wire.tool("long_build", {"minutes": 600})
        with sqlite3.connect(demo.data / "tasks.db") as db:
            db.execute("DROP TABLE task")
        code, out, errors = demo.wait()
    assert (code, out) == (1, "")
    assert "can't be used any more" in errors.splitlines()[-1]
    assert handle["taskId"] not in errors


def test_a_failure_to_start_frees_the_port(tmp_path: Path, demo):
    blocker = tmp_path / "blocker"
    blocker.write_text("a file where the folder should be")
    demo.stop()
    for _ in range(2):
        with pytest.raises(ServeError, match="can't be used"):
            serve(demo.port, blocker, "demo", lambda url: None)
    demo.start()


async def test_a_small_reply_does_not_wait_for_an_acknowledgement_of_its_beginning(demo):
    """Nagle's algorithm and a delayed acknowledgement would make 40 ms of each."""
    spent = []
    async with DemoWire(demo.url) as wire:
        for _ in range(15):
            began = time.perf_counter()
            await wire.call("server/discover", {})
            spent.append(time.perf_counter() - began)
    assert min(spent) < 0.03
