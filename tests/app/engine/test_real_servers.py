"""The engine against servers that share none of its code: the embedded service, and fastmcp-tasks."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fakes.demo import DemoProcess, demo
from fakes.inbox import Inbox, Running
from fakes.peers import fastmcp_json_url, fastmcp_url

from app.config import Abilities, set_abilities
from app.engine.commands import Answer
from app.forms.roots import roots_json
from app.forms.sampling import SamplingForm
from storage.records import TaskKey

__all__ = ["demo", "fastmcp_json_url", "fastmcp_url"]


async def ask_for(inbox: Inbox, tool: str, **arguments: Any) -> TaskKey:
    """Call a tool, and return the task once it needs somebody or is over."""
    outcome = await inbox.engine.call("real", tool, json.dumps(arguments))
    if outcome.kind == "task":
        await inbox.until(lambda: _is_waiting(inbox, outcome.key))
    return outcome.key


def _is_waiting(inbox: Inbox, key: TaskKey) -> bool:
    return inbox.task(key).section in ("needs-you", "finished")


async def over(inbox: Inbox, key: TaskKey) -> dict[str, Any]:
    """Return the result of a task once it is over."""
    await inbox.until(lambda: inbox.task(key).section == "finished")
    return json.loads(inbox.task(key).state.result_json or "{}")


@pytest.fixture
async def own(tmp_path: Path, demo: DemoProcess) -> AsyncIterator[Inbox]:
    """An inbox on the embedded service, running."""
    inbox = await Inbox.open(tmp_path / "home", {"real": demo.url})
    async with Running(inbox.engine):
        yield inbox
    await inbox.close()


async def test_a_question_of_the_service_is_answered_and_the_job_goes_on(own: Inbox) -> None:
    key = await ask_for(own, "generate_report", size="small")
    assert own.states(key) == {"approve_outline": "open"}
    await own.engine.answer(key, [own.accept(key, "approve_outline", '{"approved": true}')])
    result = await over(own, key)
    assert result["structuredContent"] == {"size": "small", "approved": True}
    assert own.states(key) == {"approve_outline": "settled"}


async def test_a_refused_answer_of_the_service_is_asked_again_with_its_reason(own: Inbox) -> None:
    key = await ask_for(own, "generate_report", size="small")
    delivery = await own.engine.answer(key, [own.accept(key, "approve_outline", '{"approved": "yes"}')])
    assert delivery.state == "refused"
    assert own.states(key) == {"approve_outline": "refused"}
    await own.engine.answer(key, [own.accept(key, "approve_outline", '{"approved": false}')])
    assert (await over(own, key))["structuredContent"]["approved"] is False


async def test_the_service_asks_before_its_task_exists(own: Inbox) -> None:
    key = await ask_for(own, "ask_first")
    assert own.task(key).kind == "call"
    delivery = await own.engine.answer(key, [own.accept(key, "who", '{"name": "Ann"}')])
    assert delivery.outcome is not None
    assert "Ann" in str(await over(own, delivery.outcome.key))
    assert own.task(key).key == delivery.outcome.key


async def test_two_questions_are_answered_one_after_the_other(own: Inbox) -> None:
    key = await ask_for(own, "two_questions")
    first, second = own.reader.questions(key)
    await own.engine.answer(key, [Answer(first, "decline")])
    await own.until(lambda: own.states(key)[first.key] == "settled")
    assert own.states(key)[second.key] == "open"
    assert own.task(key).section == "needs-you"
    await own.engine.answer(key, [Answer(second, "cancel")])
    await over(own, key)


@pytest.mark.rule("tasks.failed-is-json-rpc")
@pytest.mark.parametrize(
    ("tool", "status", "is_error"), [("flaky_job", "failed", False), ("broken_tool", "completed", True)]
)
async def test_how_a_job_of_the_service_fails_is_kept(
    own: Inbox, tool: str, status: str, is_error: bool
) -> None:
    key = await ask_for(own, tool)
    await over(own, key)
    state = own.task(key).state
    assert (state.status, state.is_error, state.error_json is not None) == (status, is_error, not is_error)


async def test_a_job_of_the_service_is_cancelled(own: Inbox) -> None:
    outcome = await own.engine.call("real", "long_build", "{}")
    await own.engine.cancel(outcome.key)
    await over(own, outcome.key)
    assert own.task(outcome.key).state.status == "cancelled"


async def test_the_service_killed_with_an_answer_under_way_gets_it_when_it_is_back(
    own: Inbox, demo: DemoProcess
) -> None:
    key = await ask_for(own, "generate_report", size="small")
    demo.kill()
    delivery = await own.engine.answer(key, [own.accept(key, "approve_outline", '{"approved": true}')])
    assert delivery.state == "saved"
    await own.until(lambda: own.task(key).state.problem)
    demo.restart()
    assert (await over(own, key))["structuredContent"] == {"size": "small", "approved": True}
    assert own.facts(key).count("question_asked") == 1
    assert own.facts(key).count("answer_acknowledged") == 1


@pytest.fixture(params=["fastmcp_url", "fastmcp_json_url"])
async def foreign(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Inbox]:
    """An inbox on fastmcp-tasks, in each way it replies, running."""
    inbox = await Inbox.open(tmp_path / "home", {"real": request.getfixturevalue(request.param)})
    async with Running(inbox.engine):
        yield inbox
    await inbox.close()


async def test_answers_reach_fastmcp_tasks_as_they_were_given(foreign: Inbox) -> None:
    key = await ask_for(foreign, "ask_two")
    first, second = foreign.reader.questions(key)
    answers = [Answer(q, "accept", json.dumps({"value": q.key})) for q in (first, second)]
    delivery = await foreign.engine.answer(key, answers)
    assert delivery.state == "acknowledged"
    await foreign.until(lambda: len(foreign.reader.questions(key)) == 3 and foreign.task(key).open_questions)
    third = foreign.reader.questions(key)[-1]
    await foreign.engine.answer(key, [Answer(third, "accept", '{"value": "third"}')])
    assert "third" in str(await over(foreign, key))
    assert [q.state for q in foreign.reader.questions(key)] == ["settled"] * 3


@pytest.mark.rule("sampling.human-in-the-loop", "wire.undeclared-questions")
async def test_questions_of_fastmcp_that_are_not_answered_here_leave_cancelling(foreign: Inbox) -> None:
    key = await ask_for(foreign, "ask_sampling_roots")
    methods = {q.method for q in foreign.reader.questions(key)}
    assert methods == {"sampling/createMessage", "roots/list"}
    await foreign.engine.cancel(key)
    await foreign.until(lambda: foreign.task(key).state.status == "cancelled")
    assert set(foreign.states(key).values()) == {"withdrawn"}


@pytest.mark.rule("sampling.declared", "roots.declared", "roots.file-uri")
async def test_fastmcp_takes_a_reply_and_a_list_of_folders_where_a_person_allowed_both(
    foreign: Inbox, tmp_path: Path
) -> None:
    allowed = Abilities(sampling=True, roots=(str(tmp_path),))
    set_abilities(foreign.paths.servers_file, "real", lambda _: allowed)
    await foreign.engine.reload_servers()
    key = await ask_for(foreign, "ask_sampling_roots")
    asked = {q.method: q for q in foreign.reader.questions(key)}
    sampling, folders = asked["sampling/createMessage"], asked["roots/list"]
    form = SamplingForm(json.loads(sampling.request_json)["params"])
    reply = Answer(sampling, "accept", form.fill({"text": "Hello"}).content_json)
    listed = Answer(folders, "accept", roots_json([str(tmp_path)]))
    await foreign.engine.answer(key, [reply, listed])
    said = str(await over(foreign, key))
    assert "'llm': 'CreateMessageResult'" in said
    assert "'roots': 'ListRootsResult'" in said


async def test_a_task_of_fastmcp_waits_on_after_a_refusal_and_can_be_cancelled(foreign: Inbox) -> None:
    set_abilities(foreign.paths.servers_file, "real", lambda _: Abilities(sampling=True))
    await foreign.engine.reload_servers()
    key = await ask_for(foreign, "ask_sampling_roots")
    sampling = next(q for q in foreign.reader.questions(key) if q.method == "sampling/createMessage")
    await foreign.engine.refuse(sampling)
    for _ in range(3):
        await foreign.engine.refresh(key)
    states = {q.method: q.state for q in foreign.reader.questions(key)}
    assert states == {"sampling/createMessage": "withdrawn", "roots/list": "open"}
    assert foreign.task(key).state.status == "input_required"
    await foreign.engine.cancel(key)
    await foreign.until(lambda: foreign.task(key).state.status == "cancelled")


async def test_fastmcp_asks_before_answering_without_a_task(foreign: Inbox) -> None:
    key = await ask_for(foreign, "mrtr_sync")
    delivery = await foreign.engine.answer(key, [foreign.accept(key, "who", '{"name": "Ann"}')])
    assert delivery.outcome is not None
    assert delivery.outcome.kind == "complete"
    assert "state=opaque-state" in (delivery.outcome.result_json or "")


@pytest.mark.rule("tasks.completed-holds-that-result", "wire.is-error-completed")
@pytest.mark.parametrize(
    ("tool", "status", "is_error"),
    [
        ("quick", "completed", False),
        ("required_task", "completed", False),
        ("boom", "completed", True),
        ("tool_error", "completed", True),
        ("returns_is_error", "completed", True),
        ("protocol_error", "failed", False),
        ("rich", "completed", False),
        ("plain_sync", "completed", False),
    ],
)
async def test_each_way_a_tool_of_fastmcp_ends_is_kept(
    foreign: Inbox, tool: str, status: str, is_error: bool
) -> None:
    key = await ask_for(foreign, tool)
    await over(foreign, key)
    state = foreign.task(key).state
    assert (state.status, state.is_error) == (status, is_error)
