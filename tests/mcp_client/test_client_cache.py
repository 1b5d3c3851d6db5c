"""Results that are used again: server/utilities/caching, and pages of lists: server/utilities/pagination."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from fakes.mcp_server import Exchange, ScriptedServer, error, head, http_reply, notification, result

from mcp_client import AuthRequired, InputRequiredResult, McpClient, ProtocolError, ServerError, ToolsChanged
from mcp_client.cache import BYTES_MOST, TTL_MOST_MS, ResultCache

DISCOVERED = {"supportedVersions": ["2026-07-28"], "capabilities": {}}


class Time:
    """A clock that a test turns, in seconds."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def cache(time: Time) -> ResultCache:
    return ResultCache(time)


def kept(cache: ResultCache, method: str = "tools/list", **params: Any) -> Any:
    return cache.get(method, params, depth=64)


@pytest.mark.rule("caching.ttl-positive", "caching.stale-refetched")
def test_a_result_is_fresh_until_its_time_is_over_and_not_a_moment_longer(
    cache: ResultCache, time: Time
) -> None:
    cache.put("tools/list", {}, {"tools": [], "ttlMs": 2_000, "cacheScope": "private"})
    time.now += 1.999
    assert kept(cache) == {"tools": [], "ttlMs": 2_000, "cacheScope": "private"}
    time.now += 0.001
    assert kept(cache) is None
    time.now -= 1
    assert kept(cache) is None


def test_a_clock_that_is_set_back_makes_a_result_stale(cache: ResultCache, time: Time) -> None:
    cache.put("tools/list", {}, {"ttlMs": 2_000})
    time.now -= 10
    assert kept(cache) is None


@pytest.mark.rule(
    "caching.ttl-zero", "caching.ttl-absent", "caching.ttl-negative", "caching.ttl-not-negative"
)
@pytest.mark.parametrize("ttl", [None, 0, -1, "1000", True, [], 2**60])
def test_a_result_without_a_usable_time_to_live_is_not_kept(cache: ResultCache, ttl: Any) -> None:
    cache.put("tools/list", {}, {"ttlMs": 5_000})
    cache.put("tools/list", {}, {"ttlMs": ttl})
    assert kept(cache) is None


def test_no_result_is_kept_for_longer_than_a_day(cache: ResultCache, time: Time) -> None:
    cache.put("tools/list", {}, {"ttlMs": 2**50})
    time.now += TTL_MOST_MS / 1000
    assert kept(cache) is None


@pytest.mark.rule("caching.same-request-only")
def test_a_result_is_found_under_its_own_method_and_parameters_alone(cache: ResultCache) -> None:
    cache.put("tools/list", {"cursor": "a"}, {"ttlMs": 5_000, "page": 1})
    assert kept(cache) is None
    assert kept(cache, cursor="b") is None
    assert kept(cache, "prompts/list", cursor="a") is None
    assert kept(cache, cursor="a") == {"ttlMs": 5_000, "page": 1}


def test_what_a_caller_does_to_a_result_does_not_change_what_is_kept(cache: ResultCache) -> None:
    mine: dict[str, Any] = {"ttlMs": 5_000, "tools": []}
    cache.put("tools/list", {}, mine)
    mine["tools"].append("x")
    kept(cache)["tools"].append("y")
    assert kept(cache)["tools"] == []


