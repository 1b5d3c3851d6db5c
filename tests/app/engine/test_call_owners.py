"""Whose a call is: one program sends it, and what a dead one may have sent is repeated by a person alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from fakes.headless import Headless
from fakes.inbox import Inbox, Running
from fakes.mcp_server import Exchange, drop, error, reset, result, wait
from fakes.task_script import APPROVE, TaskScript

from app.engine.call_writes import left, went_on
from storage.records import NewTask, TaskKey, TaskState

DONE: dict[str, Any] = {"resultType": "complete", "content": []}
ASKS: dict[str, Any] = {"resultType": "input_required", "requestState": "s", "inputRequests": {"q": APPROVE}}
SWEEPS_S = 0.7
"""Three sweeps of an inbox whose pauses are 25 times shorter."""


@pytest.fixture
async def here(tmp_path: Path, server: TaskScript) -> Any:
    """An inbox at a place where other processes find it."""
    opened = await Inbox.open(tmp_path / "home", {"ci": server.url})
    yield opened
    await opened.close()


def with_answers(server: TaskScript) -> list[int]:
    """Return which calls were sent with answers, in order."""
    calls = (call.params for call in server.of("tools/call") if "inputResponses" in call.params)
    return [params["arguments"]["n"] for params in calls]


@pytest.mark.parametrize("count", [1, 3])
async def test_calls_in_flight_when_their_program_dies_are_unknown_to_an_inbox_that_runs(
    here: Inbox, tmp_path: Path, server: TaskScript, count: int
) -> None:
    server.on("tools/call", result(ASKS))
    keys = [(await here.engine.call("ci", "deploy", f'{{"n": {n}}}')).key for n in range(count)]
    server.on("tools/call", wait(asyncio.Event(), drop()))
    async with Running(here.engine):
        programs = [
            await Headless(tmp_path / "home", "answer", "ci", key.id, "q", '{"ok": true}').ready()
            for key in keys
        ]
        await server.wait_for(2 * count, "tools/call")
        for program in programs:
            program.kill()
        await here.until(lambda: all(here.task(key).section == "lost" for key in keys))
        await asyncio.sleep(SWEEPS_S)
    assert sorted(with_answers(server)) == list(range(count))
    for key in keys:
        assert here.task(key).owner is None
        assert here.states(key) == {"q": "sent"}
        assert "answer_released" not in here.facts(key)
    server.on("tools/call", result(DONE))
    assert (await here.engine.call_again(keys[0])).kind == "complete"
    assert here.states(keys[0]) == {"q": "settled"}


async def test_nothing_but_a_person_takes_a_call_from_a_program_that_died(
    here: Inbox, server: TaskScript
) -> None:
    """The deliveries may be quicker than the eye on dead programs: the call itself refuses them."""
    server.on("tools/call", result(ASKS))
    key = (await here.engine.call("ci", "deploy", '{"n": 0}')).key
    await server.stop()
    await here.engine.answer(key, [here.accept(key)])
    await server.start(server.port)
    with here.other_program() as store:
        store.claim([here.question(key).id], owner="1-0", dead=lambda _: False)
        store.change_task(key, went_on("1-0", 1, lambda _: True))
    waiting = await here.engine._calls.go_on(key)
    assert getattr(waiting, "is_elsewhere", False)
    assert here.states(key) == {"q": "sent"}
    assert with_answers(server) == []
    await here.engine._calls.recover()
    assert here.task(key).section == "lost"


@pytest.mark.parametrize("claimed", [True, False], ids=["answers-claimed", "answers-waiting"])
async def test_a_call_taken_by_a_program_that_died_is_unknown_only_if_it_may_have_been_sent(
    here: Inbox, server: TaskScript, claimed: bool
) -> None:
    server.on("tools/call", result(ASKS))
    key = (await here.engine.call("ci", "deploy", '{"n": 0}')).key
    await server.stop()
    await here.engine.answer(key, [here.accept(key)])
    await server.start(server.port)
    server.on("tools/call", result(DONE))
    with here.other_program() as store:
        store.change_task(key, went_on("1-0", 1, lambda _: True))
        if claimed:
            store.claim([here.question(key).id], owner="1-0", dead=lambda _: False)
    async with Running(here.engine):
        await here.until(lambda: here.task(key).section in ("lost", "finished"))
    assert here.task(key).section == ("lost" if claimed else "finished")
    assert with_answers(server) == ([] if claimed else [0])


async def test_who_left_a_call_is_forgotten_only_while_it_still_has_it(here: Inbox) -> None:
    key = TaskKey("ci", "call-x")
    with here.other_program() as store:
        store.add_task(NewTask(key, "call", tool="t", state=TaskState(status="working"), owner="2-0"))
        assert not store.change_task(key, left("1-0"))
    assert here.task(key).owner == "2-0"


@pytest.mark.parametrize("outcome", ["refused", "settled"])
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_call_that_a_person_repeats_is_sent_once_however_long_it_takes(
    tmp_path: Path, server: TaskScript, outcome: str, restarted: bool
) -> None:
    here = await Inbox.open(tmp_path, {"ci": server.url})
    server.queue(result(ASKS), reset())
    key = (await here.engine.call("ci", "deploy", '{"n": 0}')).key
    assert (await here.engine.answer(key, [here.accept(key)])).state == "unknown"
    if restarted:
        await here.close()
        here = await Inbox.open(tmp_path, {})
    second = await Inbox.open(tmp_path, {})
    go = asyncio.Event()
    server.on("tools/call", wait(go, error(-32602, "no") if outcome == "refused" else result(DONE)))
    async with Running(here.engine), Running(second.engine):
        again = asyncio.create_task(here.engine.call_again(key))
        await server.wait_for(3, "tools/call")
        await asyncio.sleep(SWEEPS_S)
        assert here.states(key) == {"q": "sent"}
        go.set()
        assert (await again).kind == ("input_required" if outcome == "refused" else "complete")
        await asyncio.sleep(SWEEPS_S)
    assert here.states(key) == {"q": outcome}
    assert with_answers(server) == [0, 0]
    assert here.task(key).section == ("needs-you" if outcome == "refused" else "finished")
    await second.close()
    await here.close()


async def test_a_call_that_was_asked_nothing_goes_on_when_its_program_dies_in_the_pause(
    here: Inbox, tmp_path: Path, server: TaskScript
) -> None:
    said = 0

    async def call(exchange: Exchange) -> None:
        nonlocal said
        said += 1
        reply = {"resultType": "input_required", "requestState": f"s{said}"} if said < 4 else DONE
        await result(reply)(exchange)

    server.on("tools/call", call)
    async with Running(here.engine):
        program = await Headless(tmp_path / "home", "call", "ci", "slow_start").ready()
        await server.wait_for(3, "tools/call")
        await here.until(lambda: [row.state.round for row in here.reader.list_rows()] == [3])
        await asyncio.sleep(SWEEPS_S)  # its pause is two seconds long, and nobody takes it away meanwhile
        assert said == 3
        program.kill()
        await here.until(lambda: [row.section for row in here.reader.list_rows()] == ["finished"])
    states = [call.params.get("requestState") for call in server.of("tools/call")]
    assert states == [None, "s1", "s2", "s3"]


async def test_a_call_in_its_pause_can_be_given_up(here: Inbox, tmp_path: Path, server: TaskScript) -> None:
    server.on("tools/call", result({"resultType": "input_required", "requestState": "s"}))
    program = await Headless(tmp_path / "home", "call", "ci", "slow_start").ready()
    await server.wait_for(3, "tools/call")
    await here.eventually(lambda: [row.state.round for row in here.reader.list_rows()] == [3])
    (row,) = here.reader.list_rows()
    await here.engine.cancel(row.key)
    assert await program.ended() != 0
    assert here.task(row.key).section == "finished"
    assert len(server.of("tools/call")) == 3
