"""A server that says exactly what a test tells it to, on a real socket.

```python
async with ScriptedServer() as server:
    server.on("tasks/get", result({"resultType": "complete", "taskId": "t1", …}))
    server.queue(http_reply(503), reset())        # the next two requests, whatever they are
```

A reply is an async function that is given the `Exchange`; the functions below make the usual ones.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came in."""

    verb: str
    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def json(self) -> Json:
        """The JSON-RPC message."""
        return json.loads(self.body)

    @property
    def method(self) -> str | None:
        """The JSON-RPC method; ``None`` where the body is no message."""
        try:
            return self.json.get("method")
        except (ValueError, AttributeError):
            return None

    @property
    def params(self) -> Json:
        """The JSON-RPC parameters."""
        return self.json["params"]

    def header(self, name: str) -> str | None:
        """The only header of that name; fails when it was sent twice."""
        found = [value for key, value in self.headers if key.lower() == name.lower()]
        assert len(found) < 2, f"{name} was sent {len(found)} times"
        return found[0] if found else None


@dataclass(slots=True)
class Exchange:
    """One request and the connection to answer it on."""

    request: Received
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        """Write *data* as it is."""
        self.writer.write(data)
        await self.writer.drain()

    def abort(self) -> None:
        """Reset the connection."""
        self.writer.transport.abort()

    async def closed_by_client(self) -> None:
        """Wait until the client has closed its side."""
        while await self.reader.read(4096):
            pass


Reply = Callable[[Exchange], Awaitable[None]]


@dataclass
class ScriptedServer:
    """Binds 127.0.0.1 on a free port; `url` is its endpoint."""

    received: list[Received] = field(default_factory=list)
    connections: int = 0
    errors: list[BaseException] = field(default_factory=list)
    """What replies raised; a test that uses the server may look."""

    def __post_init__(self) -> None:
        self._queue: deque[Reply] = deque()
        self._routes: dict[str, Reply] = {}
        self._changed = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._handlers: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        """Begin to listen; a test that stopped the server may start it again on the same port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and drop every connection."""
        if self._server is not None:
            self._server.close()
        for handler in list(self._handlers):
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    @property
    def url(self) -> str:
        """The endpoint's address."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def queue(self, *replies: Reply) -> None:
        """Answer the next requests with *replies*, in order, before any route."""
        self._queue.extend(replies)

    def on(self, method: str, reply: Reply) -> None:
        """Answer every request of *method* with *reply*."""
        self._routes[method] = reply

    def of(self, method: str) -> list[Received]:
        """Return the requests of *method* so far."""
        return [request for request in self.received if request.method == method]

    async def wait_for(self, count: int = 1, method: str | None = None) -> list[Received]:
        """Return once *count* requests (of *method*) have come in."""

        def enough() -> bool:
            return len(self.of(method) if method else self.received) >= count

        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(enough), 30)
        return self.of(method) if method else list(self.received)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        task.add_done_callback(self._handlers.discard)
        self.connections += 1
        try:
            while (request := await _read(reader)) is not None and not writer.is_closing():
                async with self._changed:
                    self.received.append(request)
                    self._changed.notify_all()
                await self._reply_for(request)(Exchange(request, reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        except BaseException as error:
            self.errors.append(error)
            raise
        finally:
            writer.close()

    def _reply_for(self, request: Received) -> Reply:
        if self._queue:
            return self._queue.popleft()
        return self._routes.get(request.method or "", error(-32601, "Method not found", status=404))


async def _read(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip("\r\n").split("\r\n")
    verb, path, _ = first.split(" ", 2)
    headers = tuple(
        (name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines)
    )
    length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
    return Received(verb, path, headers, await reader.readexactly(length))


def message(request: Received, **members: Any) -> bytes:
    """Return the bytes of a JSON-RPC response to *request*."""
    return json.dumps({"jsonrpc": "2.0", "id": request.json["id"], **members}).encode()


def http_reply(
    status: int = 200,
    body: bytes | str | Callable[[Received], bytes] = b"",
    *,
    content_type: str | None = "application/json",
    headers: Mapping[str, str] | None = None,
    gzipped: bool = False,
) -> Reply:
    """A whole HTTP reply; *body* may be made from the request."""

    async def send(exchange: Exchange) -> None:
        data = body(exchange.request) if callable(body) else body
        data = data.encode() if isinstance(data, str) else data
        extra = dict(headers or {})
        if gzipped:
            data, extra["Content-Encoding"] = gzip.compress(data), "gzip"
        await exchange.send(head(status, content_type, {"Content-Length": str(len(data)), **extra}) + data)

    return send


def head(status: int, content_type: str | None, headers: Mapping[str, str]) -> bytes:
    """Return the bytes of a status line and headers."""
    lines = [f"HTTP/1.1 {status} X"]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def result(value: Any, *, status: int = 200, content_type: str = "application/json") -> Reply:
    """A JSON reply with that result (or, given a function, the result it makes of the request)."""

    def body(request: Received) -> bytes:
        return message(request, result=value(request) if callable(value) else value)

    return http_reply(status, body, content_type=content_type)


def error(code: int, text: str, data: Any = None, *, status: int = 400, **members: Any) -> Reply:
    """A JSON reply with that JSON-RPC error; *members* replace those of the envelope (``id=None``)."""
    found: Json = {"code": code, "message": text}
    if data is not None:
        found["data"] = data
    return http_reply(status, lambda request: message(request, **{"error": found, **members}))


def stream(
    *events: Json | Callable[[Received], Json] | bytes,
    status: int = 200,
    hold: asyncio.Event | None = None,
    content_type: str = "text/event-stream",
) -> Reply:
    """An event stream: bytes go out as they are, messages as events; ends at once, or when *hold* is set."""

    async def send(exchange: Exchange) -> None:
        await exchange.send(head(status, content_type, {"Connection": "close"}))
        for item in events:
            if isinstance(item, bytes):
                data = item
            else:
                value = item(exchange.request) if callable(item) else item
                data = b"event: message\r\ndata: " + json.dumps(value).encode() + b"\r\n\r\n"
            await exchange.send(data)
        if hold is not None:
            await hold.wait()
        exchange.writer.close()

    return send


def response(value: Any) -> Callable[[Received], Json]:
    """For `stream`: the response with that result."""
    return lambda request: {"jsonrpc": "2.0", "id": request.json["id"], "result": value}


def notification(method: str, params: Json) -> Json:
    """For `stream`: a notification."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def pieces(chunks: Sequence[bytes]) -> Reply:
    """Bytes of a whole HTTP reply, each chunk written by itself; then the connection is closed."""

    async def send(exchange: Exchange) -> None:
        for chunk in chunks:
            await exchange.send(chunk)
            await asyncio.sleep(0)
        exchange.writer.close()

    return send


def drop() -> Reply:
    """Close the connection without a word."""
    return pieces(())


def reset() -> Reply:
    """Reset the connection."""

    async def send(exchange: Exchange) -> None:
        exchange.abort()

    return send


def wait(event: asyncio.Event, then: Reply) -> Reply:
    """Answer only once *event* is set."""

    async def send(exchange: Exchange) -> None:
        await event.wait()
        await then(exchange)

    return send
