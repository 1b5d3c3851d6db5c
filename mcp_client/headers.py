"""Routing headers and their encoding. Page: basic/transports/streamable-http (Request Metadata, Value
Encoding)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcp_client.errors import InvalidRequest

_PLAIN: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PREFIX: Final = "=?base64?"
_SUFFIX: Final = "?="

_NAME_FIELDS: Final[Mapping[str, str]] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
_OWNED: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "cookie",
        "host",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that belong to the protocol or to HTTP itself: nobody else may set them."""


def encode_value(value: str) -> str:
    """Return *value* as a header carries it.

    Visible ASCII with spaces and tabs inside goes as it is; anything else, and what could be taken for an
    encoded value, goes as ``=?base64?…?=``. Raises `InvalidRequest` for half a surrogate pair.
    """
    sentinel = value.startswith(_PREFIX) and value.endswith(_SUFFIX)
    if _PLAIN.fullmatch(value) and not sentinel:
        return value
    try:
        data = value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidRequest("A value for a header holds half of a surrogate pair.") from None
    return f"{_PREFIX}{base64.b64encode(data).decode('ascii')}{_SUFFIX}"


def decode_value(value: str) -> str:
    """Undo `encode_value`; raises `ValueError` for what only looks encoded."""
    if not (value.startswith(_PREFIX) and value.endswith(_SUFFIX) and len(value) >= len(_PREFIX + _SUFFIX)):
        return value
    try:
        return base64.b64decode(value[len(_PREFIX) : -len(_SUFFIX)], validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(f"not an encoded header value: {error}") from None


def routing_name(method: str, params: Mapping[str, Any]) -> str | None:
    """Return what ``Mcp-Name`` says for this request; ``None``: the header is left out."""
    known = _NAME_FIELDS.get(method)
    for field in (known,) if known else ("name", "uri", "taskId"):
        value = params.get(field)
        if isinstance(value, str):
            return value
    return None


def is_token(name: str) -> bool:
    """Say whether *name* can be a header's name (RFC 9110, 5.1)."""
    return _TOKEN.fullmatch(name) is not None


def checked(headers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield a user's own headers; raises `InvalidRequest` for one that can't or mustn't be sent.

    Values are never repeated in the error: they are often secrets.
    """
    for name, value in headers.items():
        if not is_token(name):
            raise InvalidRequest(f"{name!r} can't be the name of a header.")
        if name.lower() in _OWNED or name.lower().startswith("mcp-param-"):
            raise InvalidRequest(f"The header {name} belongs to the protocol and can't be set.")
        if value and not _PLAIN.fullmatch(value):
            raise InvalidRequest(f"The value of the header {name} has characters that a header can't carry.")
        yield name, value
