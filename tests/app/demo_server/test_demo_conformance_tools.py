"""The tools that the official conformance suite calls, and the headers that repeat their parameters."""

from __future__ import annotations

import asyncio
import base64
import dataclasses

import pytest
from fakes.demo_wire import EVERYTHING, RpcFailure, accept, envelope
from jsonschema import Draft202012Validator

TASKS = {"extensions": EVERYTHING["extensions"]}


@pytest.fixture
async def suite(serving):
    """The service with those tools, moved by hand."""
    async with serving(tools="conformance") as service:
        yield service


async def test_each_tool_is_described_and_the_first_answers_without_arguments(suite):
    tools = (await suite.wire.call("tools/list"))["tools"]
    for tool in tools:
        assert tool["description"]
        Draft202012Validator.check_schema(tool["inputSchema"])
    reply = await suite.wire.call("tools/call", {"name": tools[0]["name"], "arguments": {}}, {})
    assert reply["isError"] is True


async def test_a_task_that_takes_seconds_is_cancelled_on_the_way(suite):
    task_id = await suite.started("slow_compute", seconds=60, label="x")
    assert await suite.settle() == 1
    suite.clock.now += 250
    assert await suite.settle() == 1
    await suite.wire.call("tasks/cancel", {"taskId": task_id})
    suite.clock.now += 250
    assert (await suite.settled(task_id))["status"] == "cancelled"


@pytest.mark.parametrize("seconds", [0, 0.1, 1.3])
async def test_a_task_takes_the_time_that_was_asked_for(suite, seconds):
    task_id = await suite.started("slow_compute", seconds=seconds)
    began = suite.clock.now
    while (task := await suite.settled(task_id))["status"] == "working":
        suite.clock.now += 25
    assert task["status"] == "completed"
    assert suite.clock.now - began == pytest.approx(seconds * 1000, abs=150)


@pytest.mark.rule("tasks.handle-only-if-declared", "versioning.extension-fallback")
async def test_a_client_without_tasks_gets_the_same_work_within_the_call(suite):
    params = {"name": "slow_compute", "arguments": {"seconds": 0.01, "label": "it"}}
    inline = await suite.wire.call("tools/call", params, {})
    assert inline["resultType"] == "complete"
    task_id = (await suite.wire.call("tools/call", params, TASKS))["taskId"]
    await suite.settle()
    suite.clock.now += 10
    assert (await suite.settled(task_id))["result"]["content"] == inline["content"]


@pytest.mark.rule("http.closing-cancels")
async def test_a_client_that_leaves_has_cancelled_the_work_within_its_call(suite, monkeypatch):
    ended = asyncio.Event()

    async def endless(arguments):
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    slow = dataclasses.replace(suite.worker._tools["slow_compute"], inline=endless)
    monkeypatch.setitem(suite.worker._tools, "slow_compute", slow)
    message = envelope("tools/call", {"name": "slow_compute", "arguments": {"seconds": 1}}, {})
    calling = asyncio.create_task(suite.wire.send(message))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await asyncio.shield(calling)
    assert not ended.is_set()
    calling.cancel()
    async with asyncio.timeout(30):
        await ended.wait()


async def test_a_job_that_fails_completes_and_a_protocol_error_fails(suite):
    failing, broken = await suite.started("failing_job"), await suite.started("protocol_error_job")
    await suite.settle()
    suite.clock.now += 1000
    assert (await suite.settled(failing))["result"]["isError"] is True
    assert (await suite.wire.get(broken))["error"]["code"] == -32603


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (accept(confirm=True), "Deleted a.txt."),
        (accept(confirm=False), "a.txt was kept."),
        ({"action": "decline"}, "a.txt was kept."),
        ({"action": "cancel"}, "a.txt was kept."),
    ],
)
async def test_nothing_is_deleted_without_a_yes(suite, response, text):
    task_id = await suite.started("confirm_delete", filename="a.txt")
    assert list((await suite.settled(task_id))["inputRequests"]) == ["confirm"]
    await suite.wire.answer(task_id, confirm=response)
    assert (await suite.settled(task_id))["result"]["content"][0]["text"] == text


async def test_two_questions_are_answered_one_by_one(suite):
    task_id = await suite.started("multi_input")
    assert list((await suite.settled(task_id))["inputRequests"]) == ["user_name", "go_on"]
    await suite.wire.answer(task_id, user_name=accept(name="Ada", confirm=True))
    assert list((await suite.settled(task_id))["inputRequests"]) == ["go_on"]
    await suite.wire.answer(task_id, go_on={"action": "decline"})
    text = (await suite.settled(task_id))["result"]["content"][0]["text"]
    assert text == "name: Ada, confirm: None"


@pytest.mark.parametrize("tool", ["test_tool_with_task", "test_streaming_elicitation"])
async def test_a_name_is_asked_for_before_anything_begins(suite, tool):
    asked = await suite.wire.tool(tool)
    assert list(asked["inputRequests"]) == ["user_name"]
    answers = {"inputResponses": {"user_name": accept(name="Ada")}, "requestState": asked["requestState"]}
    reply = await suite.wire.tool(tool, **answers)
    if reply["resultType"] == "task":
        reply = (await suite.settled(reply["taskId"]))["result"]
    assert reply["content"][0]["text"] in ("Hello, Ada!", "Thank you.")
    declined = await suite.wire.tool(
        tool, **answers | {"inputResponses": {"user_name": {"action": "decline"}}}
    )
    assert (declined["resultType"], declined["isError"]) == ("complete", False)


