"""What the disk holds, and what a step that breaks does."""

from __future__ import annotations

import random
import sqlite3
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.demo_server import migrations
from app.demo_server.errors import ServeError
from app.demo_server.migrations import SCHEMA_VERSION
from app.demo_server.records import Change, Question, Task
from app.demo_server.request_state import Seal
from app.demo_server.server import build_app
from app.demo_server.service import Client, Service, detailed
from app.demo_server.store import Store
from app.demo_server.tools import Ask, Done, Job, Outcome, Tool, Work, tool_result
from app.demo_server.worker import Worker

ASKED: dict[str, Any] = {
    "method": "elicitation/create",
    "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}},
}


def make_task(task_id: str = "tsk_1", tool: str = "probe", **more: Any) -> Task:
    fields: dict[str, Any] = {"created_ms": 1, "updated_ms": 1, "ttl_ms": 60_000, "poll_ms": 10, "due_ms": 1}
    return Task(task_id, tool, {"a": "日本 \U0001f600"}, **(fields | more))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "tasks.db"


def worker_over(store: Store, *tools: Tool, now: int = 100) -> Worker:
    return Worker(store, {t.name: t for t in tools}, step_ms=0, now_ms=lambda: now, token=lambda: "token")


def probe(step: Any, name: str = "probe") -> Tool:
    return Tool(name, name, name, step=step)


def test_a_task_is_found_whole_by_the_next_process(path):
    task = make_task(questions=(Question("b", ASKED), Question("a", ASKED, {"action": "decline"})))
    Store.open(path).create(task)
    found = Store.open(path).get("local", "tsk_1")
    assert found == replace(task, revision=1)
    assert list(found.outstanding) == ["b"]


def test_the_files_are_for_their_owner_alone(path):
    store = Store.open(path)
    store.create(make_task())
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name


def test_the_signing_key_is_made_once(path, tmp_path):
    key = Store.open(path).request_state_key
    assert len(key) == 32
    assert Store.open(path).request_state_key == key
    assert Store.open(tmp_path / "other.db").request_state_key != key


def test_a_newer_versions_file_is_refused_and_left_alone(path):
    Store.open(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(ServeError, match="newer version"):
        Store.open(path)
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION + 1,)


def test_a_file_that_is_no_database_is_refused(path):
    path.parent.mkdir()
    path.write_bytes(b"this is not a database, and long enough to be read as one" * 20)
    with pytest.raises(ServeError, match="can't be used"):
        Store.open(path)


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ServeError, match="can't be used"):
        build_app(tmp_path / "file")


def test_tools_that_do_not_exist_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ServeError, match="nonsense"):
        build_app(tmp_path / "data", "nonsense")
    assert not (tmp_path / "data").exists()


def test_a_step_counts_only_onto_the_position_it_was_computed_from(path):
    store, rival = Store.open(path), Store.open(path)
    store.create(make_task())
    task = store.claim("mine", 5, 100)
    assert task is not None
    assert rival.advance(task, Change("working", "first", due_ms=6), "mine", 6)
    assert rival.claim("mine", 6, 100) is not None
    assert not store.advance(task, Change("completed", "second", result={}), "mine", 6)
    task = rival.get("local", "tsk_1")
    assert task is not None
    assert (task.status, task.message, task.position) == ("working", "first", 1)


@pytest.mark.rule("tasks.keys-not-reused")
def test_a_key_that_was_asked_before_cannot_be_asked_again_and_the_step_leaves_no_trace(path):
    store = Store.open(path)
    store.create(make_task(questions=(Question("k", ASKED, {"action": "accept"}),)))
    claimed = store.claim("mine", 5, 100)
    assert claimed is not None
    before = store.get("local", "tsk_1")
    with pytest.raises(sqlite3.IntegrityError):
        store.advance(claimed, Change("input_required", asks={"k": ASKED}), "mine", 5)
    assert store.get("local", "tsk_1") == before


def test_the_task_that_is_due_longest_goes_first_and_waiting_ones_are_not_due(path):
    store = Store.open(path)
    for name, due in (("late", 30), ("early", 10), ("waiting", None), ("future", 90)):
        store.create(make_task(name, due_ms=due))
    assert store.next_due() == 10
    first = store.claim("mine", 50, 100)
    assert first is not None
    assert first.id == "early"
    store.advance(first, Change("completed", result={}), "mine", 50)
    second = store.claim("mine", 50, 100)
    assert second is not None
    assert second.id == "late"


async def test_a_step_that_breaks_fails_its_own_task_and_no_other(path, caplog):
    def broken(job: Job) -> Outcome:
        raise KeyError("missing")

    def fine(job: Job) -> Outcome:
        return Done("ok", tool_result("ok"))

    store = Store.open(path)
    store.create(make_task("tsk_broken", "broken"))
    store.create(make_task("tsk_fine", "fine", due_ms=2))
    worker = worker_over(store, probe(broken, "broken"), probe(fine, "fine"))
    assert [await worker.step() for _ in range(3)] == ["tsk_broken", "tsk_fine", None]
    failed, completed = store.get("local", "tsk_broken"), store.get("local", "tsk_fine")
    assert failed is not None
    assert completed is not None
    assert failed.status == "failed"
    assert failed.error == {"code": -32603, "message": "the tool broken broke at step 0"}
    assert "missing" in caplog.text
    assert completed.status == "completed"


