"""A task server that nobody here wrote: fastmcp-tasks as it ships, with tools for every outcome.

Run: ``python fastmcp_peer.py PORT [--json]``; the endpoint is ``http://127.0.0.1:PORT/mcp``. With ``--json``
replies are single objects, without it event streams. ``python fastmcp_peer.py stdio`` speaks over its
standard streams.
"""

from __future__ import annotations

import asyncio
import sys
from datetime import timedelta
from typing import Any

import mcp_types as wire
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools.base import ToolResult
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension
from mcp.shared.exceptions import MCPError

server = FastMCP("fastmcp-peer", version="1.2.3", instructions="A peer for tests.")
server.add_extension(TasksExtension())

POLL = timedelta(milliseconds=200)
OPTIONAL = TaskConfig(mode="optional", poll_interval=POLL)
REQUIRED = TaskConfig(mode="required", poll_interval=POLL)

ONE_TEXT = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
EVERY_KIND: dict[str, Any] = {
    "type": "object",
    "properties": {
        "email": {"type": "string", "title": "Email", "format": "email", "maxLength": 60},
        "site": {"type": "string", "title": "Site", "format": "uri"},
        "day": {"type": "string", "title": "Day", "format": "date", "default": "2026-08-01"},
        "at": {"type": "string", "title": "When", "format": "date-time"},
        "note": {"type": "string", "minLength": 3, "maxLength": 20},
        "replicas": {"type": "integer", "title": "Replicas", "minimum": 1, "maximum": 10, "default": 3},
        "ratio": {"type": "number", "minimum": 0, "maximum": 1},
        "dry_run": {"type": "boolean", "title": "Dry run?", "default": True},
        "env": {
            "type": "string",
            "title": "Environment",
            "oneOf": [{"const": "stg", "title": "Staging"}, {"const": "prd", "title": "Production"}],
            "default": "stg",
        },
        "color": {"type": "string", "enum": ["red", "green"]},
        "legacy": {"type": "string", "enum": ["a", "b"], "enumNames": ["Alpha", "Beta"]},
        "regions": {
            "type": "array",
            "title": "Regions",
            "minItems": 1,
            "maxItems": 2,
            "items": {"anyOf": [{"const": "eu", "title": "Europe"}, {"const": "us", "title": "America"}]},
            "default": ["eu"],
        },
        "tags": {"type": "array", "items": {"type": "string", "enum": ["x", "y", "z"]}},
    },
    "required": ["email", "replicas", "env"],
}


def ask(requests: dict[str, Any], state: str | None = None) -> Any:
    """Ask before going on."""
    return wire.InputRequiredResult(input_requests=requests, request_state=state)


def form(message: str, schema: dict[str, Any]) -> Any:
    """A question with a form."""
    return wire.ElicitRequest(params=wire.ElicitRequestFormParams(message=message, requested_schema=schema))


@server.tool(task=OPTIONAL)
async def quick(x: int = 1) -> str:
    """Finish at once, as a task."""
    return f"quick {x}"


@server.tool(task=REQUIRED)
async def required_task(x: int = 1) -> str:
    """Run only as a task."""
    await asyncio.sleep(0.3)
    return f"done {x}"


@server.tool(task=OPTIONAL)
async def slow(ctx: Context, steps: int = 5, pause: float = 1.0) -> dict[str, int]:
    """Work in steps and say so."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step} of {steps}")
        await asyncio.sleep(pause)
    return {"steps": steps}


@server.tool(task=OPTIONAL)
async def ask_form(ctx: Context) -> Any:
    """Ask one form with every kind of field, as a task."""
    answers = ctx.input_responses
    if answers is None or "approval" not in answers:
        return ask({"approval": form("Approve the deployment", EVERY_KIND)}, state="s1")
    answer = answers["approval"]
    return f"action={answer.action} content={answer.content} state={ctx.request_state}"


@server.tool(task=OPTIONAL)
async def ask_two(ctx: Context) -> Any:
    """Ask two things at once, then a third under a key used before."""
    answers = ctx.input_responses
    if answers is None:
        return ask({"a": form("First?", ONE_TEXT), "b": form("Second?", ONE_TEXT)}, state="leg1")
    if ctx.request_state == "leg1":
        return ask({"a": form("Third?", ONE_TEXT)}, state="leg2")
    return f"{ {key: answer.content for key, answer in answers.items()} } state={ctx.request_state}"


@server.tool(task=OPTIONAL)
async def ask_url(ctx: Context) -> Any:
    """Ask to visit a web address, as a task."""
    answers = ctx.input_responses
    if answers is None:
        params = wire.ElicitRequestURLParams(message="Please authorise", url="https://example.com/auth?x=1")
        return ask({"auth": wire.ElicitRequest(params=params)})
    return f"action={answers['auth'].action}"


@server.tool(task=OPTIONAL)
async def ask_sampling_roots(ctx: Context) -> Any:
    """Ask for a model's words and for folders, as a task."""
    answers = ctx.input_responses
    if answers is not None:
        return f"{ {key: type(answer).__name__ for key, answer in answers.items()} }"
    text = wire.SamplingMessage(role="user", content=wire.TextContent(type="text", text="hi"))
    params = wire.CreateMessageRequestParams(messages=[text], max_tokens=10)
    return ask({"llm": wire.CreateMessageRequest(params=params), "roots": wire.ListRootsRequest()})


@server.tool(task=OPTIONAL)
async def boom() -> str:
    """Raise."""
    raise RuntimeError("kaboom")


@server.tool(task=OPTIONAL)
async def tool_error() -> str:
    """Raise what the caller may see."""
    raise ToolError("visible tool error")


@server.tool(task=OPTIONAL)
async def protocol_error() -> str:
    """Fail with a JSON-RPC error."""
    raise MCPError(code=-32603, message="API rate limit exceeded", data={"retry": 5})


@server.tool(task=OPTIONAL)
async def returns_is_error() -> ToolResult:
    """Complete with a result that is an error."""
    return ToolResult(content="bad input", is_error=True)


@server.tool(task=OPTIONAL)
async def rich() -> ToolResult:
    """Return several kinds of content, hostile text among them."""
    return ToolResult(
        content=[
            wire.TextContent(type="text", text="line1\nline2 \u2603 \x1b[31mred\x1b[0m"),
            wire.ImageContent(type="image", data="aGVsbG8=", mime_type="image/png"),
            wire.ResourceLink(type="resource_link", uri="file:///x", name="x"),
        ],
        structured_content={"ok": True, "n": None},
    )


@server.tool
async def mrtr_sync(ctx: Context) -> Any:
    """Ask before answering, without a task."""
    answers = ctx.input_responses
    if answers is None:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        return ask({"who": form("Your name?", schema)}, state="opaque-state")
    return f"hello {answers['who'].content} state={ctx.request_state}"


@server.tool
async def plain_sync(ctx: Context, steps: int = 2) -> str:
    """Report progress while the call is open, without a task."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"sync step {step}")
        await asyncio.sleep(0.05)
    return "sync done"


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run(transport="stdio", show_banner=False)
    else:
        server.run(
            transport="http",
            host="127.0.0.1",
            port=int(sys.argv[1]),
            show_banner=False,
            json_response="--json" in sys.argv,
        )
