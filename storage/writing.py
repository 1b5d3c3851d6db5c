"""What a change of a task writes, inside a transaction of the store."""

from __future__ import annotations

import json
from collections.abc import Sequence

from storage import answers, rows
from storage.connection import Connection
from storage.errors import StorageError, UnknownQuestion
from storage.records import (
    NewEvent,
    NewQuestion,
    NewTask,
    QuestionRecord,
    TaskKey,
    TaskRecord,
    TaskState,
    TaskWrites,
)


def apply(
    connection: Connection,
    number: int,
    stored: TaskRecord,
    questions: tuple[QuestionRecord, ...],
    writes: TaskWrites,
    now: int,
) -> bool:
    """Apply *writes* to the task *number*; returns whether a power failure must not undo them.

    What differs at every look (`rows.POLL_MARKS`) leaves no fact in the log; for anything else there
    is one, so that other programs notice. ``changed_at`` moves with the content, not with ``problem``.
    """
    changed = set[str]()
    if writes.state is not None:
        changed = _set_state(connection, number, stored.state, writes.state) - rows.POLL_MARKS
    if _change_questions(connection, number, stored, questions, writes, now):
        changed.add("questions")
    must_sync = False
    if writes.owner is not None and (writes.owner or None) != stored.owner:
        connection.run("UPDATE tasks SET owner = ? WHERE number = ?", (writes.owner or None, number))
        changed.add("owner")
        must_sync = True
    if writes.leave:
        connection.run("UPDATE tasks SET leave = leave + 1 WHERE number = ?", (number,))
        changed.add("leave")
        must_sync = True
    if writes.unarchive and stored.archived_at is not None:
        connection.run("UPDATE tasks SET archived_at = NULL WHERE number = ?", (number,))
        changed.add("archived")
    if writes.became is not None:
        _become(connection, number, stored, writes, now)
        changed.add("became")
        must_sync = True
    facts = writes.events
    if changed and not facts:
        facts = (NewEvent("changed", json.dumps({"fields": sorted(changed)})),)
    for fact in facts:
        log(connection, fact, now, *stored.key)
    if changed - {"problem", "owner", "archived"}:
        rows.replace_in_list(connection, number, touched_at=now)
    elif changed:
        rows.replace_in_list(connection, number)
    return must_sync


def _change_questions(
    connection: Connection,
    number: int,
    stored: TaskRecord,
    questions: tuple[QuestionRecord, ...],
    writes: TaskWrites,
    now: int,
) -> bool:
    known = {question.id: question for question in questions}
    is_changed = bool(writes.new_questions)
    for change in writes.question_changes:
        if change.id not in known:
            raise UnknownQuestion(f"{stored.key} has no question number {change.id}")
        is_changed |= answers.change(connection, known[change.id], change, now)
    _insert_questions(connection, number, writes.new_questions, now)
    return is_changed


def _set_state(connection: Connection, number: int, old: TaskState, new: TaskState) -> set[str]:
    names = (*rows.STATE_COLUMNS, *rows.STATE_TEXTS)
    changed = {name for name in names if getattr(old, name) != getattr(new, name)}
    for table, column, columns in (
        ("tasks", "number", rows.STATE_COLUMNS),
        ("texts", "task", rows.STATE_TEXTS),
    ):
        if written := [name for name in columns if name in changed]:
            connection.run(
                f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in written)} WHERE {column} = ?",
                (*(getattr(new, name) for name in written), number),
            )
    return changed


def _become(connection: Connection, call: int, stored: TaskRecord, writes: TaskWrites, now: int) -> None:
    new = writes.became
    assert new is not None
    number = number_of(connection, new.key)
    if number is None:
        number = insert_task(connection, new, (), added(new, origin=stored.key.id), now)
    elif connection.value("SELECT kind FROM tasks WHERE number = ?", (number,)) == "call":
        raise StorageError(f"{stored.key} can't become {new.key}, which is a call")
    else:
        log(connection, NewEvent("changed", json.dumps({"fields": ["origin"]})), now, *new.key)
    # A server that began the task is new activity: it comes back, wherever it or its call was put away.
    connection.run(
        "UPDATE tasks SET origin_call = coalesce(origin_call, ?), archived_at = NULL WHERE number = ?",
        (stored.key.id, number),
    )
    rows.replace_in_list(connection, number)
    connection.run("UPDATE tasks SET became = ?, owner = NULL WHERE number = ?", (number, call))
    answers.close_all(connection, call, now)


def insert_task(
    connection: Connection,
    new: NewTask,
    questions: Sequence[NewQuestion],
    facts: Sequence[NewEvent],
    now: int,
) -> int:
    """Add a task or call that is not there; returns its number."""
    state = [getattr(new.state, name) for name in rows.STATE_COLUMNS]
    values = (*new.key, new.kind, new.method, new.tool, new.owner, now, now, *state)
    number = connection.insert(
        "INSERT INTO tasks (server, id, kind, method, tool, owner, added_at, changed_at, "
        f"{', '.join(rows.STATE_COLUMNS)}) VALUES ({', '.join('?' * len(values))})",
        values,
    )
    connection.run(
        f"INSERT INTO texts (task, params_json, {', '.join(rows.STATE_TEXTS)}) VALUES (?, ?, ?, ?, ?)",
        (number, new.params_json, *(getattr(new.state, name) for name in rows.STATE_TEXTS)),
    )
    _insert_questions(connection, number, questions, now)
    for fact in facts:
        log(connection, fact, now, *new.key)
    rows.replace_in_list(connection, number)
    return number


def _insert_questions(
    connection: Connection, number: int, questions: Sequence[NewQuestion], now: int
) -> None:
    if not questions:
        return
    first = connection.value("SELECT coalesce(max(position) + 1, 0) FROM questions WHERE task = ?", (number,))
    for position, new in enumerate(questions, first):
        connection.run(
            "INSERT INTO questions (task, key, round, fingerprint, method, request_json, fault, state, "
            "position, asked_at) VALUES (?, ?, ?, ?, ?, ?, ?, 'open', ?, ?)",
            (
                *(number, new.key, new.round, new.fingerprint, new.method, new.request_json, new.fault),
                *(position, now),
            ),
        )


def set_archived(connection: Connection, number: int, archived_at: int | None, now: int) -> None:
    """Put a task away or bring it back; nothing happens when it is there already."""
    server, task_id, stored = connection.all(
        "SELECT server, id, archived_at FROM tasks WHERE number = ?", (number,)
    )[0]
    if (stored is None) == (archived_at is None):
        return
    connection.run("UPDATE tasks SET archived_at = ? WHERE number = ?", (archived_at, number))
    log(connection, NewEvent("unarchived" if archived_at is None else "archived"), now, server, task_id)
    rows.replace_in_list(connection, number)


def log(connection: Connection, event: NewEvent, now: int, server: str | None, task_id: str | None) -> int:
    """Append a fact; returns its number."""
    return connection.insert(
        "INSERT INTO events (at, server, task_id, kind, data_json) VALUES (?, ?, ?, ?, ?)",
        (now, server, task_id, event.kind, event.data_json),
    )


def number_of(connection: Connection, key: TaskKey) -> int | None:
    """Return the number of a task or call; ``None`` when it is not stored."""
    number: int | None = connection.value("SELECT number FROM tasks WHERE server = ? AND id = ?", key)
    return number


def added(new: NewTask, *, origin: str | None = None) -> tuple[NewEvent, ...]:
    """Return the fact that a task or call was added."""
    return (NewEvent("added", json.dumps({"kind": new.kind, "tool": new.tool, "origin": origin})),)
