"""Structured results against output schemas (server/tools, "Output Schema"), from the wire to the inbox."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.inbox import Inbox, Running
from fakes.mcp_server import error, result
from fakes.task_script import TaskScript, handle

from app.engine.structured import check_output

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
WRONG = "The structured result breaks the tool's output schema: n: a whole number is expected."


def lists(server: TaskScript, schema: Any = SCHEMA) -> None:
    tool = {"name": "count", "inputSchema": {"type": "object"}, "outputSchema": schema}
    server.on("tools/list", result({"tools": [tool]}))


@pytest.mark.rule("index.schema-validated", "index.schema-refused", "wire.schema-dialects")
@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        (SCHEMA, {"n": 1}, ""),
        (SCHEMA, {"n": "1"}, "n: a whole number is expected"),
        ({**SCHEMA, "$schema": "https://json-schema.org/draft/2020-12/schema"}, {}, "n is missing"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "null"}]}, [1], "null"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, {}, "a dialect that is not supported here"),
        ({"$ref": "https://example.com/schema.json"}, {}, "checked in part"),
        ({"properties": {"a": {"$ref": "https://example.com/a"}}}, {}, "described elsewhere"),
        ("no schema", {}, "not a JSON object"),
        ({"type": "string", "pattern": "^(a+)+$"}, "a" * 40 + "!", "does not match the pattern"),
    ],
)
async def test_a_value_is_judged_in_the_dialect_its_schema_names(schema: Any, value: Any, said: str) -> None:
    found = await check_output(schema, value)
    assert len(found) == (1 if said else 0)
    assert said in "".join(found)


async def test_a_value_nested_too_deeply_is_said_to_be_unchecked() -> None:
    value: Any = 1
    for _ in range(200):
        value = [value]
    assert "was not checked" in "".join(await check_output({}, value))


@pytest.mark.rule("tools.output-validated", "wire.output-schema")
async def test_a_call_whose_result_breaks_its_schema_says_so_and_keeps_the_result(
    inbox: Inbox, server: TaskScript
) -> None:
    lists(server)
    server.on("tools/call", result({"content": [], "structuredContent": {"n": "x"}}))
    outcome = await inbox.engine.call("ci", "count", "{}")
    assert (outcome.kind, outcome.message) == ("complete", WRONG)
    stored = inbox.reader.task(outcome.key)
    assert stored is not None
    assert stored.state.problem == WRONG
    assert '"n": "x"' in (stored.state.result_json or "")
    assert "fault_noted" in [e.kind for e in inbox.reader.events(outcome.key)]


@pytest.mark.parametrize(
    "reply",
    [{"content": [], "structuredContent": {"n": 1}}, {"content": [], "isError": True}, {"content": []}],
)
async def test_a_call_whose_result_keeps_to_its_schema_or_has_nothing_structured_passes(
    inbox: Inbox, server: TaskScript, reply: Any
) -> None:
    lists(server)
    server.on("tools/call", result(reply))
    outcome = await inbox.engine.call("ci", "count", "{}")
    assert (outcome.kind, outcome.message) == ("complete", None)


async def test_the_results_of_a_server_that_can_not_list_its_tools_pass(
    inbox: Inbox, server: TaskScript
) -> None:
    server.on("tools/list", error(-32603, "Broken"))
    server.on("tools/call", result({"content": [], "structuredContent": {"n": "x"}}))
    for _ in range(2):
        assert (await inbox.engine.call("ci", "count", "{}")).message is None
    lists(server)
    assert (await inbox.engine.call("ci", "count", "{}")).message == WRONG


async def test_a_result_is_held_against_the_schema_that_its_tool_has_now(
    inbox: Inbox, server: TaskScript
) -> None:
    lists(server)
    server.on("tools/call", result({"content": [], "structuredContent": {"n": "x"}}))
    assert (await inbox.engine.call("ci", "count", "{}")).message == WRONG
    lists(server, {"type": "object", "properties": {"n": {"type": "string"}}})
    assert (await inbox.engine.call("ci", "count", "{}")).message is None


async def test_an_output_schema_that_is_none_is_said_to_be_so(inbox: Inbox, server: TaskScript) -> None:
    lists(server, "anything")
    server.on("tools/call", result({"content": [], "structuredContent": 1}))
    assert (await inbox.engine.call("ci", "count", "{}")).message == "The tool's output schema is no object."


async def test_a_task_whose_result_breaks_its_schema_says_so_and_keeps_the_result(
    inbox: Inbox, server: TaskScript
) -> None:
    lists(server)
    server.show("t1")
    server.on("tools/call", result(handle("t1")))
    key = (await inbox.engine.call("ci", "count", "{}")).key
    server.show("t1", "completed", result={"content": [], "structuredContent": {"n": "x"}})
    async with Running(inbox.engine):
        await inbox.until(lambda: inbox.task(key).state.problem)
    assert inbox.task(key).state.problem == WRONG
    assert inbox.task(key).section == "finished"
    assert '"n": "x"' in (inbox.task(key).state.result_json or "")
