"""Subscriptions of the engine: few streams, the newest state at once, and polling wherever a stream fails.

Page: the Tasks extension ("Task Status Notifications"), basic/patterns/subscriptions.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakes.inbox import FASTER, Inbox, Running
from fakes.listen_script import ack, finished, told
from fakes.listening_script import Line, ListeningScript
from fakes.mcp_server import Exchange, Reply, drop, error, head, http_reply, reset, result, stream, wait
from fakes.task_script import APPROVE, OTHER, TaskScript, task

from app.config import ServersFile
from app.engine import listening
from app.engine.commands import Changes
from mcp_client import Limits
from storage.records import NewTask, TaskKey, TaskState, TaskWrites

KEY = TaskKey("ci", "t1")
OTHER_KEY = TaskKey("ci", "t2")


@pytest.fixture
async def server() -> AsyncIterator[ListeningScript]:
    async with ListeningScript() as running:
        yield running
    assert not running.errors


@pytest.fixture
async def watched(inbox: Inbox, server: ListeningScript) -> Inbox:
    """An inbox with a working task."""
    server.show("t1")
    await inbox.engine.track("ci", "t1")
    return inbox


@pytest.fixture
async def slow(tmp_path: Path, server: ListeningScript) -> AsyncIterator[Inbox]:
    """An inbox at its true pace, with two tasks that are told of."""
    inbox = await Inbox.open(tmp_path, {"ci": server.url}, faster=1)
    for name in ("t1", "t2"):
        server.show(name, pollIntervalMs=300_000)
        await inbox.engine.track("ci", name)
    yield inbox
    await inbox.close()


async def subscribed(inbox: Inbox, server: ListeningScript) -> None:
    """Return once every task is told of and was seen since, so that none is due to be looked at soon."""
    await inbox.until(lambda: inbox.engine.observing("ci") == "subscribed")
    names = [task_id for line in server.lines for task_id in line.accepted]
    keys = [TaskKey("ci", name) for name in names]
    for attempt in itertools.count():  # a look that was on its way may show it first
        words = f"told {attempt}"
        for name in names:
            await server.tell(name, **{**server.tasks[name], "statusMessage": words})
        await inbox.until(lambda: all(inbox.task(key).state.status_message == words for key in keys))  # noqa: B023
        if all(inbox.task(key).state.observed_by == "subscription" for key in keys):
            return


def looks_at(server: TaskScript, task_id: str) -> int:
    return sum(1 for request in server.of("tasks/get") if request.params["taskId"] == task_id)


async def looked_at(server: TaskScript, task_id: str, more_than: int) -> None:
    """Return once the task was asked for more often than that."""
    while looks_at(server, task_id) <= more_than:
        await server.wait_for(len(server.of("tasks/get")) + 1, "tasks/get")


# What a stream tells.


@pytest.mark.rule("tasks.notified")
async def test_a_task_is_seen_through_by_notifications_alone(watched: Inbox, server: ListeningScript) -> None:
    async with Running(watched.engine):
        await subscribed(watched, server)
        looks = len(server.of("tasks/get"))
        await server.tell("t1", statusMessage="half way")
        await watched.until(lambda: watched.task(KEY).state.status_message == "half way")
        assert watched.task(KEY).state.observed_by == "subscription"
        await asyncio.sleep(10 / FASTER)  # ten of the task's intervals
        await server.tell("t1", "completed", result={"content": []})
        await watched.until(lambda: watched.task(KEY).section == "finished")
        assert len(server.of("tasks/get")) == looks
        await server.until(lambda: not server.lines)
        assert watched.engine.observing("ci") is None
    assert watched.task(KEY).state.result_json == '{"content": []}'


async def test_notifications_in_quick_succession_need_no_look(
    watched: Inbox, server: ListeningScript
) -> None:
    async with Running(watched.engine):
        await subscribed(watched, server)
        looks = len(server.of("tasks/get"))
        for number in range(50):
            await server.tell("t1", statusMessage=str(number))
        await watched.until(lambda: watched.task(KEY).state.status_message == "49")
        assert len(server.of("tasks/get")) == looks


async def test_a_question_that_is_told_is_shown_once_and_answered_once(
    watched: Inbox, server: ListeningScript
) -> None:
    async with Running(watched.engine):
        await subscribed(watched, server)
        for _ in range(3):
            await server.tell("t1", "input_required", inputRequests={"q": APPROVE})
        await watched.until(lambda: watched.task(KEY).section == "needs-you")
        await watched.engine.answer(KEY, [watched.accept(KEY)])
        await server.tell("t1", statusMessage="thanks")
        await watched.until(lambda: watched.states(KEY) == {"q": "settled"})
    assert watched.facts(KEY).count("question_asked") == 1
    assert server.answered() == [{"q": {"action": "accept", "content": {"ok": True}}}]


async def test_an_answer_brings_quick_looks_although_a_stream_is_open(
    slow: Inbox, server: ListeningScript
) -> None:
    async with Running(slow.engine):
        await subscribed(slow, server)
        await server.tell("t1", "input_required", inputRequests={"q": APPROVE})
        await slow.until(lambda: slow.task(KEY).section == "needs-you")
        await slow.engine.answer(KEY, [slow.accept(KEY)])
        server.show("t1")  # and the stream says nothing; the next look would be minutes away
        await slow.until(lambda: slow.states(KEY) == {"q": "settled"})


async def test_what_changed_before_the_acknowledgement_is_seen_by_asking_once_more(
    tmp_path: Path, server: ListeningScript
) -> None:
    """A look that was on its way when the stream opened may show what was before; nobody tells the rest."""
    go = asyncio.Event()
    server.show("t1")
    inbox = await Inbox.open(tmp_path, {"ci": server.url}, faster=1)
    await inbox.engine.track("ci", "t1")
    before = server.tasks["t1"]
    server.greets = False
    server.on("tasks/get", wait(go, result(before)))
    async with Running(inbox.engine):
        await server.opened()
        server.on("tasks/get", server.get)
        server.show("t1", "completed", result={})  # and nobody is told
        go.set()
        await inbox.until(lambda: inbox.task(KEY).section == "finished")
    await inbox.close()


@pytest.mark.rule("wire.listen-many-ids")
async def test_two_tasks_share_one_stream(watched: Inbox, server: ListeningScript) -> None:
    server.show("t2")
    await watched.engine.track("ci", "t2")
    async with Running(watched.engine):
        await subscribed(watched, server)
        assert [set(line.ids) for line in server.lines] == [{"t1", "t2"}]
        await server.tell("t2", "failed", error={"code": -32603, "message": "boom"})
        await server.tell("t1", "input_required", inputRequests={"q": OTHER})
        await watched.until(lambda: watched.task(OTHER_KEY).section == "finished")
        await watched.until(lambda: watched.task(KEY).section == "needs-you")
    assert len(server.of("subscriptions/listen")) == 1


async def test_many_tasks_share_few_streams(inbox: Inbox, server: ListeningScript) -> None:
    with inbox.other_program() as store:
        for number in range(1_200):
            state = TaskState(status="working", poll_interval_ms=300_000)
            store.add_task(NewTask(TaskKey("ci", f"n{number}"), state=state))
            server.show(f"n{number}", pollIntervalMs=300_000)
    async with Running(inbox.engine):
        await inbox.until(lambda: inbox.engine.observing("ci") == "subscribed")
        assert sorted(len(line.ids) for line in server.lines) == [200, 500, 500]
        assert len(server.of("subscriptions/listen")) == 3
        assert len({one for line in server.lines for one in line.ids}) == 1_200


# Streams come and go with the tasks.


@pytest.mark.rule("subscriptions.filter-is-fixed", "wire.listen-filter-fixed")
async def test_a_new_stream_is_open_before_the_old_one_is_dropped(
    watched: Inbox, server: ListeningScript
) -> None:
    server.show("t2")
    async with Running(watched.engine):
        await subscribed(watched, server)
        looks = looks_at(server, "t1")
        await watched.engine.track("ci", "t2")
        await server.until(lambda: len(server.log) == 3)
        assert server.log == ["open t1", "open t1,t2", "close t1"]
        assert server.most == 2
        await server.tell("t1", "completed", result={})
        await watched.until(lambda: watched.task(KEY).section == "finished")
        assert looks_at(server, "t1") == looks  # it was told of all the time


async def test_a_stream_that_is_being_replaced_is_no_longer_believed(
    watched: Inbox, server: ListeningScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two connections have no order between them: the slower one may tell what was true before."""
    monkeypatch.setattr(listening, "OVERLAP_S", 1_000.0)
    server.show("t2")
    async with Running(watched.engine):
        await subscribed(watched, server)
        await watched.engine.track("ci", "t2")
        new = await server.opened(2)
        await new.say(told(task("t1", statusMessage="new")))
        server.show("t1", statusMessage="new")
        await watched.until(lambda: watched.task(KEY).state.status_message == "new")
        looks = looks_at(server, "t1")
        await server.lines[0].say(told(task("t1", statusMessage="old")))
        await looked_at(server, "t1", looks)
        assert watched.task(KEY).state.status_message == "new"


