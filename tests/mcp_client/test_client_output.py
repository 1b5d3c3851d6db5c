"""Structured results and output schemas: server/tools, "Output Schema"."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.mcp_server import ScriptedServer, result

from mcp_client import CallToolResult, McpClient, read_tool_result

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


async def judge(schema: Any, value: Any) -> tuple[str, ...]:
    """Stand in for a validator: n has to be a whole number."""
    assert schema == SCHEMA
    return () if isinstance(value, dict) and isinstance(value.get("n"), int) else ("n is no whole number.",)


def listing(**members: Any) -> Any:
    return result({"tools": [{"name": "t", "inputSchema": {"type": "object"}, **members}]})


@pytest.mark.rule("tools.output-conforms", "tools.output-validated")
@pytest.mark.parametrize(
    ("members", "faults"),
    [
        ({"structuredContent": {"n": 1}}, ()),
        ({"structuredContent": {"n": "1"}}, ("n is no whole number.",)),
        ({"structuredContent": None}, ("n is no whole number.",)),
        ({}, ("The tool has an output schema, but its result holds no structured content.",)),
        ({"isError": True}, ()),
        ({"isError": True, "structuredContent": {"n": "1"}}, ()),
    ],
)
async def test_a_structured_result_that_breaks_its_schema_is_returned_with_its_fault(
    server: ScriptedServer, members: Any, faults: tuple[str, ...]
) -> None:
    server.on("tools/list", listing(outputSchema=SCHEMA))
    server.on("tools/call", result({"content": [], **members}))
    async with McpClient.http(server.url, check_output=judge) as client:
        await client.list_tools()
        found = await client.call_tool("t")
    assert isinstance(found, CallToolResult)
    assert found.faults == faults
    assert found.structured_content == members.get("structuredContent")


@pytest.mark.parametrize("members", [{}, {"outputSchema": None}])
async def test_a_tool_without_an_output_schema_may_return_anything(
    server: ScriptedServer, members: dict[str, Any]
) -> None:
    server.on("tools/list", listing(**members))
    async with McpClient.http(server.url, check_output=judge) as client:
        await client.list_tools()
        assert client.knows("t")
        assert await client.output_faults("t", read_tool_result({"structuredContent": 1})) == ()


async def test_without_a_list_or_without_a_judge_nothing_is_claimed(server: ScriptedServer) -> None:
    broken = read_tool_result({"content": [], "structuredContent": {"n": "1"}})
    server.on("tools/list", listing(outputSchema=SCHEMA))
    async with McpClient.http(server.url, check_output=judge) as unlisted:
        assert not unlisted.knows("t")
        assert await unlisted.output_faults("t", broken) == ()
    async with McpClient.http(server.url) as unjudged:
        await unjudged.list_tools()
        assert await unjudged.output_faults("t", broken) == ()
