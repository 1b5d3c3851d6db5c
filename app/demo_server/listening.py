"""Subscriptions: the reply to ``subscriptions/listen``, an event stream that tells of tasks.

Nothing is queued for anybody. A stream remembers how far in the order of all changes it has told, and when
its connection takes more it asks the store what has changed since: a slow reader gets the newest snapshot of
each task, and costs no memory. The order is the file's, so that changes by other processes are told of, too.

Pages: basic/patterns/subscriptions; the Tasks extension ("Task Status Notifications").
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.demo_server.errors import INVALID_PARAMS, TOO_MANY, RpcError
from app.demo_server.migrations import is_busy
from app.demo_server.records import Task
from app.demo_server.service import SERVER_INFO, Client, detailed
from app.demo_server.store import Store

METHOD: Final = "subscriptions/listen"
KEEP_ALIVE_SECONDS: Final = 15.0
"""After this long without a message a comment shows that the stream is alive."""
LOOK_SECONDS: Final = 0.2
"""How often the file is asked whether another process changed something; this one's changes wake at once."""
IDS_MOST: Final = 1000
"""Tasks of one subscription."""
STREAMS_MOST: Final = 32
"""Streams that one tenant may have open at once."""
CLOSING_SECONDS: Final = 1.0
"""How long a stream may take to say goodbye: less than the process gives its connections to end."""
RETRY_SECONDS: Final = 5

_SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
_GOODBYE: Final = "the service is shutting down"

_log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class Stream:
    """One open subscription."""

    request_id: str | int
    """The id of the listen request is the id of the subscription."""
    owner: str
    for_tasks: bool
    """Whether the filter speaks of tasks at all."""
    seen: int
    """How far in the order of all changes this stream has looked."""
    told: dict[str, int]
    """The revision of each accepted task that was told last; -1 before the first snapshot."""
    news: asyncio.Event = field(default_factory=asyncio.Event)


