"""Against fastmcp-tasks, which nobody here wrote: every tool, each outcome, in both reply modes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mcp_client import (
    CallToolResult,
    CompletedTask,
    CreateTaskResult,
    DetailedTask,
    FailedTask,
    InputRequiredResult,
    InputRequiredTask,
    McpClient,
    RawJSON,
    ServerError,
    WorkingTask,
    read_tool_result,
)


@pytest.fixture(params=["fastmcp_url", "fastmcp_json_url"], ids=["sse", "json"])
async def peer(request: pytest.FixtureRequest) -> AsyncIterator[McpClient]:
    async with McpClient.http(request.getfixturevalue(request.param)) as client:
        yield client


async def start(client: McpClient, tool: str, arguments: dict[str, Any] | None = None) -> str:
    handle = await client.call_tool(tool, arguments or {})
    assert isinstance(handle, CreateTaskResult), handle
    assert handle.faults == ()
    assert handle.poll_interval_ms == 200
    return handle.task_id


async def look_until(client: McpClient, task_id: str, *kinds: type) -> DetailedTask:
    """Poll as the server suggests until the task is of one of *kinds*."""
    async with asyncio.timeout(30):
        while True:
            task = await client.get_task(task_id)
            if isinstance(task, kinds):
                assert task.created_at_ms is not None
                assert task.faults == ()
                return task
            await asyncio.sleep(0.1)


async def outcome(client: McpClient, tool: str, arguments: dict[str, Any] | None = None) -> DetailedTask:
    task_id = await start(client, tool, arguments)
    return await look_until(client, task_id, CompletedTask, FailedTask)


def text_of(task: DetailedTask) -> str:
    assert isinstance(task, CompletedTask)
    return read_tool_result(task.result).content[0]["text"]


async def test_the_server_says_what_it_is(peer: McpClient) -> None:
    found = await peer.discover()
    assert found.server_info is not None
    assert (found.server_info.name, found.server_info.version) == ("fastmcp-peer", "1.2.3")
    assert found.has_tasks
    assert "2026-07-28" in found.supported_versions
    assert found.instructions == "A peer for tests."


async def test_every_tool_is_listed(peer: McpClient) -> None:
    found = await peer.list_tools()
    assert {"quick", "ask_form", "mrtr_sync", "rich"} <= {tool.name for tool in found.tools}
    assert len(found.tools) == 14
    assert found.warnings == ()


@pytest.mark.parametrize(("tool", "said"), [("quick", "quick 1"), ("required_task", "done 1")])
async def test_a_task_completes_with_its_result(peer: McpClient, tool: str, said: str) -> None:
    assert text_of(await outcome(peer, tool)) == said


async def test_a_running_task_says_what_it_does(peer: McpClient) -> None:
    task_id = await start(peer, "slow", {"steps": 50, "pause": 0.1})
    async with asyncio.timeout(30):
        while True:
            task = await peer.get_task(task_id)
            assert isinstance(task, WorkingTask)
            if task.status_message is not None:
                break
            await asyncio.sleep(0.05)
    assert task.status_message.startswith("step ")
    await peer.cancel_task(task_id)


async def test_an_answer_reaches_the_task_as_it_was_written(peer: McpClient) -> None:
    task_id = await start(peer, "ask_form")
    asked = await look_until(peer, task_id, InputRequiredTask)
    assert isinstance(asked, InputRequiredTask)
    ((key, question),) = asked.input_requests.items()
    assert key == question.key
    assert question.mode == "form"
    assert question.params["requestedSchema"]["properties"]["ratio"]["maximum"] == 1
    content = '{"email":"a@b.example","replicas":7,"env":"prd","ratio":0.10}'
    await peer.update_task(task_id, {key: RawJSON(f'{{"action":"accept","content":{content}}}')})
    said = text_of(await look_until(peer, task_id, CompletedTask, FailedTask))
    assert "action=accept" in said
    assert "'replicas': 7" in said
    assert said.endswith("state=s1")


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_declining_and_dismissing_are_two_answers(peer: McpClient, action: str) -> None:
    task_id = await start(peer, "ask_form")
    asked = await look_until(peer, task_id, InputRequiredTask)
    assert isinstance(asked, InputRequiredTask)
    await peer.update_task(task_id, {key: {"action": action} for key in asked.input_requests})
    assert f"action={action}" in text_of(await look_until(peer, task_id, CompletedTask, FailedTask))


async def test_two_questions_are_answered_one_after_the_other_and_a_third_follows(peer: McpClient) -> None:
    task_id = await start(peer, "ask_two")
    answered: dict[str, str] = {}
    async with asyncio.timeout(30):
        while not isinstance(task := await peer.get_task(task_id), (CompletedTask, FailedTask)):
            if isinstance(task, InputRequiredTask):
                for key, question in task.input_requests.items():
                    if key not in answered:
                        answered[key] = question.params["message"]
                        response = {"action": "accept", "content": {"value": question.params["message"]}}
                        await peer.update_task(task_id, {key: response})
            await asyncio.sleep(0.05)
    assert sorted(answered.values()) == ["First?", "Second?", "Third?"]
    assert "Third?" in text_of(task)


async def test_a_question_in_url_mode_brings_its_address(peer: McpClient) -> None:
    task_id = await start(peer, "ask_url")
    asked = await look_until(peer, task_id, InputRequiredTask)
    assert isinstance(asked, InputRequiredTask)
    ((key, question),) = asked.input_requests.items()
    assert question.mode == "url"
    assert question.params["url"] == "https://example.com/auth?x=1"
    assert question.faults == ()
    await peer.update_task(task_id, {key: {"action": "accept"}})
    assert text_of(await look_until(peer, task_id, CompletedTask, FailedTask)) == "action=accept"


@pytest.mark.rule("index.undeclared-capability", "mrtr.only-declared-kinds", "wire.undeclared-questions")
async def test_questions_that_this_client_never_declared_are_shown_as_what_they_are(peer: McpClient) -> None:
    task_id = await start(peer, "ask_sampling_roots")
    task = await look_until(peer, task_id, InputRequiredTask)
    assert isinstance(task, InputRequiredTask)
    asked = {question.method: question for question in task.input_requests.values()}
    assert set(asked) == {"sampling/createMessage", "roots/list"}
    assert asked["roots/list"].params is None
    assert asked["roots/list"].mode is None
    await peer.cancel_task(task_id)


@pytest.mark.rule("tasks.completed-may-say-error", "tasks.is-error-not-failed", "tasks.is-error-completed")
async def test_an_exception_and_a_tool_error_are_completed_tasks_that_say_error(peer: McpClient) -> None:
    for tool in ("boom", "tool_error", "returns_is_error"):
        task = await outcome(peer, tool)
        assert isinstance(task, CompletedTask)
        assert read_tool_result(task.result).is_error, tool


@pytest.mark.rule("tasks.failed-is-json-rpc", "tasks.failed-holds-that-error")
async def test_a_json_rpc_error_is_a_failed_task(peer: McpClient) -> None:
    task = await outcome(peer, "protocol_error")
    assert isinstance(task, FailedTask)
    assert task.error["code"] == -32603
    assert task.error["message"] == "API rate limit exceeded"


@pytest.mark.rule("tasks.completed-holds-that-result", "tools.embedded-resources")
async def test_every_kind_of_content_is_kept_as_it_came(peer: McpClient) -> None:
    task = await outcome(peer, "rich")
    assert isinstance(task, CompletedTask)
    found = read_tool_result(task.result)
    assert [block["type"] for block in found.content] == ["text", "image", "resource_link"]
    assert "\x1b[31m" in found.content[0]["text"]
    assert found.structured_content == {"ok": True, "n": None}


async def test_a_call_that_asks_first_is_repeated_with_the_answer_and_its_state(peer: McpClient) -> None:
    asked = await peer.call_tool("mrtr_sync", {})
    assert isinstance(asked, InputRequiredResult)
    assert asked.request_state is not None
    answers = {"who": {"action": "accept", "content": {"name": "Ada"}}}
    done = await peer.call_tool("mrtr_sync", {}, input_responses=answers, request_state=asked.request_state)
    assert isinstance(done, CallToolResult)
    assert done.content[0]["text"] == "hello {'name': 'Ada'} state=opaque-state"


async def test_progress_is_heard_while_a_call_is_open(fastmcp_url: str) -> None:
    heard: list[str | None] = []
    async with McpClient.http(fastmcp_url) as client:
        done = await client.call_tool(
            "plain_sync", {"steps": 3}, on_progress=lambda step: heard.append(step.message)
        )
    assert isinstance(done, CallToolResult)
    assert heard == ["sync step 1", "sync step 2", "sync step 3"]


@pytest.mark.rule("wire.unknown-tool-as-result")
async def test_what_the_server_does_not_know_is_refused_with_its_own_words(peer: McpClient) -> None:
    with pytest.raises(ServerError) as lost:
        await peer.get_task("nobody-knows-☃")
    assert lost.value.is_invalid_params
    with pytest.raises(ServerError) as lacking:
        await peer.request("nothing/of-this-kind")
    assert lacking.value.is_method_not_found
    unknown = await peer.call_tool("no_such_tool", {})
    assert isinstance(unknown, CallToolResult)
    assert unknown.is_error
