"""Watching tasks: what is looked at, how often, and what is kept when looking fails."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from fakes.inbox import FASTER, Inbox, Running
from fakes.mcp_server import Exchange, error, http_reply, reset, result, wait
from fakes.task_script import APPROVE, TaskScript, handle, task

from app.config import ServersFile
from app.engine import reconcile as rules
from app.engine.commands import Changes, EngineError
from app.engine.servers import LIMITS
from app.engine.slots import IN_FLIGHT
from storage.records import NewTask, TaskKey, TaskState

KEY = TaskKey("ci", "t1")


@pytest.fixture
async def watched(inbox: Inbox, server: TaskScript) -> Inbox:
    """An inbox with a working task."""
    server.show("t1")
    await inbox.engine.track("ci", "t1")
    return inbox


@pytest.mark.rule("tasks.completed-may-say-error", "tasks.polled-to-the-end")
async def test_a_task_is_seen_through_to_its_end_and_then_left_alone(
    watched: Inbox, server: TaskScript
) -> None:
    async with Running(watched.engine):
        server.show("t1", "working", statusMessage="half way")
        await watched.until(lambda: watched.task(KEY).state.status_message == "half way")
        server.ask("t1", q=APPROVE)
        await watched.until(lambda: watched.task(KEY).section == "needs-you")
        server.show("t1", "completed", result={"content": [], "isError": True})
        await watched.until(lambda: watched.task(KEY).section == "finished")
        looks = len(server.of("tasks/get"))
        await asyncio.sleep(10 / FASTER)
        assert len(server.of("tasks/get")) == looks
    state = watched.task(KEY).state
    assert (state.tracking, state.status, state.is_error) == ("ended", "completed", True)
    assert watched.states(KEY) == {"q": "withdrawn"}


@pytest.mark.rule("tasks.get-failed", "tasks.failed-has-error")
async def test_a_failed_task_keeps_its_error(watched: Inbox, server: TaskScript) -> None:
    server.show("t1", "failed", error={"code": -32603, "message": "boom"})
    await watched.engine.refresh(KEY)
    assert '"boom"' in (watched.task(KEY).state.error_json or "")
    assert "task_failed" in watched.facts(KEY)


@pytest.mark.rule("tasks.poll-interval-honoured", "tasks.poll-interval-respected", "wire.poll-interval")
async def test_tasks_are_looked_at_at_their_own_pace(inbox: Inbox, server: TaskScript) -> None:
    server.tasks = {
        "fast": task("fast", pollIntervalMs=1_000),
        "slow": task("slow", pollIntervalMs=10_000),
        "hasty": task("hasty", pollIntervalMs=1),
    }
    for name in server.tasks:
        await inbox.engine.track("ci", name)
    counts = dict.fromkeys(server.tasks, 0)
    server.received.clear()
    began = time.monotonic()
    async with Running(inbox.engine):
        await asyncio.sleep(25 / FASTER)
    seconds = (time.monotonic() - began) * FASTER
    for request in server.of("tasks/get"):
        counts[request.params["taskId"]] += 1
    # One look at the start; after that at least nine tenths of the interval apart.
    assert 5 <= counts["fast"] <= seconds / 0.9 + 2
    assert 2 <= counts["slow"] <= seconds / 9 + 2
    assert counts["hasty"] <= seconds / 0.45 + 2


@pytest.mark.rule("wire.last-updated-is-no-change")
async def test_an_unchanged_task_costs_no_event_and_no_message(watched: Inbox, server: TaskScript) -> None:
    await watched.engine.refresh(KEY)
    await asyncio.sleep(0.1)
    seq = watched.reader.last_seq()
    told: list[Changes] = []
    watched.engine.listen(told.append)
    looks = len(server.of("tasks/get"))
    async with Running(watched.engine):
        for number in range(5):
            server.show("t1", lastUpdatedAt=f"2026-07-28T10:00:0{number}Z")
            await server.wait_for(looks + 1 + number, "tasks/get")
    assert watched.reader.last_seq() == seq
    assert [one.tasks for one in told if one.tasks] == []
    assert len(told) <= 2  # that its server is polled from now on, and is not any more


async def test_an_unreachable_server_is_recorded_once_and_its_tasks_go_on(
    watched: Inbox, server: TaskScript
) -> None:
    async with Running(watched.engine):
        await server.stop()
        await watched.until(lambda: watched.task(KEY).state.problem)
        assert "Unreachable" in (watched.task(KEY).state.problem or "")
        assert watched.task(KEY).section == "running"
        assert [s.state for s in watched.reader.servers()] == ["unreachable"]
        seq = watched.reader.last_seq()
        await asyncio.sleep(10 / FASTER)
        assert watched.reader.last_seq() == seq
        await server.start(server.port)
        await watched.until(lambda: watched.task(KEY).state.problem is None)
        assert [s.state for s in watched.reader.servers()] == ["ok"]


async def test_one_task_that_fails_does_not_stop_the_others(inbox: Inbox, server: TaskScript) -> None:
    async def get(exchange: Exchange) -> None:
        replies: dict[str, Any] = {
            "refused": error(-32603, "Internal \x1b[2Jerror"),
            "faulty": result({"resultType": "complete", "taskId": "other", "status": "working"}),
            "broken": http_reply(200, b"{"),
            "dropped": reset(),
        }
        await replies.get(exchange.request.params["taskId"], server.get)(exchange)

    for name in ("refused", "faulty", "broken", "dropped", "well"):
        server.show(name)
        await inbox.engine.track("ci", name)
    server.on("tasks/get", get)

    def problem(name: str) -> str:
        return inbox.task(TaskKey("ci", name)).state.problem or ""

    async with Running(inbox.engine):
        await inbox.until(lambda: all(problem(n) for n in ("refused", "faulty", "broken", "dropped")))
        server.show("well", "completed", result={})
        await inbox.until(lambda: inbox.task(TaskKey("ci", "well")).section == "finished")
        assert "Internal" in problem("refused")
        assert "\x1b" not in problem("refused")
        assert "taskId" in problem("faulty")
        server.on("tasks/get", server.get)
        await inbox.until(lambda: not any(problem(n) for n in ("refused", "faulty", "broken", "dropped")))


async def test_a_fault_of_this_program_at_one_task_is_shown_and_stops_no_other(
    watched: Inbox, server: TaskScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.show("t2")
    other = await watched.engine.track("ci", "t2")
    real = rules.reconcile

    def broken(task: Any, questions: Any, seen: Any) -> Any:
        if task.key == KEY:
            raise RuntimeError("a bug")
        return real(task, questions, seen)

    monkeypatch.setattr(rules, "reconcile", broken)
    async with Running(watched.engine) as running:
        await watched.until(lambda: "RuntimeError" in (watched.task(KEY).state.problem or ""))
        server.show("t2", "completed", result={})
        await watched.until(lambda: watched.task(other).section == "finished")
        monkeypatch.undo()
        server.show("t1", "completed", result={})
        await watched.until(lambda: watched.task(KEY).section == "finished")
        assert not running.done()


@pytest.mark.rule("tasks.get-unknown-task", "wire.lost-tasks-stay")
async def test_a_task_the_server_forgot_is_lost_looked_at_a_little_longer_and_found_again(
    watched: Inbox, server: TaskScript
) -> None:
    server.ask("t1", q=APPROVE)
    await watched.engine.refresh(KEY)
    async with Running(watched.engine):
        kept = server.tasks.copy()
        server.tasks.clear()
        await watched.until(lambda: watched.task(KEY).section == "lost")
        assert "does not know" in (watched.task(KEY).state.reason or "")
        server.tasks = kept
        await watched.until(lambda: watched.task(KEY).section == "needs-you")
    assert watched.states(KEY) == {"q": "open"}
    assert [q.key for q in watched.reader.questions(KEY)] == ["q"]


async def test_a_lost_task_can_be_looked_at_by_hand(watched: Inbox, server: TaskScript) -> None:
    kept = server.tasks.copy()
    server.tasks.clear()
    await watched.engine.refresh(KEY)
    assert watched.task(KEY).section == "lost"
    server.tasks = kept
    await watched.engine.refresh(KEY)
    assert watched.task(KEY).section == "running"


@pytest.mark.rule("wire.task-page-example")
async def test_a_fault_of_a_reply_is_noted_once_and_the_reply_is_used(
    watched: Inbox, server: TaskScript
) -> None:
    shown = {**handle("t1", statusMessage="odd")}
    del shown["ttlMs"]
    server.tasks["t1"] = shown
    for _ in range(3):
        await watched.engine.refresh(KEY)
    assert watched.task(KEY).state.status_message == "odd"
    assert watched.facts(KEY).count("fault_noted") == 2  # the wrong resultType, the missing ttlMs


async def test_an_archived_task_comes_back_when_it_asks(watched: Inbox, server: TaskScript) -> None:
    await watched.engine.archive(KEY)
    async with Running(watched.engine):
        server.show("t1", statusMessage="still working")
        await watched.until(lambda: watched.task(KEY).state.status_message)
        assert watched.task(KEY).section == "archived"
        server.ask("t1", q=APPROVE)
        await watched.until(lambda: watched.task(KEY).section == "needs-you")
    await watched.engine.archive(KEY)
    await watched.engine.unarchive(KEY)
    assert watched.task(KEY).section == "needs-you"


async def test_a_forgotten_task_is_watched_no_more(watched: Inbox, server: TaskScript) -> None:
    async with Running(watched.engine):
        await server.wait_for(3, "tasks/get")
        await watched.engine.forget(KEY)
        looks = len(server.of("tasks/get"))
        await asyncio.sleep(10 / FASTER)
        assert len(server.of("tasks/get")) <= looks + 1
    assert watched.reader.task(KEY) is None


async def test_what_other_programs_add_and_forget_is_followed(watched: Inbox, server: TaskScript) -> None:
    server.ask("t2", q=APPROVE)
    key = TaskKey("ci", "t2")
    async with Running(watched.engine):
        await server.wait_for(2, "tasks/get")
        with watched.other_program() as store:
            store.add_task(NewTask(key, state=TaskState(status="working")))
            await watched.until(lambda: watched.task(key).section == "needs-you")
            told: list[Changes] = []
            watched.engine.listen(told.append)
            store.forget(key)
            await watched.until(lambda: any(key in change.tasks for change in told))


async def test_no_more_requests_are_under_way_at_one_server_than_agreed(
    inbox: Inbox, server: TaskScript
) -> None:
    with inbox.other_program() as store:
        for number in range(3 * IN_FLIGHT):
            store.add_task(NewTask(TaskKey("ci", f"n{number}"), state=TaskState(status="working")))
            server.show(f"n{number}")
    go = asyncio.Event()
    server.on("tasks/get", wait(go, server.get))
    async with Running(inbox.engine):
        await server.wait_for(IN_FLIGHT, "tasks/get")
        await asyncio.sleep(0.2)
        assert len(server.of("tasks/get")) == IN_FLIGHT
        go.set()
        await server.wait_for(3 * IN_FLIGHT, "tasks/get")


async def test_tasks_of_a_removed_server_stop_and_go_on_when_it_is_back(
    watched: Inbox, server: TaskScript
) -> None:
    file = ServersFile(watched.paths.servers_file)
    async with Running(watched.engine):
        await server.wait_for(2, "tasks/get")
        file.remove("ci")
        await watched.until(lambda: watched.task(KEY).state.tracking == "stopped")
        assert "servers file" in (watched.task(KEY).state.reason or "")
        assert watched.task(KEY).section == "lost"
        await watched.until(lambda: watched.reader.servers() == [])
        server.show("t1", "completed", result={})
        file.add("ci", server.url)
        await watched.until(lambda: watched.task(KEY).section == "finished")


async def test_a_server_that_moved_is_found_at_its_new_address(watched: Inbox, server: TaskScript) -> None:
    file = ServersFile(watched.paths.servers_file)
    async with TaskScript() as moved, Running(watched.engine):
        moved.show("t1", "completed", result={})
        file.add("ci", moved.url)
        await watched.until(lambda: watched.task(KEY).section == "finished")


async def test_a_servers_file_that_breaks_changes_nothing(watched: Inbox, server: TaskScript) -> None:
    async with Running(watched.engine):
        await server.wait_for(2, "tasks/get")
        watched.paths.servers_file.write_text("{")
        server.show("t1", "completed", result={})
        await watched.until(lambda: watched.task(KEY).section == "finished")
        with pytest.raises(EngineError) as caught:
            await watched.engine.reload_servers()
        assert caught.value.failure == "invalid"


async def test_a_variable_that_is_not_set_is_a_problem_that_names_it(
    tmp_path: Path, server: TaskScript
) -> None:
    inbox = await Inbox.open(tmp_path, {})
    ServersFile(inbox.paths.servers_file).add("ci", server.url, {"Authorization": "Bearer ${CI_TOKEN}"})
    with inbox.other_program() as store:
        store.add_task(NewTask(KEY, state=TaskState(status="working")))
    async with Running(inbox.engine):
        await inbox.until(lambda: inbox.task(KEY).state.problem)
    assert "CI_TOKEN" in (inbox.task(KEY).state.problem or "")
    assert server.received == []
    await inbox.close()


@pytest.mark.rule("authorization.header", "auth-security.storage", "index.auth-own")
async def test_a_token_from_the_environment_is_sent_and_never_stored(
    tmp_path: Path, server: TaskScript
) -> None:
    inbox = await Inbox.open(tmp_path, {}, environ={"CI_TOKEN": "hush-4711"})
    ServersFile(inbox.paths.servers_file).add("ci", server.url, {"Authorization": "Bearer ${CI_TOKEN}"})
    server.show("t1")
    await inbox.engine.track("ci", "t1")
    await server.stop()
    with pytest.raises(EngineError):
        await inbox.engine.refresh(KEY)
    await inbox.close()
    assert server.received[0].header("Authorization") == "Bearer hush-4711"
    assert not _files_with(tmp_path, b"hush-4711")


def _files_with(folder: Path, secret: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and secret in path.read_bytes()]


async def test_tracking_needs_a_task_that_the_server_knows(inbox: Inbox, server: TaskScript) -> None:
    with pytest.raises(EngineError) as caught:
        await inbox.engine.track("ci", "none")
    assert caught.value.failure == "unknown-task"
    await server.stop()
    with pytest.raises(EngineError) as caught:
        await inbox.engine.track("ci", "none")
    assert caught.value.failure == "unreachable"
    with pytest.raises(EngineError) as caught:
        await inbox.engine.track("prod", "none")
    assert caught.value.failure == "unknown-server"
    assert inbox.reader.list_rows() == []


async def test_a_task_is_tracked_by_its_handle(inbox: Inbox, server: TaskScript) -> None:
    server.ask("t1", q=APPROVE)
    key = await inbox.engine.track(
        "ci", "t1", handle_json='{"taskId": "t1", "status": "working", "ttlMs": 5000}'
    )
    assert inbox.task(key).section == "needs-you"
    assert len(server.of("tasks/get")) == 1
    assert await inbox.engine.track("ci", "t1") == key
    assert len(inbox.reader.list_rows()) == 1
    for handle_json in ("{", "[]", "{}", '{"taskId": "t2", "status": "working"}'):
        with pytest.raises(EngineError) as caught:
            await inbox.engine.track("ci", "t1", handle_json=handle_json)
        assert caught.value.failure == "invalid"


@pytest.mark.rule("tasks.cancelled-by-tasks-cancel", "tasks.cancel-shows-later", "wire.eventually-consistent")
async def test_cancelling_asks_and_waits_for_what_the_server_says(watched: Inbox, server: TaskScript) -> None:
    async with Running(watched.engine):
        assert "asked to cancel" in await watched.engine.cancel(KEY)
        state = watched.task(KEY).state
        assert state.cancel_requested_at is not None
        assert state.cancel_acknowledged_at is not None
        assert (state.status, state.tracking) == ("working", "active")
        server.show("t1", "cancelled")
        await watched.until(lambda: watched.task(KEY).section == "finished")
    assert [request.params["taskId"] for request in server.of("tasks/cancel")] == ["t1"]


async def test_a_wish_to_cancel_is_saved_and_passed_on_when_the_server_is_back(
    watched: Inbox, server: TaskScript
) -> None:
    await server.stop()
    with pytest.raises(EngineError) as caught:
        await watched.engine.cancel(KEY)
    assert caught.value.failure == "unreachable"
    assert watched.task(KEY).state.cancel_requested_at is not None
    await server.start(server.port)
    async with Running(watched.engine):
        await watched.until(lambda: watched.task(KEY).state.cancel_acknowledged_at)
    assert len(server.of("tasks/cancel")) == 1


async def test_a_refused_cancellation_is_told_and_not_repeated(watched: Inbox, server: TaskScript) -> None:
    server.on("tasks/cancel", error(-32601, "No cancelling here"))
    with pytest.raises(EngineError, match="No cancelling here") as caught:
        await watched.engine.cancel(KEY)
    assert caught.value.failure == "refused"
    async with Running(watched.engine):
        await server.wait_for(4, "tasks/get")
    assert len(server.of("tasks/cancel")) == 1
    assert watched.task(KEY).state.cancel_requested_at is None


async def test_a_task_that_is_over_can_not_be_cancelled(watched: Inbox, server: TaskScript) -> None:
    server.show("t1", "completed", result={})
    server.on("tasks/cancel", error(-32602, "It is over"))
    for _ in range(2):
        with pytest.raises(EngineError, match="over already: completed") as caught:
            await watched.engine.cancel(KEY)
        assert caught.value.failure == "closed"


@pytest.mark.parametrize("until", ["input", "end"])
async def test_waiting_ends_with_what_was_waited_for(watched: Inbox, server: TaskScript, until: Any) -> None:
    async with Running(watched.engine):
        waiting = asyncio.create_task(watched.engine.wait_for(KEY, until))
        server.ask("t1", q=APPROVE)
        await watched.until(lambda: watched.task(KEY).open_questions)
        if until == "end":
            assert not waiting.done()
            server.show("t1", "cancelled")
        await asyncio.wait_for(waiting, 20)


async def test_every_verb_names_a_task_that_is_not_there(inbox: Inbox) -> None:
    engine, none = inbox.engine, TaskKey("ci", "none")
    verbs = [
        engine.cancel(none),
        engine.refresh(none),
        engine.archive(none),
        engine.unarchive(none),
        engine.forget(none),
        engine.answer(none, []),
        engine.wait_for(none, "end"),
    ]
    for verb in verbs:
        with pytest.raises(EngineError, match="none of server ci") as caught:
            await verb
        assert caught.value.failure == "unknown-task"


@pytest.mark.rule("versioning.discover-first", "versioning.extension-missing")
async def test_a_server_is_tested_and_says_what_it_is(inbox: Inbox, server: TaskScript) -> None:
    discovery = {
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
        "instructions": "Be kind.",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "ci", "version": "1.2"}},
    }
    server.on("server/discover", result(discovery))
    server.on("tools/list", result({"tools": [{"name": "deploy", "inputSchema": {"type": "object"}}, {}]}))
    report = await inbox.engine.test_server("ci")
    assert (report.title, report.has_tasks, report.tools) == ("ci 1.2", True, 1)
    assert report.instructions == "Be kind."
    assert len(report.warnings) == 1
    (record,) = inbox.reader.servers()
    assert (record.state, "Be kind." in (record.info_json or "")) == ("ok", True)
    assert [tool.name for tool in (await inbox.engine.tools("ci")).tools] == ["deploy"]


@pytest.mark.rule("discover.implemented", "versioning.discover-implemented")
@pytest.mark.parametrize(
    ("reply", "failure", "state"),
    [
        (http_reply(401), "sign-in", "sign-in"),
        (reset(), "unreachable", "unreachable"),
        (result({}), "faulty", "faulty"),
        (error(-32601, "no", status=404), "refused", "ok"),
    ],
)
async def test_a_server_that_can_not_be_used_says_why(
    inbox: Inbox, server: TaskScript, reply: Any, failure: str, state: str
) -> None:
    server.on("server/discover", reply)
    with pytest.raises(EngineError, match="Server ci") as caught:
        await inbox.engine.test_server("ci")
    assert caught.value.failure == failure
    assert [record.state for record in inbox.reader.servers()] == [state]


async def test_drafts_are_kept_while_the_question_is_open(watched: Inbox, server: TaskScript) -> None:
    server.ask("t1", q=APPROVE)
    await watched.engine.refresh(KEY)
    number = watched.question(KEY).id
    await watched.engine.save_draft(number, '{"ok": "tr')
    assert watched.question(KEY).draft_json == '{"ok": "tr'
    await watched.engine.answer(KEY, [watched.accept(KEY)])
    await watched.engine.save_draft(number, "late")
    assert watched.question(KEY).draft_json is None


async def test_one_task_that_always_fails_makes_no_other_be_looked_at_sooner(
    inbox: Inbox, server: TaskScript
) -> None:
    """Its server answers for all the others, and so is well."""
    good = [f"good{number}" for number in range(8)]
    for name in (*good, "bad"):
        server.show(name, pollIntervalMs=20_000)
        await inbox.engine.track("ci", name)
    usual = server.get

    async def get(exchange: Exchange) -> None:
        is_bad = exchange.request.params["taskId"] == "bad"
        await (http_reply(500)(exchange) if is_bad else usual(exchange))

    server.on("tasks/get", get)
    before = len(server.of("tasks/get"))
    async with Running(inbox.engine):
        while sum(r.params["taskId"] == "bad" for r in server.of("tasks/get")[before:]) < 5:
            await server.wait_for(len(server.of("tasks/get")) + 1, "tasks/get")
    asked = [request.params["taskId"] for request in server.of("tasks/get")[before:]]
    assert max(asked.count(name) for name in good) <= 4  # the bad one backs off: 1, 2, 4, 8, 16 s and more
    assert "HTTP 500" in (inbox.task(TaskKey("ci", "bad")).state.problem or "")
    assert next(iter(inbox.reader.servers())).state == "ok"


async def test_looks_that_hang_hold_up_neither_other_looks_for_long_nor_a_cancellation(
    tmp_path: Path, server: TaskScript
) -> None:
    inbox = await Inbox.open(tmp_path, {"ci": server.url}, limits=LIMITS)
    good = TaskKey("ci", "good")
    server.show("good")
    await inbox.engine.track("ci", "good")
    hung = [f"hung{number}" for number in range(20)]
    for name in hung:
        server.show(name)
        await inbox.engine.track("ci", name)
    usual, never = server.get, asyncio.Event()

    async def get(exchange: Exchange) -> None:
        if exchange.request.params["taskId"] != "good":
            await never.wait()
        await usual(exchange)

    server.on("tasks/get", get)
    before = len(server.of("tasks/get"))
    async with Running(inbox.engine):
        await server.wait_for(before + 16, "tasks/get")
        async with asyncio.timeout(4):
            await inbox.engine.cancel(good)
        server.show("good", "cancelled")
        async with asyncio.timeout(12):
            await inbox.until(lambda: inbox.task(good).section == "finished")
    never.set()
    await inbox.close()
