"""Secrets in answers: sent to the letter, and kept nowhere once the server has them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from fakes.inbox import Inbox, Running
from fakes.mcp_server import error, reset, result
from fakes.task_script import TaskScript, handle

from app.engine.commands import EngineError
from app.wiring import start_log
from storage.records import TaskKey

KEY = TaskKey("ci", "t1")
SECRET = "hush-4711-hush"
CONTENT = f'{{"user": "ada", "password": "{SECRET}", "n": 1.50}}'
KEPT = '{"action": "accept", "content": {"user": "ada", "password": "sent, not kept", "n": 1.50}}'
LOGIN: dict[str, Any] = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Sign in, please.",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "user": {"type": "string"},
                "password": {"type": "string"},
                "n": {"type": "number"},
            },
        },
    },
}


def files_with(folder: Path, text: str = SECRET) -> list[str]:
    """Return the names of the installation's files, its log among them, that hold *text*."""
    return sorted(p.name for p in folder.rglob("*") if p.is_file() and text.encode() in p.read_bytes())


@pytest.fixture
async def asked(inbox: Inbox, server: TaskScript) -> Any:
    """An inbox that is asked for a password, and writes its log as the program does."""
    before, level = list(logging.getLogger().handlers), logging.getLogger().level
    start_log(inbox.paths)
    logging.getLogger().setLevel(logging.DEBUG)
    server.ask("t1", q=LOGIN)
    await inbox.engine.track("ci", "t1")
    yield inbox
    root = logging.getLogger()
    root.setLevel(level)
    for handler in [one for one in root.handlers if one not in before]:
        root.removeHandler(handler)
        handler.close()


@pytest.mark.rule("elicitation.no-secrets-by-form")
async def test_a_secret_is_sent_to_the_letter_and_gone_with_the_acknowledgement(
    asked: Inbox, server: TaskScript, tmp_path: Path
) -> None:
    delivery = await asked.engine.answer(KEY, [asked.accept(KEY, content=CONTENT)])
    assert delivery.state == "acknowledged"
    assert CONTENT.encode() in server.updates[0].body
    assert files_with(tmp_path) == []
    stored = asked.question(KEY)
    assert (stored.response_json, stored.withheld) == (KEPT, True)
    assert KEPT.replace('"', '\\"') in asked.reader.events(KEY)[-3].data_json


async def test_a_secret_waits_in_the_outbox_alone_and_is_delivered_by_the_next_program(
    asked: Inbox, server: TaskScript, tmp_path: Path
) -> None:
    await server.stop()
    delivery = await asked.engine.answer(KEY, [asked.accept(KEY, content=CONTENT)])
    assert delivery.state == "saved"
    assert SECRET not in (delivery.message or "")
    assert SECRET not in repr(asked.reader.questions(KEY)) + repr(asked.reader.events(KEY))
    assert set(files_with(tmp_path)) <= {"inbox.db", "inbox.db-wal"}
    other = await Inbox.open(tmp_path, {"ci": server.url})
    await asked.engine.aclose()
    await server.start(server.port)
    async with Running(other.engine):
        await other.until(lambda: other.states(KEY) == {"q": "acknowledged"})
    assert CONTENT.encode() in server.updates[0].body
    assert files_with(tmp_path) == []
    await other.close()


async def test_a_refused_secret_is_not_kept_and_not_repeated_from_the_servers_words(
    asked: Inbox, server: TaskScript, tmp_path: Path
) -> None:
    server.on("tasks/update", error(-32602, f"the password {SECRET} is too short"))
    delivery = await asked.engine.answer(KEY, [asked.accept(KEY, content=CONTENT)])
    assert delivery.state == "refused"
    assert "too short" in (delivery.message or "")
    assert SECRET not in (delivery.message or "")
    assert asked.question(KEY).state == "refused"
    assert files_with(tmp_path) == []
    server.on("tasks/update", result({"resultType": "complete"}))
    again = CONTENT.replace(SECRET, "longer-" + SECRET)
    assert (await asked.engine.answer(KEY, [asked.accept(KEY, content=again)])).state == "acknowledged"
    assert again.encode() in server.updates[1].body
    assert files_with(tmp_path) == []


