"""What survives a crash: tasks and their questions, in a SQLite file of the service's own.

Each public method is one transaction. What changes a task is written through to the disk before the method
returns, so whatever was said to a client is found again by a fresh process. Any number of processes may have
the file open. The methods block for about a millisecond and are called on the event loop's thread: that makes
each of them atomic to every other request, which is worth more here than throughput.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from app.demo_server.errors import INTERNAL_ERROR, ServeError
from app.demo_server.migrations import open_database
from app.demo_server.records import CANCELLED, Change, Question, Task
from app.paths import private_file, private_folder

AFTERLIFE_MS: Final = 3600 * 1000
"""How long a task that failed because its time ran out can still be read."""
TOMBSTONE_MS: Final = 7 * 24 * 3600 * 1000
"""How long the owner of a removed task is told that it has expired."""
CLEAN_LIMIT: Final = 100
"""The most rows that one clean-up changes of each kind: it must not hold up the other processes."""

_UNFINISHED: Final = "(status IN ('working', 'input_required'))"
_PAST_TTL: Final = "created_ms + ttl_ms <= :now"
_LEASED: Final = "holder = :holder AND lease_until_ms > :now"
_NEW_REVISION: Final = "revision = (SELECT revision + 1 FROM sequence)"
_EXPIRED: Final = {"code": INTERNAL_ERROR, "message": "the task has expired: its time to live ran out"}

_CLAIM: Final = f"""
UPDATE task SET holder = :holder, lease_until_ms = :until, attempts = attempts + 1
WHERE (owner, id) IN (
    SELECT owner, id FROM task
    WHERE due_ms <= :now AND coalesce(lease_until_ms <= :now, TRUE) AND coalesce(NOT {_PAST_TTL}, TRUE)
    ORDER BY due_ms, id LIMIT 1)
RETURNING *
"""

_FAIL_EXPIRED: Final = f"""
UPDATE task SET status = 'failed', message = 'Failed: its time to live ran out', error = :error,
    ttl_ms = :now - created_ms + :afterlife, updated_ms = :now, due_ms = NULL,
    holder = NULL, lease_until_ms = NULL, {_NEW_REVISION}
WHERE {_UNFINISHED} AND {_PAST_TTL}
"""

_ADVANCE: Final = f"""
UPDATE task SET status = :status, message = :message, state = :state, due_ms = :due, result = :result,
    error = :error, ttl_ms = coalesce(:ttl, ttl_ms), updated_ms = :now, position = position + 1,
    holder = NULL, lease_until_ms = NULL, attempts = 0, {_NEW_REVISION}
