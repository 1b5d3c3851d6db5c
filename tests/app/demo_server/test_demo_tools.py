"""What each tool does, step by step."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.demo_wire import DECLINE, DISMISS, RpcFailure, accept
from jsonschema import Draft202012Validator

DEPLOYMENT: dict[str, Any] = {
    "environment": "production",
    "strategy": "canary",
    "urgency": "high",
    "regions": ["eu-west-1", "ap-south-1"],
    "notify": ["chat"],
    "replicas": 5,
    "canary_percent": 12.5,
    "run_migrations": True,
    "approver": "ada@example.com",
    "reason": "The fix for the login page",
    "change_ticket": "CHG-4711",
    "runbook": "https://runbooks.example.com/deploy",
    "freeze_until": "2027-01-31",
    "start_at": "2027-01-15T09:30:00+01:00",
}


def text_of(task: dict[str, Any]) -> str:
    text: str = task["result"]["content"][0]["text"]
    return text


@pytest.mark.rule("caching.hints", "tools.listed", "tools.order")
async def test_the_list_is_the_same_each_time_cacheable_and_of_valid_schemas(service):
    first = await service.wire.call("tools/list")
    assert first == await service.wire.call("tools/list")
    assert first["cacheScope"] == "public"
    assert first["ttlMs"] > 0
    assert "nextCursor" not in first
    names = [tool["name"] for tool in first["tools"]]
    assert names == [
        "generate_report",
        "deploy_service",
        "approve_in_browser",
        "ask_first",
        "two_questions",
        "long_build",
        "publish_release",
        "send_newsletter",
        "restore_backup",
        "flaky_job",
        "broken_tool",
        "echo",
    ]
    for tool in first["tools"]:
        assert tool["description"]
        Draft202012Validator.check_schema(tool["inputSchema"])
        Draft202012Validator.check_schema(tool.get("outputSchema", {}))


@pytest.mark.rule("pagination.server-guidelines", "pagination.invalid-cursor")
@pytest.mark.parametrize("cursor", ["", "2"])
async def test_a_page_that_does_not_exist_is_refused(service, cursor):
    with pytest.raises(RpcFailure) as failure:
        await service.wire.call("tools/list", {"cursor": cursor})
    assert failure.value.code == -32602


@pytest.mark.rule("discover.implemented", "versioning.discover-implemented")
async def test_discovery_names_the_version_and_the_extension(service):
    found = await service.wire.call("server/discover", capabilities={})
    assert found["supportedVersions"] == ["2026-07-28"]
    assert found["capabilities"]["extensions"] == {"io.modelcontextprotocol/tasks": {}}
    assert found["cacheScope"] == "public"
    assert found["ttlMs"] > 0


@pytest.mark.parametrize(("size", "sections"), [("small", 2), ("medium", 4), ("large", 8)])
async def test_a_report_works_asks_for_its_outline_and_is_written(service, size, sections):
    task_id = await service.started("generate_report", size=size)
    messages = []
    for _ in range(3):
        await service.worker.step()
        task = await service.wire.get(task_id)
        assert task["status"] == "working"
        messages.append(task["statusMessage"])
    assert len(set(messages)) == 3
    waiting = await service.settled(task_id)
    assert waiting["status"] == "input_required"
    asked = waiting["inputRequests"]["approve_outline"]["params"]
    assert asked["requestedSchema"]["required"] == ["approved"]
    assert f"{sections}. Section {sections}" in asked["message"]
    await service.wire.answer(task_id, approve_outline=accept(approved=True))
    task = await service.settled(task_id)
    assert task["status"] == "completed"
    assert task["result"]["structuredContent"] == {"size": size, "approved": True}
    assert f"{sections} sections" in text_of(task)


@pytest.mark.rule("elicitation.server-copes")
@pytest.mark.parametrize(
    ("response", "word"),
    [(DECLINE, "declined"), (DISMISS, "dismissed"), (accept(approved=False), "not approved")],
)
async def test_a_report_whose_outline_is_not_approved_ends_unwritten(service, response, word):
    task_id = await service.started("generate_report", size="small")
    await service.settle()
    await service.wire.answer(task_id, approve_outline=response)
    task = await service.settled(task_id)
    assert task["status"] == "completed"
    assert task["result"]["structuredContent"] == {"size": "small", "approved": False}
    assert text_of(task) == f"No small report: the outline was {word}."


async def test_a_deployment_asks_a_field_of_every_kind(service):
    task_id = await service.started("deploy_service", service="checkout")
    task = await service.settled(task_id)
    schema = task["inputRequests"]["approve_deployment"]["params"]["requestedSchema"]
    fields = schema["properties"].values()
    assert {f["type"] for f in fields} == {"string", "integer", "number", "boolean", "array"}
    assert {f["format"] for f in fields if "format" in f} == {"email", "uri", "date", "date-time"}
    for keyword in ("enum", "enumNames", "oneOf", "pattern", "minLength", "maxLength", "minimum", "default"):
        assert any(keyword in f for f in fields), keyword
    assert {next(iter(f["items"].keys() - {"type"})) for f in fields if "items" in f} == {"enum", "anyOf"}
    assert set(schema["required"]) < set(schema["properties"])


@pytest.mark.parametrize(
    "left_out", [(), tuple(set(DEPLOYMENT) - {"environment", "replicas", "approver", "reason"})]
)
async def test_an_approved_deployment_is_rolled_out_and_echoes_the_answers(service, left_out):
    content = {name: value for name, value in DEPLOYMENT.items() if name not in left_out}
    task_id = await service.started("deploy_service", service="checkout", build="99")
    await service.settle()
    await service.wire.answer(task_id, approve_deployment=accept(**content))
    task = await service.settled(task_id)
    assert task["status"] == "completed"
    assert task["result"]["structuredContent"] == {
        "service": "checkout",
        "build": "99",
        "action": "accept",
        "answers": content,
    }
    assert [block["type"] for block in task["result"]["content"]] == ["text", "resource_link"]


@pytest.mark.parametrize(("response", "word"), [(DECLINE, "declined"), (DISMISS, "dismissed")])
async def test_an_unapproved_deployment_says_so(service, response, word):
    task_id = await service.started("deploy_service", service="checkout")
    await service.settle()
    await service.wire.answer(task_id, approve_deployment=response)
    task = await service.settled(task_id)
    assert task["result"]["structuredContent"]["action"] == response["action"]
    assert word in text_of(task)


@pytest.mark.parametrize(
    ("response", "word"), [({"action": "accept"}, "approved"), (DECLINE, "declined"), (DISMISS, "dismissed")]
)
async def test_an_approval_in_the_browser_carries_a_url_and_needs_no_content(service, response, word):
    task_id = await service.started("approve_in_browser")
    task = await service.settled(task_id)
    asked = task["inputRequests"]["approve_in_browser"]["params"]
    assert asked["mode"] == "url"
    assert asked["url"].startswith("https://approvals.example.com/requests/")
    assert "requestedSchema" not in asked
    await service.wire.answer(task_id, approve_in_browser=response)
    task = await service.settled(task_id)
    assert word in text_of(task)
    assert asked["url"].endswith(task["result"]["structuredContent"]["request"])


@pytest.mark.rule("tasks.get-all-outstanding", "tasks.update-partial")
async def test_two_questions_are_asked_at_once_and_one_answer_leaves_the_other_open(service):
    task_id = await service.started("two_questions")
    task = await service.settled(task_id)
    assert list(task["inputRequests"]) == ["colour", "count"]
    await service.wire.answer(task_id, count=accept(count=3))
    task = await service.settled(task_id)
    assert task["status"] == "input_required"
    assert list(task["inputRequests"]) == ["colour"]
    await service.wire.answer(task_id, colour=DECLINE)
    task = await service.settled(task_id)
    assert task["result"]["structuredContent"] == {"colour": None, "count": 3}
    assert text_of(task) == "Noted. colour: declined, count: 3."


@pytest.mark.rule("tasks.failed-has-error")
async def test_a_flaky_job_fails_with_a_json_rpc_error(service):
    task = await service.settled(await service.started("flaky_job"))
    assert task["status"] == "failed"
    assert task["error"]["code"] == -32603
    assert task["error"]["message"] in task["statusMessage"]
    assert "result" not in task


@pytest.mark.rule("tasks.is-error-not-failed")
async def test_a_broken_tool_completes_with_an_error_result(service):
    task = await service.settled(await service.started("broken_tool"))
    assert task["status"] == "completed"
    assert task["result"]["isError"] is True
    assert "error" not in task


async def test_a_long_build_tells_its_progress_and_ends(service):
    task_id = await service.started("long_build", minutes=2)
    await service.worker.step()
    assert (await service.wire.get(task_id))["statusMessage"] == "Building module 1 of 20"
    assert await service.settle() == 20
    assert (await service.wire.get(task_id))["result"]["structuredContent"] == {"modules": 20}


async def cancelled_after(service: Any, tool: str, steps: int) -> tuple[str, list[str]]:
    """Cancel a task after some steps; return its id, and what it said at each step from then on."""
    task_id = await service.started(tool)
    for _ in range(steps):
        await service.worker.step()
    for _ in range(2):
        acknowledged = await service.wire.call("tasks/cancel", {"taskId": task_id})
        assert set(acknowledged) == {"resultType", "_meta"}
    said = []
    while await service.worker.step() is not None:
        said.append((await service.wire.get(task_id))["statusMessage"])
    return task_id, said


@pytest.mark.rule("tasks.cancel-may-fail")
async def test_a_release_is_published_although_it_was_cancelled(service):
    task_id, said = await cancelled_after(service, "publish_release", 1)
    assert said == [
        "Signing (2 of 5)",
        "Uploading (3 of 5)",
        "Waiting for the mirrors (4 of 5)",
        "Announcing (5 of 5)",
        "Published",
    ]
    task = await service.wire.get(task_id)
    assert (task["status"], task["result"]["structuredContent"]) == ("completed", {"published": True})


@pytest.mark.rule("tasks.cancel-may-fail")
async def test_a_newsletter_that_is_cancelled_completes_at_once_with_what_was_sent(service):
    task_id, said = await cancelled_after(service, "send_newsletter", 3)
    assert said == ["Sent"]
    task = await service.wire.get(task_id)
    assert (task["status"], task["result"]["structuredContent"]) == ("completed", {"sent": 3, "of": 10})


@pytest.mark.rule("tasks.cancel-shows-later")
async def test_a_backup_that_is_cancelled_is_put_back_first(service):
    task_id, said = await cancelled_after(service, "restore_backup", 2)
    assert said == [
        "Cancelling: putting things back (1 of 3)",
        "Cancelling: putting things back (2 of 3)",
        "Cancelling: putting things back (3 of 3)",
        "Cancelled; everything is as it was before",
    ]
    task = await service.wire.get(task_id)
    assert task["status"] == "cancelled"
    assert "result" not in task


@pytest.mark.parametrize(
    ("tool", "result"),
    [
        ("publish_release", {"published": True}),
        ("send_newsletter", {"sent": 10, "of": 10}),
        ("restore_backup", {"tables": 8}),
    ],
)
async def test_what_nobody_cancels_comes_to_its_end(service, tool, result):
    task = await service.settled(await service.started(tool))
    assert (task["status"], task["result"]["structuredContent"]) == ("completed", result)


async def test_echo_answers_at_once(service):
    result = await service.wire.tool("echo", {"text": "hello"})
    assert result["resultType"] == "complete"
    assert result["content"] == [{"type": "text", "text": "hello"}]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("echo", {}),
        ("echo", {"text": 1}),
        ("echo", {"text": "x", "more": 1}),
        ("generate_report", {"size": "huge"}),
        ("long_build", {"minutes": 0}),
        ("long_build", {"minutes": True}),
        ("ask_first", {"name": ""}),
    ],
)
async def test_arguments_that_do_not_fit_are_a_result_that_says_so(service, tool, arguments):
    result = await service.wire.tool(tool, arguments)
    assert (result["resultType"], result["isError"]) == ("complete", True)
    assert "don't fit" in result["content"][0]["text"]


async def test_an_unknown_tool_and_arguments_that_are_no_object_are_protocol_errors(service):
    for params in ({"name": "no_such_tool"}, {"name": "echo", "arguments": []}, {"name": 7}):
        with pytest.raises(RpcFailure) as failure:
            await service.wire.call("tools/call", params)
        assert failure.value.code == -32602


@pytest.mark.rule("index.result-type-present", "index.server-info", "tasks.handle-says-task")
async def test_every_result_names_its_type_and_the_server(service):
    task_id = await service.started("broken_tool")
    await service.settle()
    await service.wire.call("server/discover")
    await service.wire.call("tools/list")
    await service.wire.tool("echo", {"text": "x"})
    await service.wire.tool("ask_first")
    await service.wire.answer(task_id)
    await service.wire.call("tasks/cancel", {"taskId": task_id})
    nested = (await service.wire.get(task_id))["result"]
    for result in [nested, *(reply["result"] for _, reply in service.wire.exchanges)]:
        assert result["resultType"] in {"complete", "task", "input_required"}
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "taskinbox-demo"
    assert len(service.wire.exchanges) == 8
