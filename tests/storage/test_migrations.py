"""The database file: made, brought up to date, or refused and left as it is."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest
from fakes.stored import TASK, Ticking, asked, task

from storage.connection import Connection
from storage.errors import StorageError, StoreBusy, StoreTooNew, StoreUnreadable
from storage.migrations import APPLICATION_ID, MIGRATIONS, Migration, open_database
from storage.records import TaskKey
from storage.store import Store, StoreReader

NEXT = Migration(
    "labels",
    (
        "ALTER TABLE tasks ADD COLUMN label TEXT NOT NULL DEFAULT 'none'",
        "UPDATE tasks SET label = tool WHERE tool IS NOT NULL",
    ),
)
FAILING = Migration(
    "fails", ("CREATE TABLE half (a)", "DROP TABLE questions", "INSERT INTO nowhere VALUES (1)")
)


def filled(path: Path) -> None:
    """Make a database as the present version leaves it, with something in it."""
    store = Store.open(path, clock=Ticking())
    store.add_task(task(status="working"), questions=[asked()])
    store.save_draft(store.reader.questions(TASK)[0].id, '{"a": "typed"}')
    store.close()


def test_a_new_database_is_private_and_marked_as_ours(path: Path) -> None:
    previous = os.umask(0)
    try:
        store = Store.open(path, clock=Ticking())
        store.add_task(task())
        files = sorted(path.parent.iterdir())
        assert [file.name for file in files] == ["inbox.db", "inbox.db-shm", "inbox.db-wal"]
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
        assert path.parent.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(previous)
    connection = store._connection
    assert connection.value("PRAGMA application_id") == APPLICATION_ID
    assert connection.value("PRAGMA journal_mode") == "wal"
    assert connection.value("PRAGMA foreign_keys") == 1
    assert [row[:2] for row in connection.all("SELECT * FROM migrations")] == [
        (number, migration.name) for number, migration in enumerate(MIGRATIONS, 1)
    ]
    store.close()


def test_files_that_others_could_read_are_made_private(path: Path) -> None:
    filled(path)
    path.chmod(0o644)
    Store.open(path, clock=Ticking()).close()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("version", range(len(MIGRATIONS)))
def test_each_migration_applies_to_its_predecessor(path: Path, version: int) -> None:
    open_database(path, migrations=MIGRATIONS[:version]).close()
    connection = open_database(path, migrations=MIGRATIONS[: version + 1])
    assert connection.value("SELECT max(number) FROM migrations") == version + 1
    assert connection.all("PRAGMA foreign_key_check") == []
    connection.close()


def test_the_next_migration_keeps_what_is_stored(path: Path) -> None:
    filled(path)
    connection = open_database(path, migrations=(*MIGRATIONS, NEXT))
    assert connection.value("SELECT label FROM tasks") == "deploy"
    reader = StoreReader(connection)
    assert reader.keys("needs-you") == [TASK]
    assert reader.questions(TASK)[0].draft_json == '{"a": "typed"}'
    connection.close()


def test_what_the_first_version_stored_is_read_by_this_one(path: Path) -> None:
    first = open_database(path, migrations=MIGRATIONS[:1])
    first.run(
        "INSERT INTO tasks (number, server, id, kind, method, added_at, changed_at, tracking, section) "
        "VALUES (1, 'ci', 'tsk_1', 'task', 'tools/call', 1, 1, 'active', 'running')"
    )
    first.run("INSERT INTO texts (task, params_json) VALUES (1, '{}')")
    first.run(
        "INSERT INTO questions (task, key, round, fingerprint, method, state, position, asked_at, "
        "response_json, request_json) VALUES (1, 'q', 0, 'f', 'm', 'queued', 0, 1, '{\"n\": 1.10}', '{}')"
    )
    first.close()
    store = Store.open(path, clock=Ticking())
    (question,) = store.pending_answers()
    assert (question.withheld, question.digest, question.response_json) == (False, None, '{"n": 1.10}')
    assert store.reader.exact_response(question.id) == '{"n": 1.10}'
    assert store.claim([question.id], owner="me", dead=lambda _: False) == (question.id,)
    stored = store.reader.task(TASK)
    assert stored is not None
    assert stored.leave == 0
    store.close()


def test_a_migration_is_applied_once(path: Path) -> None:
    for _ in range(2):
        open_database(path, migrations=(*MIGRATIONS, NEXT)).close()
    connection = open_database(path, migrations=(*MIGRATIONS, NEXT))
    assert connection.value("SELECT count(*) FROM migrations") == len(MIGRATIONS) + 1
    connection.close()


def test_a_migration_that_fails_leaves_the_database_as_it_was(path: Path) -> None:
    filled(path)
    with pytest.raises(StorageError, match="nowhere"):
        open_database(path, migrations=(*MIGRATIONS, FAILING))
    store = Store.open(path, clock=Ticking())
    assert store.reader.questions(TASK)[0].draft_json == '{"a": "typed"}'
    assert store._connection.value("SELECT count(*) FROM sqlite_master WHERE name = 'half'") == 0
    store.close()


@pytest.mark.parametrize("opened", [lambda path: Store.open(path, clock=Ticking()), StoreReader.open])
def test_a_newer_database_is_refused_and_left_as_it_is(path: Path, opened: object) -> None:
    filled(path)
    open_database(path, migrations=(*MIGRATIONS, NEXT)).close()
    before = path.read_bytes()
    with pytest.raises(StoreTooNew, match=f"version {len(MIGRATIONS) + 1}"):
        opened(path)  # type: ignore[operator]
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE theirs (a)"],
        ["PRAGMA application_id = 77"],
        ["PRAGMA user_version = 3", "CREATE TABLE t (a)"],
    ],
)
def test_another_programs_database_is_refused_and_left_as_it_is(
    tmp_path: Path, statements: list[str]
) -> None:
    path = tmp_path / "theirs.db"
    foreign = sqlite3.connect(path)
    for statement in statements:
        foreign.execute(statement)
    foreign.commit()
    foreign.close()
    before = path.read_bytes()
    with pytest.raises(StoreUnreadable, match="another program"):
        Store.open(path, clock=Ticking())
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["theirs.db"]


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("buy milk\n" * 1000)
    with pytest.raises(StoreUnreadable, match=r"notes\.txt"):
        Store.open(path, clock=Ticking())
    assert path.read_text() == "buy milk\n" * 1000


def test_a_damaged_database_is_named_as_such(path: Path) -> None:
    filled(path)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(StoreUnreadable, match=r"inbox\.db"):
        Store.open(path, clock=Ticking()).add_task(task(TaskKey("ci", "other")))


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: (path.parent / "inbox.db").mkdir()])
def test_a_path_that_can_not_be_opened_is_a_clear_error(tmp_path: Path, make: object) -> None:
    path = tmp_path / "inbox.db"
    make(path)  # type: ignore[operator]
    with pytest.raises(StoreUnreadable):
        Store.open(path, clock=Ticking())


def test_a_folder_that_is_a_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(StoreUnreadable, match="can't be opened"):
        Store.open(tmp_path / "data" / "inbox.db", clock=Ticking())


def test_a_path_with_signs_that_mean_something_in_an_address_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "a?mode=memory#b %41" / "inbox.db"
    filled(path)
    assert path.stat().st_size > 0


def test_a_lock_held_too_long_is_named_as_such(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.connection.BUSY_TIMEOUT_MS", 50)
    store = Store.open(path, clock=Ticking())
    other = Connection(path)
    with other.transaction(), pytest.raises(StoreBusy, match="another program"):
        store.add_task(task())
    other.close()
    assert store.add_task(task())
    store.close()