async def test_ended_tasks_ride_along_until_less_than_half_of_a_stream_is_alive(
    inbox: Inbox, server: ListeningScript
) -> None:
    for number in range(5):
        server.show(f"t{number}")
        await inbox.engine.track("ci", f"t{number}")
    async with Running(inbox.engine):
        await inbox.until(lambda: inbox.engine.observing("ci") == "subscribed")
        for number in (0, 1):
            await server.tell(f"t{number}", "cancelled")
        await inbox.until(lambda: inbox.task(TaskKey("ci", "t1")).section == "finished")
        await asyncio.sleep(5 / FASTER)
        assert len(server.of("subscriptions/listen")) == 1
        await server.tell("t2", "cancelled")
        await server.until(lambda: len(server.log) == 3)
        assert server.log[1:] == ["open t3,t4", "close t0,t1,t2"]
        for number in (3, 4):
            await server.tell(f"t{number}", "cancelled")
        await server.until(lambda: not server.lines)


async def test_a_smaller_stream_that_is_not_accepted_leaves_the_old_one_as_it_is(
    inbox: Inbox, server: ListeningScript
) -> None:
    for number in range(3):
        server.show(f"t{number}")
        await inbox.engine.track("ci", f"t{number}")
    async with Running(inbox.engine):
        await subscribed(inbox, server)
        server.accepts = lambda task_id: False
        for number in (0, 1):
            await server.tell(f"t{number}", "cancelled")
        await server.until(lambda: server.log[1:] == ["open t2", "close t2"])
        await asyncio.sleep(20 / FASTER)
        assert len(server.of("subscriptions/listen")) == 2
        assert inbox.engine.observing("ci") == "subscribed"
        await server.tell("t2", "completed", result={})
        await inbox.until(lambda: inbox.task(OTHER_KEY).section == "finished")
        assert inbox.task(OTHER_KEY).state.observed_by == "subscription"


