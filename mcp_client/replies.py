"""Reading HTTP replies: JSON or an event stream, a refusal or a sign-in, whole or message by message.

Page: basic/transports/streamable-http ("Receiving Messages").
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

import httpx

from mcp_client import jsonrpc
from mcp_client.body import body_chunks
from mcp_client.errors import AuthRequired, McpError, ProtocolError, TransportError
from mcp_client.jsonrpc import Incoming, JSONObject, Outgoing
from mcp_client.limits import Limits
from mcp_client.sse import events
from mcp_client.transport import OnMessage

FAILURES: Final = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, UnicodeError)
"""What httpx and the network raise where no reply can be had."""

_DRAIN_SECONDS: Final = 0.05
"""How long a stream may take to end after its response; one that ends leaves its connection for the next
request."""

_UNPROCESSED: Final = frozenset({400, 403, 404, 405, 406, 410, 411, 413, 414, 415, 421, 426, 429, 431})
"""Statuses that say the request was refused before anything was done for it."""


@dataclass(frozen=True, slots=True)
class Replies:
    """Reads the replies of one server, within *limits*; raises `McpError` and what `FAILURES` names."""

    place: Callable[[], str]
    """Names the server in a message."""
    limits: Limits

    async def read(
        self, request: Outgoing, response: httpx.Response, on_message: OnMessage | None
    ) -> Incoming:
        """Return the response in a whole reply, of at most ``reply_bytes``."""
        media = self._media(response)
        status = response.status_code
        if status >= 400:
            return await self._refusal(response, media)
        if media == "text/event-stream":
            found: Incoming | None = None
            limit = self.limits.reply_bytes
            async with aclosing(self._events(request, response, limit)) as messages:
                async for incoming in messages:
                    found = incoming
                    if on_message is not None and not jsonrpc.is_response(incoming.message):
                        on_message(incoming.message)
            assert found is not None  # `_events` ends behind a response, or raises
            return found
        body = await self._whole(response)
        if not body.strip():
            raise ProtocolError(f"{self.place()} sent an empty reply (HTTP {status}).")
        if media not in ("", "application/json") and not media.endswith("+json"):
            said = f"{self.place()} sent {jsonrpc.quoted(media)} where JSON or an event stream is due."
            raise ProtocolError(said, field="Content-Type")
        return Incoming(jsonrpc.decode(body, depth=self.limits.depth), status)

    async def messages(self, request: Outgoing, response: httpx.Response) -> AsyncGenerator[Incoming, None]:
        """Yield each message of a reply that may go on for ever; every single one is bounded."""
        if response.status_code < 400 and self._media(response) == "text/event-stream":
            async with aclosing(self._events(request, response, None)) as found:
                async for incoming in found:
                    yield incoming
        else:
            incoming = await self.read(request, response, None)
            if not jsonrpc.is_response(incoming.message):
                raise ProtocolError(f"{self.place()} sent JSON that is no response to {request.method}.")
            yield incoming

    def _media(self, response: httpx.Response) -> str:
        """Return the reply's media type; raises `AuthRequired` for one that wants a sign-in."""
        status = response.status_code
        challenge = response.headers.get("www-authenticate")
        if status == 401 or (status == 403 and challenge is not None):
            raise AuthRequired(status, challenge, f"{self.place()} wants a sign-in (HTTP {status}).")
        media: str = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        return media

    async def _refusal(self, response: httpx.Response, media: str) -> Incoming:
        """Return the JSON-RPC error that came with an HTTP error, or raise what the status alone says."""
        status = response.status_code
        candidates: list[bytes] = []
        try:
            body = await self._whole(response)
            if media == "text/event-stream":
                async with (
                    aclosing(_once(body + b"\n\n")) as whole,
                    aclosing(events(whole, limit=self.limits.reply_bytes)) as found,
                ):
                    candidates = [event.data async for event in found]
            else:
                candidates = [body]
            for data in candidates:
                value = jsonrpc.decode(data, depth=self.limits.depth)
                if jsonrpc.is_response(value):
                    return Incoming(value, status)
        except (ProtocolError, *FAILURES):
            pass  # an error page is no JSON, or is cut short: the status says what there is to say
        raise TransportError(
            f"{self.place()} answered HTTP {status}{_meaning(status)}.",
            may_have_reached=status not in _UNPROCESSED,
            status=status,
        )

    async def _whole(self, response: httpx.Response) -> bytes:
        found = bytearray()
        async with aclosing(body_chunks(response, limit=self.limits.reply_bytes)) as chunks:
            async for chunk in chunks:
                found += chunk
        return bytes(found)

    async def _events(
        self, request: Outgoing, response: httpx.Response, limit: int | None
    ) -> AsyncGenerator[Incoming, None]:
        """Yield the messages of an event stream, the response last; *limit* bounds all of it together."""
        async with (
            aclosing(body_chunks(response, limit=limit)) as chunks,
            aclosing(events(chunks, limit=self.limits.reply_bytes)) as found,
        ):
            async for event in found:
                if event.type != "message":
                    continue
                value = jsonrpc.decode(event.data, depth=self.limits.depth)
                if jsonrpc.is_response(value):
                    yield Incoming(value, response.status_code)
                    await _drain(chunks)
                    return
                yield Incoming(_notification(value), response.status_code)
        said = f"{self.place()} ended the stream without a response to {request.method}."
        raise TransportError(said, may_have_reached=True, status=response.status_code)


def _notification(value: Any) -> JSONObject:
    message: JSONObject = value if isinstance(value, dict) else {}
    method = message.get("method")
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
        raise ProtocolError("The stream holds something that is no JSON-RPC message.", field="method")
    if "id" in message:
        what = jsonrpc.quoted(method)
        said = f"The server sent a request of its own ({what}), which this revision forbids."
        raise ProtocolError(said, field="id")
    return message


async def _once(chunk: bytes) -> AsyncGenerator[bytes, None]:
    yield chunk


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Let a stream that has brought its response come to its end, so that its connection can be used
    again."""
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in chunks:
                pass
    except (McpError, TimeoutError, *FAILURES):
        pass  # the response is here; how the rest ends changes nothing


def _meaning(status: int) -> str:
    return {
        404: ": there is no MCP endpoint at this address",
        405: ": there is no MCP endpoint at this address",
        406: ": it does not speak this form of the protocol",
        408: ": it waited too long for the request",
        413: ": the request is too large for it",
        429: ": too many requests",
        502: ": the server behind it does not answer",
        503: ": it is not available now",
        504: ": the server behind it does not answer in time",
    }.get(status, "")
