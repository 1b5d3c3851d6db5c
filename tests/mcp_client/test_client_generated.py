"""Replies made from the published schemas are understood; broken anywhere, they raise `McpError` at most."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from fakes.junk import broken, storable
from fakes.schema_values import values_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mcp_client import Incoming, Limits, McpClient, Outgoing, ProtocolError, ServerError
from mcp_client.jsonrpc import decode, encode
from mcp_client.reading import read_outcome, read_task

SPEC = Path(__file__).resolve().parents[3] / "shared" / "spec"
CORE, TASKS = "mcp-2026-07-28.schema.json", "ext-tasks.schema.json"

pytestmark = pytest.mark.skipif(
    not SPEC.is_dir(), reason="the published schemas are not beside the repository"
)
MANY = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@cache
def definitions(file: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SPEC / file).read_text())["$defs"]
    return found


@cache
def replies(file: str, definition: str) -> st.SearchStrategy[Any]:
    """Make what one definition of a published schema allows, numbers as they come off the wire."""
    made = values_of({"$ref": f"#/$defs/{definition}"}, definitions(file))
    return made.map(lambda value: decode(json.dumps(value).encode(), depth=200))


def is_valid(file: str, definition: str, value: Any) -> bool:
    schema = {"$ref": f"#/$defs/{definition}", "$defs": definitions(file)}
    return bool(Draft202012Validator(schema).is_valid(value))


class Replay:
    """A transport that answers everything with one result."""

    def __init__(self, result: Any) -> None:
        self._body = encode(result)

    async def send(self, request: Outgoing, *, timeout: float, on_message: Any = None) -> Incoming:
        whole = b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(request.id), self._body)
        return Incoming(decode(whole, depth=128), 200)

    async def connect(self) -> None:
        return None

    async def aclose(self) -> None:
        pass


STATUSES = ("WorkingTask", "InputRequiredTask", "CompletedTask", "FailedTask", "CancelledTask")


@pytest.mark.parametrize("definition", STATUSES)
@MANY
@given(data=st.data())
def test_every_task_the_schema_allows_is_read_as_what_it_is(definition: str, data: st.DataObject) -> None:
    raw = data.draw(replies(TASKS, definition))
    if not raw["taskId"]:
        return  # the schema allows a task whose id is empty; nobody could ask for it
    task = read_task({**raw, "resultType": "complete"})
    assert (task.task_id, task.status) == (raw["taskId"], raw["status"])
    assert task.raw == {**raw, "resultType": "complete"}
    assert all("time" in fault or "milliseconds" in fault for fault in task.faults), task.faults


OUTCOMES: dict[str, tuple[str, str]] = {
    "CallToolResult": (CORE, "complete"),
    "InputRequiredResult": (CORE, "input_required"),
    "CreateTaskResult": (TASKS, "task"),
}


@pytest.mark.parametrize("definition", list(OUTCOMES))
@MANY
@given(data=st.data())
def test_every_result_of_a_call_the_schema_allows_is_read_as_what_it_is(
    definition: str, data: st.DataObject
) -> None:
    file, kind = OUTCOMES[definition]
    raw = {**data.draw(replies(file, definition)), "resultType": kind}
    if raw.get("taskId") == "" or (
        kind == "input_required" and not raw.keys() & {"inputRequests", "requestState"}
    ):
        return  # allowed by the schema, and by its text not
    found = read_outcome("tools/call", raw)
    assert type(found).__name__ == definition
    assert found.raw == raw


VERBS: dict[str, tuple[str, str, Callable[[McpClient], Any]]] = {
    "GetTaskResult": (TASKS, "GetTaskResult", lambda client: client.get_task("t")),
    "CallToolResult": (CORE, "CallToolResult", lambda client: client.call_tool("t", {"a": 1})),
    "InputRequiredResult": (CORE, "InputRequiredResult", lambda client: client.call_tool("t")),
    "CreateTaskResult": (TASKS, "CreateTaskResult", lambda client: client.call_tool("t")),
    "ListToolsResult": (CORE, "ListToolsResult", lambda client: client.list_tools()),
    "DiscoverResult": (CORE, "DiscoverResult", lambda client: client.discover()),
    "UpdateTaskResult": (TASKS, "UpdateTaskResult", lambda client: client.update_task("t", {})),
    "CancelTaskResult": (TASKS, "CancelTaskResult", lambda client: client.cancel_task("t")),
    "ListPromptsResult": (
        CORE,
        "ListPromptsResult",
        lambda client: client.list_all("prompts/list", "prompts"),
    ),
}


@pytest.mark.parametrize("name", list(VERBS))
@MANY
@given(data=st.data())
def test_a_reply_broken_anywhere_raises_nothing_but_mcp_errors(name: str, data: st.DataObject) -> None:
    file, definition, ask = VERBS[name]
    reply = data.draw(replies(file, definition).flatmap(broken))

    async def run() -> None:
        try:
            found = await ask(McpClient(Replay(reply), limits=Limits(pages=3)))
        except (ProtocolError, ServerError):
            return  # and never a TransportError: what came is the server's fault, not the network's
        assert storable(found)

    asyncio.run(run())


def test_the_generator_makes_valid_replies_and_the_breaking_breaks_them() -> None:
    made: list[Any] = []
    wrecked: list[Any] = []

    @settings(max_examples=50, deadline=None, database=None)
    @given(whole=replies(TASKS, "GetTaskResult"), data=st.data())
    def collect(whole: Any, data: st.DataObject) -> None:
        made.append(whole)
        wrecked.append(data.draw(broken(whole)))

    collect()

    def plain(value: Any) -> Any:
        return json.loads(json.dumps(value, default=lambda d: float(d) if isinstance(d, Decimal) else str(d)))

    assert all(is_valid(TASKS, "GetTaskResult", plain(value)) for value in made)
    assert sum(not is_valid(TASKS, "GetTaskResult", plain(value)) for value in wrecked) > len(wrecked) / 4
