"""Subscriptions: what a ``subscriptions/listen`` stream says, as typed events, and how it ended.

Pages: basic/patterns/subscriptions; the Tasks extension ("Task Status Notifications").
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeAlias

from mcp_client import jsonrpc, reading
from mcp_client.errors import McpError, ProtocolError, ServerError, TransportError
from mcp_client.jsonrpc import Incoming, JSONObject, JSONValue, Outgoing, quoted
from mcp_client.sending import Sender
from mcp_client.transport import Transport
from mcp_client.types import DetailedTask

LISTEN: Final = "subscriptions/listen"
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_CANCELLED: Final = "notifications/cancelled"
_TASK: Final = "notifications/tasks"
_TOOLS: Final = "notifications/tools/list_changed"
_SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

BACKLOG_BYTES: Final = 32 * 1024 * 1024
"""Notifications that wait to be taken, together; one of the largest size that is read at all always fits."""
_FAULTS: Final = 50
"""Different faults that are kept."""
_REASON: Final = 1_000
"""Characters of a server's reason that are kept."""
_PER_VALUE: Final = 100
"""What a JSON value takes in memory beside its text, roughly, in bytes."""


@dataclass(frozen=True, slots=True)
class TaskNotification:
    """A task as it stood when its server told of it: what ``tasks/get`` would have shown."""

    task: DetailedTask
    received: float
    """When it came off the connection, by the clock given to `McpClient.listen`; in seconds."""


@dataclass(frozen=True, slots=True)
class ToolsChanged:
    """The server's list of tools is another one now."""


@dataclass(frozen=True, slots=True)
class Missed:
    """Something was said of a task that could not be kept or not be read: ask for the task."""

    task_id: str


SubscriptionEvent: TypeAlias = TaskNotification | ToolsChanged | Missed


@dataclass(frozen=True, slots=True)
class Ending:
    """How a subscription ended. Whatever the kind, what happened since is not known: ask for the tasks."""

    kind: Literal["finished", "cancelled", "dropped"]
    """``finished``: the server gave its final result. ``cancelled``: it tore the stream down and said so.
    ``dropped``: the connection broke or fell silent, or the server broke the protocol."""
    message: str | None = None
    """Why: the server's reason for a cancellation, or ours for a drop; ``None``: none was given."""


