"""Several workers on one folder, and steps that break, hang, or end their process.

Workers are driven step by step, each over a connection of its own, as separate processes have it.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.demo_server.errors import RpcError
from app.demo_server.records import Change, Question, Task
from app.demo_server.store import Store
from app.demo_server.tools import Ask, Done, Job, Outcome, Stopped, Tool, Work, tool_result
from app.demo_server.worker import ATTEMPTS, Worker

ASKED: dict[str, Any] = {
    "method": "elicitation/create",
    "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}},
}
LEASE = 60_000


class Clock:
    def __init__(self) -> None:
        self.now = 1_000

    def __call__(self) -> int:
        return self.now


class Watched(Store):
    """A store that says when a lease was renewed."""

    renewed: asyncio.Event

    def renew(self, task: Task, holder: str, now_ms: int, lease_ms: int) -> bool:
        done = super().renew(task, holder, now_ms, lease_ms)
        self.renewed.set()
        return done


class Refused(Store):
    """A store that says when another process held the file for too long."""

    refused: asyncio.Event

    def claim(self, holder: str, now_ms: int, lease_ms: int) -> Task | None:
        try:
            return super().claim(holder, now_ms, lease_ms)
        except sqlite3.OperationalError:
            self.refused.set()
            raise


class Folder:
    """One folder and the processes on it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "tasks.db"
        self.clock = Clock()
        self.store = Store.open(self.path)
        self.released = threading.Event()
        """Lets steps go on that wait for it, at the latest when the test ends."""

    def add(self, task_id: str = "tsk_1", tool: str = "probe", **more: Any) -> None:
        fields = {"created_ms": 1, "updated_ms": 1, "ttl_ms": None, "poll_ms": 10, "due_ms": 1} | more
        self.store.create(Task(task_id, tool, {}, **fields))

    def worker(
        self,
        name: str,
        step: Callable[[Job], Outcome],
        *,
        store: Store | None = None,
        handles_cancel: bool = False,
        **more: Any,
    ) -> Worker:
        options: dict[str, Any] = {"lease_ms": LEASE, "step_ms": 0} | more
        return Worker(
            store or Store.open(self.path),
            {"probe": Tool("probe", "Probe", "Probes", step=step, handles_cancel=handles_cancel)},
            now_ms=self.clock,
            token=lambda: name,
            **options,
        )

    def task(self, task_id: str = "tsk_1") -> Task:
        task = self.store.get("local", task_id)
        assert task is not None
        return task

    def ledger(self) -> list[tuple[str, int, str]]:
        with sqlite3.connect(self.path) as db:
            return db.execute("SELECT task_id, position, holder FROM step ORDER BY 1, 2").fetchall()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path)
    yield made
    made.released.set()


def once(job: Job) -> Outcome:
    return Done("done", tool_result("ok"))


def thrice(job: Job) -> Outcome:
    return Work(f"step {job.position}") if job.position < 3 else Done("done", tool_result("ok"))


def held_up(folder: Folder, begun: threading.Event) -> Callable[[Job], Outcome]:
    def step(job: Job) -> Outcome:
        begun.set()
        folder.released.wait(30)
        return Work("late")

    return step


async def until_set(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, 30)


def test_a_leased_task_is_nobody_elses_until_the_lease_ends(folder):
    folder.add()
    rival = Store.open(folder.path)
    first = folder.store.claim("a", 1_000, 100)
    assert first is not None
    assert rival.claim("b", 1_000, 100) is None
    assert folder.store.claim("a", 1_099, 100) is None
    assert rival.next_due() == 1_100
    second = rival.claim("b", 1_100, 100)
    assert second is not None
    assert (first.attempts, second.attempts) == (1, 2)
    assert not folder.store.renew(first, "a", 1_101, 100)
    assert rival.renew(second, "b", 1_150, 100)
    assert folder.store.claim("a", 1_249, 100) is None
    assert folder.store.claim("a", 1_250, 100) is not None


def test_a_lease_that_ran_out_can_neither_commit_nor_be_renewed_even_if_nobody_took_it(folder):
    folder.add()
    task = folder.store.claim("a", 1_000, 100)
    assert task is not None
    assert not folder.store.renew(task, "a", 1_100, 100)
    assert not folder.store.advance(task, Change("completed", result={}), "a", 1_100)
    assert (folder.task().status, folder.ledger()) == ("working", [])


async def test_a_worker_that_was_paused_past_its_lease_cannot_commit_what_it_computed(folder, caplog):
    folder.add()
    begun = threading.Event()
    paused, other = folder.worker("paused", held_up(folder, begun)), folder.worker("other", thrice)
    sleeping = asyncio.create_task(paused.step())
    await until_set(begun)
    assert await other.step() is None
    folder.clock.now += LEASE
    assert [await other.step() for _ in range(2)] == ["tsk_1", "tsk_1"]
    folder.released.set()
    assert await sleeping == "tsk_1"
    assert "came too late" in caplog.text
    assert folder.task().message == "step 1"
    assert folder.ledger() == [("tsk_1", 0, "other"), ("tsk_1", 1, "other")]