def test_the_cache_takes_bounded_memory_and_gives_up_the_oldest(cache: ResultCache) -> None:
    third = "x" * (BYTES_MOST // 3)
    for cursor in "abc":
        cache.put("tools/list", {"cursor": cursor}, {"ttlMs": 5_000, "text": third})
    assert [kept(cache, cursor=cursor) is not None for cursor in "abc"] == [False, True, True]
    cache.put("tools/list", {}, {"ttlMs": 5_000, "text": "x" * BYTES_MOST})
    assert kept(cache) is None
    assert kept(cache, cursor="c") is not None


# The client.


@pytest.mark.rule("caching.ttl", "caching.ttl-hint", "wire.lists-cached")
async def test_a_list_and_a_discovery_are_asked_for_once_while_they_are_fresh(
    server: ScriptedServer, client: McpClient
) -> None:
    server.on("tools/list", result({"tools": [], "ttlMs": 60_000, "cacheScope": "private"}))
    server.on("server/discover", result({**DISCOVERED, "ttlMs": 60_000, "cacheScope": "public"}))
    for _ in range(2):
        await client.list_tools()
        await client.discover()
    assert [request.method for request in server.received] == ["tools/list", "server/discover"]
    await client.list_tools(fresh=True)
    await client.discover(fresh=True)
    assert len(server.received) == 4


@pytest.mark.rule("caching.ttl-absent")
async def test_without_a_time_to_live_a_list_is_asked_for_each_time(
    server: ScriptedServer, client: McpClient
) -> None:
    server.on("tools/list", result({"tools": []}))
    await client.list_tools()
    await client.list_tools()
    assert len(server.received) == 2


@pytest.mark.rule("caching.private-reused", "caching.private-not-shared", "wire.lists-cached")
@pytest.mark.parametrize("scope", ["public", "private"])
async def test_no_sign_in_sees_what_another_was_shown(server: ScriptedServer, scope: str) -> None:
    def listing(request: Any) -> dict[str, Any]:
        name = request.header("Authorization").removeprefix("Bearer ")
        tool = {"name": name, "inputSchema": {"type": "object"}}
        return {"tools": [tool], "ttlMs": 60_000, "cacheScope": scope}

    server.on("tools/list", result(listing))
    for name in ("alice", "bob"):
        async with McpClient.http(server.url, headers={"Authorization": f"Bearer {name}"}) as signed_in:
            assert [tool.name for tool in (await signed_in.list_tools()).tools] == [name]
            assert [tool.name for tool in (await signed_in.list_tools()).tools] == [name]
    assert len(server.received) == 2


@pytest.mark.rule("caching.private-not-shared")
async def test_a_sign_in_that_is_over_takes_what_was_kept_with_it(
    server: ScriptedServer, client: McpClient
) -> None:
    server.on("tools/list", result({"tools": [], "ttlMs": 60_000}))
    await client.list_tools()
    server.on("tasks/get", http_reply(401))
    with pytest.raises(AuthRequired):
        await client.get_task("t")
    await client.list_tools()
    assert len(server.of("tools/list")) == 2


@pytest.mark.rule("caching.data-may-change", "caching.refetched-early")
async def test_a_refused_call_makes_the_list_of_tools_stale(
    server: ScriptedServer, client: McpClient
) -> None:
    server.on("tools/list", result({"tools": [], "ttlMs": 60_000}))
    server.on("tools/call", error(-32602, "Unknown tool"))
    await client.list_tools()
    with pytest.raises(ServerError):
        await client.call_tool("gone")
    await client.list_tools()
    assert len(server.of("tools/list")) == 2


@pytest.mark.rule("caching.retries-not-kept", "wire.lists-cached")
async def test_a_retry_that_carries_answers_is_never_kept(server: ScriptedServer, client: McpClient) -> None:
    asking = {"resultType": "input_required", "requestState": "s", "ttlMs": 60_000}
    done = {"resultType": "complete", "contents": [], "ttlMs": 60_000, "cacheScope": "public"}
    server.queue(result(asking), result(done), result(done), result(done))
    params = {"uri": "x:y"}
    assert isinstance(await client.call("resources/read", params), InputRequiredResult)
    for _ in range(2):
        await client.call("resources/read", params, input_responses={}, request_state="s")
    await client.call("resources/read", params)
    assert len(server.received) == 4


# Pages.


def tool(name: str) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}}


