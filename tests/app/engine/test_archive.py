"""What is put away comes back for everything that is new about it, and for nothing else."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fakes.inbox import Inbox, Running
from fakes.mcp_server import error, reset, result
from fakes.task_script import APPROVE, TaskScript, handle

from app.engine.commands import EngineError
from storage.records import NewTask, TaskKey, TaskState
from storage.store import Store

KEY = TaskKey("ci", "t1")
ASKS: dict[str, Any] = {"resultType": "input_required", "requestState": "s", "inputRequests": {"q": APPROVE}}
DONE: dict[str, Any] = {"resultType": "complete", "content": []}


@pytest.fixture
async def answered(inbox: Inbox, server: TaskScript) -> Inbox:
    """A task whose question was answered, and not yet settled."""
    server.ask("t1", q=APPROVE)
    await inbox.engine.track("ci", "t1")
    await inbox.engine.answer(KEY, [inbox.accept(KEY)])
    return inbox


async def put_away(inbox: Inbox, key: TaskKey = KEY) -> None:
    await inbox.engine.archive(key)
    assert inbox.task(key).section == "archived"


@pytest.mark.parametrize(
    ("what", "section"),
    [
        ("lost", "lost"),
        ("over", "finished"),
        ("new question", "needs-you"),
        ("other question under the same key", "needs-you"),
        ("asks what can't be read", "running"),
        ("asked again", "running"),
        ("still asked", "running"),
        ("cancel refused", "running"),
    ],
)
async def test_a_task_comes_back_for_what_is_new(
    answered: Inbox, server: TaskScript, what: str, section: str
) -> None:
    if what in ("asked again", "asks what can't be read"):
        server.show("t1")
        await answered.engine.refresh(KEY)
        assert answered.states(KEY) == {"q": "settled"}
    await put_away(answered)
    match what:
        case "lost":
            server.tasks.clear()
        case "over":
            server.show("t1", "failed", error={"code": 1, "message": "no"})
        case "new question":
            server.ask("t1", q=APPROVE, r=APPROVE)
        case "other question under the same key":
            server.ask("t1", q={**APPROVE, "params": {"message": "another"}})
        case "asks what can't be read":
            server.show("t1", "input_required", inputRequests={"r": 3})
        case "asked again":
            server.ask("t1", q=APPROVE)
        case "cancel refused":
            server.on("tasks/cancel", error(-32602, "no"))
            with pytest.raises(EngineError):
                await answered.engine.cancel(KEY)
    for _ in range(3 if what == "still asked" else 1):
        await answered.engine.refresh(KEY)
    assert answered.task(KEY).section == section


async def test_a_lost_task_comes_back_when_its_server_knows_it_again(
    answered: Inbox, server: TaskScript
) -> None:
    found = server.tasks.pop("t1")
    await answered.engine.refresh(KEY)
    await put_away(answered)
    server.tasks["t1"] = found
    await answered.engine.refresh(KEY)
    assert answered.task(KEY).section == "running"


@pytest.mark.parametrize("what", ["progress", "settled", "unreachable"])
async def test_a_task_stays_away_for_what_is_no_news(answered: Inbox, server: TaskScript, what: str) -> None:
    await put_away(answered)
    if what == "unreachable":
        await server.stop()
        with pytest.raises(EngineError):
            await answered.engine.refresh(KEY)
    else:
        message = {"statusMessage": "half way"} if what == "progress" else {}
        server.show("t1", **message)
        await answered.engine.refresh(KEY)
    assert answered.task(KEY).section == "archived"


@pytest.mark.parametrize(
    ("reply", "section"),
    [
        (result(DONE), "finished"),
        (error(-32000, "no"), "finished"),
        (error(-32602, "no"), "needs-you"),
        (result({**ASKS, "inputRequests": {"r": APPROVE}}), "needs-you"),
        (result(handle("t1")), "running"),
        (reset(), "lost"),
    ],
    ids=["done", "failed", "refused", "asks more", "task", "unknown"],
)
async def test_a_call_comes_back_for_whatever_becomes_of_it(
    inbox: Inbox, server: TaskScript, reply: Any, section: str
) -> None:
    server.show("t1")
    server.on("tools/call", result(ASKS))
    key = (await inbox.engine.call("ci", "ask_first", "{}")).key
    await put_away(inbox, key)
    server.on("tools/call", reply)
    await inbox.engine.answer(key, [inbox.accept(key)])
    assert inbox.task(key).section == section


async def test_a_call_left_unknown_by_a_program_that_died_comes_back(inbox: Inbox) -> None:
    key = TaskKey("ci", "call-x")
    with inbox.other_program() as store:
        store.add_task(NewTask(key, "call", tool="t", state=TaskState(status="working"), owner="1-0"))
        store.archive(key)
    async with Running(inbox.engine):
        await inbox.until(lambda: inbox.task(key).section == "lost")


WEEK_MS = 7 * 24 * 3_600_000


@pytest.mark.parametrize(
    ("age_ms", "ttl_ms", "is_found"),
    [(1_000, None, True), (1_000, 10 * WEEK_MS, True), (1_000, 500, False), (WEEK_MS + 60_000, None, False)],
    ids=["lately", "time to live left", "past its time to live", "long ago"],
)
@pytest.mark.parametrize("archived", [False, True])
async def test_a_lost_task_is_looked_at_once_more_when_a_program_starts(
    tmp_path: Path, server: TaskScript, age_ms: int, ttl_ms: int | None, is_found: bool, archived: bool
) -> None:
    inbox = await Inbox.open(tmp_path, {"ci": server.url})
    lost_at = time.time_ns() // 1_000_000 - age_ms
    with closing(Store.open(inbox.paths.database, clock=lambda: lost_at)) as store:
        state = TaskState(status="working", tracking="lost", created_at=lost_at, ttl_ms=ttl_ms)
        store.add_task(NewTask(KEY, state=state))
        if archived:
            store.archive(KEY)
    server.show("t1")
    server.show("t2")
    await inbox.engine.track("ci", "t2")
    async with Running(inbox.engine):
        if is_found:
            await inbox.until(lambda: inbox.task(KEY).section == "running")
        else:
            await asyncio.sleep(0.3)
            assert inbox.task(KEY).section == ("archived" if archived else "lost")
            assert [get.params["taskId"] for get in server.of("tasks/get")].count("t1") == 0
    await inbox.close()
