"""A task's time to live: from its creation, changed on the way, and what is left when it has run out."""

from __future__ import annotations

import asyncio
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from fakes.demo_wire import RpcFailure, accept

from app.demo_server.records import Change, Question, Task
from app.demo_server.service import TASK_TTL_MS
from app.demo_server.store import AFTERLIFE_MS, TOMBSTONE_MS, Store

HOUR = 3600 * 1000
METHODS = ("tasks/get", "tasks/update", "tasks/cancel")


async def refusals(service: Any, task_id: str) -> set[tuple[int, str]]:
    """What each verb says of a task that it refuses."""
    found = set()
    for method in METHODS:
        with pytest.raises(RpcFailure) as failure:
            await service.wire.call(method, {"taskId": task_id, "inputResponses": {}})
        found.add((failure.value.code, failure.value.message))
    return found


@pytest.mark.rule("tasks.failed-after-ttl")
async def test_an_ended_task_lives_from_its_creation_to_the_end_of_its_time_and_not_longer(service):
    task_id = await service.started("flaky_job")
    service.clock.now += HOUR
    ended = await service.settled(task_id)
    service.clock.now += TASK_TTL_MS - HOUR - 1
    assert await service.settled(task_id) == ended
    service.clock.now += 1
    # Before and after the clean-up that removes it.
    for _ in range(2):
        assert await refusals(service, task_id) == {(-32602, "task has expired")}
        await service.settle()
    service.clock.now += TOMBSTONE_MS
    await service.settle()
    assert await refusals(service, task_id) == {(-32602, "task not found")}


@pytest.mark.rule("tasks.failed-after-ttl", "tasks.ttl-changes")
@pytest.mark.parametrize("cleaned", [False, True], ids=["looked at first", "cleaned up first"])
@pytest.mark.parametrize("tool", ["long_build", "two_questions"], ids=["working", "waiting"])
async def test_an_unfinished_task_fails_when_its_time_is_over_and_can_still_be_read(service, tool, cleaned):
    task_id = await service.started(tool)
    for _ in range(2):
        await service.worker.step()
    before = await service.wire.get(task_id)
    service.clock.now += TASK_TTL_MS
    if cleaned:
        assert await service.worker.step() is None
    task = await service.wire.get(task_id)
    assert task["status"] == "failed"
    assert task["error"]["code"] == -32603
    assert "expired" in task["error"]["message"]
    assert task["ttlMs"] == before["ttlMs"] + AFTERLIFE_MS
    assert "inputRequests" not in task
    await service.wire.answer(task_id, colour=accept(colour="red"), count=accept(count=1))
    assert await service.settled(task_id) == task
    service.clock.now += AFTERLIFE_MS
    assert await refusals(service, task_id) == {(-32602, "task has expired")}


@pytest.mark.rule("tasks.ttl-changes", "tasks.ttl-varies")
async def test_a_question_gives_a_person_a_whole_day_from_when_it_is_asked(service):
    task_id = await service.started("generate_report", size="small")
    service.clock.now += 20 * HOUR
    task = await service.settled(task_id)
    assert task["ttlMs"] == 20 * HOUR + 24 * HOUR
    service.clock.now += 23 * HOUR
    await service.wire.answer(task_id, approve_outline=accept(approved=True))
    task = await service.settled(task_id)
    assert (task["status"], task["ttlMs"]) == ("completed", 44 * HOUR)


@pytest.mark.rule("tasks.ttl-changes")
async def test_a_tool_may_shorten_the_time_that_its_result_is_kept(service):
    task_id = await service.started("send_newsletter")
    service.clock.now += HOUR
    task = await service.settled(task_id)
    assert task["ttlMs"] == 2 * HOUR
    assert datetime.fromisoformat(task["lastUpdatedAt"]) > datetime.fromisoformat(task["createdAt"])
    service.clock.now += HOUR
    assert await refusals(service, task_id) == {(-32602, "task has expired")}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tasks.db"


