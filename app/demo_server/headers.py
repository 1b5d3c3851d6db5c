"""What the HTTP headers must say about the body (the specification's page on Streamable HTTP)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from app.demo_server.errors import HEADER_MISMATCH, INVALID_PARAMS, RpcError

NAMED_BY: Final = {
    "tools/call": "name",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The methods that carry ``Mcp-Name``, and the parameter it repeats."""

PARAM_PREFIX: Final = "mcp-param-"
"""What the headers that repeat a tool's parameters begin with."""

_SENTINEL: Final = re.compile(r"=\?base64\?(.*)\?=")
_PLAIN: Final = re.compile(r"[\t\x20-\x7e]*")
_INTEGER: Final = re.compile(r"(-?[0-9]{1,16})(?:\.0{1,16})?")


def joined(given: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers by lower-case name, repeated ones as one list (RFC 9110, 5.3).

    Where a header is repeated, whoever routes by it and whoever reads the body could each take another one.
    """
    found: dict[str, str] = {}
    for name, value in given:
        key = name.lower()
        found[key] = f"{found[key]}, {value}" if key in found else value
    return found


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


def check_params(headers: Mapping[str, str], schema: Mapping[str, Any], arguments: object) -> None:
    """Raise `RpcError` (-32020) unless the ``Mcp-Param-*`` headers repeat the arguments they belong to.

    *schema* is the tool's input schema; a parameter that is left out, or null, has no header.
    """
    for header, path in mirrored(schema):
        value = _at(arguments, path)
        given = headers.get(PARAM_PREFIX + header.lower())
        name = f"Mcp-Param-{header}"
        if isinstance(value, str | int | float):
            if not _repeats(decoded(name, given), value):
                raise RpcError(HEADER_MISMATCH, f"header mismatch: {name} does not say what the body says")
        elif given is not None:
            raise RpcError(HEADER_MISMATCH, f"header mismatch: {name} repeats nothing in the body")


def mirrored(schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each annotation ``x-mcp-header`` that a chain of ``properties`` leads to, with its path."""
    for name, inner in schema.get("properties", {}).items():
        if "x-mcp-header" in inner:
            yield inner["x-mcp-header"], (*path, name)
        yield from mirrored(inner, (*path, name))


def _at(arguments: object, path: tuple[str, ...]) -> object:
    for name in path:
        if not isinstance(arguments, dict):
            return None
        arguments = arguments.get(name)
    return arguments


def _repeats(text: str, value: str | int | float) -> bool:
    if isinstance(value, str):
        return text == value
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    number = _INTEGER.fullmatch(text)  # 42.0 and 42 are equal
    return number is not None and int(number[1]) == value


def decoded(header: str, value: str | None) -> str:
    """Return a header's value with the base64 form undone.

    Raises:
        RpcError: -32020 where the header is missing, or holds what no client may send.
    """
    plain = _plain(header, value)
    encoded = _SENTINEL.fullmatch(plain)
    if encoded is None:
        return plain
    wrong = RpcError(HEADER_MISMATCH, f"header mismatch: {header} is not valid base64 of UTF-8")
    try:
        raw = base64.b64decode(encoded[1], validate=True)
        text = raw.decode()
    except (binascii.Error, ValueError):
        raise wrong from None
    if base64.b64encode(raw).decode() != encoded[1]:
        raise wrong  # one value has one form: bits that padding hides are refused
    return text


def _plain(header: str, value: str | None) -> str:
    if value is None:
        raise RpcError(HEADER_MISMATCH, f"header mismatch: {header} is missing")
    if _PLAIN.fullmatch(value) is None:
        raise RpcError(HEADER_MISMATCH, f"header mismatch: {header} holds characters that need base64")
    return value


def _match(header: str, value: str, body: str) -> None:
    if value != body:
        raise RpcError(HEADER_MISMATCH, f"header mismatch: {header} does not say what the body says")