class Subscription:
    """An open subscription: iterate over its events; `ending` says afterwards how it ended.

    A slow reader is no danger: of each task only the newest notification waits, and all of them together are
    bounded; what had to be let go is told as `Missed`.
    """

    def __init__(
        self,
        request_id: str,
        asked: frozenset[str],
        tools_changed: bool,
        on_tools_changed: Callable[[], None],
    ) -> None:
        """Begin unacknowledged; `McpClient.listen` is how to open one."""
        self.accepted: frozenset[str] = frozenset()
        """The task ids that the server agreed to tell of; all others have to be polled."""
        self.tools_changed = False
        """Whether the server agreed to tell of changed tools."""
        self.ending: Ending | None = None
        """``None`` while it is open. Events that came before the end may still be waiting."""
        self._id = request_id
        self._asked = asked
        self._wants_tools = tools_changed
        self._on_tools_changed = on_tools_changed
        self._acknowledged = asyncio.Event()
        self._backlog = _Backlog()
        self._faults: dict[str, None] = {}

    @property
    def faults(self) -> tuple[str, ...]:
        """Return what the server did wrong and was passed over, a sentence each; the first few of them."""
        return tuple(self._faults)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SubscriptionEvent:
        while True:
            event = self._backlog.take()
            if event is not None:
                return event
            if self.ending is not None:
                raise StopAsyncIteration
            await self._backlog.wait()

    # What comes in

    def _take(self, message: JSONObject, received: float) -> None:
        """Take in one notification."""
        method = message.get("method")
        params = message.get("params", {})
        if not isinstance(params, dict):
            self._note(f"The params of {quoted(method)} are no object.")
        elif method == _CANCELLED:
            self._take_cancellation(params)
        elif not self._is_ours(method, params):
            pass
        elif method == _ACKNOWLEDGED:
            self._take_acknowledgement(params)
        elif not self._acknowledged.is_set():
            self._note(f"The server sent {quoted(method)} before it had acknowledged the subscription.")
        elif method == _TASK:
            self._take_task(params, received)
        elif method == _TOOLS and self.tools_changed:
            self._on_tools_changed()
            self._backlog.put(None, ToolsChanged(), 0)
        else:
            self._note(f"The server sent {quoted(method)}, which has no place in this subscription.")

    def _is_ours(self, method: object, params: JSONObject) -> bool:
        """Say whether a notification belongs here: the transport thinks so, but its own mark has to agree."""
        meta = params.get("_meta")
        found = meta.get(_SUBSCRIPTION_ID) if isinstance(meta, dict) else None
        if found is None:
            self._note(f"The server sent {quoted(method)} without a subscription id.")
            return True  # it came on a stream of our own, so there is no doubt
        if found != self._id:
            self._note(f"The server sent {quoted(method)} for another subscription ({quoted(found)}).")
            return False
        return True

    def _take_cancellation(self, params: JSONObject) -> None:
        if params.get("requestId") != self._id:
            self._note(f"The server cancelled another request ({quoted(params.get('requestId'))}).")
            return
        reason = params.get("reason")
        self._end(Ending("cancelled", reason[:_REASON] if isinstance(reason, str) and reason else None))

    def _take_acknowledgement(self, params: JSONObject) -> None:
        if self._acknowledged.is_set():
            self._note("The server acknowledged the subscription more than once.")
            return
        found = params.get("notifications", {})
        if not isinstance(found, dict):
            self._note("The acknowledgement's notifications are no object.")
            found = {}
        ids = found.get("taskIds", [])
        if not isinstance(ids, list):
            self._note("The acknowledgement's taskIds are no list.")
            ids = []
        texts = {one for one in ids if isinstance(one, str)}
        if len(texts) != len(ids):
            self._note("The acknowledgement's taskIds repeat themselves or are not all strings.")
        if texts - self._asked:
            self._note("The server acknowledged tasks that it was not asked for.")
        self.accepted = frozenset(texts & self._asked)
        self.tools_changed = self._wants_tools and found.get("toolsListChanged") is True
        self._acknowledged.set()

    def _take_task(self, params: JSONObject, received: float) -> None:
        task_id = params.get("taskId")
        if not isinstance(task_id, str) or task_id not in self.accepted:
            self._note(f"The server told of a task that it had not agreed to tell of ({quoted(task_id)}).")
            return
        try:
            task = reading.read_task(params, asked_for=task_id)
        except ProtocolError as error:
            self._note(f"A notification about a task can't be read: {error.message}")
            self._backlog.put(task_id, Missed(task_id), 0)
            return
        self._backlog.put(task_id, TaskNotification(task, received), _weight(params))

    def _take_response(self, incoming: Incoming) -> None:
        """Take in the final result; raises `McpError` for what is none."""
        result = jsonrpc.result_of(incoming, self._id)
        reading.check_result_type(LISTEN, result)
        if not self._acknowledged.is_set():
            raise ProtocolError("The server ended the subscription without acknowledging it.")
        meta = result.get("_meta")
        found = meta.get(_SUBSCRIPTION_ID) if isinstance(meta, dict) else None
        if found != self._id:
            self._note("The final result does not name the subscription that it ends.")
        self._end(Ending("finished"))

    def _note(self, fault: str) -> None:
        if len(self._faults) < _FAULTS:
            self._faults[fault] = None

    def _end(self, ending: Ending) -> None:
        """Let it end in this way, unless it has ended before."""
        self.ending = self.ending or ending
        self._backlog.wake()

    async def _read(self, transport: Transport, request: Outgoing, clock: Callable[[], float]) -> None:
        """Take in the whole stream; what goes wrong before the acknowledgement is raised."""
        try:
            async with transport.stream(request) as messages:
                async for incoming in messages:
                    if _is_notification(incoming.message):
                        self._take(incoming.message, clock())
                    else:
                        self._take_response(incoming)
                    if self.ending is not None:
                        break
        except McpError as error:
            if not self._acknowledged.is_set():
                raise
            said = str(error) if isinstance(error, ServerError) else error.message
            self._end(Ending("dropped", said))
        finally:  # whatever happens, or whoever iterates would wait for ever
            self._end(Ending("dropped", "The stream ended without a word."))
        if not self._acknowledged.is_set():
            raise ProtocolError("The server ended the subscription without acknowledging it.")


