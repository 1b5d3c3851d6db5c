"""What is left at the edges: values that only a caller can bring, and failures within failures."""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import ExitStack
from typing import Any

import pytest
from fakes.mcp_server import Exchange, ScriptedServer, drop, error, head, http_reply, message, result

from mcp_client import (
    Limits,
    McpClient,
    McpError,
    ProtocolError,
    ServerError,
    TransportError,
    parse_time,
    read_handle,
    read_task,
)

TASK = {"taskId": "t", "status": "working", "createdAt": "", "lastUpdatedAt": "", "ttlMs": None}

SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    result = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "tools": []}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


async def test_a_client_of_a_command_starts_it_with_the_first_request() -> None:
    async with McpClient.stdio(sys.executable, ["-c", SERVER], env={"A": "b"}) as client:
        assert (await client.list_tools()).tools == ()


@pytest.mark.parametrize("read", [read_task, read_handle])
def test_half_a_surrogate_from_a_caller_is_refused_by_its_field(read: Any) -> None:
    """The wire can't bring one; who makes such an object by hand can."""
    with pytest.raises(ProtocolError):
        read({**TASK, "taskId": "\ud800"})


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999999-23:59"])
def test_the_first_and_the_last_moment_are_times(text: str) -> None:
    assert abs(parse_time(text)) < 2**53


@pytest.mark.rule("http.mismatch-relisted")
async def test_a_refused_call_stays_refused_where_the_tools_cannot_be_listed(
    server: ScriptedServer, client: McpClient
) -> None:
    server.on("tools/call", error(-32020, "Header mismatch"))
    server.on("tools/list", drop())
    with pytest.raises(ServerError) as refused:
        await client.call_tool("t")
    assert refused.value.is_header_mismatch
    assert len(server.of("tools/call")) == 1


@pytest.mark.parametrize("target", ["http://[::1", "http://127.0.0.1:99999999/", "//\x7f"])
async def test_a_redirect_to_what_is_no_address_is_not_followed(
    server: ScriptedServer, client: McpClient, target: str
) -> None:
    for status in (300, 307):
        server.queue(http_reply(status, headers={"Location": target}))
        with pytest.raises(TransportError):
            await client.get_task("t")
    assert len(server.received) == 2


async def test_an_address_that_is_none_is_not_named() -> None:
    async with McpClient.http("http://[::1") as client:
        with pytest.raises(TransportError, match="address is not valid"):
            await client.get_task("t")


async def test_a_stream_that_breaks_behind_its_response_changes_nothing(
    server: ScriptedServer, client: McpClient
) -> None:
    async def torn(exchange: Exchange) -> None:
        data = b"data: " + message(exchange.request, result=TASK) + b"\n\n"
        chunk = f"{len(data):x}\r\n".encode() + data + b"\r\n"
        begin = head(200, "text/event-stream", {"Transfer-Encoding": "chunked"})
        await exchange.send(begin + chunk + b"7\r\n: more\n\r\nnonsense")
        exchange.writer.close()

    server.queue(torn, result(TASK))
    assert (await client.get_task("t")).task_id == "t"
    assert (await client.get_task("t")).task_id == "t"


async def test_a_request_that_waits_for_the_one_that_asks_a_new_process_hears_the_same() -> None:
    async with McpClient.stdio(sys.executable, ["-c", SERVER], limits=Limits(request_seconds=20)) as client:
        found = await asyncio.gather(*(client.list_tools() for _ in range(5)))
    assert [one.tools for one in found] == [()] * 5


async def test_no_error_is_its_own_cause(server: ScriptedServer, client: McpClient) -> None:
    """Whoever walks along the causes, to log them, comes to an end."""
    server.queue(error(-32603, "Broken"), drop(), http_reply(500))
    for _ in range(3):
        with pytest.raises(McpError) as raised:
            await client.get_task("t")
        seen: list[BaseException] = []
        one: BaseException | None = raised.value
        while one is not None:
            assert one not in seen
            seen.append(one)
            one = one.__cause__ or one.__context__


async def test_a_ring_of_causes_that_a_caller_made_does_no_harm(
    server: ScriptedServer, client: McpClient
) -> None:
    ring = ValueError("a ring")
    ring.__cause__ = ring
    server.queue(drop())
    try:
        raise ring
    except ValueError:
        with pytest.raises(TransportError):
            await client.get_task("t")


@pytest.mark.skipif(sys.platform != "linux", reason="a full queue of connections is refused elsewhere")
async def test_a_server_that_takes_no_connection_is_given_up_after_the_time_for_connecting() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as waiting:
        address = full.getsockname()
        for _ in range(4):  # nobody accepts them, so there is no room for one more
            one = waiting.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(address)
        limits = Limits(connect_seconds=0.2, request_seconds=20)
        async with McpClient.http(f"http://127.0.0.1:{address[1]}/mcp", limits=limits) as client:
            with pytest.raises(TransportError, match="no connection within the time allowed") as raised:
                await client.get_task("t")
    assert not raised.value.may_have_reached