async def test_a_forgotten_task_ends_its_stream(watched: Inbox, server: ListeningScript) -> None:
    async with Running(watched.engine):
        await subscribed(watched, server)
        await watched.engine.forget(KEY)
        await server.until(lambda: not server.lines)


async def test_a_task_the_server_forgot_is_listened_for_no_more_until_it_is_found(
    watched: Inbox, server: ListeningScript
) -> None:
    async with Running(watched.engine):
        await subscribed(watched, server)
        kept = server.tasks.copy()
        server.tasks.clear()
        await watched.engine.refresh(KEY)
        await server.until(lambda: not server.lines)
        server.tasks = kept
        await watched.engine.refresh(KEY)
        await server.opened()


async def test_the_streams_end_with_the_program(watched: Inbox, server: ListeningScript) -> None:
    async with Running(watched.engine):
        await subscribed(watched, server)
    await server.until(lambda: not server.lines)
    assert watched.engine.observing("ci") is None


async def test_how_a_server_is_observed_is_told_when_it_changes(
    watched: Inbox, server: ListeningScript
) -> None:
    ways: list[str | None] = []

    def note(changes: Changes) -> None:
        way = watched.engine.observing("ci")
        if "ci" in changes.servers and ways[-1:] != [way]:
            ways.append(way)

    watched.engine.listen(note)
    assert watched.engine.observing("ci") is None
    async with Running(watched.engine):
        await watched.until(lambda: ways[-1:] == ["subscribed"])
        server.accepts = lambda task_id: False
        await server.lines[0].drop()
        await watched.until(lambda: ways[-1:] == ["polling"])
        server.show("t1", "completed", result={})
        await watched.until(lambda: ways[-1:] == [None])
    assert ways in (["polling", "subscribed", "polling", None], ["subscribed", "polling", None])


# Servers that take no subscriptions.

