"""Tasks and calls in the store: what one transaction changes, and what it leaves alone."""

from __future__ import annotations

import sqlite3
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest
from fakes.stored import CALL, TASK, Ticking, asked, sets, task, writes

from storage.connection import Connection
from storage.errors import StorageError, UnknownQuestion, UnknownTask
from storage.records import (
    NewEvent,
    NewTask,
    QuestionChange,
    QuestionRecord,
    Reply,
    ServerRecord,
    TaskKey,
    TaskRecord,
    TaskState,
    TaskWrites,
    Tracking,
)
from storage.rows import section_of
from storage.store import Store, StoreReader


def kinds(reader: StoreReader, key: TaskKey = TASK) -> list[str]:
    return [event.kind for event in reader.events(key)]


def test_a_task_comes_back_exactly_as_it_was_added(store: Store, reader: StoreReader) -> None:
    state = TaskState(
        status="working",
        status_message="‮ \x1b[31m red",
        problem="p",
        reason="r",
        created_at=1,
        last_updated_at=2,
        ttl_ms=3,
        poll_interval_ms=4,
        is_error=True,
        result_json='{"a": 1.50}',
        error_json="{}",
        snapshot_json='{"z": 1e400}',
        request_state="opaque\x00",
        round=5,
        cancel_requested_at=6,
        cancel_acknowledged_at=7,
        observed_by="poll",
    )
    new = NewTask(TASK, kind="call", method="x/y", tool="t", params_json='{"b": 2}', state=state, owner="me")

    assert store.add_task(new, questions=[asked()]) is True

    record = reader.task(TASK)
    assert record is not None
    assert (record.key, record.kind, record.method, record.tool, record.params_json, record.owner) == (
        *(TASK, "call", "x/y", "t"),
        *('{"b": 2}', "me"),
    )
    assert record.state == state


def test_adding_a_task_twice_changes_nothing_but_brings_it_back(store: Store, reader: StoreReader) -> None:
    store.add_task(task(status="working"))
    store.archive(TASK)

    assert store.add_task(task(status="completed"), questions=[asked()]) is False

    record = reader.task(TASK)
    assert record is not None
    assert (record.state.status, record.archived_at, record.section) == ("working", None, "running")
    assert reader.questions(TASK) == []
    assert kinds(reader) == ["added", "archived", "unarchived"]


@pytest.mark.parametrize(
    ("archived", "tracking", "open_questions"),
    list(product((None, 5), get_args(Tracking), (0, 2))),
)
def test_the_section_follows_from_three_facts(
    archived: int | None, tracking: Tracking, open_questions: int
) -> None:
    if archived is not None:
        expected = "archived"
    else:
        expected = {
            "lost": "lost",
            "stopped": "lost",
            "ended": "finished",
            "active": "needs-you" if open_questions else "running",
        }[tracking]
    assert section_of(archived_at=archived, tracking=tracking, open_questions=open_questions) == expected


def test_the_stored_section_moves_with_each_change(store: Store, reader: StoreReader) -> None:
    def section() -> str:
        record = reader.task(TASK)
        assert record is not None
        assert reader.keys(record.section) == [TASK]
        assert reader.counts()[record.section] == 1
        assert sum(reader.counts().values()) == 1
        return record.section

    store.add_task(task())
    assert section() == "running"
    store.change_task(TASK, writes(new_questions=(asked(),)))
    assert section() == "needs-you"
    question = reader.questions(TASK)[0]
    store.queue_answers(TASK, [Reply(question.id, "f1", "{}")], by="me")
    assert section() == "running"
    store.change_task(TASK, sets(tracking="lost"))
    assert section() == "lost"
    store.change_task(TASK, sets(tracking="ended"))
    assert section() == "finished"
    store.archive(TASK)
    assert section() == "archived"
    store.unarchive(TASK)
    assert section() == "finished"


def test_a_decision_sees_the_stored_task_and_its_own_questions(store: Store) -> None:
    store.add_task(task(status="working", result_json="[1]"), questions=[asked("a"), asked("b")])
    seen: list[Any] = []

    def decide(stored: TaskRecord, questions: tuple[QuestionRecord, ...]) -> TaskWrites:
        seen.append((stored.state.status, stored.state.result_json, [one.key for one in questions]))
        return TaskWrites()

    assert not store.change_task(TASK, decide)
    assert seen == [("working", "[1]", ["a", "b"])]


def test_a_decision_that_raises_changes_nothing(store: Store, reader: StoreReader) -> None:
    store.add_task(task(status="working"))
    before = (reader.task(TASK), reader.last_seq())

    def decide(stored: TaskRecord, questions: tuple[QuestionRecord, ...]) -> TaskWrites:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.change_task(TASK, decide)
    assert (reader.task(TASK), reader.last_seq()) == before
    store.change_task(TASK, sets(status="completed"))  # and the store goes on working