async def test_a_paused_worker_is_too_late_even_for_a_step_that_another_only_began(folder):
    folder.add()
    begun = threading.Event()
    sleeping = asyncio.create_task(folder.worker("paused", held_up(folder, begun)).step())
    await until_set(begun)
    folder.clock.now += LEASE
    theirs = folder.store.claim("other", folder.clock.now, LEASE)
    assert theirs is not None
    folder.released.set()
    await sleeping
    assert (folder.task().position, folder.ledger()) == (0, [])
    assert folder.store.advance(theirs, Change("completed", result={}), "other", folder.clock.now)


async def test_a_lease_is_renewed_for_as_long_as_its_step_runs(folder):
    folder.add()
    store = Watched.open(folder.path)
    store.renewed = asyncio.Event()
    begun = threading.Event()
    worker = folder.worker("slow", held_up(folder, begun), store=store, lease_ms=30, step_seconds_limit=30)
    running = asyncio.create_task(worker.step())
    await until_set(begun)
    for _ in range(5):
        folder.clock.now += 20
        store.renewed.clear()
        await asyncio.wait_for(store.renewed.wait(), 30)
        assert folder.store.claim("other", folder.clock.now, 30) is None
    folder.released.set()
    await running
    assert folder.ledger() == [("tsk_1", 0, "slow")]


async def test_a_worker_that_lost_its_lease_gives_the_step_up(folder):
    folder.add()
    begun = threading.Event()
    worker = folder.worker("slow", held_up(folder, begun), lease_ms=30, step_seconds_limit=30)
    running = asyncio.create_task(worker.step())
    await until_set(begun)
    folder.clock.now += 30
    assert await asyncio.wait_for(running, 30) == "tsk_1"  # while its step still hangs
    assert (folder.task().status, folder.ledger()) == ("working", [])


async def test_a_step_that_hangs_fails_its_own_task_and_others_go_on(folder):
    folder.add("tsk_hangs")
    folder.add("tsk_fine", due_ms=2)

    def step(job: Job) -> Outcome:
        return once(job) if folder.task("tsk_hangs").status == "failed" else held_up(folder, begun)(job)

    begun = threading.Event()
    worker = folder.worker("a", step, step_seconds_limit=0.05)
    assert [await worker.step() for _ in range(3)] == ["tsk_hangs", "tsk_fine", None]
    failed = folder.task("tsk_hangs")
    assert failed.error == {
        "code": -32603,
        "message": "the tool probe took more than 0.05 seconds at step 0",
    }
    assert folder.task("tsk_fine").status == "completed"
    assert len(folder.ledger()) == 2


async def test_a_step_that_ends_its_process_each_time_fails_in_the_end(folder):
    folder.add()
    for n in range(ATTEMPTS):
        # A process that claims the step and is never heard of again.
        assert folder.store.claim(f"process {n}", folder.clock.now, LEASE) is not None
        folder.clock.now += LEASE
    assert await folder.worker("last", once).step() == "tsk_1"
    task = folder.task()
    assert task.status == "failed"
    assert "at step 0 10 times and never came through" in str(task.message)


async def test_attempts_are_those_of_one_step(folder):
    folder.add()
    worker = folder.worker("a", thrice)
    for _ in range(3):
        for _ in range(ATTEMPTS - 1):
            folder.store.claim("gone", folder.clock.now, LEASE)
            folder.clock.now += LEASE
        await worker.step()
    await worker.step()
    assert folder.task().status == "completed"


class Surprise(Exception):
    """None that anybody expected."""


