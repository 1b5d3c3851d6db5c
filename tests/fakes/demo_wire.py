"""Plain HTTP against the embedded task service: what any client might send, or send wrongly."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any

import httpx

VERSION = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"
META = "io.modelcontextprotocol/"
EVERYTHING: dict[str, Any] = {"extensions": {TASKS: {}}, "elicitation": {"form": {}, "url": {}}}
NAMED_BY = {"tools/call": "name", "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId"}
PATIENCE = 30.0
"""Seconds until a stream that says nothing counts as hung."""
_ids = itertools.count(1)


class RpcFailure(Exception):
    """The service answered with a JSON-RPC error."""

    def __init__(self, error: dict[str, Any], http_status: int) -> None:
        super().__init__(f"{error['code']} {error['message']}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")
        self.http_status = http_status


def envelope(
    method: str, params: dict[str, Any] | None = None, capabilities: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return a well-formed request."""
    meta = {
        f"{META}protocolVersion": VERSION,
        f"{META}clientInfo": {"name": "plain-http", "version": "1"},
        f"{META}clientCapabilities": EVERYTHING if capabilities is None else capabilities,
    }
    return {"jsonrpc": "2.0", "id": next(_ids), "method": method, "params": {**(params or {}), "_meta": meta}}


def headers_for(message: dict[str, Any]) -> dict[str, str]:
    """Return the headers that *message* needs."""
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": message["method"],
    }
    name = message["params"].get(NAMED_BY.get(message["method"], ""))
    if isinstance(name, str):
        safe = name.isascii() and name.isprintable() and name == name.strip()
        headers["Mcp-Name"] = name if safe else f"=?base64?{base64.b64encode(name.encode()).decode()}?="
    return headers


class EventStream:
    """A reply that is an event stream, as its lines come."""

    def __init__(self, response: httpx.Response, request_id: Any) -> None:
        self.response = response
        self.id = request_id
        self.seen: list[dict[str, Any]] = []
        """Every message so far."""
        self.fields: set[str] = set()
        """The names of the fields that its events had."""
        self._lines = response.aiter_lines()

    async def next(self) -> dict[str, Any]:
        """Return the next message, passing over comments."""
        async for line in self._within():
            field, _, value = line.partition(":")
            if field:
                self.fields.add(field)
            if field == "data":
                message: dict[str, Any] = json.loads(value)
                self.seen.append(message)
                return message
        raise EOFError("the stream ended")

    async def next_comment(self) -> str:
        """Return the next comment; a message before it fails."""
        async for line in self._within():
            assert not line.startswith("data:"), line
            if line.startswith(":"):
                return line
        raise EOFError("the stream ended")

    async def until(self, enough: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the first message that is *enough*."""
        while not enough(message := await self.next()):
            pass
        return message

    async def ended(self) -> bool:
        """Say whether nothing but empty lines comes before the end of the stream."""
        return [line async for line in self._within() if line] == []

    async def _within(self) -> AsyncIterator[str]:
        async with asyncio.timeout(PATIENCE):
            async for line in self._lines:
                yield line


class DemoWire:
    """One client of one endpoint; keeps every exchange for tests that look at all of them."""

    def __init__(self, url: str, headers: dict[str, str | None] | None = None) -> None:
        self.url = url
        self.headers = headers or {}
        """Sent with each request."""
        self.exchanges: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self._http = httpx.AsyncClient(
            timeout=30, verify=False
        )  # loading certificates takes longer than a test

    async def __aenter__(self) -> DemoWire:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self._http.aclose()

    async def send(
        self,
        message: Any,
        headers: dict[str, str | None] | None = None,
        *,
        method: str = "POST",
    ) -> httpx.Response:
        """Send *message* (JSON, or bytes as they are); *headers* replaces some, and ``None`` drops one."""
        given: dict[str, str | None] = {"Content-Type": "application/json"}
        if isinstance(message, dict) and isinstance(message.get("params"), dict) and "method" in message:
            given |= headers_for(message)
        given |= self.headers | (headers or {})
        content = (
            message if isinstance(message, bytes) else httpx.Request("POST", self.url, json=message).content
        )
        # As bytes: a hostile header need not be ASCII.
        chosen = {k.encode(): v.encode("latin-1") for k, v in given.items() if v is not None}
        return await self._http.request(method, self.url, content=content, headers=chosen)

    async def call(
        self, method: str, params: dict[str, Any] | None = None, capabilities: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the result of a well-formed request; raises `RpcFailure`."""
        message = envelope(method, params, capabilities)
        response = await self.send(message)
        reply = response.json()
        self.exchanges.append((message, reply))
        assert reply["id"] == message["id"]
        if "error" in reply:
            raise RpcFailure(reply["error"], response.status_code)
        assert response.status_code == 200
        result: dict[str, Any] = reply["result"]
        return result

    async def tool(self, name: str, arguments: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Call a tool."""
        return await self.call("tools/call", {"name": name, "arguments": arguments or {}, **more})

    async def get(self, task_id: str) -> dict[str, Any]:
        """Look at a task."""
        return await self.call("tasks/get", {"taskId": task_id})

    async def answer(self, task_id: str, **responses: Any) -> dict[str, Any]:
        """Answer questions of a task by key."""
        return await self.call("tasks/update", {"taskId": task_id, "inputResponses": responses})

    @asynccontextmanager
    async def stream(
        self, message: dict[str, Any], headers: dict[str, str] | None = None
    ) -> AsyncIterator[EventStream]:
        """Send *message* and read its reply event by event; leaving the block closes the connection."""
        given = headers_for(message) | self.headers | (headers or {})
        chosen = {name: value for name, value in given.items() if value is not None}
        async with self._http.stream("POST", self.url, json=message, headers=chosen) as response:
            yield EventStream(response, message["id"])

    @asynccontextmanager
    async def listening(self, task_ids: list[str]) -> AsyncIterator[EventStream]:
        """Listen for tasks."""
        message = envelope("subscriptions/listen", {"notifications": {"taskIds": task_ids}})
        async with self.stream(message) as stream:
            yield stream

    async def until(self, task_id: str, *statuses: str) -> dict[str, Any]:
        """Poll a task that a running worker moves until it has one of *statuses*, for at most 30 seconds."""
        async with asyncio.timeout(30):
            while True:
                task = await self.get(task_id)
                if task["status"] in statuses:
                    return task
                await asyncio.sleep(0.02)


def accept(**content: Any) -> dict[str, Any]:
    """Return an accepted form."""
    return {"action": "accept", "content": content}


DECLINE: dict[str, Any] = {"action": "decline"}
DISMISS: dict[str, Any] = {"action": "cancel"}
