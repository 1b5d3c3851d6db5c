"""Two schemas that must both hold, told as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from app.forms.jsonvalues import identity


class NotFlat(Exception):
    """Schemas that can't be told as one flat schema: the field takes JSON."""


ANNOTATIONS: Final = frozenset(
    (
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "enumNames",
        "$defs",
        "definitions",
        "contentMediaType",
        "contentEncoding",
        "example",
    )
)
_ADJACENT: Final = frozenset(
    (
        "additionalProperties",
        "properties",
        "patternProperties",
        "unevaluatedProperties",
        "if",
        "then",
        "else",
        "items",
        "prefixItems",
        "additionalItems",
        "unevaluatedItems",
        "contains",
        "minContains",
        "maxContains",
    )
)
"""Keywords that look at their neighbours: they can't be moved from one schema into another."""


def conjunction(inner: Mapping[str, Any], outer: Mapping[str, Any]) -> dict[str, Any]:
    """Return one schema that says what both say; for annotations *outer* wins.

    Raises `NotFlat` where no single schema without ``allOf`` can.
    """
    if _ADJACENT & inner.keys() and _ADJACENT & outer.keys():
        raise NotFlat
    merged = dict(inner)
    for keyword, value in outer.items():
        if keyword not in merged or keyword in ANNOTATIONS:
            merged[keyword] = value
        elif identity(merged[keyword]) != identity(value):
            merged[keyword] = _both(keyword, merged[keyword], value)
    return merged


def _both(keyword: str, one: Any, other: Any) -> Any:
    if keyword in ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"):
        return max(one, other)
    if keyword in ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"):
        return min(one, other)
    if keyword == "uniqueItems":
        return one or other
    if keyword == "required":
        return [*one, *(name for name in other if name not in one)]
    if keyword == "enum":
        allowed = {identity(value) for value in other}
        return [value for value in one if identity(value) in allowed]
    if keyword == "type" and (both := types_of(one) & types_of(other)):
        return sorted(both)
    raise NotFlat


def types_of(value: Any) -> frozenset[str]:
    """Return a ``type`` keyword as a set; ``number`` includes ``integer``."""
    names = frozenset(value if isinstance(value, list) else [value])
    return names | {"integer"} if "number" in names else names
