"""A stdio server that does what a few lines of Python say, as a real process; and a client's view of it.

```python
async with Watched("for r in requests(): reply(r, ok=True)") as server:
    await server.ask("tools/list")
```

The script runs in a process of its own, with the functions of the first half of this file. What it is sent
comes from stdin; `tell` is its way to tell the test something (over stderr), `Watched.told` waits for it.
"""

from __future__ import annotations

import json
import os
import sys
import textwrap
import time
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]


def read() -> Json | None:
    """Return the next message; ``None`` when stdin has been closed."""
    line = sys.stdin.buffer.readline()
    return json.loads(line) if line else None


def messages() -> Iterator[Json]:
    """Yield every message until stdin is closed."""
    while (message := read()) is not None:
        yield message


def requests() -> Iterator[Json]:
    """Yield every request until stdin is closed; notifications are told."""
    for message in messages():
        if "id" in message:
            yield message
        else:
            tell(json.dumps(message))


def raw(data: bytes) -> None:
    """Write bytes to stdout."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def say(message: Any) -> None:
    """Write a message to stdout."""
    raw(json.dumps(message).encode() + b"\n")


def reply(request: Json, **result: Any) -> None:
    """Answer a request."""
    say({"jsonrpc": "2.0", "id": request["id"], "result": {"resultType": "complete", **result}})


def notify(method: str, **params: Any) -> None:
    """Send a notification."""
    say({"jsonrpc": "2.0", "method": method, "params": params})


def of(request: Json) -> Json:
    """Return the ``_meta`` of what belongs to the subscription that *request* opened."""
    return {"io.modelcontextprotocol/subscriptionId": request["id"]}


def tell(text: str) -> None:
    """Tell the test something."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    exec(compile(textwrap.dedent(sys.argv[1]), "script", "exec"), globals())
    sys.stdout.flush()
    os._exit(0)
else:
    import asyncio
    import itertools
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from mcp_client import Incoming, Limits, Outgoing
    from mcp_client.jsonrpc import encode_request
    from mcp_client.stdio import StdioTransport

    SCRIPTED = (sys.executable, "-I", "-S", str(Path(__file__).resolve()))
    """A command that runs a script, which is its one further argument."""

    class Watched:
        """A transport to a script, and all that was seen of it."""

        def __init__(
            self,
            script: str,
            limits: Limits | None = None,
            clock: Callable[[], float] = time.monotonic,
            **further: Any,
        ) -> None:
            self.stderr = b""
            self.faults: list[str] = []
            self._changed = asyncio.Event()
            self._ids = (f"r-{n}" for n in itertools.count(1))
            command, *args = SCRIPTED
            self.transport = StdioTransport(
                command,
                (*args, script),
                limits=limits or Limits(exit_seconds=5),
                on_stderr=self._take_stderr,
                on_fault=self._take_fault,
                clock=clock,
                **further,
            )

        async def __aenter__(self) -> Self:
            await self.transport.connect()
            return self

        async def __aexit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> None:
            await self.transport.aclose()

        def request(
            self, method: str = "tools/list", request_id: str | None = None, **params: Any
        ) -> Outgoing:
            """Return a request with an id of its own."""
            found = request_id or next(self._ids)
            return Outgoing(found, method, None, encode_request(found, method, params))

        async def ask(
            self,
            method: str = "tools/list",
            request_id: str | None = None,
            timeout: float = 20,
            **params: Any,
        ) -> Json:
            """Send a request and return the message that answers it."""
            return (await self.incoming(method, request_id, timeout, **params)).message

        async def incoming(
            self,
            method: str = "tools/list",
            request_id: str | None = None,
            timeout: float = 20,
            **params: Any,
        ) -> Incoming:
            """Send a request and return what answers it."""
            return await self.transport.send(self.request(method, request_id, **params), timeout=timeout)

        async def told(self, text: str) -> str:
            """Wait until a whole line with *text* in it has come over stderr; return that line."""
            while True:
                lines = self.stderr.decode("utf-8", "replace").split("\n")[:-1]
                found = next((line for line in lines if text in line), None)
                if found is not None:
                    return found
                await self._change()

        async def fault(self, text: str) -> str:
            """Wait until a fault with *text* in it was noted; return it."""
            while (found := next((fault for fault in self.faults if text in fault), None)) is None:
                await self._change()
            return found

        async def _change(self) -> None:
            self._changed.clear()
            async with asyncio.timeout(20):
                await self._changed.wait()

        def _take_stderr(self, data: bytes) -> None:
            self.stderr += data
            self._changed.set()

        def _take_fault(self, said: str) -> None:
            self.faults.append(said)
            self._changed.set()