@pytest.mark.rule("tasks.failed-has-error")
@pytest.mark.parametrize(
    "error",
    [
        Surprise("unforeseen"),
        KeyError("x"),
        RecursionError(),
        StopIteration(),
        MemoryError(),
        OSError(5, "disk"),
        SystemExit(3),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
        sqlite3.OperationalError("not the store's"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_a_step_raises_fails_its_task_and_stays_inside(folder, error, caplog):
    def step(job: Job) -> Outcome:
        raise error

    folder.add()
    worker = folder.worker("a", step)
    assert [await worker.step(), await worker.step()] == ["tsk_1", None]
    task = folder.task()
    assert (task.status, task.due_ms) == ("failed", None)
    assert task.error == {"code": -32603, "message": "the tool probe broke at step 0"}
    assert type(error).__name__ in caplog.text


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    "outcome",
    [
        None,
        "done",
        {"status": "completed"},
        Work("x", {"state": {1, 2}}),
        Work("x", nested(100_000)),
        Work("x", pause=float("inf")),
        Work("x", pause=float("nan")),
        Work("x", pause_ms=10**30),
        Work("x", ["no object"]),  # type: ignore[arg-type]
        Done("x", ["no object"]),  # type: ignore[arg-type]
        Work(b"bytes"),  # type: ignore[arg-type]
        Work(object()),  # type: ignore[arg-type]
        Done("x", {"content": float("nan")}),
        Done("\ud800", {}),
        Done("x", {"content": "\ud800"}),
        Done("x", None),  # type: ignore[arg-type]
        Ask("x", {"asked before": ASKED}),
        Ask("x", {"k": "\ud800"}),  # type: ignore[dict-item]
        Ask("x", None),  # type: ignore[arg-type]
        Stopped("\ud800"),
        RpcError(-32000, "x", {"data": object()}),
        RpcError(-32000, "\ud800"),
    ],
    ids=lambda outcome: type(outcome).__name__,
)
async def test_an_outcome_that_cannot_be_stored_fails_its_task_and_leaves_no_trace(folder, outcome, caplog):
    def step(job: Job) -> Outcome:
        if isinstance(outcome, RpcError):
            raise outcome
        return outcome  # type: ignore[no-any-return]

    folder.add(questions=(Question("asked before", ASKED, {"action": "decline"}),))
    worker = folder.worker("a", step)
    assert [await worker.step(), await worker.step()] == ["tsk_1", None]
    task = folder.task()
    assert (task.status, task.due_ms, task.state) == ("failed", None, {})
    assert task.error == {"code": -32603, "message": "the tool probe broke at step 0"}
    assert [q.key for q in task.questions] == ["asked before"]
    assert folder.ledger() == [("tsk_1", 0, "a")]
    assert "came to nothing" in caplog.text or outcome is None


async def test_an_ask_for_nothing_does_not_wait_for_ever(folder):
    folder.add()
    await folder.worker("a", lambda job: Ask("for nothing", {})).step()
    assert folder.task().status == "failed"


async def test_the_ledger_of_steps_is_kept_as_it_was_written(folder):
    folder.add()
    await folder.worker("a", once).step()
    with sqlite3.connect(folder.path) as db:
        with pytest.raises(sqlite3.IntegrityError, match="not changed"):
            db.execute("UPDATE step SET holder = 'b'")
        with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
            db.execute("INSERT INTO step VALUES ('tsk_1', 0, 'b', 1, 1)")
    assert folder.ledger() == [("tsk_1", 0, "a")]


async def test_many_workers_at_once_take_each_step_once(folder):
    for n in range(20):
        folder.add(f"tsk_{n:02}")
    workers = [folder.worker(f"w{n}", thrice) for n in range(4)]

    async def drain(worker: Worker) -> None:
        while await worker.step() is not None:
            pass

    await asyncio.gather(*map(drain, workers))
    entries = folder.ledger()
    assert [(task_id, position) for task_id, position, _ in entries] == [
        (f"tsk_{n:02}", position) for n in range(20) for position in range(4)
    ]
    assert len({holder for _, _, holder in entries}) > 1


async def test_work_goes_on_after_another_process_held_the_file_for_too_long(folder, caplog):
    folder.add()
    done = asyncio.Event()
    store = Refused.open(folder.path)
    store.refused = asyncio.Event()
    store._db.execute("PRAGMA busy_timeout = 0")
    worker = folder.worker("a", once, store=store, changed=done.set)
    blocker = sqlite3.connect(folder.path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(30):
        await store.refused.wait()
        blocker.execute("ROLLBACK")
        await done.wait()
    running.cancel()
    blocker.close()
    assert "another process holds the data" in caplog.text
    assert folder.task().status == "completed"


def test_what_a_step_finds_out_after_its_service_has_ended_is_nobodys(folder, caplog, capfd):
    folder.add()
    worker = folder.worker("a", held_up(folder, threading.Event()), step_seconds_limit=0.05)
    assert asyncio.run(worker.step()) == "tsk_1"
    late = [thread for thread in threading.enumerate() if thread.name == "step of probe"]
    assert late
    folder.released.set()
    for thread in late:
        thread.join(30)
    assert (caplog.text, capfd.readouterr().err) == ("", "")
    assert folder.task().status == "failed"


@pytest.mark.parametrize("handles", [False, True])
async def test_a_cancellation_that_comes_while_a_question_is_computed_is_not_lost(folder, handles):
    begun = threading.Event()
    released = folder.released

    def step(job: Job) -> Outcome:
        begun.set()
        released.wait(30)
        return Ask("Waiting", {"q": ASKED})

    folder.add()
    worker = folder.worker("one", step, handles_cancel=handles)
    computing = asyncio.create_task(worker.step())
    await until_set(begun)
    folder.store.cancel("local", "tsk_1", "Cancelled on request", folder.clock.now)
    released.set()
    assert await computing == "tsk_1"
    task = folder.task()
    assert (task.status, bool(task.outstanding)) == (
        ("input_required", True) if handles else ("cancelled", False)
    )
