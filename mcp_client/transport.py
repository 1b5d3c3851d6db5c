"""What a transport is: it carries requests to one server and brings what comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from mcp_client.jsonrpc import Incoming, JSONObject, Outgoing

OnMessage = Callable[[JSONObject], None]
"""Told each notification that belongs to a request, in order, while the request is open."""


class Transport(Protocol):
    """Carries requests to one server. Several may be under way at the same time."""

    async def send(
        self, request: Outgoing, *, timeout: float, on_message: OnMessage | None = None
    ) -> Incoming:
        """Send *request* and return its response within *timeout* seconds.

        Raises `TransportError`, `AuthRequired` or `ProtocolError`; a JSON-RPC error is returned, not raised.
        Cancelling it cancels the request, never a task that the request has made.
        """

    def stream(self, request: Outgoing) -> AbstractAsyncContextManager[AsyncIterator[Incoming]]:
        """Send *request* and yield all that comes for it, for as long as the server likes.

        The messages are notifications and, last, the response, which may be the only one; each is a JSON
        object with ``"jsonrpc": "2.0"``. The iteration ends behind the response. It raises `TransportError`
        where the connection breaks, ends without a response, or has been silent for longer than a peer that
        is alive would be. Entering raises what `send` raises; it may wait for the first bytes, so give it a
        timeout. Leaving cancels the request, unless its response has come.
        """

    async def connect(self) -> int | None:
        """Make sure that there is a peer, and return its number: a new one for each new peer.

        What was learnt of one peer must be learnt again of the next. ``None`` where every request finds its
        own way, as over HTTP: there is nothing to connect before one is sent. Raises `TransportError`.
        """

    async def aclose(self) -> None:
        """Close all connections; closing twice does nothing."""
