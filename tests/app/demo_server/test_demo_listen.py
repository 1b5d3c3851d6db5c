"""Subscriptions of the service (basic/patterns/subscriptions; the Tasks page, "Task Status Notifications").

What a stream says is read message by message off a real connection, and nothing moves until a test says so.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from fakes.demo_wire import DECLINE, EVERYTHING, META, RpcFailure, accept, envelope

from app.demo_server import listening
from app.demo_server.service import Client

SUBSCRIPTION = f"{META}subscriptionId"
TASKS_ONLY: dict[str, Any] = {"extensions": EVERYTHING["extensions"]}


@pytest.mark.rule("subscriptions.acknowledged-first", "subscriptions.nothing-before-it", "http.no-buffering")
async def test_the_acknowledgement_comes_first_and_names_the_tasks_that_are_told_of(service):
    mine = await service.started("two_questions")
    async with service.wire.listening([mine, "tsk_never_was", mine]) as stream:
        assert stream.response.status_code == 200
        assert stream.response.headers["content-type"].partition(";")[0] == "text/event-stream"
        assert stream.response.headers["x-accel-buffering"] == "no"
        assert "content-length" not in stream.response.headers
        assert "mcp-session-id" not in stream.response.headers
        assert await stream.next() == {
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {"notifications": {"taskIds": [mine]}, "_meta": {SUBSCRIPTION: stream.id}},
        }


@pytest.mark.rule(
    "tasks.notification-is-a-snapshot", "tasks.notified", "index.subscription-id-on-notifications"
)
async def test_each_notification_is_the_whole_task_as_tasks_get_shows_it(service):
    task_id = await service.started("two_questions")
    statuses = []
    async with service.wire.listening([task_id]) as stream:
        await stream.next()
        for answers in ({}, {"count": accept(count=2)}, {"colour": DECLINE}):
            if answers:
                await service.wire.answer(task_id, **answers)
            message = await stream.next()
            assert message["method"] == "notifications/tasks"
            assert message["params"].pop("_meta") == {SUBSCRIPTION: stream.id}
            seen = await service.wire.get(task_id)
            assert seen.pop("resultType") == "complete"
            del seen["_meta"]
            assert message["params"] == seen
            statuses.append(seen["status"])
            while await service.worker.step() is not None:
                told = await stream.next()
                statuses.append(told["params"]["status"])
    assert statuses == ["working", "working", "input_required", "input_required", "working", "completed"]
    assert told["params"]["result"]["structuredContent"] == {"colour": None, "count": 2}
    assert "id" not in told


@pytest.mark.rule("subscriptions.only-what-was-asked")
async def test_a_stream_tells_of_its_own_tasks_alone(service):
    mine, other = [await service.started("flaky_job") for _ in range(2)]
    async with service.wire.listening([mine]) as stream:
        await service.settle()
        await stream.until(lambda message: message.get("params", {}).get("status") == "failed")
        told = {message["params"].get("taskId") for message in stream.seen[1:]}
    assert told == {mine}
    assert (await service.wire.get(other))["status"] == "failed"


@pytest.mark.rule("subscriptions.only-what-was-asked")
@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"toolsListChanged": True, "promptsListChanged": True},
        {"resourceSubscriptions": ["file:///x"], "resourcesListChanged": True, "unheard": 1},
    ],
)
async def test_what_never_changes_here_is_not_agreed_to_and_needs_no_capability(service, wanted):
    message = envelope("subscriptions/listen", {"notifications": wanted}, {})
    async with service.wire.stream(message) as stream:
        assert (await stream.next())["params"]["notifications"] == {}


async def test_nothing_is_lost_between_the_acknowledgement_and_the_first_snapshot(service):
    """Whatever the moment of a change, the last message is the newest state, and none is repeated."""
    tasks = [await service.started("flaky_job") for _ in range(20)]
    async with service.wire.listening(tasks) as stream:
        await service.settle()  # while the snapshots are on their way
        await stream.until(lambda _: len(ended(stream.seen)) == len(tasks))
    for task_id in tasks:
        states = [each["params"]["statusMessage"] for each in told_of(stream.seen, task_id)]
        assert len(states) == len(set(states))


async def test_an_ended_task_is_told_once_and_its_stream_stays_open(service):
    """Only its client and the end of the service end a subscription."""
    ended_before = await service.started("flaky_job")
    await service.settle()
    async with service.wire.listening([ended_before]) as stream:
        await stream.next()
        assert (await stream.next())["params"]["status"] == "failed"
        assert await stream.next_comment() == ": keep-alive"
        assert len(stream.seen) == 2


async def test_comments_keep_a_quiet_stream_alive(service):
    async with service.wire.listening([await service.started("two_questions")]) as stream:
        await stream.next()
        await stream.next()
        for _ in range(3):
            assert await stream.next_comment() == ": keep-alive"


@pytest.mark.rule(
    "subscriptions.server-ends-it",
    "cancellation.server-ends-subscriptions",
    "subscriptions.ends-with-a-result",
    "http.response-ends-stream",
    "http.no-requests-on-stream",
)
async def test_a_service_that_ends_says_so_gives_the_result_and_closes(service):
    async with service.wire.listening([await service.started("two_questions")]) as stream:
        await stream.next()
        await stream.next()
        service.listening.close()
        cancelled, result = await stream.next(), await stream.next()
        assert cancelled["method"] == "notifications/cancelled"
        assert cancelled["params"]["requestId"] == stream.id
        assert cancelled["params"]["_meta"] == {SUBSCRIPTION: stream.id}
        assert result["id"] == stream.id
        assert result["result"]["resultType"] == "complete"
        assert result["result"]["_meta"][SUBSCRIPTION] == stream.id
        assert result["result"]["_meta"][f"{META}serverInfo"]["name"] == "taskinbox-demo"
        assert await stream.ended()


@pytest.mark.rule("tasks.listen-missing-capability", "tasks.listen-undeclared")
@pytest.mark.parametrize("ids", [["tsk_x"], []])
async def test_tasks_are_told_of_only_to_a_client_that_declares_the_extension(service, ids):
    message = envelope("subscriptions/listen", {"notifications": {"taskIds": ids}}, {})
    response = await service.wire.send(message)
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["code"], error["data"]) == (
        -32021,
        {"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}},
    )


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notifications": []},
        {"notifications": {"taskIds": "tsk_x"}},
        {"notifications": {"taskIds": [1]}},
        {"notifications": {"taskIds": ["x"] * (listening.IDS_MOST + 1)}},
    ],
)
async def test_a_filter_that_cannot_be_read_is_refused(service, params):
    with pytest.raises(RpcFailure) as refused:
        await service.wire.call("subscriptions/listen", params)
    assert refused.value.code == -32602


@pytest.mark.rule("http.closing-cancels", "cancellation.http-disconnect")
async def test_a_client_that_left_takes_no_place(service):
    """Closing the stream is what ends a subscription (the page on Streamable HTTP, "Cancellation")."""
    for _ in range(2 * listening.STREAMS_MOST):
        async with service.wire.listening(["tsk_x"]) as stream:
            await stream.next()
        await service.until(lambda: service.listening.count == 0)


async def test_one_caller_has_a_bounded_number_of_streams(service):
    async with asyncio.TaskGroup() as group:
        hold = asyncio.Event()

        async def held() -> None:
            async with service.wire.listening(["tsk_x"]) as stream:
                await stream.next()
                await hold.wait()

        for _ in range(listening.STREAMS_MOST):
            group.create_task(held())
        await service.until(lambda: service.listening.count == listening.STREAMS_MOST)
        message = envelope("subscriptions/listen", {"notifications": {}})
        response = await service.wire.send(message)
        hold.set()
    assert response.status_code == 429
    assert int(response.headers["retry-after"]) > 0
    assert response.json()["error"]["code"] == 429


class Connection:
    """What a server gives an ASGI application: here, one that takes nothing until it is told to."""

    def __init__(self) -> None:
        self.takes = asyncio.Event()
        self.left = asyncio.Event()
        self.messages: list[dict[str, Any]] = []
        self.comments = 0
        self.waiting = False

    async def send(self, part: Any) -> None:
        self.waiting = not self.takes.is_set()
        await self.takes.wait()
        for line in part.get("body", b"").splitlines():
            self.comments += line.startswith(b":")
            if line.startswith(b"data: "):
                self.messages.append(json.loads(line[6:]))

    async def receive(self) -> Any:
        await self.left.wait()
        return {"type": "http.disconnect"}

    def told(self) -> list[Any]:
        return [each["params"].get("statusMessage") for each in self.messages if "params" in each][1:]


async def test_a_reader_that_stalls_costs_no_memory_and_gets_the_newest_alone(service):
    """States that came and went while the connection took nothing are passed over."""
    task_id = await service.started("long_build", minutes=10)
    connection = Connection()
    params = {"notifications": {"taskIds": [task_id]}}
    reply = service.listening.open(1, params, Client(True, frozenset()))
    sending = asyncio.create_task(reply({"type": "http"}, connection.receive, connection.send))
    for _ in range(30):
        await service.worker.step()
    connection.takes.set()
    await service.until(lambda: len(connection.told()) == 1)
    assert connection.told() == ["Building module 30 of 100"]
    await service.until(lambda: connection.comments > 0)
    connection.takes.clear()
    await service.until(lambda: connection.waiting)  # with a comment
    for _ in range(30):
        await service.worker.step()
    connection.takes.set()
    await service.until(lambda: len(connection.told()) == 2)
    assert connection.told()[-1] == "Building module 60 of 100"
    connection.left.set()
    await sending
    assert service.listening.count == 0


async def test_a_reader_that_stalls_for_ever_does_not_hold_up_the_end(service, monkeypatch):
    monkeypatch.setattr(listening, "CLOSING_SECONDS", 0.01)
    connection = Connection()
    params = {"notifications": {"taskIds": [await service.started("long_build")]}}
    reply = service.listening.open(1, params, Client(True, frozenset()))
    sending = asyncio.create_task(reply({"type": "http"}, connection.receive, connection.send))
    await service.until(lambda: connection.waiting)
    service.listening.close()
    async with asyncio.timeout(30):
        await sending
    assert (service.listening.count, connection.messages) == (0, [])


async def test_a_stream_whose_store_fails_says_so_and_ends(service, caplog):
    async with service.wire.listening([await service.started("two_questions")]) as stream:
        await stream.next()
        await stream.next()
        service.worker._store._db.execute("DROP TABLE sequence")
        cancelled = await stream.next()
        assert cancelled["method"] == "notifications/cancelled"
        assert cancelled["params"]["reason"] == "the service can't reach its data"
        assert (await stream.next())["id"] == stream.id
        assert await stream.ended()
    assert [record.message for record in caplog.records] == ["a subscription can't go on"]


@pytest.mark.parametrize("request_id", [7, 0, -1, "a string, too", ""])
async def test_a_subscription_has_the_id_of_its_request(service, request_id):
    message = envelope("subscriptions/listen", {"notifications": {}}) | {"id": request_id}
    async with service.wire.stream(message) as stream:
        assert (await stream.next())["params"]["_meta"] == {SUBSCRIPTION: request_id}


async def test_a_last_event_id_changes_nothing_and_no_event_has_an_id(service):
    message = envelope("subscriptions/listen", {"notifications": {"taskIds": []}})
    async with service.wire.stream(message, {"Last-Event-ID": "5", "Mcp-Session-Id": "x"}) as stream:
        assert (await stream.next())["params"]["notifications"] == {"taskIds": []}
        assert stream.fields == {"data"}


def told_of(messages: list[dict[str, Any]], task_id: str) -> list[dict[str, Any]]:
    return [each for each in messages if each.get("params", {}).get("taskId") == task_id]


def ended(messages: list[dict[str, Any]]) -> set[str]:
    return {
        each["params"]["taskId"]
        for each in messages
        if each["params"].get("status") in ("failed", "completed")
    }
