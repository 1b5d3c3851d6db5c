"""The Streamable HTTP transport: every request is its own POST. Page: basic/transports/streamable-http."""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final

import httpx

from mcp_client import headers as wire_headers
from mcp_client import jsonrpc
from mcp_client.body import body_chunks
from mcp_client.errors import AuthRequired, InvalidRequest, McpError, ProtocolError, TransportError
from mcp_client.jsonrpc import Incoming, JSONObject, Outgoing
from mcp_client.limits import Limits
from mcp_client.sse import events
from mcp_client.transport import OnMessage

_KEEPALIVE_SECONDS: Final = 4.0
"""Below the five seconds after which common servers close an idle connection: a request written to a
connection that is just being closed would be one whose outcome nobody knows."""

_DRAIN_SECONDS: Final = 0.05
"""How long a stream may take to end after its response; one that ends leaves its connection for the next
request."""

_UNPROCESSED: Final = frozenset({400, 403, 404, 405, 406, 410, 411, 413, 414, 415, 421, 426, 429, 431})
"""Statuses that say the request was refused before anything was done for it."""

_FAILURES: Final = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, UnicodeError)


@dataclass(slots=True)
class _Attempt:
    """One POST on its way: what is known of how far it got."""

    written: bool = False
    """Bytes of the request may have left; until then nothing can have had an effect."""

    async def trace(self, name: str, _info: Mapping[str, Any]) -> None:
        if name.endswith(".send_request_headers.started"):
            self.written = True


