"""Streams and notifications over one shared channel: basic/transports/stdio (“Receiving Messages”),
basic/patterns/subscriptions, basic/patterns/progress."""

from __future__ import annotations

import asyncio
import json

import pytest
from fakes.stdio_server import Watched

from mcp_client import JSONObject, Limits, ProtocolError, TransportError

LISTEN = "subscriptions/listen"


@pytest.mark.rule(
    "stdio.notifications-correlated", "subscriptions.correlated-by-id", "subscriptions.interleaved-on-stdio"
)
async def test_notifications_find_their_stream_by_the_subscription_id() -> None:
    script = """
        a, b = read(), read()
        for r in (b, a):
            notify("notifications/subscriptions/acknowledged", _meta=of(r))
        for r in (a, b, a):
            notify("notifications/tasks", _meta=of(r), mine=r["id"])
        reply(b)
        reply(a)
        read()
    """
    async with (
        Watched(script) as server,
        server.transport.stream(server.request(LISTEN, "a")) as first,
        server.transport.stream(server.request(LISTEN, "b")) as second,
    ):
        ours = [incoming.message async for incoming in first]
        others = [incoming.message async for incoming in second]
    assert [m["params"]["mine"] for m in ours if m.get("method") == "notifications/tasks"] == ["a", "a"]
    assert [m["params"]["mine"] for m in others if m.get("method") == "notifications/tasks"] == ["b"]
    assert ours[0]["method"] == "notifications/subscriptions/acknowledged"
    assert (ours[-1]["id"], others[-1]["id"]) == ("a", "b")
    assert server.faults == []


async def test_the_iteration_ends_behind_the_response_and_nothing_is_cancelled() -> None:
    script = """
        r = read()
        reply(r)
        notify("notifications/tasks", _meta=of(r))
        for m in messages(): tell(json.dumps(m)); reply(m)
    """
    async with Watched(script) as server:
        async with server.transport.stream(server.request(LISTEN)) as stream:
            assert [incoming.message["id"] async for incoming in stream] == ["r-1"]
            with pytest.raises(StopAsyncIteration):
                await anext(stream)
        await server.ask()
        await server.told("tools/list")
    assert b"cancelled" not in server.stderr


@pytest.mark.rule("subscriptions.client-ends-it")
async def test_leaving_a_stream_cancels_it() -> None:
    """basic/patterns/subscriptions, “Cancellation”."""
    async with Watched("for r in requests(): pass") as server:
        async with server.transport.stream(server.request(LISTEN, "mine")):
            pass
        sent = json.loads(await server.told("notifications/cancelled"))
    assert sent["params"]["requestId"] == "mine"


@pytest.mark.rule("cancellation.races", "stdio.server-silent-after")
async def test_what_comes_after_a_stream_was_left_is_ignored_silently() -> None:
    script = """
        r = read()
        cancelled = read()
        notify("notifications/tasks", _meta=of(r))
        reply(r)
        for r in requests(): reply(r)
    """
    async with Watched(script) as server:
        async with server.transport.stream(server.request(LISTEN)):
            pass
        await server.ask()
    assert server.faults == []


@pytest.mark.rule("cancellation.server-names-subscription")
async def test_the_servers_cancellation_of_a_stream_is_a_message_on_it() -> None:
    script = """
        r = read()
        notify("notifications/cancelled", requestId=r["id"], reason="closing")
        read()
    """
    async with Watched(script) as server, server.transport.stream(server.request(LISTEN)) as stream:
        message = (await anext(stream)).message
    assert (message["method"], message["params"]["reason"]) == ("notifications/cancelled", "closing")


@pytest.mark.parametrize(
    "params",
    ['{"requestId": "unknown"}', '{"requestId": 7}', "{}", "[]", "null", '{"_meta": [], "requestId": {}}'],
)
@pytest.mark.rule("cancellation.invalid-ignored")
async def test_a_cancellation_of_nothing_that_is_open_is_ignored(params: str) -> None:
    script = f"""
        r = read()
        raw(b'{{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {params}}}\\n')
        reply(r)
        read()
    """
    async with Watched(script) as server:
        await server.ask()
    assert server.faults == []


@pytest.mark.rule("progress.only-known-tokens")
async def test_progress_is_told_to_the_request_whose_token_it_has() -> None:
    script = """
        a, b = sorted((read(), read()), key=lambda r: r["id"])
        for r in (a, b, a):
            notify("notifications/progress", progressToken=r["id"], progress=1)
        notify("notifications/progress", progressToken=7, progress=1)
        notify("notifications/message", level="info", data="hello")
        reply(a); reply(b)
        read()
    """
    told: list[tuple[str, JSONObject]] = []
    async with Watched(script) as server:
        await asyncio.gather(
            *(
                server.transport.send(
                    server.request("tools/call", name),
                    timeout=20,
                    on_message=lambda message, name=name: told.append((name, message)),
                )
                for name in ("a", "b")
            )
        )
    assert sorted((name, message["params"]["progressToken"]) for name, message in told) == [
        ("a", "a"),
        ("a", "a"),
        ("b", "b"),
    ]
    assert server.faults == []


