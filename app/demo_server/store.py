"""What survives a crash: tasks and their questions, in a SQLite file of the service's own.

Each public method is one transaction, written through to the disk before it returns, so whatever was said to
a client is found again by a fresh process. The methods block for about a millisecond and are called on the
event loop's thread: that makes each of them atomic to every other request, which is worth more here than
throughput.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from app.demo_server.errors import ServeError
from app.paths import private_file, private_folder

Status = Literal["working", "input_required", "completed", "failed", "cancelled"]
"""The five statuses of the Tasks extension."""

SCHEMA_VERSION: Final = 1

_SCHEMA: Final = """
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
) STRICT, WITHOUT ROWID;
CREATE INDEX task_due ON task (due_ms) WHERE due_ms IS NOT NULL;
CREATE TABLE question (
    task_id  TEXT NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    key      TEXT NOT NULL,
    position INTEGER NOT NULL,
    request  TEXT NOT NULL,
    response TEXT,
    PRIMARY KEY (task_id, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE secret (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Question:
    """One request for input, and the response once there is one."""

    key: str
    """Unique over the task's life: the table's primary key holds it."""
    request: Mapping[str, Any]
    response: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A job as it is on disk."""

    id: str
    tool: str
    arguments: Mapping[str, Any]
    created_ms: int
    """Milliseconds since the epoch, as all times here."""
    updated_ms: int
    ttl_ms: int | None
    """From creation; ``None`` is unlimited."""
    poll_ms: int
    due_ms: int | None
    """When the next step may run; ``None`` while the task waits for answers, and once it has ended."""
    status: Status = "working"
    message: str | None = None
    position: int = 0
    """How many steps are done. A step is committed only onto the position it was computed from."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """What the tool wants to find at its next step."""
    cancel_requested: bool = False
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    questions: tuple[Question, ...] = ()

    @property
    def outstanding(self) -> dict[str, Mapping[str, Any]]:
        """Return the requests nobody has answered, by key, in the order they were asked."""
        return {q.key: q.request for q in self.questions if q.response is None}


@dataclass(frozen=True, slots=True)
class Change:
    """What one step makes of a task; fields left out stay as they are."""

    status: Status
    message: str | None = None
    state: Mapping[str, Any] = field(default_factory=dict)
    due_ms: int | None = None
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    asks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class Store:
    """The tasks on disk."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    @classmethod
    def open(cls, path: Path) -> Store:
        """Open the file at *path*, making it and its folder where they are missing.

        Raises:
            ServeError: the file can't be opened, is no database of this service, or is a newer version's.
        """
        try:
            private_folder(path.parent)
            private_file(path)
            db = sqlite3.connect(path, isolation_level=None, timeout=10, check_same_thread=False)
            db.execute("PRAGMA journal_mode = WAL")
            # A handle that has left must outlive a power cut, so each commit reaches the disk.
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA foreign_keys = ON")
            _migrate(db, path)
        except (OSError, sqlite3.Error) as error:
            raise ServeError(f"the demo service's data at {path} can't be used: {error}") from error
        return cls(db)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @property
    def request_state_key(self) -> bytes:
        """The key that request states are signed with: made with the file, and the same in every process."""
        row = self._db.execute("SELECT value FROM secret WHERE name = 'request-state'").fetchone()
        return bytes(row[0])

    def create(self, task: Task) -> None:
        """Write a new task and its questions; once this returns, every process finds it."""
        with self._write():
            self._db.execute(
                "INSERT INTO task (id, tool, arguments, status, message, created_ms, updated_ms, ttl_ms,"
                " poll_ms, position, state, due_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    task.id,
                    task.tool,
                    _dump(task.arguments),
                    task.status,
                    task.message,
                    task.created_ms,
                    task.updated_ms,
                    task.ttl_ms,
                    task.poll_ms,
                    task.position,
                    _dump(task.state),
                    task.due_ms,
                ),
            )
            self._insert_questions(task.id, task.questions)

    def get(self, task_id: str) -> Task | None:
        """Return the task with this id, or ``None``."""
        row = self._db.execute("SELECT * FROM task WHERE id = ?", (task_id,)).fetchone()
        return None if row is None else self._task(row)

    def due(self, now_ms: int) -> Task | None:
        """Return the working task whose step has been due longest, or ``None``."""
        row = self._db.execute(
            "SELECT * FROM task WHERE due_ms <= ? ORDER BY due_ms, id LIMIT 1", (now_ms,)
        ).fetchone()
        return None if row is None else self._task(row)

    def next_due(self) -> int | None:
        """Return when the next step is due, or ``None`` while every task waits or has ended."""
        row = self._db.execute("SELECT MIN(due_ms) FROM task WHERE due_ms IS NOT NULL").fetchone()
        due: int | None = row[0]
        return due

    def advance(self, task: Task, change: Change, now_ms: int) -> bool:
        """Commit one step; say whether it counted.

        It doesn't where another step, or a cancellation, came first: the position tells.
        """
        with self._write():
            done = self._db.execute(
                "UPDATE task SET status = ?, message = ?, state = ?, due_ms = ?, result = ?, error = ?,"
                " updated_ms = ?, position = position + 1"
                " WHERE id = ? AND position = ? AND due_ms IS NOT NULL",
                (
                    change.status,
                    change.message,
                    _dump(change.state),
                    change.due_ms,
                    None if change.result is None else _dump(change.result),
                    None if change.error is None else _dump(change.error),
                    now_ms,
                    task.id,
                    task.position,
                ),
            ).rowcount
            if done:
                self._insert_questions(task.id, [Question(key, ask) for key, ask in change.asks.items()])
            return bool(done)

    def answer(self, task_id: str, responses: Mapping[str, Mapping[str, Any]], now_ms: int) -> None:
        """Record *responses* to outstanding questions; a task with none left goes on at once."""
        with self._write():
            taken = 0
            for key, response in responses.items():
                taken += self._db.execute(
                    "UPDATE question SET response = ? WHERE task_id = ? AND key = ? AND response IS NULL"
                    " AND EXISTS (SELECT 1 FROM task WHERE id = task_id AND status = 'input_required')",
                    (_dump(response), task_id, key),
                ).rowcount
            if not taken:
                return
            self._db.execute("UPDATE task SET updated_ms = ? WHERE id = ?", (now_ms, task_id))
            self._db.execute(
                "UPDATE task SET status = 'working', message = 'Answered; going on', due_ms = ? WHERE id = ?"
                " AND NOT EXISTS (SELECT 1 FROM question WHERE task_id = task.id AND response IS NULL)",
                (now_ms, task_id),
            )

    def cancel(self, task_id: str, message: str, now_ms: int) -> None:
        """Cancel a waiting task at once; note the wish on a working one; leave an ended one alone."""
        with self._write():
            self._db.execute(
                "UPDATE task SET status = 'cancelled', message = ?, updated_ms = ?, cancel_requested = 1"
                " WHERE id = ? AND status = 'input_required'",
                (message, now_ms, task_id),
            )
            self._db.execute(
                "UPDATE task SET cancel_requested = 1 WHERE id = ? AND status = 'working'", (task_id,)
            )

    @contextmanager
    def _write(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _insert_questions(self, task_id: str, questions: Sequence[Question]) -> None:
        (count,) = self._db.execute("SELECT COUNT(*) FROM question WHERE task_id = ?", (task_id,)).fetchone()
        for position, question in enumerate(questions, start=count):
            response = None if question.response is None else _dump(question.response)
            self._db.execute(
                "INSERT INTO question (task_id, key, position, request, response) VALUES (?, ?, ?, ?, ?)",
                (task_id, question.key, position, _dump(question.request), response),
            )

    def _task(self, row: sqlite3.Row) -> Task:
        questions = self._db.execute(
            "SELECT key, request, response FROM question WHERE task_id = ? ORDER BY position", (row["id"],)
        )
        return Task(
            id=row["id"],
            tool=row["tool"],
            arguments=json.loads(row["arguments"]),
            created_ms=row["created_ms"],
            updated_ms=row["updated_ms"],
            ttl_ms=row["ttl_ms"],
            poll_ms=row["poll_ms"],
            due_ms=row["due_ms"],
            status=row["status"],
            message=row["message"],
            position=row["position"],
            state=json.loads(row["state"]),
            cancel_requested=bool(row["cancel_requested"]),
            result=_load(row["result"]),
            error=_load(row["error"]),
            questions=tuple(
                Question(q["key"], json.loads(q["request"]), _load(q["response"])) for q in questions
            ),
        )


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    db.row_factory = sqlite3.Row
    db.execute("BEGIN IMMEDIATE")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version == 0:
        # Not executescript: it would commit the transaction that makes the tables and their version one step.
        for statement in filter(str.strip, _SCHEMA.split(";")):
            db.execute(statement)
        db.execute("INSERT INTO secret VALUES ('request-state', ?)", (os.urandom(32),))
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    db.execute("COMMIT")
    if version > SCHEMA_VERSION:
        db.close()
        raise ServeError(f"the demo service's data at {path} was written by a newer version of taskinbox")


def _dump(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _load(text: str | None) -> Mapping[str, Any] | None:
    value: Mapping[str, Any] | None = None if text is None else json.loads(text)
    return value
