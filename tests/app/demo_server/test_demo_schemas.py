"""Everything the service says validates against the published JSON Schemas."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.demo_wire import DECLINE, EVERYTHING, RpcFailure, accept, envelope
from jsonschema import Draft202012Validator

SPEC = Path(__file__).resolve().parents[4] / "shared" / "spec"

pytestmark = pytest.mark.skipif(
    not SPEC.is_dir(), reason="the published schemas are not beside this checkout"
)

Check = Callable[[str, Any], None]


def _checker(name: str) -> Check:
    schema = json.loads((SPEC / name).read_text())

    def check(definition: str, instance: Any) -> None:
        Draft202012Validator({**schema, "$ref": f"#/$defs/{definition}"}).validate(instance)

    return check


@pytest.fixture(scope="module")
def core() -> Check:
    return _checker("mcp-2026-07-28.schema.json")


@pytest.fixture(scope="module")
def tasks() -> Check:
    return _checker("ext-tasks.schema.json")


def _whole(check: Check, definition: str, task: dict[str, Any]) -> None:
    check(definition, task)
    check("GetTaskResult", task)


async def test_discovery_and_the_list_of_tools_are_valid(service, core):
    core("DiscoverResult", await service.wire.call("server/discover"))
    core("ListToolsResult", await service.wire.call("tools/list"))


@pytest.mark.parametrize(
    ("method", "definition"),
    [
        ("prompts/list", "ListPromptsResult"),
        ("resources/list", "ListResourcesResult"),
        ("resources/templates/list", "ListResourceTemplatesResult"),
    ],
)
async def test_the_lists_of_what_there_is_not_are_valid(service, core, method, definition):
    core(definition, await service.wire.call(method))


async def test_everything_a_subscription_says_is_valid(service, core, tasks):
    made = [
        await service.started(tool) for tool in ("two_questions", "flaky_job", "broken_tool", "long_build")
    ]
    async with service.wire.listening(made) as stream:
        core("SubscriptionsAcknowledgedNotification", await stream.next())
        for _ in range(30):
            await service.worker.step()
        await service.wire.call("tasks/cancel", {"taskId": made[-1]})
        await service.settle()
        wanted = {"working", "input_required", "completed", "failed", "cancelled"}
        told: list[dict[str, Any]] = []
        while {each["params"]["status"] for each in told} < wanted:
            told.append(await stream.next())
            core("JSONRPCNotification", told[-1])
            tasks("TaskStatusNotification", told[-1])
        service.listening.close()
        cancelled = await stream.until(lambda message: message["method"] != "notifications/tasks")
        core("CancelledNotification", cancelled)
        last = await stream.next()
    core("SubscriptionsListenResultResponse", last)


async def test_immediate_results_are_valid(service, core):
    core("CallToolResult", await service.wire.tool("echo", {"text": "x"}))
    core("CallToolResult", await service.wire.tool("echo", {}))


@pytest.mark.rule("tasks.get-answers-by-status", "tasks.get-working")
@pytest.mark.parametrize(
    ("tool", "arguments", "answers"),
    [
        ("generate_report", {"size": "large"}, {"approve_outline": accept(approved=True)}),
        ("deploy_service", {"service": "checkout"}, {"approve_deployment": DECLINE}),
        ("approve_in_browser", {}, {"approve_in_browser": {"action": "accept"}}),
        ("two_questions", {}, {"colour": DECLINE, "count": accept(count=2)}),
        ("broken_tool", {}, {}),
        ("long_build", {"minutes": 1}, {}),
    ],
)
async def test_a_task_is_valid_in_every_state_up_to_its_completion(
    service, core, tasks, tool, arguments, answers
):
    handle = await service.wire.tool(tool, arguments)
    tasks("CreateTaskResult", handle)
    task_id = handle["taskId"]
    _whole(tasks, "WorkingTask", await service.wire.get(task_id))
    task = await service.settled(task_id)
    if answers:
        _whole(tasks, "InputRequiredTask", task)
        core("InputRequests", task["inputRequests"])
        tasks("UpdateTaskResult", await service.wire.answer(task_id, **answers))
        task = await service.settled(task_id)
    _whole(tasks, "CompletedTask", task)
    core("CallToolResult", task["result"])
    listed = (await service.wire.call("tools/list"))["tools"]
    output = next(each for each in listed if each["name"] == tool).get("outputSchema")
    if output is not None:
        Draft202012Validator(output).validate(task["result"]["structuredContent"])


@pytest.mark.rule("tasks.get-cancelled")
async def test_failed_and_cancelled_tasks_are_valid(service, tasks):
    _whole(tasks, "FailedTask", await service.settled(await service.started("flaky_job")))
    task_id = await service.started("long_build")
    tasks("CancelTaskResult", await service.wire.call("tasks/cancel", {"taskId": task_id}))
    _whole(tasks, "CancelledTask", await service.settled(task_id))


async def test_questions_before_a_task_are_valid(service, core):
    core("InputRequiredResult", await service.wire.tool("ask_first", {"name": "Ada"}))


@pytest.mark.rule("index.reserved-codes", "tasks.errors-are-json-rpc")
@pytest.mark.parametrize(
    ("definition", "method", "params", "capabilities", "headers"),
    [
        ("MissingRequiredClientCapabilityError", "tasks/get", {"taskId": "x"}, {}, {}),
        ("HeaderMismatchError", "tools/list", {}, EVERYTHING, {"Mcp-Method": "tools/call"}),
    ],
)
async def test_errors_are_valid(service, core, definition, method, params, capabilities, headers):
    response = await service.wire.send(envelope(method, params, capabilities), headers)
    core(definition, response.json())
    core("JSONRPCErrorResponse", response.json())


async def test_an_unsupported_version_and_an_unknown_method_are_valid_errors(service, core):
    message = envelope("server/discover")
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "1900-01-01"
    response = await service.wire.send(message, {"MCP-Protocol-Version": "1900-01-01"})
    core("UnsupportedProtocolVersionError", response.json())
    response = await service.wire.send(envelope("tasks/list"))
    core("JSONRPCErrorResponse", response.json())
    core("MethodNotFoundError", response.json()["error"])


@pytest.mark.rule("tasks.get-unknown-task")
async def test_an_unknown_task_is_a_valid_error(service, core):
    with pytest.raises(RpcFailure):
        await service.wire.get("tsk_never_was")
    _, reply = service.wire.exchanges[-1]
    core("JSONRPCErrorResponse", reply)
    core("InvalidParamsError", reply["error"])
