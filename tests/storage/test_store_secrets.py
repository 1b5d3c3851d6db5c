"""Secrets in answers: apart from all else, and gone from the files once nobody has to send them any more."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.stored import CALL, TASK, asked, move, sets, task, writes

from storage.connection import Connection
from storage.errors import StorageError
from storage.records import NewEvent, NewTask, QuestionChange, QuestionRecord, QuestionState, Reply
from storage.store import Store, StoreReader

SECRET = "correct-horse-battery"
EXACT = f'{{"action": "accept", "content": {{"password": "{SECRET}", "ratio": 1.50}}}}'
KEPT = '{"action": "accept", "content": {"password": "sent, not kept", "ratio": 1.50}}'


def nobody_is_dead(owner: str) -> bool:
    return False


def files_with(path: Path, text: str) -> list[str]:
    """Return the names of the database's files that hold *text*."""
    return [file.name for file in sorted(path.parent.iterdir()) if text.encode() in file.read_bytes()]


def answer(store: Store, question: QuestionRecord, exact: str = EXACT, kept: str = KEPT) -> QuestionRecord:
    store.queue_answers(question.task, [Reply(question.id, question.fingerprint, exact, kept)], by="ada")
    return found(store, question)


def found(store: Store, question: QuestionRecord) -> QuestionRecord:
    record = store.reader.question(question.id)
    assert record is not None
    return record


@pytest.fixture
def question(store: Store) -> QuestionRecord:
    """An open question, beside a hundred answered ones whose secrets share its pages."""
    store.add_task(task(), questions=[asked(f"k{n:03}") for n in range(100)])
    first, *others = store.reader.questions(TASK)
    replies = [
        Reply(other.id, other.fingerprint, EXACT.replace(SECRET, f"other-{other.id}"), KEPT)
        for other in others
    ]
    store.queue_answers(TASK, replies, by="ada")
    return first


def test_a_secret_is_only_where_an_answer_is_sent_from(
    store: Store, reader: StoreReader, path: Path, question: QuestionRecord
) -> None:
    queued = answer(store, question)
    assert (queued.response_json, queued.withheld, queued.state) == (KEPT, True, "queued")
    assert reader.exact_response(question.id) == EXACT
    assert SECRET not in repr(reader.questions(TASK)) + repr(reader.events(TASK, limit=10_000))
    assert files_with(path, SECRET) == ["inbox.db-wal"]
    told = json.loads(reader.events(TASK)[-1].data_json)
    assert (told["response"], told["withheld"]) == (KEPT, True)


@pytest.mark.parametrize("state", ["acknowledged", "settled", "refused", "withdrawn", "open"])
@pytest.mark.parametrize("length", [1, 2000])
def test_a_secret_is_gone_from_the_files_when_its_answer_needs_no_delivery_any_more(
    store: Store,
    reader: StoreReader,
    path: Path,
    question: QuestionRecord,
    state: QuestionState,
    length: int,
) -> None:
    answer(store, question, EXACT.replace(SECRET, SECRET * length))
    store.claim([question.id], owner="me", dead=nobody_is_dead)
    assert reader.exact_response(question.id) is not None

    moved = move(store, question, state)

    assert (moved.response_json, moved.withheld) == (KEPT, True)
    assert reader.exact_response(question.id) is None
    assert files_with(path, SECRET) == []
    assert reader.exact_response(question.id + 1) == EXACT.replace(SECRET, f"other-{question.id + 1}")


@pytest.mark.parametrize("length", [1, 2000])
@pytest.mark.parametrize(
    "end",
    [
        lambda store: store.forget(CALL),
        lambda store: store.change_task(CALL, writes(became=task())),
    ],
)
def test_a_secret_is_gone_with_its_call(
    store: Store, reader: StoreReader, path: Path, end: Callable[[Store], None], length: int
) -> None:
    store.add_task(NewTask(CALL, kind="call"), questions=[asked(round=1)])
    (question,) = reader.questions(CALL)
    answer(store, question, EXACT.replace(SECRET, SECRET * length))
    store.claim([question.id], owner="me", dead=nobody_is_dead)
    end(store)
    assert files_with(path, SECRET) == []


def test_a_secret_is_gone_when_the_task_a_call_became_is_forgotten(
    store: Store, reader: StoreReader, path: Path
) -> None:
    store.add_task(task(), questions=[asked()])
    answer(store, reader.questions(TASK)[0])
    store.forget(TASK)
    assert files_with(path, SECRET) == []
    assert reader.events(TASK)[-1].kind == "forgotten"


