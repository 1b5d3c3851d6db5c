"""The client: one method for each verb of the protocol, and `request` for what has none."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Final, Self

from mcp_client import reading
from mcp_client.cache import ResultCache
from mcp_client.errors import AuthRequired, McpError, ProtocolError, ServerError
from mcp_client.http import HttpTransport
from mcp_client.jsonrpc import JSONObject, JSONValue
from mcp_client.limits import Limits
from mcp_client.listing import Listing
from mcp_client.sending import OnProgress, Sender, check_versions
from mcp_client.stdio import StdioTransport
from mcp_client.subscription import Subscription, listening
from mcp_client.tool_headers import mirrored_headers
from mcp_client.transport import OnMessage, Transport
from mcp_client.types import (
    TASKS_EXTENSION,
    CallOutcome,
    CallToolResult,
    ClientCapabilities,
    CreateTaskResult,
    DetailedTask,
    DiscoverResult,
    Implementation,
    InputRequiredResult,
    Tool,
    ToolList,
)

log = logging.getLogger(__name__)

DEFAULT_CLIENT_INFO: Final = Implementation(name="mcp-client", version="0.1.0")

CheckOutput = Callable[[JSONObject, JSONValue], Awaitable[tuple[str, ...]]]
"""Judges a structured result by an output schema, both from a server that nobody can trust; returns in what
way it breaks it, a sentence each."""


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
        check_output: CheckOutput | None = None,
    ) -> None:
        """Speak over *transport*, which is closed with the client.

        *capabilities* are declared with every request: name what you can really answer. *check_output* judges
        structured results by a tool's output schema; without one nobody does.
        """
        self._limits = limits or Limits()
        declared = capabilities or ClientCapabilities()
        self._declares_tasks = TASKS_EXTENSION in (declared.extensions or {})
        self._sender = Sender(transport, client_info, declared, self._limits)
        self._sender.on_discovery = lambda result: self._cache.put("server/discover", {}, result)
        self._sender.on_tools_changed = lambda: self._cache.drop("tools/list")
        self._cache = ResultCache()
        self._listing = Listing(self.request, self._cache, self._limits)
        self._check_output = check_output
        self._tools: dict[str, Tool] = {}
        """As they were last listed."""
        self._left_out: frozenset[str] = frozenset()
        """What was wrong with others then."""

    @classmethod
    def http(
        cls,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        client_info: Implementation = DEFAULT_CLIENT_INFO,
        capabilities: ClientCapabilities | None = None,
        limits: Limits | None = None,
        check_output: CheckOutput | None = None,
    ) -> Self:
        """Return a client for the MCP endpoint at *url*; nothing is contacted, or checked, before a request
        is sent."""
        bounds = limits or Limits()
        agent = f"{client_info.name}/{client_info.version}"
        transport = HttpTransport(url, dict(headers or {}), bounds, agent)
        return cls(
            transport,
            client_info=client_info,
            capabilities=capabilities,
            limits=bounds,
            check_output=check_output,
        )

    @classmethod
    def stdio(
        cls,
        command: str,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        client_info: Implementation = DEFAULT_CLIENT_INFO,
        capabilities: ClientCapabilities | None = None,
        limits: Limits | None = None,
        check_output: CheckOutput | None = None,
    ) -> Self:
        """Return a client for the server that *command* starts; it is started with the first request.

        For a working folder, or to hear what it writes to stderr, give a `StdioTransport` of your own.
        """
        bounds = limits or Limits()
        return cls(
            StdioTransport(command, args, env=env, limits=bounds),
            client_info=client_info,
            capabilities=capabilities,
            limits=bounds,
            check_output=check_output,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections; requests under way fail. Closing twice does nothing."""
        await self._sender.transport.aclose()

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
        reading.check_result_type(method, result, tasks=self._declares_tasks)
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
        return reading.read_outcome(method, result, tasks=self._declares_tasks)

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
        if isinstance(outcome, CallToolResult):
            wrong = await self.output_faults(name, outcome)
            return outcome.model_copy(update={"faults": (*outcome.faults, *wrong)})
        return outcome

    async def discover(self, *, fresh: bool = False) -> DiscoverResult:
        """Ask the server what it is (server/discover); its word is used again for as long as it said, unless
        *fresh*."""
        await self._sender.ready()  # which may just have asked
        found = await self._listing.page("server/discover", {}, fresh=fresh)
        return check_versions(reading.read_discovery(found))

    async def list_tools(self, *, fresh: bool = False) -> ToolList:
        """Return all tools, from all pages; those that can't be used are left out and named in ``warnings``,
        and in the log when that is new.

        Pages are used again for as long as they said they may be, unless *fresh*. Raises `ProtocolError` for
        a list that has no end.
        """
        found = await self._listing.tools(fresh=fresh)
        self._tools = {tool.name: tool for tool in found.tools}
        for warning in found.warnings:
            if warning not in self._left_out:
                log.warning("In a list of tools: %s", warning)
        self._left_out = frozenset(found.warnings)
        return found

    async def list_all(self, method: str, member: str, *, fresh: bool = False) -> list[JSONValue]:
        """Return what all pages of another list hold, such as ``prompts/list`` under ``prompts``, as it came.

        Raises `ProtocolError` for a list that has no end, or a page without such a list.
        """
        found: list[JSONValue] = []
        for page in await self._listing.pages(method, fresh=fresh):
            entries = page.get(member)
            if not isinstance(entries, list):
                raise ProtocolError(f"The {member} are not a list.", field=member)
            found += entries
        return found

    async def get_task(self, task_id: str) -> DetailedTask:
        """Return a task as it stands now; `ServerError` -32602 means the server does not know it (any
        more)."""
        result = await self._send("tasks/get", {"taskId": task_id})
        return reading.read_task(result, asked_for=task_id)

    async def update_task(self, task_id: str, input_responses: Mapping[str, JSONValue]) -> None:
        """Answer a task's questions, each under its key; `RawJSON` values are sent byte for byte.

        Returning means that the server has them, not that the task shows it already.
        """
        await self.request("tasks/update", {"taskId": task_id, "inputResponses": dict(input_responses)})

    async def cancel_task(self, task_id: str) -> None:
        """Ask the server to cancel a task; whether and when it does, only `get_task` tells."""
        await self.request("tasks/cancel", {"taskId": task_id})

    def listen(
        self,
        task_ids: Collection[str],
        *,
        tools_changed: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> AbstractAsyncContextManager[Subscription]:
        """Ask to be told of tasks, and of changed tools; the block has the acknowledged `Subscription`.

        ```python
        async with client.listen(["786512e2"]) as subscription:
            async for event in subscription: ...
        ```

        Entering raises what any request raises, and `TransportError` where nothing is acknowledged within
        ``ack_seconds``. Leaving cancels the subscription. *clock* tells when a notification was received, in
        seconds. Ids that are not in ``accepted`` have to be polled; those that are, once: nothing is told of
        what happened before the acknowledgement (basic/patterns/subscriptions).
        """
        return listening(self._sender, task_ids, tools_changed=tools_changed, clock=clock)

    async def output_faults(self, tool: str, result: CallToolResult) -> tuple[str, ...]:
        """Say in what way a result breaks the output schema of *tool*, as the tools were last listed.

        Empty where it keeps to it, has none, or is an error; and where nobody here can judge (see
        ``check_output``). For the result of a task, `read_tool_result` makes it one of a tool.
        """
        known = self._tools.get(tool)
        if known is None or result.is_error or self._check_output is None:
            return ()
        if known.output_schema is None:
            return (reading.NO_SCHEMA,) if reading.NO_SCHEMA in known.faults else ()
        if not result.has_structured_content:
            return ("The tool has an output schema, but its result holds no structured content.",)
        return await self._check_output(known.output_schema, result.structured_content)

    def knows(self, tool: str) -> bool:
        """Say whether *tool* was in the last list of tools."""
        return tool in self._tools

    async def _learnt_headers(self) -> bool:
        """Read the tools' schemas again; say whether a refused call is worth sending once more.

        The page on Streamable HTTP asks for this. The server refused the call before it did anything, so
        sending it again is no second call.
        """
        before = {name: tool.mirrored for name, tool in self._tools.items()}
        try:
            await self.list_tools(fresh=True)
        except McpError:
            return False  # the refusal itself says more
        return before != {name: tool.mirrored for name, tool in self._tools.items()}

    async def _send(
        self,
        method: str,
        params: JSONObject,
        timeout: float | None = None,
        on_notification: OnMessage | None = None,
        on_progress: OnProgress | None = None,
    ) -> JSONObject:
        headers = self._further_headers if method == "tools/call" else None
        try:
            return await self._sender.send(
                method,
                params,
                timeout=timeout,
                on_notification=on_notification,
                on_progress=on_progress,
                headers=headers,
            )
        except AuthRequired:
            self._cache.clear()
            raise
        except ServerError as error:
            if method == "tools/call" and error.is_invalid_params:
                self._cache.drop("tools/list")  # the tool, or its parameters, may have changed
            raise

    def _further_headers(self, params: JSONObject) -> tuple[tuple[str, str], ...]:
        tool = self._tools.get(params["name"]) if isinstance(params.get("name"), str) else None
        return () if tool is None else mirrored_headers(tool.mirrored, params.get("arguments"))