def make(store: Store, task_id: str = "tsk_1", **more: Any) -> None:
    fields: dict[str, Any] = {"created_ms": 0, "updated_ms": 0, "ttl_ms": 100, "poll_ms": 10, "due_ms": 1}
    store.create(Task(task_id, "probe", {"secret": "argument"}, **(fields | more)))


ENDED: dict[str, Any] = {"status": "completed", "due_ms": None}


def test_of_an_expired_task_its_owner_learns_and_nobody_else(path):
    store = Store.open(path)
    make(store, owner="acme", **ENDED)
    assert store.clean(100) == 1
    assert store.is_gone("acme", "tsk_1")
    assert not store.is_gone("evil", "tsk_1")
    assert not store.is_gone("acme", "tsk_never_was")


def test_nothing_of_an_expired_task_is_kept_but_its_id(path):
    store = Store.open(path)
    request = {"method": "elicitation/create", "params": {}}
    make(store, questions=(Question("k", request, {"action": "decline"}),))
    task = store.claim("a", 1, 50)
    assert task is not None
    store.advance(task, Change("completed", result={}), "a", 2)
    store.clean(100)
    with sqlite3.connect(path) as db:
        for table in ("task", "question", "step"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
        assert db.execute("SELECT * FROM gone").fetchall() == [("local", "tsk_1", 100 + TOMBSTONE_MS)]
    assert store.clean(100 + TOMBSTONE_MS) == 0
    assert not store.is_gone("local", "tsk_1")


def test_one_clean_up_is_bounded_and_several_come_to_an_end(path):
    store = Store.open(path)
    for n in range(25):
        make(store, f"ended {n}", **ENDED)
        make(store, f"working {n}")
    make(store, "unlimited", ttl_ms=None)
    make(store, "later", ttl_ms=101)
    assert [store.clean(100, limit=10) for _ in range(4)] == [20, 20, 10, 0]
    assert store.claim("a", 100, 50).id == "later"  # type: ignore[union-attr]
    assert store.claim("a", 100, 50).id == "unlimited"  # type: ignore[union-attr]
    assert store.claim("a", 100, 50) is None
    assert [store.clean(100 + AFTERLIFE_MS, limit=10) for _ in range(4)] == [11, 10, 5, 0]
    assert store.clean(10**15) == 1
    assert store.get("local", "unlimited") is not None


def test_a_failure_by_expiry_is_a_change_that_is_told_of(path):
    store = Store.open(path)
    make(store)
    make(store, "tsk_2")
    before = store.revision()
    store.clean(100)
    told = store.changed_since("local", before, ["tsk_1", "tsk_2"])
    assert [(task.id, task.status, task.updated_ms) for task in told] == [
        ("tsk_1", "failed", 100),
        ("tsk_2", "failed", 100),
    ]
    assert store.revision() == max(task.revision for task in told)


@pytest.mark.parametrize("how", ["clean", "look"])
def test_a_step_that_is_under_way_when_the_time_runs_out_does_not_count(path, how):
    store, rival = Store.open(path), Store.open(path)
    make(store)
    task = store.claim("a", 99, 5000)
    assert task is not None
    if how == "clean":
        rival.clean(100)
    else:
        rival.fail_expired("local", "tsk_1", 100)
    assert not store.advance(task, Change("completed", result={}), "a", 101)
    failed = store.get("local", "tsk_1")
    assert failed is not None
    assert failed.status == "failed"
    assert store.claim("a", 10_000, 5000) is None


async def test_processes_that_clean_up_at_once_share_the_work(path):
    stores = [Store.open(path) for _ in range(3)]
    for n in range(60):
        make(stores[0], f"tsk_{n}", **ENDED)

    def clean(store: Store) -> int:
        done = 0
        while count := store.clean(100, limit=7):
            done += count
        return done

    assert sum(await asyncio.gather(*(asyncio.to_thread(clean, store) for store in stores))) == 60
    assert all(stores[0].is_gone("local", f"tsk_{n}") for n in range(60))