async def test_a_task_whose_tool_is_gone_fails(path):
    store = Store.open(path)
    store.create(make_task())
    await worker_over(store).step()
    task = store.get("local", "tsk_1")
    assert task is not None
    assert (task.status, task.due_ms) == ("failed", None)
    assert "no longer has the tool" in str(task.message)


async def test_state_is_kept_between_steps_and_across_processes(path):
    seen = []

    def step(job: Job) -> Outcome:
        seen.append(dict(job.state))
        if job.position == 0:
            return Work("one", {"left": "here"})
        if job.position == 1:
            return Work("two")
        return Ask("three", {"k": ASKED}) if not job.answers else Done("four", tool_result("ok"))

    Store.open(path).create(make_task())
    for _ in range(3):
        await worker_over(Store.open(path), probe(step)).step()
    store = Store.open(path)
    store.answer("local", "tsk_1", {"k": {"action": "decline"}}, "ada", 50)
    await worker_over(store, probe(step)).step()
    assert seen == [{}, {"left": "here"}, {"left": "here"}, {"left": "here"}]
    task = store.get("local", "tsk_1")
    assert task is not None
    assert task.status == "completed"


def test_the_first_answer_to_a_question_stands_whichever_process_brings_it(path):
    store, rival = Store.open(path), Store.open(path)
    asked = (Question("a", ASKED), Question("b", ASKED))
    store.create(make_task(status="input_required", due_ms=None, questions=asked))
    store.answer("local", "tsk_1", {"a": {"action": "decline"}}, "ada", 20)
    late = {"a": {"action": "accept", "content": {}}, "never asked": {"action": "decline"}}
    rival.answer("local", "tsk_1", late, "bob", 30)
    task = store.get("local", "tsk_1")
    assert task is not None
    assert [q.response for q in task.questions] == [{"action": "decline"}, None]
    assert (task.status, task.updated_ms, task.due_ms) == ("input_required", 20, None)
    rival.answer("local", "tsk_1", {"b": {"action": "decline"}}, "bob", 40)
    task = store.get("local", "tsk_1")
    assert task is not None
    assert (task.status, task.updated_ms, task.due_ms) == ("working", 40, 40)


def test_an_answer_that_comes_after_a_cancellation_changes_nothing(path):
    store = Store.open(path)
    store.create(make_task(status="input_required", due_ms=None, questions=(Question("a", ASKED),)))
    store.cancel("local", "tsk_1", "cancelled", 20)
    cancelled = store.get("local", "tsk_1")
    store.answer("local", "tsk_1", {"a": {"action": "decline"}}, "ada", 30)
    assert store.get("local", "tsk_1") == cancelled
    assert cancelled is not None
    assert (cancelled.status, cancelled.updated_ms) == ("cancelled", 20)


def test_a_task_starts_only_once_every_question_before_it_is_accepted(path):
    def step(job: Job) -> Outcome:
        return Done("done", tool_result("ok"))

    two = Tool(
        "two", "Two", "Asks two things first", step=step, before=lambda arguments: {"a": ASKED, "b": ASKED}
    )
    service = Service(
        Store.open(path),
        {"two": two},
        Seal(b"k" * 32),
        poll_ms=10,
        now_ms=lambda: 5,
        token=lambda: "token",
        wake=lambda: None,
    )
    client = Client(tasks=True, modes=frozenset({"form"}))
    accepted = {"action": "accept", "content": {}}

    def call(**more: Any) -> dict[str, Any]:
        return service.call_tool({"name": "two", **more}, client)

    asked = call()
    assert list(asked["inputRequests"]) == ["a", "b"]
    again = call(requestState=asked["requestState"], inputResponses={"a": accepted})
    assert again["resultType"] == "input_required"
    both = {"a": accepted, "b": accepted}
    assert call(requestState=again["requestState"], inputResponses=both)["resultType"] == "task"


