"""Answers as a person gives them: saved first, then delivered, and told what became of them."""

from __future__ import annotations

import asyncio
import getpass
import os
from collections.abc import Callable, Sequence
from typing import Final

from app.config import NONE, Abilities
from app.engine.calls import Calls, Waiting
from app.engine.clock import Clock
from app.engine.commands import Answer, CallOutcome, Delivery, EngineError
from app.engine.given import call_delivery_of, delivery_of, reply_to, saved
from app.engine.outbox import Attempt, Outbox
from app.engine.problems import unknown_task
from app.engine.reconcile import about, asking_on
from app.engine.watcher import Observer
from app.forms.redacting import draft_without_secrets
from app.text import inert_line
from storage.async_store import AsyncStore
from storage.errors import QuestionClosed, UnknownTask
from storage.reader import StoreReader
from storage.records import QuestionChange, QuestionRecord, TaskKey, TaskRecord, TaskWrites

_has_users: Final = os.name == "posix"
if _has_users:
    import pwd as _users

ELSEWHERE_S: Final = 10.0
"""How long an answer that another living program is delivering is waited for."""
_GLANCE_S: Final = 0.1
"""Seconds between two looks into the store meanwhile: `Engine.run` may not be there to follow it."""

NOT_TO_BE_REPEATED: Final = (
    "The answer can't be sent again: it held secrets, and those are not kept once the server has them. "
    "The question is open again: answer it anew."
)


def system_user() -> str:
    """Return the name of the user whom the system knows this program's process by, or "unknown"."""
    try:
        # The password database alone: getpass believes LOGNAME and USER, which anybody may set.
        return _users.getpwuid(os.getuid()).pw_name if _has_users else getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container's process may have a number and no name
        return "unknown"


