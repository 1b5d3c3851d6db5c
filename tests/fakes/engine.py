"""An engine without a network: what the screens ask of it is written into a real store, and recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from app.engine.commands import (
    REFUSED_HERE,
    Answer,
    CallOutcome,
    Changes,
    Delivery,
    EngineError,
    ServerReport,
    ToolListing,
)
from storage.errors import QuestionClosed
from storage.records import QuestionChange, QuestionRecord, Reply, TaskKey, TaskWrites
from storage.store import Store


@dataclass
class RecordingEngine:
    """Answers are saved and acknowledged at once, unless a test says otherwise."""

    store: Store
    delivery: Delivery = field(default_factory=lambda: Delivery("acknowledged"))
    trouble: EngineError | None = None
    """Raised by the next verbs instead of doing anything."""
    troubles: dict[TaskKey, EngineError] = field(default_factory=dict)
    """Raised by answers to these tasks."""
    listing: ToolListing = field(default_factory=lambda: ToolListing(()))
    outcome: CallOutcome | None = None
    drafted: str = "It is Paris."
    """What the command drafts."""
    gate: asyncio.Event | None = None
    """Where there is one, answers and calls wait for it: the network is slow."""
    answers: list[Answer] = field(default_factory=list)
    drafts: list[tuple[int, str | None]] = field(default_factory=list)
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    again: list[Any] = field(default_factory=list)
    ways: dict[str, Literal["subscribed", "polling"]] = field(default_factory=dict)
    """How each server's tasks are observed."""
    listeners: list[Callable[[Changes], None]] = field(default_factory=list)
    told: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by every verb that has done something."""

    async def run(self) -> None:
        await asyncio.Event().wait()

    async def _wait(self) -> None:
        if self.gate is not None:
            await self.gate.wait()
        if self.trouble is not None:
            self.told.set()
            raise self.trouble

    async def call(
        self, server: str, tool: str, arguments_json: str, *, on_progress: Callable[[str], None] | None = None
    ) -> CallOutcome:
        self.calls.append((server, tool, arguments_json))
        if on_progress is not None:
            on_progress("half way")
        await self._wait()
        assert self.outcome is not None
        return self.outcome

    async def call_again(self, call: TaskKey) -> CallOutcome:
        self.again.append(call)
        await self._wait()
        assert self.outcome is not None
        return self.outcome

    async def track(self, server: str, task_id: str, *, handle_json: str | None = None) -> TaskKey:
        return TaskKey(server, task_id)

    async def answer(self, task: TaskKey, answers: Sequence[Answer]) -> Delivery:
        await self._wait()
        if task in self.troubles:
            raise self.troubles[task]
        replies = [Reply(a.question.id, a.question.fingerprint, a.response_json) for a in answers]
        try:
            self.store.queue_answers(task, replies, by="test")
        except QuestionClosed as error:
            raise EngineError("closed", str(error)) from error
        self.answers.extend(answers)
        ids = [a.question.id for a in answers]
        states: dict[str, Any] = {"acknowledged": "acknowledged", "refused": "refused"}
        state = states.get(self.delivery.state)
        if state is not None:
            self.store.claim(ids, owner="test", dead=lambda _owner: False)
            changes = tuple(QuestionChange(id, state, refusal=self.delivery.message) for id in ids)
            self.store.change_task(task, lambda _task, _questions: TaskWrites(question_changes=changes))
        self.told.set()
        self.changed(task)
        return self.delivery

    async def send_again(self, question_id: int) -> Delivery:
        self.again.append(question_id)
        self.told.set()
        return self.delivery

    async def refuse(self, question: QuestionRecord) -> str:
        await self._wait()
        change = QuestionChange(question.id, "withdrawn", refusal=REFUSED_HERE)
        self.store.change_task(
            question.task, lambda _task, _questions: TaskWrites(question_changes=(change,))
        )
        self.again.append(("refuse", question.key))
        self.told.set()
        self.changed(question.task)
        return "Refused here."

    async def reopen(self, question_id: int) -> None:
        question = self.store.reader.question(question_id)
        assert question is not None
        change = QuestionChange(question_id, "open", refusal="")
        self.store.change_task(
            question.task, lambda _task, _questions: TaskWrites(question_changes=(change,))
        )
        self.changed(question.task)

    async def draft_reply(self, question: QuestionRecord) -> str:
        await self._wait()
        self.again.append(("draft", question.key))
        return self.drafted

    async def cancel(self, task: TaskKey) -> str:
        self.again.append(("cancel", task))
        return "Asked to cancel."

    async def let_ask(self, task: TaskKey) -> str:
        self.again.append(("let_ask", task))
        return "May ask on."

    async def refresh(self, task: TaskKey) -> None:
        self.again.append(("refresh", task))

    async def archive(self, task: TaskKey) -> None:
        self.store.archive(task)

    async def unarchive(self, task: TaskKey) -> None:
        self.store.unarchive(task)

    async def forget(self, task: TaskKey) -> None:
        self.store.forget(task)

    async def save_draft(self, question_id: int, draft_json: str | None) -> None:
        self.store.save_draft(question_id, draft_json)
        self.drafts.append((question_id, draft_json))
        self.told.set()

    async def save_reply(self, question: QuestionRecord, name: str, draft_json: str) -> None:
        self.store.save_reply(question.fingerprint, name, draft_json)

    async def delete_reply(self, question: QuestionRecord, name: str) -> None:
        self.store.delete_reply(question.fingerprint, name)

    async def tools(self, server: str) -> ToolListing:
        await self._wait()
        return self.listing

    async def test_server(self, server: str) -> ServerReport:
        return ServerReport(server, server, (), True, 0, None)

    async def reload_servers(self) -> None:
        return None

    def listen(self, listener: Callable[[Changes], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def changed(self, *keys: TaskKey) -> None:
        """Tell the listeners that these tasks changed."""
        for listener in list(self.listeners):
            listener(Changes(tasks=frozenset(keys)))

    def observing(self, server: str) -> Literal["subscribed", "polling"] | None:
        return self.ways.get(server)

    async def wait_for(self, task: TaskKey, until: Literal["input", "end"]) -> None:
        return None

    async def aclose(self) -> None:
        return None
