"""Between database rows and records; and the one place where a task's section is decided."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from storage.connection import Connection, Row
from storage.records import (
    EventRecord,
    QuestionRecord,
    SavedReply,
    Section,
    ServerRecord,
    TaskKey,
    TaskRecord,
    TaskRow,
    TaskState,
    Tracking,
)

STATE_TEXTS: Final = ("result_json", "error_json", "snapshot_json")
"""The fields of a state that are kept beside the task, since they are long."""

STATE_COLUMNS: Final = tuple(field.name for field in fields(TaskState) if field.name not in STATE_TEXTS)
"""The fields of a state that are columns of the task, under the same names."""

POLL_MARKS: Final = frozenset({"last_updated_at", "snapshot_json", "observed_by", "poll_interval_ms"})
"""The fields that may differ at every look while nothing happened."""

_IDENTITY: Final = ("server", "id", "kind", "method", "tool", "section", "open_questions")
_TIMES: Final = ("added_at", "changed_at", "archived_at")


def _columns(table: str, names: tuple[str, ...]) -> str:
    return ", ".join(f"{table}.{name}" for name in names)


_ROW_COLUMNS: Final = _columns("tasks", _IDENTITY + _TIMES + STATE_COLUMNS)
_STATE_AT: Final = len(_IDENTITY) + len(_TIMES)
_TEXTS_AT: Final = _STATE_AT + len(STATE_COLUMNS)

SELECT_ROWS: Final = f"SELECT {_ROW_COLUMNS} FROM tasks"
"""Followed by a WHERE; read with `task_row`."""

SELECT_TASKS: Final = (
    f"SELECT {_ROW_COLUMNS}, {_columns('texts', STATE_TEXTS)}, "
    "texts.params_json, tasks.origin_call, tasks.owner, tasks.leave, tasks.number "
    "FROM tasks JOIN texts ON texts.task = tasks.number"
)
"""Followed by a WHERE; read with `task_record`; the last column is the task's number."""

_QUESTION_NAMES: Final = tuple(
    field.name for field in fields(QuestionRecord) if field.name not in ("id", "task")
)

SELECT_QUESTIONS: Final = (
    f"SELECT questions.id, tasks.server, tasks.id, {_columns('questions', _QUESTION_NAMES)} "
    "FROM questions JOIN tasks ON tasks.number = questions.task"
)
"""Followed by a WHERE; read with `question_record`."""

SELECT_EVENTS: Final = "SELECT seq, at, server, task_id, kind, data_json FROM events"
"""Followed by a WHERE; read with `event_record`."""

SELECT_REPLIES: Final = "SELECT fingerprint, name, draft_json, saved_at FROM replies"
"""Read with `saved_reply`."""

SELECT_SERVERS: Final = "SELECT name, state, since, message, info_json, checked_at FROM servers"
"""Read with `server_record`."""


def section_of(*, archived_at: int | None, tracking: Tracking, open_questions: int) -> Section:
    """Return the section a task stands in."""
    if archived_at is not None:
        return "archived"
    if tracking in ("lost", "stopped"):
        return "lost"
    if tracking == "ended":
        return "finished"
    return "needs-you" if open_questions else "running"


def place_of(section: Section, *, waiting_since: int | None, added_at: int, changed_at: int) -> int:
    """Return a task's place in its section: the list is in ascending order of it.

    Needs you: the longest waiting first. Running: the newest first. The others: the last changed first.
    """
    if section == "needs-you":
        return waiting_since or 0
    return -added_at if section == "running" else -changed_at


def replace_in_list(connection: Connection, number: int, *, touched_at: int | None = None) -> None:
    """Work out a task's count of open questions, section and place anew, and store them.

    *touched_at*: when its content changed; ``None``: it did not.
    """
    row = connection.one(
        "SELECT archived_at, tracking, added_at, changed_at, became, section, place, open_questions, "
        "(SELECT count(*) FROM questions WHERE task = number AND state IN ('open', 'refused')), "
        "(SELECT min(asked_at) FROM questions WHERE task = number AND state IN ('open', 'refused')) "
        "FROM tasks WHERE number = ?",
        (number,),
    )
    assert row is not None
    archived_at, tracking, added_at, changed_at, became, *stored, open_questions, waiting_since = row
    changed_at = changed_at if touched_at is None else touched_at
    section = section_of(archived_at=archived_at, tracking=tracking, open_questions=open_questions)
    place = place_of(section, waiting_since=waiting_since, added_at=added_at, changed_at=changed_at)
    # A call that became a task is in no list: the task stands there.
    wanted = [section if became is None else None, place, open_questions]
    if stored != wanted:
        connection.run(
            "UPDATE tasks SET changed_at = ?, section = ?, place = ?, open_questions = ? WHERE number = ?",
            (changed_at, *wanted, number),
        )
    elif touched_at is not None:
        connection.run("UPDATE tasks SET changed_at = ? WHERE number = ?", (changed_at, number))


_TEXTS_FROM: Final = [field.name for field in fields(TaskState)].index(STATE_TEXTS[0])
_IS_ERROR: Final = STATE_COLUMNS.index("is_error")


def _state(row: Row, texts: Row = (None, None, None)) -> TaskState:
    values = list(row[_STATE_AT:_TEXTS_AT])
    values[_IS_ERROR] = bool(values[_IS_ERROR])
    values[_TEXTS_FROM:_TEXTS_FROM] = texts  # they stand together among the fields
    return TaskState(*values)


def task_row(row: Row) -> TaskRow:
    """Read a row of `SELECT_ROWS`."""
    values: Row = (TaskKey(row[0], row[1]), *row[2:_STATE_AT], _state(row))
    return TaskRow(*values)


def task_record(row: Row) -> TaskRecord:
    """Read a row of `SELECT_TASKS`."""
    texts_end = _TEXTS_AT + len(STATE_TEXTS)
    state = _state(row, row[_TEXTS_AT:texts_end])
    values: Row = (TaskKey(row[0], row[1]), *row[2:_STATE_AT], state, *row[texts_end : texts_end + 4])
    return TaskRecord(*values)


def question_record(row: Row) -> QuestionRecord:
    """Read a row of `SELECT_QUESTIONS`."""
    values: Row = (row[0], TaskKey(row[1], row[2]), *row[3:-1], bool(row[-1]))
    return QuestionRecord(*values)


def event_record(row: Row) -> EventRecord:
    """Read a row of `SELECT_EVENTS`."""
    return EventRecord(*row)


def saved_reply(row: Row) -> SavedReply:
    """Read a row of `SELECT_REPLIES`."""
    return SavedReply(*row)


def server_record(row: Row) -> ServerRecord:
    """Read a row of `SELECT_SERVERS`."""
    return ServerRecord(*row)
