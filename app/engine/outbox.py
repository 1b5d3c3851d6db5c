"""Delivering saved answers: claimed once, sent only to the exact question they were given to.

First tasks/get; only where that very key and content is still outstanding, tasks/update with the saved bytes
(the Tasks page, "Task Update Requests"). Every step is in the store before the next is taken, so that a crash
at any instant leaves something the next program can finish.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from app.engine.clock import Clock
from app.engine.commands import EngineError
from app.engine.problems import describe
from app.engine.reconcile import about, event
from app.engine.servers import Servers
from app.engine.watcher import Look, Observer, elsewhere
from app.forms.redacting import secrets_in
from app.text import inert_line
from mcp_client import (
    AuthRequired,
    InvalidRequest,
    LegacyServer,
    McpError,
    RawJSON,
    ServerError,
    TransportError,
)
from storage.async_store import AsyncStore
from storage.presence import Presence
from storage.reader import StoreReader
from storage.records import QuestionChange, QuestionRecord, TaskKey, TaskRecord, TaskWrites
from storage.store import Decide

ROUNDS_MOST: Final = 3
"""Times that one delivery looks for answers: some may have been saved while it was under way."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of trying to deliver a task's answers; the store says what became of each."""

    acknowledged: bool = False
    """At least one answer was acknowledged: look soon whether it settles."""
    error: McpError | EngineError | None = None
    """What keeps the rest from being delivered now; ``None``: nothing is left that this program may
    deliver."""


class Outbox:
    """Delivers the answers to tasks' questions (those to a call's questions go out with the call)."""

    def __init__(
        self,
        store: AsyncStore,
        reader: StoreReader,
        servers: Servers,
        observer: Observer,
        presence: Presence,
        clock: Clock,
    ) -> None:
        self._store = store
        self._reader = reader
        self._servers = servers
        self._observer = observer
        self._presence = presence
        self._clock = clock

    def is_ours(self, question: QuestionRecord) -> bool:
        """Say whether this program may deliver the answer: it is free, ours already, or its owner is dead."""
        if question.state == "queued":
            return True
        if question.state != "sent":
            return False
        owner = question.owner
        return owner is None or owner == self._presence.owner or self._presence.is_dead(owner)

    async def deliver(self, key: TaskKey) -> Attempt:
        """Deliver what is saved for *key*; raises `StorageError` only."""
        acknowledged = False
        async with self._observer.lock(key):
            for _ in range(ROUNDS_MOST):
                mine = [q for q in self._reader.questions(key) if q.task == key and self.is_ours(q)]
                if not mine:
                    return Attempt(acknowledged)
                attempt = await self._deliver_once(key, mine)
                acknowledged = acknowledged or attempt.acknowledged
                if attempt.error is not None or not attempt.acknowledged:
                    return Attempt(acknowledged, attempt.error)
        return Attempt(acknowledged)

    async def _deliver_once(self, key: TaskKey, mine: Sequence[QuestionRecord]) -> Attempt:
        owner = self._presence.owner
        # What was being sent when its program ended may have arrived: it is taken over before the look, and
        # counts as settled should the look not show it any more. What is queued was never sent: it is claimed
        # after the look, and counts as withdrawn.
        orphans = [q.id for q in mine if q.state == "sent" and q.owner != owner]
        taken = await self._store.claim(orphans, owner=owner, dead=self._presence.is_dead)
        held = {*taken, *(q.id for q in mine if q.state == "sent" and q.owner == owner)}
        look = await self._observer.look_locked(key)
        if look.kind == "failed":
            return Attempt(error=look.error)
        queued = [q.id for q in self._outstanding(key, look) if q.state == "queued"]
        fresh = await self._store.claim(queued, owner=owner, dead=lambda _: False)
        held.update(fresh)
        due = [q for q in self._outstanding(key, look) if q.state == "sent" and q.id in held]
        if not due:
            return Attempt()
        attempt = await self._send(key, due)
        if attempt.error is not None and is_unsent(attempt.error):
            await self._store.release(fresh, owner)  # those that an acknowledgement or refusal moved on stay
        return attempt

    def _outstanding(self, key: TaskKey, look: Look) -> list[QuestionRecord]:
        """Return the questions that the look has just shown, with that very content."""
        if look.seen is None:
            return []
        shown = {(one.key, one.fingerprint) for one in look.seen.asked}
        own = (q for q in self._reader.questions(key) if q.task == key)
        return [q for q in own if (q.key, q.fingerprint) in shown]

    async def _send(self, key: TaskKey, due: Sequence[QuestionRecord]) -> Attempt:
        responses = exact_responses(self._reader, due)
        try:
            await self._servers.request(key.server, lambda client: client.update_task(key.id, responses))
        except ServerError as error:
            return await self._refused(key, due, error)
        except (McpError, EngineError) as error:
            log.info("Answers to %s were not acknowledged: %s", key, _words(error))
            return Attempt(error=error)
        await self._move(key, due, "acknowledged", "answer_acknowledged")
        return Attempt(acknowledged=True)

    async def _refused(self, key: TaskKey, due: Sequence[QuestionRecord], error: ServerError) -> Attempt:
        """Let tasks/get decide what an error means: the question is still there, or the task is lost."""
        look = await self._observer.look_locked(key)
        if look.kind == "failed":
            return Attempt(error=look.error)
        ids = {q.id for q in due}
        still = [q for q in self._outstanding(key, look) if q.id in ids and q.state == "sent"]
        if len(still) > 1:
            # One bad answer must not send back the good ones: those left are sent one by one.
            attempts = [await self._send(key, [question]) for question in still]
            failed = [a.error for a in attempts if a.error is not None]
            failed.sort(key=is_unsent)  # first what may have arrived: then nothing is taken back
            return Attempt(any(a.acknowledged for a in attempts), failed[0] if failed else None)
        words = describe(error)
        for question in still:
            words = without_echo(self._reader, question, words)
        await self._move(key, still, "refused", "answer_refused", words)
        return Attempt()

    async def cancel(self, key: TaskKey, *, requested_at: int | None = None) -> McpError | EngineError | None:
        """Pass a saved wish to cancel on to the server; returns what kept it, ``None``: it has it.

        With *requested_at*, the wish is saved first. A refusal ends the wish; anything else leaves it for the
        next attempt. Raises `UnknownTask`.
        """
        if requested_at is not None:
            await self._observer.change(key, cancel_requested(requested_at), durable=True)
        async with self._observer.lock(key):
            stored = self._reader.task(key)
            # The watcher and a command may both be at it: one request is enough.
            if stored is None or stored.state.cancel_acknowledged_at is not None:
                return None
            if requested_at is None and stored.state.cancel_requested_at is None:
                return None
            try:
                await self._servers.request(key.server, lambda client: client.cancel_task(key.id))
            except ServerError as error:
                if error.is_invalid_params and self._servers.may_run_elsewhere(key.server):
                    return elsewhere(key)
                await self._observer.change(key, _cancel_refused(describe(error)), durable=True)
                return error
            except (McpError, EngineError) as error:
                return error
            await self._observer.change(key, _cancel_acknowledged(self._clock.now()), durable=True)
            return None

    async def _move(
        self,
        key: TaskKey,
        questions: Sequence[QuestionRecord],
        state: str,
        fact: str,
        reason: str | None = None,
    ) -> None:
        ids = {q.id for q in questions}

        def decide(task: TaskRecord, stored: tuple[QuestionRecord, ...]) -> TaskWrites:
            moved = [q for q in stored if q.id in ids and q.state == "sent"]
            return TaskWrites(
                question_changes=tuple(_change(q.id, state, reason) for q in moved),
                events=tuple(about(fact, q, reason=reason) for q in moved),
                unarchive=state == "refused" and bool(moved),
            )

        await self._observer.change(key, decide, durable=True)