def test_a_secret_stays_while_its_answer_waits_to_be_sent_again(
    store: Store, reader: StoreReader, question: QuestionRecord
) -> None:
    answer(store, question)
    store.claim([question.id], owner="me", dead=nobody_is_dead)
    store.release([question.id], "me")
    assert reader.exact_response(question.id) == EXACT
    store.claim([question.id], owner="me", dead=nobody_is_dead)
    move(store, question, "queued")
    assert reader.exact_response(question.id) == EXACT


def test_an_acknowledged_answer_with_secrets_can_not_be_queued_again(
    store: Store, question: QuestionRecord
) -> None:
    answer(store, question)
    store.claim([question.id], owner="me", dead=nobody_is_dead)
    move(store, question, "acknowledged")
    with pytest.raises(StorageError, match="secrets"):
        move(store, question, "queued")
    assert found(store, question).state == "acknowledged"


def test_a_new_answer_after_a_refusal_has_its_own_secret(
    store: Store, reader: StoreReader, path: Path, question: QuestionRecord
) -> None:
    answer(store, question)
    store.claim([question.id], owner="me", dead=nobody_is_dead)
    move(store, question, "refused", refusal="too short")
    answer(store, question, EXACT.replace(SECRET, "another-one"))
    assert "another-one" in (reader.exact_response(question.id) or "")
    store.claim([question.id], owner="me", dead=nobody_is_dead)
    move(store, question, "refused")
    plain = '{"action": "decline"}'
    store.queue_answers(TASK, [Reply(question.id, question.fingerprint, plain)], by="ada")
    assert (reader.exact_response(question.id), found(store, question).withheld) == (plain, False)
    assert files_with(path, "another-one") == []


def test_a_reader_in_the_middle_of_something_only_puts_the_erasing_off(
    store: Store, path: Path, question: QuestionRecord
) -> None:
    answer(store, question)
    store.claim([question.id], owner="me", dead=nobody_is_dead)
    other = sqlite3.connect(path)
    reading = other.execute("SELECT * FROM events")
    reading.fetchone()
    move(store, question, "acknowledged")
    assert files_with(path, SECRET) == ["inbox.db-wal"]
    reading.close()
    other.close()
    store.change_task(TASK, sets(status_message="something else"))
    assert files_with(path, SECRET) == []


def test_the_digest_of_a_secret_can_not_be_guessed_without_the_stores_key(
    store: Store, reader: StoreReader, question: QuestionRecord, tmp_path: Path
) -> None:
    """A PIN has ten thousand values: a plain digest of it in an export would tell it."""
    first = answer(store, question)
    assert (first.digest or "").startswith("hmac-sha256:")
    elsewhere = Store.open(tmp_path / "elsewhere" / "inbox.db", clock=lambda: 1)
    elsewhere.add_task(task(), questions=[asked("k000")])
    second = answer(elsewhere, elsewhere.reader.questions(TASK)[0])
    elsewhere.close()
    assert second.digest != first.digest
    store.claim([question.id], owner="me", dead=nobody_is_dead)
    move(store, question, "refused")
    assert answer(store, question).digest == first.digest


def test_each_step_of_an_answer_names_it_by_its_digest(
    store: Store, reader: StoreReader, question: QuestionRecord
) -> None:
    queued = answer(store, question)
    store.claim([question.id], owner="me", dead=nobody_is_dead)
    store.release([question.id], "me")
    told = [json.loads(event.data_json) for event in reader.events(TASK)[-3:]]
    assert {(one["question"], one["digest"]) for one in told} == {(question.id, queued.digest)}
    assert [one.get("response") for one in told] == [KEPT, None, None]


def test_a_change_that_fails_erases_nothing(
    store: Store, reader: StoreReader, question: QuestionRecord
) -> None:
    answer(store, question)
    store.claim([question.id], owner="me", dead=nobody_is_dead)
    unknown = QuestionChange(10_000, "open")
    with pytest.raises(StorageError):
        store.change_task(
            TASK, writes(question_changes=(QuestionChange(question.id, "acknowledged"), unknown))
        )
    assert reader.exact_response(question.id) == EXACT


def test_a_log_that_can_not_be_emptied_takes_nothing_from_what_is_committed(
    store: Store, question: QuestionRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(store, question)
    store.claim([question.id], owner="me", dead=nobody_is_dead)
    real = Connection.value

    def full(connection: Connection, sql: str, *more: Any) -> Any:
        if "wal_checkpoint" in sql:
            raise StorageError("the disk is full")
        return real(connection, sql, *more)

    with monkeypatch.context() as patched:
        patched.setattr(Connection, "value", full)
        assert move(store, question, "acknowledged").state == "acknowledged"
    store.log(NewEvent("something"))
    assert files_with(Path(store._connection.path), SECRET) == []
