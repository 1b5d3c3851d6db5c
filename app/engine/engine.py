"""The engine: the verbs of `app.engine.commands.Engine` over the store and the servers."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

from app.config import ConfigError, ServersFile
from app.engine import call_writes
from app.engine.answering import Answering, system_user
from app.engine.calls import Calls
from app.engine.changes import ChangeFeed
from app.engine.clock import Clock
from app.engine.commands import (
    Answer,
    CallOutcome,
    Changes,
    Delivery,
    EngineError,
    ServerReport,
    ToolInfo,
    ToolListing,
)
from app.engine.given import handle_of, json_object, not_cancelled
from app.engine.observed import to_json
from app.engine.outbox import Outbox
from app.engine.outputs import Outputs
from app.engine.problems import engine_error, unknown_task
from app.engine.refusing import Refusing
from app.engine.runner import Runner
from app.engine.servers import LIMITS, Servers, first_look
from app.engine.sight import observed, report, with_words
from app.engine.watcher import Look, Observer
from app.engine.work import Work
from app.text import inert_line
from mcp_client import Limits, McpClient, McpError, ServerError
from storage.async_store import AsyncStore
from storage.errors import UnknownTask
from storage.presence import Presence
from storage.reader import StoreReader
from storage.records import NewTask, QuestionRecord, TaskKey, TaskRecord, TaskState

T = TypeVar("T")
log = logging.getLogger(__name__)


class InboxEngine:
    """Implements `app.engine.commands.Engine`; lives on one event loop."""

    def __init__(
        self,
        store: AsyncStore,
        reader: StoreReader,
        presence: Presence,
        servers: Servers,
        feed: ChangeFeed,
        clock: Clock,
        *,
        token: Callable[[], str],
        by: str,
    ) -> None:
        """Put the parts together; `open` is the usual way."""
        self._store = store
        self._reader = reader
        self._presence = presence
        self._servers = servers
        self._feed = feed
        self._clock = clock
        self._observer = Observer(store, reader, servers, feed, clock)
        self._outputs = Outputs(reader, servers, self._observer)
        self._observer.on_completed = self._completed
        self._outbox = Outbox(store, reader, servers, self._observer, presence, clock)
        self._calls = Calls(
            store,
            reader,
            servers,
            self._observer,
            presence,
            self._outputs,
            clock,
            token=token,
            on_task=lambda key: self._moved(key),
        )
        self._runner = Runner(store, reader, servers, self._observer, self._outbox, self._calls, feed, clock)
        self._answering = Answering(
            store,
            reader,
            self._observer,
            self._outbox,
            self._calls,
            clock,
            by=by,
            on_moved=self._moved,
            hurry=self._runner.hurry,
        )
        self._refusing = Refusing(reader, self._observer, by=by)
        self._work = Work()

    @classmethod
    async def open(
        cls,
        *,
        database: Path,
        programs: Path,
        servers: ServersFile,
        environ: Mapping[str, str] = os.environ,
        clock: Clock | None = None,
        token: Callable[[], str] = lambda: secrets.token_hex(6),
        limits: Limits = LIMITS,
        by: str | None = None,
        stderr: Path | None = None,
    ) -> InboxEngine:
        """Open the store at *database*, make this program known in the folder *programs*, contact nobody.

        *token* makes the random part of a call's id. *by* is who answers, in the log; ``None``: the user whom
        the system knows. *stderr* is the folder for what servers that are started write there; ``None``: it
        isn't kept. Raises `storage.errors.StorageError`.
        """
        clock = clock or Clock()
        presence = await asyncio.to_thread(Presence.enter, programs)
        try:
            store = await AsyncStore.open(database, clock=clock.now)
        except BaseException:
            presence.close()
            raise
        reader = StoreReader.open(database)
        feed = ChangeFeed()
        known = {record.name: record for record in reader.servers()}
        pool = Servers(
            servers,
            environ,
            store,
            feed,
            clock,
            known,
            limits=limits,
            stderr=stderr,
            has_others=presence.has_others,
        )
        engine = cls(store, reader, presence, pool, feed, clock, token=token, by=by or system_user())
        await engine._calls.recover()
        return engine

    async def aclose(self) -> None:
        """End all work and close the store; what is saved is saved."""
        await self._work.end()
        await self._runner.stop()
        await self._calls.stop()
        self._feed.close()
        await self._servers.aclose()
        await self._store.aclose()
        self._reader.close()
        self._presence.close()

    async def run(self) -> None:
        """Watch every active task and deliver saved answers until cancelled."""
        await self._runner.run()

    # Calls and tasks

    async def call(
        self,
        server: str,
        tool: str,
        arguments_json: str,
        *,
        on_progress: Callable[[str], None] | None = None,
    ) -> CallOutcome:
        """Call a tool: durable before it is sent, never repeated by itself."""
        json_object(arguments_json, "The arguments")
        return await self._work.do(self._calls.start(server, tool, arguments_json, on_progress))

    async def call_again(self, call: TaskKey) -> CallOutcome:
        """Repeat a call whose outcome is unknown, because a person decided to."""
        self._task(call)
        return await self._work.do(self._calls.again(call))

    async def track(self, server: str, task_id: str, *, handle_json: str | None = None) -> TaskKey:
        """Keep a task made elsewhere; its server is asked for it once."""
        key = TaskKey(server, task_id)
        state = (
            TaskState() if handle_json is None else call_writes.handle_state(handle_of(handle_json, task_id))
        )
        await self._servers.check(server)
        found = await first_look(self._servers, key)
        await self._store.add_task(NewTask(key, tool=None, state=state))
        self._feed.add(key)
        await self._observer.take_in(key, observed(found))
        self._moved(key)
        return key

    async def cancel(self, task: TaskKey) -> str:
        """Ask the server to cancel; returns words for a person. For a call: give it up here."""
        record = self._task(task)
        if record.kind == "call":
            await self._calls.give_up(record.key)
            return f"Given up here; {record.key.server} was told nothing."
        if record.state.tracking == "ended":
            raise EngineError("closed", f"{record.key.id} is over already: {record.state.status}.")
        try:
            error = await self._work.do(self._outbox.cancel(record.key, requested_at=self._clock.now()))
        except UnknownTask:
            raise unknown_task(task) from None
        if error is None:
            self._runner.hurry(record.key)
            return f"{record.key.server} was asked to cancel {record.key.id}; it decides whether and when."
        if isinstance(error, ServerError):
            await self._observer.look(record.key)
            if (now := self._task(record.key).state).tracking == "ended":
                raise EngineError("closed", f"{record.key.id} is over already: {now.status}.")
        raise not_cancelled(record.key, error)

    async def let_ask(self, task: TaskKey) -> str:
        """Let a server ask on that was stopped, as often again; returns words for a person."""
        await self._answering.let_ask(task)
        with suppress(EngineError):  # one that is away is asked later
            await self.refresh(task)
        return f"{inert_line(task.server, 80)} may ask on."

    async def refresh(self, task: TaskKey) -> None:
        """Look at a task once, now."""
        record = self._task(task)
        if record.kind == "call":
            return
        look: Look = await self._work.do(self._observer.look(record.key))
        match look.error:
            case EngineError() as error if look.kind == "failed":
                raise error
            case McpError() as error if look.kind == "failed":
                raise engine_error(record.key.server, error, doing=f"looking at {record.key.id}")
        self._moved(record.key)

    # Answers

    async def answer(self, task: TaskKey, answers: Sequence[Answer]) -> Delivery:
        """Save the answers, then deliver them; returns when the server has acknowledged or can't be reached.

        Raises `EngineError` ``closed`` when a question is not open any more, or is not the one that was
        shown: then nothing was saved.
        """
        self._task(task)
        holder, questions = await self._answering.save(answers, self._servers.abilities(task.server))
        self._feed.add(holder)
        return await self._work.do(self._answering.deliver(holder, questions))

    async def send_again(self, question_id: int) -> Delivery:
        """Send the same answer once more: for a server that lost one it had acknowledged."""
        holder = await self._answering.save_again(question_id)
        return await self._work.do(self._answering.deliver(holder, [question_id]))

    async def refuse(self, question: QuestionRecord) -> str:
        """Record that *question*, of a kind that has no "no" on the wire, is not answered; returns words."""
        words = await self._refusing.refuse(question)
        self._feed.add(question.task)
        return words

    async def reopen(self, question_id: int) -> None:
        """Ask a question again that was refused here."""
        await self._refusing.reopen(question_id)

    async def draft_reply(self, question: QuestionRecord) -> str:
        """Let the server's configured command draft a reply to a sampling question; returns its text."""
        return await self._work.do(self._servers.draft(question))

    async def save_draft(self, question_id: int, draft_json: str | None) -> None:
        """Keep what has been typed so far (``None``: nothing)."""
        await self._answering.save_draft(question_id, draft_json)

    async def save_reply(self, question: QuestionRecord, name: str, draft_json: str) -> None:
        """Keep what was typed, but for secrets, to fill the same question in with another time."""
        await self._answering.save_reply(question, name, draft_json)

    async def delete_reply(self, question: QuestionRecord, name: str) -> None:
        """Delete a saved reply."""
        await self._store.delete_reply(question.fingerprint, name)

    # Keeping and forgetting

    async def archive(self, task: TaskKey) -> None:
        """Put a task away; new activity brings it back."""
        await self._known(task, self._store.archive)

    async def unarchive(self, task: TaskKey) -> None:
        """Bring a task back."""
        await self._known(task, self._store.unarchive)

    async def forget(self, task: TaskKey) -> None:
        """Delete our record of a task; its server is told nothing."""
        self._runner.unwatch(self._task(task).key)
        await self._known(task, self._store.forget)

    async def _known(self, task: TaskKey, verb: Callable[[TaskKey], Coroutine[Any, Any, None]]) -> None:
        try:
            await verb(task)
        except UnknownTask:
            raise unknown_task(task) from None
        self._feed.add(task)

    # Servers

    async def tools(self, server: str) -> ToolListing:
        """List a server's tools."""
        found = await self._ask(server, lambda client: client.list_tools(), "listing its tools")
        tools = tuple(
            ToolInfo(t.name, t.title, t.description, t.input_schema, t.annotations) for t in found.tools
        )
        return ToolListing(tools, found.warnings)

    async def test_server(self, server: str) -> ServerReport:
        """Contact a server and say what it is."""
        try:
            found = await self._ask(
                server, lambda client: client.discover(fresh=True), "asking what it is", is_test=True
            )
            await self._servers.learned(server, to_json(found.raw))
            listing = await self.tools(server) if found.has_tools else ToolListing(())
        except EngineError as error:
            raise with_words(error, *self._servers.heard(server)) from None
        return report(server, found, listing, self._servers.heard(server)[0])

    async def reload_servers(self) -> None:
        """Read the servers file again."""
        try:
            await self._runner.reload_servers()
        except ConfigError as error:
            raise EngineError("invalid", str(error)) from None

    async def _ask(
        self,
        server: str,
        ask: Callable[[McpClient], Coroutine[Any, Any, T]],
        doing: str,
        *,
        is_test: bool = False,
    ) -> T:
        try:
            return await self._servers.request(server, ask)
        except McpError as error:
            raise engine_error(server, error, doing=doing, is_test=is_test) from None

    # Changes

    def listen(self, listener: Callable[[Changes], None]) -> Callable[[], None]:
        """Call *listener* on the event loop with what changed, coalesced; returns a function that ends it."""
        return self._feed.listen(listener)

    def observing(self, server: str) -> Literal["subscribed", "polling"] | None:
        """Say how a server's tasks are observed; ``None``: none of them is watched."""
        return self._runner.listening.observing(server)

    async def wait_for(self, task: TaskKey, until: Literal["input", "end"]) -> None:
        """Return when the task needs input (only for ``input``) or is over; needs `run` beside it."""
        changed = asyncio.Event()
        end = self._feed.listen(lambda _: changed.set())
        try:
            while True:
                changed.clear()
                record = self._task(task)
                if record.state.tracking != "active" or (until == "input" and record.open_questions):
                    return
                await changed.wait()
        finally:
            end()

    # Inside

    def _task(self, key: TaskKey) -> TaskRecord:
        record = self._reader.task(key)
        if record is None:
            raise unknown_task(key)
        return record

    def _moved(self, key: TaskKey) -> None:
        self._feed.add(key)
        self._runner.nudge()

    def _completed(self, key: TaskKey) -> None:
        self._work.begin(self._outputs.judge(key))