def _change(question_id: int, state: str, reason: str | None) -> QuestionChange:
    if state == "refused":
        return QuestionChange(question_id, "refused", refusal=reason)
    return QuestionChange(question_id, "acknowledged", still_asked=0)


def exact_responses(reader: StoreReader, questions: Sequence[QuestionRecord]) -> dict[str, RawJSON]:
    """Return the answers to *questions* by key, to the letter as they were given."""
    found = {q.key: reader.exact_response(q.id) for q in questions}
    return {key: RawJSON(text) for key, text in found.items() if text is not None}


def without_echo(reader: StoreReader, question: QuestionRecord, words: str) -> str:
    """Return what a server said of an answer without the secrets that it repeats from it."""
    exact = reader.exact_response(question.id) if question.withheld else None
    if exact is not None:
        for secret in secrets_in(question.request_json, exact):
            words = words.replace(secret, "…").replace(inert_line(secret), "…")
    return words


def is_unsent(error: McpError | EngineError) -> bool:
    """Say whether the request provably had no effect."""
    if isinstance(error, TransportError):
        return not error.may_have_reached
    return isinstance(error, AuthRequired | InvalidRequest | LegacyServer | EngineError)


def cancel_requested(now: int) -> Decide:
    """Return the decision that saves a person's wish to cancel."""

    def decide(task: TaskRecord, _: tuple[QuestionRecord, ...]) -> TaskWrites:
        if task.state.tracking == "ended":
            return TaskWrites()
        state = replace(task.state, cancel_requested_at=now, cancel_acknowledged_at=None)
        return TaskWrites(state=state, events=(event("cancel_requested"),))

    return decide


def _cancel_acknowledged(now: int) -> Decide:
    def decide(task: TaskRecord, _: tuple[QuestionRecord, ...]) -> TaskWrites:
        state = replace(task.state, cancel_acknowledged_at=now)
        return TaskWrites(state=state, events=(event("cancel_acknowledged"),))

    return decide


def _cancel_refused(reason: str) -> Decide:
    def decide(task: TaskRecord, _: tuple[QuestionRecord, ...]) -> TaskWrites:
        state = replace(task.state, cancel_requested_at=None, cancel_acknowledged_at=None)
        facts = (event("cancel_refused", {"reason": reason}),)
        return TaskWrites(state=state, events=facts, unarchive=True)

    return decide


def _words(error: McpError | EngineError) -> str:
    return error.message if isinstance(error, EngineError) else describe(error)
