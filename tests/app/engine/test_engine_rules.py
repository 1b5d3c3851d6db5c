"""Rules that no other test of the engine holds; each mark names one, and tests/rules says its page."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from fakes.inbox import FASTER, Inbox, Running
from fakes.mcp_server import Received, ScriptedServer, http_reply, notification, result, stream
from fakes.task_script import TaskScript, handle

from app.engine.structured import check_output
from app.forms import read_form
from storage.records import TaskKey

KEY = TaskKey("ci", "t1")
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


@pytest.mark.rule("tasks.rate-limited")
async def test_a_server_that_holds_back_who_polls_is_polled_less_and_less(
    inbox: Inbox, server: TaskScript
) -> None:
    server.show("t1", pollIntervalMs=500)
    await inbox.engine.track("ci", "t1")
    server.on("tasks/get", http_reply(429, b"slow down"))
    server.received.clear()
    async with Running(inbox.engine):
        await inbox.until(lambda: inbox.task(KEY).state.problem)
        await asyncio.sleep(30 / FASTER)
        # At its own pace it would be looked at some sixty times; 1, 2, 4, 8 … seconds apart, six or so.
        assert 2 <= len(server.of("tasks/get")) <= 12
        assert "429" in (inbox.task(KEY).state.problem or "")
        assert inbox.task(KEY).section == "running"
        server.on("tasks/get", server.get)
        server.show("t1", "completed", result={})
        await inbox.until(lambda: inbox.task(KEY).section == "finished")


@pytest.mark.rule("tasks.cancel-may-fail", "wire.cooperative-cancelling", "tasks.cancelled-by-tasks-cancel")
@pytest.mark.parametrize("status", ["completed", "failed"])
async def test_a_task_that_was_asked_to_be_cancelled_may_still_end_otherwise(
    inbox: Inbox, server: TaskScript, status: str
) -> None:
    server.show("t1")
    await inbox.engine.track("ci", "t1")
    async with Running(inbox.engine):
        await inbox.engine.cancel(KEY)
        outcome = {"result": {"content": []}} if status == "completed" else {"error": {"code": -32603}}
        server.show("t1", status, **outcome)
        await inbox.until(lambda: inbox.task(KEY).section == "finished")
    state = inbox.task(KEY).state
    assert (state.status, state.tracking) == (status, "ended")
    assert (state.result_json is not None, state.error_json is not None) == (
        status == "completed",
        status == "failed",
    )
    assert len(server.of("tasks/cancel")) == 1
    assert server.of("notifications/cancelled") == []


@pytest.mark.rule("tools.names-collide", "tools.name-disambiguated", "index.info-changes-nothing")
async def test_one_tool_name_on_two_servers_is_two_tools(tmp_path: Path) -> None:
    """They are told apart by the names in the servers file; the one a server gives itself does not count."""
    same = {"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "same", "version": "1"}}}
    async with TaskScript() as one, TaskScript() as other:
        inbox = await Inbox.open(tmp_path, {"one": one.url, "other": other.url})
        for script in (one, other):
            script.show("t1")
            script.on("tools/call", result({**handle("t1"), **same}))
        for name in ("one", "other"):
            outcome = await inbox.engine.call(name, "search", "{}")
            assert outcome.key == TaskKey(name, "t1")
        await inbox.engine.cancel(TaskKey("other", "t1"))
        assert [len(script.of("tools/call")) for script in (one, other)] == [1, 1]
        assert [len(script.of("tasks/cancel")) for script in (one, other)] == [0, 1]
        assert len(inbox.reader.list_rows()) == 2
        await inbox.close()


@pytest.mark.rule("index.ref-not-fetched", "index.ref-unresolved-refused", "wire.ref-not-fetched")
async def test_a_reference_to_the_network_is_never_fetched() -> None:
    """What can't be judged for it is said to be so, not passed over (basic/index, "$ref Resolution")."""
    async with ScriptedServer() as elsewhere:
        for ref in (elsewhere.url, f"{elsewhere.url}#/$defs/a", elsewhere.url.removeprefix("http:")):
            schema = {"type": "object", "properties": {"f": {"$ref": ref}}}
            form = read_form(schema)
            form.fill({"f": "1"})
            assert "described elsewhere" in "".join(form.fields[0].warnings)
            assert "described elsewhere" in "".join(await check_output(schema, {"f": 1}))
            bases = {"$id": elsewhere.url, "$schema": "https://json-schema.org/draft/2020-12/schema"}
            await check_output({**schema, **bases}, {"f": 1})
        assert elsewhere.connections == 0


@pytest.mark.rule("cancellation.logged")
async def test_why_a_server_ended_a_subscription_is_in_the_log(
    inbox: Inbox, server: TaskScript, caplog: pytest.LogCaptureFixture
) -> None:
    def acknowledged(request: Received) -> dict[str, Any]:
        params = {
            "notifications": request.params["notifications"],
            "_meta": {SUBSCRIPTION: request.json["id"]},
        }
        return notification("notifications/subscriptions/acknowledged", params)

    def ended(request: Received) -> dict[str, Any]:
        params = {"requestId": request.json["id"], "reason": "maintenance \x1b[2J at noon"}
        return notification(
            "notifications/cancelled", {**params, "_meta": {SUBSCRIPTION: request.json["id"]}}
        )

    caplog.set_level(logging.INFO)
    server.show("t1")
    await inbox.engine.track("ci", "t1")
    server.on("subscriptions/listen", stream(acknowledged, ended))
    async with Running(inbox.engine):
        await server.wait_for(2, "subscriptions/listen")
    (said, *_) = [line for line in caplog.messages if "maintenance" in line]
    assert "ci" in said
    assert "cancelled" in said
    assert "\x1b" not in said
