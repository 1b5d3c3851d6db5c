"""Subscriptions where it matters that processes are real: two services, ends, kills, stalls."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from fakes.demo import DemoProcess
from fakes.demo_wire import DemoWire, accept, envelope, headers_for

pytestmark = pytest.mark.e2e


async def test_what_another_process_does_is_told_of_too(tmp_path):
    """Two services on one folder: what is called and answered at the one is told by the other."""
    with DemoProcess(tmp_path / "data") as one, DemoProcess(tmp_path / "data") as two:
        async with DemoWire(one.url) as here, DemoWire(two.url) as there:
            task_id = (await here.tool("generate_report", {"size": "small"}))["taskId"]
            async with there.listening([task_id]) as stream:
                await stream.until(lambda message: message["params"].get("status") == "input_required")
                await here.answer(task_id, approve_outline=accept(approved=True))
                last = await stream.until(lambda message: message["params"].get("status") == "completed")
            ended = await here.get(task_id)
    assert last["params"]["result"] == ended["result"]
    assert last["params"]["lastUpdatedAt"] == ended["lastUpdatedAt"]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_a_service_that_is_asked_to_end_says_goodbye_to_every_listener(tmp_path, how):
    demo = DemoProcess(tmp_path / "data").start()
    async with DemoWire(demo.url) as wire:
        task_id = (await wire.tool("two_questions"))["taskId"]
        await wire.until(task_id, "input_required")
        async with wire.listening([task_id]) as one, wire.listening([task_id]) as two:
            for stream in (one, two):
                await stream.next()
                await stream.next()
            ending = asyncio.create_task(asyncio.to_thread(demo.end, how))
            for stream in (one, two):
                assert (await stream.next())["method"] == "notifications/cancelled"
                assert (await stream.next())["id"] == stream.id
                assert await stream.ended()
        assert await ending == (0, "", "")


async def test_work_within_a_call_is_refused_when_the_service_ends(tmp_path):
    demo = DemoProcess(tmp_path / "data", tools="conformance").start()
    message = envelope("tools/call", {"name": "slow_compute", "arguments": {"seconds": 60}}, {})
    async with DemoWire(demo.url) as wire:
        calling = asyncio.create_task(wire.send(message))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await asyncio.shield(calling)
        assert await asyncio.to_thread(demo.end, signal.SIGTERM) == (0, "", "")
        refused = await calling
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, -32603)
    assert refused.json()["id"] == message["id"]


async def test_a_service_that_is_killed_cuts_its_streams_and_a_new_stream_starts_with_what_is_now(demo):
    async with DemoWire(demo.url) as wire:
        task_id = (await wire.tool("two_questions"))["taskId"]
        await wire.until(task_id, "input_required")
        async with wire.listening([task_id]) as stream:
            await stream.next()
            demo.kill()
            with pytest.raises(httpx.TransportError):
                await stream.until(lambda _: False)
        demo.start()
    async with DemoWire(demo.url) as wire, wire.listening([task_id]) as stream:
        await stream.next()
        assert list((await stream.next())["params"]["inputRequests"]) == ["colour", "count"]


async def test_a_listener_that_reads_nothing_holds_up_neither_others_nor_the_end(tmp_path):
    demo = DemoProcess(tmp_path / "data", speed=0.0).start()
    async with DemoWire(demo.url) as wire:
        task_id = (await wire.tool("two_questions"))["taskId"]
        await wire.until(task_id, "input_required")
        message = envelope("subscriptions/listen", {"notifications": {"taskIds": [task_id]}})
        with unread(demo.url, message), unread(demo.url, message):
            async with wire.listening([task_id]) as stream:
                await stream.until(lambda each: each["params"].get("status") == "input_required")
                await wire.call("tasks/cancel", {"taskId": task_id})
                await stream.until(lambda each: each["params"].get("status") == "cancelled")
            code, out, _ = await asyncio.to_thread(demo.end, signal.SIGTERM)
    assert (code, out) == (0, "")


def unread(url: str, message: dict[str, Any]) -> socket.socket:
    """Send a request and read nothing."""
    stalled = socket.create_connection(("127.0.0.1", urlsplit(url).port or 0))
    body = json.dumps(message).encode()
    given = headers_for(message) | {"Host": "localhost", "Content-Type": "application/json"}
    given |= {"Content-Length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    stalled.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
    return stalled
