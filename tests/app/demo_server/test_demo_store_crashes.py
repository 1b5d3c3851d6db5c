"""A process that dies between any two statements that it has its database do."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.demo_wire import accept

from app.demo_server.migrations import open_database
from app.demo_server.owners import LOCAL
from app.demo_server.request_state import Seal
from app.demo_server.service import Client, Service
from app.demo_server.store import Store
from app.demo_server.tools import tools_named
from app.demo_server.worker import LEASE_MS, Worker

CLIENT = Client(tasks=True, modes=frozenset({"form", "url"}), caller=LOCAL)
ENDED = ("completed", "failed", "cancelled")


class Died(BaseException):
    """What stops a process that is killed: nothing in it may catch this."""


class Mortal:
    """A connection that does so many statements and no more."""

    def __init__(self, path: Path, statements: int) -> None:
        self.real = open_database(path)
        self.left = statements

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        self.spend()
        return self.real.execute(*arguments)

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        self.spend()
        return self.real.executemany(*arguments)

    def spend(self) -> None:
        if not self.left:
            raise Died
        self.left -= 1


class Process:
    """A service and its worker over one connection."""

    tokens: Iterator[str] = map("{:032x}".format, itertools.count())

    def __init__(self, path: Path, now: int, statements: int = -1) -> None:
        self.connection: Any = Mortal(path, statements)
        store, tools = Store(self.connection), tools_named("demo")
        now_ms, token = lambda: now, lambda: next(self.tokens)
        self.worker = Worker(store, tools, step_ms=0, now_ms=now_ms, token=token)
        seal = Seal(b"k" * 32)
        self.service = Service(store, tools, seal, poll_ms=10, now_ms=now_ms, token=token, wake=lambda: None)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        result = self.service.verbs[method](params, CLIENT)
        assert isinstance(result, dict)
        return result

    async def see_through(self, story: Story) -> None:
        """Do what is left of *story*; what was acknowledged is noted, and is not asked for again."""
        if story.task_id is None:
            story.task_id = self.ask("tools/call", name=story.tool, arguments=story.arguments)["taskId"]
        while True:
            task = self.ask("tasks/get", taskId=story.task_id)
            if task["status"] in ENDED:
                return
            for key in task.get("inputRequests", ()):
                assert key not in story.answered, "an acknowledged answer is forgotten"
                self.ask("tasks/update", taskId=story.task_id, inputResponses={key: story.answers[key]})
                story.answered.append(key)
            if story.cancels and task["statusMessage"] == story.cancels:
                self.ask("tasks/cancel", taskId=story.task_id)
            assert await self.worker.step() is not None, f"it hangs: {task}"


class Story:
    """What a client does with one task, and how far it is."""

    def __init__(
        self, tool: str, *, cancels: str = "", answers: dict[str, Any] | None = None, **arguments: Any
    ):
        self.tool = tool
        self.arguments = arguments
        self.answers = answers or {}
        self.cancels = cancels
        self.task_id: str | None = None
        self.answered: list[str] = []


STORIES: dict[str, dict[str, Any]] = {
    "a report": {
        "tool": "generate_report",
        "size": "small",
        "answers": {"approve_outline": accept(approved=True)},
    },
    "two questions": {
        "tool": "two_questions",
        "answers": {"colour": accept(colour="red"), "count": accept(count=2)},
    },
    "a failure": {"tool": "flaky_job"},
    "a late cancellation": {"tool": "restore_backup", "cancels": "Restoring table 2 of 8"},
}
OUTCOMES = {
    "a report": ("completed", 7),
    "two questions": ("completed", 3),
    "a failure": ("failed", 3),
    "a late cancellation": ("cancelled", 6),
}


@pytest.mark.rule("tasks.durable-before-handle")
@pytest.mark.parametrize("name", STORIES)
async def test_wherever_a_process_dies_the_next_one_takes_every_task_to_its_end(tmp_path, name):
    for statements in itertools.count():
        path, story, now = tmp_path / f"{statements}.db", Story(**STORIES[name]), 1_000
        doomed = Process(path, now, statements)
        survived = True
        try:
            await doomed.see_through(story)
        except Died:
            survived = False
        doomed.connection.real.close()
        heir = Process(path, now + LEASE_MS)
        await heir.see_through(story)
        while await heir.worker.step() is not None:
            pass  # a task whose handle died with its process goes on as well
        check(path, story, *OUTCOMES[name])
        heir.connection.real.close()
        if survived:
            break
    assert statements > 50  # it did die in the middle of things


def check(path: Path, story: Story, status: str, steps: int) -> None:
    with sqlite3.connect(path) as db:
        tasks = {row[0]: row[1:] for row in db.execute("SELECT id, status, position, due_ms FROM task")}
        ledger = db.execute("SELECT position FROM step WHERE task_id = ?", (story.task_id,)).fetchall()
        forgotten = db.execute(
            "SELECT count(*) FROM question WHERE task_id = ? AND response IS NULL", (story.task_id,)
        ).fetchone()
    assert story.task_id is not None
    assert tasks[story.task_id] == (status, steps, None)
    assert sorted(ledger) == [(position,) for position in range(steps)]
    assert forgotten == (0,)
    assert len(tasks) <= 2
    assert all(due is None for _, _, due in tasks.values())
