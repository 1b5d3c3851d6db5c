"""The Streamable HTTP transport: every request is its own POST. Page: basic/transports/streamable-http."""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final

import httpx

from mcp_client import headers as wire_headers
from mcp_client import jsonrpc
from mcp_client.errors import InvalidRequest, McpError, TransportError
from mcp_client.jsonrpc import Incoming, Outgoing
from mcp_client.limits import Limits
from mcp_client.replies import FAILURES, Replies
from mcp_client.transport import OnMessage

_KEEPALIVE_SECONDS: Final = 4.0
"""Below the five seconds after which common servers close an idle connection: a request written to a
connection that is just being closed would be one whose outcome nobody knows."""


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
            async with asyncio.timeout(timeout), self._responding(request, attempt) as response:
                return await self._replies().read(request, response, on_message)
        except McpError:
            raise
        except TimeoutError:
            said = f"{self._place()} did not answer within {timeout:g} s."
            raise TransportError(said, may_have_reached=attempt.written) from None
        except FAILURES as error:
            raise self._failure(error, attempt) from error

    @asynccontextmanager
    async def stream(self, request: Outgoing) -> AsyncGenerator[AsyncIterator[Incoming], None]:
        """Send *request* as a POST and yield what comes for it, from JSON or from an event stream.

        A stream on which not a byte comes for ``idle_seconds`` is taken for dead. Entering waits for the
        reply's head, for as long as the same. Leaving closes the stream, which cancels the request
        (basic/patterns/cancellation). Raises what `send` raises.
        """
        attempt = _Attempt()
        idle = httpx.Timeout(None, connect=self.limits.connect_seconds, read=self.limits.idle_seconds)
        async with AsyncExitStack() as stack:
            with self._told(attempt):
                response = await stack.enter_async_context(self._responding(request, attempt, idle))
            yield await stack.enter_async_context(aclosing(self._messages(request, response, attempt)))

    async def _messages(
        self, request: Outgoing, response: httpx.Response, attempt: _Attempt
    ) -> AsyncGenerator[Incoming, None]:
        with self._told(attempt):
            async with aclosing(self._replies().messages(request, response)) as messages:
                async for incoming in messages:
                    yield incoming

    async def connect(self) -> None:
        """Do nothing: every request finds its own way."""

    async def aclose(self) -> None:
        """Close all connections; requests under way fail."""
        self._closed = True
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    @asynccontextmanager
    async def _responding(
        self, request: Outgoing, attempt: _Attempt, timeout: httpx.Timeout | None = None
    ) -> AsyncGenerator[httpx.Response, None]:
        """Send *request*, follow what redirects may be followed, and yield the reply, its body unread."""
        client, url = self._open()
        for _ in range(self.limits.redirects + 1):
            attempt.written = False
            async with client.stream(
                "POST",
                url,
                content=request.body,
                headers=self._headers_for(request),
                timeout=timeout or client.timeout,
                extensions={"trace": attempt.trace},
            ) as response:
                if 300 <= response.status_code < 400:
                    url = self._redirected(url, response)
                    continue
                yield response
                return
        raise TransportError(f"{self._place()} redirects in circles.", may_have_reached=False)

    @contextmanager
    def _told(self, attempt: _Attempt) -> Iterator[None]:
        try:
            yield
        except FAILURES as error:
            raise self._failure(error, attempt) from error

    def _replies(self) -> Replies:
        return Replies(self._place, self.limits)

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

    def _place(self) -> str:
        """Name the server in a message: host and port, and nothing that could be a secret."""
        url = _endpoint(self.url)
        host = f"[{url.host}]" if ":" in url.host else url.host
        return f"{host}:{url.port}" if url.port is not None else host

    def _failure(self, error: Exception, attempt: _Attempt) -> TransportError:
        reached = attempt.written and not isinstance(error, httpx.ProxyError)
        behind = next((one for one in _causes(error) if isinstance(one, ssl.SSLError)), error)
        if isinstance(error, httpx.ReadTimeout):
            what = f"has been silent for {self.limits.idle_seconds:g} s"
        elif isinstance(error, httpx.TimeoutException):
            what = "can't be reached: no connection within the time allowed"
        elif reached:
            what = "gave no complete reply"
        else:
            what = "can't be reached"
        why = str(behind).strip().rstrip(".")
        return TransportError(
            f"{self._place()} {what}{f' ({why[:200]})' if why else ''}.", may_have_reached=reached
        )


@functools.cache
def _trust() -> ssl.SSLContext:
    """Return what decides whom to trust, shared: reading the certificates takes tens of milliseconds."""
    return httpx.create_ssl_context()


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield what is behind *error*, each once: whoever raises may have closed the chain to a ring."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__


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