async def test_an_unsent_secret_of_a_question_that_vanished_is_not_kept(
    asked: Inbox, server: TaskScript, tmp_path: Path
) -> None:
    server.show("t1", "completed", result={"content": []})
    assert (await asked.engine.answer(KEY, [asked.accept(KEY, content=CONTENT)])).state == "withdrawn"
    assert asked.question(KEY).response_json == KEPT
    assert files_with(tmp_path) == []


async def test_a_secret_that_may_have_arrived_is_sent_again_until_it_is_acknowledged(
    asked: Inbox, server: TaskScript, tmp_path: Path
) -> None:
    server.queue(server.get, reset())
    assert (await asked.engine.answer(KEY, [asked.accept(KEY, content=CONTENT)])).state == "saved"
    async with Running(asked.engine):
        await asked.until(lambda: asked.states(KEY) == {"q": "acknowledged"})
    assert [CONTENT.encode() in update.body for update in server.updates] == [True, True]
    assert files_with(tmp_path) == []


async def test_an_answer_with_a_secret_is_asked_for_anew_instead_of_being_sent_again(
    asked: Inbox, server: TaskScript
) -> None:
    await asked.engine.answer(KEY, [asked.accept(KEY, content=CONTENT)])
    question = asked.question(KEY)
    with pytest.raises(EngineError, match="held secrets") as caught:
        await asked.engine.send_again(question.id)
    assert caught.value.failure == "invalid"
    assert asked.question(KEY).state == "open"
    assert asked.task(KEY).section == "needs-you"
    assert asked.facts(KEY)[-1] == "question_reopened"
    assert len(server.updates) == 1
    assert (await asked.engine.answer(KEY, [asked.accept(KEY, content=CONTENT)])).state == "acknowledged"
    assert CONTENT.encode() in server.updates[1].body


async def test_the_secrets_of_a_calls_answers_are_sent_with_it_and_not_kept(
    asked: Inbox, server: TaskScript, tmp_path: Path
) -> None:
    asks = {"resultType": "input_required", "inputRequests": {"a": LOGIN}, "requestState": "s"}
    server.queue(result(asks), error(-32602, f"{SECRET}?"), result(handle("t2")))
    key = (await asked.engine.call("ci", "ask_first", "{}")).key
    assert (await asked.engine.answer(key, [asked.accept(key, "a", CONTENT)])).state == "refused"
    assert files_with(tmp_path) == []
    assert (await asked.engine.answer(key, [asked.accept(key, "a", CONTENT)])).state == "acknowledged"
    assert [CONTENT.encode() in call.body for call in server.of("tools/call")] == [False, True, True]
    assert files_with(tmp_path) == []


async def test_a_call_of_unknown_outcome_keeps_its_secret_until_it_is_repeated_or_forgotten(
    asked: Inbox, server: TaskScript, tmp_path: Path
) -> None:
    asks = {"resultType": "input_required", "inputRequests": {"a": LOGIN}, "requestState": "s"}
    server.queue(result(asks), reset(), result({"resultType": "complete", "content": []}))
    key = (await asked.engine.call("ci", "ask_first", "{}")).key
    assert (await asked.engine.answer(key, [asked.accept(key, "a", CONTENT)])).state == "unknown"
    assert {*files_with(tmp_path)} in ({"inbox.db"}, {"inbox.db-wal"}, {"inbox.db", "inbox.db-wal"})
    assert (await asked.engine.call_again(key)).kind == "complete"
    assert CONTENT.encode() in server.of("tools/call")[2].body
    assert files_with(tmp_path) == []


async def test_what_is_typed_for_a_secret_is_in_no_draft(asked: Inbox, tmp_path: Path) -> None:
    question = asked.question(KEY)
    await asked.engine.save_draft(question.id, f'{{"user": "ada", "password": "{SECRET}"}}')
    assert asked.question(KEY).draft_json == '{"user": "ada"}'
    await asked.engine.save_draft(question.id, f'{{"password": "{SECRET}"}}')
    assert asked.question(KEY).draft_json is None
    assert files_with(tmp_path) == []