VERSION_1 = """
CREATE TABLE task (id TEXT PRIMARY KEY, tool TEXT NOT NULL, arguments TEXT NOT NULL, status TEXT NOT NULL,
    message TEXT, created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, ttl_ms INTEGER,
    poll_ms INTEGER NOT NULL, position INTEGER NOT NULL, state TEXT NOT NULL, due_ms INTEGER,
    cancel_requested INTEGER NOT NULL DEFAULT 0, result TEXT, error TEXT) STRICT, WITHOUT ROWID;
CREATE INDEX task_due ON task (due_ms) WHERE due_ms IS NOT NULL;
CREATE TABLE question (task_id TEXT NOT NULL REFERENCES task (id) ON DELETE CASCADE, key TEXT NOT NULL,
    position INTEGER NOT NULL, request TEXT NOT NULL, response TEXT, PRIMARY KEY (task_id, key))
    STRICT, WITHOUT ROWID;
CREATE TABLE secret (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO secret VALUES ('request-state', x'0102');
INSERT INTO task VALUES ('tsk_old', 'probe', '{"a":1}', 'input_required', 'Waiting', 5, 9, 60000, 10, 3,
    '{"s":2}', NULL, 0, NULL, NULL);
INSERT INTO task VALUES ('tsk_older', 'probe', '{}', 'completed', NULL, 4, 8, NULL, 10, 1, '{}', NULL, 1,
    '{"content":[]}', NULL);
INSERT INTO question VALUES ('tsk_old', 'b', 0, '{"method":"m"}', '{"action":"decline"}');
INSERT INTO question VALUES ('tsk_old', 'a', 1, '{"method":"m"}', NULL);
PRAGMA user_version = 1;
"""


def older_file(path: Path) -> None:
    """A file as the first version left it."""
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as db:
        db.executescript(VERSION_1)


def test_an_older_versions_file_keeps_its_tasks_which_go_on(path):
    older_file(path)
    store = Store.open(path)
    assert store.request_state_key == b"\x01\x02"
    waiting, ended = store.get("local", "tsk_old"), store.get("local", "tsk_older")
    asked = {"method": "m"}
    questions = (Question("b", asked, {"action": "decline"}), Question("a", asked))
    expected = Task("tsk_old", "probe", {"a": 1}, 5, 9, 60000, 10, None, "input_required", "Waiting", 3)
    assert waiting == replace(expected, state={"s": 2}, questions=questions, revision=2)
    assert ended is not None
    assert (ended.status, ended.result, ended.cancel_requested) == ("completed", {"content": []}, True)
    assert store.revision() == 2
    store.answer("local", "tsk_old", {"a": {"action": "accept"}}, "ada", 20)
    assert [task.id for task in store.changed_since("local", 2, ["tsk_old", "tsk_older"])] == ["tsk_old"]
    assert store.claim("mine", 20, 100) is not None


def test_a_file_that_cannot_be_brought_up_to_date_stays_as_it_was(path, monkeypatch):
    older_file(path)
    broken = (*migrations._SECOND, "INSERT INTO no_such_table VALUES (1)")
    monkeypatch.setattr(migrations, "_MIGRATIONS", (migrations._FIRST, broken))
    with pytest.raises(ServeError, match="no_such_table"):
        Store.open(path)
    monkeypatch.undo()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    assert tables == [("question",), ("secret",), ("task",)]
    assert Store.open(path).get("local", "tsk_old") is not None


def test_processes_that_open_a_new_folder_at_once_agree_on_it(path):
    start = threading.Barrier(4)

    def opened(_: int) -> bytes:
        start.wait()
        return Store.open(path).request_state_key

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(opened, range(4)))) == 1


@pytest.mark.parametrize("seed", range(3))
async def test_nothing_that_a_client_can_see_changes_without_a_new_revision(path, seed):
    chance = random.Random(seed)
    store, clock = Store.open(path), [1_000]

    def step(job: Job) -> Outcome:
        keys = [f"{job.position}{letter}" for letter in "ab"[: chance.randint(1, 2)]]
        ask = Ask("asks", dict.fromkeys(keys, ASKED))
        return chance.choice([Work("works"), Work("works", pause_ms=50), ask, Done("done", {})])

    worker = Worker(
        store, {"probe": probe(step)}, step_ms=1, now_ms=lambda: clock[0], token=lambda: "w", lease_ms=20
    )
    seen: dict[str, tuple[int, dict[str, Any]]] = {}
    kinds = set()
    for number in range(200):
        clock[0] += chance.randint(0, 10)
        task_id = chance.choice(list(seen) or ["none"])
        before = store.revision()
        match chance.randrange(6):
            case 0:
                task_id = f"tsk_{number}"
                times = {"created_ms": clock[0], "updated_ms": clock[0], "due_ms": clock[0]}
                store.create(make_task(task_id, ttl_ms=chance.choice([None, 150]), **times))
                seen[task_id] = (-1, {})
            case 1 | 2:
                await worker.step()
            case 3:
                task = store.get("local", task_id)
                for key in list(task.outstanding if task else ())[:1]:
                    store.answer("local", task_id, {key: {"action": "decline"}}, "ada", clock[0])
            case 4:
                store.cancel("local", task_id, "cancelled", clock[0])
            case 5:
                store.clean(clock[0], limit=3)
        told = {task.id: task for task in store.changed_since("local", before, seen)}
        for each, (revision, shown) in list(seen.items()):
            task = store.get("local", each)
            if task is None:
                assert store.is_gone("local", each)
                del seen[each]
                continue
            kinds.add(task.status)
            if detailed(task) != shown:
                assert task.revision > revision
                assert told[each] == task
            else:
                assert (task.revision, each in told) == (revision, False)
            seen[each] = (task.revision, detailed(task))
    assert kinds == {"working", "input_required", "completed", "cancelled", "failed"}
