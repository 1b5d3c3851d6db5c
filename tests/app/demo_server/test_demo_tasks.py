"""The life of a task: answers, cancelling, questions before it exists (the pages on tasks and on MRTR)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from fakes.demo_wire import DECLINE, DISMISS, RpcFailure, accept

from app.demo_server.request_state import LIFETIME_MS

GOOD = {
    "environment": "staging",
    "replicas": 3,
    "approver": "ada@example.com",
    "reason": "Because it is time",
}


@pytest.mark.rule("tasks.durable-before-handle", "tasks.consistent-before-handle", "tasks.ids-unguessable")
async def test_a_handle_can_be_looked_up_at_once_under_an_id_nobody_guesses(service):
    handles = [await service.wire.tool("flaky_job") for _ in range(3)]
    ids = {handle["taskId"] for handle in handles}
    assert len(ids) == 3
    assert all(len(task_id) >= 36 for task_id in ids)
    for handle in handles:
        task = await service.wire.get(handle["taskId"])
        assert task["status"] == handle["status"] == "working"
        assert task["createdAt"] == handle["createdAt"]


async def test_times_are_those_of_changes_not_of_polls(service):
    task_id = await service.started("generate_report", size="small")
    created = (await service.wire.get(task_id))["createdAt"]
    service.clock.now += 5000
    assert (await service.wire.get(task_id))["lastUpdatedAt"] == created
    await service.worker.step()
    task = await service.wire.get(task_id)
    moments = [datetime.fromisoformat(task[name]) for name in ("createdAt", "lastUpdatedAt")]
    assert (moments[1] - moments[0]).total_seconds() == 5
    assert task["createdAt"] == created
    assert task["ttlMs"] == 24 * 3600 * 1000
    assert task["pollIntervalMs"] == 1000


@pytest.mark.rule("tasks.cancel-unknown-task", "tasks.update-cancel-unknown-task")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
@pytest.mark.parametrize("task_id", ["tsk_never_was", "", "  spaced  ", "日本", "' OR 1=1 --", 7, None])
async def test_an_id_that_never_was_is_an_invalid_parameter(service, method, task_id):
    with pytest.raises(RpcFailure) as failure:
        await service.wire.call(method, {"taskId": task_id, "inputResponses": {}})
    assert failure.value.code == -32602


@pytest.mark.rule("tasks.update-acknowledged", "tasks.cancel-acknowledged")
async def test_an_acknowledgement_is_empty(service):
    task_id = await service.started("two_questions")
    await service.settle()
    for reply in (
        await service.wire.answer(task_id, colour=DECLINE),
        await service.wire.call("tasks/cancel", {"taskId": task_id}),
    ):
        assert set(reply) == {"resultType", "_meta"}
        assert reply["resultType"] == "complete"


@pytest.mark.rule("elicitation.server-validates", "tasks.errors-say-why")
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({}, "'environment' is a required property"),
        (GOOD | {"environment": "moon"}, "environment"),
        (GOOD | {"replicas": 11}, "replicas"),
        (GOOD | {"replicas": "3"}, "replicas"),
        (GOOD | {"replicas": 2.5}, "replicas"),
        (GOOD | {"replicas": True}, "replicas"),
        (GOOD | {"approver": "nobody"}, "approver"),
        (GOOD | {"reason": "no"}, "reason"),
        (GOOD | {"reason": "x" * 201}, "reason"),
        (GOOD | {"change_ticket": "4711"}, "change_ticket"),
        (GOOD | {"runbook": "not a uri"}, "runbook"),
        (GOOD | {"runbook": "relative/path"}, "runbook"),
        (GOOD | {"freeze_until": "2027-02-30"}, "freeze_until"),
        (GOOD | {"freeze_until": "20270228"}, "freeze_until"),
        (GOOD | {"start_at": "2027-01-01"}, "start_at"),
        (GOOD | {"start_at": "2027-01-01T25:00:00Z"}, "start_at"),
        (GOOD | {"start_at": "2027-01-01T10:00:00"}, "start_at"),
        (GOOD | {"regions": []}, "regions"),
        (GOOD | {"regions": ["mars"]}, "regions.0"),
        (GOOD | {"notify": ["chat", "email", "pager"]}, "notify"),
        (GOOD | {"canary_percent": 100.5}, "canary_percent"),
        (GOOD | {"run_migrations": None}, "run_migrations"),
    ],
)
async def test_content_that_does_not_fit_is_refused_with_the_reason_and_the_question_stays(
    service, content, reason
):
    task_id = await service.started("deploy_service", service="checkout")
    before = await service.settled(task_id)
    with pytest.raises(RpcFailure) as failure:
        await service.wire.answer(task_id, approve_deployment=accept(**content))
    assert failure.value.code == -32602
    assert reason in failure.value.message
    assert failure.value.data == {"key": "approve_deployment"}
    assert await service.settled(task_id) == before
    await service.wire.answer(task_id, approve_deployment=accept(**GOOD))
    assert (await service.settled(task_id))["status"] == "completed"


@pytest.mark.parametrize(
    "response",
    [
        "accept",
        None,
        [],
        {},
        {"action": "yes"},
        {"action": None},
        {"action": "accept"},
        {"action": "accept", "content": []},
    ],
)
async def test_what_is_no_response_is_refused(service, response):
    task_id = await service.started("generate_report", size="small")
    await service.settle()
    with pytest.raises(RpcFailure) as failure:
        await service.wire.answer(task_id, approve_outline=response)
    assert failure.value.code == -32602
    assert (await service.settled(task_id))["status"] == "input_required"


@pytest.mark.parametrize("responses", [None, [], "x"])
async def test_input_responses_must_be_an_object(service, responses):
    task_id = await service.started("generate_report", size="small")
    with pytest.raises(RpcFailure) as failure:
        await service.wire.call("tasks/update", {"taskId": task_id, "inputResponses": responses})
    assert failure.value.code == -32602


async def test_one_bad_response_refuses_the_whole_update(service):
    task_id = await service.started("two_questions")
    before = await service.settled(task_id)
    with pytest.raises(RpcFailure):
        await service.wire.answer(task_id, colour=accept(colour="red"), count=accept(count=1000))
    assert await service.settled(task_id) == before


@pytest.mark.rule("tasks.update-ignores-others")
async def test_unknown_and_answered_keys_are_ignored_even_with_content_that_would_not_fit(service):
    task_id = await service.started("two_questions")
    await service.settle()
    await service.wire.answer(task_id, nonsense="what", count=accept(count=3))
    await service.wire.answer(task_id, count=accept(count=1000))
    await service.wire.answer(task_id, count=accept(count=4), colour=accept(colour="blue"))
    task = await service.settled(task_id)
    assert task["result"]["structuredContent"] == {"colour": "blue", "count": 3}


async def test_an_answer_shows_at_once_and_an_ended_task_takes_none(service):
    task_id = await service.started("generate_report", size="small")
    await service.wire.answer(task_id, approve_outline=accept(approved=True))
    assert (await service.settled(task_id))["status"] == "input_required"
    await service.wire.answer(task_id, approve_outline=accept(approved=True))
    assert (await service.wire.get(task_id))["status"] == "working"
    ended = await service.settled(task_id)
    await service.wire.answer(task_id, approve_outline=DECLINE)
    assert await service.settled(task_id) == ended


async def test_a_waiting_task_is_cancelled_at_once_and_its_questions_are_gone(service):
    task_id = await service.started("generate_report", size="small")
    await service.settle()
    for _ in range(2):
        await service.wire.call("tasks/cancel", {"taskId": task_id})
        task = await service.wire.get(task_id)
        assert task["status"] == "cancelled"
        assert "inputRequests" not in task
    await service.wire.answer(task_id, approve_outline=accept(approved=True))
    assert (await service.settled(task_id))["status"] == "cancelled"


@pytest.mark.rule("tasks.cancel-shows-later")
async def test_a_working_task_is_cancelled_at_its_next_step(service):
    task_id = await service.started("long_build")
    await service.worker.step()
    for _ in range(2):
        await service.wire.call("tasks/cancel", {"taskId": task_id})
        assert (await service.wire.get(task_id))["status"] == "working"
    assert await service.settle() == 1
    assert (await service.wire.get(task_id))["status"] == "cancelled"


@pytest.mark.parametrize("tool", ["flaky_job", "broken_tool"])
async def test_an_ended_task_stays_as_it_ended(service, tool):
    task_id = await service.started(tool)
    ended = await service.settled(task_id)
    await service.wire.call("tasks/cancel", {"taskId": task_id})
    assert await service.settled(task_id) == ended


async def first_call(service: Any, **arguments: Any) -> dict[str, Any]:
    result: dict[str, Any] = await service.wire.tool("ask_first", arguments)
    assert result["resultType"] == "input_required"
    return result


async def repeated(service: Any, state: Any, responses: Any, **arguments: Any) -> dict[str, Any]:
    result: dict[str, Any] = await service.wire.tool(
        "ask_first", arguments, requestState=state, inputResponses=responses
    )
    return result


@pytest.mark.rule("tasks.questions-before-handle")
async def test_a_call_that_asks_first_becomes_a_task_when_it_is_repeated_with_the_answers(service):
    asked = await first_call(service, name="Ada")
    fields = asked["inputRequests"]["who"]["params"]["requestedSchema"]["properties"]
    assert fields["name"]["default"] == "Ada"
    assert "taskId" not in asked
    handle = await repeated(service, asked["requestState"], {"who": accept(name="Grace")}, name="Ada")
    assert handle["resultType"] == "task"
    task = await service.settled(handle["taskId"])
    assert task["result"]["structuredContent"] == {"name": "Grace"}


@pytest.mark.parametrize(("response", "word"), [(DECLINE, "declined"), (DISMISS, "dismissed")])
async def test_a_question_not_accepted_before_the_task_starts_nothing(service, response, word):
    asked = await first_call(service)
    result = await repeated(service, asked["requestState"], {"who": response})
    assert result["resultType"] == "complete"
    assert result["content"][0]["text"] == f"Nothing was started: a question before it was {word}."


@pytest.mark.rule("mrtr.server-checks-responses")
async def test_what_is_missing_before_the_task_is_asked_again(service):
    asked = await first_call(service)
    for responses in ({}, {"nonsense": accept(name="Ada")}):
        again = await repeated(service, asked["requestState"], responses)
        assert again["resultType"] == "input_required"
        assert again["inputRequests"] == asked["inputRequests"]
    without_state = await service.wire.tool("ask_first", {}, inputResponses={"who": accept(name="Ada")})
    assert without_state["resultType"] == "input_required"


@pytest.mark.rule("mrtr.server-checks-responses")
async def test_content_that_does_not_fit_before_the_task_is_refused_and_can_be_mended(service):
    asked = await first_call(service)
    with pytest.raises(RpcFailure) as failure:
        await repeated(service, asked["requestState"], {"who": accept(name="")})
    assert failure.value.code == -32602
    handle = await repeated(service, asked["requestState"], {"who": accept(name="Ada")})
    assert handle["resultType"] == "task"


@pytest.mark.rule("mrtr.server-distrusts-state", "mrtr.server-validates-state")
async def test_a_request_state_that_was_tampered_with_is_refused(service):
    state: str = (await first_call(service))["requestState"]
    head, tail = state.split(".")
    swapped = ("A" if head[9] != "A" else "B") + head[10:]
    forged = [
        head[:9] + swapped + "." + tail,
        head + ".",
        "." + tail,
        head,
        state + "A",
        "é.ü",
        "",
        7,
        None,
        {},
    ]
    for bad in forged:
        with pytest.raises(RpcFailure) as failure:
            await repeated(service, bad, {"who": accept(name="Ada")})
        assert failure.value.code == -32602


@pytest.mark.rule("mrtr.state-bound")
async def test_a_request_state_is_good_for_its_own_call_alone_and_not_for_ever(service):
    state = (await first_call(service, name="Ada"))["requestState"]
    with pytest.raises(RpcFailure, match="another call"):
        await repeated(service, state, {"who": accept(name="Ada")}, name="Grace")
    service.clock.now += LIFETIME_MS
    assert (await repeated(service, state, {"who": accept(name="Ada")}, name="Ada"))["resultType"] == "task"
    service.clock.now += 1
    with pytest.raises(RpcFailure, match="expired"):
        await repeated(service, state, {"who": accept(name="Ada")}, name="Ada")
