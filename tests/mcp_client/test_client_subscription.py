"""Subscriptions over a real socket: what is taken, what is passed over, and how they end.

Pages: basic/patterns/subscriptions; the Tasks extension ("Task Status Notifications").
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from fakes.listen_script import (
    ack,
    ack_with,
    cancelled,
    event,
    finished,
    ids_of,
    marked,
    said,
    told,
)
from fakes.mcp_server import (
    Exchange,
    Reply,
    ScriptedServer,
    drop,
    error,
    head,
    http_reply,
    notification,
    pieces,
    reset,
    response,
    result,
    stream,
)
from fakes.task_script import APPROVE, task

from mcp_client import (
    AuthRequired,
    Ending,
    InputRequiredTask,
    InvalidRequest,
    Limits,
    McpClient,
    McpError,
    Missed,
    ProtocolError,
    ServerError,
    Subscription,
    SubscriptionEvent,
    TaskNotification,
    ToolsChanged,
    TransportError,
)
from mcp_client import subscription as module


def brief(item: SubscriptionEvent) -> str:
    """Return an event in a word: ``t1 working``, ``tools``, ``t1 missed``."""
    match item:
        case TaskNotification():
            return f"{item.task.task_id} {item.task.status}"
        case Missed():
            return f"{item.task_id} missed"
        case ToolsChanged():
            return "tools"


async def heard(
    client: McpClient, *ids: str, tools_changed: bool = False
) -> tuple[list[str], Ending | None, Subscription]:
    """Listen to the end."""
    async with client.listen(ids or ("t1", "t2"), tools_changed=tools_changed) as subscription:
        events = [brief(item) async for item in subscription]
    return events, subscription.ending, subscription


@pytest.mark.rule("wire.listen-many-ids")
async def test_a_subscription_names_its_tasks_once_and_says_what_any_request_says(
    server: ScriptedServer, client: McpClient
) -> None:
    server.queue(stream(ack(), finished()))
    async with client.listen(["t1", "t2", "t1"]) as subscription:
        assert subscription.accepted == {"t1", "t2"}
    (request,) = server.received
    assert request.params["notifications"] == {"taskIds": ["t1", "t2"]}
    meta = request.params["_meta"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert "io.modelcontextprotocol/tasks" in meta["io.modelcontextprotocol/clientCapabilities"]["extensions"]
    assert request.header("Mcp-Method") == "subscriptions/listen"
    assert request.header("Mcp-Name") is None
    assert request.header("Accept") == "application/json, text/event-stream"


@pytest.mark.rule("tasks.notified", "tasks.notification-is-a-snapshot", "wire.listen-snapshots")
async def test_snapshots_come_as_tasks_with_the_time_they_were_received(
    server: ScriptedServer, client: McpClient
) -> None:
    asking = task("t1", "input_required", inputRequests={"q": APPROVE})
    done = task("t2", "completed", result={"content": []})
    server.queue(stream(ack(), told(asking), told(done), finished()))
    times = iter((1.5, 2.5, 3.5))
    async with client.listen(["t1", "t2"], clock=lambda: next(times, 4.5)) as subscription:
        first, second = [item async for item in subscription]
    assert isinstance(first, TaskNotification)
    assert isinstance(second, TaskNotification)
    assert isinstance(first.task, InputRequiredTask)
    assert list(first.task.input_requests) == ["q"]
    assert (first.received, second.received) == (2.5, 3.5)  # the acknowledgement was the first
    assert subscription.faults == ()


ENDINGS: dict[str, tuple[Reply, Ending]] = {
    "final result": (stream(ack(), finished()), Ending("finished")),
    "final result without a type": (
        stream(ack(), lambda r: response({"_meta": marked(r)})(r)),
        Ending("finished"),
    ),
    "cancelled": (stream(ack(), cancelled("maintenance")), Ending("cancelled", "maintenance")),
    "cancelled without a reason": (stream(ack(), cancelled()), Ending("cancelled")),
}


@pytest.mark.rule(
    "cancellation.server-ends-subscriptions",
    "cancellation.server-names-subscription",
    "subscriptions.server-ends-it",
    "subscriptions.ends-with-a-result",
    "wire.listen-endings",
)
@pytest.mark.parametrize(("reply", "ending"), ENDINGS.values(), ids=ENDINGS)
async def test_the_server_ends_it_in_good_order(
    server: ScriptedServer, client: McpClient, reply: Reply, ending: Ending
) -> None:
    """Graceful Closure; cancellation (basic/patterns/cancellation)."""
    server.queue(reply)
    events, found, _ = await heard(client)
    assert (events, found) == ([], ending)


DROPS: dict[str, tuple[Reply, str]] = {
    "the stream ends": (stream(ack()), "without a response to subscriptions/listen"),
    "an unknown type of result": (stream(ack(), finished(resultType="later")), "later"),
    "a task for a result": (stream(ack(), finished(resultType="task")), "not allowed"),
    "questions for a result": (stream(ack(), finished(resultType="input_required")), "not allowed"),
    "a result for another request": (
        stream(ack(), {"jsonrpc": "2.0", "id": "other", "result": {}}),
        "another request",
    ),
    "an error": (
        stream(
            ack(), lambda r: {"jsonrpc": "2.0", "id": r.json["id"], "error": {"code": 1, "message": "no"}}
        ),
        "no (1)",
    ),
    "no JSON": (stream(ack(), b"data: {\r\n\r\n"), "not valid JSON"),
    "no message": (stream(ack(), b"data: [1]\r\n\r\n"), "no JSON-RPC message"),
    "a request of its own": (stream(ack(), {"jsonrpc": "2.0", "id": 1, "method": "ping"}), "of its own"),
}


@pytest.mark.rule("subscriptions.dropped-then-reconnect", "wire.listen-endings")
@pytest.mark.parametrize(("reply", "words"), DROPS.values(), ids=DROPS)
async def test_whatever_else_ends_it_is_a_drop_that_says_why(
    server: ScriptedServer, client: McpClient, reply: Reply, words: str
) -> None:
    server.queue(reply)
    events, ending, _ = await heard(client)
    assert events == []
    assert ending is not None
    assert ending.kind == "dropped"
    assert ending.message is not None
    assert words in ending.message


@pytest.mark.rule("subscriptions.dropped-then-reconnect")
async def test_a_stream_cut_in_the_middle_of_a_chunk_is_a_drop(
    server: ScriptedServer, client: McpClient
) -> None:
    async def cut(exchange: Exchange) -> None:
        await exchange.send(head(200, "text/event-stream", {"Transfer-Encoding": "chunked"}))
        whole = event(ack()(exchange.request))
        await exchange.send(b"%x\r\n%s\r\n" % (len(whole), whole))
        await exchange.send(b"400\r\ndata: {")
        exchange.writer.close()

    server.queue(cut)
    events, ending, _ = await heard(client)
    assert events == []
    assert ending is not None
    assert ending.kind == "dropped"
    assert "gave no complete reply" in (ending.message or "")


@pytest.mark.rule("wire.idle-streams-outlive-read-timeouts")
async def test_a_stream_that_falls_silent_is_a_drop_and_comments_are_life(server: ScriptedServer) -> None:
    silent = asyncio.Event()

    async def quiet(exchange: Exchange) -> None:
        await exchange.send(head(200, "text/event-stream", {"Connection": "close"}))
        await exchange.send(event(ack()(exchange.request)))
        for _ in range(8):
            await asyncio.sleep(0.1)  # longer in all than silence may be
            await exchange.send(b": ping\r\n\r\n")
        silent.set()
        await exchange.closed_by_client()

    server.queue(quiet)
    async with McpClient.http(server.url, limits=Limits(idle_seconds=0.5)) as client:
        _, ending, _ = await heard(client)
    assert silent.is_set()
    assert ending == Ending("dropped", f"127.0.0.1:{server.port} has been silent for 0.5 s.")


@pytest.mark.rule("subscriptions.client-ends-it")
async def test_leaving_closes_the_stream_which_cancels_the_request(
    server: ScriptedServer, client: McpClient
) -> None:
    """Closing the SSE stream is the cancellation signal (basic/patterns/cancellation)."""
    closed = asyncio.Event()

    async def open_ended(exchange: Exchange) -> None:
        await stream_open(exchange, ack())
        await exchange.closed_by_client()
        closed.set()

    server.queue(open_ended)
    async with client.listen(["t1"]):
        assert not closed.is_set()
    await asyncio.wait_for(closed.wait(), 20)
    assert [request.method for request in server.received] == ["subscriptions/listen"]


async def stream_open(exchange: Exchange, *items: Callable[[Any], Any]) -> None:
    await exchange.send(head(200, "text/event-stream", {"Connection": "close"}))
    for item in items:
        await exchange.send(event(item(exchange.request)))


async def test_a_stream_means_the_same_wherever_it_is_split(
    server: ScriptedServer, client: McpClient
) -> None:
    told_of = {**task("t1", statusMessage="grün"), "pollIntervalMs": 5}
    at = 0

    async def split(exchange: Exchange) -> None:
        items = (ack()(exchange.request), told(told_of)(exchange.request), finished()(exchange.request))
        body = b": hi\r\n\r\n" + b"".join(b"data: " + compact(item) + b"\r\n\r\n" for item in items)
        start = head(200, "text/event-stream", {"Connection": "close"})
        await pieces((start + body[:at], body[at:]))(exchange)
        sizes.append(len(body))

    sizes: list[int] = []
    server.on("subscriptions/listen", split)
    while not sizes or at <= sizes[-1]:
        events, ending, subscription = await heard(client, "t1")
        assert (events, ending) == (["t1 working"], Ending("finished"))
        assert subscription.faults == ()
        at += 1


def compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


async def test_a_stream_that_comes_byte_by_byte_is_the_same_stream(
    server: ScriptedServer, client: McpClient
) -> None:
    async def dribble(exchange: Exchange) -> None:
        items = (ack(), told(task("t1")), cancelled("so"))
        body = b"".join(event(item(exchange.request)) for item in items)
        whole = head(200, "text/event-stream", {"Connection": "close"}) + body
        await pieces([whole[i : i + 1] for i in range(len(whole))])(exchange)

    server.queue(dribble)
    events, ending, _ = await heard(client)
    assert (events, ending) == (["t1 working"], Ending("cancelled", "so"))


# The acknowledgement.

ACKNOWLEDGEMENTS: dict[str, tuple[Any, set[str], int]] = {
    "all": ({"taskIds": ["t1", "t2"]}, {"t1", "t2"}, 0),
    "some": ({"taskIds": ["t2"]}, {"t2"}, 0),
    "none": ({"taskIds": []}, set(), 0),
    "nothing said": ({}, set(), 0),
    "never asked for": ({"taskIds": ["t1", "t9"]}, {"t1"}, 1),
    "twice": ({"taskIds": ["t1", "t1"]}, {"t1"}, 1),
    "a string": ({"taskIds": "t1"}, set(), 1),
    "null": ({"taskIds": None}, set(), 1),
    "true": ({"taskIds": True}, set(), 1),
    "wrong among right": ({"taskIds": [1, None, ["t1"], {"t1": 1}, "t1"]}, {"t1"}, 1),
    "no object": (["t1"], set(), 1),
}


@pytest.mark.rule(
    "subscriptions.acknowledged-filter-checked", "tasks.listen-accepted-ids", "wire.listen-many-ids"
)
@pytest.mark.parametrize(
    ("notifications", "accepted", "faults"), ACKNOWLEDGEMENTS.values(), ids=ACKNOWLEDGEMENTS
)
async def test_what_was_both_asked_for_and_acknowledged_is_accepted(
    server: ScriptedServer, client: McpClient, notifications: Any, accepted: set[str], faults: int
) -> None:
    """The acknowledged filter is checked against what was asked for ("Acknowledgment")."""
    server.queue(stream(ack_with(notifications), finished()))
    _, ending, subscription = await heard(client)
    assert subscription.accepted == accepted
    assert len(subscription.faults) == faults
    assert ending == Ending("finished")


async def test_an_acknowledgement_without_a_word_of_notifications_accepts_nothing(
    server: ScriptedServer, client: McpClient
) -> None:
    server.queue(stream(said("notifications/subscriptions/acknowledged"), finished()))
    _, _, subscription = await heard(client)
    assert subscription.accepted == frozenset()


async def test_a_second_acknowledgement_changes_nothing(server: ScriptedServer, client: McpClient) -> None:
    server.queue(stream(ack("t1"), ack("t1", "t2"), told(task("t2")), finished()))
    events, _, subscription = await heard(client)
    assert events == []
    assert subscription.accepted == {"t1"}
    assert len(subscription.faults) == 2


@pytest.mark.rule("subscriptions.only-what-was-asked")
async def test_changed_tools_are_told_only_where_that_was_agreed(
    server: ScriptedServer, client: McpClient
) -> None:
    """A server must not send what was not asked for ("Opening a Stream")."""
    changed = said("notifications/tools/list_changed")
    for asked, agreed, events in ((True, True, ["tools"]), (True, False, []), (False, True, [])):
        server.queue(stream(ack("t1", toolsListChanged=agreed), changed, changed, finished()))
        found, _, subscription = await heard(client, "t1", tools_changed=asked)
        assert found == events
        assert subscription.tools_changed is (asked and agreed)
        assert bool(subscription.faults) is not (asked and agreed)
        assert server.received[-1].params["notifications"].get("toolsListChanged", False) is asked


async def test_tools_may_be_listened_for_without_any_task(server: ScriptedServer, client: McpClient) -> None:
    changed = said("notifications/tools/list_changed")
    server.queue(stream(ack_with({"toolsListChanged": True}), changed, finished()))
    async with client.listen([], tools_changed=True) as subscription:
        assert [brief(item) async for item in subscription] == ["tools"]
    assert server.received[0].params["notifications"] == {"toolsListChanged": True}


async def test_a_compressed_stream_tells_each_event_as_it_comes(
    server: ScriptedServer, client: McpClient
) -> None:
    heard_one = asyncio.Event()

    async def compressed(exchange: Exchange) -> None:
        pack = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
        headers = {"Connection": "close", "Content-Encoding": "gzip"}
        await exchange.send(head(200, "text/event-stream", headers))
        for item in (ack(), told(task("t1"))):
            data = pack.compress(event(item(exchange.request)))
            await exchange.send(data + pack.flush(zlib.Z_SYNC_FLUSH))
        await heard_one.wait()
        await exchange.send(pack.compress(event(finished()(exchange.request))) + pack.flush())
        exchange.writer.close()

    server.queue(compressed)
    async with client.listen(["t1"]) as subscription:
        events = []
        async for item in subscription:
            events.append(brief(item))
            heard_one.set()
    assert events == ["t1 working"]
    assert subscription.ending == Ending("finished")


REFUSALS: dict[str, tuple[Reply, type[McpError], str]] = {
    "an error": (error(-32601, "Method not found", status=404), ServerError, "Method not found"),
    "an error within 200": (error(-32601, "no", status=200), ServerError, "no"),
    "a missing capability": (error(-32021, "Missing required client capability"), ServerError, "Missing"),
    "an error on the stream": (
        stream(
            lambda r: {"jsonrpc": "2.0", "id": r.json["id"], "error": {"code": -32000, "message": "full"}}
        ),
        ServerError,
        "full",
    ),
    "404": (http_reply(404), TransportError, "404"),
    "405": (http_reply(405), TransportError, "405"),
    "501": (http_reply(501), TransportError, "501"),
    "a sign-in": (http_reply(401), AuthRequired, "sign-in"),
    "a redirect": (
        http_reply(307, headers={"Location": "https://example.com/"}),
        TransportError,
        "not followed",
    ),
    "an empty reply": (http_reply(200), ProtocolError, "empty"),
    "a page": (http_reply(200, b"<html>", content_type="text/html"), ProtocolError, "text/html"),
    "JSON that is no response": (http_reply(200, b"{}"), ProtocolError, "no response"),
    "a result at once": (result({"resultType": "complete"}), ProtocolError, "without acknowledging"),
    "a result on the stream": (stream(finished()), ProtocolError, "without acknowledging"),
    "a cancellation first": (stream(cancelled()), ProtocolError, "without acknowledging"),
    "a drop": (drop(), TransportError, "no complete reply"),
    "a reset": (reset(), TransportError, "no complete reply"),
    "an empty stream": (stream(), TransportError, "without a response"),
    "rubbish": (stream(b"data: }\n\n"), ProtocolError, "JSON"),
}


@pytest.mark.parametrize(("reply", "kind", "words"), REFUSALS.values(), ids=REFUSALS)
async def test_a_refusal_is_raised_on_entering_as_by_any_request(
    server: ScriptedServer, client: McpClient, reply: Reply, kind: type[McpError], words: str
) -> None:
    server.queue(reply)
    with pytest.raises(kind, match=words) as caught:
        await heard(client)
    assert type(caught.value) is kind


async def test_a_redirect_within_the_origin_is_followed(server: ScriptedServer, client: McpClient) -> None:
    server.queue(http_reply(307, headers={"Location": "/elsewhere"}), stream(ack(), finished()))
    _, ending, _ = await heard(client)
    assert ending == Ending("finished")
    assert [request.path for request in server.received] == ["/mcp", "/elsewhere"]


async def test_a_closed_client_listens_no_more(server: ScriptedServer, client: McpClient) -> None:
    await client.aclose()
    with pytest.raises(InvalidRequest):
        await heard(client)


async def test_closing_the_client_ends_an_open_subscription(
    server: ScriptedServer, client: McpClient
) -> None:
    server.queue(stream(ack(), hold=asyncio.Event()))
    async with client.listen(["t1"]) as subscription:
        await client.aclose()
        assert [item async for item in subscription] == []
    assert subscription.ending is not None
    assert subscription.ending.kind == "dropped"


@pytest.mark.rule("subscriptions.acknowledged-first")
@pytest.mark.parametrize("early", [True, False], ids=["silence", "noise"])
async def test_no_acknowledgement_in_time_is_an_error_and_the_request_is_cancelled(
    server: ScriptedServer, early: bool
) -> None:
    closed = asyncio.Event()

    async def never(exchange: Exchange) -> None:
        if not early:
            await stream_open(exchange, told(task("t1")))
        await exchange.closed_by_client()
        closed.set()

    server.queue(never)
    async with McpClient.http(server.url, limits=Limits(ack_seconds=0.3)) as client:
        with pytest.raises(TransportError, match=r"did not acknowledge .* within 0\.3 s") as caught:
            await heard(client)
        assert caught.value.may_have_reached
        await asyncio.wait_for(closed.wait(), 20)


async def test_a_version_that_both_speak_is_tried_once_more(
    server: ScriptedServer, client: McpClient
) -> None:
    """-32022 names the supported versions (basic/versioning)."""
    refused = error(-32022, "Unsupported", {"supported": ["2026-07-28"]})
    server.queue(refused, stream(ack(), finished()))
    _, ending, _ = await heard(client)
    assert ending == Ending("finished")
    first, second = server.received
    assert first.json["id"] != second.json["id"]
    server.queue(refused, refused)
    with pytest.raises(ServerError):
        await heard(client)


# What is passed over: noted, never fatal, never taken for something else.

WRONG: dict[str, Any] = {
    "a task not accepted": told(task("t2")),
    "a task never asked for": told(task("t9")),
    "no task id": said("notifications/tasks", status="working"),
    "a task id that is no string": told(task("t1", taskId=["t1"])),
    "another subscription": lambda r: notification(
        "notifications/tasks", {**task("t1"), "_meta": {"io.modelcontextprotocol/subscriptionId": "other"}}
    ),
    "a subscription id that is a number": lambda r: notification(
        "notifications/tasks", {**task("t1"), "_meta": {"io.modelcontextprotocol/subscriptionId": 1}}
    ),
    "progress": said("notifications/progress", progressToken="t1", progress=1),
    "a log message": said("notifications/message", level="info", data="x"),
    "tools": said("notifications/tools/list_changed"),
    "an unknown method": said("notifications/\x1b[2J" + "x" * 500),
    "another request cancelled": said("notifications/cancelled", requestId="other"),
    "nothing cancelled": said("notifications/cancelled"),
    "params that are a list": notification("notifications/tasks", [1]),  # type: ignore[arg-type]
    "no params": {"jsonrpc": "2.0", "method": "notifications/tasks"},
}


@pytest.mark.rule(
    "cancellation.server-nothing-else",
    "cancellation.server-names-subscription",
    "cancellation.invalid-ignored",
    "index.subscription-id-on-notifications",
    "subscriptions.only-what-was-asked",
    "tasks.no-progress-on-listen",
)
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
async def test_what_has_no_place_is_noted_and_the_stream_goes_on(
    server: ScriptedServer, client: McpClient, wrong: Any
) -> None:
    """notifications/progress and notifications/message must not come here ("Task Status Notifications")."""
    server.queue(stream(ack("t1"), wrong, told(task("t1")), finished()))
    events, ending, subscription = await heard(client, "t1", "t2")
    assert (events, ending) == (["t1 working"], Ending("finished"))
    assert subscription.faults
    assert all(len(fault) < 400 for fault in subscription.faults)


@pytest.mark.rule("subscriptions.acknowledged-first", "subscriptions.nothing-before-it")
async def test_what_comes_before_the_acknowledgement_is_not_taken(
    server: ScriptedServer, client: McpClient
) -> None:
    """Nothing may come before it ("Acknowledgment")."""
    server.queue(stream(told(task("t1", "cancelled")), ack(), told(task("t1")), finished()))
    events, _, subscription = await heard(client)
    assert events == ["t1 working"]
    assert len(subscription.faults) == 1


@pytest.mark.rule("index.subscription-id-on-notifications")
async def test_a_missing_subscription_id_is_forgiven_on_a_stream_of_our_own(
    server: ScriptedServer, client: McpClient
) -> None:
    bare = [
        notification("notifications/subscriptions/acknowledged", {"notifications": {"taskIds": ["t1"]}}),
        notification("notifications/tasks", task("t1")),
    ]
    server.queue(stream(*bare, response({})))
    events, ending, subscription = await heard(client, "t1")
    assert (events, ending) == (["t1 working"], Ending("finished"))
    assert len(subscription.faults) == 3


@pytest.mark.parametrize("status", ["paused", None, 7], ids=repr)
async def test_a_snapshot_that_can_not_be_read_is_a_reason_to_ask(
    server: ScriptedServer, client: McpClient, status: Any
) -> None:
    server.queue(stream(ack(), told(task("t1", status)), told(task("t2")), finished()))
    events, _, subscription = await heard(client)
    assert events == ["t1 missed", "t2 working"]
    assert len(subscription.faults) == 1


async def test_faults_are_kept_once_and_not_without_end(server: ScriptedServer, client: McpClient) -> None:
    flood = [said(f"notifications/x{number % 200}") for number in range(1_000)]
    server.queue(stream(ack(), *flood, finished()))
    _, ending, subscription = await heard(client)
    assert ending == Ending("finished")
    assert len(subscription.faults) == module._FAULTS
    assert len(set(subscription.faults)) == module._FAULTS


async def test_a_reason_without_an_end_is_cut(server: ScriptedServer, client: McpClient) -> None:
    server.queue(stream(ack(), cancelled("x" * 100_000)))
    _, ending, _ = await heard(client)
    assert ending == Ending("cancelled", "x" * 1_000)


async def test_an_event_that_is_too_large_is_a_drop(server: ScriptedServer) -> None:
    server.queue(stream(ack(), told(task("t1", statusMessage="x" * 5_000)), hold=asyncio.Event()))
    async with McpClient.http(server.url, limits=Limits(reply_bytes=2_000)) as client:
        events, ending, _ = await heard(client)
    assert events == []
    assert ending is not None
    assert "larger than 2,000 bytes" in (ending.message or "")


async def test_a_stream_may_carry_more_in_all_than_one_reply(server: ScriptedServer) -> None:
    many = [told(task("t1", statusMessage="x" * 500)) for _ in range(20)]
    server.queue(stream(ack(), *many, finished()))
    async with McpClient.http(server.url, limits=Limits(reply_bytes=2_000)) as client:
        _, ending, _ = await heard(client)
    assert ending == Ending("finished")


# A reader that is slow.


async def read_all(server: ScriptedServer, client: McpClient, *items: Any) -> list[SubscriptionEvent]:
    """Take events only after all of them have come."""
    server.queue(stream(ack(), *items, finished()))
    async with client.listen(ids_asked) as subscription:
        while subscription.ending is None:  # noqa: ASYNC110 - nothing tells of it but the iteration
            await asyncio.sleep(0.01)
        return [item async for item in subscription]


ids_asked = ("t1", "t2", "t3")


async def test_of_each_task_only_the_newest_waits(server: ScriptedServer, client: McpClient) -> None:
    items = [told(task(f"t{1 + n % 2}", statusMessage=str(n))) for n in range(200)]
    found = await read_all(server, client, *items)
    kept = [(one.task.task_id, one.task.status_message) for one in found if isinstance(one, TaskNotification)]
    assert kept == [("t1", "198"), ("t2", "199")]


async def test_what_can_not_be_kept_is_told_as_missed(
    server: ScriptedServer, client: McpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BACKLOG_BYTES", 10_000)
    large = {"statusMessage": "x" * 4_000}
    items = [task("t1", **large), task("t2", **large), task("t3", **large), task("t3"), task("t1", **large)]
    found = await read_all(server, client, *map(told, items))
    assert [brief(item) for item in found] == ["t1 working", "t2 missed", "t3 working"]


async def test_one_notification_of_any_size_fits(
    server: ScriptedServer, client: McpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BACKLOG_BYTES", 10)
    nested = task("t1", "completed", result={"content": [{"type": "text", "text": "x"}]})
    found = await read_all(server, client, told(nested))
    assert [brief(item) for item in found] == ["t1 completed"]


@pytest.mark.rule("subscriptions.several-at-once")
async def test_several_subscriptions_are_open_at_a_time_and_never_mixed(
    server: ScriptedServer, client: McpClient
) -> None:
    both = asyncio.Event()

    async def serve(exchange: Exchange) -> None:
        await stream_open(exchange, ack())
        await both.wait()
        await exchange.send(event(told(task(ids_of(exchange.request)[0]))(exchange.request)))
        await exchange.send(event(finished()(exchange.request)))
        exchange.writer.close()

    server.on("subscriptions/listen", serve)
    async with client.listen(["t1"]) as one, client.listen(["t2"]) as other:
        both.set()
        assert [brief(item) async for item in one] == ["t1 working"]
        assert [brief(item) async for item in other] == ["t2 working"]
        assert (one.faults, other.faults) == ((), ())


async def test_a_fault_of_this_program_ends_the_iteration_and_is_raised(
    server: ScriptedServer, client: McpClient
) -> None:
    def clock() -> float:
        raise RuntimeError("a bug")

    server.queue(stream(ack(), hold=asyncio.Event()))
    with pytest.raises(RuntimeError, match="a bug"):
        async with client.listen(["t1"], clock=clock):
            raise AssertionError("unreachable")

    times = iter((1.0,))
    server.queue(stream(ack(), told(task("t1")), hold=asyncio.Event()))
    with pytest.raises(RuntimeError):
        async with client.listen(["t1"], clock=lambda: next(times)) as subscription:
            assert [item async for item in subscription] == []
