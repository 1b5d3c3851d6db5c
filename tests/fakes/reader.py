"""A store in memory with the store's reading half, for tests that draw thousands of rows quickly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

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
    TaskState,
)

NOW = 1_800_000_000_000
"""The fixed time of these tests: milliseconds since the epoch."""


def record(
    server: str = "demo",
    id: str = "tsk_1",
    *,
    tool: str | None = "generate_report",
    section: Section = "running",
    open_questions: int = 0,
    added_at: int = NOW - 60_000,
    changed_at: int | None = None,
    kind: str = "task",
    **state: object,
) -> TaskRecord:
    """Return a task with sensible fields for its section."""
    words = {"needs-you": "input_required", "running": "working", "finished": "completed"}
    tracking = {"finished": "ended", "archived": "ended", "lost": "lost"}
    state.setdefault("status", words.get(section, "completed"))
    state.setdefault("tracking", tracking.get(section, "active"))
    return TaskRecord(
        key=TaskKey(server, id),
        kind=kind,  # type: ignore[arg-type]
        method="tools/call",
        tool=tool,
        section=section,
        open_questions=open_questions or (1 if section == "needs-you" else 0),
        added_at=added_at,
        changed_at=added_at if changed_at is None else changed_at,
        archived_at=NOW if section == "archived" else None,
        state=TaskState(**state),  # type: ignore[arg-type]
    )


class MemoryReader:
    """`storage.records.Reader` over a dict; the order within a section is the order of insertion."""

    def __init__(self, *tasks: TaskRecord, servers: Sequence[ServerRecord] = ()) -> None:
        self.tasks: dict[TaskKey, TaskRecord] = {task.key: task for task in tasks}
        self.became: dict[TaskKey, TaskKey] = {}
        self.asked: dict[TaskKey, list[QuestionRecord]] = {}
        self.known = list(servers)
        self.rows_read = 0

    def put(self, *tasks: TaskRecord) -> set[TaskKey]:
        """Add or replace tasks; returns their keys, as a change feed would."""
        self.tasks.update({task.key: task for task in tasks})
        return {task.key for task in tasks}

    def change(self, key: TaskKey, **fields: object) -> set[TaskKey]:
        """Change fields of a task."""
        self.tasks[key] = replace(self.tasks[key], **fields)  # type: ignore[arg-type]
        return {key}

    def drop(self, *keys: TaskKey) -> set[TaskKey]:
        """Remove tasks."""
        for key in keys:
            del self.tasks[key]
        return set(keys)

    def counts(self) -> Mapping[Section, int]:
        found = dict.fromkeys(SECTIONS, 0)
        for task in self.tasks.values():
            found[task.section] += 1
        return found

    def keys(self, section: Section, *, server: str | None = None, text: str | None = None) -> list[TaskKey]:
        wanted = (text or "").casefold()
        return [
            task.key
            for task in self.tasks.values()
            if task.section == section
            and (server is None or task.key.server == server)
            and wanted in " ".join((*task.key, task.tool or "", task.state.status_message or "")).casefold()
        ]

    def rows(self, keys: Sequence[TaskKey]) -> dict[TaskKey, TaskRow]:
        self.rows_read += len(keys)
        return {key: self.tasks[key] for key in keys if key in self.tasks}

    def list_rows(
        self, *, section: Section | None = None, server: str | None = None, status: str | None = None
    ) -> list[TaskRow]:
        return [
            task
            for task in self.tasks.values()
            if (section is None or task.section == section)
            and (server is None or task.key.server == server)
            and (status is None or task.state.status == status)
        ]

    def task(self, key: TaskKey) -> TaskRecord | None:
        return self.tasks.get(self.became.get(key, key))

    def find(self, text: str) -> list[TaskKey]:
        return [key for key in self.tasks if key.id.startswith(text) or str(key) == text]

    def questions(self, key: TaskKey) -> list[QuestionRecord]:
        return self.asked.get(key, [])

    def question(self, question_id: int) -> QuestionRecord | None:
        return next((q for some in self.asked.values() for q in some if q.id == question_id), None)

    def events(self, key: TaskKey, *, limit: int = 500) -> list[EventRecord]:
        return []

    def log(self, *, server: str | None = None, since: int | None = None) -> Iterator[EventRecord]:
        return iter(())

    def replies(self, fingerprint: str) -> list[SavedReply]:
        return []

    def servers(self) -> list[ServerRecord]:
        return list(self.known)

    def last_seq(self) -> int:
        return 0

    def changed_since(self, seq: int) -> tuple[int, set[TaskKey]]:
        return seq, set()
