"""The requests that one process is working on, and which of them a line of its output is for.

Pages: basic/transports/stdio ("Receiving Messages"), basic/patterns/cancellation, basic/patterns/progress.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Final, Literal, Self

from mcp_client import jsonrpc
from mcp_client.errors import InvalidRequest, McpError, ProtocolError
from mcp_client.jsonrpc import Incoming, JSONObject, Outgoing
from mcp_client.limits import Limits
from mcp_client.lines import Line

_SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
_NAMED: Final = re.compile(rb'"(?:id|io\.modelcontextprotocol/subscriptionId)"\s*:\s*"([^"\\]{1,64})"')
_SAMPLE: Final = 200
"""Bytes of a line that a fault repeats; `jsonrpc.quoted` cuts the characters once more."""
_REMEMBERED: Final = 1024
"""Requests that are over and whose ids are still known."""
_NOTED: Final = 50
"""Faults reported of one process."""

_Over = Literal["answered", "cancelled"]


class Pending:
    """One request that has been opened and not been left; an iterator over what comes for it.

    It yields what the process sends for the request, in order, and ends behind the response; it raises what
    `fail` was given once all that came before has been taken.
    """

    def __init__(self, request: Outgoing, *, takes_notifications: bool, limit: int) -> None:
        self.id = request.id
        self.method = request.method
        self.is_written = False
        """Bytes of the request may have reached the process."""
        self.is_heard = False
        """Something has come for it, so the process has understood the request."""
        self.is_answered = False
        """Nothing more can come for it, a response that can't be read included."""
        self.missed = ""
        """What was dropped while the request was open and may have been its response, as a sentence."""
        self._takes_notifications = takes_notifications
        self._limit = limit
        self._backlog: deque[tuple[Incoming, int]] = deque()
        self._size = 0
        self._error: McpError | None = None
        self._arrived = asyncio.Event()

    @property
    def is_done(self) -> bool:
        """What was taken last was the response."""
        return self.is_answered and not self._backlog and self._error is None

    def notify(self, message: JSONObject, size: int) -> None:
        """Hand over a notification of *size* bytes."""
        self.is_heard = True
        if self._takes_notifications:
            self._put(message, size)

    def answer(self, message: JSONObject, size: int) -> None:
        """Hand over the response of *size* bytes."""
        self.is_heard = self.is_answered = True
        self._put(message, size)

    def fail(self, error: McpError) -> None:
        """End it with *error*, unless it has ended."""
        if self._error is None and not self.is_answered:
            self._error = error
            self._arrived.set()

    def _put(self, message: JSONObject, size: int) -> None:
        if self._error is not None:
            return
        self._backlog.append((Incoming(message), size))
        self._size += size
        if self._size > self._limit:
            said = f"More than {self._limit:,} bytes for {self.method} came faster than they were taken."
            self._backlog.clear()
            self._error = ProtocolError(said)
        self._arrived.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Incoming:
        while not self._backlog:
            if self._error is not None:
                raise self._error
            if self.is_answered:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        incoming, size = self._backlog.popleft()
        self._size -= size
        return incoming


