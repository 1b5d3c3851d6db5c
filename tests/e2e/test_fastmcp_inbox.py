"""The inbox against fastmcp-tasks: every one of its tools, each outcome in the store and on the screen."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from fakes.running_inbox import Inbox, home, inbox

from app.engine.commands import Answer, CallOutcome
from storage.records import TaskRecord

FORM = {
    "email": "ada@example.com",
    "note": "all good",
    "color": "green",
    "legacy": "Beta",
    "tags": ["x", "z"],
}


@pytest_asyncio.fixture
async def box(tmp_path: Path, fastmcp_url: str) -> AsyncIterator[Inbox]:
    async with inbox(home(tmp_path, peer=fastmcp_url)) as opened:
        yield opened


async def call(box: Inbox, tool: str, arguments: Mapping[str, Any] | None = None) -> CallOutcome:
    return await box.engine.call("peer", tool, json.dumps(arguments or {}))


async def ended(box: Inbox, outcome: CallOutcome) -> TaskRecord:
    return await box.task(outcome.key, lambda t: t.state.tracking == "ended")


def text_of(record: TaskRecord) -> str:
    assert record.state.result_json is not None
    return "\n".join(
        b["text"] for b in json.loads(record.state.result_json)["content"] if b["type"] == "text"
    )


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("quick", {"x": 3}, "quick 3"),
        ("required_task", {"x": 4}, "done 4"),
        ("slow", {"steps": 3, "pause": 0.3}, "steps"),
    ],
)
async def test_a_task_that_completes(box: Inbox, tool: str, arguments: dict[str, Any], text: str) -> None:
    outcome = await call(box, tool, arguments)
    assert outcome.kind == "task"
    record = await ended(box, outcome)
    assert (record.section, record.state.status, record.tool) == ("finished", "completed", tool)
    assert text in text_of(record)
    await box.open(record.key)
    await box.shows(tool, "completed", text, "Finished 1")


@pytest.mark.rule("tasks.status-message-shown", "wire.progress")
async def test_progress_of_a_task_is_its_status_message(box: Inbox) -> None:
    outcome = await call(box, "slow", {"steps": 200, "pause": 0.4})  # until it is cancelled
    record = await box.task(outcome.key, lambda t: bool(t.state.status_message))
    assert record.section == "running"
    assert record.state.status_message is not None
    assert record.state.status_message.startswith("step ")
    await box.open(record.key)
    await box.shows("Running 1", "step ")
    await box.engine.cancel(outcome.key)
    await ended(box, outcome)


@pytest.mark.rule("elicitation.who-asks-is-clear", "elicitation.server-indicated", "elicitation.what-and-why")
async def test_a_form_is_asked_once_and_its_answer_arrives(box: Inbox) -> None:
    outcome = await call(box, "ask_form")
    (question,) = await box.questions(outcome.key)
    await box.open(outcome.key)
    await box.shows(
        "Needs you 1", "peer asks", "Approve the deployment", "Email", "Accept", "Decline", "Dismiss"
    )
    delivery = await box.answer(question, FORM)
    assert delivery.state == "acknowledged"
    record = await ended(box, outcome)
    assert "action=accept" in text_of(record)
    for part in (
        "'email': 'ada@example.com'",
        "'replicas': 3",
        "'env': 'stg'",
        "'dry_run': True",
        "'legacy': 'b'",
    ):
        assert part in text_of(record)
    assert "site" not in text_of(record), "what nobody touched is not sent"
    (asked,) = box.reader.questions(outcome.key)
    assert asked.state == "settled"
    await box.open(record.key)
    await box.shows("Finished 1", "action=accept")


@pytest.mark.rule("elicitation.three-actions")
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_declining_and_dismissing_are_two_answers(box: Inbox, action: Any) -> None:
    outcome = await call(box, "ask_form")
    (question,) = await box.questions(outcome.key)
    await box.engine.answer(question.task, [Answer(question, action)])
    record = await ended(box, outcome)
    assert f"action={action} content=None" in text_of(record)


async def test_two_questions_then_a_third_under_a_used_name(box: Inbox) -> None:
    outcome = await call(box, "ask_two")
    first, second = await box.questions(outcome.key, 2)
    await box.open(outcome.key)
    await box.shows("First?", "Second?", "2 questions")
    await box.answer(first, {"value": "one"})
    await box.answer(second, {"value": "two"})
    await box.until(
        lambda: [q for q in box.reader.questions(outcome.key) if q.is_open and "Third?" in q.request_json],
        "the third question",
    )
    (third,) = [q for q in box.reader.questions(outcome.key) if q.is_open]
    await box.answer(third, {"value": "three"})
    record = await ended(box, outcome)
    assert "three" in text_of(record)
    assert "state=leg2" in text_of(record)
    assert [q.state for q in box.reader.questions(outcome.key)] == ["settled"] * 3


async def test_a_question_in_url_mode(box: Inbox) -> None:
    outcome = await call(box, "ask_url")
    (question,) = await box.questions(outcome.key)
    await box.open(outcome.key)
    await box.shows("Please authorise", "https://example.com/auth?x=1", "Decline", "Dismiss")
    assert (await box.answer(question, {})).state == "acknowledged"
    assert text_of(await ended(box, outcome)) == "action=accept"


async def test_sampling_and_roots_are_shown_as_not_answered_here_and_the_task_can_be_cancelled(
    box: Inbox,
) -> None:
    outcome = await call(box, "ask_sampling_roots")
    questions = await box.questions(outcome.key, 2)
    assert {q.method for q in questions} == {"sampling/createMessage", "roots/list"}
    await box.open(outcome.key)
    await box.shows("Needs you 1", "does not answer", "Cancel task")
    await box.engine.cancel(outcome.key)
    record = await ended(box, outcome)
    assert record.state.status == "cancelled"
    await box.open(record.key)
    await box.shows("cancelled")


@pytest.mark.parametrize(
    ("tool", "text"),
    [("tool_error", "visible tool error"), ("returns_is_error", "bad input"), ("boom", "")],
)
async def test_a_result_that_is_an_error_is_a_completed_task(box: Inbox, tool: str, text: str) -> None:
    record = await ended(box, await call(box, tool))
    assert (record.state.status, record.state.is_error) == ("completed", True)
    assert text in text_of(record)
    await box.open(record.key)
    await box.shows("Finished 1", tool, text)


async def test_a_jsonrpc_error_is_a_failed_task(box: Inbox) -> None:
    record = await ended(box, await call(box, "protocol_error"))
    assert record.state.status == "failed"
    assert record.state.error_json is not None
    error = json.loads(record.state.error_json)
    assert (error["code"], error["message"]) == (-32603, "API rate limit exceeded")
    await box.open(record.key)
    await box.shows("failed", "API rate limit exceeded", "-32603")


async def test_several_kinds_of_content_with_hostile_text_among_them(box: Inbox) -> None:
    record = await ended(box, await call(box, "rich"))
    await box.open(record.key)
    shown = await box.shows("line1", "line2 ☃ ␛[31mred", "image/png", "5 bytes", "file:///x", '"ok": true')
    assert "\x1b" not in shown


async def test_a_question_before_the_task_is_a_call_that_waits(box: Inbox) -> None:
    outcome = await call(box, "mrtr_sync")
    assert outcome.kind == "input_required"
    assert outcome.key.id.startswith("call-")
    (question,) = await box.questions(outcome.key)
    await box.open(outcome.key)
    await box.shows("Needs you 1", "Your name?")
    delivery = await box.answer(question, {"name": "Ada"})
    assert delivery.outcome is not None
    assert delivery.outcome.kind == "complete"
    record = await ended(box, outcome)
    assert text_of(record) == "hello {'name': 'Ada'} state=opaque-state"
    await box.open(record.key)
    await box.shows("Finished 1", "hello {'name': 'Ada'}")


async def test_a_plain_tool_answers_at_once(box: Inbox) -> None:
    heard: list[str] = []
    outcome = await box.engine.call("peer", "plain_sync", "{}", on_progress=heard.append)
    assert outcome.kind == "complete"
    assert heard
    record = await ended(box, outcome)
    assert text_of(record) == "sync done"


async def test_what_the_server_forgot_is_lost_and_stays_here(box: Inbox) -> None:
    from app.engine.commands import EngineError

    with pytest.raises(EngineError) as refusal:
        await box.engine.track("peer", "no-such-task")
    assert refusal.value.failure == "unknown-task"
    assert "peer" in refusal.value.message
    assert box.reader.counts()["lost"] == 0