def test_writes_that_fail_half_way_change_nothing(store: Store, reader: StoreReader) -> None:
    store.add_task(task(status="working"))
    before = (reader.task(TASK), reader.questions(TASK), reader.last_seq())
    parts = writes(
        state=TaskState(status="completed"),
        new_questions=(asked(),),
        question_changes=(QuestionChange(99, "withdrawn"),),
    )

    with pytest.raises(UnknownQuestion):
        store.change_task(TASK, parts)
    assert (reader.task(TASK), reader.questions(TASK), reader.last_seq()) == before


def test_a_question_of_another_task_is_not_changed(store: Store, reader: StoreReader) -> None:
    other = TaskKey("ci", "other")
    store.add_task(task())
    store.add_task(task(other), questions=[asked()])
    question = reader.questions(other)[0]

    with pytest.raises(UnknownQuestion):
        store.change_task(TASK, writes(question_changes=(QuestionChange(question.id, "withdrawn"),)))
    assert reader.question(question.id) == question


def test_nothing_is_written_for_a_decision_that_writes_nothing(
    store: Store, reader: StoreReader, path: Path
) -> None:
    store.add_task(task(status="working"))
    log = path.with_name("inbox.db-wal")
    before = (log.read_bytes(), reader.task(TASK))

    store.change_task(TASK, writes())
    store.change_task(TASK, sets(status="working"))  # the state as it is
    assert (log.read_bytes(), reader.task(TASK)) == before


@pytest.mark.parametrize(
    "noise",
    [
        {"last_updated_at": 99},
        {"snapshot_json": "{}"},
        {"observed_by": "poll"},
        {"poll_interval_ms": 9},
    ],
)
def test_what_differs_at_every_look_is_stored_but_is_no_change(
    store: Store, reader: StoreReader, noise: dict[str, Any]
) -> None:
    store.add_task(task(status="working"))
    before = reader.task(TASK)
    assert before is not None

    store.change_task(TASK, sets(**noise))

    after = reader.task(TASK)
    assert after is not None
    assert after.changed_at == before.changed_at
    assert {name: getattr(after.state, name) for name in noise} == noise
    assert kinds(reader) == ["added"]


def test_a_change_without_a_fact_is_logged_all_the_same(store: Store, reader: StoreReader) -> None:
    store.add_task(task(status="working"))
    seq = reader.last_seq()

    store.change_task(TASK, sets(status="completed", last_updated_at=5))

    assert reader.changed_since(seq) == (seq + 1, {TASK})
    event = reader.events(TASK)[-1]
    assert (event.kind, event.data_json) == ("changed", '{"fields": ["status"]}')


def test_a_problem_is_told_to_other_programs_but_does_not_move_the_task(
    store: Store, reader: StoreReader
) -> None:
    store.add_task(task())
    before = reader.rows([TASK])[TASK]

    store.change_task(TASK, sets(problem="unreachable"))

    assert reader.rows([TASK])[TASK].changed_at == before.changed_at
    assert kinds(reader) == ["added", "changed"]


def test_facts_that_come_with_a_change_are_all_that_is_logged(store: Store, reader: StoreReader) -> None:
    store.add_task(task(), events=[NewEvent("tracked")])
    store.change_task(
        TASK,
        writes(
            state=TaskState(status="x"), events=(NewEvent("status_changed", '{"to": "x"}'), NewEvent("b"))
        ),
    )
    assert kinds(reader) == ["tracked", "status_changed", "b"]


def test_new_activity_brings_an_archived_task_back(store: Store, reader: StoreReader) -> None:
    store.add_task(task())
    store.archive(TASK)
    store.change_task(TASK, sets(status_message="half way"))
    assert reader.counts()["archived"] == 1

    store.change_task(TASK, writes(new_questions=(asked(),), unarchive=True))

    assert reader.keys("needs-you") == [TASK]


def test_archiving_twice_is_archiving_once(store: Store, reader: StoreReader) -> None:
    store.add_task(task())
    store.archive(TASK)
    first = reader.rows([TASK])[TASK].archived_at
    store.archive(TASK)
    assert reader.rows([TASK])[TASK].archived_at == first
    assert kinds(reader) == ["added", "archived"]