REFUSALS: dict[str, Reply] = {
    "method not found": error(-32601, "Method not found", status=404),
    "method not found within 200": error(-32601, "Method not found", status=200),
    "404": http_reply(404),
    "405": http_reply(405),
    "501": http_reply(501),
    "a missing capability": error(-32021, "Missing required client capability"),
    "a sign-in": http_reply(401),
    "a page": http_reply(200, b"<html>", content_type="text/html"),
    "a result at once": result({"resultType": "complete"}),
    "an error of its own": error(-32603, "boom", status=500),
}


@pytest.mark.rule("wire.listen-refused")
@pytest.mark.parametrize("reply", REFUSALS.values(), ids=REFUSALS)
async def test_a_server_that_refuses_is_polled_and_not_asked_again(
    watched: Inbox, server: ListeningScript, reply: Reply
) -> None:
    server.on("subscriptions/listen", reply)
    async with Running(watched.engine):
        await server.wait_for(1, "subscriptions/listen")
        await server.wait_for(12, "tasks/get")
        assert watched.engine.observing("ci") == "polling"
        assert [record.state for record in watched.reader.servers()] == ["ok"]
        server.show("t1", "completed", result={})
        await watched.until(lambda: watched.task(KEY).section == "finished")
    assert len(server.of("subscriptions/listen")) == 1
    assert "problem_met" not in watched.facts(KEY)


@pytest.mark.rule("wire.listen-refused")
@pytest.mark.parametrize(
    "reply", [drop(), reset(), stream(), http_reply(503)], ids=["closed", "reset", "ended", "503"]
)
async def test_a_server_that_breaks_off_is_asked_a_few_times_and_then_left_in_peace(
    watched: Inbox, server: ListeningScript, reply: Reply
) -> None:
    server.on("subscriptions/listen", reply)
    async with Running(watched.engine):
        await server.wait_for(1 + listening.TRIES, "subscriptions/listen")
        await server.wait_for(len(server.of("tasks/get")) + 20, "tasks/get")  # the next pause would be 8 s
        assert len(server.of("subscriptions/listen")) == 1 + listening.TRIES
        assert [record.state for record in watched.reader.servers()] == ["ok"]
    assert "problem_met" not in watched.facts(KEY)


async def test_an_acknowledgement_of_nothing_is_closed_and_not_asked_for_again(
    watched: Inbox, server: ListeningScript
) -> None:
    server.accepts = lambda task_id: False
    async with Running(watched.engine):
        await server.until(lambda: server.log == ["open t1", "close t1"])
        await server.wait_for(12, "tasks/get")
        assert watched.engine.observing("ci") == "polling"
    assert len(server.of("subscriptions/listen")) == 1


@pytest.mark.rule("wire.listen-refused")
async def test_a_server_that_never_acknowledges_is_polled_all_the_time(
    tmp_path: Path, server: ListeningScript
) -> None:
    async def never(exchange: Exchange) -> None:
        await exchange.send(head(200, "text/event-stream", {"Connection": "close"}))
        await exchange.closed_by_client()
        closed.set()

    closed = asyncio.Event()
    server.on("subscriptions/listen", never)
    server.show("t1")
    inbox = await Inbox.open(tmp_path, {"ci": server.url}, limits=Limits(ack_seconds=0.4))
    await inbox.engine.track("ci", "t1")
    async with Running(inbox.engine):
        await server.wait_for(5, "tasks/get")
        assert not closed.is_set()
        await asyncio.wait_for(closed.wait(), 20)
        await server.wait_for(len(server.of("tasks/get")) + 5, "tasks/get")
        assert [record.state for record in inbox.reader.servers()] == ["ok"]
    await inbox.close()


@pytest.mark.rule("subscriptions.acknowledged-filter-checked", "tasks.listen-accepted-ids")
async def test_tasks_that_are_not_accepted_are_polled_beside_those_that_are(
    watched: Inbox, server: ListeningScript
) -> None:
    server.show("t2")
    await watched.engine.track("ci", "t2")
    server.accepts = lambda task_id: task_id == "t1"
    async with Running(watched.engine):
        line = await server.opened()
        assert set(line.ids) == {"t1", "t2"}
        await server.wait_for(20, "tasks/get")
        assert looks_at(server, "t1") <= 4
        assert watched.engine.observing("ci") == "polling"
        await line.say(told(task("t2", "completed", result={})))  # that was not agreed
        await server.tell("t1", "completed", result={})
        await watched.until(lambda: watched.task(KEY).section == "finished")
        assert watched.task(OTHER_KEY).section == "running"
        server.show("t2", "completed", result={})
        await watched.until(lambda: watched.task(OTHER_KEY).section == "finished")