@pytest.mark.rule(
    "caching.ttl-zero", "caching.stale-refetched", "caching.pages-differ", "caching.page-refetched"
)
async def test_each_page_is_fresh_for_its_own_time(server: ScriptedServer, client: McpClient) -> None:
    server.queue(
        result({"tools": [tool("a")], "nextCursor": "", "ttlMs": 60_000}),
        result({"tools": [tool("b")], "ttlMs": 0}),
        result({"tools": [tool("c")], "ttlMs": 0}),
    )
    assert [one.name for one in (await client.list_tools()).tools] == ["a", "b"]
    assert [one.name for one in (await client.list_tools()).tools] == ["a", "c"]
    assert [request.params.get("cursor") for request in server.received] == [None, "", ""]


@pytest.mark.rule("caching.snapshot-from-start", "caching.cursor-invalid", "pagination.invalid-cursor")
async def test_a_cursor_that_is_refused_makes_the_list_be_read_from_the_beginning(
    server: ScriptedServer, client: McpClient
) -> None:
    server.queue(
        result({"tools": [tool("a")], "nextCursor": "old", "ttlMs": 60_000}),
        result({"tools": [tool("b")]}),
        error(-32602, "No such cursor"),
        result({"tools": [tool("c")], "nextCursor": "new", "ttlMs": 60_000}),
        result({"tools": [tool("d")]}),
    )
    await client.list_tools()
    assert [one.name for one in (await client.list_tools()).tools] == ["c", "d"]
    assert [request.params.get("cursor") for request in server.received] == [None, "old", "old", None, "new"]


@pytest.mark.rule("caching.cursor-invalid")
async def test_a_server_that_refuses_its_own_cursors_is_asked_twice_and_no_more(
    server: ScriptedServer, client: McpClient
) -> None:
    page = result({"tools": [], "nextCursor": "next"})
    server.queue(page, error(-32602, "No such cursor"), page, error(-32602, "Still none"))
    with pytest.raises(ServerError, match="Still none"):
        await client.list_tools()
    assert len(server.received) == 4


async def test_another_error_on_a_later_page_is_that_error(server: ScriptedServer, client: McpClient) -> None:
    server.queue(result({"tools": [], "nextCursor": "next"}), error(-32603, "Broken"))
    with pytest.raises(ServerError, match="Broken"):
        await client.list_tools()


async def test_other_lists_are_read_through_all_their_pages(
    server: ScriptedServer, client: McpClient
) -> None:
    server.queue(
        result({"prompts": [{"name": "a"}], "nextCursor": "2"}),
        result({"prompts": [{"name": "b"}]}),
        result({"prompts": {}}),
    )
    assert await client.list_all("prompts/list", "prompts") == [{"name": "a"}, {"name": "b"}]
    with pytest.raises(ProtocolError) as broken:
        await client.list_all("prompts/list", "prompts")
    assert broken.value.field == "prompts"


@pytest.mark.rule("caching.refetched-early")
async def test_a_list_is_stale_once_its_server_tells_that_it_changed(
    server: ScriptedServer, client: McpClient
) -> None:
    told = asyncio.Event()

    async def listening(exchange: Exchange) -> None:
        meta = {"io.modelcontextprotocol/subscriptionId": exchange.request.json["id"]}
        honoured = {"_meta": meta, "notifications": {"toolsListChanged": True}}
        acknowledged = notification("notifications/subscriptions/acknowledged", honoured)
        changed = notification("notifications/tools/list_changed", {"_meta": meta})
        await exchange.send(head(200, "text/event-stream", {}) + event(acknowledged))
        await told.wait()
        await exchange.send(event(changed))
        await exchange.closed_by_client()

    server.on("tools/list", result({"tools": [], "ttlMs": 60_000}))
    server.on("subscriptions/listen", listening)
    async with client.listen([], tools_changed=True) as subscription:
        await client.list_tools()
        await client.list_tools()
        assert len(server.of("tools/list")) == 1
        told.set()
        assert isinstance(await anext(subscription), ToolsChanged)
        await client.list_tools()
    assert len(server.of("tools/list")) == 2


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"
