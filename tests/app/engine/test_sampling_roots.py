"""Sampling and roots: off until a person turns them on for a server; refused here alone."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes.inbox import Inbox
from fakes.mcp_server import Exchange, result
from fakes.task_script import APPROVE, TaskScript, handle

from app.config import NONE, Abilities, set_abilities
from app.engine.commands import REFUSED_HERE, Answer, EngineError, is_refused_here
from app.engine.drafting import OUTPUT_MOST, draft
from storage.records import TaskKey

KEY = TaskKey("ci", "t1")
ASK: dict[str, Any] = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Capital of France?"}}],
        "maxTokens": 20,
    },
}
REPLY = '{"role": "assistant", "content": {"type": "text", "text": "Paris é"}, "model": "human"}'
ROOTS: dict[str, Any] = {"method": "roots/list"}


def allow(inbox: Inbox, **allowed: Any) -> None:
    set_abilities(inbox.paths.servers_file, "ci", lambda old: replace(old, **allowed))


@pytest.fixture
async def asked(inbox: Inbox, server: TaskScript, tmp_path: Path) -> Inbox:
    allow(inbox, sampling=True, roots=(str(tmp_path),))
    server.ask("t1", s=ASK, r=ROOTS)
    await inbox.engine.track("ci", "t1")
    return inbox


@pytest.mark.rule("sampling.reviewed", "sampling.approval", "roots.file-uri")
async def test_a_reply_and_a_list_of_folders_go_out_byte_for_byte(
    asked: Inbox, server: TaskScript, tmp_path: Path
) -> None:
    roots = json.dumps({"roots": [{"uri": tmp_path.as_uri(), "name": tmp_path.name}]})
    await asked.engine.answer(KEY, [asked.accept(KEY, "s", REPLY), asked.accept(KEY, "r", roots)])
    assert server.answered() == [{"s": json.loads(REPLY), "r": json.loads(roots)}]
    assert asked.question(KEY, "s").response_json == REPLY
    assert asked.states(KEY) == {"s": "acknowledged", "r": "acknowledged"}


@pytest.mark.rule("sampling.max-tokens", "sampling.security", "roots.exposed-with-care")
@pytest.mark.parametrize(
    ("key", "content", "named"),
    [
        ("s", '{"role": "assistant", "content": {"type": "text", "text": "x"}}', "model"),
        ("s", '{"role": "user", "content": {"type": "text", "text": "x"}, "model": "m"}', "role"),
        ("s", REPLY.replace("Paris", "Paris " * 100), "tokens"),
        ("s", '{"role": "assistant", "content": [{"type": "tool_use", "id": "1"}], "model": "m"}', "content"),
        ("s", REPLY[:-1] + ', "stopReason": "toolUse"}', "stopReason"),
        ("s", "[]", "object is expected"),
        ("r", '{"roots": [{"uri": "file:///etc"}]}', "not allowed"),
        ("r", '{"roots": [{"uri": "https://example.com"}]}', "pattern"),
        ("r", '{"roots": [{"name": "x"}]}', "roots"),
        ("r", "{}", "roots"),
    ],
)
async def test_nothing_but_what_the_schema_and_the_settings_allow_is_saved(
    asked: Inbox, server: TaskScript, key: str, content: str, named: str
) -> None:
    with pytest.raises(EngineError, match=named) as caught:
        await asked.engine.answer(KEY, [asked.accept(KEY, key, content)])
    assert caught.value.failure == "invalid"
    assert asked.states(KEY)[key] == "open"
    assert server.updates == []


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_there_is_no_word_for_no_on_the_wire(asked: Inbox, server: TaskScript, action: Any) -> None:
    with pytest.raises(EngineError, match="no word for no"):
        await asked.engine.answer(KEY, [Answer(asked.question(KEY, "s"), action)])
    assert server.updates == []


@pytest.mark.rule("wire.sampling-and-roots-off")
async def test_what_was_turned_off_meanwhile_is_not_answered(asked: Inbox, server: TaskScript) -> None:
    set_abilities(asked.paths.servers_file, "ci", lambda _: NONE)
    for key, content in (("s", REPLY), ("r", '{"roots": []}')):
        with pytest.raises(EngineError, match="does not answer"):
            await asked.engine.answer(KEY, [asked.accept(KEY, key, content)])
    assert server.updates == []


@pytest.mark.rule("sampling.human-in-the-loop", "roots.consent")
async def test_a_refusal_is_recorded_here_and_lasts_while_the_server_goes_on_asking(
    asked: Inbox, server: TaskScript
) -> None:
    question = asked.question(KEY, "s")
    words = await asked.engine.refuse(question)
    assert "ci is not told" in words
    for _ in range(2):
        await asked.engine.refresh(KEY)
        now = asked.question(KEY, "s")
        assert is_refused_here(now)
        assert now.refusal == REFUSED_HERE
    assert asked.task(KEY).open_questions == 1  # the folders are still asked for
    assert asked.task(KEY).state.tracking == "active"
    assert server.updates == []
    facts = [json.loads(e.data_json) for e in asked.reader.events(KEY) if e.kind == "question_refused_here"]
    assert [fact["key"] for fact in facts] == ["s"]
    assert facts[0]["by"]


async def test_a_refused_question_can_be_answered_after_all(asked: Inbox, server: TaskScript) -> None:
    await asked.engine.refuse(asked.question(KEY, "s"))
    with pytest.raises(EngineError) as caught:
        await asked.engine.answer(KEY, [asked.accept(KEY, "s", REPLY)])
    assert caught.value.failure == "closed"
    await asked.engine.reopen(asked.question(KEY, "s").id)
    assert asked.question(KEY, "s").is_open
    assert not asked.question(KEY, "s").refusal
    await asked.engine.answer(KEY, [asked.accept(KEY, "s", REPLY)])
    assert server.answered() == [{"s": json.loads(REPLY)}]
    with pytest.raises(EngineError, match="not one that was refused"):
        await asked.engine.reopen(asked.question(KEY, "s").id)


async def test_only_the_question_that_was_shown_is_refused_and_only_of_a_kind_without_a_no(
    asked: Inbox, server: TaskScript
) -> None:
    shown = asked.question(KEY, "s")
    other = json.loads(json.dumps(ASK))
    other["params"]["maxTokens"] = 30
    server.ask("t1", s=other, q=APPROVE)
    await asked.engine.refresh(KEY)
    with pytest.raises(EngineError, match="not open any more"):
        await asked.engine.refuse(shown)
    assert asked.question(KEY, "s").is_open
    with pytest.raises(EngineError, match="declined or dismissed"):
        await asked.engine.refuse(asked.question(KEY, "q"))


async def test_other_content_under_the_key_of_a_refused_question_is_a_new_question(
    asked: Inbox, server: TaskScript
) -> None:
    await asked.engine.refuse(asked.question(KEY, "s"))
    other = json.loads(json.dumps(ASK))
    other["params"]["maxTokens"] = 30
    server.ask("t1", s=other)
    await asked.engine.refresh(KEY)
    assert asked.question(KEY, "s").is_open
    assert [is_refused_here(q) for q in asked.reader.questions(KEY) if q.key == "s"] == [True, False]


async def test_a_call_does_not_go_on_without_what_was_refused(inbox: Inbox, server: TaskScript) -> None:
    allow(inbox, sampling=True)
    asks = {"resultType": "input_required", "inputRequests": {"s": ASK, "q": APPROVE}, "requestState": "x"}
    replies = iter([asks, handle("t9")])

    async def reply(exchange: Exchange) -> None:
        await result(next(replies))(exchange)

    server.on("tools/call", reply)
    call = (await inbox.engine.call("ci", "deploy", "{}")).key
    await inbox.engine.refuse(inbox.question(call, "s"))
    delivery = await inbox.engine.answer(call, [inbox.accept(call, "q")])
    assert delivery.state == "waiting"
    assert "refused here" in (delivery.message or "")
    assert len(server.of("tools/call")) == 1
    await inbox.engine.reopen(inbox.question(call, "s").id)
    delivery = await inbox.engine.answer(call, [inbox.accept(call, "s", REPLY)])
    assert delivery.state == "acknowledged"
    assert server.of("tools/call")[1].params["inputResponses"]["s"] == json.loads(REPLY)


# The command that drafts

ECHO = "import json,sys; d=json.load(sys.stdin); print(' é', d['params']['messages'][0]['content']['text'])"


async def test_a_command_drafts_from_the_request_and_sends_nothing(asked: Inbox, server: TaskScript) -> None:
    question = asked.question(KEY, "s")
    with pytest.raises(EngineError, match="No command drafts"):
        await asked.engine.draft_reply(question)
    allow(asked, sampling_command=(sys.executable, "-c", ECHO))
    assert await asked.engine.draft_reply(question) == "é Capital of France?"
    assert asked.states(KEY)["s"] == "open"
    assert server.updates == []
    allow(asked, sampling=False)
    with pytest.raises(EngineError, match="No command drafts"):
        await asked.engine.draft_reply(question)


async def run(code: str, *, seconds: float = 20.0, request: str = "{}") -> str:
    return await draft((sys.executable, "-c", code), request, environ=os.environ, seconds=seconds)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("", "printed nothing"),
        ("print('   ')", "printed nothing"),
        ("import sys; sys.exit('no \\x1b[31mkey')", r"failed \(exit code 1\): no"),
        ("import sys; sys.stdout.buffer.write(b'\\xff')", "not UTF-8"),
        (f"print('x' * {OUTPUT_MOST + 1})", "printed more than"),
    ],
)
async def test_a_command_that_brings_no_draft_says_why(code: str, words: str) -> None:
    with pytest.raises(EngineError, match=words) as caught:
        await run(code)
    assert caught.value.failure == "invalid"
    assert "you can write the reply yourself" in caught.value.message


async def test_a_command_that_is_not_there_says_so() -> None:
    with pytest.raises(EngineError, match="can't be started"):
        await draft(("/no/such/command",), "{}", environ=os.environ)


async def test_a_command_need_not_read_its_question_and_may_say_much_on_stderr() -> None:
    code = "import sys; sys.stderr.write('x' * 1_000_000); sys.stdin.close(); print('ok')"
    assert await run(code, request='"' + "y" * 3_000_000 + '"') == "ok"


async def test_the_command_gets_no_shell() -> None:
    assert await draft(("echo", "$HOME; id", "`id`"), "{}", environ=os.environ) == "$HOME; id `id`"


@pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX")
@pytest.mark.parametrize("how", ["time", "cancel"])
async def test_a_command_that_never_ends_is_ended_with_all_it_started(tmp_path: Path, how: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # The child holds the pipe open for writing: its end is seen as the end of the file.
    child = f"import time; f = open({str(pipe)!r}, 'w'); f.write('x'); f.flush(); time.sleep(600)"
    code = f"import subprocess,sys,time; subprocess.Popen([sys.executable,'-c',{child!r}]); time.sleep(600)"
    work = asyncio.ensure_future(run(code, seconds=2.0 if how == "time" else 600))
    reading = await asyncio.to_thread(open, pipe)
    try:
        assert await asyncio.to_thread(reading.read, 1) == "x"
        if how == "cancel":
            work.cancel()
        with pytest.raises((EngineError, asyncio.CancelledError)) as ended:
            await work
        assert how == "cancel" or "took more than 2 s" in str(ended.value)
        async with asyncio.timeout(20):
            assert await asyncio.to_thread(reading.read) == ""
    finally:
        reading.close()


def test_nothing_is_allowed_by_itself() -> None:
    assert Abilities() == NONE
    assert NONE.declared == ()
