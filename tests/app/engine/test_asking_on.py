"""A server that asks without end is stopped, and a person has the choice: let it ask on, or cancel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes.inbox import Inbox, Running
from fakes.mcp_server import result
from fakes.task_script import APPROVE, TaskScript

from app.engine.answering import system_user
from app.engine.call_writes import ROUNDS_MOST
from app.engine.commands import EngineError, asks_too_much
from app.engine.reconcile import QUESTIONS_PER_TASK, VERSIONS_PER_KEY
from storage.records import TaskKey

KEY = TaskKey("ci", "t1")
DONE: dict[str, Any] = {"resultType": "complete", "content": []}


def version(n: int) -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"message": f"Number {n}?"}}


def asks(state: str, **requests: Any) -> dict[str, Any]:
    return {"resultType": "input_required", "inputRequests": requests, "requestState": state}


def texts(inbox: Inbox) -> set[str]:
    return {json.loads(q.request_json)["params"]["message"] for q in inbox.reader.questions(KEY) if q.is_open}


@pytest.mark.rule("wire.asked-again")
async def test_a_task_that_asks_anew_at_every_look_goes_on_when_a_person_lets_it(
    inbox: Inbox, server: TaskScript
) -> None:
    server.ask("t1", q=version(0))
    await inbox.engine.track("ci", "t1")
    for n in range(1, VERSIONS_PER_KEY):
        server.ask("t1", q=version(n))
        await inbox.engine.refresh(KEY)
    assert not asks_too_much(inbox.task(KEY))
    server.ask("t1", q=version(VERSIONS_PER_KEY))
    await inbox.engine.refresh(KEY)
    assert texts(inbox) == set()
    assert asks_too_much(inbox.task(KEY))

    assert "may ask on" in await inbox.engine.let_ask(KEY)

    assert texts(inbox) == {f"Number {VERSIONS_PER_KEY}?"}
    assert inbox.task(KEY).state.problem is None
    assert not asks_too_much(inbox.task(KEY))
    allowed = [one for one in inbox.reader.events(KEY) if one.kind == "asking_allowed"]
    assert [json.loads(one.data_json) for one in allowed] == [{"by": system_user()}]
    assert (await inbox.engine.answer(KEY, [inbox.accept(KEY)])).state == "acknowledged"
    for n in range(VERSIONS_PER_KEY + 1, 2 * VERSIONS_PER_KEY + 1):
        server.ask("t1", q=version(n))
        await inbox.engine.refresh(KEY)
    assert asks_too_much(inbox.task(KEY)), "the next bound stops it again"


async def test_a_task_with_too_many_questions_gets_the_rest_when_a_person_lets_it(
    inbox: Inbox, server: TaskScript
) -> None:
    server.ask("t1", **{f"k{n:05}": APPROVE for n in range(QUESTIONS_PER_TASK + 50)})
    await inbox.engine.track("ci", "t1")
    assert inbox.task(KEY).open_questions == QUESTIONS_PER_TASK
    await inbox.engine.let_ask(KEY)
    assert inbox.task(KEY).open_questions == QUESTIONS_PER_TASK + 50


async def test_only_a_server_that_was_stopped_is_let_ask_on(inbox: Inbox, server: TaskScript) -> None:
    server.ask("t1", q=APPROVE)
    await inbox.engine.track("ci", "t1")
    for key in (KEY, TaskKey("ci", "none")):
        with pytest.raises(EngineError) as caught:
            await inbox.engine.let_ask(key)
        assert caught.value.failure in ("closed", "unknown-task")
    assert inbox.task(KEY).leave == 0
    server.show("t1", "completed", result={"content": []})
    await inbox.engine.refresh(KEY)
    with pytest.raises(EngineError):
        await inbox.engine.let_ask(KEY)


@pytest.mark.rule("wire.rounds-bounded")
async def test_a_call_that_asks_nothing_without_end_is_repeated_again_when_a_person_lets_it(
    tmp_path: Path, server: TaskScript
) -> None:
    inbox = await Inbox.open(tmp_path, {"ci": server.url}, faster=1_000)
    server.on("tools/call", result({"resultType": "input_required", "requestState": "again"}))
    outcome = await inbox.engine.call("ci", "never", "{}")
    assert "Let it ask on" in (outcome.message or "")
    assert inbox.task(outcome.key).section == "lost"
    server.on("tools/call", result(DONE))
    async with Running(inbox.engine):
        assert len(server.of("tools/call")) == ROUNDS_MOST + 1, "nothing goes on by itself"
        await inbox.engine.let_ask(outcome.key)
        await inbox.until(lambda: inbox.task(outcome.key).section == "finished")
    assert len(server.of("tools/call")) == ROUNDS_MOST + 2
    await inbox.close()


@pytest.mark.rule("wire.rounds-bounded")
async def test_a_call_that_asks_in_every_round_shows_the_next_question_when_a_person_lets_it(
    inbox: Inbox, server: TaskScript
) -> None:
    server.on("tools/call", result(asks("s", a=APPROVE)))
    key = (await inbox.engine.call("ci", "ask_first", "{}")).key
    for _ in range(ROUNDS_MOST - 1):
        assert (await inbox.engine.answer(key, [inbox.accept(key, "a")])).state == "acknowledged"
    last = await inbox.engine.answer(key, [inbox.accept(key, "a")])
    assert "Let it ask on" in (last.message or "")
    assert inbox.task(key).section == "lost"
    await inbox.engine.reload_servers()
    assert inbox.task(key).section == "lost", "what stops a call is not its server's absence"

    await inbox.engine.let_ask(key)

    assert inbox.task(key).section == "needs-you"
    server.on("tools/call", result(DONE))
    assert (await inbox.engine.answer(key, [inbox.accept(key, "a")])).state == "acknowledged"
    assert inbox.task(key).section == "finished"


async def test_a_call_that_was_stopped_can_be_given_up(inbox: Inbox, server: TaskScript) -> None:
    server.on("tools/call", result(asks("s", a=APPROVE)))
    key = (await inbox.engine.call("ci", "ask_first", "{}")).key
    for _ in range(ROUNDS_MOST):
        await inbox.engine.answer(key, [inbox.accept(key, "a")])
    assert asks_too_much(inbox.task(key))
    await inbox.engine.cancel(key)
    assert inbox.task(key).section == "finished"
    assert inbox.states(key) == {"a": "withdrawn"}
