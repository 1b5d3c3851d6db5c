"""What can go wrong: an answer on the wire, or the process that can't serve.

```text
Exception
 ├─ RpcError     sent to the client as a JSON-RPC error
 └─ ServeError   the service can't start or go on; the message is for the person who started it
```
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022
TOO_MANY: Final = 429
"""The service's own code, outside of the range that JSON-RPC reserves; HTTP's status says the same."""

_BAD_REQUEST: Final = frozenset(
    {PARSE_ERROR, INVALID_REQUEST, HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION}
)


class RpcError(Exception):
    """A JSON-RPC error, with the HTTP status and headers that carry it."""

    def __init__(
        self,
        code: int,
        message: str,
        data: Any = None,
        *,
        http_status: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.http_status = _status(code) if http_status is None else http_status
        self.headers = headers

    def body(self) -> dict[str, Any]:
        """Return the ``error`` member: ``{"code", "message"}``, and ``data`` where there is some."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        return error if self.data is None else {**error, "data": self.data}


class ServeError(Exception):
    """The service can't be started, or can't go on; the message names the cause and what to do."""


def _status(code: int) -> int:
    # The specification fixes 400 for these and 404 for an unknown method; an error of the verb itself, an
    # unknown task for one, is a JSON-RPC answer like any other.
    if code in _BAD_REQUEST:
        return 400
    return {METHOD_NOT_FOUND: 404, INTERNAL_ERROR: 500}.get(code, 200)
