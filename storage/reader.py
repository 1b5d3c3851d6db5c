"""The reading half of the store, on a connection of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Final

from storage import rows
from storage.connection import Connection
from storage.migrations import open_database
from storage.records import (
    SECTIONS,
    EventRecord,
    QuestionRecord,
    SavedReply,
    Section,
    ServerRecord,
    TaskKey,
    TaskRecord,
    TaskRow,
)

_CHUNK: Final = 200
"""Keys in one query: two parameters each, well below the lowest limit of any SQLite build (999)."""

_EVENTS: Final = 1_000
"""Numbers of events read ahead."""


class StoreReader:
    """Implements `storage.records.Reader`; each call is one query or sees one snapshot.

    Opened once and used by one thread at a time. Reading never waits for a writer, nor makes one wait.
    """

    def __init__(self, connection: Connection) -> None:
        """Read from *connection*, which the caller closes; `open` is the usual way."""
        self._connection = connection

    @classmethod
    def open(cls, path: Path) -> StoreReader:
        """Open the database at *path* for reading; it is made, or brought up to date, where needed.

        Raises:
            StoreUnreadable: the file can't be opened, is damaged, or belongs to another program.
            StoreTooNew: a newer version of this program wrote it.
            StoreBusy: another program held the write lock for too long.
        """
        connection = open_database(path)
        # Not mode=ro: a read-only open of a WAL database depends on files that may not be there yet.
        connection.run("PRAGMA query_only = ON")
        return cls(connection)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def version(self) -> int:
        """Return the number of the last migration that the database has."""
        found: int = self._connection.value("SELECT max(number) FROM migrations")
        return found

    def counts(self) -> dict[Section, int]:
        """Return how many tasks each section holds (every section is there)."""
        found: dict[Section, int] = dict(
            self._connection.all(
                "SELECT section, count(*) FROM tasks WHERE section IS NOT NULL GROUP BY section"
            )
        )
        return {section: found.get(section, 0) for section in SECTIONS}

    def keys(self, section: Section, *, server: str | None = None, text: str | None = None) -> list[TaskKey]:
        """Return a section's tasks in the order of the list (see `storage.records.Reader.keys`)."""
        wanted = text.casefold() if text else ""
        columns = "server, id, tool, status_message" if wanted else "server, id"
        parameters: list[object] = [section]
        where = "section = ?"
        if server is not None:
            where += " AND server = ?"
            parameters.append(server)
        found = self._connection.all(
            f"SELECT {columns} FROM tasks WHERE {where} ORDER BY place, number", parameters
        )
        # Not LIKE: it knows case only for the letters A to Z.
        return [
            TaskKey(row[0], row[1])
            for row in found
            if not wanted or any(wanted in value.casefold() for value in row if value)
        ]

    def rows(self, keys: Sequence[TaskKey]) -> dict[TaskKey, TaskRow]:
        """Return the lines of those *keys* that the store holds."""
        found: dict[TaskKey, TaskRow] = {}
        for start in range(0, len(keys), _CHUNK):
            chunk = keys[start : start + _CHUNK]
            values = ", ".join(["(?, ?)"] * len(chunk))
            for row in self._connection.all(
                f"WITH wanted (server, id) AS (VALUES {values}) {rows.SELECT_ROWS} "
                "JOIN wanted ON tasks.server = wanted.server AND tasks.id = wanted.id WHERE became IS NULL",
                [part for key in chunk for part in key],
            ):
                line = rows.task_row(row)
                found[line.key] = line
        return found

    def list_rows(
        self, *, section: Section | None = None, server: str | None = None, status: str | None = None
    ) -> list[TaskRow]:
        """Return all lines that match, sections in their order."""
        where, parameters = ["section IS NOT NULL"], list[object]()
        for column, value in (("section", section), ("server", server), ("status", status)):
            if value is not None:
                where.append(f"{column} = ?")
                parameters.append(value)
        ranks = " ".join(f"WHEN '{name}' THEN {rank}" for rank, name in enumerate(SECTIONS))
        order = f"CASE section {ranks} END, place, number"
        return [
            rows.task_row(row)
            for row in self._connection.all(
                f"{rows.SELECT_ROWS} WHERE {' AND '.join(where)} ORDER BY {order}", parameters
            )
        ]

    def task(self, key: TaskKey) -> TaskRecord | None:
        """Return one task, whole; a call that became a task is found under its own id, too."""
        row = self._connection.one(
            f"{rows.SELECT_TASKS} WHERE tasks.number = "
            "(SELECT coalesce(became, number) FROM tasks WHERE server = ? AND id = ?)",
            key,
        )
        return None if row is None else rows.task_record(row)

    def find(self, text: str) -> list[TaskKey]:
        """Return the tasks that *text* names: SERVER/ID alone; else that exact id; else every id it begins.

        One id may be there on several servers. A call that became a task gives that task.
        """
        if not text:
            return []
        server, slash, task_id = text.partition("/")
        if slash and (found := self._named("named.server = ? AND named.id = ?", (server, task_id))):
            return found
        if found := self._named("named.id = ?", (text,)):
            return found
        # Ids may hold anything, LIKE's signs and NUL included: in the order of ids, those that begin with the
        # text stand together, from the first one that isn't smaller.
        following = self._connection.all("SELECT DISTINCT id FROM tasks WHERE id >= ? ORDER BY id", (text,))
        begins = takewhile(lambda task_id: task_id.startswith(text), (row[0] for row in following))
        return list(
            dict.fromkeys(key for task_id in begins for key in self._named("named.id = ?", (task_id,)))
        )

    def _named(self, where: str, parameters: Sequence[object]) -> list[TaskKey]:
        found = self._connection.all(
            "SELECT DISTINCT shown.server, shown.id FROM tasks AS named "
            f"JOIN tasks AS shown ON shown.number = coalesce(named.became, named.number) WHERE {where} "
            "ORDER BY shown.server, shown.id",
            parameters,
        )
        return [TaskKey(*row) for row in found]

    def questions(self, key: TaskKey) -> list[QuestionRecord]:
        """Return a task's questions in their stable order, after those of the call it came from."""
        found = self._connection.all(
            "WITH asked AS (SELECT server, id, origin_call FROM tasks WHERE number = "
            "(SELECT coalesce(became, number) FROM tasks WHERE server = ? AND id = ?)) "
            f"{rows.SELECT_QUESTIONS} JOIN asked ON tasks.server = asked.server "
            "AND tasks.id IN (asked.id, asked.origin_call) ORDER BY tasks.id = asked.id, position",
            key,
        )
        return [rows.question_record(row) for row in found]

    def question(self, question_id: int) -> QuestionRecord | None:
        """Return one question."""
        row = self._connection.one(f"{rows.SELECT_QUESTIONS} WHERE questions.id = ?", (question_id,))
        return None if row is None else rows.question_record(row)

    def events(self, key: TaskKey, *, limit: int = 500) -> list[EventRecord]:
        """Return the newest *limit* events of a task (and of the call it came from), oldest first.

        The log outlives the task: a forgotten one's events are still there.
        """
        found = self._connection.all(
            "WITH asked AS (SELECT server, id, origin_call FROM tasks WHERE number = "
            "(SELECT coalesce(became, number) FROM tasks WHERE server = ?1 AND id = ?2)) "
            f"{rows.SELECT_EVENTS} WHERE server = ?1 AND task_id IN "
            "(SELECT ?2 UNION SELECT id FROM asked UNION SELECT origin_call FROM asked) "
            "ORDER BY seq DESC LIMIT ?3",
            (*key, limit),
        )
        return [rows.event_record(row) for row in reversed(found)]

    def log(self, *, server: str | None = None, since: int | None = None) -> Iterator[EventRecord]:
        """Yield the events from *since* on, of one server or of all, oldest first, up to the newest one now.

        One at a time is read, however many there are: nothing is held open between two, so that whoever
        reads slowly keeps no writer from anything.
        """
        last, seq = self.last_seq(), 0
        where, fixed = "seq > ? AND seq <= ?", list[object]()
        for column, value in (("server = ?", server), ("at >= ?", since)):
            if value is not None:
                where += f" AND {column}"
                fixed.append(value)
        while True:
            found = self._connection.all(
                f"SELECT seq FROM events WHERE {where} ORDER BY seq LIMIT {_EVENTS}", (seq, last, *fixed)
            )
            for (seq,) in found:
                row = self._connection.one(f"{rows.SELECT_EVENTS} WHERE seq = ?", (seq,))
                assert row is not None, "nothing is deleted from the log"
                yield rows.event_record(row)
            if len(found) < _EVENTS:
                return

    def replies(self, fingerprint: str) -> list[SavedReply]:
        """Return what is kept to fill in that question with, by name."""
        found = self._connection.all(
            f"{rows.SELECT_REPLIES} WHERE fingerprint = ? ORDER BY name", (fingerprint,)
        )
        return [rows.saved_reply(row) for row in found]

    def exact_response(self, question_id: int) -> str | None:
        """Return an answer exactly as it is to be sent, secrets and all; ``None``: there is none any more.

        For whoever delivers it, and not part of `storage.records.Reader`.
        """
        text: str | None = self._connection.value(
            "SELECT CASE WHEN withheld THEN secrets.response_json ELSE questions.response_json END "
            "FROM questions LEFT JOIN secrets ON secrets.question = questions.id WHERE questions.id = ?",
            (question_id,),
        )
        return text

    def servers(self) -> list[ServerRecord]:
        """Return what is known of each server, by name."""
        return [
            rows.server_record(row) for row in self._connection.all(f"{rows.SELECT_SERVERS} ORDER BY name")
        ]

    def last_seq(self) -> int:
        """Return the number of the newest event; 0 when there is none."""
        seq: int | None = self._connection.value("SELECT max(seq) FROM events")
        return seq or 0

    def changed_since(self, seq: int) -> tuple[int, set[TaskKey]]:
        """Return the number up to which events were read and the tasks that those after *seq* speak of."""
        found = self._connection.all(
            "SELECT seq, server, task_id FROM events WHERE seq > ? ORDER BY seq", (seq,)
        )
        if not found:
            return seq, set()  # not `last_seq`: what is written between two statements would be passed over
        return found[-1][0], {TaskKey(server, task_id) for _, server, task_id in found if task_id is not None}

    def active_tasks(self) -> list[TaskRow]:
        """Return the tasks to be watched, archived ones too; calls are not among them."""
        return [
            rows.task_row(row)
            for row in self._connection.all(
                f"{rows.SELECT_ROWS} WHERE tracking = 'active' AND kind = 'task' ORDER BY number"
            )
        ]

    def calls_in_flight(self) -> list[TaskRecord]:
        """Return the calls that some program (their ``owner``) is sending."""
        return [
            rows.task_record(row)
            for row in self._connection.all(
                f"{rows.SELECT_TASKS} WHERE tasks.kind = 'call' AND tasks.owner IS NOT NULL "
                "AND tasks.became IS NULL ORDER BY tasks.number"
            )
        ]

    def pending_answers(self) -> list[QuestionRecord]:
        """Return the questions whose answer is saved and not acknowledged, first answered first."""
        return [
            rows.question_record(row)
            for row in self._connection.all(
                f"{rows.SELECT_QUESTIONS} WHERE questions.state IN ('queued', 'sent') "
                "ORDER BY questions.queued_at, questions.id"
            )
        ]
