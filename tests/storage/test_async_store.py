"""The store on its writer thread: grouped commits, durable verbs, and what cancelling leaves alone."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes.stored import CALL, TASK, Ticking, asked, sets, task, writes

from storage import async_store as module
from storage.async_store import AsyncStore
from storage.connection import Connection
from storage.errors import QuestionClosed, StorageError, UnknownTask
from storage.records import (
    NewEvent,
    NewTask,
    QuestionRecord,
    Reply,
    ServerRecord,
    TaskKey,
    TaskRecord,
    TaskWrites,
)
from storage.store import Store, StoreReader


@pytest.fixture
async def writer(path: Path) -> AsyncIterator[AsyncStore]:
    writer = await AsyncStore.open(path, clock=Ticking())
    yield writer
    await writer.aclose()


@pytest.fixture
def reads(writer: AsyncStore, path: Path) -> StoreReader:
    return StoreReader.open(path)


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The levels of durability of the commits so far (2 is FULL, 1 is NORMAL)."""
    levels: list[int] = []
    run = Connection.run

    def watching(self: Connection, sql: str, parameters: Any = ()) -> Any:
        if sql == "COMMIT":
            levels.append(run(self, "PRAGMA synchronous").fetchone()[0])
        return run(self, sql, parameters)

    monkeypatch.setattr(Connection, "run", watching)
    return levels


async def test_every_verb_works_through_the_thread(writer: AsyncStore, reads: StoreReader) -> None:
    assert await writer.add_task(task(), questions=[asked()])
    assert not await writer.add_task(task())
    question = reads.questions(TASK)[0]
    assert await writer.save_draft(question.id, "{}")
    await writer.queue_answers(TASK, [Reply(question.id, "f1", "{}")], by="me")
    assert [one.id for one in await writer.pending_answers()] == [question.id]
    assert await writer.claim([question.id], owner="me", dead=lambda owner: False) == (question.id,)
    await writer.release([question.id], "me")
    assert (await writer.pending_answers())[0].state == "queued"
    assert await writer.change_task(TASK, sets(status="working"))
    assert await writer.change_task(TASK, sets(status="done"), durable=True)
    assert [row.state.status for row in await writer.active_tasks()] == ["done"]
    await writer.add_task(NewTask(CALL, kind="call", owner="me"))
    assert [call.key for call in await writer.calls_in_flight()] == [CALL]
    await writer.archive(TASK)
    await writer.unarchive(TASK)
    await writer.forget(TASK)
    await writer.set_server(ServerRecord("ci", "ok", since=1))
    await writer.forget_server("ci")
    assert await writer.log(NewEvent("x"), TASK) == reads.last_seq()


async def test_observations_are_committed_together(
    writer: AsyncStore, reads: StoreReader, commits: list[int]
) -> None:
    names = [TaskKey("ci", f"t{number}") for number in range(50)]
    for key in names:
        await writer.add_task(task(key))
    commits.clear()
    await asyncio.gather(*(writer.change_task(key, sets(status="working")) for key in names))
    assert commits == [1]
    assert {row.state.status for row in reads.list_rows()} == {"working"}


async def test_a_failing_observation_leaves_the_others_of_its_group(
    writer: AsyncStore, reads: StoreReader, commits: list[int]
) -> None:
    await writer.add_task(task())

    def half(stored: TaskRecord, questions: tuple[QuestionRecord, ...]) -> TaskWrites:
        raise ZeroDivisionError

    bad = writes(state=replace(task().state, status="bad"), new_questions=(asked("\ud800"),))
    commits.clear()
    done = await asyncio.gather(
        writer.change_task(TASK, sets(status="first")),
        writer.change_task(TaskKey("ci", "unknown"), sets(status="x")),
        writer.change_task(TASK, half),
        writer.change_task(TASK, bad),
        writer.change_task(TASK, sets(status_message="last")),
        return_exceptions=True,
    )
    assert [type(one) for one in done] == [
        TaskWrites,
        UnknownTask,
        ZeroDivisionError,
        StorageError,
        TaskWrites,
    ]
    assert commits == [1]
    record = reads.task(TASK)
    assert record is not None
    assert (record.state.status, record.state.status_message) == ("first", "last")


