"""An engine for the command line's tests: the real store, and a server that is a script.

Commands are run in this process by `Installation.run`, against a real database in a folder of its own. The
verbs write into the store what a server would have caused, and note how they were called.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import app.cli
from app.cli.parts import Parts
from app.engine.commands import (
    REFUSED_HERE,
    Answer,
    CallOutcome,
    Changes,
    Delivery,
    Engine,
    EngineError,
    ServerReport,
    ToolListing,
)
from app.paths import Paths
from storage.reader import StoreReader
from storage.records import (
    NewQuestion,
    NewTask,
    QuestionChange,
    QuestionRecord,
    Reader,
    Reply,
    TaskKey,
    TaskState,
    TaskWrites,
)
from storage.store import Store

NOW = 1_800_000_000_000
"""The time in these tests: 2027-01-15T08:00:00Z."""


def form_question(key: str, schema_json: str, message: str = "Well?") -> NewQuestion:
    """Return an elicitation in form mode."""
    params = f'{{"message":"{message}","requestedSchema":{schema_json}}}'
    request = f'{{"method":"elicitation/create","params":{params}}}'
    return NewQuestion(key, f"print-{key}", "elicitation/create", request)


class ScriptedEngine:
    """`app.engine.commands.Engine` over a real store; see the module."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.asked: list[tuple[object, ...]] = []
        """Each verb that was used, with what it was given."""
        self.failure: EngineError | None = None
        """Raised by whatever would contact a server."""
        self.outcome: CallOutcome | None = None
        self.delivery = Delivery("acknowledged")
        self.listing = ToolListing(())
        self.report = ServerReport("lab", "Lab 1.0", ("2026-07-28",), True, 3, None)
        self.script: list[Callable[[Store], TaskKey]] = []
        """What happens while the engine runs, one step after the other."""
        self.on_call: Callable[[Store], None] | None = None
        """What happens while a call is under way."""
        self.on_refresh: Callable[[Store], None] | None = None
        self.is_closed = False
        self._listeners: list[Callable[[Changes], None]] = []

    def _note(self, *what: object) -> None:
        self.asked.append(what)
        if self.failure is not None:
            raise self.failure

    async def run(self) -> None:
        for step in self.script:
            key = step(self.store)
            for listener in list(self._listeners):
                listener(Changes(frozenset({key})))
            for _ in range(20):  # turns of the loop, in which whoever listens looks
                await asyncio.sleep(0)
        await asyncio.Event().wait()

    async def call(
        self, server: str, tool: str, arguments_json: str, *, on_progress: Callable[[str], None] | None = None
    ) -> CallOutcome:
        self._note("call", server, tool, arguments_json)
        if on_progress is not None:
            on_progress("half way\x1b[31m")
        if self.on_call is not None:
            self.on_call(self.store)
        assert self.outcome is not None
        return self.outcome

    async def call_again(self, call: TaskKey) -> CallOutcome:
        self._note("call_again", call)
        assert self.outcome is not None
        return self.outcome

    async def track(self, server: str, task_id: str, *, handle_json: str | None = None) -> TaskKey:
        self._note("track", server, task_id, handle_json)
        key = TaskKey(server, task_id)
        self.store.add_task(NewTask(key, state=TaskState(status="working")))
        return key

    async def answer(self, task: TaskKey, answers: Sequence[Answer]) -> Delivery:
        self._note("answer", task, *(a.response_json for a in answers))
        replies = [Reply(a.question.id, a.question.fingerprint, a.response_json) for a in answers]
        self.store.queue_answers(answers[0].question.task, replies, by="tester")
        return self.delivery

    async def send_again(self, question_id: int) -> Delivery:
        self._note("send_again", question_id)
        return self.delivery

    async def refuse(self, question: QuestionRecord) -> str:
        self._note("refuse", question.key)
        self._move(question.task, QuestionChange(question.id, "withdrawn", refusal=REFUSED_HERE))
        return "Refused here."

    async def reopen(self, question_id: int) -> None:
        self._note("reopen", question_id)
        question = self.store.reader.question(question_id)
        assert question is not None
        self._move(question.task, QuestionChange(question_id, "open", refusal=""))

    def _move(self, task: TaskKey, change: QuestionChange) -> None:
        self.store.change_task(task, lambda _task, _questions: TaskWrites(question_changes=(change,)))

    async def draft_reply(self, question: QuestionRecord) -> str:
        raise AssertionError("not a command")

    async def cancel(self, task: TaskKey) -> str:
        self._note("cancel", task)
        return "Asked to cancel\x1b]52;c;eA==\x07."

    async def let_ask(self, task: TaskKey) -> str:
        self._note("let_ask", task)
        return "May ask on."

    async def refresh(self, task: TaskKey) -> None:
        self._note("refresh", task)
        if self.on_refresh is not None:
            self.on_refresh(self.store)

    async def archive(self, task: TaskKey) -> None:
        self._note("archive", task)
        self.store.archive(task)

    async def unarchive(self, task: TaskKey) -> None:
        self._note("unarchive", task)
        self.store.unarchive(task)

    async def forget(self, task: TaskKey) -> None:
        self._note("forget", task)
        self.store.forget(task)

    async def save_draft(self, question_id: int, draft_json: str | None) -> None:
        raise AssertionError("not a command")

    async def save_reply(self, question: QuestionRecord, name: str, draft_json: str) -> None:
        raise AssertionError("not a command")

    async def delete_reply(self, question: QuestionRecord, name: str) -> None:
        raise AssertionError("not a command")

    async def tools(self, server: str) -> ToolListing:
        self._note("tools", server)
        return self.listing

    async def test_server(self, server: str) -> ServerReport:
        self._note("test", server)
        return self.report

    async def reload_servers(self) -> None:
        raise AssertionError("not a command")

    def listen(self, listener: Callable[[Changes], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def observing(self, server: str) -> None:
        return None

    async def wait_for(self, task: TaskKey, until: str) -> None:
        raise AssertionError("not used")

    async def aclose(self) -> None:
        self.is_closed = True


@dataclass(frozen=True, slots=True)
class FakeParts(Parts):
    """`Parts` with the scripted engine, and the reader opened on the same database."""

    scripted: ScriptedEngine | None = field(default=None, repr=False)

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        reader = StoreReader.open(self.paths.database)
        try:
            yield reader
        finally:
            reader.close()

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[Engine]:
        assert self.scripted is not None
        try:
            yield self.scripted
        finally:
            await self.scripted.aclose()


class Installation:
    """One installation in a folder of its own; `run` runs a command in it."""

    def __init__(self, folder: Path) -> None:
        self.paths = Paths(folder / "config", folder / "data", folder / "state").make()
        self.now = NOW
        self.store = Store.open(self.paths.database, clock=lambda: self.now)
        self.engine = ScriptedEngine(self.store)

    def run(self, *argv: str) -> int:
        """Run ``taskinbox`` with these arguments; returns the exit code."""
        parts = FakeParts(paths=self.paths, environ={}, now=lambda: self.now, scripted=self.engine)
        return app.cli.main(argv, parts)

    def task(
        self,
        id: str = "tsk_1",
        *questions: NewQuestion,
        server: str = "lab",
        tool: str = "work",
        **state: object,
    ) -> TaskKey:
        """Add a task with these open questions."""
        key = TaskKey(server, id)
        state.setdefault("status", "input_required" if questions else "working")
        made = TaskState(**state)  # type: ignore[arg-type]
        params = f'{{"name": "{tool}", "arguments": {{"n": 1.10}}}}'
        self.store.add_task(NewTask(key, tool=tool, params_json=params, state=made), questions=questions)
        return key

    def change(self, key: TaskKey, **state: object) -> TaskKey:
        """Change a task's state as a look at it would."""
        return change(self.store, key, **state)

    def questions(self, key: TaskKey) -> list[QuestionRecord]:
        """Return a task's questions as they are stored."""
        reader = StoreReader.open(self.paths.database)
        try:
            return reader.questions(key)
        finally:
            reader.close()

    def close(self) -> None:
        """Close the store."""
        self.store.close()


def change(
    store: Store, key: TaskKey, *, questions: Sequence[QuestionChange] = (), **state: object
) -> TaskKey:
    """Change a task's state as a look at it would."""
    store.change_task(
        key,
        lambda stored, _: TaskWrites(
            state=replace(stored.state, **state),  # type: ignore[arg-type]
            question_changes=tuple(questions),
        ),
    )
    return key
