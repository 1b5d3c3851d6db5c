"""The servers we speak to: one client each, opened when first needed; how each is doing; how much at a
time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

from app.config import Abilities, ConfigError, ServersFile, UnknownServer, connection
from app.engine.changes import ChangeFeed
from app.engine.clock import Clock
from app.engine.commands import EngineError, answerable
from app.engine.drafting import draft
from app.engine.opening import Opened, open_server
from app.engine.problems import describe, engine_error
from app.text import inert_line
from mcp_client import (
    AuthRequired,
    DetailedTask,
    InvalidRequest,
    LegacyServer,
    Limits,
    McpClient,
    McpError,
    ProtocolError,
    ServerError,
    Subscription,
    TransportError,
)
from storage.async_store import AsyncStore
from storage.records import QuestionRecord, ServerRecord, TaskKey

LIMITS: Final = Limits(connections=64)
ANSWERED_S: Final = 10.0
"""A server that answered within this time is well, whatever becomes of a single request."""

T = TypeVar("T")
log = logging.getLogger(__name__)


class Servers:
    """Speaks to the servers of the servers file, and records how they are when that changes."""

    def __init__(
        self,
        file: ServersFile,
        environ: Mapping[str, str],
        store: AsyncStore,
        feed: ChangeFeed,
        clock: Clock,
        known: Mapping[str, ServerRecord],
        *,
        limits: Limits = LIMITS,
        stderr: Path | None = None,
        has_others: Callable[[], bool] = lambda: False,
    ) -> None:
        """*stderr* is the folder for what servers that are started write there; ``None``: it isn't kept.

        *has_others* says whether another program works on the same inbox.
        """
        self._file = file
        self._environ = environ
        self._store = store
        self._feed = feed
        self._clock = clock
        self._open: dict[str, Opened] = {}
        self._health: dict[str, ServerRecord] = dict(known)
        self._answered: dict[str, float] = {}
        """When a server last gave a whole reply, by the clock that goes on."""
        self._limits = limits
        self._stderr = stderr
        self._has_others = has_others
        self.on_recovery: Callable[[str], None] = lambda server: None
        """Told the name of a server that answers again."""

    def names(self) -> set[str]:
        """Return the names in the servers file. Raises `ConfigError`."""
        return set(self._file.entries())

    def abilities(self, name: str) -> Abilities:
        """Return what a server may ask beside elicitations, as the servers file says now."""
        return self._file.abilities(name)

    async def draft(self, question: QuestionRecord) -> str:
        """Let the command that stands in the servers file for it draft a reply; raises `EngineError`."""
        abilities = self.abilities(question.task.server)
        if answerable(question, abilities) != "sampling" or not abilities.sampling_command:
            raise EngineError(
                "invalid", f"No command drafts replies for {inert_line(question.task.server, 80)}."
            )
        return await draft(abilities.sampling_command, question.request_json, environ=self._environ)

    async def check(self, name: str) -> None:
        """Raise `EngineError` unless *name* is a server that can be connected to as far as the file says."""
        await self._usable(name)

    async def request(self, name: str, ask: Callable[[McpClient], Awaitable[T]]) -> T:
        """Ask a server something; raises `McpError`, or `EngineError` for a server that is not configured."""
        opened = await self._usable(name)
        try:
            reply = await ask(opened.client)
        except McpError as error:
            await self._note(name, error)
            raise
        await self._note(name, None)
        return reply

    @asynccontextmanager
    async def slot(self, name: str) -> AsyncGenerator[None, None]:
        """Wait for a place among the looks that are under way at a server; raises `EngineError`.

        Answers and cancellations need none: however many looks hang, they go out.
        """
        opened = await self._usable(name)
        async with opened.slots.taken():
            yield

    @asynccontextmanager
    async def listen(self, name: str, task_ids: Collection[str]) -> AsyncGenerator[Subscription, None]:
        """Open a subscription to tasks.

        Entering raises what `request` raises. Where only the subscription fails, nothing is noted: a server
        that has none, or drops them, may be well in all the rest.
        """
        opened = await self._usable(name)
        async with AsyncExitStack() as stack:
            told = opened.client.listen(task_ids, tools_changed=True, clock=lambda: self._clock.now() / 1000)
            try:
                subscription = await stack.enter_async_context(told)
            except ServerError:
                await self._note(name, None)
                raise
            except TransportError as error:
                if not error.may_have_reached and error.status is None:
                    await self._note(name, error)
                raise
            await self._note(name, None)
            yield subscription

    async def learned(self, name: str, info_json: str) -> None:
        """Keep what a server says of itself."""
        record = replace(self._record(name), info_json=info_json, checked_at=self._clock.now())
        await self._keep(record)

    def heard(self, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return what a server that was started wrote beside the protocol: the last faults of its stdout, as
        sentences, and the last lines of its stderr. The words are the server's."""
        opened = self._open.get(name)
        return ((), ()) if opened is None else (tuple(opened.faults), opened.last_words())

    def may_run_elsewhere(self, name: str) -> bool:
        """Say whether another program may have a process of the same server, which knows what ours does not:
        each program starts its own, and many servers keep their tasks in memory."""
        opened = self._open.get(name)
        return opened is not None and opened.process is not None and self._has_others()

    def stamp(self) -> tuple[int, int] | None:
        """Return what changes when the servers file is written; ``None``: there is none."""
        try:
            found = self._file.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino

    def take_in(self, records: Iterable[ServerRecord]) -> set[str]:
        """Take in what other programs saw of the servers; returns the names of those that changed."""
        found = {record.name: record for record in records}
        changed = {name for name, record in found.items() if self._health.get(name) != record}
        changed |= self._health.keys() - found.keys()
        self._health = found
        return changed

    async def reload(self) -> None:
        """Close what the servers file no longer says, or says otherwise. Raises `ConfigError`."""
        entries = self._file.entries()
        stale = [n for n, opened in self._open.items() if self._is_stale(n, opened, set(entries))]
        await _close([self._open.pop(name) for name in stale])
        for name in [n for n in self._health if n not in entries]:
            del self._health[name]
            await self._store.forget_server(name)
            self._feed.add(server=name)

    async def aclose(self) -> None:
        """Close all connections, and end the servers that were started."""
        opened = list(self._open.values())
        self._open.clear()
        await _close(opened)

    def _is_stale(self, name: str, opened: Opened, names: set[str]) -> bool:
        if name not in names:
            return True
        try:
            return connection(self._file.path, name, self._environ) != opened.connection
        except ConfigError:
            return True

    async def _usable(self, name: str) -> Opened:
        try:
            return self._opened(name)
        except EngineError as error:
            old = self._record(name)
            if error.failure == "invalid" and (old.state, old.message) != ("faulty", error.message):
                now = self._clock.now()
                since = old.since if old.state == "faulty" else now
                await self._keep(
                    replace(old, state="faulty", message=error.message, since=since, checked_at=now)
                )
            raise

    def _opened(self, name: str) -> Opened:
        if name not in self._open:
            try:
                wanted = connection(self._file.path, name, self._environ)
            except UnknownServer as error:
                raise EngineError("unknown-server", str(error)) from None
            except ConfigError as error:
                raise EngineError("invalid", str(error)) from None
            for warning in wanted.warnings:
                log.warning("Server %s: %s", name, warning)
            self._open[name] = open_server(wanted, self._limits, self._stderr)
        return self._open[name]

    def _record(self, name: str) -> ServerRecord:
        return self._health.get(name) or ServerRecord(name, "unknown", self._clock.now())

    async def _note(self, name: str, error: McpError | None) -> None:
        """Record how the server is, where that changed."""
        old = self._record(name)
        now = self._clock.elapsed()
        if error is None or isinstance(error, ServerError):
            self._answered[name] = now
        elif _is_of_one_request(error) and now - self._answered.get(name, float("-inf")) < ANSWERED_S:
            return  # among good replies this is the task's trouble, and not the server's
        match error:
            case InvalidRequest():
                return
            case TransportError():
                new = replace(old, state="unreachable", message=describe(error))
            case AuthRequired():
                new = replace(old, state="sign-in", message=describe(error))
            case LegacyServer():
                new = replace(old, state="faulty", message=describe(error))
            case ProtocolError() if old.state != "ok":
                # One invalid reply among good ones is that task's problem, not the server's.
                new = replace(old, state="faulty", message=describe(error))
            case _:
                new = replace(old, state="ok", message=None)
        if new.state == old.state:
            return
        now = self._clock.now()
        await self._keep(replace(new, since=now, checked_at=now))
        log.info("Server %s: %s %s", inert_line(name), new.state, new.message or "")
        if new.state == "ok" and old.state != "unknown":
            self.on_recovery(name)

    async def _keep(self, record: ServerRecord) -> None:
        self._health[record.name] = record
        await self._store.set_server(record)
        self._feed.add(server=record.name)


def _is_of_one_request(error: McpError) -> bool:
    """Say whether other requests to the server may do better: it was reached."""
    if isinstance(error, TransportError):
        return error.may_have_reached or error.status is not None
    return isinstance(error, AuthRequired)


async def first_look(servers: Servers, key: TaskKey) -> DetailedTask:
    """Ask a server for a task made elsewhere; raises `EngineError`, ``unknown-task`` where it knows none."""
    try:
        return await servers.request(key.server, lambda client: client.get_task(key.id))
    except ServerError as error:
        if error.is_invalid_params:
            shown = inert_line(key.id, 200)
            words = f"Server {key.server} does not know {shown}: {describe(error)}"
            raise EngineError("unknown-task", words) from None
        raise engine_error(key.server, error, doing="asking for the task") from None
    except McpError as error:
        raise engine_error(key.server, error, doing="asking for the task") from None


async def _close(opened: Iterable[Opened]) -> None:
    """Close all of these at once: ending a server that does not go by itself takes seconds."""
    await asyncio.gather(*(one.client.aclose() for one in opened))