class _Backlog:
    """What waits to be taken: the newest of each task, in the order in which the tasks came first."""

    def __init__(self) -> None:
        self._waiting: dict[str | None, tuple[SubscriptionEvent, int]] = {}
        """By task; ``None``: what is about no task."""
        self._weight = 0
        self._changed = asyncio.Event()

    def put(self, task_id: str | None, event: SubscriptionEvent, weight: int) -> None:
        """Add *event*, which takes *weight* bytes, in the place of an older one about the same."""
        _, old = self._waiting.get(task_id, (None, 0))
        self._weight -= old
        if task_id is not None and self._weight and self._weight + weight > BACKLOG_BYTES:
            event, weight = Missed(task_id), 0
        self._waiting[task_id] = (event, weight)
        self._weight += weight
        self.wake()

    def take(self) -> SubscriptionEvent | None:
        """Return what has waited longest; ``None``: nothing waits."""
        if not self._waiting:
            return None
        event, weight = self._waiting.pop(next(iter(self._waiting)))
        self._weight -= weight
        return event

    async def wait(self) -> None:
        """Return when there may be something, or the end."""
        self._changed.clear()
        await self._changed.wait()

    def wake(self) -> None:
        """Let whoever waits look again."""
        self._changed.set()


@asynccontextmanager
async def listening(
    sender: Sender,
    task_ids: Collection[str],
    *,
    tools_changed: bool = False,
    clock: Callable[[], float] = time.time,
) -> AsyncGenerator[Subscription, None]:
    """Open a subscription and close it behind the block; `McpClient.listen` says the rest."""
    await sender.ready()
    asked = frozenset(task_ids)
    wanted: dict[str, JSONValue] = {}
    if asked:
        wanted["taskIds"] = list(dict.fromkeys(task_ids))
    if tools_changed:
        wanted["toolsListChanged"] = True
    params: JSONObject = {"notifications": wanted}
    reader = None
    try:
        try:
            subscription, reader = await _opened(sender, params, asked, tools_changed, clock)
        except (ServerError, TransportError) as error:
            await sender.check(error, LISTEN)
            subscription, reader = await _opened(sender, params, asked, tools_changed, clock)
        yield subscription
    finally:
        if reader is not None:
            await _stopped(reader)


async def _opened(
    sender: Sender,
    params: JSONObject,
    asked: frozenset[str],
    tools_changed: bool,
    clock: Callable[[], float],
) -> tuple[Subscription, asyncio.Task[None]]:
    """Return an acknowledged subscription, and the task that reads its stream."""
    request = sender.outgoing(LISTEN, params)
    found = Subscription(request.id, asked, tools_changed, sender.on_tools_changed)
    reader = asyncio.create_task(found._read(sender.transport, request, clock))
    acknowledged = asyncio.create_task(found._acknowledged.wait())
    seconds = sender.limits.ack_seconds
    try:
        await asyncio.wait((reader, acknowledged), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not found._acknowledged.is_set():
            if reader.done():
                await reader  # raises
            said = f"The server did not acknowledge the subscription within {seconds:g} s."
            if found.faults:
                said += f" {found.faults[0]}"
            raise TransportError(said, may_have_reached=True)
    except BaseException:
        await _stopped(reader)
        raise
    finally:
        acknowledged.cancel()
    return found, reader


async def _stopped(reader: asyncio.Task[None]) -> None:
    """Cancel the request by leaving its stream; a fault of this program in there is raised."""
    reader.cancel()
    await asyncio.wait((reader,))
    if not reader.cancelled() and (error := reader.exception()) and not isinstance(error, McpError):
        raise error


def _is_notification(message: Any) -> bool:
    return isinstance(message, dict) and "method" in message and not jsonrpc.is_response(message)


def _weight(value: JSONValue) -> int:
    """Return about how many bytes *value* takes in memory."""
    total, left = 0, [value]
    while left:
        one = left.pop()
        total += _PER_VALUE
        if isinstance(one, str):
            total += len(one)
        elif isinstance(one, dict):
            total += sum(map(len, one)) + _PER_VALUE * len(one)
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(one)
    return total
