"""Whatever a server sends, nothing but `McpError` comes out, and what is read can be kept."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from fakes.mcp_server import Exchange, Received, ScriptedServer, head, message, pieces
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_client import Incoming, Limits, McpClient, McpError, Outgoing
from mcp_client.jsonrpc import decode

TASK: dict[str, Any] = {
    "resultType": "complete",
    "taskId": "t1",
    "status": "input_required",
    "statusMessage": "m",
    "createdAt": "2026-01-02T03:04:05Z",
    "lastUpdatedAt": "2026-01-02T03:04:05.123456+00:00",
    "ttlMs": 1000,
    "pollIntervalMs": 5,
    "inputRequests": {
        "k": {
            "method": "elicitation/create",
            "params": {"message": "m", "mode": "form", "requestedSchema": {}},
        }
    },
    "result": {"content": [{"type": "text", "text": "x"}], "isError": False},
    "error": {"code": -1, "message": "m"},
}
REPLIES: dict[str, dict[str, Any]] = {
    "tasks/get": TASK,
    "tools/call": {**TASK, "requestState": "s", "content": [{"type": "text"}], "structuredContent": {}},
    "tools/list": {
        "tools": [
            {"name": "a", "inputSchema": {"properties": {"x": {"type": "string", "x-mcp-header": "X"}}}}
        ],
        "ttlMs": 5,
        "cacheScope": "public",
    },
    "server/discover": {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}, "extensions": {}},
        "instructions": "i",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "n", "version": "1"}},
    },
}
VERBS: dict[str, Callable[[McpClient], Any]] = {
    "tasks/get": lambda client: client.get_task("t1"),
    "tools/call": lambda client: client.call_tool("a", {"x": "y"}),
    "tools/list": lambda client: client.list_tools(),
    "server/discover": lambda client: client.discover(),
}

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(
        ["task", "complete", "input_required", "working", "completed", "failed", "t1", 10**400, 1e308]
    )
)
JUNK = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def mutate(data: st.DataObject, value: Any) -> Any:
    """Return *value* with a few of its parts replaced, removed or joined by junk."""
    if not isinstance(value, (dict, list)) or data.draw(st.integers(0, 9)) == 0:
        return data.draw(JUNK) if data.draw(st.integers(0, 3)) == 0 else value
    if isinstance(value, list):
        return [mutate(data, item) for item in value]
    kept = {key: mutate(data, item) for key, item in value.items() if data.draw(st.integers(0, 11)) > 0}
    return kept | (
        data.draw(st.dictionaries(st.sampled_from(list(value)), JUNK, max_size=1)) if value else {}
    )


class Replay:
    """A transport that answers everything with one message."""

    def __init__(self, members: dict[str, Any], status: int) -> None:
        self._members = members
        self._status = status

    async def send(self, request: Outgoing, *, timeout: float, on_message: Any = None) -> Incoming:
        body = json.dumps({"jsonrpc": "2.0", "id": request.id, **self._members}).encode()
        return Incoming(decode(body, depth=64), self._status)

    async def connect(self) -> None:
        return None

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize("method", list(REPLIES))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_mutated_reply_raises_nothing_but_mcp_errors(method: str, data: st.DataObject) -> None:
    members = mutate(data, {"result": REPLIES[method]})
    if not isinstance(members, dict):
        members = {"result": members}
    replay = Replay(members, data.draw(st.sampled_from([200, 400])))

    async def run() -> None:
        try:
            found = await VERBS[method](McpClient(replay, limits=Limits(pages=3)))
        except McpError:
            return
        for number in ("ttl_ms", "poll_interval_ms", "created_at_ms", "last_updated_at_ms"):
            value = getattr(found, number, None)
            assert value is None or (type(value) is int and abs(value) < 2**63), "a store can keep it"

    asyncio.run(run())


def wire_bytes(request: Received, kind: str) -> bytes:
    """Return one valid HTTP reply of a kind, whole."""
    body = message(request, result={"resultType": "complete"})
    if kind == "json":
        return head(200, "application/json", {"Content-Length": str(len(body))}) + body
    if kind == "gzip":
        packed = gzip.compress(body)
        extra = {"Content-Length": str(len(packed)), "Content-Encoding": "gzip"}
        return head(200, "application/json", extra) + packed
    event = b": hi\r\nid: 1\r\ndata: " + body + b"\r\n\r\n"
    chunk = f"{len(event):x}\r\n".encode() + event + b"\r\n0\r\n\r\n"
    return head(200, "text/event-stream", {"Transfer-Encoding": "chunked"}) + chunk


async def test_a_reply_with_bytes_changed_anywhere_raises_nothing_but_mcp_errors(
    server: ScriptedServer,
) -> None:
    chance = random.Random(20260728)
    outcomes = {"read": 0, "refused": 0}

    async def mangled(exchange: Exchange) -> None:
        data = bytearray(wire_bytes(exchange.request, chance.choice(["json", "gzip", "chunked"])))
        for _ in range(chance.randint(0, 4)):
            at = chance.randrange(len(data))
            cut = at + chance.choice([0, 1, 1, 1, 9])
            data[at:cut] = chance.randbytes(chance.choice([0, 1, 1, 2]))
        await pieces([bytes(data)])(exchange)

    server.on("test/ask", mangled)
    async with McpClient.http(server.url, limits=Limits(request_seconds=20)) as client:
        for _ in range(400):
            try:
                await client.request("test/ask")
                outcomes["read"] += 1
            except McpError:
                outcomes["refused"] += 1
    assert min(outcomes.values()) > 40, outcomes
