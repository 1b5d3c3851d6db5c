"""What a person reads when a server refuses: the server, what happened, what it means, what to do next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes.inbox import Inbox
from fakes.mcp_server import error, result
from fakes.task_script import TaskScript

from app.config import Abilities, ServersFile, set_abilities
from app.engine.commands import EngineError, answerable
from app.engine.problems import describe
from mcp_client import LegacyServer, ServerError
from storage.records import QuestionRecord, TaskKey

TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


@pytest.mark.rule("index.undeclared-capability-refused", "tasks.missing-capability")
@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        ({"sampling": {}}, "sampling"),
        ({"elicitation": {"url": {}}, "roots": {}}, "elicitation.url, roots"),
        ({"extensions": {"com.example/other": {}}}, "com.example/other"),
        ({}, "more than it says"),
        ({"extensions": []}, "more than it says"),
        ({"\x1b[31mred": None}, "␛[31mred"),
    ],
)
def test_a_refusal_for_a_missing_capability_names_the_capability(wanted: Any, named: str) -> None:
    said = describe(
        ServerError(-32021, "Missing required client capability", {"requiredCapabilities": wanted})
    )
    assert f"The server wants a client that offers {named}; this installation does not." in said


@pytest.mark.parametrize("data", [None, "", [], {"requiredCapabilities": "all"}])
def test_a_refusal_that_names_no_capability_says_that(data: Any) -> None:
    assert "more than it says" in describe(ServerError(-32021, "No", data))


@pytest.mark.rule("versioning.retried-with-a-common-version")
@pytest.mark.parametrize("wanted", [TASKS, {"elicitation": {"form": {}}, **TASKS}, {"elicitation": {}}])
def test_a_server_that_misses_what_every_request_declares_is_at_fault(wanted: Any) -> None:
    said = describe(ServerError(-32021, "Missing", {"requiredCapabilities": wanted}))
    assert said.endswith("which every request of ours declares: the fault is the server's.")


def test_a_server_that_refuses_the_version_it_supports_is_at_fault() -> None:
    said = describe(ServerError(-32022, "No", {"supported": ["2026-07-28"]}))
    assert said.endswith("supports 2026-07-28 by its own words: the fault is the server's.")


def test_a_refused_version_comes_with_those_that_would_do() -> None:
    said = describe(ServerError(-32022, "No", {"supported": ["2027-01-01", "2028-01-01"]}))
    assert said.endswith("The server supports 2027-01-01, 2028-01-01; this program speaks 2026-07-28.")
    assert "supports none that it names" in describe(ServerError(-32022, "No"))


@pytest.mark.rule("versioning.stdio-discover-first")
def test_an_older_server_is_named_with_what_to_do() -> None:
    said = describe(LegacyServer("2025-11-25"))
    assert "speaks 2025-11-25, which has no Tasks extension." in said
    assert "needs an update to a release that speaks 2026-07-28" in said


async def test_a_call_to_an_older_server_is_not_sent_and_leaves_nothing_behind(
    inbox: Inbox, server: TaskScript
) -> None:
    server.on("tools/call", error(-32000, "Bad Request: Server not initialized", id=None))
    server.on("initialize", result({"protocolVersion": "2025-11-25", "capabilities": {}}))
    with pytest.raises(EngineError, match="Server ci, calling deploy: Too old: ") as refused:
        await inbox.engine.call("ci", "deploy", "{}")
    assert refused.value.failure == "refused"
    assert "2025-11-25" in refused.value.message
    assert inbox.reader.list_rows() == []
    health = {record.name: record for record in inbox.reader.servers()}
    assert health["ci"].state == "faulty"
    assert "2025-11-25" in (health["ci"].message or "")


async def test_a_server_that_was_updated_is_well_again(tmp_path: Path, server: TaskScript) -> None:
    inbox = await Inbox.open(tmp_path, {"ci": server.url})
    server.on("initialize", result({"protocolVersion": "2025-11-25", "capabilities": {}}))
    server.on("tools/list", error(-32000, "Bad Request: Server not initialized", id=None))
    with pytest.raises(EngineError):
        await inbox.engine.tools("ci")
    server.on("tools/list", result({"tools": []}))
    await inbox.engine.tools("ci")
    assert next(iter(inbox.reader.servers())).state == "ok"
    await inbox.close()


@pytest.mark.rule(
    "elicitation.declares-a-mode",
    "wire.capabilities-are-real",
    "wire.sampling-and-roots-off",
    "sampling.declared",
    "sampling.tools",
    "roots.declared",
)
@pytest.mark.parametrize("sampling", [False, True])
@pytest.mark.parametrize("roots", [False, True])
async def test_what_is_declared_to_a_server_is_exactly_what_this_installation_answers_it(
    inbox: Inbox, server: TaskScript, tmp_path: Path, sampling: bool, roots: bool
) -> None:
    """A server asks only what was declared (basic/patterns/mrtr): no more, no less."""
    allowed = Abilities(sampling=sampling, roots=(str(tmp_path),) if roots else ())
    if sampling or roots:
        set_abilities(inbox.paths.servers_file, "ci", lambda _: allowed)
    ServersFile(inbox.paths.servers_file).add("other", server.url)
    server.on("tools/call", result({"content": []}))
    await inbox.engine.call("ci", "deploy", "{}")
    await inbox.engine.call("other", "deploy", "{}")
    mine, others = (
        call.params["_meta"]["io.modelcontextprotocol/clientCapabilities"] for call in server.of("tools/call")
    )
    base = {"elicitation": {"form": {}, "url": {}}, **TASKS}
    assert others == base
    assert mine == {**base, **({"sampling": {}} if sampling else {}), **({"roots": {}} if roots else {})}
    for name, declared in (("ci", mine), ("other", others)):
        abilities = ServersFile(inbox.paths.servers_file).abilities(name)

        def answers(method: str, able: Abilities = abilities, **params: Any) -> bool:
            request = json.dumps({"method": method, "params": params})
            question = QuestionRecord(
                1, TaskKey("ci", "t"), "k", 0, "f", method, request, state="open", position=0, asked_at=0
            )
            return answerable(question, able) is not None

        modes = {mode for mode in ("form", "url", "voice") if answers("elicitation/create", mode=mode)}
        assert modes == set(declared["elicitation"])
        plain = {"messages": [], "maxTokens": 9}
        assert answers("sampling/createMessage", **plain) == ("sampling" in declared)
        assert not answers("sampling/createMessage", **plain, tools=[])  # sampling.tools is never declared
        assert not answers("sampling/createMessage", **plain, toolChoice={"mode": "none"})
        assert answers("roots/list") == ("roots" in declared)
