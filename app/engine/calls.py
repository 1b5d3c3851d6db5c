"""Calls: requests that may become a task, ask something first, or be answered at once.

`tools/call` is not repeatable, so a call is in the store, with the program that sends it, before it is sent;
what happens between that and its reply stays "outcome unknown" for a person to decide. A call that was asked
something goes on by repeating the request with the answers and the same `requestState` (basic/patterns/mrtr).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Final, Literal

import simplejson

from app.engine import call_writes
from app.engine.clock import Clock
from app.engine.commands import CallOutcome, EngineError, is_refused_here
from app.engine.observed import to_json
from app.engine.outbox import exact_responses, is_unsent, without_echo
from app.engine.outputs import Outputs
from app.engine.problems import describe, engine_error, unknown_task
from app.engine.servers import Servers
from app.engine.watcher import Observer
from app.text import inert_line
from mcp_client import CallOutcome as Reply
from mcp_client import (
    CallToolResult,
    CompleteResult,
    CreateTaskResult,
    InputRequiredResult,
    McpClient,
    McpError,
    Progress,
    ProtocolError,
    RawJSON,
    ServerError,
)
from storage.async_store import AsyncStore
from storage.errors import UnknownTask
from storage.presence import Presence
from storage.reader import StoreReader
from storage.records import NewTask, QuestionRecord, Section, TaskKey, TaskRecord, TaskState

PAUSES_S: Final = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Before repeating a call that was asked nothing; the last one stands for all that follow."""

OnProgress = Callable[[str], None]
Unsent = Literal["forget", "requeue", "unknown"]
"""What becomes of a call that provably did not reach its server: its first sending is forgotten, a round's
answers are queued again, and one that a person repeated is as unknown as it was."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that can't go on yet, and why; ``is_elsewhere``: another program goes on with it."""

    message: str
    is_elsewhere: bool = False


_ELSEWHERE: Final = Waiting("Another program goes on with it.", is_elsewhere=True)
_WAITING_IN: Final[tuple[Section, ...]] = ("running", "archived")


