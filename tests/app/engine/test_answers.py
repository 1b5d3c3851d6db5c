"""Answers to a task's questions: sent once, to that very question, or kept.

The rules are those of the Tasks page, "Task Update Requests".
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from fakes.inbox import Inbox, Running
from fakes.mcp_server import error, http_reply, reset, result, wait
from fakes.task_script import APPROVE, OTHER, TaskScript

from app.engine.commands import Answer, EngineError
from storage.records import Reply, TaskKey

KEY = TaskKey("ci", "t1")
EXACT = '{"ok":  true, "n": 1.10, "big": 12345678901234567890123}'


@pytest.fixture
async def asked(inbox: Inbox, server: TaskScript) -> Inbox:
    """An inbox with a task that asks ``q``."""
    server.ask("t1", q=APPROVE)
    await inbox.engine.track("ci", "t1")
    assert inbox.states(KEY) == {"q": "open"}
    return inbox


@pytest.mark.rule("tasks.input-fulfilled", "wire.two-ways-of-asking")
async def test_an_answer_goes_out_once_as_the_very_bytes_that_were_given(
    asked: Inbox, server: TaskScript
) -> None:
    delivery = await asked.engine.answer(KEY, [asked.accept(KEY, content=EXACT)])
    assert delivery.state == "acknowledged"
    assert asked.states(KEY) == {"q": "acknowledged"}
    (update,) = server.updates
    assert EXACT.encode() in update.body
    assert set(update.params) == {"taskId", "inputResponses", "_meta"}
    assert server.received[-2].method == "tasks/get"
    server.show("t1")
    await asked.engine.refresh(KEY)
    assert asked.states(KEY) == {"q": "settled"}
    assert len(server.updates) == 1


async def test_an_answer_is_saved_before_anything_is_sent(asked: Inbox, server: TaskScript) -> None:
    go = asyncio.Event()
    server.queue(wait(go, server.get))
    before = len(server.of("tasks/get"))
    answering = asyncio.create_task(asked.engine.answer(KEY, [asked.accept(KEY, content=EXACT)]))
    await server.wait_for(before + 1, "tasks/get")
    stored = asked.question(KEY)
    assert (stored.state, stored.response_json) == ("queued", f'{{"action": "accept", "content": {EXACT}}}')
    go.set()
    assert (await answering).state == "acknowledged"


@pytest.mark.rule("elicitation.three-actions")
async def test_the_three_actions_are_three_answers(asked: Inbox, server: TaskScript) -> None:
    server.ask("t1", a=APPROVE, b=APPROVE, c=APPROVE)
    await asked.engine.refresh(KEY)
    for name, action in (("a", "accept"), ("b", "decline"), ("c", "cancel")):
        answer = Answer(asked.question(KEY, name), action, "{}" if action == "accept" else None)  # type: ignore[arg-type]
        await asked.engine.answer(KEY, [answer])
    assert server.answered() == [
        {"a": {"action": "accept", "content": {}}},
        {"b": {"action": "decline"}},
        {"c": {"action": "cancel"}},
    ]


@pytest.mark.rule("tasks.input-fulfilled", "tasks.update-partial")
async def test_answers_given_together_go_out_in_one_update(asked: Inbox, server: TaskScript) -> None:
    server.ask("t1", q=APPROVE, r=OTHER, s=OTHER)
    await asked.engine.refresh(KEY)
    await asked.engine.answer(KEY, [asked.accept(KEY, "q"), asked.accept(KEY, "r", "{}")])
    assert [set(one) for one in server.answered()] == [{"q", "r"}]
    assert asked.states(KEY) == {"q": "acknowledged", "r": "acknowledged", "s": "open"}


@pytest.mark.rule("tasks.keys-unique", "tasks.keys-one-request", "wire.asked-again")
async def test_a_question_that_changed_gets_no_answer(asked: Inbox, server: TaskScript) -> None:
    server.ask("t1", q=OTHER)
    delivery = await asked.engine.answer(KEY, [asked.accept(KEY, content=EXACT)])
    assert delivery.state == "withdrawn"
    assert server.updates == []
    old, new = asked.reader.questions(KEY)
    assert (old.state, new.state) == ("withdrawn", "open")
    assert EXACT in (old.response_json or "")
    assert new.fault is not None


@pytest.mark.rule("tasks.update-outstanding-keys")
async def test_a_question_that_vanished_gets_no_answer_and_the_text_is_kept(
    asked: Inbox, server: TaskScript
) -> None:
    server.show("t1", "completed", result={"content": []})
    delivery = await asked.engine.answer(KEY, [asked.accept(KEY, content=EXACT)])
    assert delivery.state == "withdrawn"
    assert server.updates == []
    assert EXACT in (asked.question(KEY).response_json or "")
    assert asked.task(KEY).section == "finished"


@pytest.mark.rule("wire.refused-answers")
async def test_a_refused_answer_is_open_again_with_the_reason_and_can_be_given_anew(
    asked: Inbox, server: TaskScript
) -> None:
    server.on("tasks/update", error(-32602, "ok must be \x1b[31mfalse"))
    delivery = await asked.engine.answer(KEY, [asked.accept(KEY)])
    assert delivery.state == "refused"
    stored = asked.question(KEY)
    assert stored.state == "refused"
    assert "ok must be" in (stored.refusal or "")
    assert "\x1b" not in (stored.refusal or "")
    assert asked.task(KEY).section == "needs-you"
    server.on("tasks/update", result({"resultType": "complete"}))
    assert (await asked.engine.answer(KEY, [asked.accept(KEY, content="{}")])).state == "acknowledged"


async def test_one_refused_answer_does_not_take_the_others_back(asked: Inbox, server: TaskScript) -> None:
    server.ask("t1", bad=APPROVE, good=APPROVE)
    await asked.engine.refresh(KEY)

    async def update(exchange: object) -> None:
        keys = exchange.request.params["inputResponses"]  # type: ignore[attr-defined]
        reply = error(-32602, "bad is bad") if "bad" in keys else result({})
        await reply(exchange)  # type: ignore[arg-type]

    server.on("tasks/update", update)
    await asked.engine.answer(KEY, [asked.accept(KEY, "bad"), asked.accept(KEY, "good")])
    assert [set(one) for one in server.answered()] == [{"bad", "good"}, {"bad"}, {"good"}]
    assert asked.states(KEY) == {"q": "withdrawn", "bad": "refused", "good": "acknowledged"}


@pytest.mark.rule("tasks.update-unknown-task", "tasks.update-cancel-unknown-task")
async def test_an_update_for_a_task_that_is_gone_loses_the_task_and_keeps_the_answer(
    asked: Inbox, server: TaskScript
) -> None:
    async def forget(exchange: object) -> None:
        server.tasks.clear()
        await error(-32602, "Task not found")(exchange)  # type: ignore[arg-type]

    server.on("tasks/update", forget)
    await asked.engine.answer(KEY, [asked.accept(KEY, content=EXACT)])
    assert asked.task(KEY).section == "lost"
    assert EXACT in (asked.question(KEY).response_json or "")
    assert len(server.updates) == 1


async def test_an_answer_while_the_server_is_down_is_saved_and_delivered_when_it_is_back(
    asked: Inbox, server: TaskScript
) -> None:
    await server.stop()
    delivery = await asked.engine.answer(KEY, [asked.accept(KEY)])
    assert delivery.state == "saved"
    assert "ci" in (delivery.message or "")
    assert asked.states(KEY) == {"q": "queued"}
    async with Running(asked.engine):
        await asked.until(lambda: asked.task(KEY).state.problem)
        await server.start(server.port)
        await asked.until(lambda: asked.states(KEY) == {"q": "acknowledged"})
    assert len(server.updates) == 1


@pytest.mark.rule("tasks.update-outstanding-keys")
@pytest.mark.parametrize("shows", [True, False], ids=["still-asked", "gone"])
async def test_an_update_whose_reply_is_lost_is_examined_before_it_is_repeated(
    asked: Inbox, server: TaskScript, shows: bool
) -> None:
    server.on("tasks/update", reset())
    delivery = await asked.engine.answer(KEY, [asked.accept(KEY, content=EXACT)])
    assert delivery.state == "saved"
    assert asked.states(KEY) == {"q": "sent"}
    server.on("tasks/update", result({}))
    if not shows:
        server.show("t1")
    gets = len(server.of("tasks/get"))
    async with Running(asked.engine):
        await asked.until(lambda: asked.states(KEY)["q"] in ("acknowledged", "settled"))
    assert len(server.of("tasks/get")) > gets
    assert [update.body.count(EXACT.encode()) for update in server.updates] == [1] * (2 if shows else 1)
    assert len({update.json["id"] for update in server.updates}) == len(server.updates)


@pytest.mark.rule("auth-discovery.challenge-understood")
async def test_an_answer_waits_while_the_server_wants_a_sign_in(asked: Inbox, server: TaskScript) -> None:
    server.on("tasks/update", http_reply(401))
    delivery = await asked.engine.answer(KEY, [asked.accept(KEY)])
    assert delivery.state == "saved"
    assert "Sign-in" in (delivery.message or "")
    assert asked.states(KEY) == {"q": "queued"}


@pytest.mark.rule("tasks.answered-once")
async def test_a_question_is_answered_once(asked: Inbox, server: TaskScript) -> None:
    answer = asked.accept(KEY)
    await asked.engine.answer(KEY, [answer])
    with pytest.raises(EngineError) as caught:
        await asked.engine.answer(KEY, [answer])
    assert caught.value.failure == "closed"
    assert len(server.updates) == 1


async def test_one_closed_question_saves_none_of_the_answers(asked: Inbox, server: TaskScript) -> None:
    server.ask("t1", q=APPROVE, r=APPROVE)
    await asked.engine.refresh(KEY)
    stale = asked.accept(KEY, "q")
    await asked.engine.answer(KEY, [stale])
    with pytest.raises(EngineError):
        await asked.engine.answer(KEY, [asked.accept(KEY, "r"), stale])
    assert asked.states(KEY)["r"] == "open"


@pytest.mark.rule("tasks.keys-one-request")
async def test_the_form_of_a_question_that_was_replaced_meanwhile_saves_nothing(
    asked: Inbox, server: TaskScript
) -> None:
    shown = asked.accept(KEY)
    server.ask("t1", q=OTHER)
    await asked.engine.refresh(KEY)
    with pytest.raises(EngineError) as caught:
        await asked.engine.answer(KEY, [shown])
    assert caught.value.failure == "closed"
    assert server.updates == []


@pytest.mark.rule(
    "mrtr.only-declared-kinds",
    "roots.exposed-with-care",
    "roots.consent",
    "sampling.approval",
    "tasks.input-not-trusted-more",
)
@pytest.mark.parametrize("method", ["sampling/createMessage", "roots/list", "x/unknown"])
async def test_a_kind_that_is_not_answered_here_is_kept_and_refused(
    asked: Inbox, server: TaskScript, method: str
) -> None:
    server.ask("t1", s={"method": method, "params": {}})
    await asked.engine.refresh(KEY)
    assert asked.states(KEY)["s"] == "open"
    with pytest.raises(EngineError, match="does not answer") as caught:
        await asked.engine.answer(KEY, [asked.accept(KEY, "s")])
    assert caught.value.failure == "invalid"
    assert asked.states(KEY)["s"] == "open"


@pytest.mark.parametrize("content", ["[]", "{", "NaN", "1", "[" * 100_000])
async def test_content_that_is_no_json_object_is_never_saved(asked: Inbox, content: str) -> None:
    with pytest.raises(EngineError) as caught:
        await asked.engine.answer(KEY, [asked.accept(KEY, content=content)])
    assert caught.value.failure == "invalid"
    assert asked.states(KEY) == {"q": "open"}


async def test_answers_to_nothing_to_one_question_twice_or_to_two_tasks_are_refused(
    asked: Inbox, server: TaskScript
) -> None:
    server.ask("t2", q=APPROVE)
    other = await asked.engine.track("ci", "t2")
    for answers in ([], [asked.accept(KEY)] * 2, [asked.accept(KEY), asked.accept(other)]):
        with pytest.raises(EngineError) as caught:
            await asked.engine.answer(KEY, answers)
        assert caught.value.failure == "invalid"
    assert server.updates == []


@pytest.mark.rule("tasks.observed-after-update", "tasks.update-shows-later", "wire.eventually-consistent")
async def test_an_acknowledged_answer_that_is_still_asked_is_counted_and_can_be_sent_again(
    asked: Inbox, server: TaskScript
) -> None:
    await asked.engine.answer(KEY, [asked.accept(KEY, content=EXACT)])
    for looks in range(1, 4):
        await asked.engine.refresh(KEY)
        assert (asked.question(KEY).state, asked.question(KEY).still_asked) == ("acknowledged", looks)
    assert "question_still_asked" in asked.facts(KEY)
    assert len(server.updates) == 1
    delivery = await asked.engine.send_again(asked.question(KEY).id)
    assert delivery.state == "acknowledged"
    assert [update.body.count(EXACT.encode()) for update in server.updates] == [1, 1]
    assert asked.question(KEY).still_asked == 0


async def test_only_an_acknowledged_answer_can_be_sent_again(asked: Inbox) -> None:
    for number in (asked.question(KEY).id, 10_000):
        with pytest.raises(EngineError) as caught:
            await asked.engine.send_again(number)
        assert caught.value.failure == "closed"


@pytest.mark.rule("tasks.keys-not-reused", "wire.asked-again")
async def test_a_server_that_asks_the_same_again_is_not_answered_nor_shown_again(
    asked: Inbox, server: TaskScript
) -> None:
    await asked.engine.answer(KEY, [asked.accept(KEY)])
    server.show("t1")
    await asked.engine.refresh(KEY)
    server.ask("t1", q=APPROVE)
    await asked.engine.refresh(KEY)
    assert [q.state for q in asked.reader.questions(KEY)] == ["acknowledged"]
    assert asked.question(KEY).fault
    assert len(server.updates) == 1


@pytest.mark.rule("tasks.answered-once")
async def test_two_programs_deliver_one_answer_once(asked: Inbox, server: TaskScript, tmp_path: Path) -> None:
    second = await Inbox.open(tmp_path, {})
    try:
        for number in range(20):
            server.ask("t1", **{f"k{number}": APPROVE})
            await asked.engine.refresh(KEY)
            await server.stop()
            await asked.engine.answer(KEY, [asked.accept(KEY, f"k{number}")])
            await server.start(server.port)
            attempts = [asked.engine._outbox.deliver(KEY), second.engine._outbox.deliver(KEY)]
            await asyncio.gather(*attempts)
            assert asked.states(KEY)[f"k{number}"] == "acknowledged"
    finally:
        await second.close()
    assert [list(one) for one in server.answered()] == [[f"k{number}"] for number in range(20)]


async def test_an_answer_saved_by_another_program_is_delivered_by_the_one_that_runs(
    asked: Inbox, server: TaskScript, tmp_path: Path
) -> None:
    await server.stop()
    command = await Inbox.open(tmp_path, {})
    await command.engine.answer(KEY, [command.accept(KEY)])
    await command.close()
    await server.start(server.port)
    async with Running(asked.engine):
        await asked.until(lambda: asked.states(KEY) == {"q": "acknowledged"})
    assert len(server.updates) == 1


async def test_an_answer_that_a_dead_program_was_sending_is_delivered(
    asked: Inbox, server: TaskScript
) -> None:
    await server.stop()
    await asked.engine.answer(KEY, [asked.accept(KEY)])
    with asked.other_program() as store:
        store.claim([asked.question(KEY).id], owner="1-0", dead=lambda _: False)
    assert asked.states(KEY) == {"q": "sent"}
    await server.start(server.port)
    async with Running(asked.engine):
        await asked.until(lambda: asked.states(KEY) == {"q": "acknowledged"})
    assert len(server.updates) == 1


async def test_whoever_goes_away_while_an_answer_is_sent_does_not_stop_it(
    asked: Inbox, server: TaskScript
) -> None:
    go = asyncio.Event()
    server.on("tasks/update", wait(go, result({})))
    answering = asyncio.create_task(asked.engine.answer(KEY, [asked.accept(KEY)]))
    await server.wait_for(1, "tasks/update")
    answering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answering
    go.set()
    await asked.until(lambda: asked.states(KEY) == {"q": "acknowledged"})


async def test_a_reply_that_was_overtaken_by_an_answer_does_not_undo_it(
    asked: Inbox, server: TaskScript
) -> None:
    """A look that began before the answer was saved shows the task without the question: it is dropped."""
    go = asyncio.Event()
    server.show("t1")
    stale = result(server.tasks["t1"])
    server.queue(wait(go, stale))
    gets = len(server.of("tasks/get"))
    looking = asyncio.create_task(asked.engine._observer.look_locked(KEY))
    await server.wait_for(gets + 1, "tasks/get")
    server.ask("t1", q=APPROVE)
    with asked.other_program() as store:
        await asyncio.sleep(0.005)  # another millisecond than the one in which the look began
        question = asked.question(KEY)
        store.queue_answers(KEY, [Reply(question.id, question.fingerprint, '{"action": "decline"}')], by="x")
    go.set()
    await looking
    assert asked.states(KEY) == {"q": "queued"}
