"""What can go wrong between a client and a server. Nothing else leaves this package, cancellation aside.

```text
McpError
├── TransportError       no usable reply came; says whether the request can have had an effect
│   └── InvalidRequest   it was never sent: the address, a header or a value can't go over the wire
├── AuthRequired         the server wants credentials, or others than those it got
├── ProtocolError        the peer broke the rules; names the field
├── LegacyServer         the server speaks an older revision only, which has no Tasks extension
└── ServerError          the server answered with a JSON-RPC error
```

Messages may quote what a server sent: make them inert before they reach a terminal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022

INTERNAL_ERROR: Final = -32603

_MODERN: Final = frozenset(
    {
        HEADER_MISMATCH,
        MISSING_CAPABILITY,
        UNSUPPORTED_VERSION,
        METHOD_NOT_FOUND,
        INVALID_PARAMS,
        INTERNAL_ERROR,
    }
)
"""Codes that servers of this revision send with HTTP 400, too; any other one comes from an older server."""


class McpError(Exception):
    """A request did not get its result; the message says why, for a person."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class TransportError(McpError):
    """No usable reply came: the server can't be reached, or what answers is no MCP server.

    `may_have_reached` is false only where the request provably had no effect: nothing was written (no such
    host, connection refused, failed TLS handshake), or the answer was an HTTP status that says it was not
    processed. `status` is the HTTP status, where there was one.
    """

    def __init__(self, message: str, *, may_have_reached: bool, status: int | None = None) -> None:
        super().__init__(message)
        self.may_have_reached = may_have_reached
        self.status = status


class InvalidRequest(TransportError):
    """The request was never sent: its address, a header, or a value in it can't go over the wire."""

    def __init__(self, message: str) -> None:
        super().__init__(message, may_have_reached=False)


class AuthRequired(McpError):
    """The server wants credentials (401), or refuses those it got (403 with a challenge)."""

    def __init__(self, status: int, www_authenticate: str | None, message: str | None = None) -> None:
        super().__init__(message or f"The server wants a sign-in (HTTP {status}).")
        self.status = status
        self.www_authenticate = www_authenticate
        """The challenge as it came; ``None`` where there was none."""


class ProtocolError(McpError):
    """The peer broke the rules of the protocol; `field` names where, in the reply's own terms."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class LegacyServer(McpError):
    """The server speaks a revision before 2026-07-28, which has no Tasks extension; nothing was done for the
    request (basic/versioning, "Backward Compatibility")."""

    def __init__(self, version: str | None) -> None:
        spoken = version or "an older revision of MCP"
        super().__init__(f"The server speaks {spoken}, which has no Tasks extension.")
        self.version = version
        """What it says it speaks, such as ``2025-11-25``; ``None``: it does not say."""


class ServerError(McpError):
    """The server answered with a JSON-RPC error; the same one whatever the HTTP status it came with.

    `http_status` is ``None`` on transports that have none.
    """

    def __init__(self, code: int, message: str, data: Any = None, http_status: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data
        self.http_status = http_status

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"

    @property
    def is_method_not_found(self) -> bool:
        """Say whether the server lacks the method (-32601)."""
        return self.code == METHOD_NOT_FOUND

    @property
    def is_invalid_params(self) -> bool:
        """Say whether the server refused the parameters (-32602): an unknown tool or task, a refused
        answer."""
        return self.code == INVALID_PARAMS

    @property
    def is_header_mismatch(self) -> bool:
        """Say whether headers and body disagreed, to the server's mind (-32020)."""
        return self.code == HEADER_MISMATCH

    @property
    def required_capabilities(self) -> Mapping[str, Any] | None:
        """Return the client capabilities the server misses (-32021); ``None`` for any other error."""
        if self.code != MISSING_CAPABILITY:
            return None
        found = self.data.get("requiredCapabilities") if isinstance(self.data, dict) else None
        return found if isinstance(found, dict) else {}

    @property
    def supported(self) -> tuple[str, ...] | None:
        """Return the protocol versions the server supports (-32022); ``None`` for any other error."""
        if self.code != UNSUPPORTED_VERSION:
            return None
        found = self.data.get("supported") if isinstance(self.data, dict) else None
        return tuple(v for v in found if isinstance(v, str)) if isinstance(found, list) else ()

    @property
    def is_modern(self) -> bool:
        """Say whether only a server of this revision sends such an error: one of the codes it reserves."""
        return self.code in (HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION)

    @property
    def is_legacy(self) -> bool:
        """Say whether this is how a server of an older revision refuses (basic/versioning).

        Such a server answers HTTP 400 without one of the errors that a server of this revision sends.
        """
        return self.http_status == 400 and self.code not in _MODERN
