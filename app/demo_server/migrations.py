"""The file and its tables: opened, and brought up to date, each migration and its record at once."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Final

from app.demo_server.errors import ServeError

_FIRST: Final = (
    """
    CREATE TABLE task (
        id               TEXT PRIMARY KEY,
        tool             TEXT NOT NULL,
        arguments        TEXT NOT NULL,
        status           TEXT NOT NULL,
        message          TEXT,
        created_ms       INTEGER NOT NULL,
        updated_ms       INTEGER NOT NULL,
        ttl_ms           INTEGER,
        poll_ms          INTEGER NOT NULL,
        position         INTEGER NOT NULL,
        state            TEXT NOT NULL,
        due_ms           INTEGER,
        cancel_requested INTEGER NOT NULL DEFAULT 0,
        result           TEXT,
        error            TEXT
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX task_due ON task (due_ms) WHERE due_ms IS NOT NULL",
    """
    CREATE TABLE question (
        task_id  TEXT NOT NULL REFERENCES task (id) ON DELETE CASCADE,
        key      TEXT NOT NULL,
        position INTEGER NOT NULL,
        request  TEXT NOT NULL,
        response TEXT,
        PRIMARY KEY (task_id, key)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE TABLE secret (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID",
)

_SECOND: Final = (
    """
    CREATE TABLE owned_task (
        owner            TEXT NOT NULL,
        id               TEXT NOT NULL UNIQUE,
        caller           TEXT NOT NULL,
        tool             TEXT NOT NULL,
        arguments        TEXT NOT NULL,
        status           TEXT NOT NULL,
        message          TEXT,
        created_ms       INTEGER NOT NULL,
        updated_ms       INTEGER NOT NULL,
        ttl_ms           INTEGER,
        poll_ms          INTEGER NOT NULL,
        position         INTEGER NOT NULL,
        state            TEXT NOT NULL,
        due_ms           INTEGER,
        cancel_requested INTEGER NOT NULL DEFAULT 0,
        holder           TEXT,
        lease_until_ms   INTEGER,
        attempts         INTEGER NOT NULL DEFAULT 0,
        revision         INTEGER NOT NULL,
        result           TEXT,
        error            TEXT,
        PRIMARY KEY (owner, id)
    ) STRICT, WITHOUT ROWID
    """,
    """
    INSERT INTO owned_task (owner, id, caller, tool, arguments, status, message, created_ms, updated_ms,
        ttl_ms, poll_ms, position, state, due_ms, cancel_requested, revision, result, error)
    SELECT 'local', id, 'local', tool, arguments, status, message, created_ms, updated_ms, ttl_ms, poll_ms,
        position, state, due_ms, cancel_requested, row_number() OVER (ORDER BY updated_ms, id), result, error
    FROM task
    """,
    # What refers to "task" by name refers to the new one from here on.
    "DROP TABLE task",
    "ALTER TABLE owned_task RENAME TO task",
    "CREATE INDEX task_due ON task (due_ms) WHERE due_ms IS NOT NULL",
    "CREATE INDEX task_expiry ON task (created_ms + ttl_ms)",
    "ALTER TABLE question ADD COLUMN answered_by TEXT",
    # One row: the number of the last visible change of any task.
    "CREATE TABLE sequence (revision INTEGER NOT NULL) STRICT",
    "INSERT INTO sequence SELECT count(*) FROM task",
    # Each committed step, for as long as its task is kept: which process did it, at which attempt.
    """
    CREATE TABLE step (
        task_id  TEXT NOT NULL REFERENCES task (id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        holder   TEXT NOT NULL,
        attempts INTEGER NOT NULL,
        at_ms    INTEGER NOT NULL,
        PRIMARY KEY (task_id, position)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TRIGGER step_is_not_changed BEFORE UPDATE ON step
    BEGIN SELECT RAISE(ABORT, 'a step that was done is not changed'); END
    """,
    # Ids of removed tasks, so that their owner can be told what became of them.
    """
    CREATE TABLE gone (
        owner    TEXT NOT NULL,
        id       TEXT NOT NULL,
        until_ms INTEGER NOT NULL,
        PRIMARY KEY (owner, id)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX gone_until ON gone (until_ms)",
)

_MIGRATIONS: Final = (_FIRST, _SECOND)

SCHEMA_VERSION: Final = len(_MIGRATIONS)

BUSY_SECONDS: Final = 1.0
"""How long a transaction waits for one of another process; everything else here waits with it."""
OPENING_SECONDS: Final = 5.0
"""How long opening the file waits, when nothing else does."""


def open_database(path: Path) -> sqlite3.Connection:
    """Open the file at *path*, with the tables of this version.

    Raises:
        ServeError: a newer version wrote the file.
        sqlite3.Error: it can't be opened, or is no database.
    """
    db = sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False)
    db.row_factory = sqlite3.Row
    until = time.monotonic() + OPENING_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            # SQLite doesn't wait where two processes turn a new file into this mode at once.
            if not is_busy(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)
    # A handle that has left must outlive a power cut, so each commit reaches the disk.
    db.execute("PRAGMA synchronous = FULL")
    migrate(db, path)
    db.execute("PRAGMA foreign_keys = ON")
    return db


def is_busy(error: sqlite3.Error) -> bool:
    """Say whether another process held the file for too long: a later attempt may succeed."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest tells kinds of busy apart
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def migrate(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables, or bring an older version's up to date; foreign keys must not be enforced yet.

    Raises:
        ServeError: a newer version wrote the file; it is left as it is.
    """
    while (version := _version(db)) < SCHEMA_VERSION:
        db.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have been here while this one waited for the lock.
            if _version(db) == version:
                _apply(db, version)
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")
    if version > SCHEMA_VERSION:
        db.close()
        raise ServeError(f"the demo service's data at {path} was written by a newer version of taskinbox")


def _apply(db: sqlite3.Connection, version: int) -> None:
    for statement in _MIGRATIONS[version]:
        db.execute(statement)
    if version == 0:
        db.execute("INSERT INTO secret VALUES ('request-state', ?)", (os.urandom(32),))
    db.execute(f"PRAGMA user_version = {version + 1}")


def _version(db: sqlite3.Connection) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    return version
