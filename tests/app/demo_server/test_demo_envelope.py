"""What the service refuses before any verb is reached (the pages on Streamable HTTP and on `_meta`)."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any
from urllib.parse import urlsplit

import pytest
from fakes.demo_wire import EVERYTHING, META, VERSION, RpcFailure, accept, envelope, headers_for


def _without(message: dict[str, Any], key: str) -> dict[str, Any]:
    del message["params"]["_meta"][META + key]
    return message


def _with_meta(message: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    message["params"]["_meta"][META + key] = value
    return message


@pytest.mark.rule("http.one-endpoint")
async def test_a_well_formed_request_is_answered_with_its_own_id(service):
    message = envelope("server/discover") | {"id": "a string, too"}
    response = await service.wire.send(message)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.json()["id"] == "a string, too"


@pytest.mark.rule(
    "http.version-mismatch-refused",
    "http.version-missing-refused",
    "http.server-checks-headers",
    "http.server-validation",
)
@pytest.mark.parametrize("header", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"])
@pytest.mark.parametrize("value", [None, "", "something else", "caf\xe9", "a\tb"])
async def test_a_header_that_is_missing_or_differs_from_the_body_is_refused(service, header, value):
    message = envelope("tools/call", {"name": "echo", "arguments": {"text": "x"}})
    response = await service.wire.send(message, {header: value})
    assert response.status_code == 400
    assert response.json()["error"]["code"] == -32020
    assert response.json()["id"] == message["id"]


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_a_task_request_may_leave_the_name_out_but_must_not_name_another_task(service, method):
    message = envelope(method, {"taskId": await service.started("two_questions"), "inputResponses": {}})
    response = await service.wire.send(message, {"Mcp-Name": "tsk_b"})
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32020)
    assert "result" in (await service.wire.send(message, {"Mcp-Name": None})).json()
    assert "result" in (await service.wire.send(message)).json()


async def test_white_space_around_a_header_does_not_count(service):
    message = envelope("tools/call", {"name": "echo", "arguments": {"text": "x"}})
    body = json.dumps(message).encode()
    given = headers_for(message) | {"Mcp-Name": "  echo\t ", "Content-Type": " application/json "}
    given |= {"Host": "localhost", "Content-Length": str(len(body)), "Connection": "close"}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    # A bare socket: httpx sends no such header.
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(service.url).port)
    writer.write(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
    assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
    writer.close()


@pytest.mark.rule("http.server-decodes", "http.server-validation")
async def test_a_name_in_base64_is_decoded_before_it_is_compared_and_has_one_form(service):
    message = envelope("tools/call", {"name": "echo", "arguments": {"text": "x"}})
    encoded = base64.b64encode(b"echo").decode()
    assert "result" in (await service.wire.send(message, {"Mcp-Name": f"=?base64?{encoded}?="})).json()
    for malformed in ("ZWNo bw==", "ZWNobw=", "ZWNobx==", "____", "/w==", ""):
        response = await service.wire.send(message, {"Mcp-Name": f"=?base64?{malformed}?="})
        assert response.json()["error"]["code"] == -32020


async def test_a_header_that_is_repeated_is_no_header_that_repeats_the_body(service):
    """Whoever routes by the one and whoever reads the other would not do the same."""
    message = envelope("tools/call", {"name": "echo", "arguments": {"text": "x"}})
    for name in ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"):
        twice = [*headers_for(message).items(), (name, headers_for(message)[name])]
        response = await service.wire._http.post(service.url, json=message, headers=twice)
        assert (response.status_code, response.json()["error"]["code"]) == (400, -32020)


@pytest.mark.rule("index.meta-missing-refused")
@pytest.mark.parametrize(
    "broken",
    [
        lambda m: m | {"params": {}},
        lambda m: {k: v for k, v in m.items() if k != "params"},
        lambda m: m | {"params": []},
        lambda m: _without(m, "protocolVersion"),
        lambda m: _with_meta(m, "protocolVersion", 20260728),
        lambda m: _without(m, "clientCapabilities"),
        lambda m: _with_meta(m, "clientCapabilities", []),
    ],
)
async def test_a_request_without_its_meta_is_malformed(service, broken):
    response = await service.wire.send(broken(envelope("server/discover")))
    assert response.status_code == 400
    assert response.json()["error"]["code"] == -32602


async def test_client_info_may_be_left_out(service):
    response = await service.wire.send(_without(envelope("server/discover"), "clientInfo"))
    assert response.json()["result"]["resultType"] == "complete"


@pytest.mark.rule("http.version-unsupported-refused", "versioning.unsupported-lists-supported")
async def test_another_version_is_refused_with_those_that_are_spoken(service):
    message = _with_meta(envelope("server/discover"), "protocolVersion", "1900-01-01")
    response = await service.wire.send(message, {"MCP-Protocol-Version": "1900-01-01"})
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["code"] == -32022
    assert error["data"] == {"supported": [VERSION], "requested": "1900-01-01"}


@pytest.mark.rule("versioning.modern-names-versions")
async def test_an_older_clients_initialize_learns_the_versions_spoken(service):
    message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    response = await service.wire.send(message, {"MCP-Protocol-Version": None, "Mcp-Method": None})
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32022)
    assert response.json()["error"]["data"] == {"supported": [VERSION], "requested": "2025-11-25"}
    assert response.json()["id"] == 0


async def test_an_initialize_of_this_revision_is_a_method_that_it_does_not_have(service):
    """It was removed; whoever sends it is told the versions spoken all the same."""
    response = await service.wire.send(envelope("initialize", {"protocolVersion": VERSION}))
    assert (response.status_code, response.json()["error"]["code"]) == (404, -32601)
    assert response.json()["error"]["data"] == {"supported": [VERSION]}


@pytest.mark.rule("http.method-unknown")
@pytest.mark.parametrize(
    "method", ["tasks/status", "tasks/result", "tasks/list", "resources/read", "nonsense", ""]
)
async def test_an_unknown_method_is_404_with_a_json_rpc_error(service, method):
    response = await service.wire.send(envelope(method))
    assert response.status_code == 404
    assert response.json()["error"]["code"] == -32601


@pytest.mark.rule("caching.hints", "caching.ttl-not-negative", "tools.order", "tools.listed")
@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("tools/list", "tools"),
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ],
)
async def test_each_list_is_one_page_that_is_always_the_same_and_says_how_long_it_lasts(
    service, method, kind
):
    first, second = [await service.wire.call(method, {}, {}) for _ in range(2)]
    assert first == second
    assert bool(first[kind]) == (kind == "tools")
    assert (first["ttlMs"], first["cacheScope"]) == (3_600_000, "public")
    declared = (await service.wire.call("server/discover"))["capabilities"]
    assert declared[method.partition("/")[0]] == {}
    for cursor in ("", "more", 7):
        with pytest.raises(RpcFailure) as refused:
            await service.wire.call(method, {"cursor": cursor})
        assert refused.value.code == -32602


@pytest.mark.rule("index.result-type-present", "index.server-info")
async def test_every_result_has_its_type_and_says_which_server_gave_it(service):
    def signed(result, kind):
        assert result["resultType"] == kind
        assert set(result["_meta"][f"{META}serverInfo"]) == {"name", "title", "version"}
        return result

    wire = service.wire
    for method in ("server/discover", "tools/list", "prompts/list", "resources/list"):
        signed(await wire.call(method), "complete")
    signed(await wire.tool("echo", {"text": "x"}), "complete")
    signed(await wire.tool("echo", {}), "complete")
    signed(await wire.tool("ask_first"), "input_required")
    task_id = signed(await wire.tool("two_questions"), "task")["taskId"]
    signed(await wire.get(task_id), "complete")
    await service.settle()
    signed(await wire.answer(task_id, count=accept(count=1), colour=accept(colour="red")), "complete")
    signed(await wire.call("tasks/cancel", {"taskId": await service.started("long_build")}), "complete")
    ended = signed(await service.settled(task_id), "complete")
    signed(ended["result"], "complete")


@pytest.mark.rule("http.old-traffic-refused")
@pytest.mark.parametrize("verb", ["GET", "DELETE", "PUT"])
async def test_other_http_methods_are_not_allowed(service, verb):
    response = await service.wire.send(b"", {"Accept": "text/event-stream"}, method=verb)
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"


@pytest.mark.rule("http.notification-accepted")
@pytest.mark.parametrize("method", ["notifications/cancelled", "tools/call", "anything"])
async def test_an_envelope_without_an_id_is_accepted_and_answered_with_nothing(service, method):
    response = await service.wire.send({"jsonrpc": "2.0", "method": method})
    assert (response.status_code, response.content) == (202, b"")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"n":NaN}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"n":1e999}}', -32700),
        (b"[" * 5000 + b"]" * 5000, -32700),
        (b"[]", -32600),
        (b'"text"', -32600),
        (b'{"id":1,"method":"m"}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"m"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"m"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"m"}', -32600),
    ],
)
async def test_a_body_that_is_no_request_is_refused_without_an_id(service, body, code):
    response = await service.wire.send(body)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == code
    assert "id" not in response.json()


async def test_a_body_is_bounded_whether_or_not_its_length_is_declared(service):
    big = b'{"jsonrpc":"2.0","id":1,"method":"m","params":"' + b"x" * (1024 * 1024) + b'"}'

    async def pieces():
        for start in range(0, len(big), 65536):
            yield big[start : start + 65536]

    assert (await service.wire.send(big)).status_code == 413
    chunked = await service.wire._http.post(
        service.url, content=pieces(), headers={"Content-Type": "application/json"}
    )
    assert chunked.status_code == 413


async def test_a_body_of_another_type_is_refused(service):
    response = await service.wire.send(envelope("server/discover"), {"Content-Type": "text/plain"})
    assert response.status_code == 415


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::1"])
async def test_a_foreign_host_is_refused(service, host):
    response = await service.wire.send(envelope("server/discover"), {"Host": host})
    assert response.status_code == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:80"])
async def test_a_local_host_is_accepted(service, host):
    assert (await service.wire.send(envelope("server/discover"), {"Host": host})).status_code == 200


@pytest.mark.rule("http.origin-checked")
@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://evil.example", 403),
        ("http://localhost.evil.example", 403),
        ("null", 403),
        ("http://[", 403),
        ("http://localhost:6274", 200),
        ("http://127.0.0.1", 200),
    ],
)
async def test_a_foreign_origin_is_refused(service, origin, status):
    assert (await service.wire.send(envelope("server/discover"), {"Origin": origin})).status_code == status


@pytest.mark.rule("index.undeclared-capability-refused", "tasks.missing-capability", "tasks.verbs-undeclared")
@pytest.mark.parametrize(
    ("method", "params", "capabilities", "missing"),
    [
        ("tools/call", {"name": "flaky_job"}, {}, {"extensions": {"io.modelcontextprotocol/tasks": {}}}),
        ("tasks/get", {"taskId": "x"}, {}, {"extensions": {"io.modelcontextprotocol/tasks": {}}}),
        ("tasks/update", {"taskId": "x"}, {}, {"extensions": {"io.modelcontextprotocol/tasks": {}}}),
        ("tasks/cancel", {"taskId": "x"}, {}, {"extensions": {"io.modelcontextprotocol/tasks": {}}}),
        (
            "tools/call",
            {"name": "generate_report"},
            {"extensions": EVERYTHING["extensions"]},
            {"elicitation": {"form": {}}},
        ),
        (
            "tools/call",
            {"name": "approve_in_browser"},
            {"extensions": EVERYTHING["extensions"], "elicitation": {}},
            {"elicitation": {"url": {}}},
        ),
        (
            "tools/call",
            {"name": "ask_first"},
            {"elicitation": {"url": {}}},
            {"extensions": {"io.modelcontextprotocol/tasks": {}}, "elicitation": {"form": {}}},
        ),
    ],
)
async def test_a_capability_that_is_needed_and_missing_is_named(
    service, method, params, capabilities, missing
):
    response = await service.wire.send(envelope(method, params, capabilities))
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": missing})


async def test_an_empty_elicitation_capability_means_forms(service):
    capabilities = {"extensions": EVERYTHING["extensions"], "elicitation": {}}
    message = envelope(
        "tools/call", {"name": "generate_report", "arguments": {"size": "small"}}, capabilities
    )
    assert (await service.wire.send(message)).json()["result"]["resultType"] == "task"


@pytest.mark.rule("versioning.extension-missing")
async def test_an_immediate_tool_needs_no_capability(service):
    message = envelope("tools/call", {"name": "echo", "arguments": {"text": "hello"}}, {})
    assert (await service.wire.send(message)).json()["result"]["structuredContent"] == {"text": "hello"}


@pytest.mark.rule("versioning.modern-names-versions")
@pytest.mark.parametrize(
    "params", [{"_meta": {}}, {"_meta": None}, {"_meta": {"progressToken": 0}}, [], None]
)
async def test_every_initialize_of_an_older_client_learns_the_versions_spoken(service, params):
    message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    response = await service.wire.send(message, {"MCP-Protocol-Version": None, "Mcp-Method": None})
    assert response.json()["error"]["code"] == -32022
    assert response.json()["error"]["data"]["supported"] == [VERSION]


async def test_an_unsupported_version_is_said_before_anything_else_that_is_missing(service):
    message = envelope("tools/list", {})
    message["params"]["_meta"] = {"io.modelcontextprotocol/protocolVersion": "1900-01-01"}
    response = await service.wire.send(message, {"MCP-Protocol-Version": "1900-01-01"})
    assert response.json()["error"]["code"] == -32022


async def test_a_page_of_another_origin_gets_nothing_by_any_verb(service):
    for verb in ("GET", "DELETE", "POST"):
        response = await service.wire.send(b"{}", {"Origin": "http://evil.example"}, method=verb)
        assert response.status_code == 403
