"""What each verb sends, and what it makes of the answer."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from fakes.mcp_server import (
    Received,
    ScriptedServer,
    error,
    notification,
    response,
    result,
    stream,
)

from mcp_client import (
    CallToolResult,
    ClientCapabilities,
    CompletedTask,
    CompleteResult,
    CreateTaskResult,
    Implementation,
    InputRequiredResult,
    InvalidRequest,
    Limits,
    McpClient,
    Progress,
    ProtocolError,
    RawJSON,
    ServerError,
)

META = "io.modelcontextprotocol/"
DONE = {"resultType": "complete", "content": [{"type": "text", "text": "ok"}]}
TASK: dict[str, Any] = {
    "resultType": "complete",
    "taskId": "t1",
    "status": "working",
    "createdAt": "2026-01-02T03:04:05Z",
    "lastUpdatedAt": "2026-01-02T03:04:05Z",
    "ttlMs": None,
    "pollIntervalMs": 100,
}


@pytest.mark.rule(
    "elicitation.declared",
    "elicitation.declares-a-mode",
    "http.each-message-a-post",
    "http.post",
    "http.accept",
    "http.metadata-headers",
    "http.not-resumable",
    "http.version-header",
    "http.version-header-matches",
    "http.method-and-name-headers",
    "http.name-encoded",
    "http.no-sessions",
    "index.server-stateless",
    "index.meta-key-form",
    "index.meta-prefix-recommended",
    "index.meta-required",
    "index.client-info",
    "mrtr.meta-on-every-request",
    "pagination.meta-on-every-request",
    "roots.not-adopted",
    "roots.declared",
    "sampling.not-adopted",
    "sampling.declared",
    "tasks.declared",
    "tasks.mcp-name-is-task-id",
    "tools.meta-on-every-request",
    "versioning.extension-names",
    "wire.meta-and-headers",
    "wire.no-sessions",
    "wire.sampling-and-roots-off",
    "index.base-protocol",
)
async def test_every_request_carries_its_meta_and_its_headers(server: ScriptedServer) -> None:
    server.on("tools/call", result(DONE))
    server.on("tasks/cancel", result({"resultType": "complete"}))
    server.on("server/discover", result({"supportedVersions": ["2026-07-28"], "capabilities": {}}))
    async with McpClient.http(server.url, client_info=Implementation(name="Näme", version="1")) as client:
        await client.call_tool("tool", {})
        await client.cancel_task("täsk")
        await client.discover()
    call, cancel, discover = server.received
    for request in server.received:
        assert request.verb == "POST"
        assert request.header("Accept") == "application/json, text/event-stream"
        assert request.header("Content-Type") == "application/json"
        assert request.header("MCP-Protocol-Version") == "2026-07-28"
        assert request.header("Mcp-Method") == request.method
        assert request.header("Last-Event-ID") is None
        assert request.header("Mcp-Session-Id") is None
        assert request.params["_meta"] == {
            f"{META}protocolVersion": "2026-07-28",
            f"{META}clientInfo": {"name": "Näme", "version": "1"},
            f"{META}clientCapabilities": {
                "elicitation": {"form": {}, "url": {}},
                "extensions": {"io.modelcontextprotocol/tasks": {}},
            },
        }
    assert call.header("Mcp-Name") == "tool"
    assert cancel.header("Mcp-Name") == "=?base64?dMOkc2s=?="
    assert discover.header("Mcp-Name") is None


@pytest.mark.rule("roots.declared", "sampling.declared")
async def test_declared_capabilities_are_the_ones_that_were_given(server: ScriptedServer) -> None:
    server.on("test/ask", result({}))
    given = ClientCapabilities(elicitation=None, sampling={}, roots={}, extensions={})
    async with McpClient.http(server.url, capabilities=given) as client:
        await client.request("test/ask")
    sent = server.received[0].params["_meta"][f"{META}clientCapabilities"]
    assert sent == {"sampling": {}, "roots": {}, "extensions": {}}


@pytest.mark.rule("index.trace-context")
async def test_meta_of_the_caller_travels_along_and_cannot_replace_the_protocol_s(
    server: ScriptedServer, client: McpClient
) -> None:
    server.on("test/ask", result({}))
    params = {"x": 1, "_meta": {"traceparent": "00-a-b-01", f"{META}protocolVersion": "1999"}}
    await client.request("test/ask", params)
    meta = server.received[0].params["_meta"]
    assert meta["traceparent"] == "00-a-b-01"
    assert meta[f"{META}protocolVersion"] == "2026-07-28"
    assert params == {"x": 1, "_meta": {"traceparent": "00-a-b-01", f"{META}protocolVersion": "1999"}}
    with pytest.raises(InvalidRequest):
        await client.request("test/ask", {"_meta": [1]})


@pytest.mark.rule("index.result-any-object")
async def test_the_result_of_a_bare_request_is_returned_as_it_came(
    server: ScriptedServer, client: McpClient
) -> None:
    server.queue(result({"a": [1, {"b": 0.25}], "unknown": True}))
    assert await client.request("prompts/list") == {"a": [1, {"b": Decimal("0.25")}], "unknown": True}


# The three kinds of outcome.


@pytest.mark.rule(
    "index.result-type-extensions",
    "progress.optional",
    "tasks.server-decides",
    "tasks.either-result",
    "tools.may-ask",
)
async def test_a_call_may_complete_become_a_task_or_ask_first(
    server: ScriptedServer, client: McpClient
) -> None:
    asks = {"resultType": "input_required", "requestState": "s"}
    server.queue(result(DONE), result({**TASK, "resultType": "task"}), result(asks))
    done = await client.call_tool("a", {})
    assert isinstance(done, CallToolResult)
    assert done.raw == DONE
    handle = await client.call_tool("b", {})
    assert isinstance(handle, CreateTaskResult)
    assert (handle.task_id, handle.status, handle.poll_interval_ms) == ("t1", "working", 100)
    asked = await client.call_tool("c", {})
    assert isinstance(asked, InputRequiredResult)
    assert (asked.request_state, asked.input_requests) == ("s", {})


@pytest.mark.rule(
    "index.result-type-present",
    "index.result-type-absent",
    "tasks.handle-says-task",
    "wire.result-type-discriminates",
    "wire.absent-and-unknown-types",
    "wire.extras-kept",
)
async def test_an_absent_result_type_means_complete_and_extras_change_nothing(
    server: ScriptedServer, client: McpClient
) -> None:
    server.queue(
        result({"content": [], "taskId": "t1", "status": "working"}),
        result({**TASK, "resultType": "task", "content": [], "_meta": {"x": 1}}),
    )
    assert isinstance(await client.call_tool("a", {}), CallToolResult)
    handle = await client.call_tool("b", {})
    assert isinstance(handle, CreateTaskResult)
    assert handle.raw["_meta"] == {"x": 1}


@pytest.mark.rule("index.result-type-unknown", "wire.absent-and-unknown-types")
@pytest.mark.parametrize("unknown", ["streaming", "Complete", "", None, 5, ["task"]])
async def test_an_unknown_result_type_is_an_invalid_reply(
    server: ScriptedServer, client: McpClient, unknown: Any
) -> None:
    server.on("tools/call", result({**DONE, "resultType": unknown}))
    server.on("tasks/get", result({**TASK, "resultType": unknown}))
    for request in (
        client.call_tool("a", {}),
        client.request("tools/call", {"name": "a"}),
        client.get_task("t1"),
    ):
        with pytest.raises(ProtocolError) as invalid:
            await request
        assert invalid.value.field == "resultType"


@pytest.mark.rule(
    "tasks.handle-for-other-request",
    "tasks.update-says-complete",
    "tasks.cancel-says-complete",
    "wire.absent-and-unknown-types",
)
async def test_only_what_may_become_a_task_may_be_answered_with_one(
    server: ScriptedServer, client: McpClient
) -> None:
    for method in ("prompts/get", "tools/list", "tasks/update", "tasks/cancel", "server/discover"):
        server.on(method, result({**TASK, "resultType": "task"}))
    for request in (
        client.call("prompts/get", {"name": "p"}),
        client.request("prompts/get", {"name": "p"}),
        client.list_tools(),
        client.update_task("t1", {}),
        client.cancel_task("t1"),
        client.discover(),
    ):
        with pytest.raises(ProtocolError) as invalid:
            await request
        assert invalid.value.field == "resultType"


@pytest.mark.rule("mrtr.may-ask", "mrtr.must-not-ask-elsewhere")
async def test_questions_come_only_on_the_requests_that_may_ask(
    server: ScriptedServer, client: McpClient
) -> None:
    asks = {"resultType": "input_required", "requestState": "s"}
    for method in ("prompts/get", "resources/read", "tools/list", "tasks/get"):
        server.on(method, result({**TASK, **asks}))
    assert isinstance(await client.call("prompts/get", {"name": "p"}), InputRequiredResult)
    assert isinstance(await client.call("resources/read", {"uri": "u"}), InputRequiredResult)
    for request in (client.list_tools(), client.get_task("t1"), client.call("tools/list")):
        with pytest.raises(ProtocolError) as invalid:
            await request
        assert invalid.value.field == "resultType"


@pytest.mark.rule("tasks.room-for-more-requests")
async def test_any_method_goes_through_call_and_keeps_its_result_whole(
    server: ScriptedServer, client: McpClient
) -> None:
    server.queue(result({"messages": [{"role": "user"}]}))
    found = await client.call("prompts/get", {"name": "p", "arguments": {}})
    assert type(found) is CompleteResult
    assert found.raw == {"messages": [{"role": "user"}]}


@pytest.mark.rule(
    "mrtr.state-opaque", "mrtr.state-echoed", "mrtr.state-not-inspected", "mrtr.new-id", "tools.new-id"
)
async def test_a_call_is_repeated_with_a_new_id_its_answers_and_its_state_byte_for_byte(
    server: ScriptedServer, client: McpClient
) -> None:
    state = 'opaque ☃ "\\" \u2028 \U0001d11e =='
    asks = {"resultType": "input_required", "requestState": state, "inputRequests": {}}
    server.queue(result(asks), result(DONE))
    arguments = RawJSON('{"n": 1.50}')
    asked = await client.call_tool("t", arguments)
    assert isinstance(asked, InputRequiredResult)
    await client.call_tool(
        "t",
        arguments,
        input_responses={"who": RawJSON('{"action":"accept","content":{"ratio":0.10}}')},
        request_state=asked.request_state,
    )
    first, second = server.received
    assert first.json["id"] != second.json["id"]
    assert second.params["requestState"] == state
    assert state.encode() in second.body.replace(b'\\"', b'"').replace(b"\\\\", b"\\")
    assert b'"arguments":{"n": 1.50}' in first.body
    assert b'"arguments":{"n": 1.50}' in second.body
    assert b'"who":{"action":"accept","content":{"ratio":0.10}}' in second.body
    assert "inputResponses" not in first.params
    assert "requestState" not in first.params


@pytest.mark.rule("mrtr.no-state-invented")
async def test_no_state_goes_back_where_none_came(server: ScriptedServer, client: McpClient) -> None:
    server.queue(result(DONE))
    await client.call_tool("t", {}, input_responses={"a": {"action": "decline"}}, request_state=None)
    assert "requestState" not in server.received[0].params
    assert server.received[0].params["inputResponses"] == {"a": {"action": "decline"}}


async def test_arguments_are_left_out_where_none_are_given(server: ScriptedServer, client: McpClient) -> None:
    server.queue(result(DONE), result(DONE))
    await client.call_tool("t")
    await client.call_tool("t", {})
    assert "arguments" not in server.received[0].params
    assert server.received[1].params["arguments"] == {}


@pytest.mark.rule("cancellation.timeouts", "cancellation.timeout-per-request", "tools.call-timeouts")
async def test_a_tool_runs_longer_than_other_requests_may(server: ScriptedServer) -> None:
    seen: list[tuple[str, float]] = []

    class Recorder:
        async def send(self, request: Any, *, timeout: float, on_message: Any = None) -> Any:
            seen.append((request.method, timeout))
            raise InvalidRequest("not sent")

        async def connect(self) -> None:
            return None

        async def aclose(self) -> None:
            pass

    client = McpClient(Recorder(), limits=Limits(request_seconds=5, call_seconds=70))
    for request in (client.call_tool("t"), client.get_task("x"), client.call("tools/call", timeout=1.5)):
        with pytest.raises(InvalidRequest):
            await request
    assert seen == [("tools/call", 70), ("tasks/get", 5), ("tools/call", 1.5)]


# Progress.


@pytest.mark.rule(
    "http.notifications-relate",
    "progress.sent",
    "progress.optional-parts",
    "progress.only-known-tokens",
    "progress.tokens-tracked",
    "wire.progress",
)
async def test_progress_for_this_call_is_heard_and_no_other(
    server: ScriptedServer, client: McpClient
) -> None:
    def progress(request: Received, **params: Any) -> dict[str, Any]:
        token = request.params["_meta"]["progressToken"]
        return notification("notifications/progress", {"progressToken": token, **params})

    server.queue(
        stream(
            lambda r: progress(r, progress=1, total=4, message="one"),
            notification("notifications/progress", {"progressToken": "another", "progress": 9}),
            notification("notifications/progress", {"progressToken": True, "progress": 9}),
            {"jsonrpc": "2.0", "method": "notifications/progress"},
            notification("notifications/message", {"level": "info", "data": "log"}),
            lambda r: progress(r, progress=2.5, total="many", message=5),
            response(DONE),
        )
    )
    heard: list[Progress] = []
    await client.call_tool("t", {}, on_progress=heard.append)
    assert [(p.progress, p.total, p.message) for p in heard] == [(1, 4, "one"), (Decimal("2.5"), None, None)]


async def test_no_progress_is_asked_for_where_nobody_listens(
    server: ScriptedServer, client: McpClient
) -> None:
    server.queue(result(DONE))
    await client.call_tool("t", {})
    assert "progressToken" not in server.received[0].params["_meta"]


# Tasks.


@pytest.mark.rule("index.state-by-identifier", "tasks.get-completed", "tasks.mcp-name-is-task-id")
async def test_a_task_is_asked_for_by_its_id(server: ScriptedServer, client: McpClient) -> None:
    server.queue(result({**TASK, "status": "completed", "result": DONE}))
    task = await client.get_task("t1")
    assert isinstance(task, CompletedTask)
    assert task.result == DONE
    assert server.received[0].params["taskId"] == "t1"
    assert server.received[0].header("Mcp-Name") == "t1"


@pytest.mark.rule("tasks.mcp-name-is-task-id", "wire.content-as-asked")
async def test_an_answer_to_a_task_is_sent_byte_for_byte(server: ScriptedServer, client: McpClient) -> None:
    server.queue(result({"resultType": "complete", "_meta": {"any": "thing"}}))
    raw = '{ "action":"accept","content":{"big":12345678901234567890.10,"s":"\\u00e9"} }'
    await client.update_task("t1", {"t1:ab": RawJSON(raw), "b": {"action": "decline"}})
    (request,) = server.received
    assert f'"inputResponses":{{"t1:ab":{raw},"b":{{"action":"decline"}}}}'.encode() in request.body
    assert request.header("Mcp-Name") == "t1"
    assert "requestState" not in request.params


@pytest.mark.rule(
    "tasks.update-acknowledged",
    "tasks.update-says-complete",
    "tasks.cancel-acknowledged",
    "tasks.cancel-says-complete",
)
async def test_acknowledgements_need_nothing_in_them(server: ScriptedServer, client: McpClient) -> None:
    server.on("tasks/update", result({}))
    server.on("tasks/cancel", result({"resultType": "complete"}))
    await client.update_task("t1", {})
    await client.cancel_task("t1")


@pytest.mark.rule("tasks.errors-say-why")
async def test_a_refused_answer_keeps_the_server_s_reason(server: ScriptedServer, client: McpClient) -> None:
    server.on("tasks/update", error(-32602, "replicas must be at most 10", {"field": "replicas"}))
    with pytest.raises(ServerError, match="at most 10") as refused:
        await client.update_task("t1", {})
    assert refused.value.is_invalid_params
    assert refused.value.data == {"field": "replicas"}


# Lists of tools.


def tool(name: str, **members: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **members}


@pytest.mark.rule(
    "caching.pages-differ",
    "pagination.any-size",
    "pagination.both-flows",
    "pagination.opaque",
    "pagination.empty-is-a-cursor",
    "wire.cursors",
)
async def test_all_pages_are_read_and_an_empty_cursor_is_a_cursor(
    server: ScriptedServer, client: McpClient
) -> None:
    server.queue(
        result(
            {
                "tools": [tool("a", title="A", annotations={"readOnlyHint": True})],
                "nextCursor": "",
                "ttlMs": 9,
            }
        ),
        result({"tools": [], "nextCursor": "p3", "ttlMs": 5}),
        result({"tools": [tool("b", outputSchema={"type": "object"})], "nextCursor": None, "ttlMs": 7}),
    )
    found = await client.list_tools()
    assert [item.name for item in found.tools] == ["a", "b"]
    assert found.tools[0].title == "A"
    assert found.tools[0].annotations == {"readOnlyHint": True}
    assert found.tools[1].output_schema == {"type": "object"}
    assert found.ttl_ms == 5
    assert [request.params.get("cursor", "none") for request in server.received] == ["none", "", "p3"]


@pytest.mark.rule("wire.cursors")
async def test_a_list_that_goes_round_in_circles_ends(server: ScriptedServer, client: McpClient) -> None:
    server.on("tools/list", result({"tools": [], "nextCursor": "again"}))
    with pytest.raises(ProtocolError, match="circles") as invalid:
        await client.list_tools()
    assert invalid.value.field == "nextCursor"
    assert len(server.received) == 2


@pytest.mark.rule("wire.cursors")
async def test_a_list_without_end_is_bounded_in_pages_and_in_tools(server: ScriptedServer) -> None:
    pages = iter(range(10_000))
    server.on("tools/list", result(lambda r: {"tools": [], "nextCursor": f"p{next(pages)}"}))
    async with McpClient.http(server.url, limits=Limits(pages=7, tools=3)) as client:
        with pytest.raises(ProtocolError, match="more than 7 pages"):
            await client.list_tools()
        assert len(server.received) == 7
        server.on("tools/list", result({"tools": [tool("a"), tool("a"), {}, {}]}))
        with pytest.raises(ProtocolError, match="more than 3 tools"):
            await client.list_tools()


@pytest.mark.parametrize(
    ("page", "field"),
    [({}, "tools"), ({"tools": {}}, "tools"), ({"tools": [], "nextCursor": 5}, "nextCursor")],
)
async def test_a_list_that_is_none_names_its_field(
    server: ScriptedServer, client: McpClient, page: dict[str, Any], field: str
) -> None:
    server.on("tools/list", result(page))
    with pytest.raises(ProtocolError) as invalid:
        await client.list_tools()
    assert invalid.value.field == field


@pytest.mark.rule("tools.input-schema", "tools.name-form")
async def test_a_broken_tool_is_left_out_and_the_others_stay(
    server: ScriptedServer, client: McpClient
) -> None:
    broken = [5, {}, {"name": 5, "inputSchema": {}}, {"name": "x"}, {"name": "y", "inputSchema": "text"}]
    odd = tool("odd", title=5, description=["x"], annotations="no", outputSchema=3, extra={"kept": True})
    server.on("tools/list", result({"tools": [*broken, tool("good"), odd, tool("good", title="second")]}))
    found = await client.list_tools()
    assert [item.name for item in found.tools] == ["good", "odd"]
    assert len(found.warnings) == 6
    assert "listed twice" in found.warnings[-1]
    assert found.tools[0].title is None
    assert found.tools[1].faults == (
        "title is not a string.",
        "description is not a string.",
        "The tool's output schema is no object.",
    )
    assert found.tools[1].raw == odd


@pytest.mark.rule("caching.one-scope-per-list")
async def test_a_list_is_private_where_any_page_is(server: ScriptedServer, client: McpClient) -> None:
    server.queue(
        result({"tools": [], "nextCursor": "2", "ttlMs": 5, "cacheScope": "public"}),
        result({"tools": [], "cacheScope": "private"}),
        result({"tools": [], "ttlMs": 5, "cacheScope": "public"}),
        result({"tools": [], "ttlMs": "soon", "cacheScope": "all"}),
    )
    first = await client.list_tools()
    assert (first.ttl_ms, first.cache_scope) == (None, "private")
    second = await client.list_tools(fresh=True)
    assert (second.ttl_ms, second.cache_scope) == (5, "public")
    third = await client.list_tools(fresh=True)
    assert (third.ttl_ms, third.cache_scope) == (None, None)


# Discovery.


@pytest.mark.rule("discover.server-info", "index.meta-no-assumptions", "tools.capability")
async def test_a_server_says_what_it_is_and_a_broken_name_is_only_a_fault(
    server: ScriptedServer, client: McpClient
) -> None:
    base = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "extensions": {}}}
    info = {
        "name": "S",
        "version": "1",
        "title": "Server",
        "websiteUrl": "https://x.example",
        "faults": ["x"],
    }
    server.queue(
        result({**base, "_meta": {f"{META}serverInfo": info}, "instructions": "hello"}),
        result({**base, "_meta": {f"{META}serverInfo": {"name": 5}}}),
        result({**base, "_meta": {f"{META}serverInfo": "x"}, "instructions": 5}),
        result({**base, "capabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}),
    )
    found = await client.discover()
    assert found.server_info is not None
    assert (found.server_info.title, found.server_info.website_url) == ("Server", "https://x.example")
    assert found.server_info.faults == ()
    assert (found.has_tools, found.has_tasks, found.instructions) == (True, False, "hello")
    for faults in (1, 2):
        broken = await client.discover()
        assert broken.server_info is None
        assert len(broken.faults) == faults
    last = await client.discover()
    assert (last.has_tools, last.has_tasks, last.faults) == (False, True, ())


@pytest.mark.parametrize(
    ("found", "field"),
    [
        ({"capabilities": {}}, "supportedVersions"),
        ({"supportedVersions": [5], "capabilities": {}}, "supportedVersions"),
        ({"supportedVersions": "2026-07-28", "capabilities": {}}, "supportedVersions"),
        ({"supportedVersions": []}, "capabilities"),
    ],
)
async def test_a_discovery_that_is_none_names_its_field(
    server: ScriptedServer, client: McpClient, found: dict[str, Any], field: str
) -> None:
    server.on("server/discover", result(found))
    with pytest.raises(ProtocolError) as invalid:
        await client.discover()
    assert invalid.value.field == field
