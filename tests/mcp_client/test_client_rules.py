"""Rules that no other test of the client holds; each mark names one, and tests/rules says its page."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

import pytest
from fakes.mcp_server import (
    Exchange,
    Received,
    ScriptedServer,
    head,
    http_reply,
    message,
    notification,
    response,
    result,
    stream,
    wait,
)
from fakes.stdio_server import Watched

from mcp_client import (
    CallToolResult,
    ClientCapabilities,
    InputRequiredResult,
    Limits,
    McpClient,
    Progress,
    ProtocolError,
    TaskNotification,
    TransportError,
)

DONE = {"resultType": "complete", "content": []}
HANDLE = {
    "resultType": "task",
    "taskId": "t1",
    "status": "working",
    "createdAt": "2026-01-02T03:04:05Z",
    "lastUpdatedAt": "2026-01-02T03:04:05Z",
    "ttlMs": None,
}
SERVER_INFO = "io.modelcontextprotocol/serverInfo"


# What is sent.


@pytest.mark.rule(
    "index.request-id-not-null", "index.request-id", "index.request-id-unique", "http.body-one-message"
)
async def test_every_request_has_a_text_for_an_id_and_none_twice(
    server: ScriptedServer, client: McpClient
) -> None:
    server.on("tools/call", result(DONE))
    server.on("tasks/update", result({}))
    server.on("tools/list", result({"tools": []}))
    await asyncio.gather(*(client.call_tool("t", {"n": n}) for n in range(20)))
    await client.update_task("t1", {})
    await client.list_tools()
    ids = [request.json["id"] for request in server.received]
    assert all(isinstance(one, str) and one for one in ids)
    assert len(set(ids)) == len(ids) == 22


@pytest.mark.rule("progress.token-type", "progress.token-unique")
async def test_calls_at_the_same_time_have_progress_tokens_of_their_own(
    server: ScriptedServer, client: McpClient
) -> None:
    go = asyncio.Event()
    server.on("tools/call", wait(go, result(DONE)))
    calls = [asyncio.create_task(client.call_tool("t", {}, on_progress=lambda step: None)) for _ in range(10)]
    await server.wait_for(10, "tools/call")
    go.set()
    await asyncio.gather(*calls)
    tokens = [request.params["_meta"]["progressToken"] for request in server.received]
    assert all(isinstance(token, str) and token for token in tokens)
    assert len(set(tokens)) == 10


@pytest.mark.rule(
    "http.no-responses-sent", "index.notifications-unanswered", "index.notifications-without-id"
)
async def test_nothing_a_server_says_on_a_stream_is_answered(
    server: ScriptedServer, client: McpClient
) -> None:
    asks = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    tells = notification("notifications/message", {"level": "info", "data": "x"})
    with_id = {**tells, "id": 2}
    server.queue(stream(tells, response(DONE)), stream(with_id, response(DONE)), stream(asks, response(DONE)))
    await client.call_tool("t", {})
    for _ in range(2):
        with pytest.raises(ProtocolError):
            await client.call_tool("t", {})
    server.queue(result(DONE))
    await client.call_tool("t", {})
    assert [request.method for request in server.received] == ["tools/call"] * 4
    assert all("result" not in request.json and "error" not in request.json for request in server.received)


@pytest.mark.rule("authorization.every-request", "authorization.not-in-query", "authorization.header")
async def test_every_request_carries_the_token_in_its_header_and_nowhere_else(server: ScriptedServer) -> None:
    server.on("tools/list", result({"tools": []}))
    server.on("tools/call", result(DONE))
    server.on("tasks/cancel", result({}))
    async with McpClient.http(server.url, headers={"Authorization": "Bearer hush"}) as client:
        await client.list_tools()
        await client.call_tool("t", {})
        await client.cancel_task("t1")
    assert len(server.received) == 3
    for request in server.received:
        assert request.header("Authorization") == "Bearer hush"
        assert "hush" not in request.path
        assert b"hush" not in request.body


@pytest.mark.rule("http.no-sessions", "wire.no-sessions")
async def test_a_session_id_of_the_server_is_not_sent_back(server: ScriptedServer, client: McpClient) -> None:
    given = http_reply(200, lambda r: message(r, result=DONE), headers={"Mcp-Session-Id": "s-1"})
    server.queue(given, stream(b"id: 7\n", response(DONE)), result(DONE))
    for _ in range(3):
        await client.call_tool("t", {})
    for request in server.received:
        assert request.verb == "POST"
        assert request.header("Mcp-Session-Id") is None
        assert request.header("Last-Event-ID") is None


@pytest.mark.rule("mrtr.state-for-its-own-retry")
async def test_a_state_goes_back_with_its_own_call_alone(server: ScriptedServer, client: McpClient) -> None:
    server.on(
        "tools/call",
        result(lambda r: {"resultType": "input_required", "requestState": f"for {r.params['name']}"}),
    )
    server.on("tools/list", result({"tools": []}))
    server.on("tasks/cancel", result({}))
    asked = {}
    for name in "ab":
        found = await client.call_tool(name, {})
        assert isinstance(found, InputRequiredResult)
        asked[name] = found.request_state
    await client.list_tools()
    await client.cancel_task("t1")
    await client.call_tool("c", {})
    for name in "ba":
        await client.call_tool(name, {}, input_responses={}, request_state=asked[name])
    assert [(r.params.get("name"), r.params.get("requestState")) for r in server.received] == [
        ("a", None),
        ("b", None),
        (None, None),
        (None, None),
        ("c", None),
        ("b", "for b"),
        ("a", "for a"),
    ]


@pytest.mark.rule("caching.no-background-refetch")
async def test_a_list_whose_time_is_over_is_not_fetched_before_it_is_needed(
    server: ScriptedServer, client: McpClient
) -> None:
    server.on("tools/list", result({"tools": [], "ttlMs": 1}))
    server.on("tools/call", result(DONE))
    await client.list_tools()
    await asyncio.sleep(0.05)  # fifty times as long as the list may be kept
    await client.call_tool("t", {})
    assert len(server.of("tools/list")) == 1
    await client.list_tools()
    assert len(server.of("tools/list")) == 2


# What comes back.


@pytest.mark.rule("http.header-names-any-case")
@pytest.mark.parametrize("case", [str.lower, str.upper, str.title])
async def test_a_reply_with_headers_in_any_case_is_the_same_reply(
    server: ScriptedServer, client: McpClient, case: Any
) -> None:
    async def send(exchange: Exchange) -> None:
        body = b"data: " + message(exchange.request, result=DONE) + b"\n\n"
        names = [
            f"{case('content-type')}: text/event-stream",
            f"{case('content-length')}: {len(body)}",
        ]
        await exchange.send("\r\n".join(["HTTP/1.1 200 OK", *names, "", ""]).encode() + body)

    server.queue(send)
    assert isinstance(await client.call_tool("t", {}), CallToolResult)


@pytest.mark.rule("index.result-type-known-set", "tasks.handle-only-if-declared", "wire.undeclared-tasks")
@pytest.mark.parametrize("extensions", [None, {}, {"com.example/other": {}}])
async def test_a_handle_for_a_client_that_never_declared_tasks_is_the_servers_fault(
    server: ScriptedServer, extensions: dict[str, Any] | None
) -> None:
    server.on("tools/call", result(HANDLE))
    async with McpClient.http(server.url, capabilities=ClientCapabilities(extensions=extensions)) as client:
        for request in (client.call_tool("t", {}), client.request("tools/call", {"name": "t"})):
            with pytest.raises(ProtocolError, match=r"The server made a task \(“t1”\)") as fault:
                await request
            assert fault.value.field == "resultType"


@pytest.mark.rule("wire.old-tasks-not-read")
async def test_a_task_of_the_older_revision_is_no_task(server: ScriptedServer, client: McpClient) -> None:
    """There the task stood in a member of its own, and its time to live was called ``ttl``."""
    old = {
        "taskId": "t1",
        "status": "working",
        "createdAt": "2026-01-02T03:04:05Z",
        "ttl": 5,
        "pollInterval": 1,
    }
    server.on("tools/call", result({"task": old}))
    server.on("tasks/get", result(old))
    done = await client.call_tool("t", {})
    assert isinstance(done, CallToolResult)
    assert done.faults == ("The result has no list of content.",)
    server.on("tools/call", result({"resultType": "task", "task": old}))
    with pytest.raises(ProtocolError) as fault:
        await client.call_tool("t", {})
    assert fault.value.field == "taskId"
    task = await client.get_task("t1")
    assert (task.ttl_ms, task.poll_interval_ms) == (None, None)
    assert any("ttlMs" in said for said in task.faults)


@pytest.mark.rule("progress.increases")
async def test_progress_that_goes_backwards_or_stands_still_is_handed_on(
    server: ScriptedServer, client: McpClient
) -> None:
    def step(value: Any) -> Any:
        return lambda r: progress_of(r, value)

    server.queue(stream(*map(step, (5, 2, 2, -1, "x", None)), response(DONE)))
    heard: list[Progress] = []
    await client.call_tool("t", {}, on_progress=heard.append)
    assert [one.progress for one in heard] == [5, 2, 2, -1, None, None]


@pytest.mark.rule("progress.flood")
async def test_a_flood_of_progress_does_not_keep_the_result_from_coming(
    server: ScriptedServer, client: McpClient
) -> None:
    server.queue(stream(*(lambda r, n=n: progress_of(r, n) for n in range(5_000)), response(DONE)))
    heard: list[Progress] = []
    found = await client.call_tool("t", {}, on_progress=heard.append)
    assert isinstance(found, CallToolResult)
    assert len(heard) == 5_000


@pytest.mark.rule("progress.stops", "progress.tokens-tracked")
async def test_progress_behind_the_result_is_passed_over(server: ScriptedServer, client: McpClient) -> None:
    hold = asyncio.Event()
    late = stream(
        lambda r: progress_of(r, 1), response(DONE), lambda r: progress_of(r, 2), response(DONE), hold=hold
    )
    server.queue(late, result(DONE))
    heard: list[Progress] = []
    await client.call_tool("t", {}, on_progress=heard.append)
    hold.set()
    await client.call_tool("t", {})
    assert [one.progress for one in heard] == [1]


def progress_of(request: Received, value: Any) -> dict[str, Any]:
    token = request.params["_meta"]["progressToken"]
    return notification("notifications/progress", {"progressToken": token, "progress": value})


@pytest.mark.rule("discover.info-changes-nothing", "index.info-changes-nothing", "index.meta-no-assumptions")
async def test_what_a_server_calls_itself_changes_nothing_that_is_sent(server: ScriptedServer) -> None:
    """Servers named like the official ones, like none, or like nothing: the requests are the same."""
    sent = []
    for info in (
        None,
        {"name": "github", "version": "1"},
        {"name": "\x1b[2J", "version": ""},
        5,
        ["trusted"],
    ):
        meta = {} if info is None else {"_meta": {SERVER_INFO: info}}
        server.on(
            "server/discover",
            result({"supportedVersions": ["2026-07-28"], "capabilities": {}, **meta}),
        )
        server.on("tools/list", result({"tools": [], **meta}))
        server.on("tools/call", result({**DONE, **meta}))
        server.received.clear()
        async with McpClient.http(server.url) as client:
            await client.discover()
            await client.list_tools()
            await client.call_tool("t", {"a": 1})
        passing = {"host", "content-length"}
        sent.append(
            [
                ({**request.json, "id": None}, [h for h in request.headers if h[0].lower() not in passing])
                for request in server.received
            ]
        )
    assert len(sent[0]) == 3
    assert all(one == sent[0] for one in sent[1:])


@pytest.mark.rule("tools.annotations-untrusted", "wire.annotations-are-claims")
async def test_a_tool_that_calls_itself_harmless_is_called_no_more_often(
    server: ScriptedServer, client: McpClient
) -> None:
    claims = {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False}
    tool = {"name": "t", "inputSchema": {"type": "object"}, "annotations": claims}
    server.on("tools/list", result({"tools": [tool], "ttlMs": 60_000}))
    server.on("tools/call", http_reply(503))
    (found,) = (await client.list_tools()).tools
    assert found.annotations == claims
    with pytest.raises(TransportError, match="503"):
        await client.call_tool("t", {})
    server.on("tools/call", result(DONE))
    for _ in range(2):
        await client.call_tool("t", {})
    assert len(server.of("tools/call")) == 3


@pytest.mark.rule("wire.idle-streams-outlive-read-timeouts")
async def test_a_stream_may_be_quiet_for_longer_than_any_request_may_take(server: ScriptedServer) -> None:
    """Only silence for ``idle_seconds`` ends it, comments being life."""

    def marked(request: Received, **params: Any) -> dict[str, Any]:
        return {**params, "_meta": {"io.modelcontextprotocol/subscriptionId": request.json["id"]}}

    async def quiet(exchange: Exchange) -> None:
        asked = exchange.request
        agreed = marked(asked, notifications=asked.params["notifications"])
        first = notification("notifications/subscriptions/acknowledged", agreed)
        await exchange.send(head(200, "text/event-stream", {"Connection": "close"}) + as_event(first))
        await asyncio.sleep(0.6)  # three times as long as a request may take
        task = {**HANDLE, "status": "cancelled"}
        await exchange.send(as_event(notification("notifications/tasks", marked(asked, **task))))
        exchange.writer.close()

    server.on("subscriptions/listen", quiet)
    limits = Limits(request_seconds=0.2, call_seconds=0.2, idle_seconds=20)
    async with McpClient.http(server.url, limits=limits) as client, client.listen(["t1"]) as subscription:
        (event,) = [one async for one in subscription]
    assert isinstance(event, TaskNotification)
    assert event.task.status == "cancelled"


def as_event(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


# A server that is a process.


@pytest.mark.rule("subscriptions.resent-after-restart")
async def test_a_subscription_is_asked_for_again_of_the_next_process() -> None:
    """The next process knows nothing of what the one before was asked (basic/patterns/subscriptions)."""
    script = """
        for r in requests():
            if r["method"] == "server/discover":
                reply(r, supportedVersions=["2026-07-28"], capabilities={})
            elif r["method"] == "subscriptions/listen":
                asked = r["params"]["notifications"]
                notify("notifications/subscriptions/acknowledged", _meta=of(r), notifications=asked)
            else:
                os._exit(1)
    """
    now = itertools.count(0, 3_600)  # no pause before the next start is that long
    async with Watched(script, clock=lambda: next(now)) as server:
        client = McpClient(server.transport)
        async with client.listen(["t1"]) as first:
            assert first.accepted == {"t1"}
            with pytest.raises(TransportError):
                await client.get_task("t1")
            assert [event async for event in first] == []
        assert first.ending is not None
        assert first.ending.kind == "dropped"
        async with client.listen(["t1"]) as second:
            assert second.accepted == {"t1"}
            assert await server.transport.connect() == 2