async def test_a_server_that_refused_is_asked_again_after_an_outage(
    watched: Inbox, server: ListeningScript
) -> None:
    server.on("subscriptions/listen", error(-32601, "Method not found", status=404))
    async with Running(watched.engine):
        await server.wait_for(1, "subscriptions/listen")
        await server.stop()
        await watched.until(lambda: watched.task(KEY).state.problem)
        server.on("subscriptions/listen", server.listen)
        await server.start(server.port)
        await watched.until(lambda: watched.engine.observing("ci") == "subscribed")


async def test_a_server_that_refused_is_asked_again_after_a_while(
    tmp_path: Path, server: ListeningScript
) -> None:
    server.on("subscriptions/listen", error(-32601, "Method not found", status=404))
    server.show("t1", pollIntervalMs=300_000)
    inbox = await Inbox.open(tmp_path, {"ci": server.url}, faster=1_000)
    await inbox.engine.track("ci", "t1")
    async with Running(inbox.engine):
        await server.wait_for(1, "subscriptions/listen")
        server.on("subscriptions/listen", server.listen)
        began = time.monotonic()
        await server.wait_for(2, "subscriptions/listen")
        assert time.monotonic() - began >= 540 / 1_000
        await inbox.until(lambda: inbox.engine.observing("ci") == "subscribed")
    await inbox.close()


async def test_a_server_that_moved_is_listened_to_at_its_new_address(
    watched: Inbox, server: ListeningScript
) -> None:
    file = ServersFile(watched.paths.servers_file)
    async with ListeningScript() as moved, Running(watched.engine):
        await subscribed(watched, server)
        moved.show("t1")
        file.add("ci", moved.url)
        await moved.opened()
        await server.until(lambda: not server.lines)
        await moved.tell("t1", "completed", result={})
        await watched.until(lambda: watched.task(KEY).section == "finished")


async def test_a_new_entry_is_a_reason_to_ask_again(watched: Inbox, server: ListeningScript) -> None:
    server.on("subscriptions/listen", error(-32601, "Method not found", status=404))
    async with Running(watched.engine):
        await server.wait_for(1, "subscriptions/listen")
        server.on("subscriptions/listen", server.listen)
        ServersFile(watched.paths.servers_file).add("ci", server.url, {"X-Other": "1"})
        await watched.until(lambda: watched.engine.observing("ci") == "subscribed")


# Streams that end.

ENDS: dict[str, Callable[[Line], Any]] = {
    "finished": Line.finish,
    "cancelled": Line.cancel,
    "dropped": Line.drop,
    "cut": Line.cut,
}


@pytest.mark.rule("wire.listen-endings", "wire.listen-refused")
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
async def test_when_a_stream_ends_its_tasks_are_looked_at_within_one_interval(
    inbox: Inbox, server: ListeningScript, end: Callable[[Line], Any]
) -> None:
    names = [f"t{number}" for number in range(8)]
    interval = 15.0
    for name in names:
        server.show(name, pollIntervalMs=15_000)
        await inbox.engine.track("ci", name)
    async with Running(inbox.engine):
        await subscribed(inbox, server)
        line = await server.opened()
        server.on("subscriptions/listen", error(-32601, "no more", status=404))
        before = {name: looks_at(server, name) for name in names}
        seen_at: dict[str, float] = {}

        async def get(exchange: Exchange) -> None:
            seen_at.setdefault(exchange.request.params["taskId"], time.monotonic())
            await server.get(exchange)

        server.on("tasks/get", get)
        ended = time.monotonic()
        await end(line)
        await server.wait_for(sum(before.values()) + len(names), "tasks/get")
        async with asyncio.timeout(20):
            while len(seen_at) < len(names):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        waits = sorted((at - ended) * FASTER for at in seen_at.values())
        assert waits[-1] <= interval + 0.3 * FASTER  # what a busy machine may add
        assert waits[-1] - waits[0] >= interval / 8  # and not all at once
        assert inbox.engine.observing("ci") == "polling"


