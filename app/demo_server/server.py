"""The process: an application for tests, and `serve` for people."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator
from pathlib import Path
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

from app.demo_server.errors import ServeError
from app.demo_server.listening import KEEP_ALIVE_SECONDS, LOOK_SECONDS, Listening
from app.demo_server.owners import Owners, load
from app.demo_server.polling import PollLimit
from app.demo_server.request_state import Seal
from app.demo_server.service import Service
from app.demo_server.store import Store
from app.demo_server.tools import tools_named
from app.demo_server.wire import Endpoint
from app.demo_server.worker import LEASE_MS, Worker

HOST: Final = "127.0.0.1"
PATH: Final = "/mcp"
STEP_SECONDS: Final = 1.5
"""Slow enough that a person sees a task move."""
POLL_INTERVAL_MS: Final = 1000


def build_app(
    data: Path,
    tools: str = "demo",
    *,
    step_seconds: float = STEP_SECONDS,
    poll_ms: int = POLL_INTERVAL_MS,
    lease_ms: int = LEASE_MS,
    run_worker: bool = True,
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    token: Callable[[], str] = lambda: secrets.token_hex(16),
    owners: Owners | None = None,
    limit_polling: bool = False,
    keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
    look_seconds: float = LOOK_SECONDS,
    stopped: Callable[[BaseException | None], None] = lambda error: None,
) -> Starlette:
    """Return the application over the folder *data*.

    With *run_worker* off nothing moves until a test does ``await app.state.worker.step()``. Without
    *owners* everybody is one local tenant. With *limit_polling* a task can't be looked at more often than its
    poll interval says. *stopped* is told when the worker ends by itself, which it does only where the store
    can't be read or written.
    ``app.state.listening.close()`` ends all subscriptions.

    Raises:
        ServeError: the folder can't be used, or there is no such set of tools.
    """
    toolset = tools_named(tools)
    store = Store.open(data / "tasks.db")

    def wake() -> None:
        worker.wake()
        listening.wake()

    seal = Seal(store.request_state_key)
    service = Service(store, toolset, seal, poll_ms=poll_ms, now_ms=now_ms, token=token, wake=wake)
    listening = Listening(
        store, service.find, keep_alive_seconds=keep_alive_seconds, look_seconds=look_seconds
    )
    worker = Worker(
        store,
        toolset,
        step_ms=round(step_seconds * 1000),
        now_ms=now_ms,
        token=token,
        changed=listening.wake,
        lease_ms=lease_ms,
    )
    polls = PollLimit(poll_ms, now_ms) if limit_polling else None
    endpoint = Endpoint(service, listening, (owners or Owners()).caller_of, polls)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        running = asyncio.create_task(worker.run()) if run_worker else None
        if running is not None:
            running.add_done_callback(lambda ended: None if ended.cancelled() else stopped(ended.exception()))
        try:
            yield
        finally:
            listening.close()
            if running is not None:
                running.cancel()
                await asyncio.wait([running])
            store.close()

    others = Route(PATH, endpoint.other, methods=["GET", "DELETE", "PUT", "PATCH", "OPTIONS"])
    routes = [Route(PATH, endpoint.post, methods=["POST"]), others]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.state.worker = worker
    app.state.listening = listening
    return app


def serve(
    port: int,
    data: Path,
    tools: str,
    ready: Callable[[str], None],
    *,
    step_seconds: float = STEP_SECONDS,
    poll_ms: int = POLL_INTERVAL_MS,
    lease_ms: int = LEASE_MS,
    tokens: Path | None = None,
    limit_polling: bool = False,
) -> None:
    """Serve on this machine until SIGINT or SIGTERM; a *port* of 0 is a free one.

    *ready* gets the endpoint's URL once connections are accepted. *tokens* is a file as `owners` describes.

    Raises:
        ServeError: the port, the folder or the tokens can't be used, there is no such set of tools, or the
            data can no longer be written.
    """
    owners = None if tokens is None else load(tokens)
    listener = _listen(port)
    server: _Server | None = None
    failures: list[BaseException | None] = []

    def stop(error: BaseException | None) -> None:
        failures.append(error)
        if server is not None:
            server.should_exit = True

    try:
        app = build_app(
            data,
            tools,
            step_seconds=step_seconds,
            poll_ms=poll_ms,
            lease_ms=lease_ms,
            owners=owners,
            limit_polling=limit_polling,
            stopped=stop,
        )
        config = uvicorn.Config(
            app,
            lifespan="on",
            ws="none",
            http="h11",
            loop="asyncio",
            log_level="error",
            access_log=False,
            server_header=False,
            # Longer than any sensible poll interval: a connection closed just as a client reuses it leaves
            # that client not knowing whether its call was made.
            timeout_keep_alive=75,
            timeout_graceful_shutdown=2,
        )
        url = f"http://{HOST}:{listener.getsockname()[1]}{PATH}"
        server = _Server(config, lambda: ready(url), app.state.listening.close)
        server.run(sockets=[listener])
    finally:
        listener.close()
    if failures:
        raise ServeError(
            f"the demo service stopped: its data in {data} can't be used any more: {failures[0]}"
        )


def _listen(port: int) -> socket.socket:
    # With the protocol named, asyncio turns Nagle's algorithm off: a small reply must not wait for an
    # acknowledgement that a client delays by 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if os.name == "posix":
        # A port must be free again right after a crash; elsewhere this option would let a port be stolen.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        # Now, not when the server starts: two sockets may be bound to one port, and the second fails late.
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        raise ServeError(
            f"port {port} on {HOST} can't be used: {getattr(error, 'strerror', error)}"
        ) from error
    return listener


class _Server(uvicorn.Server):
    """uvicorn, saying when it is ready and when it ends, and not raising the signal that ended it again."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], ending: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready
        self._ending = ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # The subscriptions first: uvicorn waits for open replies, and these end only when they are told to.
        self._ending()
        await super().shutdown(sockets=sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)
