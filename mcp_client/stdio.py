"""The stdio transport: the server is a process that reads and writes lines. Page: basic/transports/stdio."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mcp_client import jsonrpc
from mcp_client.errors import InvalidRequest, TransportError
from mcp_client.inflight import InFlight, Pending
from mcp_client.jsonrpc import Incoming, Outgoing
from mcp_client.limits import Limits
from mcp_client.process import ServerProcess, default_environment
from mcp_client.transport import OnMessage

_QUICK_SECONDS: Final = 10.0
"""A process that ends sooner is not started again at once."""
_LONGEST_PAUSE: Final = 60.0


@dataclass(slots=True)
class _Peer:
    number: int
    process: ServerProcess
    requests: InFlight
    started: float
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Nothing of it runs any more."""
    burial: asyncio.Task[None] | None = None
    """Ends it, and what it has started; there is one once nothing more can come of it."""


class StdioTransport:
    """Carries requests to a server that it starts, and starts again when it is needed after an exit.

    `connect` starts the process; `send` and `stream` need one that runs. The process gets a small part of
    this program's environment (`default_environment`), and *env*. A process that exits within ten seconds is
    started again after a pause only, which grows from one second to sixty.

    *on_stderr* is given what the process writes to stderr, as it comes, which need not be errors. *on_fault*
    is told, as a sentence that may quote the process, what it wrote to stdout against the rules: nothing of
    that is fatal. Both are called from the event loop and must not raise.
    """

    def __init__(
        self,
        command: str,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        limits: Limits | None = None,
        on_stderr: Callable[[bytes], None] | None = None,
        on_fault: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._command = command
        self._args = tuple(args)
        self._env = dict(env or {})
        self._cwd = cwd
        self._limits = limits or Limits()
        self._on_stderr = on_stderr or _ignore
        self._on_fault = on_fault or _ignore
        self._clock = clock
        self._peer: _Peer | None = None
        self._numbers = 0
        self._quick_exits = 0
        self._not_before = -math.inf
        self._connecting = asyncio.Lock()
        self._starting: asyncio.Task[int] | None = None
        self._closing: asyncio.Task[None] | None = None

    async def send(
        self, request: Outgoing, *, timeout: float, on_message: OnMessage | None = None
    ) -> Incoming:
        """Write *request* and return its response; `TransportError` where no process runs.

        Left before its response, it is cancelled with ``notifications/cancelled``.
        """
        peer = self._running()
        pending = peer.requests.open(request, takes_notifications=on_message is not None)
        listen = on_message or _ignore
        reason = "The request was cancelled."
        try:
            async with asyncio.timeout(timeout) as scope:
                pending.is_written = await peer.process.write(request.body)
                while True:
                    incoming = await anext(pending)
                    if pending.is_done:
                        return incoming
                    listen(incoming.message)
        except TimeoutError:
            if not scope.expired():
                raise
            reason = "The response took too long."
            raise self._too_late(pending, timeout) from None
        finally:
            _leave(peer, pending, reason)

    @asynccontextmanager
    async def stream(self, request: Outgoing) -> AsyncGenerator[Pending, None]:
        """Write *request* and yield what comes for it. It is silent for as long as the process has nothing to
        say; more than `Limits.reply_bytes` that nobody takes end it with `ProtocolError`."""
        peer = self._running()
        pending = peer.requests.open(request, takes_notifications=True)
        try:
            pending.is_written = await peer.process.write(request.body)
            yield pending
        finally:
            _leave(peer, pending, "The stream is no longer needed.")

    async def connect(self) -> int:
        """Start the process unless it runs, and return its number.

        Raises `TransportError`, that says what to do, where it can't be started, or can't yet.
        """
        async with self._connecting:
            if self._starting is None or self._starting.done():
                if self._peer is not None and self._peer.process.accepts:
                    return self._peer.number
                await self._settled()
                self._starting = asyncio.create_task(self._start())
                # A start that nobody waits for any more fails in silence.
                self._starting.add_done_callback(lambda task: task.cancelled() or task.exception())
            return await asyncio.shield(self._starting)

    async def aclose(self) -> None:
        """End the process, as the page on stdio says, and all it has started; requests under way fail."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    def stderr_tail(self) -> str:
        """Return the last 64 KiB that the process, or the one before it, wrote to stderr, as they came."""
        return "" if self._peer is None else self._peer.process.stderr_tail()

    def _running(self) -> _Peer:
        self._check_open()
        if self._peer is None:
            raise TransportError("The server's process has not been started.", may_have_reached=False)
        if not self._peer.process.accepts:
            raise TransportError(self._peer.process.obituary(), may_have_reached=False)
        return self._peer

    def _check_open(self) -> None:
        if self._closing is not None:
            raise InvalidRequest("The connection to the server has been closed.")

    async def _settled(self) -> None:
        """Wait until nothing of the process before is left; raise where the next one may not start yet."""
        if self._peer is not None:
            await self._peer.over.wait()
        self._check_open()
        wait = self._not_before - self._clock()
        if self._peer is not None and wait > 0:
            said = (
                f"{self._peer.process.obituary()} It is started again in {math.ceil(wait)} s at the earliest."
            )
            raise TransportError(said, may_have_reached=False)

    async def _start(self) -> int:
        requests = InFlight(self._limits, self._on_fault)
        process = await ServerProcess.start(
            self._command,
            self._args,
            default_environment() | self._env,
            self._cwd,
            self._limits,
            on_line=requests.take,
            on_stderr=self._on_stderr,
        )
        self._numbers += 1
        self._peer = peer = _Peer(self._numbers, process, requests, self._clock())
        process.ended.add_done_callback(lambda _: self._ended(peer))
        return peer.number

    def _ended(self, peer: _Peer) -> None:
        """Take note that nothing more can come of *peer*."""
        said = peer.process.obituary()
        peer.requests.fail_all(
            lambda p: TransportError(f"{said}{_and(p.missed)}", may_have_reached=p.is_written)
        )
        if self._closing is None:
            now = self._clock()
            is_quick = now - peer.started < _QUICK_SECONDS
            self._quick_exits = self._quick_exits + 1 if is_quick else 0
            if is_quick:
                self._not_before = now + min(_LONGEST_PAUSE, 2.0 ** (self._quick_exits - 1))
        self._bury(peer)

    def _bury(self, peer: _Peer) -> asyncio.Task[None]:
        if peer.burial is None:
            peer.burial = asyncio.create_task(peer.process.end())
            peer.burial.add_done_callback(lambda _: peer.over.set())
        return peer.burial

    async def _close(self) -> None:
        if self._starting is not None:
            await asyncio.wait((self._starting,))
        if self._peer is not None:
            said = "The connection to the server has been closed."
            self._peer.requests.fail_all(lambda p: TransportError(said, may_have_reached=p.is_written))
            await self._bury(self._peer)

    def _too_late(self, pending: Pending, timeout: float) -> TransportError:
        name = Path(self._command).name
        if not pending.is_written:
            said = f"The server's process ({name}) has not read what was sent before for {timeout:g} s."
        else:
            said = f"The server's process ({name}) did not answer within {timeout:g} s.{_and(pending.missed)}"
        return TransportError(said, may_have_reached=pending.is_written)


def _leave(peer: _Peer, pending: Pending, reason: str) -> None:
    """Give a request up; the server is told, unless its response has come or it never got it."""
    # A handshake of the older revisions must not be cancelled.
    if peer.requests.leave(pending) and pending.method != "initialize":
        params = {"requestId": pending.id, "reason": reason}
        peer.process.write_now(jsonrpc.encode_notification("notifications/cancelled", params))


def _and(said: str) -> str:
    return f" {said}" if said else ""


def _ignore(_: object) -> None:
    pass
