"""The database's shape, as an ordered list of migrations, and the only way to open the file.

A migration and its record are one transaction: a file is at one version or at the next, never between. A
released migration is never edited; the next one is added at the end of `MIGRATIONS`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from storage.connection import Connection
from storage.errors import StoreTooNew, StoreUnreadable

APPLICATION_ID: Final = 0x7461736B
"""Marks a database file as ours (the letters ``task``)."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step; its number is its place in the list, from 1."""

    name: str
    statements: tuple[str, ...]


_FIRST: Final = Migration(
    "tasks, questions, servers, events",
    (
        """
        CREATE TABLE tasks (
            number INTEGER PRIMARY KEY,
            server TEXT NOT NULL,
            id TEXT NOT NULL,
            kind TEXT NOT NULL CHECK (kind IN ('task', 'call')),
            method TEXT NOT NULL,
            tool TEXT,
            section TEXT CHECK (section IN ('needs-you', 'running', 'finished', 'lost', 'archived')),
            place INTEGER NOT NULL DEFAULT 0,
            open_questions INTEGER NOT NULL DEFAULT 0,
            added_at INTEGER NOT NULL,
            changed_at INTEGER NOT NULL,
            archived_at INTEGER,
            origin_call TEXT,
            became INTEGER REFERENCES tasks (number) ON DELETE CASCADE,
            owner TEXT,
            status TEXT,
            status_message TEXT,
            tracking TEXT NOT NULL CHECK (tracking IN ('active', 'ended', 'lost', 'stopped')),
            reason TEXT,
            problem TEXT,
            created_at INTEGER,
            last_updated_at INTEGER,
            ttl_ms INTEGER,
            poll_interval_ms INTEGER,
            is_error INTEGER NOT NULL DEFAULT 0,
            request_state TEXT,
            round INTEGER NOT NULL DEFAULT 0,
            cancel_requested_at INTEGER,
            cancel_acknowledged_at INTEGER,
            observed_by TEXT,
            UNIQUE (server, id)
        )
        """,
        "CREATE INDEX tasks_by_id ON tasks (id)",
        # Holds all that the order of a section needs: a list of 10,000 never touches the table itself.
        "CREATE INDEX tasks_by_section ON tasks (section, place, number, server, id)",
        "CREATE INDEX tasks_watched ON tasks (number) WHERE tracking = 'active'",
        "CREATE INDEX tasks_became ON tasks (became) WHERE became IS NOT NULL",
        # Beside the tasks, since these texts are long and the list never reads them.
        """
        CREATE TABLE texts (
            task INTEGER PRIMARY KEY REFERENCES tasks (number) ON DELETE CASCADE,
            params_json TEXT NOT NULL,
            result_json TEXT,
            error_json TEXT,
            snapshot_json TEXT
        )
        """,
        """
        CREATE TABLE questions (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            task INTEGER NOT NULL REFERENCES tasks (number) ON DELETE CASCADE,
            key TEXT NOT NULL,
            round INTEGER NOT NULL,
            fingerprint TEXT NOT NULL,
            method TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN
                ('open', 'refused', 'queued', 'sent', 'acknowledged', 'settled', 'withdrawn')),
            position INTEGER NOT NULL,
            asked_at INTEGER NOT NULL,
            fault TEXT,
            refusal TEXT,
            still_asked INTEGER NOT NULL DEFAULT 0,
            answered_by TEXT,
            queued_at INTEGER,
            sent_at INTEGER,
            acknowledged_at INTEGER,
            closed_at INTEGER,
            owner TEXT,
            attempts INTEGER NOT NULL DEFAULT 0,
            draft_json TEXT,
            typed_json TEXT,
            response_json TEXT,
            request_json TEXT NOT NULL,
            UNIQUE (task, position)
        )
        """,
        "CREATE INDEX questions_to_deliver ON questions (queued_at) WHERE state IN ('queued', 'sent')",
        """
        CREATE TABLE servers (
            name TEXT PRIMARY KEY,
            state TEXT NOT NULL CHECK (state IN ('unknown', 'ok', 'unreachable', 'sign-in', 'faulty')),
            since INTEGER NOT NULL,
            message TEXT,
            info_json TEXT,
            checked_at INTEGER
        )
        """,
        """
        CREATE TABLE events (
            seq INTEGER PRIMARY KEY AUTOINCREMENT,
            at INTEGER NOT NULL,
            server TEXT,
            task_id TEXT,
            kind TEXT NOT NULL,
            data_json TEXT NOT NULL
        )
        """,
        # Counted up to make a commit that takes all earlier ones to the disk with it. An update that changes
        # nothing would not do: SQLite leaves out pages whose content stays the same.
        "CREATE TABLE syncs (count INTEGER NOT NULL)",
        "INSERT INTO syncs VALUES (0)",
        "CREATE INDEX events_of_task ON events (server, task_id, seq)",
        """
        CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
        BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END
        """,
        """
        CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events
        BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END
        """,
        # INSERT OR REPLACE deletes without firing the trigger above.
        """
        CREATE TRIGGER events_are_not_replaced BEFORE INSERT ON events
        WHEN EXISTS (SELECT 1 FROM events WHERE seq = NEW.seq)
        BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END
        """,
    ),
)