def test_a_call_that_becomes_a_task_leaves_the_list_and_its_id_points_there(
    store: Store, reader: StoreReader
) -> None:
    store.add_task(NewTask(CALL, kind="call", owner="me"), questions=[asked("early")])
    early = reader.questions(CALL)[0]
    store.queue_answers(CALL, [Reply(early.id, "f1", "{}")], by="me")
    store.claim([early.id], owner="me", dead=lambda owner: False)

    store.change_task(CALL, writes(became=task(), events=(NewEvent("task_created"),)))
    store.change_task(TASK, writes(new_questions=(asked("late"),)))

    assert [row.key for row in reader.list_rows()] == [TASK]
    assert reader.rows([CALL, TASK]).keys() == {TASK}
    assert sum(reader.counts().values()) == 1
    record = reader.task(CALL)
    assert record is not None
    assert record == reader.task(TASK)
    assert record.origin_call == CALL.id
    assert reader.find(CALL.id) == reader.find("call") == reader.find("ci/call-1") == [TASK]
    for key in (CALL, TASK):
        assert [question.key for question in reader.questions(key)] == ["early", "late"]
        assert {"answer_queued", "task_created", "added"} <= set(kinds(reader, key))
    settled = reader.question(early.id)
    assert settled is not None
    assert settled.state == "settled"
    assert store.pending_answers() == []
    assert store.calls_in_flight() == []
    with pytest.raises(UnknownTask):
        store.change_task(CALL, sets(status="x"))


@pytest.mark.parametrize("known", [False, True], ids=["new-task", "known-task"])
def test_a_task_that_a_call_became_is_not_archived_whatever_was(
    store: Store, reader: StoreReader, known: bool
) -> None:
    store.add_task(NewTask(CALL, kind="call"))
    store.archive(CALL)
    if known:
        store.add_task(task())
        store.archive(TASK)
    store.change_task(CALL, writes(became=task()))
    assert reader.keys("archived") == []
    assert reader.keys("running") == [TASK]


def test_a_task_that_was_there_already_is_the_one_the_call_became(store: Store, reader: StoreReader) -> None:
    store.add_task(task(status="working"))
    store.add_task(NewTask(CALL, kind="call"))
    store.change_task(CALL, writes(became=task(status="other")))
    record = reader.task(CALL)
    assert record is not None
    assert (record.key, record.origin_call, record.state.status) == (TASK, CALL.id, "working")


@pytest.mark.parametrize("target", [CALL, TaskKey("ci", "call-2")])
def test_a_server_can_not_make_a_call_become_a_call(
    store: Store, reader: StoreReader, target: TaskKey
) -> None:
    for key in (CALL, TaskKey("ci", "call-2")):
        store.add_task(NewTask(key, kind="call"))
    with pytest.raises(StorageError, match="is a call"):
        store.change_task(CALL, writes(became=task(target)))
    assert len(reader.list_rows()) == 2


def test_the_owner_of_a_call_is_set_left_and_cleared(store: Store) -> None:
    store.add_task(NewTask(CALL, kind="call", owner="me"))
    assert [(call.key, call.owner) for call in store.calls_in_flight()] == [(CALL, "me")]
    store.change_task(CALL, writes(owner="you"))
    store.change_task(CALL, sets(status="working"))
    assert [call.owner for call in store.calls_in_flight()] == ["you"]
    store.change_task(CALL, writes(owner=""))
    assert store.calls_in_flight() == []


def test_forgetting_takes_everything_but_the_log(store: Store, reader: StoreReader) -> None:
    store.add_task(NewTask(CALL, kind="call"), questions=[asked("early")])
    store.change_task(CALL, writes(became=task()))
    store.change_task(TASK, writes(new_questions=(asked(),)))
    log = len(reader.events(TASK))

    store.forget(CALL)

    assert (reader.task(TASK), reader.task(CALL), reader.questions(TASK), reader.find("call-1")) == (
        *(None, None),
        *([], []),
    )
    assert sum(reader.counts().values()) == 0
    assert (
        store._connection.value("SELECT (SELECT count(*) FROM texts) + (SELECT count(*) FROM questions)") == 0
    )
    assert kinds(reader)[-1] == "forgotten"
    assert log > 2
    with pytest.raises(UnknownTask):
        store.forget(TASK)
    assert store.add_task(task()) is True


@pytest.mark.parametrize("verb", ["archive", "unarchive", "forget"])
def test_a_verb_on_an_unknown_task_says_so(store: Store, verb: str) -> None:
    with pytest.raises(UnknownTask, match="ci/tsk_1"):
        getattr(store, verb)(TASK)
    with pytest.raises(UnknownTask):
        store.change_task(TASK, writes())
    with pytest.raises(UnknownTask):
        store.queue_answers(TASK, [], by="me")


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE events SET kind = 'x'",
        "DELETE FROM events",
        "INSERT OR REPLACE INTO events VALUES (1, 0, 'ci', 'x', 'forged', '{}')",
        "REPLACE INTO events VALUES (1, 0, 'ci', 'x', 'forged', '{}')",
    ],
)
def test_the_log_can_only_be_added_to(store: Store, reader: StoreReader, path: Path, sql: str) -> None:
    store.add_task(task())
    before = reader.events(TASK)
    foreign = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        foreign.execute(sql)
    foreign.close()
    assert reader.events(TASK) == before