@pytest.mark.rule(
    "subscriptions.dropped-then-reconnect", "subscriptions.resent-after-restart", "wire.listen-endings"
)
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
async def test_a_stream_that_ended_is_opened_again(
    watched: Inbox, server: ListeningScript, end: Callable[[Line], Any]
) -> None:
    async with Running(watched.engine):
        await subscribed(watched, server)
        server.show("t1", statusMessage="meanwhile")  # nobody is told
        await end(server.lines[0])
        await watched.until(lambda: watched.task(KEY).state.status_message == "meanwhile")
        await server.wait_for(2, "subscriptions/listen")
        await watched.until(lambda: watched.engine.observing("ci") == "subscribed")
        await server.tell("t1", "completed", result={})
        await watched.until(lambda: watched.task(KEY).section == "finished")


async def test_streams_that_end_at_once_are_opened_more_and_more_seldom(
    watched: Inbox, server: ListeningScript
) -> None:
    times: list[float] = []

    async def short(exchange: Exchange) -> None:
        times.append(time.monotonic())
        await stream(ack(), finished())(exchange)

    server.on("subscriptions/listen", short)
    async with Running(watched.engine):
        await server.wait_for(5, "subscriptions/listen")
        looks = len(server.of("tasks/get"))
    pauses = [(after - before) * FASTER for before, after in itertools.pairwise(times)]
    for number, pause in enumerate(pauses):
        assert pause >= 0.75 * 2**number
    assert looks >= 5  # it was polled all the time
    assert [record.state for record in watched.reader.servers()] == ["ok"]


@pytest.mark.rule("tasks.polls-while-subscribed", "wire.listen-refused")
async def test_a_stream_that_says_nothing_is_not_believed(tmp_path: Path, server: ListeningScript) -> None:
    """The safety poll: a silent stream may be a dead one."""
    server.show("t1")
    inbox = await Inbox.open(tmp_path, {"ci": server.url}, faster=200)
    await inbox.engine.track("ci", "t1")
    async with Running(inbox.engine):
        await subscribed(inbox, server)
        began, looks = time.monotonic(), len(server.of("tasks/get"))
        server.show("t1", "completed", result={})  # and the stream says nothing
        await inbox.until(lambda: inbox.task(KEY).section == "finished")
        assert len(server.of("tasks/get")) <= looks + 2
        assert time.monotonic() - began >= 20 / 200  # seldom: it would have been seen within a second
    await inbox.close()


@pytest.mark.rule("wire.listen-refused")
async def test_an_acknowledgement_alone_is_no_reason_to_look_less(
    watched: Inbox, server: ListeningScript
) -> None:
    """Some servers acknowledge and then say nothing for ever: until one has told anything, its tasks are
    polled as before."""
    server.greets = False
    async with Running(watched.engine):
        await server.opened()
        looks = looks_at(server, "t1")
        await looked_at(server, "t1", looks + 5)
        assert watched.engine.observing("ci") == "polling"
        await server.tell("t1", statusMessage="at last")
        await watched.until(lambda: watched.engine.observing("ci") == "subscribed")


async def test_a_stream_that_does_not_tell_what_a_look_finds_is_given_up(
    tmp_path: Path, server: ListeningScript
) -> None:
    server.show("t1")
    inbox = await Inbox.open(tmp_path, {"ci": server.url}, faster=200)
    await inbox.engine.track("ci", "t1")
    async with Running(inbox.engine):
        await subscribed(inbox, server)
        server.show("t1", statusMessage="untold")  # the next look finds it, and no notification comes
        await inbox.until(lambda: inbox.engine.observing("ci") == "polling")
        await server.until(lambda: not server.lines)
        looks = looks_at(server, "t1")
        await looked_at(server, "t1", looks + 3)
        assert len(server.of("subscriptions/listen")) == 1
    await inbox.close()


# Snapshots that can't be used as they are.


async def test_a_snapshot_that_is_older_than_what_is_known_is_a_reason_to_look(
    watched: Inbox, server: ListeningScript
) -> None:
    async with Running(watched.engine):
        await subscribed(watched, server)
        new = {"lastUpdatedAt": "2026-07-28T12:00:00Z", "statusMessage": "new"}
        await server.tell("t1", **new)
        await watched.until(lambda: watched.task(KEY).state.status_message == "new")
        looks = len(server.of("tasks/get"))
        old = task("t1", lastUpdatedAt="2026-07-28T11:00:00Z", statusMessage="outdated")
        await server.lines[0].say(told(old))
        await server.wait_for(looks + 1, "tasks/get")
        assert watched.task(KEY).state.status_message == "new"
    assert not any("outdated" in one.data_json for one in watched.reader.events(KEY))