@dataclass(slots=True)
class HttpTransport:
    """Carries requests to one MCP endpoint.

    The address and the headers are checked when the first request is sent: a broken entry in a list of
    servers is then an error of that request. Cookies are neither kept nor sent. A redirect is followed only
    by 307 or 308 and only to the same origin, so credentials never travel.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    limits: Limits = field(default_factory=Limits)
    user_agent: str = "mcp-client"
    _client: httpx.AsyncClient | None = field(default=None, init=False, repr=False)
    _endpoint: httpx.URL | None = field(default=None, init=False, repr=False)
    _closed: bool = field(default=False, init=False)

    async def send(
        self, request: Outgoing, *, timeout: float, on_message: OnMessage | None = None
    ) -> Incoming:
        """Send *request* as a POST and return its response, from JSON or from an event stream.

        Raises `InvalidRequest`, `TransportError`, `AuthRequired` or `ProtocolError`.
        """
        attempt = _Attempt()
        try:
            async with asyncio.timeout(timeout):
                return await self._exchange(request, attempt, on_message)
        except McpError:
            raise
        except TimeoutError:
            said = f"{self._place()} did not answer within {timeout:g} s."
            raise TransportError(said, may_have_reached=attempt.written) from None
        except _FAILURES as error:
            raise self._failure(error, attempt) from error

    async def connect(self) -> None:
        """Do nothing: every request finds its own way."""

    async def aclose(self) -> None:
        """Close all connections; requests under way fail."""
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _exchange(self, request: Outgoing, attempt: _Attempt, on_message: OnMessage | None) -> Incoming:
        client, url = self._open()
        for _ in range(self.limits.redirects + 1):
            attempt.written = False
            async with client.stream(
                "POST",
                url,
                content=request.body,
                headers=self._headers_for(request),
                extensions={"trace": attempt.trace},
            ) as response:
                if 300 <= response.status_code < 400:
                    url = self._redirected(url, response)
                    continue
                return await self._read(request, response, on_message)
        raise TransportError(f"{self._place()} redirects in circles.", may_have_reached=False)

    def _open(self) -> tuple[httpx.AsyncClient, httpx.URL]:
        if self._closed:
            raise InvalidRequest("The connection to the server has been closed.")
        if self._client is None or self._endpoint is None:
            self._endpoint = _endpoint(self.url)
            self._client = self._connect(httpx.Headers(list(wire_headers.checked(self.headers))))
        return self._client, self._endpoint

    def _connect(self, own: httpx.Headers) -> httpx.AsyncClient:
        own.setdefault("User-Agent", wire_headers.encode_value(self.user_agent))
        try:
            return httpx.AsyncClient(
                headers=own,
                verify=_trust(),
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                follow_redirects=False,
                trust_env=True,
                timeout=httpx.Timeout(None, connect=self.limits.connect_seconds),
                limits=httpx.Limits(
                    max_connections=self.limits.connections,
                    max_keepalive_connections=self.limits.connections,
                    keepalive_expiry=_KEEPALIVE_SECONDS,
                ),
            )
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            raise InvalidRequest(f"The proxy settings of the environment can't be used: {error}") from None

    def _headers_for(self, request: Outgoing) -> list[tuple[str, str]]:
        found = [
            ("Accept", "application/json, text/event-stream"),
            ("Accept-Encoding", "gzip"),
            ("Content-Type", "application/json"),
        ]
        if request.version is None:
            return found
        found += [
            ("MCP-Protocol-Version", request.version),
            ("Mcp-Method", wire_headers.encode_value(request.method)),
        ]
        if request.name is not None:
            found.append(("Mcp-Name", wire_headers.encode_value(request.name)))
        return [*found, *request.headers]

    def _redirected(self, url: httpx.URL, response: httpx.Response) -> httpx.URL:
        """Return where to go; raises `TransportError` for a redirect that isn't followed."""
        target = response.headers.get("location", "")
        status = response.status_code
        try:
            found = url.join(target)
        except (httpx.InvalidURL, ValueError):
            found = None
        same = found is not None and _origin(found) == _origin(url)
        if status not in (307, 308) or found is None or not same or not target:
            where = jsonrpc.quoted(target)
            said = f"{self._place()} redirects to {where}, which is not followed (HTTP {status})."
            raise TransportError(said, may_have_reached=status == 303, status=status)
        return found.copy_with(userinfo=url.userinfo, fragment=None)

    async def _read(
        self, request: Outgoing, response: httpx.Response, on_message: OnMessage | None
    ) -> Incoming:
        status = response.status_code
        challenge = response.headers.get("www-authenticate")
        if status == 401 or (status == 403 and challenge is not None):
            raise AuthRequired(status, challenge, f"{self._place()} wants a sign-in (HTTP {status}).")
        media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if status >= 400:
            return await self._read_refusal(response, media)
        if media == "text/event-stream":
            return await self._read_stream(request, response, on_message)
        body = await self._whole(response)
        if not body.strip():
            raise ProtocolError(f"{self._place()} sent an empty reply (HTTP {status}).")
        if media not in ("", "application/json") and not media.endswith("+json"):
            said = f"{self._place()} sent {jsonrpc.quoted(media)} where JSON or an event stream is due."
            raise ProtocolError(said, field="Content-Type")
        return Incoming(jsonrpc.decode(body, depth=self.limits.depth), status)

    async def _read_refusal(self, response: httpx.Response, media: str) -> Incoming:
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
        except (ProtocolError, *_FAILURES):
            pass  # an error page is no JSON, or is cut short: the status says what there is to say
        raise TransportError(
            f"{self._place()} answered HTTP {status}{_meaning(status)}.",
            may_have_reached=status not in _UNPROCESSED,
            status=status,
        )

    async def _whole(self, response: httpx.Response) -> bytes:
        found = bytearray()
        async with aclosing(body_chunks(response, limit=self.limits.reply_bytes)) as chunks:
            async for chunk in chunks:
                found += chunk
        return bytes(found)

    async def _read_stream(
        self, request: Outgoing, response: httpx.Response, on_message: OnMessage | None
    ) -> Incoming:
        limit = self.limits.reply_bytes
        async with (
            aclosing(body_chunks(response, limit=limit)) as chunks,
            aclosing(events(chunks, limit=limit)) as found,
        ):
            async for event in found:
                if event.type != "message":
                    continue
                value = jsonrpc.decode(event.data, depth=self.limits.depth)
                if jsonrpc.is_response(value):
                    await _drain(chunks)
                    return Incoming(value, response.status_code)
                self._notify(value, on_message)
        said = f"{self._place()} ended the stream without a response to {request.method}."
        raise TransportError(said, may_have_reached=True, status=response.status_code)

    @staticmethod
    def _notify(value: Any, on_message: OnMessage | None) -> None:
        message: JSONObject = value if isinstance(value, dict) else {}
        method = message.get("method")
        if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
            raise ProtocolError("The stream holds something that is no JSON-RPC message.", field="method")
        if "id" in message:
            what = jsonrpc.quoted(method)
            said = f"The server sent a request of its own ({what}), which this revision forbids."
            raise ProtocolError(said, field="id")
        if on_message is not None:
            on_message(message)

    def _place(self) -> str:
        """Name the server in a message: host and port, and nothing that could be a secret."""
        try:
            url = httpx.URL(self.url)
        except (httpx.InvalidURL, ValueError):
            return "The server"
        host = f"[{url.host}]" if ":" in url.host else url.host
        return f"{host}:{url.port}" if url.port is not None else host or "The server"

    def _failure(self, error: Exception, attempt: _Attempt) -> TransportError:
        reached = attempt.written and not isinstance(error, httpx.ProxyError)
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, ssl.SSLError):
            cause = cause.__cause__ or cause.__context__
        if isinstance(error, httpx.TimeoutException):
            what = "can't be reached: no connection within the time allowed"
        elif reached:
            what = "gave no complete reply"
        else:
            what = "can't be reached"
        why = str(cause or error).strip().rstrip(".")
        return TransportError(
            f"{self._place()} {what}{f' ({why[:200]})' if why else ''}.", may_have_reached=reached
        )


async def _once(chunk: bytes) -> AsyncGenerator[bytes, None]:
    yield chunk


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Let a stream that has brought its response come to its end, so that its connection can be used
    again."""
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in chunks:
                pass
    except (McpError, TimeoutError, *_FAILURES):
        pass  # the response is here; how the rest ends changes nothing


@functools.cache
def _trust() -> ssl.SSLContext:
    """Return what decides whom to trust, shared: reading the certificates takes tens of milliseconds."""
    return httpx.create_ssl_context()


def _endpoint(text: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError) as error:
        raise InvalidRequest(f"The server's address is not valid: {error}") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidRequest("The server's address must begin with http:// or https:// and name a host.")
    return url.copy_with(fragment=None)


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or {"http": 80, "https": 443}.get(url.scheme)


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
