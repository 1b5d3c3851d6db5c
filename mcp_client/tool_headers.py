"""Tool parameters that are mirrored into headers. Page: basic/transports/streamable-http (Custom Headers)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from mcp_client.errors import InvalidRequest
from mcp_client.headers import encode_value, is_token
from mcp_client.jsonrpc import JSONValue, RawJSON, decode, quoted

_ANNOTATION: Final = "x-mcp-header"
_SAFE: Final = 2**53 - 1
_PRIMITIVE: Final = ("string", "integer", "boolean")
_DEPTH: Final = 128


@dataclass(frozen=True, slots=True)
class MirroredParameter:
    """One parameter that also travels as a header."""

    path: tuple[str, ...]
    """The property names from the arguments' root to the value."""
    name: str
    """The header's name, ``Mcp-Param-`` included."""


def mirrored_parameters(schema: Mapping[str, Any]) -> tuple[MirroredParameter, ...]:
    """Return the annotated parameters of a tool's input schema.

    Raises `ValueError`, saying why, for an annotation that breaks the page's constraints: such a tool must be
    left out of the list.
    """
    found = list(_reachable(schema, ()))
    if _count(schema) > len(found):
        raise ValueError(f"{_ANNOTATION} stands where no parameter can be reached by its path")
    seen: set[str] = set()
    for parameter in found:
        lowered = parameter.name.lower()
        if lowered in seen:
            raise ValueError(f"{_ANNOTATION} names {quoted(parameter.name)} twice")
        seen.add(lowered)
    return tuple(found)


def _reachable(schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[MirroredParameter]:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or len(path) > _DEPTH:
        return
    for key, value in properties.items():
        if not isinstance(value, dict):
            continue
        if _ANNOTATION in value:
            name, kind = value[_ANNOTATION], value.get("type")
            if not isinstance(name, str) or not is_token(name):
                raise ValueError(f"{_ANNOTATION} of {quoted(key)} can't be part of a header's name")
            if kind not in _PRIMITIVE:
                raise ValueError(
                    f"{_ANNOTATION} of {quoted(key)} is not on a string, an integer or a boolean"
                )
            yield MirroredParameter((*path, key), f"Mcp-Param-{name}")
        yield from _reachable(value, (*path, key))


def _count(schema: Any) -> int:
    """Count the annotations anywhere in *schema*; a property that happens to bear that name is none."""
    total = 0
    waiting: list[tuple[Any, bool]] = [(schema, False)]
    while waiting:
        item, names_properties = waiting.pop()
        if isinstance(item, list):
            waiting.extend((entry, False) for entry in item)
        elif isinstance(item, dict):
            total += _ANNOTATION in item and not names_properties
            for key, value in item.items():
                if key in ("const", "default", "enum", "examples") and not names_properties:
                    continue  # values, not schemas
                named = key in ("properties", "patternProperties", "$defs", "definitions")
                waiting.append((value, named and not names_properties))
    return total


def mirrored_headers(
    parameters: tuple[MirroredParameter, ...], arguments: JSONValue
) -> tuple[tuple[str, str], ...]:
    """Return the headers for a call with *arguments*; a value that is absent or ``null`` has none.

    Raises `InvalidRequest` for an integer beyond what the page allows.
    """
    if not parameters:
        return ()
    if isinstance(arguments, RawJSON):
        arguments = decode(arguments.encoded_json.encode("utf-8"), depth=_DEPTH)
    found = []
    for parameter in parameters:
        value = arguments
        for step in parameter.path:
            value = value.get(step) if isinstance(value, Mapping) else None
        text = _text(value, parameter.name)
        if text is not None:
            found.append((parameter.name, encode_value(text)))
    return tuple(found)


def _text(value: JSONValue, name: str) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal) and abs(value) <= _SAFE and value == value.to_integral_value():
        value = int(value)
    if isinstance(value, int):
        if abs(value) > _SAFE:
            raise InvalidRequest(f"The value for the header {name} is too large for one.")
        return str(value)
    return None  # not what the schema promises: the server judges the arguments themselves
