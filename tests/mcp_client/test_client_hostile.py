"""Replies meant to hurt: bounded memory and time, an error that says where, and the next request as good as
ever."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from fakes.mcp_server import (
    Exchange,
    Received,
    Reply,
    ScriptedServer,
    head,
    http_reply,
    message,
    pieces,
    response,
    result,
    stream,
)

from mcp_client import InputRequiredTask, Limits, McpClient, McpError, ProtocolError, read_task

TASK: dict[str, Any] = {
    "resultType": "complete",
    "taskId": "t",
    "status": "working",
    "createdAt": "2026-01-02T03:04:05Z",
    "lastUpdatedAt": "2026-01-02T03:04:05Z",
    "ttlMs": 60_000,
    "pollIntervalMs": 500,
}
MEGABYTE = 1 << 20


def raw(body: bytes, content_type: str = "application/json") -> Reply:
    return http_reply(200, body, content_type=content_type)


def as_reply(fragment: bytes) -> Reply:
    """Return a reply whose result has *fragment* for its ``statusMessage``."""

    def body(request: Received) -> bytes:
        whole = message(request, result={**TASK, "statusMessage": "FRAGMENT"})
        return whole.replace(b'"FRAGMENT"', fragment)

    return http_reply(200, body)


HURTFUL: dict[str, tuple[Reply, str]] = {
    "another id": (result(TASK), ""),
    "nested a million deep": (as_reply(b"[" * 1_000_000 + b"]" * 1_000_000), "values"),
    "nested a thousand deep": (as_reply(b"[" * 1_000 + b"]" * 1_000), "nested"),
    "half a surrogate": (as_reply(rb'"\ud800"'), "surrogate"),
    "the same key twice": (as_reply(b'{"a": 1, "a": 2}'), "repeats the key"),
    "not a number": (as_reply(b"NaN"), "not valid JSON"),
    "infinity": (as_reply(b"-Infinity"), "not valid JSON"),
    "a number of a million digits": (as_reply(b"1" * 1_000_000), "not valid JSON"),
    "bytes that are no text": (as_reply(b'"\xff\xfe"'), "UTF-8"),
    "a list of messages": (raw(b'[{"jsonrpc": "2.0"}]'), "not a JSON-RPC message"),
    "half a million values": (as_reply(b"[" + b"0," * 500_000 + b"0]"), "values"),
    "no reply on the stream": (stream(b": nothing\n\n"), "without a response"),
    "text for a stream": (raw(b"\0" * 1000, "text/event-stream"), "without a response"),
}


@pytest.mark.parametrize("name", list(HURTFUL))
async def test_a_hurtful_reply_is_an_error_that_says_why_and_hurts_no_other_request(
    server: ScriptedServer, client: McpClient, name: str
) -> None:
    reply, said = HURTFUL[name]
    if name == "another id":
        reply, said = http_reply(200, b'{"jsonrpc":"2.0","id":"x","result":{}}'), "another request"
    server.queue(reply)
    with pytest.raises(McpError, match=said):
        await client.get_task("t")
    server.queue(result(TASK))
    assert (await client.get_task("t")).task_id == "t"


async def test_of_two_responses_on_one_stream_the_first_counts(
    server: ScriptedServer, client: McpClient
) -> None:
    server.queue(stream(response(TASK), response({**TASK, "status": "cancelled"})))
    assert (await client.get_task("t")).status == "working"


async def test_a_reply_behind_the_reply_belongs_to_no_other_request(
    server: ScriptedServer, client: McpClient
) -> None:
    def twice(exchange: Exchange) -> Any:
        body = message(exchange.request, result=TASK)
        whole = head(200, "application/json", {"Content-Length": str(len(body))}) + body
        return pieces([whole + whole])(exchange)

    server.queue(twice, result({**TASK, "taskId": "u"}))
    assert (await client.get_task("t")).task_id == "t"
    assert (await client.get_task("u")).task_id == "u"


async def test_ten_thousand_questions_are_read_in_useful_time(
    server: ScriptedServer, client: McpClient
) -> None:
    form = {"method": "elicitation/create", "params": {"message": "m", "requestedSchema": {"type": "object"}}}
    asked = {f"key-{number}": form for number in range(10_000)}
    server.on("tasks/get", result({**TASK, "status": "input_required", "inputRequests": asked}))
    async with asyncio.timeout(10):
        found = await client.get_task("t")
    assert isinstance(found, InputRequiredTask)
    assert len(found.input_requests) == 10_000
    assert found.faults == ()


# Every field, of every type.

WRONG: dict[str, Any] = {
    "null": None,
    "true": True,
    "number": 7,
    "negative": -1,
    "fraction": Decimal("0.5"),
    "huge": 10**300,
    "text": "wrong",
    "empty": "",
    "list": [[]],
    "object": {"a": {}},
}
HARMLESS = {
    # What is also right there, or says nothing to a client.
    ("ttlMs", "null"),
    ("ttlMs", "number"),
    ("ttlMs", "fraction"),
    ("pollIntervalMs", "number"),
    ("pollIntervalMs", "fraction"),
    ("statusMessage", "null"),
    ("statusMessage", "text"),
    ("statusMessage", "empty"),
    ("inputRequests", "object"),
    ("result", "object"),
    ("error", "object"),
    ("taskId", "text"),
}


@pytest.mark.parametrize("kind", list(WRONG))
@pytest.mark.parametrize(
    ("status", "field"),
    [
        *(("working", name) for name in TASK),
        ("working", "statusMessage"),
        ("input_required", "inputRequests"),
        ("completed", "result"),
        ("failed", "error"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(status: str, field: str, kind: str) -> None:
    """In an error where it matters, else in a fault: nothing wrong is passed over in silence."""
    whole = {**TASK, "status": status, field: WRONG[kind]}
    try:
        said = " ".join(read_task(whole).faults)
    except ProtocolError as error:
        said = f"(in {error.field})"
    if (field, kind) in HARMLESS:
        assert said == "" or field == "inputRequests"
    elif field == "inputRequests":
        assert "input request" in said
    else:
        assert field in said


# Sizes. A process of its own, so that what it takes can be measured.

READER = """
import asyncio, json, resource, sys, time
from mcp_client import Limits, McpClient, McpError