class InFlight:
    """Hands each message of one process to the request it is for.

    What breaks the rules is never fatal: it fails the request it was meant for, where that can be known, and
    is told to *note* as a sentence that may quote the process (make it inert); a bounded number of times.
    """

    def __init__(self, limits: Limits, note: Callable[[str], None]) -> None:
        self._limits = limits
        self._note = note
        self._noted = 0
        self._open: dict[str, Pending] = {}
        self._over: OrderedDict[str, _Over] = OrderedDict()

    def open(self, request: Outgoing, *, takes_notifications: bool) -> Pending:
        """Register *request*, which is about to be written."""
        if request.id in self._open or request.id in self._over:
            raise InvalidRequest(f"The request's id {jsonrpc.quoted(request.id)} has been used already.")
        limit = self._limits.reply_bytes
        pending = Pending(request, takes_notifications=takes_notifications, limit=limit)
        self._open[request.id] = pending
        return pending

    def leave(self, pending: Pending) -> bool:
        """Forget a request; say whether it has to be cancelled, since the process may be working on it."""
        self._open.pop(pending.id, None)
        if pending.is_answered or not pending.is_written:
            return False
        self._remember(pending.id, "cancelled")
        return True

    def fail_all(self, error: Callable[[Pending], McpError]) -> None:
        """End every open request with the error that *error* makes for it."""
        for pending in list(self._open.values()):
            pending.fail(error(pending))

    def fault(self, said: str) -> None:
        """Report a fault of the process, unless there have been too many."""
        self._noted += 1
        if self._noted < _NOTED:
            self._note(said)
        elif self._noted == _NOTED:
            self._note(f"{said} Further faults of this process are not reported.")

    def take(self, line: Line) -> None:
        """Hand over one line of the process's output."""
        if line.is_cut:
            self._take_cut(line.data)
            return
        if line.is_open:
            self.fault(f"Its output ended in the middle of a line: {_sample(line.data)}.")
            return
        try:
            message = jsonrpc.decode(line.data, depth=self._limits.depth)
        except ProtocolError as error:
            self._take_broken(line.data, error)
            return
        if not isinstance(message, dict):
            self.fault(f"A line of its output is no JSON-RPC message: {_sample(line.data)}.")
        elif "method" in message and not jsonrpc.is_response(message):
            self._take_notification(message, line.data)
        else:
            self._take_response(message, line.data)

    def _take_cut(self, head: bytes) -> None:
        said = f"A line of its output is longer than {self._limits.reply_bytes:,} bytes and was dropped"
        self.fault(f"{said}: {_sample(head)}.")
        for pending in self._open.values():
            pending.missed = f"{said}."
        meant = self._meant(head)
        if meant is not None:
            error = ProtocolError(f"The reply is larger than {self._limits.reply_bytes:,} bytes.")
            self._spoil(meant, error, head)

    def _take_broken(self, data: bytes, error: ProtocolError) -> None:
        meant = self._meant(data)
        if meant is None and b'"jsonrpc"' in data and _seems_response(data):
            meant = self._only()
        if meant is not None:
            self._spoil(meant, error, data)
        elif not data.strip():
            self.fault("A line of its output is empty.")
        elif data.lstrip().startswith(b"{"):
            self.fault(f"A line of its output can't be read: {error.message} It begins {_sample(data)}.")
        else:
            self.fault(f"A line of its output is no JSON-RPC message: {_sample(data)}.")

    def _take_response(self, message: JSONObject, data: bytes) -> None:
        found = message.get("id")
        pending = self._open.get(found) if isinstance(found, str) else None
        if pending is not None and not pending.is_answered:
            self._answer(pending, message, data)
        elif not jsonrpc.is_response(message):
            self.fault(f"A line of its output is no JSON-RPC message: {_sample(data)}.")
        elif "error" in message and (found is None or found == "server-error"):
            self._take_unaddressed(message, data)
        elif pending is not None or self._was(found) == "answered":
            self.fault(f"It replied twice to the request {jsonrpc.quoted(found)}; the first reply counts.")
        elif self._was(found) is None:
            self.fault(f"It replied to a request that was never made: {jsonrpc.quoted(found)}.")

    def _take_unaddressed(self, message: JSONObject, data: bytes) -> None:
        """Take an error that names no request: the process could not read one of them."""
        only = self._only()
        whose = "is taken for the reply to the only one open" if only else "can be for any of them"
        self.fault(f"It sent an error that names no request and {whose}: {_sample(data)}.")
        if only is not None:
            self._answer(only, message, data)

    def _take_notification(self, message: JSONObject, data: bytes) -> None:
        method = message["method"]
        if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
            self.fault(f"A line of its output is no JSON-RPC message: {_sample(data)}.")
        elif "id" in message:
            what = jsonrpc.quoted(method)
            self.fault(f"It sent a request of its own ({what}), which this revision forbids.")
        else:
            pending = self._open.get(_addressee(method, message.get("params")))
            if pending is not None and not pending.is_answered:
                pending.notify(message, len(data))

    def _answer(self, pending: Pending, message: JSONObject, data: bytes) -> None:
        pending.answer(message, len(data))
        self._remember(pending.id, "answered")

    def _spoil(self, pending: Pending, error: ProtocolError, data: bytes) -> None:
        """Fail a request of which an unreadable message has come: its response, or a notification."""
        pending.fail(error)
        if _seems_response(data) and not pending.is_answered:
            pending.is_answered = True
            self._remember(pending.id, "answered")

    def _meant(self, data: bytes) -> Pending | None:
        """Return the one open request that an unreadable line names."""
        names = (match.group(1).decode("utf-8", "replace") for match in _NAMED.finditer(data))
        found = {name for name in names if name in self._open}
        return self._open[found.pop()] if len(found) == 1 else None

    def _only(self) -> Pending | None:
        """Return the only request that the process has not been heard of."""
        found = [p for p in self._open.values() if p.is_written and not p.is_heard]
        return found[0] if len(found) == 1 else None

    def _was(self, request_id: object) -> _Over | None:
        return self._over.get(request_id) if isinstance(request_id, str) else None

    def _remember(self, request_id: str, how: _Over) -> None:
        self._over[request_id] = how
        if len(self._over) > _REMEMBERED:
            self._over.popitem(last=False)


def _seems_response(data: bytes) -> bool:
    return b'"method"' not in data and (b'"result"' in data or b'"error"' in data)


def _addressee(method: str, params: Any) -> str:
    """Return the id of the request that a notification is for; the empty string where it names none."""
    if not isinstance(params, dict):
        return ""
    meta = params.get("_meta")
    found = meta.get(_SUBSCRIPTION) if isinstance(meta, dict) else None
    if found is None and method == "notifications/progress":
        # The token of a request that asks for progress is its id.
        found = params.get("progressToken")
    if found is None and method == "notifications/cancelled":
        found = params.get("requestId")
    return found if isinstance(found, str) else ""


def _sample(data: bytes) -> str:
    return jsonrpc.quoted(data.strip()[:_SAMPLE].decode("utf-8", "replace"))