class Listening:
    """The open subscriptions of one process."""

    def __init__(
        self,
        store: Store,
        find: Callable[[Client, str], Task | None],
        *,
        keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """*find* returns a task of the client's tenant as ``tasks/get`` would show it, or ``None``."""
        self._store = store
        self._find = find
        self._keep_alive = keep_alive_seconds
        self._look = look_seconds
        self._streams: set[Stream] = set()
        self.closing = asyncio.Event()
        """Set once the service ends."""

    @property
    def count(self) -> int:
        """How many subscriptions are open."""
        return len(self._streams)

    def wake(self) -> None:
        """Let every stream look: something may have changed."""
        for stream in self._streams:
            stream.news.set()

    def close(self) -> None:
        """End every stream: each says so, gives the final result, and closes."""
        self.closing.set()
        self.wake()

    def open(self, request_id: str | int, params: Mapping[str, Any], client: Client) -> EventStream:
        """Return the reply to a listen request.

        Raises:
            RpcError: -32602 for a filter that can't be read, -32021 for tasks without the extension, 429
                with a time to wait for more streams than one tenant may have.
        """
        ids = _task_ids(params)
        if ids is not None:
            client.need(tasks=True)
        owner = client.caller.tenant
        if Counter(each.owner for each in self._streams)[owner] >= STREAMS_MOST:
            raise RpcError(
                TOO_MANY,
                f"there are {STREAMS_MOST} subscriptions open already; close one first",
                http_status=429,
                headers={"Retry-After": str(RETRY_SECONDS)},
            )
        # Before anything is read: what changes from here on is found by the first look after the snapshots.
        seen = self._store.revision()
        told = {task_id: -1 for task_id in ids or () if self._find(client, task_id) is not None}
        stream = Stream(request_id, owner, ids is not None, seen, told)
        self._streams.add(stream)
        return EventStream(
            self._messages(stream, client), self.closing, lambda: self._streams.discard(stream)
        )

    async def _messages(self, stream: Stream, client: Client) -> AsyncGenerator[bytes, None]:
        yield _acknowledgement(stream)
        reason = _GOODBYE
        loop = asyncio.get_running_loop()
        due = list(stream.told)
        try:
            while not self.closing.is_set():
                spoken = loop.time()
                for task_id in due:
                    if self.closing.is_set():
                        break
                    task = self._find(client, task_id)
                    # What is due may have been told already, and what was due may have changed again.
                    if task is not None and task.revision > stream.told[task_id]:
                        stream.told[task_id] = task.revision
                        yield _snapshot(stream, task)
                while not self.closing.is_set() and not (due := self._changed(stream)):
                    rest = spoken + self._keep_alive - loop.time()
                    if rest <= 0:
                        yield b": keep-alive\n\n"
                        spoken = loop.time()
                    else:
                        await self._news(stream, min(rest, self._look))
        except sqlite3.Error:
            _log.exception("a subscription can't go on")
            reason = "the service can't reach its data"
        yield _event("notifications/cancelled", stream, {"requestId": stream.request_id, "reason": reason})
        yield _final(stream)

    def _changed(self, stream: Stream) -> list[str]:
        """Return the ids of tasks that changed since this was asked last, oldest change first."""
        try:
            now = self._store.revision()
            if now == stream.seen:
                return []
            changed = self._store.changed_since(stream.owner, stream.seen, stream.told)
        except sqlite3.OperationalError as error:
            if is_busy(error):
                return []
            raise
        stream.seen = now
        return [task.id for task in changed]

    async def _news(self, stream: Stream, at_most: float) -> None:
        try:
            async with asyncio.timeout(at_most):
                await stream.news.wait()
        except TimeoutError:
            pass
        stream.news.clear()


class EventStream(Response):
    """A stream of events that ends when its messages do, or as soon as its client has left.

    Once *closing* is set, a client that takes nothing is waited for no longer than `CLOSING_SECONDS`.
    """

    def __init__(
        self, messages: AsyncGenerator[bytes, None], closing: asyncio.Event, ended: Callable[[], None]
    ) -> None:
        # No proxy may hold events back (the page on Streamable HTTP), and nothing may store them.
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(headers=headers, media_type="text/event-stream")
        del self.headers["content-length"]
        self._messages = messages
        self._closing = closing
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, in the way of ASGI."""
        telling = asyncio.create_task(self._tell(send))
        others = (asyncio.create_task(left(receive)), asyncio.create_task(self._overdue()))
        try:
            await asyncio.wait((telling, *others), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._ended()
            for each in (telling, *others):
                each.cancel()
            await asyncio.wait((telling, *others))
        if not telling.cancelled():
            telling.result()

    async def _overdue(self) -> None:
        await self._closing.wait()
        await asyncio.sleep(CLOSING_SECONDS)

    async def _tell(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with aclosing(self._messages):
            async for message in self._messages:
                # This waits while the connection takes no more, and meanwhile nothing is read for it.
                await send({"type": "http.response.body", "body": message, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def left(receive: Receive) -> None:
    """Return when the client has left; its request must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _task_ids(params: Mapping[str, Any]) -> tuple[str, ...] | None:
    wanted = params.get("notifications")
    if not isinstance(wanted, dict):
        raise RpcError(INVALID_PARAMS, "notifications must be an object: what to listen for")
    ids = wanted.get("taskIds")
    if ids is None:
        return None
    if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids):
        raise RpcError(INVALID_PARAMS, "notifications.taskIds must be a list of strings")
    if len(ids) > IDS_MOST:
        raise RpcError(INVALID_PARAMS, f"a subscription tells of at most {IDS_MOST} tasks; open several")
    return tuple(dict.fromkeys(ids))


def _acknowledgement(stream: Stream) -> bytes:
    # No list here ever changes, so nothing else that may be asked for is agreed to.
    agreed = {"taskIds": list(stream.told)} if stream.for_tasks else {}
    return _event("notifications/subscriptions/acknowledged", stream, {"notifications": agreed})


def _snapshot(stream: Stream, task: Task) -> bytes:
    return _event("notifications/tasks", stream, detailed(task))


def _final(stream: Stream) -> bytes:
    meta = {_SUBSCRIPTION_ID: stream.request_id, "io.modelcontextprotocol/serverInfo": SERVER_INFO}
    return _data({"id": stream.request_id, "result": {"resultType": "complete", "_meta": meta}})


def _event(method: str, stream: Stream, params: Mapping[str, Any]) -> bytes:
    return _data({"method": method, "params": {**params, "_meta": {_SUBSCRIPTION_ID: stream.request_id}}})


def _data(message: Mapping[str, Any]) -> bytes:
    text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":"))
    return f"data: {text}\n\n".encode()