async def main():
    async with McpClient.http(sys.argv[1], limits=Limits(request_seconds=60)) as client:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.process_time()
        try:
            await client.get_task("t")
            said = "read"
        except McpError as error:
            said = str(error)
        spent = time.process_time() - started
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps([said, (after - before) / 1024, spent]))

asyncio.run(main())
"""


async def flood(exchange: Exchange, begin: bytes, block: bytes, megabytes: int) -> None:
    try:
        await exchange.send(begin)
        for _ in range(megabytes * MEGABYTE // len(block)):
            await exchange.send(block)
    except ConnectionError:
        pass
    exchange.writer.close()


def flooding(content_type: str, begin: bytes, block: bytes, megabytes: int = 100) -> Reply:
    return lambda exchange: flood(exchange, head(200, content_type, {}) + begin, block, megabytes)


FLOODS: dict[str, Callable[[], Reply]] = {
    "a reply of 100 MB": lambda: flooding("application/json", b'{"a":"', b"x" * MEGABYTE),
    "an event without an end": lambda: flooding("text/event-stream", b"data: ", b"x" * MEGABYTE),
    "a line that is no field": lambda: flooding("text/event-stream", b"", b"x" * MEGABYTE),
    "an event of many lines": lambda: flooding("text/event-stream", b"", b"data: x\n" * 4096),
    "many small events": lambda: flooding("text/event-stream", b"", b"id: 1\n\n" * 4096),
    "an error page of 100 MB": lambda: flooding("text/html", b"<p>", b"x" * MEGABYTE),
    "numbers": lambda: flooding("application/json", b'{"a":[', b"1," * 32_768, 15),
    "a header without an end": lambda: (
        lambda exchange: flood(exchange, b"HTTP/1.1 200 OK\r\nX-Long: ", b"x" * MEGABYTE, 100)
    ),
}


@pytest.fixture
def measured(server: ScriptedServer) -> Callable[[], Any]:
    async def run() -> tuple[str, float, float]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", READER, server.url, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        assert process.returncode == 0
        said, megabytes, seconds = json.loads(out)
        return said, megabytes, seconds

    return run


@pytest.mark.skipif(
    sys.platform == "win32", reason="how much memory a process took is asked for otherwise there"
)
@pytest.mark.parametrize("name", list(FLOODS))
async def test_a_flood_is_given_up_in_bounded_memory_and_time(
    server: ScriptedServer, measured: Callable[[], Any], name: str
) -> None:
    server.on("tasks/get", FLOODS[name]())
    said, megabytes, seconds = await measured()
    assert said != "read"
    assert megabytes < 16 * 6, f"took {megabytes:.0f} MB for a limit of 16 MB"
    assert seconds < 15, f"took {seconds:.1f} s of processor time"


async def test_a_flood_of_one_server_leaves_requests_to_another_alone(server: ScriptedServer) -> None:
    async with ScriptedServer() as other:
        other.on("tasks/get", result(TASK))
        server.on("tasks/get", FLOODS["a reply of 100 MB"]())
        bounds = Limits(request_seconds=60)
        async with (
            McpClient.http(server.url, limits=bounds) as flooded,
            McpClient.http(other.url, limits=bounds) as calm,
        ):
            under_way = asyncio.ensure_future(flooded.get_task("t"))
            await server.wait_for(1)
            for _ in range(20):
                assert (await calm.get_task("t")).status == "working"
            with pytest.raises(McpError):
                await under_way