_SECOND: Final = Migration(
    "digests, secrets apart, saved replies, leave to ask on",
    (
        "ALTER TABLE questions ADD COLUMN digest TEXT",
        "ALTER TABLE questions ADD COLUMN withheld INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE tasks ADD COLUMN leave INTEGER NOT NULL DEFAULT 0",
        # Apart from the questions, so that their bytes are in this table's pages alone, and are erased there.
        """
        CREATE TABLE secrets (
            question INTEGER PRIMARY KEY REFERENCES questions (id) ON DELETE CASCADE,
            response_json TEXT NOT NULL
        )
        """,
        "CREATE TABLE digest_key (key BLOB NOT NULL)",
        "INSERT INTO digest_key VALUES (randomblob(32))",
        """
        CREATE TABLE replies (
            fingerprint TEXT NOT NULL,
            name TEXT NOT NULL,
            draft_json TEXT NOT NULL,
            saved_at INTEGER NOT NULL,
            PRIMARY KEY (fingerprint, name)
        )
        """,
    ),
)

MIGRATIONS: Final[tuple[Migration, ...]] = (_FIRST, _SECOND)


def open_database(path: Path, *, migrations: Sequence[Migration] = MIGRATIONS) -> Connection:
    """Open the database at *path*, made (0600, in a folder 0700) or brought up to date where needed.

    A file that is not ours, or too new, is left as it is.

    Raises:
        StoreUnreadable: the file can't be opened, is damaged, or belongs to another program.
        StoreTooNew: a newer version of this program wrote it.
        StoreBusy: another program held the write lock for too long.
    """
    _make_private(path)
    connection = Connection(path)
    try:
        _check_owner(connection)
        connection.configure()
        migrate(connection, migrations)
    except BaseException:
        connection.close()
        raise
    return connection


def migrate(connection: Connection, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Apply the migrations that the database lacks; returns how many."""
    applied = 0
    while (version := _version(connection)) < len(migrations):
        connection.sync_commits(True)
        with connection.transaction():
            _check_owner(connection)
            # Another program may have migrated while this one waited for the lock.
            if _version(connection) == version:
                _apply(connection, version + 1, migrations[version])
                applied += 1
    connection.sync_commits(False)
    if version > len(migrations):
        raise StoreTooNew(
            f"{connection.path} is at version {version}, and this program knows {len(migrations)}: "
            "a newer taskinbox wrote it, so use that one"
        )
    return applied


def _apply(connection: Connection, number: int, migration: Migration) -> None:
    if number == 1:
        connection.run(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.run(
            "CREATE TABLE migrations "
            "(number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)"
        )
    for statement in migration.statements:
        connection.run(statement)
    connection.run(
        "INSERT INTO migrations VALUES (?, ?, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))",
        (number, migration.name),
    )


def _version(connection: Connection) -> int:
    if connection.value("PRAGMA application_id") != APPLICATION_ID:
        return 0
    version: int = connection.value("SELECT max(number) FROM migrations")
    return version


def _check_owner(connection: Connection) -> None:
    mark = connection.value("PRAGMA application_id")
    is_empty = connection.value("SELECT count(*) FROM sqlite_master") == 0
    if mark != APPLICATION_ID and not (mark == 0 and is_empty):
        raise StoreUnreadable(f"{connection.path} is another program's database; it was left as it is")


def _make_private(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        # SQLite gives the -wal and -shm files the mode of the database file, when it makes them.
        for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
            if file.exists() and file.stat().st_mode & 0o077:
                file.chmod(0o600)
    except OSError as error:
        raise StoreUnreadable(f"{path} can't be opened: {error.strerror or error}") from error
