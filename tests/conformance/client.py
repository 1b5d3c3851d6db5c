"""The driver of the official conformance suite: one process a scenario, `mcp_client`'s public API alone.

The suite runs ``client.py URL`` with the scenario's name in ``MCP_CONFORMANCE_SCENARIO`` and, for some, what
to do as JSON in ``MCP_CONFORMANCE_CONTEXT``. Exit codes: 0 done, 1 the server or the network was in the way,
2 called wrongly.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from mcp_client import (
    CallToolResult,
    ClientCapabilities,
    Implementation,
    InputRequest,
    InputRequiredResult,
    JSONObject,
    McpClient,
    McpError,
    RawJSON,
    Tool,
)

# This program can answer all three kinds of questions, so it declares all three.
CAPABILITIES: Final = ClientCapabilities(sampling={}, roots={})
ROUNDS: Final = 5
"""How often one call may ask before it is given up."""


class Unexpected(Exception):
    """The server did not offer what the scenario is about."""


async def tools_call(client: McpClient, _: JSONObject) -> None:
    """List the tools and add two numbers."""
    await listed(client, "add_numbers")
    await call(client, "add_numbers", {"a": 5, "b": 3})


async def request_metadata(client: McpClient, _: JSONObject) -> None:
    """Send several requests; the first one is refused with -32022."""
    await client.discover()
    await client.list_tools()


async def standard_headers(client: McpClient, _: JSONObject) -> None:
    """Send every method that has a routing header, for everything that is listed."""
    await listed(client, "test_headers", "my-hyphenated-tool")
    for name in ("test_headers", "my-hyphenated-tool"):
        await call(client, name)
    for resource in await client.list_all("resources/list", "resources"):
        await client.call("resources/read", {"uri": resource["uri"]})
    for prompt in await client.list_all("prompts/list", "prompts"):
        await client.call("prompts/get", {"name": prompt["name"]})


async def custom_headers(client: McpClient, context: JSONObject) -> None:
    """Make the calls that the suite names; their annotated parameters travel as headers, too."""
    calls = context["toolCalls"]
    await listed(client, *(wanted["name"] for wanted in calls))
    for wanted in calls:
        # Byte for byte what the suite wrote: a number keeps its spelling.
        await call(client, wanted["name"], RawJSON(json.dumps(wanted["arguments"])))


async def invalid_tool_headers(client: McpClient, _: JSONObject) -> None:
    """Call every tool that is left after those with invalid annotations are left out."""
    tools = await listed(client, "valid_tool")
    for name in tools:
        await call(client, name, {"region": "us-west1"})


async def request_state(client: McpClient, _: JSONObject) -> None:
    """Answer calls that ask first; another call goes out between a question and its answer."""
    await listed(client, "test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated")

    async def unrelated() -> None:
        await call(client, "test_mrtr_unrelated")

    await call(client, "test_mrtr_echo_state", between=unrelated)
    await call(client, "test_mrtr_no_state")
    await call(client, "test_mrtr_no_result_type")


async def only_list(client: McpClient, _: JSONObject) -> None:
    """List the tools; their schemas point at the network, where nobody must look."""
    await client.list_tools()


async def schema_preserved(client: McpClient, _: JSONObject) -> None:
    """Send a tool's schema back as it came."""
    tools = await listed(client, "json_schema_2020_12_tool", "json_schema_echo")
    await call(client, "json_schema_echo", {"schema": tools["json_schema_2020_12_tool"].input_schema})


Scenario = Callable[[McpClient, JSONObject], Awaitable[None]]

SCENARIOS: Final[Mapping[str, Scenario]] = {
    "tools_call": tools_call,
    "request-metadata": request_metadata,
    "http-standard-headers": standard_headers,
    "http-custom-headers": custom_headers,
    "http-invalid-tool-headers": invalid_tool_headers,
    "sep-2322-client-request-state": request_state,
    "json-schema-ref-no-deref": only_list,
    "json-schema-2020-12-preservation": schema_preserved,
}
"""Every client scenario of the revision but those about authorization."""


async def listed(client: McpClient, *wanted: str) -> dict[str, Tool]:
    """Return the server's tools by name, all of *wanted* among them."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    missing = [name for name in wanted if name not in tools]
    if missing:
        raise Unexpected(f"The server does not list {', '.join(missing)}.")
    return tools


async def call(
    client: McpClient,
    name: str,
    arguments: JSONObject | RawJSON | None = None,
    *,
    between: Callable[[], Awaitable[None]] | None = None,
) -> CallToolResult:
    """Call a tool and answer what it asks; *between* runs after each question, before its answer."""
    given = {} if arguments is None else arguments
    outcome = await client.call_tool(name, given)
    for _ in range(ROUNDS):
        if not isinstance(outcome, InputRequiredResult):
            break
        if between is not None:
            await between()
        answers = {key: answer(request) for key, request in outcome.input_requests.items()}
        outcome = await client.call_tool(
            name, given, input_responses=answers, request_state=outcome.request_state
        )
    if not isinstance(outcome, CallToolResult):
        raise Unexpected(f"{name} ended in {type(outcome).__name__}, not in a result.")
    return outcome


def answer(request: InputRequest) -> JSONObject:
    """Say yes to what a server asks."""
    if request.method == "sampling/createMessage":
        content = {"type": "text", "text": "yes"}
        return {"role": "assistant", "model": "none", "stopReason": "endTurn", "content": content}
    if request.method == "roots/list":
        return {"roots": []}
    schema = (request.params or {}).get("requestedSchema") or {}
    content = {name: filled(field) for name, field in (schema.get("properties") or {}).items()}
    return {"action": "accept", "content": content}


def filled(field: JSONObject) -> Any:
    """Return a value for one field of a form: its default, or the plainest of its type."""
    plainest = {"boolean": True, "integer": 1, "number": 1, "array": []}
    return field.get("default", plainest.get(str(field.get("type")), "yes"))


async def main(arguments: list[str], environment: Mapping[str, str]) -> int:
    """Run the scenario that the environment names against the server that the arguments name."""
    wanted = environment.get("MCP_CONFORMANCE_SCENARIO", "")
    scenario = SCENARIOS.get(wanted)
    if scenario is None or len(arguments) != 1:
        print(
            f"usage: MCP_CONFORMANCE_SCENARIO=NAME client.py URL; NAME is one of {', '.join(SCENARIOS)}, not "
            f"{wanted!r}",
            file=sys.stderr,
        )
        return 2
    context = json.loads(environment.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    info = Implementation(name="mcp_client-conformance", version="1")
    async with McpClient.http(arguments[0], client_info=info, capabilities=CAPABILITIES) as client:
        try:
            await scenario(client, context)
        except (McpError, Unexpected) as error:
            print(f"{wanted}: {type(error).__name__}: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:], os.environ)))
