"""What can be proved of an answer later: who gave it, when, to what, what was sent, and that it arrived."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from fakes.inbox import Inbox
from fakes.mcp_server import error, http_reply, result
from fakes.task_script import APPROVE, OTHER, TaskScript, handle

from app.engine.answering import system_user
from storage.records import TaskKey

KEY = TaskKey("ci", "t1")
EXACT = '{"ok":  true, "n": 1.10, "who": "é\\u00e9\\u0000", "big": 12345678901234567890123}'
STEPS = ("answer_", "question_")


def told(inbox: Inbox, key: TaskKey = KEY) -> list[tuple[str, dict[str, Any]]]:
    """Return the facts about questions and answers, with what they say."""
    events = inbox.reader.events(key)
    return [(one.kind, json.loads(one.data_json)) for one in events if one.kind.startswith(STEPS)]


@pytest.fixture
async def asked(inbox: Inbox, server: TaskScript) -> Inbox:
    server.ask("t1", q=APPROVE)
    await inbox.engine.track("ci", "t1")
    return inbox


async def test_an_answer_is_in_the_log_with_who_when_what_was_asked_what_was_sent_and_its_acknowledgement(
    asked: Inbox, server: TaskScript
) -> None:
    question = asked.question(KEY)
    await asked.engine.answer(KEY, [asked.accept(KEY, content=EXACT)])
    server.show("t1")
    await asked.engine.refresh(KEY)

    given = [one for one in told(asked) if one[0].startswith("answer_")]
    assert [kind for kind, _ in given] == [
        "answer_queued",
        "answer_sent",
        "answer_acknowledged",
        "answer_settled",
    ]
    first = given[0][1]
    assert first["by"] == system_user()
    assert (first["key"], first["question"], first["fingerprint"]) == ("q", question.id, question.fingerprint)
    assert first["request"] == APPROVE
    (update,) = server.updates
    assert first["response"].encode() in update.body
    assert first["response"] == f'{{"action": "accept", "content": {EXACT}}}'
    assert first["digest"] == f"sha256:{hashlib.sha256(first['response'].encode()).hexdigest()}"
    assert {(data["question"], data["digest"]) for _, data in given} == {(question.id, first["digest"])}
    assert all("response" not in data and "request" not in data for _, data in given[1:])
    times = [event.at for event in asked.reader.events(KEY)]
    assert times == sorted(times)
    assert all(1_700_000_000_000 < at < 4_000_000_000_000 for at in times)


async def test_what_became_of_an_answer_that_was_in_vain_is_in_the_log_too(
    asked: Inbox, server: TaskScript
) -> None:
    server.on("tasks/update", error(-32602, "not today"))
    await asked.engine.answer(KEY, [asked.accept(KEY)])
    server.show("t1", "completed", result={"content": []})
    await asked.engine.answer(KEY, [asked.accept(KEY, content='{"ok": false}')])
    kinds = [kind for kind, _ in told(asked)]
    assert kinds == [
        "question_asked",
        "answer_queued",
        "answer_sent",
        "answer_refused",
        "answer_queued",
        "question_withdrawn",
    ]
    data = [data for _, data in told(asked)]
    assert data[3]["digest"] == data[1]["digest"] != data[4]["digest"] == data[5]["digest"]
    assert "not today" in data[3]["reason"]
    assert data[5]["unsentAnswer"] is True


async def test_an_answer_sent_again_is_logged_with_who_wanted_that(asked: Inbox, server: TaskScript) -> None:
    await asked.engine.answer(KEY, [asked.accept(KEY)])
    await asked.engine.send_again(asked.question(KEY).id)
    again = [data for kind, data in told(asked) if kind == "answer_queued_again"]
    assert [one["by"] for one in again] == [system_user()]
    assert again[0]["digest"] == asked.question(KEY).digest
    assert asked.facts(KEY).count("answer_acknowledged") == 2


def asks(state: str, **requests: Any) -> dict[str, Any]:
    return {"resultType": "input_required", "inputRequests": requests, "requestState": state}


@pytest.mark.parametrize(
    ("reply", "fact"),
    [
        (result({"resultType": "complete", "content": []}), "answer_acknowledged"),
        (result(handle("t9")), "answer_acknowledged"),
        (result(asks("s2", b=OTHER)), "answer_acknowledged"),
        (error(-32603, "no"), "answer_settled"),
        (error(-32602, "no"), "answer_refused"),
        (http_reply(200, b"{}"), "answer_settled"),
    ],
)
async def test_the_reply_to_a_call_acknowledges_the_answers_that_went_with_it(
    inbox: Inbox, server: TaskScript, reply: Any, fact: str
) -> None:
    server.queue(result(asks("s", a=APPROVE)), reply)
    key = (await inbox.engine.call("ci", "ask_first", "{}")).key
    await inbox.engine.answer(key, [inbox.accept(key, "a", EXACT)])
    given = [one for one in told(inbox, key) if one[0].startswith("answer_")]
    assert [kind for kind, _ in given] == ["answer_queued", "answer_sent", fact]
    assert len({data["digest"] for _, data in given}) == 1
    assert given[0][1]["response"].encode() in server.of("tools/call")[1].body
    if fact == "answer_settled":
        assert given[2][1]["acknowledged"] is False


async def test_a_call_that_is_given_up_says_which_answers_never_went_out(
    inbox: Inbox, server: TaskScript
) -> None:
    server.queue(result(asks("s", a=APPROVE, b=APPROVE)))
    key = (await inbox.engine.call("ci", "ask_first", "{}")).key
    await inbox.engine.answer(key, [inbox.accept(key, "a")])
    await inbox.engine.cancel(key)
    kind, data = told(inbox, key)[-1]
    assert (kind, data["key"], data["unsentAnswer"]) == ("question_withdrawn", "a", True)


async def test_forgetting_a_task_keeps_its_answers_in_the_log(asked: Inbox, server: TaskScript) -> None:
    await asked.engine.answer(KEY, [asked.accept(KEY, content=EXACT)])
    before = asked.reader.events(KEY)
    await asked.engine.forget(KEY)
    after = asked.reader.events(KEY)
    assert after[:-1] == before
    assert after[-1].kind == "forgotten"


def test_who_answers_is_not_what_anybody_says(monkeypatch: pytest.MonkeyPatch) -> None:
    before = system_user()
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "ceo")
    assert system_user() == before != "ceo"