async def test_sampling_must_be_declared_where_a_tool_says_so(suite):
    params = {"name": "test_missing_capability", "arguments": {}}
    with pytest.raises(RpcFailure) as refused:
        await suite.wire.call("tools/call", params)
    assert (refused.value.code, refused.value.http_status) == (-32021, 400)
    assert refused.value.data == {"requiredCapabilities": {"sampling": {}}}
    assert (await suite.wire.call("tools/call", params, {"sampling": {}}))["isError"] is False


def called(**arguments):
    return envelope("tools/call", {"name": "test_custom_header", "arguments": arguments})


def encoded(text):
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


@pytest.mark.rule(
    "http.server-checks-headers", "http.server-decodes", "http.server-validation", "tools.mirrored"
)
@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu west"}, {"Mcp-Param-Region": "eu west"}),
        ({"region": "eu"}, {"mcp-param-region": encoded("eu")}),
        ({"region": "é"}, {"Mcp-Param-Region": encoded("é")}),
        ({"region": " a\n"}, {"Mcp-Param-Region": encoded(" a\n")}),
        ({"region": "=?base64?x?="}, {"Mcp-Param-Region": encoded("=?base64?x?=")}),
        ({"region": "=?BASE64?eA==?="}, {"Mcp-Param-Region": "=?BASE64?eA==?="}),
        ({"region": ""}, {"Mcp-Param-Region": ""}),
        ({"region": "a", "priority": None}, {"Mcp-Param-Region": "a"}),
        ({"region": "a", "priority": -7}, {"Mcp-Param-Region": "a", "Mcp-Param-Priority": "-7"}),
        ({"region": "a", "priority": 42}, {"Mcp-Param-Region": "a", "Mcp-Param-Priority": "42.0"}),
        ({"region": "a", "priority": 42.0}, {"Mcp-Param-Region": "a", "Mcp-Param-Priority": "42"}),
        ({"region": "a", "dry_run": True}, {"Mcp-Param-Region": "a", "Mcp-Param-Dry-Run": "true"}),
        ({"region": "a", "dry_run": False}, {"Mcp-Param-Region": "a", "Mcp-Param-Dry-Run": "false"}),
        ({}, {}),
        ({"region": "a"}, {"Mcp-Param-Region": "a", "Mcp-Param-Unheard": "x"}),
    ],
)
async def test_headers_that_repeat_the_arguments_are_accepted(suite, arguments, headers):
    response = await suite.wire.send(called(**arguments), headers)
    assert response.status_code == 200
    assert "result" in response.json()


@pytest.mark.rule(
    "http.server-checks-headers", "http.omitted-refused", "http.server-validation", "http.server-decodes"
)
@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu"}, {}),
        ({"region": "eu"}, {"Mcp-Param-Region": "us"}),
        ({"region": "eu"}, {"Mcp-Param-Region": "EU"}),
        ({"region": "caf\xe9"}, {"Mcp-Param-Region": "caf\xe9"}),
        ({"region": "Hello"}, {"Mcp-Param-Region": "=?base64?SGVsbG8?="}),
        ({"region": "Hello"}, {"Mcp-Param-Region": "=?base64?SGVs!!!bG8=?="}),
        ({"region": "Hello"}, {"Mcp-Param-Region": "=?base64?SGVsbG9=?="}),
        ({"region": "=?base64?eA==?="}, {"Mcp-Param-Region": "=?base64?eA==?="}),
        ({}, {"Mcp-Param-Region": "eu"}),
        ({"region": None}, {"Mcp-Param-Region": "null"}),
        ({"region": "a", "priority": 42}, {"Mcp-Param-Region": "a"}),
        ({"region": "a", "priority": 42}, {"Mcp-Param-Region": "a", "Mcp-Param-Priority": "42.5"}),
        ({"region": "a", "priority": 42}, {"Mcp-Param-Region": "a", "Mcp-Param-Priority": "4e1"}),
        ({"region": "a", "priority": 1}, {"Mcp-Param-Region": "a", "Mcp-Param-Priority": "9" * 4000}),
        ({"region": "a", "dry_run": True}, {"Mcp-Param-Region": "a", "Mcp-Param-Dry-Run": "True"}),
        ({"region": "a", "dry_run": True}, {"Mcp-Param-Region": "a", "Mcp-Param-Dry-Run": "1"}),
    ],
)
async def test_headers_that_do_not_repeat_the_arguments_are_refused(suite, arguments, headers):
    response = await suite.wire.send(called(**arguments), headers)
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32020)


async def test_arguments_that_are_no_object_are_refused_before_their_headers_matter(suite):
    message = envelope("tools/call", {"name": "test_custom_header", "arguments": ["region"]})
    assert (await suite.wire.send(message)).json()["error"]["code"] == -32602


async def test_the_keywords_of_2020_12_are_listed_as_they_are_and_hold(suite):
    tools = {tool["name"]: tool for tool in (await suite.wire.call("tools/list"))["tools"]}
    schema = tools["json_schema_2020_12_tool"]["inputSchema"]
    assert {"$schema", "$defs", "allOf", "if", "then", "else", "additionalProperties"} <= schema.keys()
    by_phone = {"contactMethod": "phone", "phone": "1"}
    assert (await suite.wire.tool("json_schema_2020_12_tool", by_phone))["isError"] is False
    assert (await suite.wire.tool("json_schema_2020_12_tool", {"contactMethod": "phone"}))["isError"] is True
