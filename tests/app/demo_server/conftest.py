"""A service in the test's own loop, over a real socket, that moves only when a test says so."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fakes.demo import demo
from fakes.demo_wire import DemoWire

from app.demo_server.listening import Listening
from app.demo_server.server import build_app
from app.demo_server.worker import Worker

__all__ = ["demo", "service", "serving"]


@dataclass
class Clock:
    """Milliseconds since the epoch, as a test sets them."""

    now: int = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now


@dataclass
class LocalService:
    """The service, its worker at rest, and a client of it."""

    wire: DemoWire
    worker: Worker
    clock: Clock
    url: str
    listening: Listening

    def client(self, headers: dict[str, str | None]) -> DemoWire:
        """Return another client, which sends *headers* with each request."""
        return DemoWire(self.url, headers)

    async def until(self, reached: Callable[[], bool]) -> None:
        """Wait until *reached* says so, for at most 30 seconds."""
        async with asyncio.timeout(30):
            while True:
                if reached():
                    return
                await asyncio.sleep(0.005)

    async def settle(self) -> int:
        """Do every step that is due; return how many there were."""
        steps = 0
        while await self.worker.step() is not None:
            steps += 1
        return steps

    async def started(self, tool: str, **arguments: Any) -> str:
        """Call a tool that becomes a task; return its id."""
        handle = await self.wire.tool(tool, arguments)
        assert handle["resultType"] == "task"
        task_id: str = handle["taskId"]
        return task_id

    async def settled(self, task_id: str) -> dict[str, Any]:
        """Do every step that is due; return the task after them."""
        await self.settle()
        return await self.wire.get(task_id)


Serving = Callable[..., AbstractAsyncContextManager[LocalService]]


@pytest.fixture
def serving(tmp_path: Path) -> Serving:
    """What starts a service whose steps are due at once and done only on demand, with more options."""

    @asynccontextmanager
    async def start(**options: Any) -> AsyncIterator[LocalService]:
        clock = Clock()
        quick = {"step_seconds": 0, "keep_alive_seconds": 0.05, "look_seconds": 0.01}
        app = build_app(tmp_path / "demo", run_worker=False, now_ms=clock, **{**quick, **options})
        listener = socket.create_server(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        config = uvicorn.Config(app, log_level="error", ws="none", lifespan="on")
        config.load()
        server = uvicorn.Server(config)
        # Not serve(): that takes the process's signals, and looks only ten times a second whether to end.
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listener])
        async with DemoWire(url) as wire:
            yield LocalService(wire, app.state.worker, clock, url, app.state.listening)
        # Not shutdown(): that waits a tenth of a second for clients, and here the only one has gone.
        for each in server.servers:
            each.close()
        await server.lifespan.shutdown()

    return start


@pytest.fixture
async def service(serving: Serving) -> AsyncIterator[LocalService]:
    """A service as it is by default."""
    async with serving() as running:
        yield running