async def test_an_answer_does_not_wait_for_the_window_and_is_synced_alone(
    writer: AsyncStore, reads: StoreReader, commits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WINDOW_S", 60)
    await writer.add_task(task(), questions=[asked()])
    question = reads.questions(TASK)[0]
    commits.clear()
    observed = asyncio.ensure_future(writer.change_task(TASK, sets(status="working")))
    await asyncio.sleep(0)  # it is asked for first
    await asyncio.wait_for(writer.queue_answers(TASK, [Reply(question.id, "f1", "{}")], by="me"), 10)
    assert commits == [1, 2]
    assert observed.done() or await observed
    assert [event.kind for event in reads.events(TASK)] == ["added", "changed", "answer_queued"]


async def test_verbs_keep_their_order(writer: AsyncStore, reads: StoreReader) -> None:
    await writer.add_task(task())
    verbs = [
        writer.log(NewEvent(f"{number}"), TASK) if number % 3 else writer.archive(TASK)
        for number in range(20)
    ]
    await asyncio.gather(*verbs)
    said = [event.kind for event in reads.events(TASK)]
    assert said == ["added", "archived", *(str(number) for number in range(20) if number % 3)]


async def test_cancelling_the_wait_does_not_lose_the_write(writer: AsyncStore, reads: StoreReader) -> None:
    await writer.add_task(task(), questions=[asked()])
    question = reads.questions(TASK)[0]
    reached, go_on = threading.Event(), threading.Event()

    def slow(stored: TaskRecord, questions: tuple[QuestionRecord, ...]) -> TaskWrites:
        reached.set()
        assert go_on.wait(10)
        return TaskWrites(state=replace(stored.state, status="slow"))

    waiting = [
        asyncio.ensure_future(writer.change_task(TASK, slow)),
        asyncio.ensure_future(writer.queue_answers(TASK, [Reply(question.id, "f1", "{}")], by="me")),
    ]
    assert await asyncio.to_thread(reached.wait, 10)
    for one in waiting:
        one.cancel()
    assert [type(one) for one in await asyncio.gather(*waiting, return_exceptions=True)] == [
        asyncio.CancelledError
    ] * 2
    go_on.set()
    await writer.aclose()
    record, answered = reads.task(TASK), reads.question(question.id)
    assert record is not None
    assert answered is not None
    assert (record.state.status, answered.state) == ("slow", "queued")


async def test_a_failure_nobody_waits_for_is_logged(
    writer: AsyncStore, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = asyncio.ensure_future(writer.archive(TASK))
    await asyncio.sleep(0)
    waiting.cancel()
    with caplog.at_level(logging.ERROR, logger="storage"), pytest.raises(asyncio.CancelledError):
        await waiting
    await writer.aclose()
    await asyncio.sleep(0)
    assert "nobody waits" in caplog.text


async def test_closing_carries_out_what_was_asked_for_and_then_refuses(
    writer: AsyncStore, reads: StoreReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WINDOW_S", 60)
    await writer.add_task(task())
    asked_for = [asyncio.ensure_future(writer.log(NewEvent("x"), TASK)) for _ in range(10)]
    await asyncio.sleep(0)
    await asyncio.wait_for(writer.aclose(), 10)
    await writer.aclose()
    assert len(await asyncio.gather(*asked_for)) == 10
    assert len(reads.events(TASK)) == 11
    with pytest.raises(StorageError, match="closed"):
        await writer.archive(TASK)


async def test_a_commit_that_fails_is_a_failure_of_each_that_was_in_it(
    writer: AsyncStore, reads: StoreReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    await writer.add_task(task())
    run = Connection.run

    def full(self: Connection, sql: str, parameters: Any = ()) -> Any:
        if sql == "COMMIT":
            raise StorageError("the disk is full")
        return run(self, sql, parameters)

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "run", full)
        done = await asyncio.gather(
            writer.change_task(TASK, sets(status="x")),
            writer.log(NewEvent("y"), TASK),
            return_exceptions=True,
        )
    assert [str(one) for one in done] == ["the disk is full"] * 2
    assert [event.kind for event in reads.events(TASK)] == ["added"]
    assert await writer.change_task(TASK, sets(status="after"))


async def test_a_transaction_that_sqlite_undid_is_not_half_saved(
    writer: AsyncStore, reads: StoreReader
) -> None:
    await writer.add_task(task())

    def undone(store: Store) -> None:
        store._connection.run("ROLLBACK")  # what SQLite does by itself when the disk is full

    done = await asyncio.gather(
        writer.log(NewEvent("before"), TASK),
        writer._ask(undone, is_grouped=True),
        writer.log(NewEvent("behind"), TASK),
        return_exceptions=True,
    )
    assert all(isinstance(one, StorageError) for one in done)
    assert [event.kind for event in reads.events(TASK)] == ["added"]
    assert await writer.log(NewEvent("after"), TASK)


async def test_storage_errors_reach_the_caller(writer: AsyncStore, reads: StoreReader) -> None:
    await writer.add_task(task(), questions=[asked()])
    with pytest.raises(QuestionClosed):
        await writer.queue_answers(TASK, [Reply(1, "stale", "{}")], by="me")


async def test_changes_are_stored_quickly_under_load(
    writer: AsyncStore, reads: StoreReader, commits: list[int]
) -> None:
    names = [TaskKey("ci", f"t{number}") for number in range(100)]
    await asyncio.gather(*(writer.add_task(task(key)) for key in names))
    commits.clear()
    rounds = 20

    async def observe(key: TaskKey) -> None:
        for number in range(rounds):
            await writer.change_task(key, sets(status_message=f"step {number}", snapshot_json="{}" * 500))

    start = time.perf_counter()
    await asyncio.gather(*(observe(key) for key in names))
    elapsed = time.perf_counter() - start
    changes = rounds * len(names)
    print(
        f"\n{changes / elapsed:.0f} changes/s, {elapsed / changes * 1000:.3f} ms each, {len(commits)} commits"
    )
    assert len(commits) <= 3 * rounds, "they are committed in groups"
    assert changes / elapsed > 200
    assert {row.state.status_message for row in reads.list_rows()} == {f"step {rounds - 1}"}
