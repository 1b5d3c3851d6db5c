"""What goes over the wire against the published schemas, where that folder is at hand."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fakes.mcp_server import ScriptedServer, result
from jsonschema import Draft202012Validator, ValidationError

from mcp_client import McpClient, RawJSON, ServerError, read_input_required, read_task, read_tool_result
from mcp_client.jsonrpc import Incoming, decode, result_of
from mcp_client.reading import read_discovery, read_outcome, read_tool

SPEC = Path(__file__).resolve().parents[3] / "shared" / "spec"

pytestmark = pytest.mark.skipif(
    not SPEC.is_dir(), reason="the published schemas are not beside the repository"
)

DONE = {"resultType": "complete", "content": []}
TASK: dict[str, Any] = {
    "taskId": "t1",
    "status": "working",
    "createdAt": "2026-01-02T03:04:05Z",
    "lastUpdatedAt": "2026-01-02T03:04:05Z",
    "ttlMs": None,
}


def check(file: str, definition: str, value: Any) -> None:
    """Fail unless *value* is valid against one definition of a published schema."""
    schema = json.loads((SPEC / file).read_text())
    Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]}).validate(value)


CORE, TASKS = "mcp-2026-07-28.schema.json", "ext-tasks.schema.json"


@pytest.mark.rule("http.body-one-message", "index.base-protocol", "index.json-rpc", "index.request-id")
async def test_every_request_that_is_sent_is_valid(server: ScriptedServer, client: McpClient) -> None:
    server.on("server/discover", result({"supportedVersions": [], "capabilities": {}}))
    server.on(
        "tools/list", result(lambda r: {"tools": [], **({} if "cursor" in r.params else {"nextCursor": ""})})
    )
    server.on("tools/call", result(DONE))
    server.on("tasks/get", result({**TASK, "resultType": "complete"}))
    server.on("tasks/update", result({"resultType": "complete"}))
    server.on("tasks/cancel", result({"resultType": "complete"}))
    await client.discover()
    await client.list_tools()
    await client.call_tool("t", {"a": 1}, on_progress=lambda _: None)
    answers = {
        "k": RawJSON('{"action":"accept","content":{"a":"b","n":3,"c":true,"l":["x"]}}'),
        "d": {"action": "decline"},
    }
    await client.call_tool("t", {"a": 1}, input_responses=answers, request_state="s")
    await client.get_task("t1")
    await client.update_task("t1", answers)
    await client.cancel_task("t1")
    definitions = {
        "server/discover": (CORE, "DiscoverRequest"),
        "tools/list": (CORE, "ListToolsRequest"),
        "tools/call": (CORE, "CallToolRequest"),
        "tasks/get": (TASKS, "GetTaskRequest"),
        "tasks/update": (TASKS, "UpdateTaskRequest"),
        "tasks/cancel": (TASKS, "CancelTaskRequest"),
    }
    assert {request.method for request in server.received} == set(definitions)
    for request in server.received:
        check(CORE, "JSONRPCRequest", request.json)
        check(CORE, "RequestMetaObject", request.params["_meta"])
        check(*definitions[request.method or ""], request.json)


def examples(folder: str) -> list[Any]:
    if not SPEC.is_dir():
        return []
    return [pytest.param(path, id=path.stem) for path in sorted((SPEC / "examples" / folder).glob("*.json"))]


def load(path: Path) -> Any:
    return decode(path.read_bytes(), depth=64)


ALL = sorted((SPEC / "examples").rglob("*.json")) if SPEC.is_dir() else []


@pytest.mark.parametrize("path", [pytest.param(p, id=f"{p.parent.name}/{p.stem}") for p in ALL])
def test_every_published_example_is_json_to_us(path: Path) -> None:
    assert load(path) == json.loads(path.read_text(), parse_float=Decimal)


@pytest.mark.parametrize("path", examples("CallToolResult"))
def test_published_tool_results_are_read_without_fault(path: Path) -> None:
    assert read_tool_result(load(path)).faults == ()


@pytest.mark.parametrize("path", examples("InputRequiredResult"))
def test_published_questions_are_read_without_fault(path: Path) -> None:
    found = read_input_required(load(path))
    assert found.faults == ()
    assert all(question.faults == () for question in found.input_requests.values())
    assert found.request_state is not None


@pytest.mark.parametrize("path", examples("InputRequests"))
def test_published_input_requests_are_read_without_fault_in_a_task(path: Path) -> None:
    raw = {**TASK, "status": "input_required", "inputRequests": load(path)}
    check(TASKS, "InputRequiredTask", raw)
    task = read_task(raw)
    assert task.faults == ()


@pytest.mark.parametrize("path", examples("DiscoverResult"))
def test_published_discoveries_are_read_without_fault(path: Path) -> None:
    assert read_discovery(load(path)).faults == ()


@pytest.mark.parametrize("path", examples("Tool"))
def test_published_tools_are_read(path: Path) -> None:
    assert not isinstance(read_tool(load(path)), str)


@pytest.mark.parametrize("path", examples("ListToolsResult"))
def test_every_tool_of_a_published_list_is_read(path: Path) -> None:
    for entry in load(path)["tools"]:
        assert not isinstance(read_tool(entry), str)


@pytest.mark.parametrize(
    "path",
    [
        *examples("UnsupportedProtocolVersionError"),
        *examples("MissingRequiredClientCapabilityError"),
        *examples("HeaderMismatchError"),
    ],
)
def test_published_errors_say_what_they_carry(path: Path) -> None:
    message = load(path)
    with pytest.raises(ServerError) as refused:
        result_of(Incoming(message, 400), message["id"])
    found = refused.value
    assert found.supported or found.required_capabilities or found.is_header_mismatch
    assert not found.is_legacy


def test_what_we_read_as_a_handle_is_one_by_the_schema() -> None:
    raw = {**TASK, "resultType": "task"}
    check(TASKS, "CreateTaskResult", raw)
    assert read_outcome("tools/call", raw).faults == ()


def test_the_check_itself_can_fail() -> None:
    with pytest.raises(ValidationError):
        check(TASKS, "GetTaskRequest", {"method": "tasks/get", "params": {}})
