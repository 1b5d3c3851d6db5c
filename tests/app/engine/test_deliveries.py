"""What a person is told became of an answer: delivered, by whomever, or only saved, and why."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fakes.inbox import Inbox
from fakes.mcp_server import drop, error, http_reply, result, wait
from fakes.task_script import APPROVE, TaskScript

from app.engine.answering import system_user
from app.engine.commands import Answer, Delivery, EngineError, answerable
from storage.records import TaskKey

KEY = TaskKey("ci", "t1")
DONE: dict[str, Any] = {"resultType": "complete", "content": []}


@pytest.fixture
async def asked(inbox: Inbox, server: TaskScript) -> Inbox:
    server.ask("t1", q=APPROVE)
    await inbox.engine.track("ci", "t1")
    return inbox


@pytest.fixture
async def other(asked: Inbox, tmp_path: Path) -> AsyncIterator[Inbox]:
    """Another program on the same store."""
    opened = await Inbox.open(tmp_path, {})
    yield opened
    await opened.close()


@pytest.mark.parametrize(
    ("how", "failure", "words"),
    [
        ("down", "unreachable", "as soon as ci can be reached"),
        ("cut off", "unreachable", "as soon as ci can be reached"),
        ("sign-in", "sign-in", "as soon as ci can be signed in to"),
        ("error", "refused", "as soon as ci takes it"),
        ("nonsense", "faulty", "as soon as ci takes it"),
        ("not in the file", "unknown-server", "as soon as ci is in the servers file again"),
        ("bad entry", "invalid", "as soon as ci can be connected to"),
    ],
)
@pytest.mark.parametrize("kind", ["task", "call"])
async def test_an_answer_that_is_only_saved_says_why_once(
    asked: Inbox, server: TaskScript, kind: str, how: str, failure: str, words: str
) -> None:
    key = KEY
    if kind == "call":
        if how in ("error", "nonsense", "cut off"):
            pytest.skip("such a reply ends a call, or makes it unknown")
        server.on("tools/call", result({"resultType": "input_required", "inputRequests": {"q": APPROVE}}))
        key = (await asked.engine.call("ci", "ask_first", "{}")).key
    replies = {
        "cut off": drop(),
        "sign-in": http_reply(401),
        "error": error(-32603, "out of order"),
        "nonsense": result({"resultType": "complete", "status": 7}),
    }
    file = asked.paths.servers_file
    if how == "down":
        await server.stop()
    elif how == "not in the file":
        file.write_text('{"mcpServers": {}}', encoding="utf-8")
    elif how == "bad entry":
        file.write_text(
            '{"mcpServers": {"ci": {"url": "http://127.0.0.1:1/", "headers": {"X": "${UNSET}"}}}}',
            encoding="utf-8",
        )
    else:
        server.on("tools/call" if kind == "call" else "tasks/get", replies[how])
    if how in ("not in the file", "bad entry"):
        await asked.engine.reload_servers()
    delivery = await asked.engine.answer(key, [asked.accept(key)])
    assert (delivery.state, delivery.failure) == ("saved", failure)
    assert (delivery.message or "").startswith(f"Saved: delivered {words}. ")
    assert (delivery.message or "").count("Saved") == 1
    assert asked.states(key) == {"q": "queued"}


@pytest.mark.parametrize(
    ("reply", "state", "stored"),
    [
        (result({"resultType": "complete"}), "acknowledged", "acknowledged"),
        (error(-32602, "no"), "refused", "refused"),
        (http_reply(401), "saved", "queued"),
    ],
    ids=["acknowledged", "refused", "sign-in"],
)
async def test_an_answer_in_the_hands_of_another_program_is_waited_for(
    asked: Inbox, other: Inbox, server: TaskScript, reply: Any, state: str, stored: str
) -> None:
    go = asyncio.Event()
    server.on("tasks/update", wait(go, reply))
    server.ask("t1", q=APPROVE)
    first = asyncio.create_task(other.engine.answer(KEY, [other.accept(KEY)]))
    await server.wait_for(1, "tasks/update")
    second = asyncio.create_task(asked.engine._answering.deliver(KEY, [asked.question(KEY).id]))
    await asyncio.sleep(0.1)
    assert not second.done()
    go.set()
    found: list[Delivery] = await asyncio.gather(first, second)
    assert [one.state for one in found] == [state, state]
    assert asked.states(KEY) == {"q": stored}
    if state == "saved":
        assert {one.failure for one in found} == {"sign-in"}
    else:
        assert len(server.updates) == 1


async def test_another_program_that_takes_too_long_is_not_waited_for_forever(
    asked: Inbox, other: Inbox, server: TaskScript
) -> None:
    go = asyncio.Event()
    server.on("tasks/update", wait(go, result({"resultType": "complete"})))
    first = asyncio.create_task(other.engine.answer(KEY, [other.accept(KEY)]))
    await server.wait_for(1, "tasks/update")
    delivery = await asked.engine._answering.deliver(KEY, [asked.question(KEY).id])
    assert (delivery.state, delivery.failure) == ("saved", None)
    assert "another program" in (delivery.message or "")
    go.set()
    assert (await first).state == "acknowledged"


async def test_a_call_that_another_program_goes_on_with_is_waited_for_with_its_outcome(
    asked: Inbox, other: Inbox, server: TaskScript
) -> None:
    server.on("tools/call", result({"resultType": "input_required", "inputRequests": {"q": APPROVE}}))
    key = (await asked.engine.call("ci", "ask_first", "{}")).key
    go = asyncio.Event()
    server.on("tools/call", wait(go, result(DONE)))
    first = asyncio.create_task(other.engine.answer(key, [other.accept(key)]))
    await server.wait_for(2, "tools/call")
    second = asyncio.create_task(asked.engine._answering.deliver(key, [asked.question(key).id]))
    await asyncio.sleep(0.1)
    assert not second.done()
    go.set()
    for found in await asyncio.gather(first, second):
        assert found.state == "acknowledged"
        assert found.outcome is not None
        assert found.outcome.kind == "complete"
    assert len(server.of("tools/call")) == 2


async def test_a_call_whose_program_dies_meanwhile_is_said_to_be_unknown(
    asked: Inbox, tmp_path: Path, server: TaskScript
) -> None:
    server.on("tools/call", result({"resultType": "input_required", "inputRequests": {"q": APPROVE}}))
    key = (await asked.engine.call("ci", "ask_first", "{}")).key
    server.on("tools/call", wait(asyncio.Event(), drop()))
    other = await Inbox.open(tmp_path, {})
    first = asyncio.create_task(other.engine.answer(key, [other.accept(key)]))
    await server.wait_for(2, "tools/call")
    second = asyncio.create_task(asked.engine._answering.deliver(key, [asked.question(key).id]))
    other.engine._presence.close()
    assert (await second).state == "unknown"
    assert asked.task(key).section == "lost"
    await other.close()
    await asyncio.gather(first, return_exceptions=True)
    assert len(server.of("tools/call")) == 2


async def test_who_answered_is_the_user_whom_the_system_knows(
    asked: Inbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):  # which anybody may set
        monkeypatch.setenv(name, "ceo")
    monkeypatch.setattr("pwd.getpwuid", lambda uid: SimpleNamespace(pw_name="ada"))
    later = await Inbox.open(tmp_path, {})
    await later.engine.answer(KEY, [later.accept(KEY)])
    assert later.question(KEY).answered_by == "ada"
    await later.close()


async def test_a_process_whose_user_has_no_name_answers_as_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless(uid: int) -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr("pwd.getpwuid", nameless)
    assert system_user() == "unknown"


@pytest.mark.parametrize(
    ("how", "failure", "words"),
    [
        ("down", "unreachable", "as soon as it can be reached"),
        ("sign-in", "sign-in", "as soon as it can be signed in to"),
        ("bad entry", "invalid", "as soon as it can be connected to"),
    ],
)
async def test_a_wish_to_cancel_that_can_not_be_passed_on_now_is_said_to_be_saved(
    asked: Inbox, server: TaskScript, how: str, failure: str, words: str
) -> None:
    if how == "down":
        await server.stop()
    elif how == "sign-in":
        server.on("tasks/cancel", http_reply(401))
    else:
        broken = '{"mcpServers": {"ci": {"url": "http://127.0.0.1:1/", "headers": {"X": "${UNSET}"}}}}'
        asked.paths.servers_file.write_text(broken, encoding="utf-8")
        await asked.engine.reload_servers()
    with pytest.raises(EngineError) as caught:
        await asked.engine.cancel(KEY)
    assert caught.value.failure == failure
    assert caught.value.message.startswith(f"Saved: ci is asked to cancel t1 {words}. ")
    assert asked.task(KEY).state.cancel_requested_at is not None


async def test_a_refused_cancellation_is_not_said_to_be_saved(asked: Inbox, server: TaskScript) -> None:
    server.on("tasks/cancel", error(-32602, "no"))
    with pytest.raises(EngineError) as caught:
        await asked.engine.cancel(KEY)
    assert "Saved" not in caught.value.message
    assert asked.task(KEY).state.cancel_requested_at is None


@pytest.mark.rule("elicitation.declares-a-mode", "elicitation.only-declared-modes")
@pytest.mark.parametrize(
    ("request_json", "mode"),
    [
        ('{"method": "elicitation/create", "params": {"message": "m"}}', "form"),
        ('{"method": "elicitation/create"}', "form"),
        ('{"method": "elicitation/create", "params": {"mode": "form"}}', "form"),
        ('{"method": "elicitation/create", "params": {"mode": "url"}}', "url"),
        ('{"method": "elicitation/create", "params": {"mode": "hologram"}}', None),
        ('{"method": "elicitation/create", "params": {"mode": ["form"]}}', None),
        ('{"method": "elicitation/create", "params": {"mode": null}}', None),
        ('{"method": "sampling/createMessage", "params": {"mode": "form"}}', None),
    ],
)
async def test_what_is_answered_here_goes_by_method_and_mode(
    asked: Inbox, server: TaskScript, request_json: str, mode: str | None
) -> None:
    server.ask("t1", q=json.loads(request_json))
    await asked.engine.refresh(KEY)
    question = asked.question(KEY)
    assert answerable(question) == mode
    answer = Answer(question, "accept", "{}" if mode == "form" else None)
    if mode is None:
        with pytest.raises(EngineError, match="does not answer") as caught:
            await asked.engine.answer(KEY, [answer])
        assert caught.value.failure == "invalid"
        assert asked.states(KEY)["q"] == "open"
        assert server.updates == []
    else:
        assert (await asked.engine.answer(KEY, [answer])).state == "acknowledged"


async def test_a_server_that_can_not_be_asked_at_all_is_shown_as_faulty_until_it_can(
    asked: Inbox, server: TaskScript
) -> None:
    (before,) = asked.reader.servers()
    assert before.state == "ok"
    file = asked.paths.servers_file
    good = file.read_text(encoding="utf-8")
    broken = '{"mcpServers": {"ci": {"url": "http://127.0.0.1:1/", "headers": {"X": "${UNSET}"}}}}'
    file.write_text(broken, encoding="utf-8")
    await asked.engine.reload_servers()
    with pytest.raises(EngineError, match="UNSET"):
        await asked.engine.refresh(KEY)
    (record,) = asked.reader.servers()
    assert record.state == "faulty"
    assert "UNSET" in (record.message or "")
    file.write_text(good, encoding="utf-8")
    await asked.engine.reload_servers()
    await asked.engine.refresh(KEY)
    (after,) = asked.reader.servers()
    assert (after.state, after.message) == ("ok", None)