class Calls:
    """Sends calls and their rounds."""

    def __init__(
        self,
        store: AsyncStore,
        reader: StoreReader,
        servers: Servers,
        observer: Observer,
        presence: Presence,
        outputs: Outputs,
        clock: Clock,
        *,
        token: Callable[[], str],
        on_task: Callable[[TaskKey], None],
    ) -> None:
        """*token* makes the random part of a call's id; *on_task* is told each task that a call became."""
        self._store = store
        self._reader = reader
        self._servers = servers
        self._observer = observer
        self._presence = presence
        self._outputs = outputs
        self._clock = clock
        self._token = token
        self._on_task = on_task
        self._sending: dict[TaskKey, asyncio.Future[CallOutcome]] = {}

    async def start(
        self, server: str, tool: str, arguments_json: str, on_progress: OnProgress | None
    ) -> CallOutcome:
        """Call a tool for the first time; raises `EngineError` where nothing can have happened."""
        await self._servers.check(server)
        key = TaskKey(server, f"call-{self._token()}")
        params = to_json({"name": tool, "arguments": RawJSON(arguments_json)})
        state = TaskState(status="working", created_at=self._clock.now())
        await self._store.add_task(
            NewTask(key, "call", tool=tool, params_json=params, state=state, owner=self._presence.owner)
        )
        return await self._send(key, (), "forget", on_progress)

    async def again(self, key: TaskKey) -> CallOutcome:
        """Repeat a call whose outcome is unknown, because a person decided to."""
        await self._servers.check(key.server)
        async with self._observer.lock(key):
            await self._own(key, call_writes.repeated(self._presence.owner, self._presence.is_dead))
            given = self._round(key, self._record(key).state.round)
            # Whoever sent them before: the call was unknown, so nobody sends it, and now it is ours.
            await self._store.claim([q.id for q in given], owner=self._presence.owner, dead=lambda _: True)
            sending = self._begin(key, given, "unknown")
        return await asyncio.shield(sending)

    async def go_on(self, key: TaskKey) -> CallOutcome | Waiting:
        """Repeat a call with its round's answers, once every question has one; raises `EngineError`.

        Asked for twice at a time, it is done once, and both hear the outcome.
        """
        async with self._observer.lock(key):
            sending = self._sending.get(key)
            if sending is None:
                record = self._record(key)
                held_back = await self._claim_round(key, record)
                if held_back is not None:
                    return held_back
                sending = self._begin(key, self._round(key, record.state.round), "requeue")
        return await asyncio.shield(sending)

    def _begin(
        self, key: TaskKey, given: Sequence[QuestionRecord], unsent: Unsent
    ) -> asyncio.Future[CallOutcome]:
        sending = asyncio.ensure_future(self._send(key, given, unsent, None))
        self._sending[key] = sending
        sending.add_done_callback(lambda _: self._sending.pop(key, None))
        return sending

    async def stop(self) -> None:
        """Stop waiting for replies; the calls that were under way are unknown then."""
        sending = list(self._sending.values())
        for task in sending:
            task.cancel()
        await asyncio.gather(*sending, return_exceptions=True)

    async def _claim_round(self, key: TaskKey, record: TaskRecord) -> Waiting | None:
        """Make this program the sender of a round; else say what keeps it."""
        if record.kind != "call" or record.state.tracking != "active" or record.state.round == 0:
            return Waiting("It is not waiting for answers.")
        asked = self._round(key, record.state.round)
        left = [q for q in asked if q.is_open]
        if left:
            keys = ", ".join(inert_line(q.key, 80) for q in left[:5])
            return Waiting(f"Saved; the call goes on once the rest is answered: {keys}.")
        if refused := self._refused(key, record.state.round):
            return Waiting(f"It waits: {inert_line(refused[0].key, 80)} was refused here.")
        if record.owner is not None:
            if self._presence.is_dead(record.owner):
                await self.recover()
            return _ELSEWHERE
        await self._servers.check(key.server)
        owner, ids = self._presence.owner, [q.id for q in asked]
        # First the call, then its answers: whoever has the call is the one that may take them.
        try:
            await self._own(key, call_writes.went_on(owner, record.state.round, self._presence.is_dead))
        except EngineError:
            return _ELSEWHERE
        taken = await self._store.claim(ids, owner=owner, dead=self._presence.is_dead)
        now = {q.id: q for q in self._round(key, record.state.round)}
        if all(one in now and now[one].owner == owner for one in ids):
            return None
        await self._store.release(taken, owner)
        await self._change(key, call_writes.left(owner))
        return _ELSEWHERE

    async def give_up(self, key: TaskKey) -> None:
        """End a call here; nothing is sent. Raises `EngineError` while it is being sent."""
        await self._own(key, call_writes.given_up(self._presence.is_dead))

    async def recover(self) -> None:
        """Take the calls out of the hands of programs that died: those in flight then are unknown."""
        for call in self._reader.calls_in_flight():
            if call.owner is not None and self._presence.is_dead(call.owner):
                with suppress(UnknownTask):  # forgotten, or another program was quicker
                    await self._change(call.key, call_writes.left(call.owner))

    def to_be_repeated(self) -> list[TaskKey]:
        """Return the calls that were asked nothing more and are in nobody's hands."""
        found = []
        for section in _WAITING_IN:
            for row in self._reader.list_rows(section=section, status="input_required"):
                if row.kind == "call" and not row.open_questions and row.state.tracking == "active":
                    record = self._reader.task(row.key)
                    free = record is not None and record.owner is None
                    if free and not self._refused(row.key, row.state.round):
                        found.append(row.key)
        return found

    async def _send(
        self, key: TaskKey, given: Sequence[QuestionRecord], unsent: Unsent, on_progress: OnProgress | None
    ) -> CallOutcome:
        """Send a call that is ours, and store what came of it, through rounds that ask nothing."""
        for pause in count():  # the rounds are bounded where they are stored
            record = self._record(key)
            try:
                reply = await self._exchange(record, given, on_progress)
            except (McpError, EngineError) as error:
                return await self._broken(key, error, given, unsent)
            except BaseException:  # the program ends, or it has a fault: either way nobody hears the reply
                reason = "Outcome unknown: the program stopped waiting for the reply."
                await self._store.change_task(key, call_writes.unknown(reason), durable=True)
                raise
            outcome = await self._settle(key, reply)
            if outcome is not None:
                return outcome
            await self._clock.wait(asyncio.Event(), PAUSES_S[min(pause, len(PAUSES_S) - 1)])
            owner, number = self._presence.owner, record.state.round + 1
            await self._own(key, call_writes.went_on(owner, number, self._presence.is_dead, paused=True))
            given, unsent = (), "requeue"
        raise AssertionError("endless")

    async def _exchange(
        self, record: TaskRecord, given: Sequence[QuestionRecord], on_progress: OnProgress | None
    ) -> Reply:
        params = simplejson.loads(record.params_json, use_decimal=True)
        responses = exact_responses(self._reader, given)

        def tell(progress: Progress) -> None:
            if on_progress is not None and progress.message:
                on_progress(progress.message)

        async def ask(client: McpClient) -> Reply:
            return await client.call(
                record.method,
                params,
                input_responses=responses or None,
                request_state=record.state.request_state,
                on_progress=tell if on_progress is not None else None,
            )

        return await self._servers.request(record.key.server, ask)

    async def _settle(self, key: TaskKey, reply: Reply) -> CallOutcome | None:
        """Store a reply; ``None``: it asked nothing, and the call is to be repeated."""
        match reply:
            case CreateTaskResult():
                task = TaskKey(key.server, reply.task_id)
                await self._change(key, call_writes.became(task, reply))
                self._on_task(task)
                return CallOutcome("task", task)
            case InputRequiredResult():
                await self._change(key, call_writes.asked(reply))
                state = self._record(key).state
                if state.tracking == "ended":
                    return CallOutcome("failed", key, message=state.problem)
                if state.tracking == "stopped":
                    return CallOutcome("failed", key, message=state.reason)
                if not reply.input_requests:
                    return None
                return CallOutcome("input_required", key)
            case CallToolResult() | CompleteResult():
                await self._change(key, call_writes.completed(reply))
                broken = await self._outputs.judge(key)
                return CallOutcome("complete", key, result_json=to_json(reply.raw), message=broken)

    async def _broken(
        self, key: TaskKey, error: McpError | EngineError, given: Sequence[QuestionRecord], unsent: Unsent
    ) -> CallOutcome:
        words = error.message if isinstance(error, EngineError) else describe(error)
        if is_unsent(error):
            doing = f"calling {self._tool(key)}"
            await self._take_back(key, words, unsent)
            if isinstance(error, EngineError):
                raise error
            raise engine_error(key.server, error, doing=doing)
        if isinstance(error, ServerError):
            for question in given:
                words = without_echo(self._reader, question, words)
            if given and error.is_invalid_params:
                await self._change(key, call_writes.refused(words))
                return CallOutcome("input_required", key, message=words)
            data = {"code": error.code, "message": error.message, "data": error.data}
            failure = to_json({k: v for k, v in data.items() if v is not None})
            await self._change(key, call_writes.failed(words, error_json=failure))
            return CallOutcome("failed", key, error_json=failure, message=words)
        if isinstance(error, ProtocolError):
            await self._change(key, call_writes.failed(words))
            return CallOutcome("failed", key, message=words)
        reason = f"Outcome unknown: it was sent, and no reply came. {words}"
        await self._change(key, call_writes.unknown(reason))
        return CallOutcome("unknown", key, message=reason)

    async def _take_back(self, key: TaskKey, words: str, unsent: Unsent) -> None:
        if unsent == "forget":
            await self._store.forget(key)
        elif unsent == "requeue":
            await self._change(key, call_writes.requeued(words))
        else:
            reason = f"Outcome unknown; repeating it did not succeed. {words}"
            await self._change(key, call_writes.unknown(reason))

    def _tool(self, key: TaskKey) -> str:
        record = self._reader.task(key)
        return (record.tool if record is not None else None) or "it"

    def _record(self, key: TaskKey) -> TaskRecord:
        record = self._reader.task(key)
        if record is None:
            raise unknown_task(key)
        return record

    def _round(self, key: TaskKey, number: int) -> list[QuestionRecord]:
        closed = ("settled", "withdrawn")
        return [
            q
            for q in self._reader.questions(key)
            if q.task == key and q.round == number and q.state not in closed
        ]

    def _refused(self, key: TaskKey, number: int) -> list[QuestionRecord]:
        """Return what a person refused where the wire has no word for it: a round is not complete so."""
        asked = self._reader.questions(key)
        return [q for q in asked if q.task == key and q.round == number and is_refused_here(q)]

    async def _change(self, key: TaskKey, decide: call_writes.Decide) -> None:
        await self._observer.change(key, decide, durable=True)

    async def _own(self, key: TaskKey, decide: call_writes.Decide) -> None:
        """Make a decision that may be refused with `EngineError`."""
        try:
            await self._change(key, decide)
        except UnknownTask:
            raise unknown_task(key) from None