def test_a_number_in_the_log_is_never_used_again(store: Store, reader: StoreReader) -> None:
    first = store.log(NewEvent("started"))
    second = store.log(NewEvent("looked"), TASK)
    third = store.log(NewEvent("signed_in"), server="ci")
    assert (first, second, third) == (1, 2, 3)
    assert reader.changed_since(0) == (3, {TASK})
    assert reader.changed_since(3) == (3, set())


def test_what_is_written_while_nothing_new_is_found_is_found_the_next_time(
    store: Store, reader: StoreReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "Is there anything new" and "what is the newest number" must not be two moments."""
    seq = store.log(NewEvent("started"))
    real = Connection.all

    def all_and_then_a_write(connection: Connection, *args: Any) -> Any:
        found = real(connection, *args)
        if connection is reader._connection:
            monkeypatch.setattr(Connection, "all", real)
            store.log(NewEvent("looked"), TASK)
        return found

    monkeypatch.setattr(Connection, "all", all_and_then_a_write)
    seq, changed = reader.changed_since(seq)
    assert changed == set()
    assert reader.changed_since(seq)[1] == {TASK}


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"status_message": "\ud800"}, "lone surrogate"),
        ({"ttl_ms": 2**63}, "64 bits"),
    ],
)
def test_what_sqlite_can_not_hold_is_a_clear_error_and_stores_nothing(
    store: Store, reader: StoreReader, state: dict[str, Any], words: str
) -> None:
    with pytest.raises(StorageError, match=words):
        store.add_task(task(**state))
    assert reader.list_rows() == []
    with pytest.raises(StorageError, match="surrogate"):
        reader.find("\udcff")


def test_servers_are_remembered_and_only_their_changes_are_logged(store: Store, reader: StoreReader) -> None:
    store.set_server(ServerRecord("ci", "ok", since=1, info_json="{}", checked_at=1))
    store.set_server(ServerRecord("ci", "ok", since=1, info_json="{}", checked_at=2))
    store.set_server(ServerRecord("ab", "unreachable", since=3, message="refused"))
    assert [(server.name, server.state, server.checked_at) for server in reader.servers()] == [
        ("ab", "unreachable", None),
        ("ci", "ok", 2),
    ]
    assert reader.last_seq() == 2
    store.forget_server("ci")
    store.forget_server("ci")
    assert [server.name for server in reader.servers()] == ["ab"]
    assert reader.last_seq() == 3


def synced(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the level of durability at each commit (2 is FULL, 1 is NORMAL)."""
    levels: list[int] = []
    run = Connection.run

    def watching(self: Connection, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        if sql == "COMMIT":
            levels.append(run(self, "PRAGMA synchronous").fetchone()[0])
        return run(self, sql, parameters)

    monkeypatch.setattr(Connection, "run", watching)
    return levels


def test_what_would_be_lost_for_good_is_synced_and_what_can_be_asked_again_is_not(
    store: Store, reader: StoreReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = synced(store, monkeypatch)

    def level_of(*_: object) -> list[int]:
        seen = levels[:]
        levels.clear()
        return seen

    assert level_of(store.add_task(task(), questions=[asked()])) == [2]
    question = reader.questions(TASK)[0]
    assert level_of(store.change_task(TASK, sets(status="working"))) == [1]
    assert level_of(store.save_draft(question.id, "{}")) == [1]
    assert level_of(store.queue_answers(TASK, [Reply(question.id, "f1", "{}")], by="me")) == [2]
    assert level_of(store.claim([question.id], owner="me", dead=lambda owner: False)) == [2]
    assert level_of(store.change_task(TASK, sets(status="x"), durable=True)) == [2]
    store.add_task(NewTask(CALL, kind="call", owner="me"))
    levels.clear()
    # Only inside the transaction does it turn out that this one matters: a synced commit follows.
    assert level_of(store.change_task(CALL, writes(became=task(TaskKey("ci", "new"))))) == [1, 2]


def test_a_synced_commit_that_follows_writes_to_the_log_file(
    store: Store, path: Path, clock: Ticking
) -> None:
    store.add_task(NewTask(CALL, kind="call", owner="me"))
    log = path.with_name("inbox.db-wal")
    before = log.stat().st_size
    store._must_sync = True
    store._sync_if_due()
    assert log.stat().st_size > before
