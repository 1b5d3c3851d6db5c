"""Tool parameters mirrored into headers: basic/transports/streamable-http, Custom Headers from Tool
Parameters."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from fakes.mcp_server import ScriptedServer, error, result

from mcp_client import InvalidRequest, McpClient, RawJSON, ServerError
from mcp_client.tool_headers import mirrored_headers, mirrored_parameters

DONE = {"resultType": "complete", "content": []}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def field(name: Any, kind: Any = "string") -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": name}


NESTED = schema(
    region=field("Region"),
    where=schema(zone=field("Zone", "integer"), **{"x-mcp-header": {"type": "string"}}),
    dry=field("Dry-Run", "boolean"),
    plain={"type": "string", "default": {"x-mcp-header": "a value, not an annotation"}},
)


@pytest.mark.rule(
    "http.annotation-reachable",
    "http.values-encoded",
    "http.headers-of-a-call",
    "http.value-included",
    "http.null-omitted",
    "http.absent-omitted",
)
@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({}, {}),
        ({"region": None, "dry": None}, {}),
        (
            {"region": "us-west1", "where": {"zone": -7}, "dry": True},
            {"Mcp-Param-Region": "us-west1", "Mcp-Param-Zone": "-7", "Mcp-Param-Dry-Run": "true"},
        ),
        (
            RawJSON('{"region": "a", "where": {"zone": 42.0}}'),
            {"Mcp-Param-Region": "a", "Mcp-Param-Zone": "42"},
        ),
        (
            {"region": "Hello, 世界", "dry": False},
            {"Mcp-Param-Region": "=?base64?SGVsbG8sIOS4lueVjA==?=", "Mcp-Param-Dry-Run": "false"},
        ),
        ({"region": "a\r\nX: y"}, {"Mcp-Param-Region": "=?base64?YQ0KWDogeQ==?="}),
        ({"where": "no object"}, {}),
        ({"where": {"zone": Decimal("1.5")}, "region": ["x"]}, {}),
        (None, {}),
    ],
)
def test_values_are_mirrored_from_their_exact_path(arguments: Any, headers: dict[str, str]) -> None:
    assert dict(mirrored_headers(mirrored_parameters(NESTED), arguments)) == headers


@pytest.mark.rule("http.annotation-safe-integer", "tools.annotation-constraints")
@pytest.mark.parametrize("number", [2**53, -(2**53)])
def test_an_integer_beyond_the_safe_range_is_not_sent(number: int) -> None:
    parameters = mirrored_parameters(NESTED)
    with pytest.raises(InvalidRequest):
        mirrored_headers(parameters, {"where": {"zone": number}})
    assert mirrored_headers(parameters, {"where": {"zone": 2**53 - 1}})


@pytest.mark.rule(
    "http.annotation-not-empty",
    "http.annotation-token",
    "http.annotation-no-controls",
    "http.annotation-unique",
    "http.annotation-primitive",
    "http.annotation-reachable",
    "tools.annotation-constraints",
)
@pytest.mark.parametrize(
    "broken",
    [
        schema(a=field("")),
        schema(a=field("two words")),
        schema(a=field("a\r\nb")),
        schema(a=field("ä")),
        schema(a=field(5)),
        schema(a=field(None)),
        schema(a=field("X"), b=field("x")),
        schema(a=field("X", "number")),
        schema(a=field("X", "object")),
        schema(a=field("X", "array")),
        schema(a=field("X", ["string", "null"])),
        schema(a={"x-mcp-header": "X"}),
        schema(a={"type": "array", "items": field("X")}),
        schema(a={"anyOf": [field("X")]}),
        {"type": "object", "allOf": [schema(a=field("X"))]},
        {"type": "object", "$defs": {"t": field("X")}, "properties": {"a": {"$ref": "#/$defs/t"}}},
        {"type": "object", "if": schema(a=field("X"))},
        {"type": "object", "x-mcp-header": "X"},
        {"type": "object", "patternProperties": {"a": field("X")}},
        {"type": "object", "additionalProperties": field("X")},
    ],
)
def test_an_annotation_against_the_constraints_makes_the_tool_invalid(broken: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="x-mcp-header"):
        mirrored_parameters(broken)


@pytest.mark.rule(
    "http.invalid-tool-rejected",
    "http.invalid-tool-left-out",
    "http.invalid-tool-warned",
    "tools.annotation-rejected",
    "tools.annotation-warned",
    "wire.mirrored-parameters",
)
async def test_an_invalid_tool_is_left_out_with_a_warning_that_names_it(
    server: ScriptedServer, client: McpClient, caplog: pytest.LogCaptureFixture
) -> None:
    server.on(
        "tools/list",
        result(
            {
                "tools": [
                    {"name": "bad", "inputSchema": schema(a=field("two words"))},
                    {"name": "good", "inputSchema": NESTED},
                ]
            }
        ),
    )
    found = await client.list_tools()
    assert [tool.name for tool in found.tools] == ["good"]
    assert len(found.warnings) == 1
    assert "bad" in found.warnings[0]
    assert "x-mcp-header" in found.warnings[0]
    await client.list_tools()
    assert [line for line in caplog.messages if found.warnings[0] in line] == [
        f"In a list of tools: {found.warnings[0]}"
    ], "logged once, while nothing changes"


@pytest.mark.rule(
    "http.parameters-designated",
    "http.parameters-supported",
    "http.headers-of-a-call",
    "tools.mirrored",
    "wire.mirrored-parameters",
)
async def test_a_call_after_the_list_carries_the_headers(server: ScriptedServer, client: McpClient) -> None:
    server.on("tools/list", result({"tools": [{"name": "sql", "inputSchema": NESTED}]}))
    server.on("tools/call", result(DONE))
    await client.list_tools()
    await client.call_tool("sql", {"region": "eu"})
    await client.call_tool("other", {"region": "eu"})
    sql, other = server.of("tools/call")
    assert sql.header("Mcp-Param-Region") == "eu"
    assert other.header("Mcp-Param-Region") is None


@pytest.mark.rule("http.mismatch-relisted", "http.omitted-refused")
async def test_a_call_refused_for_its_headers_reads_the_list_and_is_sent_once_more(
    server: ScriptedServer, client: McpClient
) -> None:
    server.on("tools/list", result({"tools": [{"name": "sql", "inputSchema": NESTED}]}))
    server.on("tools/call", result(DONE))
    server.queue(error(-32020, "Header mismatch: Mcp-Param-Region is missing"))
    await client.call_tool("sql", {"region": "eu"})
    first, second = server.of("tools/call")
    assert first.header("Mcp-Param-Region") is None
    assert second.header("Mcp-Param-Region") == "eu"
    assert first.json["id"] != second.json["id"]


@pytest.mark.rule("http.mismatch-relisted")
async def test_a_call_refused_for_another_header_is_not_sent_again(
    server: ScriptedServer, client: McpClient
) -> None:
    server.on("tools/list", result({"tools": []}))
    server.on("tools/call", error(-32020, "Header mismatch"))
    with pytest.raises(ServerError) as refused:
        await client.call_tool("sql", {})
    assert refused.value.is_header_mismatch
    assert len(server.of("tools/call")) == 1