WHERE owner = :owner AND id = :id AND position = :position AND {_LEASED}
"""


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
            return cls(open_database(path))
        except (OSError, sqlite3.Error) as error:
            raise ServeError(f"the demo service's data at {path} can't be used: {error}") from error

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
                "INSERT INTO task (owner, id, caller, tool, arguments, status, message, created_ms,"
                " updated_ms, ttl_ms, poll_ms, position, state, due_ms, revision)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT revision + 1 FROM sequence))",
                (
                    task.owner,
                    task.id,
                    task.caller,
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
            self._count_change()

    def get(self, owner: str, task_id: str) -> Task | None:
        """Return the task of *owner* with this id, or ``None``: for another's id, too."""
        with self._read():
            row = self._db.execute(
                "SELECT * FROM task WHERE owner = ? AND id = ?", (owner, task_id)
            ).fetchone()
            return None if row is None else self._task(row)

    def is_gone(self, owner: str, task_id: str) -> bool:
        """Say whether *owner* had a task with this id, which expired and was removed not long ago."""
        found = self._db.execute("SELECT 1 FROM gone WHERE owner = ? AND id = ?", (owner, task_id))
        return found.fetchone() is not None

    def revision(self) -> int:
        """Return the number of the last visible change of any task, by any process."""
        number: int = self._db.execute("SELECT revision FROM sequence").fetchone()[0]
        return number

    def changed_since(self, owner: str, revision: int, ids: Iterable[str]) -> list[Task]:
        """Return those of *owner*'s tasks among *ids* that changed after *revision*, oldest change first.

        A task is returned once, as it is now. One that was removed is not returned. Ids that are not the
        owner's are passed over.
        """
        with self._read():
            rows = self._db.execute(
                "SELECT * FROM task WHERE owner = ? AND id IN (SELECT value FROM json_each(?))"
                " AND revision > ? ORDER BY revision, id",
                (owner, json.dumps(list(ids)), revision),
            ).fetchall()
            return [self._task(row) for row in rows]

    def claim(self, holder: str, now_ms: int, lease_ms: int) -> Task | None:
        """Lease the task whose step has been due longest to *holder*, for *lease_ms*; ``None``: none is due.

        Of any number of processes one gets it. A task that another holds is due again when that lease ends.
        """
        # A claim needs no disk: it means something only to processes that the same power cut ends.
        with self._write(synced=False):
            rows = self._db.execute(
                _CLAIM, {"holder": holder, "now": now_ms, "until": now_ms + lease_ms}
            ).fetchall()
            return self._task(rows[0]) if rows else None

    def renew(self, task: Task, holder: str, now_ms: int, lease_ms: int) -> bool:
        """Lengthen a lease to *lease_ms* from now; say whether it was still *holder*'s."""
        with self._write(synced=False):
            renewed = self._db.execute(
                f"UPDATE task SET lease_until_ms = :until WHERE owner = :owner AND id = :id AND {_LEASED}",
                {
                    "until": now_ms + lease_ms,
                    "owner": task.owner,
                    "id": task.id,
                    "holder": holder,
                    "now": now_ms,
                },
            ).rowcount
            return bool(renewed)

    def next_due(self) -> int | None:
        """Return when a step can next be claimed, or ``None`` while every task waits or has ended."""
        row = self._db.execute(
            "SELECT MIN(max(due_ms, coalesce(lease_until_ms, 0))) FROM task WHERE due_ms IS NOT NULL"
        ).fetchone()
        due: int | None = row[0]
        return due

    def advance(self, task: Task, change: Change, holder: str, now_ms: int) -> bool:
        """Commit one step and its entry in the ledger, and give the lease back; say whether it counted.

        It doesn't where the lease has run out or is another's, or the task is no longer at the position that
        the step was computed from.
        """
        values = {
            "status": change.status,
            "message": change.message,
            "state": _dump(change.state),
            "due": change.due_ms,
            "result": None if change.result is None else _dump(change.result),
            "error": None if change.error is None else _dump(change.error),
            "ttl": change.ttl_ms,
        }
        where = {"owner": task.owner, "id": task.id, "position": task.position, "holder": holder}
        with self._write():
            if change.yields_to_cancel and self._is_unwanted(task):
                values |= {"status": "cancelled", "message": CANCELLED, "ttl": None}
                change = replace(change, asks={})
            if not self._db.execute(_ADVANCE, {**values, **where, "now": now_ms}).rowcount:
                return False
            self._db.execute(
                "INSERT INTO step (task_id, position, holder, attempts, at_ms)"
                " VALUES (:id, :position, :holder, :attempts, :now)",
                {**where, "attempts": task.attempts, "now": now_ms},
            )
            self._insert_questions(task.id, [Question(key, ask) for key, ask in change.asks.items()])
            self._count_change()
            return True

    def _is_unwanted(self, task: Task) -> bool:
        row = self._db.execute(
            "SELECT cancel_requested FROM task WHERE owner = ? AND id = ?", (task.owner, task.id)
        ).fetchone()
        return row is not None and bool(row[0])

    def answer(
        self, owner: str, task_id: str, responses: Mapping[str, Mapping[str, Any]], by: str, now_ms: int
    ) -> None:
        """Record *responses* to outstanding questions; a task with none left goes on at once.

        *by* is the principal who brought them.
        """
        with self._write():
            taken = 0
            for key, response in responses.items():
                taken += self._db.execute(
                    "UPDATE question SET response = ?, answered_by = ?"
                    " WHERE task_id = ? AND key = ? AND response IS NULL AND EXISTS"
                    " (SELECT 1 FROM task WHERE owner = ? AND id = task_id AND status = 'input_required')",
                    (_dump(response), by, task_id, key, owner),
                ).rowcount
            if not taken:
                return
            self._db.execute(
                f"UPDATE task SET updated_ms = ?, {_NEW_REVISION} WHERE owner = ? AND id = ?",
                (now_ms, owner, task_id),
            )
            self._db.execute(
                "UPDATE task SET status = 'working', message = 'Answered; going on', due_ms = ?"
                " WHERE owner = ? AND id = ?"
                " AND NOT EXISTS (SELECT 1 FROM question WHERE task_id = task.id AND response IS NULL)",
                (now_ms, owner, task_id),
            )
            self._count_change()

    def cancel(self, owner: str, task_id: str, message: str, now_ms: int) -> None:
        """Cancel a waiting task at once; note the wish on a working one; leave an ended one alone."""
        with self._write():
            ended = self._db.execute(
                "UPDATE task SET status = 'cancelled', message = ?, updated_ms = ?, cancel_requested = 1,"
                f" {_NEW_REVISION} WHERE owner = ? AND id = ? AND status = 'input_required'",
                (message, now_ms, owner, task_id),
            ).rowcount
            if ended:
                self._count_change()
                return
            # Nothing that a client can see changes by this.
            self._db.execute(
                "UPDATE task SET cancel_requested = 1 WHERE owner = ? AND id = ? AND status = 'working'",
                (owner, task_id),
            )

    def fail_expired(self, owner: str, task_id: str, now_ms: int) -> None:
        """Fail this task where it is unfinished past its time: what a clean-up would do, only now."""
        with self._write():
            values = _expiry(now_ms) | {"owner": owner, "id": task_id}
            if self._db.execute(f"{_FAIL_EXPIRED} AND owner = :owner AND id = :id", values).rowcount:
                self._count_change()

    def clean(self, now_ms: int, limit: int = CLEAN_LIMIT) -> int:
        """Fail unfinished tasks past their time, and remove ended ones; return how many of both.

        No lease is asked for: whoever comes first does it, also to a task that another process is working
        on, whose step then no longer counts. What a removed task leaves is its id, for its owner.
        """
        if not self._has_expired(now_ms):
            return 0
        values = _expiry(now_ms) | {"limit": limit}
        some = f"SELECT owner, id FROM task WHERE {{}} {_UNFINISHED} AND {_PAST_TTL} LIMIT :limit"
        with self._write():
            fail = f"{_FAIL_EXPIRED} AND (owner, id) IN ({some.format('')})"
            failed = self._db.execute(fail, values).rowcount
            if failed:
                self._count_change()
            ids = [tuple(row) for row in self._db.execute(some.format("NOT"), values)]
            until = now_ms + TOMBSTONE_MS
            self._db.executemany("INSERT INTO gone VALUES (?, ?, ?)", [(*key, until) for key in ids])
            self._db.executemany("DELETE FROM task WHERE owner = ? AND id = ?", ids)
            self._db.execute(
                "DELETE FROM gone WHERE (owner, id) IN"
                " (SELECT owner, id FROM gone WHERE until_ms <= :now LIMIT :limit)",
                values,
            )
            return failed + len(ids)

    def _has_expired(self, now_ms: int) -> bool:
        found = self._db.execute(
            f"SELECT EXISTS (SELECT 1 FROM task WHERE {_PAST_TTL})"
            " OR EXISTS (SELECT 1 FROM gone WHERE until_ms <= :now)",
            {"now": now_ms},
        )
        return bool(found.fetchone()[0])

    @contextmanager
    def _write(self, *, synced: bool = True) -> Iterator[None]:
        if not synced:
            self._db.execute("PRAGMA synchronous = NORMAL")
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
        finally:
            if not synced:
                self._db.execute("PRAGMA synchronous = FULL")

    @contextmanager
    def _read(self) -> Iterator[None]:
        """Show a task and its questions at one moment, while other processes write."""
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            self._db.execute("COMMIT")

    def _count_change(self) -> None:
        self._db.execute("UPDATE sequence SET revision = revision + 1")

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
            owner=row["owner"],
            caller=row["caller"],
            attempts=row["attempts"],
            revision=row["revision"],
        )


def _expiry(now_ms: int) -> dict[str, Any]:
    return {"now": now_ms, "error": _dump(_EXPIRED), "afterlife": AFTERLIFE_MS}


def _dump(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _load(text: str | None) -> Mapping[str, Any] | None:
    value: Mapping[str, Any] | None = None if text is None else json.loads(text)
    return value
