"""Saying no where the wire has no word for it: to sampling and to roots.

The server waits for an answer and is not told of a refusal (client/sampling, "Error Handling"); that there
was one stands here alone. The question is then not asked again, and its task waits on until it is cancelled
or its server gives up.
"""

from __future__ import annotations

from app.engine.commands import REFUSED_HERE, EngineError, has_result, is_refused_here
from app.engine.problems import unknown_task
from app.engine.reconcile import event
from app.engine.watcher import Observer
from app.text import inert_line
from storage.errors import UnknownTask
from storage.reader import StoreReader
from storage.records import QuestionChange, QuestionRecord, TaskRecord, TaskWrites
from storage.store import Decide


class Refusing:
    """Records refusals, and takes them back."""

    def __init__(self, reader: StoreReader, observer: Observer, *, by: str) -> None:
        """*by* is who refuses, for the log."""
        self._reader = reader
        self._observer = observer
        self._by = by

    async def refuse(self, question: QuestionRecord) -> str:
        """Record that *question*, exactly as it was shown, is not answered; returns words for a person."""
        if not has_result(question):
            raise EngineError("invalid", f"{inert_line(question.key, 80)} can be declined or dismissed.")

        def decide(_: TaskRecord, stored: tuple[QuestionRecord, ...]) -> TaskWrites:
            now = next((q for q in stored if q.id == question.id), None)
            if now is None or not now.is_open or now.fingerprint != question.fingerprint:
                raise EngineError("closed", "The question is not open any more; nothing was recorded.")
            fact = event("question_refused_here", {"key": now.key, "by": self._by})
            change = QuestionChange(now.id, "withdrawn", refusal=REFUSED_HERE)
            return TaskWrites(question_changes=(change,), events=(fact,))

        await self._change(question, decide)
        server = inert_line(question.task.server, 80)
        return f"Refused here. {server} is not told: its task waits on, and can be cancelled."

    async def reopen(self, question_id: int) -> None:
        """Ask a refused question again."""
        question = self._reader.question(question_id)
        if question is None or not is_refused_here(question):
            raise EngineError("closed", "The question is not one that was refused here.")

        def decide(task: TaskRecord, stored: tuple[QuestionRecord, ...]) -> TaskWrites:
            if task.state.tracking == "ended":
                raise EngineError("closed", "The task is over.")
            if not any(q.id == question_id and is_refused_here(q) for q in stored):
                raise EngineError("closed", "The question is not one that was refused here.")
            change = QuestionChange(question_id, "open", refusal="")
            fact = event("question_reopened", {"key": question.key, "by": self._by})
            return TaskWrites(question_changes=(change,), events=(fact,))

        await self._change(question, decide)

    async def _change(self, question: QuestionRecord, decide: Decide) -> None:
        try:
            await self._observer.change(question.task, decide, durable=True)
        except UnknownTask:
            raise unknown_task(question.task) from None