class Answering:
    """Saves and delivers answers, to tasks and to calls alike."""

    def __init__(
        self,
        store: AsyncStore,
        reader: StoreReader,
        observer: Observer,
        outbox: Outbox,
        calls: Calls,
        clock: Clock,
        *,
        by: str,
        on_moved: Callable[[TaskKey], None],
        hurry: Callable[[TaskKey], None],
    ) -> None:
        """*by* is who answers, for the log; *on_moved* is told each task whose answers moved, *hurry* each
        one that is worth a look soon."""
        self._store = store
        self._reader = reader
        self._observer = observer
        self._outbox = outbox
        self._calls = calls
        self._clock = clock
        self._by = by
        self._on_moved = on_moved
        self._hurry = hurry

    async def save(self, answers: Sequence[Answer], abilities: Abilities = NONE) -> tuple[TaskKey, list[int]]:
        """Save the answers to one task's questions; returns whose they are, and the questions' numbers.

        *abilities* are what that task's server may ask beside elicitations.

        Raises `EngineError`; then nothing was saved.
        """
        holders = {answer.question.task for answer in answers}
        if len(holders) != 1 or len({answer.question.id for answer in answers}) != len(answers):
            raise EngineError("invalid", "One or more answers, each to another question of one task.")
        (holder,) = holders
        replies = [reply_to(answer, abilities) for answer in answers]
        try:
            await self._store.queue_answers(holder, replies, by=self._by)
        except QuestionClosed as error:
            raise EngineError("closed", f"{holder.id} of {holder.server}: {error}.") from None
        except UnknownTask:
            raise unknown_task(holder) from None
        return holder, [reply.question_id for reply in replies]

    async def save_again(self, question_id: int) -> TaskKey:
        """Save that an acknowledged answer is to be sent once more; returns whose it is.

        Raises `EngineError`; where the answer held secrets, its question is open again then.
        """
        question = self._reader.question(question_id)
        if question is None:
            raise EngineError("closed", "The question is gone.")

        def decide(_: TaskRecord, questions: tuple[QuestionRecord, ...]) -> TaskWrites:
            stored = next((q for q in questions if q.id == question_id), None)
            if stored is None or stored.state != "acknowledged":
                raise EngineError("closed", f"The answer to {question.key} is not one to be sent again.")
            if stored.withheld:
                again = about("question_reopened", stored, by=self._by, reason="its secrets are not kept")
                return TaskWrites(question_changes=(QuestionChange(question_id, "open"),), events=(again,))
            again = about("answer_queued_again", stored, by=self._by)
            return TaskWrites(question_changes=(QuestionChange(question_id, "queued"),), events=(again,))

        try:
            writes = await self._observer.change(question.task, decide, durable=True)
        except UnknownTask:
            raise unknown_task(question.task) from None
        if any(change.state == "open" for change in writes.question_changes):
            self._on_moved(question.task)
            raise EngineError("invalid", f"{inert_line(question.key, 80)}: {NOT_TO_BE_REPEATED}")
        return question.task

    async def save_draft(self, question_id: int, draft_json: str | None) -> None:
        """Keep what has been typed so far, but for secrets; ``None``: nothing."""
        question = self._reader.question(question_id) if draft_json is not None else None
        if question is not None and draft_json is not None:
            draft_json = draft_without_secrets(question.request_json, draft_json)
        await self._store.save_draft(question_id, draft_json)

    async def save_reply(self, question: QuestionRecord, name: str, draft_json: str) -> None:
        """Keep what was typed, but for secrets, to fill the same question in with another time."""
        kept = draft_without_secrets(question.request_json, draft_json)
        if not name.strip() or kept is None:
            what = (
                "A saved reply needs a name." if kept else "There is nothing to save: secrets are not kept."
            )
            raise EngineError("invalid", what)
        await self._store.save_reply(question.fingerprint, name.strip(), kept)

    async def let_ask(self, task: TaskKey) -> None:
        """Let a server ask on that was stopped; raises `EngineError` where none was."""
        try:
            writes = await self._observer.change(
                task, lambda stored, _: asking_on(stored, self._by), durable=True
            )
        except UnknownTask:
            raise unknown_task(task) from None
        if not writes:
            raise EngineError("closed", f"{inert_line(str(task), 200)} was not stopped from asking.")
        self._on_moved(task)
        self._hurry(task)

    async def deliver(self, holder: TaskKey, question_ids: Sequence[int]) -> Delivery:
        """Deliver saved answers; what another living program has in hand is waited for, within bounds."""
        record = self._reader.task(holder)
        if record is None:
            raise unknown_task(holder)
        if record.kind == "call":
            return await self._go_on(holder, question_ids)
        until = self._clock.elapsed() + ELSEWHERE_S
        while True:
            attempt = await self._deliver(holder)
            given = self._given(question_ids)
            elsewhere = [q for q in given if q.state == "sent" and not self._outbox.is_ours(q)]
            if not elsewhere or not await self._moves_on(elsewhere, until):
                self._on_moved(holder)
                return delivery_of(holder, given, attempt.error)

    async def _deliver(self, holder: TaskKey) -> Attempt:
        attempt = await self._outbox.deliver(holder)
        if attempt.acknowledged:
            self._hurry(holder)
        return attempt

    async def _go_on(self, call: TaskKey, question_ids: Sequence[int]) -> Delivery:
        until = self._clock.elapsed() + ELSEWHERE_S
        while True:
            try:
                outcome = await self._calls.go_on(call)
            except EngineError as error:
                over = call_delivery_of(self._reader.task(call), self._given(question_ids))
                return over or saved(call, error)
            if not isinstance(outcome, Waiting):
                return _of_call(outcome)
            given = self._given(question_ids)
            became = call_delivery_of(self._reader.task(call), given)
            if became is not None:
                return became
            if not outcome.is_elsewhere:
                return Delivery("waiting", outcome.message)
            if not await self._moves_on(given, until):
                return saved(call, None)

    def _given(self, question_ids: Sequence[int]) -> list[QuestionRecord]:
        return [q for one in question_ids if (q := self._reader.question(one)) is not None]

    async def _moves_on(self, questions: Sequence[QuestionRecord], until: float) -> bool:
        """Return True once one of *questions* is in another state, or nobody's; False when time is up."""
        never = asyncio.Event()
        while self._clock.elapsed() < until:
            await self._clock.wait(never, _GLANCE_S)
            for shown in questions:
                now = self._reader.question(shown.id)
                if now is None or now.state != shown.state or self._outbox.is_ours(now):
                    return True
        return False


def _of_call(outcome: CallOutcome) -> Delivery:
    if outcome.kind == "unknown":
        return Delivery("unknown", outcome.message, outcome)
    if outcome.kind == "input_required" and outcome.message is not None:
        return Delivery("refused", outcome.message, outcome)
    return Delivery("acknowledged", outcome.message, outcome)
