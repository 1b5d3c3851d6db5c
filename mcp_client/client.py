"""The client: one method for each verb of the protocol, and `request` for what has none."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self

from mcp_client import headers as wire_headers
from mcp_client import jsonrpc, reading
from mcp_client.errors import InvalidRequest, McpError, ProtocolError, ServerError
from mcp_client.http import HttpTransport
from mcp_client.jsonrpc import JSONObject, JSONValue, Outgoing
from mcp_client.limits import Limits
from mcp_client.tool_headers import MirroredParameter, mirrored_headers
from mcp_client.transport import OnMessage, Transport
from mcp_client.types import (
    CallOutcome,
    CallToolResult,
    ClientCapabilities,
    CreateTaskResult,
    DetailedTask,
    DiscoverResult,
    Implementation,
    InputRequiredResult,
    Progress,
    Tool,
    ToolList,
)

_META: Final = "io.modelcontextprotocol/"
_SLOW_METHODS: Final = frozenset({"tools/call"})

DEFAULT_CLIENT_INFO: Final = Implementation(name="mcp-client", version="0.1.0")

OnProgress = Callable[[Progress], None]


class McpClient:
    """Speaks to one server. Every request stands for itself: there is no session to open or to lose.

    Every method raises `McpError` and nothing else that a server or the network can cause: `TransportError`,
    `AuthRequired`, `ProtocolError` or `ServerError`. Cancelling a call cancels that request, never a task.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        client_info: Implementation = DEFAULT_CLIENT_INFO,
        capabilities: ClientCapabilities | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._transport = transport
        self._limits = limits or Limits()
        # Ids are unlike those of every other client and program: a request that is repeated after a restart
        # must not look like the one before (basic/patterns/mrtr, Client Requirements).
        token = secrets.token_hex(4)
        self._ids = (f"{token}-{number}" for number in itertools.count(1))
        self._mirrored: dict[str, tuple[MirroredParameter, ...]] = {}
        self._meta: JSONObject = {
            f"{_META}protocolVersion": jsonrpc.PROTOCOL_VERSION,
            f"{_META}clientInfo": client_info.to_wire(),
            f"{_META}clientCapabilities": (capabilities or ClientCapabilities()).to_wire(),
        }

    @classmethod
    def http(
        cls,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        client_info: Implementation = DEFAULT_CLIENT_INFO,
        capabilities: ClientCapabilities | None = None,
        limits: Limits | None = None,
    ) -> Self:
        """Return a client for the MCP endpoint at *url*; nothing is contacted, or checked, before a request
        is sent."""
        bounds = limits or Limits()
        agent = f"{client_info.name}/{client_info.version}"
        transport = HttpTransport(url, dict(headers or {}), bounds, agent)
        return cls(transport, client_info=client_info, capabilities=capabilities, limits=bounds)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections; requests under way fail. Closing twice does nothing."""
        await self._transport.aclose()

    async def request(
        self,
        method: str,
        params: Mapping[str, JSONValue] | None = None,
        *,
        timeout: float | None = None,
        on_notification: OnMessage | None = None,
    ) -> JSONObject:
        """Send any request and return its result as it came; its ``resultType`` is one that *method* may
        have.

        *timeout* is in seconds, for the whole exchange. *on_notification* is told each notification on the
        reply's stream (the whole message); what it raises ends the request.
        """
        result = await self._send(method, dict(params or {}), timeout, on_notification)
        reading.check_result_type(method, result)
        return result

    async def call(
        self,
        method: str,
        params: Mapping[str, JSONValue] | None = None,
        *,
        input_responses: Mapping[str, JSONValue] | None = None,
        request_state: str | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> CallOutcome:
        """Send a request that may become a task or ask something first.

        *input_responses* and *request_state* repeat a request that asked: *params* are then the same as
        before, and *request_state* is what that result brought, ``None`` where it brought none
        (basic/patterns/mrtr).
        """
        sent = dict(params or {})
        if input_responses is not None:
            sent["inputResponses"] = dict(input_responses)
        if request_state is not None:
            sent["requestState"] = request_state
        try:
            result = await self._send(method, sent, timeout, None, on_progress)
        except ServerError as error:
            if not (error.is_header_mismatch and method == "tools/call" and await self._learnt_headers()):
                raise
            result = await self._send(method, sent, timeout, None, on_progress)
        return reading.read_outcome(method, result)

    async def call_tool(
        self,
        name: str,
        arguments: JSONValue = None,
        *,
        input_responses: Mapping[str, JSONValue] | None = None,
        request_state: str | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> CallToolResult | CreateTaskResult | InputRequiredResult:
        """Call a tool, or repeat a call with the answers it asked for. Not repeatable by itself
        (server/tools).

        *arguments* is an object or `RawJSON`; ``None`` sends none.
        """
        params: JSONObject = {"name": name}
        if arguments is not None:
            params["arguments"] = arguments
        outcome = await self.call(
            "tools/call",
            params,
            input_responses=input_responses,
            request_state=request_state,
            timeout=timeout,
            on_progress=on_progress,
        )
        assert isinstance(outcome, (CallToolResult, CreateTaskResult, InputRequiredResult))
        return outcome

    async def discover(self) -> DiscoverResult:
        """Ask the server what it is (server/discover)."""
        return reading.read_discovery(await self.request("server/discover"))

    async def list_tools(self) -> ToolList:
        """Return all tools, from all pages; those that can't be used are left out and named in ``warnings``.

        Raises `ProtocolError` for a list that has no end.
        """
        tools: dict[str, Tool] = {}
        warnings: list[str] = []
        kept: list[dict[str, Any]] = []
        seen: set[str] = set()
        cursor: str | None = None
        for _ in range(self._limits.pages):
            page = await self.request("tools/list", {} if cursor is None else {"cursor": cursor})
            self._take_tools(page, tools, warnings)
            kept.append(reading.cache_fields(page))
            cursor = _next_cursor(page)
            if cursor is None:
                self._mirrored = {tool.name: tool.mirrored for tool in tools.values() if tool.mirrored}
                return ToolList(tools=tuple(tools.values()), warnings=tuple(warnings), **_cache_of_all(kept))
            if cursor in seen:
                raise ProtocolError("The list of tools goes round in circles.", field="nextCursor")
            seen.add(cursor)
        raise ProtocolError(
            f"The list of tools has more than {self._limits.pages} pages.", field="nextCursor"
        )

    def _take_tools(self, page: JSONObject, tools: dict[str, Tool], warnings: list[str]) -> None:
        entries = page.get("tools")
        if not isinstance(entries, list):
            raise ProtocolError("The tools are not a list.", field="tools")
        if len(tools) + len(warnings) + len(entries) > self._limits.tools:
            raise ProtocolError(f"The server lists more than {self._limits.tools:,} tools.", field="tools")
        for entry in entries:
            tool = reading.read_tool(entry)
            if isinstance(tool, str):
                warnings.append(tool)
            elif tool.name in tools:
                warnings.append(f"The tool {jsonrpc.quoted(tool.name)} is listed twice; the first is used.")
            else:
                tools[tool.name] = tool

    async def get_task(self, task_id: str) -> DetailedTask:
        """Return a task as it stands now; `ServerError` -32602 means the server does not know it (any
        more)."""
        result = await self._send("tasks/get", {"taskId": task_id}, None, None)
        return reading.read_task(result, asked_for=task_id)

    async def update_task(self, task_id: str, input_responses: Mapping[str, JSONValue]) -> None:
        """Answer a task's questions, each under its key; `RawJSON` values are sent byte for byte.

        Returning means that the server has them, not that the task shows it already.
        """
        await self.request("tasks/update", {"taskId": task_id, "inputResponses": dict(input_responses)})

    async def cancel_task(self, task_id: str) -> None:
        """Ask the server to cancel a task; whether and when it does, only `get_task` tells."""
        await self.request("tasks/cancel", {"taskId": task_id})

    async def _learnt_headers(self) -> bool:
        """Read the tools' schemas again; say whether a refused call is worth sending once more.

        The page on Streamable HTTP asks for this. The server refused the call before it did anything, so
        sending it again is no second call.
        """
        before = self._mirrored
        try:
            await self.list_tools()
        except McpError:
            return False  # the refusal itself says more
        return self._mirrored != before

    async def _send(
        self,
        method: str,
        params: JSONObject,
        timeout: float | None,
        on_notification: OnMessage | None,
        on_progress: OnProgress | None = None,
    ) -> JSONObject:
        request_id = next(self._ids)
        meta = params.get("_meta") or {}
        if not isinstance(meta, Mapping):
            raise InvalidRequest("The request's _meta is not an object.")
        params["_meta"] = {**meta, **self._meta}
        listener = on_notification
        if on_progress is not None:
            params["_meta"]["progressToken"] = request_id
            listener = _progress_listener(request_id, on_progress)
        outgoing = Outgoing(
            request_id,
            method,
            wire_headers.routing_name(method, params),
            jsonrpc.encode_request(request_id, method, params),
            self._further_headers(method, params),
        )
        if timeout is None:
            slow = method in _SLOW_METHODS
            timeout = self._limits.call_seconds if slow else self._limits.request_seconds
        incoming = await self._transport.send(outgoing, timeout=timeout, on_message=listener)
        return jsonrpc.result_of(incoming, request_id)

    def _further_headers(self, method: str, params: JSONObject) -> tuple[tuple[str, str], ...]:
        name = params.get("name")
        if method != "tools/call" or not isinstance(name, str):
            return ()
        return mirrored_headers(self._mirrored.get(name, ()), params.get("arguments"))


def _progress_listener(token: str, on_progress: OnProgress) -> OnMessage:
    def listen(message: JSONObject) -> None:
        params = message.get("params")
        if message.get("method") != "notifications/progress" or not isinstance(params, dict):
            return
        found = params.get("progressToken")
        if found == token:
            on_progress(reading.read_progress(params))

    return listen


def _next_cursor(page: JSONObject) -> str | None:
    cursor = page.get("nextCursor")
    if cursor is not None and not isinstance(cursor, str):
        raise ProtocolError("The cursor is not a string.", field="nextCursor")
    return cursor


def _cache_of_all(pages: list[dict[str, Any]]) -> dict[str, Any]:
    lengths = [page["ttl_ms"] for page in pages]
    scopes = {page["cache_scope"] for page in pages}
    scope = "private" if "private" in scopes else None if None in scopes else "public"
    return {"ttl_ms": None if None in lengths else min(lengths), "cache_scope": scope}
