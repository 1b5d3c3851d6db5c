"""Protocol versions and eras: basic/versioning, and "Backward Compatibility" of both transports' pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from fakes.mcp_server import ScriptedServer, error, http_reply, result, wait

from mcp_client import (
    Incoming,
    LegacyServer,
    Limits,
    McpClient,
    Outgoing,
    ProtocolError,
    ServerError,
    TransportError,
)

META = "io.modelcontextprotocol/"
DISCOVERED = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "serverInfo": {"name": "x", "version": "1"},
}
TASK = {
    "taskId": "t",
    "status": "working",
    "createdAt": "2026-01-02T03:04:05Z",
    "lastUpdatedAt": "",
    "ttlMs": 1,
}


# Versions.


@pytest.mark.rule("versioning.retried-with-a-common-version")
async def test_a_request_refused_for_its_version_is_sent_once_more_with_one_both_speak(
    server: ScriptedServer, client: McpClient
) -> None:
    supported = {"supported": ["2027-01-01", "2026-07-28", "2025-11-25"], "requested": "2026-07-28"}
    server.queue(error(-32022, "Unsupported protocol version", supported), result({"content": []}))
    await client.call_tool("t", {"a": 1})
    first, second = server.of("tools/call")
    assert first.json["id"] != second.json["id"]
    assert second.params["arguments"] == {"a": 1}
    assert second.header("MCP-Protocol-Version") == "2026-07-28"
    assert second.params["_meta"][f"{META}protocolVersion"] == "2026-07-28"


@pytest.mark.rule("versioning.unsupported-lists-supported")
async def test_a_server_that_goes_on_refusing_the_version_is_asked_twice_and_no_more(
    server: ScriptedServer, client: McpClient
) -> None:
    server.on("tasks/get", error(-32022, "Unsupported", {"supported": ["2026-07-28"]}))
    with pytest.raises(ServerError) as refused:
        await client.get_task("t")
    assert refused.value.supported == ("2026-07-28",)
    assert len(server.received) == 2


@pytest.mark.parametrize("data", [None, "", {}, {"supported": "2026-07-28"}, {"supported": [1, None]}])
async def test_a_refusal_that_names_no_version_is_only_a_refusal(
    server: ScriptedServer, client: McpClient, data: Any
) -> None:
    server.on("tasks/get", error(-32022, "Unsupported", data))
    with pytest.raises(ServerError) as refused:
        await client.get_task("t")
    assert refused.value.supported == ()
    assert len(server.received) == 1


@pytest.mark.rule("versioning.unsupported-lists-supported")
async def test_a_server_that_supports_only_older_versions_is_a_legacy_one(
    server: ScriptedServer, client: McpClient
) -> None:
    server.on("server/discover", error(-32022, "Unsupported", {"supported": ["2025-06-18", "2025-11-25"]}))
    with pytest.raises(LegacyServer, match=r"speaks 2025-11-25, which has no Tasks extension") as legacy:
        await client.discover()
    assert legacy.value.version == "2025-11-25"
    assert [request.method for request in server.received] == ["server/discover"]


@pytest.mark.rule("versioning.retried-with-a-common-version")
async def test_a_server_that_supports_only_newer_versions_is_not_a_legacy_one(
    server: ScriptedServer, client: McpClient
) -> None:
    server.on("server/discover", error(-32022, "Unsupported", {"supported": ["2027-01-01", "2025-11-25"]}))
    with pytest.raises(ServerError) as refused:
        await client.discover()
    assert refused.value.supported == ("2027-01-01", "2025-11-25")


# Eras over HTTP: the first modern request is the probe.


REFUSALS: dict[str, Any] = {
    "typescript": error(-32000, "Bad Request: Server not initialized", id=None),
    "python": error(-32600, "Bad Request: Missing session ID", id="server-error"),
    "version header": error(-32000, "Bad Request: Unsupported protocol version", id=None),
    "no body": http_reply(400, content_type=None),
    "a page": http_reply(400, "<html>Bad Request</html>", content_type="text/html"),
}


@pytest.mark.rule(
    "http.era-by-trying", "http.era-body-inspected", "versioning.modern-error-is-modern", "wire.legacy-http"
)
@pytest.mark.parametrize("refusal", list(REFUSALS))
async def test_a_400_without_a_modern_error_is_a_legacy_server_where_it_answers_the_old_handshake(
    server: ScriptedServer, client: McpClient, refusal: str
) -> None:
    server.on("tools/list", REFUSALS[refusal])
    server.on("initialize", result(INITIALIZED))
    with pytest.raises(LegacyServer) as legacy:
        await client.list_tools()
    assert legacy.value.version == "2025-06-18"
    initialize = server.of("initialize")[0]
    assert initialize.header("MCP-Protocol-Version") is None
    assert initialize.header("Mcp-Method") is None
    assert "_meta" not in initialize.params
    assert initialize.params["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("version", [None, 7, "", "2025-06-18\x1b[2J", "latest"])
async def test_a_version_that_is_none_is_not_repeated(
    server: ScriptedServer, client: McpClient, version: Any
) -> None:
    server.on("tools/list", REFUSALS["typescript"])
    server.on("initialize", result({**INITIALIZED, "protocolVersion": version}))
    with pytest.raises(LegacyServer, match="speaks an older revision of MCP") as legacy:
        await client.list_tools()
    assert legacy.value.version is None


@pytest.mark.parametrize("refusal", list(REFUSALS))
async def test_a_400_from_something_else_stays_what_it_is(
    server: ScriptedServer, client: McpClient, refusal: str
) -> None:
    server.on("tools/list", REFUSALS[refusal])
    server.on("initialize", REFUSALS[refusal])
    with pytest.raises((ServerError, TransportError)):
        await client.list_tools()


@pytest.mark.rule("http.era-body-inspected", "versioning.modern-error-is-modern")
@pytest.mark.parametrize("code", [-32020, -32021, -32022, -32601, -32602, -32603])
async def test_a_400_with_a_modern_error_is_never_taken_for_a_legacy_server(
    server: ScriptedServer, client: McpClient, code: int
) -> None:
    server.on("tasks/get", error(code, "No"))
    with pytest.raises(ServerError):
        await client.get_task("t")
    assert {request.method for request in server.received} == {"tasks/get"}


async def test_a_legacy_server_without_sessions_is_told_by_not_knowing_discovery(
    server: ScriptedServer, client: McpClient
) -> None:
    """Every server of this revision has server/discover; one that answers without a session may lack it."""
    server.on("server/discover", error(-32601, "Method not found", status=200))
    server.on("initialize", result(INITIALIZED))
    with pytest.raises(LegacyServer):
        await client.discover()


async def test_a_404_with_method_not_found_is_a_modern_server_that_lacks_the_method(
    server: ScriptedServer, client: McpClient
) -> None:
    server.on("initialize", result(INITIALIZED))
    with pytest.raises(ServerError) as refused:
        await client.get_task("t")
    assert refused.value.is_method_not_found
    assert server.of("initialize") == []


@pytest.mark.rule("versioning.era-cached", "versioning.era-reprobed")
async def test_the_era_is_remembered_and_forgotten_when_it_stops_fitting(
    server: ScriptedServer, client: McpClient
) -> None:
    server.on("initialize", result(INITIALIZED))
    server.on("tasks/get", REFUSALS["typescript"])
    for _ in range(3):
        with pytest.raises(LegacyServer):
            await client.get_task("t")
    assert len(server.of("initialize")) == 1
    server.on("tasks/get", result(TASK))
    assert (await client.get_task("t")).status == "working"
    server.on("tasks/get", REFUSALS["typescript"])
    with pytest.raises(LegacyServer):
        await client.get_task("t")
    assert len(server.of("initialize")) == 2


async def test_many_requests_that_meet_a_legacy_server_ask_it_once(
    server: ScriptedServer, client: McpClient
) -> None:
    gate = asyncio.Event()
    server.on("tasks/get", REFUSALS["typescript"])
    server.on("initialize", wait(gate, result(INITIALIZED)))
    asked = [asyncio.ensure_future(client.get_task(str(number))) for number in range(5)]
    await server.wait_for(5, "tasks/get")
    gate.set()
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(one, LegacyServer) for one in found)
    assert len(server.of("initialize")) == 1


# Eras of servers that are processes: each new one is asked first.


@dataclass
class Processes:
    """A transport whose peers come and go, as on stdio."""

    answers: dict[str, Any]
    number: int = 1
    sent: list[Outgoing] = field(default_factory=list)

    async def connect(self) -> int:
        return self.number

    async def send(self, request: Outgoing, *, timeout: float, on_message: Any = None) -> Incoming:
        self.sent.append(request)
        found = self.answers.get(request.method)
        if found is None:
            await asyncio.Event().wait()
        if isinstance(found, Exception):
            raise found
        return Incoming({"jsonrpc": "2.0", "id": request.id, **found})

    @asynccontextmanager
    async def stream(self, request: Outgoing) -> AsyncIterator[AsyncIterator[Incoming]]:
        raise AssertionError("not used")
        yield

    async def aclose(self) -> None:
        pass

    @property
    def methods(self) -> list[str]:
        return [request.method for request in self.sent]


def refusing(code: int, **data: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": "No", **({"data": data} if data else {})}}


QUICK = Limits(probe_seconds=0.05)


@pytest.mark.rule(
    "discover.stdio-probe",
    "stdio.probed-first",
    "stdio.probe-recommended",
    "versioning.era-reprobed",
    "versioning.stdio-discover-first",
)
async def test_a_new_process_is_asked_what_it_speaks_before_anything_else() -> None:
    peers = Processes({"server/discover": {"result": DISCOVERED}, "tasks/get": {"result": TASK}})
    client = McpClient(peers)
    await client.get_task("t")
    await asyncio.gather(client.get_task("t"), client.get_task("t"))
    assert peers.methods == ["server/discover", *["tasks/get"] * 3]
    peers.number = 2
    await asyncio.gather(client.get_task("t"), client.get_task("t"))
    assert peers.methods[4:] == ["server/discover", "tasks/get", "tasks/get"]


async def test_what_the_probe_found_is_not_asked_for_again() -> None:
    peers = Processes({"server/discover": {"result": {**DISCOVERED, "ttlMs": 60_000}}})
    found = await McpClient(peers).discover()
    assert found.supported_versions == ("2026-07-28",)
    assert peers.methods == ["server/discover"]


@pytest.mark.rule(
    "stdio.fallback-not-by-code", "stdio.probe-recommended", "versioning.era-cached", "wire.legacy-stdio"
)
@pytest.mark.parametrize("code", [-32601, -32602, -32000, 0])
async def test_any_error_that_is_not_a_modern_one_tells_a_legacy_process(code: int) -> None:
    peers = Processes({"server/discover": refusing(code), "initialize": {"result": INITIALIZED}})
    client = McpClient(peers)
    for _ in range(2):
        with pytest.raises(LegacyServer) as legacy:
            await client.call_tool("t")
        assert legacy.value.version == "2025-06-18"
    assert peers.methods == ["server/discover", "initialize"]
    peers.number = 2
    peers.answers = {"server/discover": {"result": DISCOVERED}, "tools/call": {"result": {"content": []}}}
    await client.call_tool("t")


async def test_a_process_that_refuses_both_ways_is_a_legacy_one_of_unknown_version() -> None:
    client = McpClient(Processes({"server/discover": refusing(-32601), "initialize": refusing(-32601)}))
    with pytest.raises(LegacyServer) as legacy:
        await client.get_task("t")
    assert legacy.value.version is None


@pytest.mark.rule("stdio.fallback-not-by-code", "wire.legacy-stdio")
async def test_a_process_that_is_silent_but_knows_the_old_handshake_is_a_legacy_one() -> None:
    peers = Processes({"initialize": {"result": INITIALIZED}})
    with pytest.raises(LegacyServer):
        await McpClient(peers, limits=QUICK).get_task("t")


async def test_a_process_that_says_nothing_at_all_is_not_judged_and_is_asked_again() -> None:
    peers = Processes({"initialize": TransportError("silent", may_have_reached=True)})
    client = McpClient(peers, limits=QUICK)
    with pytest.raises(TransportError, match=r"did not answer within 0\.05 s") as silent:
        await client.get_task("t")
    assert not silent.value.may_have_reached
    peers.answers = {"server/discover": {"result": DISCOVERED}, "tasks/get": {"result": TASK}}
    assert (await client.get_task("t")).status == "working"


@pytest.mark.rule("versioning.modern-error-is-modern")
@pytest.mark.parametrize("code", [-32020, -32021])
async def test_a_modern_error_tells_a_modern_process(code: int) -> None:
    peers = Processes({"server/discover": refusing(code), "tasks/get": {"result": TASK}})
    assert (await McpClient(peers).get_task("t")).status == "working"


async def test_a_process_names_its_versions_by_refusing_ours() -> None:
    ours = refusing(-32022, supported=["2027-01-01", "2026-07-28"])
    peers = Processes({"server/discover": ours, "tasks/get": {"result": TASK}})
    assert (await McpClient(peers).get_task("t")).status == "working"
    old = Processes({"server/discover": refusing(-32022, supported=["2025-11-25"])})
    with pytest.raises(LegacyServer):
        await McpClient(old).get_task("t")
    new = Processes({"server/discover": refusing(-32022, supported=["2027-01-01"])})
    with pytest.raises(ServerError):
        await McpClient(new).get_task("t")
    assert new.methods == ["server/discover"]


async def test_a_process_that_discovers_only_older_versions_is_a_legacy_one() -> None:
    peers = Processes({"server/discover": {"result": {**DISCOVERED, "supportedVersions": ["2025-11-25"]}}})
    with pytest.raises(LegacyServer) as legacy:
        await McpClient(peers).get_task("t")
    assert legacy.value.version == "2025-11-25"


async def test_a_process_whose_discovery_is_broken_is_at_fault() -> None:
    peers = Processes({"server/discover": {"result": {"supportedVersions": "all", "capabilities": {}}}})
    with pytest.raises(ProtocolError) as broken:
        await McpClient(peers).get_task("t")
    assert broken.value.field == "supportedVersions"


async def test_a_process_that_ends_while_it_is_asked_is_a_failure_of_the_transport() -> None:
    peers = Processes({"server/discover": TransportError("It exited.", may_have_reached=True)})
    with pytest.raises(TransportError, match="It exited"):
        await McpClient(peers).get_task("t")


@pytest.mark.parametrize(("named", "said"), [([], "no version"), (["2027-01-01"], "2027-01-01")])
async def test_a_discovery_without_a_version_in_common_is_returned_with_that_fault(
    server: ScriptedServer, client: McpClient, named: list[str], said: str
) -> None:
    server.on("server/discover", result({**DISCOVERED, "supportedVersions": named}))
    assert said in (await client.discover()).faults[0]
    peers = Processes({"server/discover": {"result": {**DISCOVERED, "supportedVersions": named}}})
    assert said in (await McpClient(peers).discover()).faults[0]


async def test_a_discovery_of_older_versions_alone_is_that_of_a_legacy_server(
    server: ScriptedServer, client: McpClient
) -> None:
    server.on("server/discover", result({**DISCOVERED, "supportedVersions": ["2025-06-18", "2025-11-25"]}))
    with pytest.raises(LegacyServer) as legacy:
        await client.discover()
    assert legacy.value.version == "2025-11-25"
