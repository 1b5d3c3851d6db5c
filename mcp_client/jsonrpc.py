"""JSON-RPC envelopes: written to bytes, and read from bytes that nobody can trust.

Numbers stay exact: integers are `int`, all others `decimal.Decimal`. `RawJSON` goes out unchanged.
Page: basic/index (Messages).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import simplejson
from simplejson import RawJSON

from mcp_client.errors import InvalidRequest, ProtocolError, ServerError

JSONValue: TypeAlias = Any
"""What JSON can say: ``None``, `bool`, `int`, `Decimal`, `str`, `list`, `dict`; on the way out `RawJSON`,
too."""
JSONObject: TypeAlias = dict[str, Any]

PROTOCOL_VERSION: Final = "2026-07-28"

VALUES_MOST: Final = 250_000
"""Values in one reply: reading more would hold up everything else for longer than a person would bear."""

_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_NO_NUMBER: Final = re.compile(rb"-?(?:NaN|Infinity)")
_QUOTED: Final = 120
"""Characters of a peer's own words that an error message repeats."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One request, ready for any transport."""

    id: str
    method: str
    name: str | None
    """What the request is about (a tool, a prompt, an address, a task): the source of the routing header."""
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    """Further headers, for a transport that has them; values encoded already."""
    version: str | None = PROTOCOL_VERSION
    """The protocol version that the body declares; ``None``: a request of the older revisions, which declare
    nothing and have no routing headers."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """The response to one request, or a notification on its stream."""

    message: JSONObject
    http_status: int | None = None


def encode(value: JSONValue) -> bytes:
    """Write *value* as UTF-8 JSON; raises `InvalidRequest` for what JSON can't say."""
    try:
        text = simplejson.dumps(
            value, use_decimal=True, allow_nan=False, ensure_ascii=False, separators=(",", ":")
        )
        return text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"The request can't be written as JSON: {error}") from None


def encode_notification(method: str, params: JSONObject) -> bytes:
    """Write a JSON-RPC notification."""
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


def encode_request(request_id: str, method: str, params: JSONObject) -> bytes:
    """Write a JSON-RPC request."""
    return encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def decode(body: bytes, *, depth: int) -> JSONValue:
    """Read JSON from *body*.

    Raises `ProtocolError` for what is no JSON, is not UTF-8, repeats a key in an object, holds half a
    surrogate pair (which no store could keep), is nested deeper than *depth*, or holds more than
    `VALUES_MOST` values.
    """
    if _is_too_much(body):
        raise ProtocolError(f"The reply holds more than {VALUES_MOST:,} values.")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProtocolError(f"The reply is not UTF-8 (byte {error.start}).") from None
    try:
        value = simplejson.loads(text, use_decimal=True, allow_nan=False, object_pairs_hook=_object)
    except RecursionError:
        raise ProtocolError("The reply is nested too deeply.") from None
    except (ValueError, ArithmeticError) as error:
        raise ProtocolError(f"The reply is not valid JSON: {_reason(error, body)}") from None
    nested = body.count(b"[") + body.count(b"{") > depth
    if nested or _SURROGATE.search(body):
        _inspect(value, depth)
    return value


def _is_too_much(body: bytes) -> bool:
    """Count values by what separates them, outside of texts, without reading them."""
    if _separators(body) <= VALUES_MOST:
        return False
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 4 * VALUES_MOST:  # a value and its name are two texts
        return True
    return _separators(b"".join(plain.split(b'"')[::2])) > VALUES_MOST


def _separators(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _reason(error: Exception, body: bytes) -> str:
    if isinstance(error, ArithmeticError):
        return "a number is out of range"
    if not isinstance(error, simplejson.JSONDecodeError):
        return "a number has too many digits"
    if _NO_NUMBER.match(body, len(error.doc[: error.pos].encode())):
        return f"NaN and Infinity are no numbers there (character {error.pos})"
    return str(error)[:_QUOTED]


def _object(pairs: list[tuple[str, Any]]) -> JSONObject:
    found = dict(pairs)
    if len(found) != len(pairs):
        key = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ProtocolError(f"The reply repeats the key {quoted(key)} in one object.", field=key[:_QUOTED])
    return found


def _inspect(value: JSONValue, depth: int) -> None:
    level: list[Any] = [value]
    for _ in range(depth + 1):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                _check_texts(item)
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
            elif isinstance(item, str):
                _check_texts((item,))
        if not below:
            return
        level = below
    raise ProtocolError(f"The reply is nested deeper than {depth} levels.")


def _check_texts(texts: Iterable[str]) -> None:
    for text in texts:
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise ProtocolError("The reply holds half of a surrogate pair.") from None


def quoted(value: object) -> str:
    """Return a peer's own word for an error message: short, and in quotes."""
    text = value if isinstance(value, str) else repr(value)
    return f"“{text[:_QUOTED]}{'…' if len(text) > _QUOTED else ''}”"


def is_response(value: JSONValue) -> bool:
    """Say whether *value* is meant as a JSON-RPC response."""
    return (
        isinstance(value, dict) and value.get("jsonrpc") == "2.0" and ("result" in value or "error" in value)
    )


def result_of(incoming: Incoming, request_id: str) -> JSONObject:
    """Return the result in a response to *request_id*.

    Raises `ServerError` for a JSON-RPC error, whatever HTTP status it came with, and `ProtocolError` for
    anything that is not a response to that request.
    """
    message = incoming.message
    if not isinstance(message, dict):
        raise ProtocolError("The reply is not a JSON-RPC message.")
    if message.get("jsonrpc") != "2.0":
        raise ProtocolError("The reply is not JSON-RPC 2.0.", field="jsonrpc")
    if "error" in message:
        if "result" in message:
            raise ProtocolError("The reply holds both a result and an error.", field="error")
        raise _error_of(message, request_id, incoming.http_status)
    if "result" not in message:
        raise ProtocolError("The reply holds neither a result nor an error.", field="result")
    if not _same(message.get("id"), request_id):
        raise ProtocolError(
            f"The reply is for another request ({quoted(message.get('id'))}, not {request_id}).", field="id"
        )
    result = message["result"]
    if not isinstance(result, dict):
        raise ProtocolError("The result is not an object.", field="result")
    return result


def _error_of(message: JSONObject, request_id: str, http_status: int | None) -> ServerError:
    error = message["error"]
    if not isinstance(error, dict):
        raise ProtocolError("The error is not an object.", field="error")
    code, text = error.get("code"), error.get("message")
    if not isinstance(code, int) or isinstance(code, bool):
        raise ProtocolError("The error's code is not a whole number.", field="error.code")
    found = message.get("id")
    # Some servers refuse before they have read the id; a common library writes “server-error” in its place.
    lost = found is None or found == "server-error"
    refused = http_status is not None and http_status >= 400
    if not (lost or refused or _same(found, request_id)):
        raise ProtocolError(
            f"The error is for another request ({quoted(found)}, not {request_id}).", field="id"
        )
    if not isinstance(text, str):
        text = "The server gave no reason."
    return ServerError(code, text, error.get("data"), http_status)


def _same(found: object, request_id: str) -> bool:
    return isinstance(found, str) and found == request_id


__all__ = [
    "Incoming",
    "JSONObject",
    "JSONValue",
    "Outgoing",
    "RawJSON",
    "decode",
    "encode",
    "encode_notification",
    "encode_request",
    "is_response",
    "quoted",
    "result_of",
]