@pytest.mark.rule("progress.only-known-tokens")
async def test_progress_that_nobody_asked_for_is_dropped() -> None:
    script = "r = read(); notify('notifications/progress', progressToken=r['id']); reply(r); read()"
    async with Watched(script) as server:
        assert "result" in await server.ask()
    assert server.faults == []


async def test_what_a_listener_raises_ends_its_request_and_cancels_it() -> None:
    script = """
        r = read()
        notify("notifications/progress", progressToken=r["id"], progress=1)
        tell(json.dumps(read()))
        for r in requests(): reply(r)
    """

    def refuse(message: JSONObject) -> None:
        raise TimeoutError("not mine")

    async with Watched(script) as server:
        with pytest.raises(TimeoutError, match="not mine"):
            await server.transport.send(server.request(), timeout=20, on_message=refuse)
        await server.told("notifications/cancelled")
        await server.ask()


async def test_a_reader_that_is_too_slow_gets_an_error_and_memory_stays_bounded() -> None:
    script = """
        r = read()
        for n in range(300): notify("notifications/tasks", _meta=of(r), data="x" * 1000)
        for m in messages(): tell(json.dumps(m)); "id" in m and reply(m)
    """
    async with Watched(script, Limits(reply_bytes=100_000)) as server:
        async with server.transport.stream(server.request(LISTEN, "slow")) as stream:
            await server.ask()
            with pytest.raises(ProtocolError, match="More than 100,000 bytes for subscriptions/listen"):
                await anext(stream)
            with pytest.raises(ProtocolError):
                await anext(stream)
        assert json.loads(await server.told("notifications/cancelled"))["params"]["requestId"] == "slow"
        assert "result" in await server.ask()


async def test_a_response_behind_too_much_to_read_does_not_hide_the_error() -> None:
    script = """
        r = read()
        for n in range(300): notify("notifications/tasks", _meta=of(r), data="x" * 1000)
        reply(r)
        for m in messages(): tell(json.dumps(m)); reply(m)
    """
    async with Watched(script, Limits(reply_bytes=100_000)) as server:
        async with server.transport.stream(server.request(LISTEN)) as stream:
            await server.ask()
            with pytest.raises(ProtocolError, match="faster than they were taken"):
                await anext(stream)
        await server.ask()
    assert b"cancelled" not in server.stderr


async def test_a_reader_that_keeps_up_may_read_for_ever() -> None:
    script = """
        r = read()
        for n in range(300):
            notify("notifications/tasks", _meta=of(r), data="x" * 1000)
            reply(read())
        reply(r)
        read()
    """
    async with Watched(script, Limits(reply_bytes=100_000)) as server:
        count = 0
        async with server.transport.stream(server.request(LISTEN)) as stream:
            async for _ in stream:
                count += 1
                if count <= 300:
                    await server.ask()
    assert count == 301


async def test_a_notification_that_cannot_be_read_fails_its_stream_which_is_cancelled() -> None:
    script = """
        r = read()
        raw(b'{"jsonrpc": "2.0", "method": "notifications/tasks", "params": {"a": 1, "a": 2, "_meta": '
            + json.dumps(of(r)).encode() + b"}}\\n")
        for r in requests(): reply(r)
    """
    async with Watched(script) as server:
        async with server.transport.stream(server.request(LISTEN)) as stream:
            with pytest.raises(ProtocolError, match="repeats the key"):
                await anext(stream)
        await server.told("notifications/cancelled")
        await server.ask()


async def test_a_stream_ends_with_an_error_when_the_process_does_after_what_came_before() -> None:
    script = """
        r = read()
        notify("notifications/tasks", _meta=of(r))
        tell("out of disk")
        os._exit(3)
    """
    async with Watched(script) as server, server.transport.stream(server.request(LISTEN)) as stream:
        assert (await anext(stream)).message["method"] == "notifications/tasks"
        with pytest.raises(TransportError, match=r"ended with exit code 3\. It last said: “out of disk”"):
            await anext(stream)


async def test_a_stream_that_has_failed_keeps_its_first_error() -> None:
    script = """
        r = read()
        for n in range(300): notify("notifications/tasks", _meta=of(r), data="x" * 1000)
        reply(read())
        os._exit(1)
    """
    async with (
        Watched(script, Limits(reply_bytes=100_000)) as server,
        server.transport.stream(server.request(LISTEN)) as stream,
    ):
        await server.ask()
        with pytest.raises(TransportError):
            await server.ask()
        with pytest.raises(ProtocolError):
            await anext(stream)
