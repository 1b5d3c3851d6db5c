"""Calls: durable before they are sent, never repeated by themselves, going on with the answers they got.

The rules are those of server/tools, basic/patterns/mrtr and the Tasks page ("Task Creation").
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from fakes.inbox import Inbox, Running
from fakes.mcp_server import (
    Exchange,
    drop,
    error,
    http_reply,
    notification,
    reset,
    response,
    result,
    stream,
    wait,
)
from fakes.task_script import APPROVE, OTHER, TaskScript, handle

from app.engine.call_writes import ROUNDS_MOST
from app.engine.commands import EngineError, asks_too_much
from storage.records import NewTask, TaskKey, TaskState

DONE: dict[str, Any] = {"resultType": "complete", "content": [{"type": "text", "text": "done"}]}
ARGUMENTS = '{"build": 4711, "share": 1.10, "big": 12345678901234567890123}'


def asks(state: str | None = "opaque", /, **requests: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"resultType": "input_required"}
    if requests:
        found["inputRequests"] = requests
    if state is not None:
        found["requestState"] = state
    return found


@pytest.mark.rule("authorization.optional", "tasks.either-result", "versioning.discover-first")
async def test_a_call_that_becomes_a_task_is_the_task_from_then_on(inbox: Inbox, server: TaskScript) -> None:
    server.show("t1")
    server.on("tools/call", result(handle("t1")))
    outcome = await inbox.engine.call("ci", "deploy", ARGUMENTS)
    assert (outcome.kind, outcome.key) == ("task", TaskKey("ci", "t1"))
    record = inbox.task(outcome.key)
    assert (record.kind, record.tool, record.section) == ("task", "deploy", "running")
    assert record.origin_call is not None
    assert inbox.task(TaskKey("ci", record.origin_call)) == record
    assert json.loads(record.params_json)["name"] == "deploy"
    sent = server.of("tools/call")[0]
    for exact in ("4711", "1.10", "12345678901234567890123"):
        assert exact.encode() in sent.body
    assert sent.header("Mcp-Name") == "deploy"


@pytest.mark.rule("tools.calls-logged")
async def test_a_call_is_in_the_store_with_its_sender_before_it_is_sent(
    inbox: Inbox, server: TaskScript
) -> None:
    go = asyncio.Event()
    server.on("tools/call", wait(go, result(DONE)))
    calling = asyncio.create_task(inbox.engine.call("ci", "deploy", "{}"))
    await server.wait_for(1, "tools/call")
    (row,) = inbox.reader.list_rows()
    stored = inbox.task(row.key)
    assert (stored.kind, stored.state.status, stored.section) == ("call", "working", "running")
    assert stored.owner
    go.set()
    await calling
    assert inbox.task(row.key).owner is None


@pytest.mark.rule(
    "tasks.server-decides",
    "tasks.either-result",
    "versioning.extension-missing",
    "wire.unknown-tool-as-result",
)
@pytest.mark.parametrize("is_error", [False, True])
async def test_a_call_that_is_answered_at_once_is_over(
    inbox: Inbox, server: TaskScript, is_error: bool
) -> None:
    server.on("tools/call", result({**DONE, "isError": is_error}))
    outcome = await inbox.engine.call("ci", "echo", "{}")
    assert outcome.kind == "complete"
    assert json.loads(outcome.result_json or "")["content"] == DONE["content"]
    record = inbox.task(outcome.key)
    assert (record.section, record.state.status, record.state.is_error) == ("finished", "completed", is_error)


async def test_an_error_of_the_server_ends_the_call(inbox: Inbox, server: TaskScript) -> None:
    server.on("tools/call", error(-32602, "Unknown tool: nope"))
    outcome = await inbox.engine.call("ci", "nope", "{}")
    assert outcome.kind == "failed"
    assert json.loads(outcome.error_json or "") == {"code": -32602, "message": "Unknown tool: nope"}
    assert "Unknown tool" in (outcome.message or "")
    assert inbox.task(outcome.key).section == "finished"


async def test_an_invalid_reply_ends_the_call_with_the_fault(inbox: Inbox, server: TaskScript) -> None:
    server.on("tools/call", result({"resultType": "task", "status": "working"}))
    outcome = await inbox.engine.call("ci", "deploy", "{}")
    assert outcome.kind == "failed"
    assert "taskId" in (outcome.message or "")
    assert "taskId" in (inbox.task(outcome.key).state.problem or "")


@pytest.mark.parametrize("how", ["down", "sign-in"])
async def test_a_call_that_provably_had_no_effect_leaves_nothing_behind(
    inbox: Inbox, server: TaskScript, how: str
) -> None:
    if how == "down":
        await server.stop()
    else:
        server.on("tools/call", http_reply(401))
    with pytest.raises(EngineError, match="ci") as caught:
        await inbox.engine.call("ci", "deploy", "{}")
    assert caught.value.failure == ("unreachable" if how == "down" else "sign-in")
    assert inbox.reader.list_rows() == []


@pytest.mark.parametrize("reply", [reset(), drop()], ids=["reset", "dropped"])
async def test_a_call_without_a_reply_is_unknown_and_only_a_person_repeats_it(
    inbox: Inbox, server: TaskScript, reply: Any
) -> None:
    server.on("tools/call", reply)
    outcome = await inbox.engine.call("ci", "deploy", ARGUMENTS)
    assert outcome.kind == "unknown"
    record = inbox.task(outcome.key)
    assert (record.section, record.state.tracking, record.owner) == ("lost", "lost", None)
    assert "unknown" in (record.state.reason or "")
    server.on("tools/call", result(DONE))
    async with Running(inbox.engine):
        await asyncio.sleep(0.3)  # long enough for any retry there might be: pauses are 25 times shorter here
    assert len(server.of("tools/call")) == 1
    again = await inbox.engine.call_again(outcome.key)
    assert again.kind == "complete"
    assert inbox.task(outcome.key).section == "finished"
    first, second = server.of("tools/call")
    assert first.params["arguments"] == second.params["arguments"]
    assert first.json["id"] != second.json["id"]


async def test_repeating_an_unknown_call_in_vain_leaves_it_unknown(inbox: Inbox, server: TaskScript) -> None:
    server.on("tools/call", reset())
    key = (await inbox.engine.call("ci", "deploy", "{}")).key
    await server.stop()
    with pytest.raises(EngineError) as caught:
        await inbox.engine.call_again(key)
    assert caught.value.failure == "unreachable"
    assert inbox.task(key).section == "lost"


async def test_only_an_unknown_call_can_be_repeated(inbox: Inbox, server: TaskScript) -> None:
    server.on("tools/call", result(DONE))
    key = (await inbox.engine.call("ci", "echo", "{}")).key
    with pytest.raises(EngineError) as caught:
        await inbox.engine.call_again(key)
    assert caught.value.failure == "closed"
    with pytest.raises(EngineError) as caught:
        await inbox.engine.call_again(TaskKey("ci", "call-none"))
    assert caught.value.failure == "unknown-task"
    assert len(server.of("tools/call")) == 1


@pytest.mark.rule(
    "elicitation.may-be-sent",
    "mrtr.state-echoed",
    "mrtr.new-id",
    "tasks.questions-before-handle",
    "wire.two-ways-of-asking",
)
async def test_questions_before_a_task_are_answered_by_repeating_the_call(
    inbox: Inbox, server: TaskScript
) -> None:
    state = 'é "opaque"\\ \u2028'
    server.on("tools/call", result(asks(state, who=APPROVE)))
    outcome = await inbox.engine.call("ci", "ask_first", ARGUMENTS)
    assert outcome.kind == "input_required"
    record = inbox.task(outcome.key)
    assert (record.kind, record.section, record.state.round) == ("call", "needs-you", 1)
    server.show("t1")
    server.on("tools/call", result(handle("t1")))
    delivery = await inbox.engine.answer(outcome.key, [inbox.accept(outcome.key, "who")])
    assert delivery.state == "acknowledged"
    assert delivery.outcome is not None
    assert (delivery.outcome.kind, delivery.outcome.key) == ("task", TaskKey("ci", "t1"))
    first, second = server.of("tools/call")
    assert second.params["requestState"] == state
    assert second.params["inputResponses"] == {"who": {"action": "accept", "content": {"ok": True}}}
    assert {k: second.params[k] for k in ("name", "arguments")} == {
        k: first.params[k] for k in ("name", "arguments")
    }
    assert first.json["id"] != second.json["id"]
    assert "requestState" not in first.params
    assert inbox.states(TaskKey("ci", "t1")) == {"who": "settled"}
    assert server.updates == []


@pytest.mark.rule("mrtr.several-rounds", "mrtr.no-state-invented")
async def test_no_request_state_came_so_none_goes_back(inbox: Inbox, server: TaskScript) -> None:
    server.queue(result(asks("first", a=APPROVE)), result(asks(None, a=APPROVE)), result(DONE))
    key = (await inbox.engine.call("ci", "ask_first", "{}")).key
    second = await inbox.engine.answer(key, [inbox.accept(key, "a")])
    assert second.outcome is not None
    assert second.outcome.kind == "input_required"
    await inbox.engine.answer(key, [inbox.accept(key, "a")])
    states = [call.params.get("requestState") for call in server.of("tools/call")]
    assert states == [None, "first", None]
    assert [q.round for q in inbox.reader.questions(key)] == [1, 2]
    assert inbox.task(key).section == "finished"


@pytest.mark.rule("mrtr.inputs-before-retry")
async def test_a_round_is_sent_only_when_every_question_of_it_is_answered(
    inbox: Inbox, server: TaskScript
) -> None:
    server.queue(result(asks("s", a=APPROVE, b=OTHER)), result(DONE))
    key = (await inbox.engine.call("ci", "ask_first", "{}")).key
    first = await inbox.engine.answer(key, [inbox.accept(key, "a", '{"x": 1}')])
    assert first.state == "waiting"
    assert "b" in (first.message or "")
    assert inbox.states(key) == {"a": "queued", "b": "open"}
    assert len(server.of("tools/call")) == 1
    second = await inbox.engine.answer(key, [inbox.accept(key, "b", '{"y": 2}')])
    assert second.state == "acknowledged"
    sent = server.of("tools/call")[1].params["inputResponses"]
    assert {name: answer["content"] for name, answer in sent.items()} == {"a": {"x": 1}, "b": {"y": 2}}


@pytest.mark.rule("mrtr.nothing-asked-retry", "wire.rounds-bounded")
async def test_a_reply_that_asks_nothing_is_followed_slowly_and_survives(
    inbox: Inbox, server: TaskScript
) -> None:
    server.queue(result(asks("one")), result(asks("two")), result(DONE))
    outcome = await inbox.engine.call("ci", "slow_start", "{}")
    assert outcome.kind == "complete"
    assert [call.params.get("requestState") for call in server.of("tools/call")] == [None, "one", "two"]
    assert all("inputResponses" not in call.params for call in server.of("tools/call"))


@pytest.mark.rule("wire.rounds-bounded")
async def test_a_server_that_never_begins_is_given_up(tmp_path: Path, server: TaskScript) -> None:
    inbox = await Inbox.open(tmp_path, {"ci": server.url}, faster=1_000)
    server.on("tools/call", result(asks("again")))
    outcome = await inbox.engine.call("ci", "never", "{}")
    assert outcome.kind == "failed"
    assert len(server.of("tools/call")) == ROUNDS_MOST + 1
    assert asks_too_much(inbox.task(outcome.key))
    await inbox.engine.cancel(outcome.key)
    assert inbox.task(outcome.key).section == "finished"
    await inbox.close()


async def test_questions_that_can_not_be_read_end_the_call_with_the_fault(
    inbox: Inbox, server: TaskScript
) -> None:
    server.on("tools/call", result({**asks("s"), "inputRequests": {"a": 3}}))
    outcome = await inbox.engine.call("ci", "ask_first", "{}")
    assert outcome.kind == "failed"
    assert "can't be read" in (outcome.message or "")


@pytest.mark.rule("mrtr.server-checks-responses")
async def test_refused_answers_of_a_round_are_open_again(inbox: Inbox, server: TaskScript) -> None:
    server.queue(result(asks("s", a=APPROVE)), error(-32602, "a is wrong"), result(DONE))
    key = (await inbox.engine.call("ci", "ask_first", "{}")).key
    delivery = await inbox.engine.answer(key, [inbox.accept(key, "a")])
    assert delivery.state == "refused"
    assert inbox.states(key) == {"a": "refused"}
    assert "a is wrong" in (inbox.question(key, "a").refusal or "")
    assert inbox.task(key).section == "needs-you"
    assert (await inbox.engine.answer(key, [inbox.accept(key, "a")])).state == "acknowledged"
    assert server.of("tools/call")[2].params["requestState"] == "s"


async def test_a_round_for_a_server_that_is_down_waits_and_goes_on_when_it_is_back(
    inbox: Inbox, server: TaskScript
) -> None:
    server.on("tools/call", result(asks("s", a=APPROVE)))
    key = (await inbox.engine.call("ci", "ask_first", "{}")).key
    await server.stop()
    delivery = await inbox.engine.answer(key, [inbox.accept(key, "a")])
    assert delivery.state == "saved"
    assert inbox.states(key) == {"a": "queued"}
    server.on("tools/call", result(DONE))
    await server.start(server.port)
    async with Running(inbox.engine):
        await inbox.until(lambda: inbox.task(key).section == "finished")
    assert len(server.of("tools/call")) == 2


async def test_a_round_without_a_reply_is_unknown_and_repeated_with_the_same_answers(
    inbox: Inbox, server: TaskScript
) -> None:
    server.queue(result(asks("s", a=APPROVE)), reset(), result(DONE))
    key = (await inbox.engine.call("ci", "ask_first", "{}")).key
    delivery = await inbox.engine.answer(key, [inbox.accept(key, "a", '{"exact":  1.0}')])
    assert delivery.state == "unknown"
    assert inbox.task(key).section == "lost"
    assert (await inbox.engine.call_again(key)).kind == "complete"
    bodies = [call.body for call in server.of("tools/call")[1:]]
    assert [b'{"exact":  1.0}' in body for body in bodies] == [True, True]
    assert inbox.states(key) == {"a": "settled"}


@pytest.mark.rule("mrtr.client-may-leave")
async def test_a_call_may_be_given_up_while_it_waits_and_nothing_is_sent(
    inbox: Inbox, server: TaskScript
) -> None:
    server.on("tools/call", result(asks("s", a=APPROVE)))
    key = (await inbox.engine.call("ci", "ask_first", "{}")).key
    assert "told nothing" in await inbox.engine.cancel(key)
    assert inbox.task(key).section == "finished"
    assert inbox.states(key) == {"a": "withdrawn"}
    assert [request.method for request in server.received] == ["tools/call"]


async def test_a_call_in_flight_can_not_be_given_up(inbox: Inbox, server: TaskScript) -> None:
    go = asyncio.Event()
    server.on("tools/call", wait(go, result(handle("t1"))))
    calling = asyncio.create_task(inbox.engine.call("ci", "deploy", "{}"))
    await server.wait_for(1, "tools/call")
    (row,) = inbox.reader.list_rows()
    for verb in (inbox.engine.cancel, inbox.engine.call_again):
        with pytest.raises(EngineError):
            await verb(row.key)
    go.set()
    assert (await calling).kind == "task"


async def test_a_program_that_ends_during_a_call_leaves_it_unknown(
    tmp_path: Path, server: TaskScript
) -> None:
    inbox = await Inbox.open(tmp_path, {"ci": server.url})
    server.on("tools/call", wait(asyncio.Event(), drop()))
    calling = asyncio.create_task(inbox.engine.call("ci", "deploy", "{}"))
    await server.wait_for(1, "tools/call")
    (row,) = inbox.reader.list_rows()
    await inbox.close()
    with pytest.raises(asyncio.CancelledError):
        await calling
    later = await Inbox.open(tmp_path, {})
    assert later.task(row.key).state.tracking == "lost"
    assert "unknown" in (later.task(row.key).state.reason or "")
    await later.close()


@pytest.mark.rule("wire.closing-cancels-the-request")
async def test_a_screen_that_closes_does_not_end_its_call(inbox: Inbox, server: TaskScript) -> None:
    go = asyncio.Event()
    server.show("t1")
    server.on("tools/call", wait(go, result(handle("t1"))))
    calling = asyncio.create_task(inbox.engine.call("ci", "deploy", "{}"))
    await server.wait_for(1, "tools/call")
    calling.cancel()
    go.set()
    await inbox.until(lambda: inbox.reader.task(TaskKey("ci", "t1")))


@pytest.mark.parametrize("owner", ["1-0", "gone"])
async def test_a_call_whose_program_died_is_unknown_at_the_next_start(
    tmp_path: Path, inbox: Inbox, owner: str
) -> None:
    key = TaskKey("ci", "call-x")
    with inbox.other_program() as store:
        store.add_task(NewTask(key, "call", tool="deploy", state=TaskState(status="working"), owner=owner))
    later = await Inbox.open(tmp_path, {})
    assert later.task(key).section == "lost"
    assert "call_outcome_unknown" in later.facts(key)
    await later.close()


async def test_a_call_of_a_living_program_is_left_alone(
    tmp_path: Path, inbox: Inbox, server: TaskScript
) -> None:
    go = asyncio.Event()
    server.on("tools/call", wait(go, result(DONE)))
    calling = asyncio.create_task(inbox.engine.call("ci", "deploy", "{}"))
    await server.wait_for(1, "tools/call")
    later = await Inbox.open(tmp_path, {})
    assert [row.state.tracking for row in later.reader.list_rows()] == ["active"]
    go.set()
    assert (await calling).kind == "complete"
    await later.close()


async def test_a_round_claimed_by_a_program_that_died_before_sending_goes_on(
    inbox: Inbox, server: TaskScript
) -> None:
    """The owner stands at the call before it is sent; answers claimed without that were provably not sent."""
    server.queue(result(asks("s", a=APPROVE)), result(DONE))
    key = (await inbox.engine.call("ci", "ask_first", "{}")).key
    await server.stop()
    await inbox.engine.answer(key, [inbox.accept(key, "a")])
    with inbox.other_program() as store:
        store.claim([inbox.question(key, "a").id], owner="1-0", dead=lambda _: False)
    await server.start(server.port)
    async with Running(inbox.engine):
        await inbox.until(lambda: inbox.task(key).section == "finished")
    assert len(server.of("tools/call")) == 2


async def test_a_call_asked_nothing_goes_on_after_a_restart(tmp_path: Path, server: TaskScript) -> None:
    inbox = await Inbox.open(tmp_path, {"ci": server.url})
    key = TaskKey("ci", "call-x")
    state = TaskState(status="input_required", round=1, request_state="s")
    with inbox.other_program() as store:
        params = '{"name": "slow_start", "arguments": {}}'
        store.add_task(NewTask(key, "call", tool="slow_start", params_json=params, state=state))
    server.on("tools/call", result(DONE))
    async with Running(inbox.engine):
        await inbox.until(lambda: inbox.task(key).section == "finished")
    assert server.of("tools/call")[0].params["requestState"] == "s"
    await inbox.close()


async def test_two_programs_send_a_round_once(inbox: Inbox, server: TaskScript, tmp_path: Path) -> None:
    server.on("tools/call", result(asks("s", a=APPROVE)))
    key = (await inbox.engine.call("ci", "ask_first", "{}")).key
    second = await Inbox.open(tmp_path, {})
    await server.stop()
    await inbox.engine.answer(key, [inbox.accept(key, "a")])
    server.on("tools/call", result(DONE))
    await server.start(server.port)
    await asyncio.gather(inbox.engine._calls.go_on(key), second.engine._calls.go_on(key))
    await second.close()
    assert len(server.of("tools/call")) == 2
    assert inbox.task(key).section == "finished"


@pytest.mark.rule("progress.message-readable", "progress.optional")
async def test_progress_is_told_while_the_call_is_open(inbox: Inbox, server: TaskScript) -> None:
    async def reply(exchange: Exchange) -> None:
        token = exchange.request.params["_meta"]["progressToken"]
        said = notification(
            "notifications/progress", {"progressToken": token, "progress": 1, "message": "half way"}
        )
        await stream(said, response(DONE))(exchange)

    server.on("tools/call", reply)
    told: list[str] = []
    await inbox.engine.call("ci", "echo", "{}", on_progress=told.append)
    assert told == ["half way"]


@pytest.mark.parametrize("arguments", ["", "[]", "{", "1", "NaN", '{"a": NaN}', "{" * 5000])
async def test_arguments_that_are_no_json_object_are_refused_before_anything_is_written(
    inbox: Inbox, server: TaskScript, arguments: str
) -> None:
    with pytest.raises(EngineError) as caught:
        await inbox.engine.call("ci", "echo", arguments)
    assert caught.value.failure == "invalid"
    assert inbox.reader.list_rows() == []
    assert server.received == []


async def test_a_server_that_is_not_configured_is_named_and_nothing_is_written(inbox: Inbox) -> None:
    with pytest.raises(EngineError, match="prod") as caught:
        await inbox.engine.call("prod", "echo", "{}")
    assert caught.value.failure == "unknown-server"
    assert inbox.reader.list_rows() == []


async def test_the_same_handle_for_two_calls_is_one_task(inbox: Inbox, server: TaskScript) -> None:
    server.show("t1")
    server.on("tools/call", result(handle("t1")))
    keys = {(await inbox.engine.call("ci", "deploy", "{}")).key for _ in range(2)}
    assert keys == {TaskKey("ci", "t1")}
    assert len(inbox.reader.list_rows()) == 1


async def test_a_listener_of_progress_that_fails_leaves_no_call_that_seems_to_run(
    inbox: Inbox, server: TaskScript
) -> None:
    async def reply(exchange: Exchange) -> None:
        token = exchange.request.params["_meta"]["progressToken"]
        said = notification("notifications/progress", {"progressToken": token, "progress": 1, "message": "x"})
        await stream(said, response(DONE))(exchange)

    server.on("tools/call", reply)

    def broken(_: str) -> None:
        raise RuntimeError("a bug of a screen")

    with pytest.raises(RuntimeError):
        await inbox.engine.call("ci", "echo", "{}", on_progress=broken)
    assert [row.section for row in inbox.reader.list_rows()] == ["lost"]


async def test_a_round_that_is_being_sent_is_not_sent_twice_and_all_hear_of_it(
    inbox: Inbox, server: TaskScript
) -> None:
    server.on("tools/call", result(asks("s", a=APPROVE)))
    key = (await inbox.engine.call("ci", "ask_first", "{}")).key
    go = asyncio.Event()
    server.on("tools/call", wait(go, result(DONE)))
    answering = asyncio.create_task(inbox.engine.answer(key, [inbox.accept(key, "a")]))
    await server.wait_for(2, "tools/call")
    again = asyncio.create_task(inbox.engine._calls.go_on(key))
    await asyncio.sleep(0.05)
    go.set()
    assert (await answering).state == "acknowledged"
    assert getattr(await again, "kind", None) == "complete"
    assert len(server.of("tools/call")) == 2


async def test_a_program_that_ends_during_a_round_leaves_it_unknown_with_its_answers(
    tmp_path: Path, server: TaskScript
) -> None:
    inbox = await Inbox.open(tmp_path, {"ci": server.url})
    server.on("tools/call", result(asks("s", a=APPROVE)))
    key = (await inbox.engine.call("ci", "ask_first", "{}")).key
    server.on("tools/call", wait(asyncio.Event(), drop()))
    answering = asyncio.create_task(inbox.engine.answer(key, [inbox.accept(key, "a")]))
    await server.wait_for(2, "tools/call")
    await inbox.close()
    with pytest.raises(asyncio.CancelledError):
        await answering
    later = await Inbox.open(tmp_path, {})
    assert later.task(key).section == "lost"
    assert later.question(key, "a").response_json
    server.on("tools/call", result(DONE))
    assert (await later.engine.call_again(key)).kind == "complete"
    await later.close()
