"""The writing half of the store: each public method is one transaction.

What a person or a tool call would lose for good (answers, claims, calls, tasks) is on the disk when the
method returns. What a server can be asked again (observations) is safe from a crash of this program at once,
and from a power failure a little later.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path

from storage import answers, rows, writing
from storage.connection import Connection
from storage.errors import StorageError, UnknownTask
from storage.migrations import open_database
from storage.reader import StoreReader
from storage.records import (
    NewEvent,
    NewQuestion,
    NewTask,
    QuestionRecord,
    Reply,
    ServerRecord,
    TaskKey,
    TaskRecord,
    TaskRow,
    TaskWrites,
)

__all__ = ["Decide", "Store", "StoreReader"]

Decide = Callable[[TaskRecord, tuple[QuestionRecord, ...]], TaskWrites]
"""Pure: from the stored task and its own questions to what is to be written."""


class Store:
    """The writer; used by one thread at a time."""

    def __init__(self, connection: Connection, clock: Callable[[], int]) -> None:
        """Write through *connection*; `open` is the usual way. *clock*: milliseconds since the epoch."""
        self._connection = connection
        self._clock = clock
        self._is_grouped = False
        self._must_sync = False
        self.reader = StoreReader(connection)
        """Reads what this writer wrote, on its connection; for the writer's thread."""

    @classmethod
    def open(cls, path: Path, *, clock: Callable[[], int]) -> Store:
        """Open the database at *path*, made or brought up to date where needed.

        Raises:
            StoreUnreadable: the file can't be opened, is damaged, or belongs to another program.
            StoreTooNew: a newer version of this program wrote it.
            StoreBusy: another program held the write lock for too long.
        """
        return cls(open_database(path), clock)

    def close(self) -> None:
        """Close the store; what is saved stays."""
        self._connection.close()

    @contextmanager
    def group(self) -> Iterator[None]:
        """Commit all that is done inside together; a verb that raises undoes itself alone."""
        self._connection.sync_commits(False)
        self._must_sync = False
        with self._connection.transaction():
            self._is_grouped = True
            try:
                yield
            finally:
                self._is_grouped = False
        self._sync_if_due()
        self._connection.empty_log()

    @contextmanager
    def _write(self, *, durable: bool) -> Iterator[int]:
        """Hold a transaction, or a savepoint within a group; yields the time."""
        if self._is_grouped:
            if not self._connection.in_transaction:
                raise StorageError("an earlier failure undid the whole group; nothing of it was saved")
            self._must_sync |= durable
            with self._connection.savepoint():
                yield self._clock()
            return
        self._connection.sync_commits(durable)
        self._must_sync = False
        with self._connection.transaction():
            yield self._clock()
        if not durable:
            self._sync_if_due()
        self._connection.empty_log()

    def _sync_if_due(self) -> None:
        # Whether an observation matters this much is known only inside its transaction, where the level of
        # durability can't be changed any more. A synced commit takes all earlier ones with it to the disk.
        if self._must_sync:
            self._must_sync = False
            self._connection.sync_commits(True)
            with self._connection.transaction():
                self._connection.run("UPDATE syncs SET count = count + 1")

    # Tasks and calls

    def add_task(
        self, new: NewTask, *, questions: Sequence[NewQuestion] = (), events: Sequence[NewEvent] = ()
    ) -> bool:
        """Add a task or call with its first questions; ``False`` when it is there already.

        One that is there already is brought back from the archive, and nothing else changes. On the disk when
        this returns.
        """
        with self._write(durable=True) as now:
            number = writing.number_of(self._connection, new.key)
            if number is not None:
                writing.set_archived(self._connection, self._shown(number), None, now)
                return False
            writing.insert_task(self._connection, new, questions, events or writing.added(new), now)
            return True

    def change_task(self, key: TaskKey, decide: Decide, *, durable: bool = False) -> TaskWrites:
        """Apply what *decide* makes of the task and its own questions as they are stored at this moment.

        Other programs wait meanwhile, so that nothing is decided on an old picture. When *decide* raises,
        nothing changes. A call that becomes a task, or changes its owner, is on the disk when this returns,
        as is everything with *durable*.

        Raises:
            UnknownTask: there is no such task or call, or the call has become a task.
            UnknownQuestion: a question that is to change belongs to another task.
        """
        with self._write(durable=durable) as now:
            row = self._connection.one(
                f"{rows.SELECT_TASKS} WHERE server = ? AND id = ? AND became IS NULL", key
            )
            if row is None:
                raise UnknownTask(f"{key} is not in the inbox")
            number, stored = row[-1], rows.task_record(row)
            questions = self._questions_of(number)
            writes = decide(stored, questions)
            if writes or (writes.unarchive and stored.archived_at is not None):
                self._must_sync |= writing.apply(self._connection, number, stored, questions, writes, now)
        return writes

    def archive(self, key: TaskKey) -> None:
        """Put a task away. Raises `UnknownTask`."""
        with self._write(durable=True) as now:
            writing.set_archived(self._connection, self._shown(self._known(key)), now, now)

    def unarchive(self, key: TaskKey) -> None:
        """Bring a task back. Raises `UnknownTask`."""
        with self._write(durable=True) as now:
            writing.set_archived(self._connection, self._shown(self._known(key)), None, now)

    def forget(self, key: TaskKey) -> None:
        """Delete a task, the call it came from, their questions, drafts and answers; the log stays.

        Raises `UnknownTask`.
        """
        with self._write(durable=True) as now:
            number = self._shown(self._known(key))
            server, task_id, kind, tool, status = self._connection.all(
                "SELECT server, id, kind, tool, status FROM tasks WHERE number = ?", (number,)
            )[0]
            answers.erase_all(self._connection, number)
            self._connection.run("DELETE FROM tasks WHERE number = ?", (number,))
            data = json.dumps({"kind": kind, "tool": tool, "status": status})
            writing.log(self._connection, NewEvent("forgotten", data), now, server, task_id)

    # Questions and answers

    def queue_answers(self, task: TaskKey, replies: Sequence[Reply], *, by: str) -> None:
        """Save the answers to a task's questions, all or none; on the disk when this returns.

        Raises:
            UnknownTask: there is no such task or call.
            QuestionClosed: a question isn't open any more, or isn't the one that was answered.
        """
        with self._write(durable=True) as now:
            number = self._known(task)
            for reply in replies:
                writing.log(
                    self._connection, answers.queue(self._connection, number, reply, by, now), now, *task
                )
            if replies:
                rows.replace_in_list(self._connection, number, touched_at=now)

    def claim(
        self, question_ids: Sequence[int], *, owner: str, dead: Callable[[str], bool]
    ) -> tuple[int, ...]:
        """Take answers for delivery by the program *owner*; returns those that were really taken.

        A queued answer can be taken, and one that a program which is *dead* had taken. Two programs never
        both get one. On the disk when this returns.
        """
        with self._write(durable=True) as now:
            taken = [
                question
                for question in self._questions_with(question_ids)
                if answers.is_free(question, owner, dead)
            ]
            for question in taken:
                event = answers.send(self._connection, question, owner, now)
                writing.log(self._connection, event, now, *question.task)
            self._touch_all(taken, now)
        return tuple(question.id for question in taken)

    def release(self, question_ids: Sequence[int], owner: str) -> None:
        """Put answers back that *owner* had claimed and has provably not sent; others are left alone."""
        with self._write(durable=True) as now:
            held = [
                question
                for question in self._questions_with(question_ids)
                if question.state == "sent" and question.owner == owner
            ]
            for question in held:
                writing.log(
                    self._connection, answers.take_back(self._connection, question), now, *question.task
                )
            self._touch_all(held, now)

    def save_draft(self, question_id: int, draft_json: str | None) -> bool:
        """Keep what has been typed; ``False`` when the question isn't open, and nothing was kept."""
        with self._write(durable=False):
            kept = self._connection.run(
                "UPDATE questions SET draft_json = ? WHERE id = ? AND state IN ('open', 'refused')",
                (draft_json, question_id),
            )
            return kept.rowcount == 1

    def pending_answers(self) -> list[QuestionRecord]:
        """Return the questions whose answer is saved and not acknowledged, first answered first."""
        return self.reader.pending_answers()

    def active_tasks(self) -> list[TaskRow]:
        """Return the tasks to be watched, archived ones too; calls are not among them."""
        return self.reader.active_tasks()

    def calls_in_flight(self) -> list[TaskRecord]:
        """Return the calls that some program (their ``owner``) is sending."""
        return self.reader.calls_in_flight()

    # Saved replies

    def save_reply(self, fingerprint: str, name: str, draft_json: str) -> None:
        """Keep what fills in a question with that fingerprint; one of the same name is replaced."""
        with self._write(durable=True) as now:
            self._connection.run(
                "INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?)", (fingerprint, name, draft_json, now)
            )

    def delete_reply(self, fingerprint: str, name: str) -> bool:
        """Delete a saved reply; ``False`` when there is none of that name."""
        with self._write(durable=True):
            deleted = self._connection.run(
                "DELETE FROM replies WHERE fingerprint = ? AND name = ?", (fingerprint, name)
            )
            return deleted.rowcount == 1

    # Servers and the log

    def set_server(self, server: ServerRecord) -> None:
        """Keep what was last seen of a server; a change of its state or message is logged."""
        with self._write(durable=False) as now:
            stored = self._connection.one("SELECT state, message FROM servers WHERE name = ?", (server.name,))
            self._connection.run(
                "INSERT OR REPLACE INTO servers (name, state, since, message, info_json, checked_at) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                astuple(server),
            )
            if stored != (server.state, server.message):
                data = json.dumps({"state": server.state, "message": server.message})
                writing.log(self._connection, NewEvent("server_changed", data), now, server.name, None)

    def forget_server(self, name: str) -> None:
        """Delete what was seen of a server; its tasks stay. Nothing happens where nothing is known."""
        with self._write(durable=False) as now:
            if self._connection.run("DELETE FROM servers WHERE name = ?", (name,)).rowcount:
                writing.log(self._connection, NewEvent("server_forgotten"), now, name, None)

    def log(self, event: NewEvent, key: TaskKey | None = None, server: str | None = None) -> int:
        """Append a fact about a task, a server, or neither; returns its number."""
        with self._write(durable=False) as now:
            return writing.log(self._connection, event, now, *(key or (server, None)))

    # Inside a transaction

    def _touch_all(self, questions: Sequence[QuestionRecord], now: int) -> None:
        for key in {question.task for question in questions}:
            rows.replace_in_list(self._connection, self._known(key), touched_at=now)

    def _known(self, key: TaskKey) -> int:
        number = writing.number_of(self._connection, key)
        if number is None:
            raise UnknownTask(f"{key} is not in the inbox")
        return number

    def _shown(self, number: int) -> int:
        shown: int = self._connection.value(
            "SELECT coalesce(became, number) FROM tasks WHERE number = ?", (number,)
        )
        return shown

    def _questions_of(self, number: int) -> tuple[QuestionRecord, ...]:
        found = self._connection.all(
            f"{rows.SELECT_QUESTIONS} WHERE questions.task = ? ORDER BY position", (number,)
        )
        return tuple(rows.question_record(row) for row in found)

    def _questions_with(self, question_ids: Sequence[int]) -> list[QuestionRecord]:
        found = (self.reader.question(number) for number in dict.fromkeys(question_ids))
        return [question for question in found if question is not None]
