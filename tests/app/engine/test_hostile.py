"""Whatever a server sends, it is kept, and ends nothing but its own task."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from typing import Any

import pytest
from fakes.inbox import Inbox, Running
from fakes.junk import places, replaced, without
from fakes.mcp_server import Exchange, error, head, http_reply, message, result
from fakes.task_script import APPROVE, TaskScript, handle, task

from app.engine import reconcile
from app.engine.commands import EngineError
from storage.records import NewTask, TaskKey, TaskState

KEY = TaskKey("ci", "t1")
NAMES = [
    "",
    " ",
    "\x00",
    "\x1b[2J",
    "a" * 10_000,
    "🦊",
    "__proto__",
    "q/../q",
    'q"\\',
    "\u202eq",
    "ＡＢＣ",
    "\n",
]


@pytest.mark.rule("mrtr.keys-are-the-servers")
@pytest.mark.parametrize("name", NAMES, ids=[repr(name)[:12] for name in NAMES])
async def test_a_question_of_any_name_is_answered_under_that_name(
    inbox: Inbox, server: TaskScript, name: str
) -> None:
    server.show("t1", "input_required", inputRequests={name: APPROVE})
    await inbox.engine.track("ci", "t1")
    assert (await inbox.engine.answer(KEY, [inbox.accept(KEY, name)])).state == "acknowledged"
    assert server.answered() == [{name: {"action": "accept", "content": {"ok": True}}}]


@pytest.mark.parametrize("task_id", [name for name in NAMES if name], ids=[repr(n)[:12] for n in NAMES if n])
async def test_a_task_of_any_id_is_called_watched_and_cancelled(
    inbox: Inbox, server: TaskScript, task_id: str
) -> None:
    server.show(task_id)
    server.on("tools/call", result(handle(task_id)))
    outcome = await inbox.engine.call("ci", "deploy", "{}")
    assert outcome.key == TaskKey("ci", task_id)
    await inbox.engine.cancel(outcome.key)
    assert server.of("tasks/cancel")[0].params["taskId"] == task_id
    server.show(task_id, "cancelled")
    await inbox.engine.refresh(outcome.key)
    assert inbox.task(outcome.key).section == "finished"


ODD: dict[str, Any] = {
    "huge message": task("t1", statusMessage="x" * 1_000_000),
    "escape sequences": task("t1", statusMessage="\x1b]52;c;aGk=\x07\u202e"),
    "endless life": task("t1", ttlMs=10**30, pollIntervalMs=-(10**30)),
    "no times": {"resultType": "complete", "taskId": "t1", "status": "working"},
    "odd types": task("t1", statusMessage=[1], createdAt=3, ttlMs="x", pollIntervalMs={}),
    "questions of no kind": task(
        "t1", "input_required", inputRequests={"a": {"method": ""}, "b": 1, "c": []}
    ),
    "questions that are none": task("t1", "input_required", inputRequests=[]),
    "params of no kind": task("t1", "input_required", inputRequests={"a": {"method": "elicitation/create"}}),
    "many questions": task("t1", "input_required", inputRequests={f"k{n}": APPROVE for n in range(2_000)}),
    "a deep result": task("t1", "completed", result=json.loads("[" * 300 + "]" * 300)),
    "a result of no kind": task("t1", "completed", result="x"),
    "an error of no kind": task("t1", "failed", error=[]),
    "nothing": {},
    "another status": task("t1", "pondering"),
}


@pytest.mark.parametrize("name", ODD)
async def test_an_odd_reply_is_used_or_shown_and_stops_nothing(
    inbox: Inbox, server: TaskScript, name: str
) -> None:
    for task_id in ("t1", "well"):
        server.show(task_id)
        await inbox.engine.track("ci", task_id)
    async with Running(inbox.engine) as running:
        server.tasks["t1"] = ODD[name]
        looks = len([r for r in server.of("tasks/get") if r.params["taskId"] == "t1"])
        await server.wait_for(looks + 8, "tasks/get")
        server.show("well", "completed", result={})
        await inbox.until(lambda: inbox.task(TaskKey("ci", "well")).section == "finished")
        assert not running.done()
    state = inbox.task(KEY).state
    assert "fault of this program" not in (state.problem or "")
    assert "\x1b" not in (state.problem or "")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"jsonrpc": "2.0", "id": 1, "result": {"a": NaN}}',
        b'{"a": 1, "a": 2}',
        b'{"jsonrpc": "2.0", "id": 99, "result": {}}',
        b"<html>",
    ],
)
async def test_a_reply_that_is_none_is_a_problem_of_the_task(
    inbox: Inbox, server: TaskScript, body: bytes
) -> None:
    with inbox.other_program() as store:
        store.add_task(NewTask(KEY, state=TaskState(status="working")))
    server.on("tasks/get", http_reply(200, body))
    with pytest.raises(EngineError, match="Server ci"):
        await inbox.engine.refresh(KEY)
    assert inbox.task(KEY).state.problem
    assert inbox.task(KEY).section == "running"


@pytest.mark.rule("wire.surrogates-refused")
async def test_half_a_surrogate_never_reaches_the_store(inbox: Inbox, server: TaskScript) -> None:
    def body(request: Any) -> bytes:
        return message(request, result=task("t1", statusMessage="@@")).replace(b"@@", b"\\ud800")

    server.on("tasks/get", http_reply(200, body))
    with pytest.raises(EngineError) as caught:
        await inbox.engine.track("ci", "t1")
    assert caught.value.failure == "faulty"
    for key in ("\ud800", "a\udcff"):
        with pytest.raises(EngineError):
            await inbox.engine.track("ci", key)
    assert inbox.reader.list_rows() == []


@pytest.mark.rule("index.error-data", "index.legacy-codes-mean-nothing")
async def test_an_error_with_any_data_is_kept_exactly(inbox: Inbox, server: TaskScript) -> None:
    for data in ("", 0, [1.5], {"deep": {"n": None}}):
        server.on("tools/call", error(-32000, "no", data))
        outcome = await inbox.engine.call("ci", "deploy", "{}")
        assert json.loads(outcome.error_json or "")["data"] == data


async def test_what_a_server_refused_is_readable_behind_the_longest_id(
    inbox: Inbox, server: TaskScript
) -> None:
    key = TaskKey("ci", "\x1b[2J" + "a" * 10_000)
    server.show(key.id)
    await inbox.engine.track("ci", key.id)
    server.on("tasks/cancel", error(-32603, "not now"))
    with pytest.raises(EngineError, match="not now") as caught:
        await inbox.engine.cancel(key)
    assert len(caught.value.message) < 400
    assert "\x1b" not in caught.value.message


async def test_of_ten_thousand_questions_a_bounded_number_is_taken_and_no_other_task_held_up(
    inbox: Inbox, server: TaskScript
) -> None:
    well = TaskKey("ci", "well")
    server.show("well")
    server.show("t1", "input_required", inputRequests={f"k{n}": APPROVE for n in range(10_000)})
    for task_id in ("well", "t1"):
        await inbox.engine.track("ci", task_id)
    assert inbox.task(KEY).open_questions == reconcile.QUESTIONS_PER_TASK
    assert "more than 500 questions" in (inbox.task(KEY).state.problem or "")
    async with Running(inbox.engine):
        looks = len(server.of("tasks/get"))
        await server.wait_for(looks + 6, "tasks/get")
        server.show("well", "completed", result={})
        await inbox.until(lambda: inbox.task(well).section == "finished")


async def test_a_flood_from_one_task_holds_up_no_other(inbox: Inbox, server: TaskScript) -> None:
    well = TaskKey("ci", "well")
    for task_id in ("t1", "well"):
        server.show(task_id)
        await inbox.engine.track("ci", task_id)
    usual = server.get

    async def get(exchange: Exchange) -> None:
        if exchange.request.params["taskId"] != "t1":
            await usual(exchange)
            return
        await exchange.send(head(200, "application/json", {}) + b'{"a":"')
        try:
            for _ in range(100):
                await exchange.send(b"x" * (1 << 20))
        except ConnectionError:
            pass
        exchange.writer.close()

    server.on("tasks/get", get)
    async with Running(inbox.engine):
        await inbox.until(lambda: "larger than" in (inbox.task(KEY).state.problem or ""))
        server.show("well", "completed", result={})
        await inbox.until(lambda: inbox.task(well).section == "finished")
    assert inbox.task(KEY).section == "running"


@pytest.mark.parametrize("seed", range(6))
async def test_replies_broken_anywhere_end_nothing_but_their_own_task(
    inbox: Inbox, server: TaskScript, seed: int
) -> None:
    """Each look at one task brings another wreck of a task; the other task is watched as ever."""
    whole = {
        **task("t1", "input_required", inputRequests={"a": APPROVE, "b": APPROVE}),
        "statusMessage": "m",
        "result": {"content": [{"type": "text", "text": "x"}], "structuredContent": {"n": 1}},
        "error": {"code": -32603, "message": "m"},
    }
    chance = random.Random(seed)
    well = TaskKey("ci", "well")
    for task_id in ("t1", "well"):
        server.show(task_id)
        await inbox.engine.track("ci", task_id)
    async with Running(inbox.engine) as running:
        for number in range(40):
            server.tasks["t1"] = wreck(chance, whole)
            with suppress(EngineError):
                await inbox.engine.refresh(KEY)
            state = inbox.task(KEY).state
            assert "fault of this program" not in (state.problem or ""), server.tasks["t1"]
            if state.tracking != "active":
                await inbox.engine.forget(KEY)
                server.show("t1")
                await inbox.engine.track("ci", "t1")
            server.show("well", "working", statusMessage=str(number))
        await inbox.until(lambda: inbox.task(well).state.status_message == "39")
        assert not running.done()


def wreck(chance: random.Random, whole: Any) -> Any:
    """Return *whole* with something else in one to three of its places, or nothing."""
    status = chance.choice(["working", "input_required", "completed", "failed", "cancelled"])
    found: Any = {**whole, "status": status}
    for _ in range(chance.randint(1, 3)):
        path = chance.choice(places(found)[1:] or [("taskId",)])
        found = without(found, path) if chance.random() < 0.3 else replaced(found, path, chance.choice(WRONG))
    return found


WRONG: list[Any] = [None, True, -1, 1.5, 10**30, "", "wrong", [], [1], {}, {"a": {}}, "completed", "\x1b[2J"]