async def test_a_snapshot_that_was_overtaken_by_an_answer_is_a_reason_to_look(
    watched: Inbox, server: ListeningScript
) -> None:
    """The snapshot came before the answer was given: it must not withdraw the question that it lacks."""
    async with Running(watched.engine):
        await subscribed(watched, server)
        await server.tell("t1", "input_required", inputRequests={"q": APPROVE})
        await watched.until(lambda: watched.task(KEY).section == "needs-you")
        lock = watched.engine._observer.lock(KEY)
        async with lock:  # as a delivery has it
            await server.lines[0].say(told(task("t1", "input_required", inputRequests={"r": OTHER})))
            await asyncio.sleep(0.2)  # it has come, and waits for its turn
            with watched.other_program() as store:
                question = watched.question(KEY)
                store.save_draft(question.id, "typed")
                store.archive(KEY)
                store.unarchive(KEY)
                store.change_task(KEY, lambda record, _: _touched(record))
        await watched.until(lambda: watched.task(KEY).state.status_message is None)
        assert watched.states(KEY) == {"q": "open"}


def _touched(record: Any) -> TaskWrites:
    return TaskWrites(state=replace(record.state, status_message="touched"))


@pytest.mark.parametrize("members", [{"statusMessage": "x" * 100_000}, {"ttlMs": "x" * 100_000}], ids=len)
async def test_a_large_snapshot_is_asked_for_and_not_kept(
    watched: Inbox, server: ListeningScript, members: Any
) -> None:
    async with Running(watched.engine):
        await subscribed(watched, server)
        looks = len(server.of("tasks/get"))
        await server.tell("t1", "completed", result={}, **members)
        await watched.until(lambda: watched.task(KEY).section == "finished")
        assert len(server.of("tasks/get")) == looks + 1
        assert watched.task(KEY).state.observed_by == "poll"


FLOOD_S = 1.5
"""How long a server floods its stream, in seconds of a clock that is not made faster."""


async def test_a_flood_of_snapshots_that_can_not_be_read_is_no_flood_of_looks(
    slow: Inbox, server: ListeningScript
) -> None:
    async with Running(slow.engine):
        await subscribed(slow, server)
        line, looks, began = server.lines[0], looks_at(server, "t1"), time.monotonic()
        while time.monotonic() - began < FLOOD_S:
            await line.say(*[told(task("t1", "paused"))] * 10)
            await asyncio.sleep(0.005)
        await server.tell("t2", "completed", result={})
        await slow.until(lambda: slow.task(OTHER_KEY).section == "finished")
        assert 1 <= looks_at(server, "t1") - looks <= (time.monotonic() - began) / 0.5 + 1
        assert slow.task(KEY).section == "running"


async def test_a_flood_of_snapshots_is_no_flood_of_writes(slow: Inbox, server: ListeningScript) -> None:
    async with Running(slow.engine):
        await subscribed(slow, server)
        looks, before = looks_at(server, "t1"), slow.facts(KEY).count("progressed")
        began, number = time.monotonic(), 0
        while time.monotonic() - began < FLOOD_S:
            number += 1
            await server.tell("t1", statusMessage=f"step {number}")
            await asyncio.sleep(0.005)
        await slow.until(lambda: slow.task(KEY).state.status_message == f"step {number}")
        written = slow.facts(KEY).count("progressed") - before
        assert 1 <= written <= (time.monotonic() - began) / 0.5 + 1
        assert looks_at(server, "t1") == looks


async def test_a_fault_of_this_program_in_listening_leaves_the_tasks_polled(
    watched: Inbox, server: ListeningScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("a bug")

    monkeypatch.setattr(listening, "plan", broken)
    async with Running(watched.engine) as running:
        await server.wait_for(8, "tasks/get")
        server.show("t1", "completed", result={})
        await watched.until(lambda: watched.task(KEY).section == "finished")
        assert not running.done()
    assert server.of("subscriptions/listen") == []


async def test_a_fault_of_this_program_in_a_stream_sends_its_tasks_to_polling(
    watched: Inbox, server: ListeningScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a bug")

    async with Running(watched.engine) as running:
        await subscribed(watched, server)
        monkeypatch.setattr(listening, "observed", broken)
        await server.tell("t1", "completed", result={})
        await watched.until(lambda: watched.task(KEY).section == "finished")
        assert watched.task(KEY).state.observed_by == "poll"
        assert not running.done()
