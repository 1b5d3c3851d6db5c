"""SIGKILL at every instant that matters: nothing that was saved is lost, and nothing is delivered twice.

The programs are real processes on one real store; the server is in the test and counts what it is sent.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from fakes.headless import Headless
from fakes.inbox import Inbox
from fakes.mcp_server import drop, result, wait
from fakes.task_script import APPROVE, TaskScript, handle

from storage.records import TaskKey

KEY = TaskKey("ci", "t1")
EXACT = '{"ok":  true, "n": 1.10}'


@pytest.fixture
async def home(tmp_path: Path, server: TaskScript) -> Path:
    """An installation with a task that asks ``q``, and no program running."""
    server.ask("t1", q=APPROVE)
    inbox = await Inbox.open(tmp_path / "home", {"ci": server.url})
    await inbox.engine.track("ci", "t1")
    await inbox.close()
    return tmp_path / "home"


async def look_at(home: Path) -> Inbox:
    return await Inbox.open(home, {})


@pytest.mark.rule("index.state-by-identifier", "tasks.ids-persisted")
async def test_killed_while_polling_everything_is_where_it_was(home: Path, server: TaskScript) -> None:
    server.on("tasks/get", wait(asyncio.Event(), drop()))
    looks = len(server.of("tasks/get"))
    program = await Headless(home, "run").ready()
    await server.wait_for(looks + 1, "tasks/get")
    program.kill()
    server.on("tasks/get", server.get)
    inbox = await look_at(home)
    assert inbox.states(KEY) == {"q": "open"}
    program = await Headless(home, "run").ready()
    server.show("t1", "completed", result={})
    await inbox.eventually(lambda: inbox.task(KEY).section == "finished")
    program.kill()
    assert [q.key for q in inbox.reader.questions(KEY)] == ["q"]
    await inbox.close()


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update"], ids=["before-sending", "before-the-reply"])
async def test_an_answer_outlives_its_program_and_arrives_once(
    home: Path, server: TaskScript, method: str
) -> None:
    server.on(method, wait(asyncio.Event(), drop()))
    count = len(server.of(method))
    program = await Headless(home, "answer", "ci", "t1", "q", EXACT).ready()
    await server.wait_for(count + 1, method)
    program.kill()
    inbox = await look_at(home)
    stored = inbox.question(KEY)
    assert stored.state == ("queued" if method == "tasks/get" else "sent")
    assert EXACT in (stored.response_json or "")
    reached = len(server.updates)
    server.on("tasks/get", server.get)
    server.on("tasks/update", result({"resultType": "complete"}))
    program = await Headless(home, "run").ready()
    await server.wait_for(reached + 1, "tasks/update")
    await inbox.eventually(lambda: inbox.states(KEY) == {"q": "acknowledged"})
    program.kill()
    assert [EXACT.encode() in update.body for update in server.updates] == [True] * (reached + 1)
    await inbox.close()


@pytest.mark.rule("tasks.answered-once")
async def test_an_answer_that_had_arrived_is_not_sent_again(home: Path, server: TaskScript) -> None:
    """The server took the answer, and its acknowledgement met nobody: the question is gone, it is settled."""
    server.on("tasks/update", wait(asyncio.Event(), drop()))
    program = await Headless(home, "answer", "ci", "t1", "q", EXACT).ready()
    await server.wait_for(1, "tasks/update")
    program.kill()
    server.show("t1")
    program = await Headless(home, "run").ready()
    inbox = await look_at(home)
    await inbox.eventually(lambda: inbox.states(KEY) == {"q": "settled"})
    program.kill()
    await inbox.close()
    assert len(server.updates) == 1


async def test_a_living_program_is_not_robbed_of_the_answer_it_is_sending(
    home: Path, server: TaskScript
) -> None:
    go = asyncio.Event()
    server.on("tasks/update", wait(go, result({"resultType": "complete"})))
    sender = await Headless(home, "answer", "ci", "t1", "q", EXACT).ready()
    await server.wait_for(1, "tasks/update")
    watcher = await Headless(home, "run").ready()
    looks = len(server.of("tasks/get"))
    await server.wait_for(looks + 2, "tasks/get")  # it runs, and sees the question as still outstanding
    assert len(server.updates) == 1
    go.set()
    assert await sender.ended() == 0
    watcher.kill()
    inbox = await look_at(home)
    assert inbox.states(KEY) == {"q": "acknowledged"}
    await inbox.close()
    assert len(server.updates) == 1


async def test_a_call_killed_before_its_reply_is_unknown_and_not_repeated(
    home: Path, server: TaskScript
) -> None:
    server.on("tools/call", wait(asyncio.Event(), drop()))
    program = await Headless(home, "call", "ci", "deploy").ready()
    await server.wait_for(1, "tools/call")
    program.kill()
    program = await Headless(home, "run").ready()
    looks = len(server.of("tasks/get"))
    await server.wait_for(looks + 1, "tasks/get")
    program.kill()
    inbox = await look_at(home)
    (call,) = [row for row in inbox.reader.list_rows() if row.kind == "call"]
    assert (call.section, call.state.tracking) == ("lost", "lost")
    assert len(server.of("tools/call")) == 1
    server.show("t2")
    server.on("tools/call", result(handle("t2")))
    assert (await inbox.engine.call_again(call.key)).key == TaskKey("ci", "t2")
    await inbox.close()


async def test_the_server_killed_and_back_finds_its_tasks_watched(home: Path, server: TaskScript) -> None:
    program = await Headless(home, "run").ready()
    looks = len(server.of("tasks/get"))
    await server.wait_for(looks + 1, "tasks/get")
    await server.stop()
    inbox = await look_at(home)
    await inbox.eventually(lambda: inbox.task(KEY).state.problem)
    await server.start(server.port)
    await inbox.eventually(lambda: not inbox.task(KEY).state.problem)
    program.kill()
    assert inbox.states(KEY) == {"q": "open"}
    await inbox.close()
