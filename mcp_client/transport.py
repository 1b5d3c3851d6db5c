"""What a transport is: it carries one request and brings its response."""

from __future__ import annotations

from collections.abc import Callable
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

    async def aclose(self) -> None:
        """Close all connections; closing twice does nothing."""
