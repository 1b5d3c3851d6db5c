"""What the HTTP headers must say about the body (the specification's page on Streamable HTTP)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final

from app.demo_server.errors import HEADER_MISMATCH, INVALID_PARAMS, RpcError

NAMED_BY: Final = {
    "tools/call": "name",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The methods that carry ``Mcp-Name``, and the parameter it repeats."""

_SENTINEL: Final = re.compile(r"=\?base64\?(.*)\?=")
_PLAIN: Final = re.compile(r"[\t\x20-\x7e]*")


def check_method(headers: Mapping[str, str], method: str) -> None:
    """Raise `RpcError` (-32020) unless ``Mcp-Method`` is there and is *method*."""
    _match("Mcp-Method", _plain("Mcp-Method", headers.get("mcp-method")), method)


def check_version(headers: Mapping[str, str], version: str) -> None:
    """Raise `RpcError` (-32020) unless ``MCP-Protocol-Version`` is there and is *version*."""
    _match(
        "MCP-Protocol-Version", _plain("MCP-Protocol-Version", headers.get("mcp-protocol-version")), version
    )


def check_name(headers: Mapping[str, str], method: str, params: Mapping[str, Any]) -> None:
    """Raise `RpcError` unless ``Mcp-Name`` repeats the parameter that names what *method* is about.

    Raises:
        RpcError: -32602 where the parameter is no string, -32020 where the header is missing, malformed or
            another one.
    """
    parameter = NAMED_BY.get(method)
    if parameter is None:
        return
    name = params.get(parameter)
    if not isinstance(name, str):
        raise RpcError(INVALID_PARAMS, f"{parameter} must be a string")
    if method != "tools/call" and "mcp-name" not in headers:
        # The Tasks page obliges clients to send it, for routing; the page that lists what a server must
        # refuse names tools/call alone, clients in use leave it out, and here is nothing to route.
        return
    _match("Mcp-Name", decoded("Mcp-Name", headers.get("mcp-name")), name)


def decoded(header: str, value: str | None) -> str:
    """Return a header's value with the base64 form undone.

    Raises:
        RpcError: -32020 where the header is missing, or holds what no client may send.
    """
    plain = _plain(header, value)
    encoded = _SENTINEL.fullmatch(plain)
    if encoded is None:
        return plain
    try:
        return base64.b64decode(encoded[1], validate=True).decode()
    except (binascii.Error, ValueError):
        raise RpcError(HEADER_MISMATCH, f"header mismatch: {header} is not valid base64 of UTF-8") from None


def _plain(header: str, value: str | None) -> str:
    if value is None:
        raise RpcError(HEADER_MISMATCH, f"header mismatch: {header} is missing")
    if _PLAIN.fullmatch(value) is None:
        raise RpcError(HEADER_MISMATCH, f"header mismatch: {header} holds characters that need base64")
    return value


def _match(header: str, value: str, body: str) -> None:
    if value != body:
        raise RpcError(HEADER_MISMATCH, f"header mismatch: {header} does not say what the body says")
