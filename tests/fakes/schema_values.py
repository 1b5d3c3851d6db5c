"""Values made from a JSON Schema, for as much of it as the protocol's published schemas use.

hypothesis-jsonschema does not follow references that lead back to themselves, and those schemas have some.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

_TEXTS = {
    "uri": st.sampled_from(["https://example.com/a?b=c", "file:///a/b", "x:y"]),
    "uri-template": st.sampled_from(["file:///{path}", "x:{y}"]),
    "byte": st.sampled_from(["", "YQ==", "AAECAw=="]),
}
_NUMBERS = st.integers(-(2**40), 2**40)
_PLAIN = st.none() | st.booleans() | _NUMBERS | st.text(max_size=8)
_ANY = st.recursive(
    _PLAIN,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
DEPTH = 7
"""References followed one inside the other; below, what is optional is left out and lists are empty."""


@st.composite
def values_of(draw: st.DrawFn, schema: Any, definitions: dict[str, Any], depth: int = DEPTH) -> Any:
    """Draw a value that *schema* allows; *definitions* are what ``#/$defs/…`` refers to."""
    if not isinstance(schema, dict) or not schema:
        return draw(_ANY if depth > 0 else _PLAIN)
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        return draw(values_of(definitions[name], definitions, depth - 1))
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if "allOf" in schema:
        parts = [draw(values_of(part, definitions, depth)) for part in schema["allOf"]]
        rest = {key: value for key, value in schema.items() if key != "allOf"}
        own = draw(values_of(rest, definitions, depth)) if "properties" in rest else {}
        return {key: value for part in [*parts, own] for key, value in part.items()}
    if "anyOf" in schema:
        branches = schema["anyOf"] if depth > 0 else schema["anyOf"][:1]
        return draw(values_of(draw(st.sampled_from(branches)), definitions, depth))
    kinds = schema.get("type", "object" if "properties" in schema else "any")
    kind = draw(st.sampled_from(kinds)) if isinstance(kinds, list) else kinds
    return draw(_of_kind(kind, schema, definitions, depth))


def _of_kind(kind: str, schema: Any, definitions: dict[str, Any], depth: int) -> st.SearchStrategy[Any]:
    low, high = schema.get("minimum"), schema.get("maximum")
    simple: dict[str, st.SearchStrategy[Any]] = {
        "null": st.none(),
        "boolean": st.booleans(),
        "string": _TEXTS.get(schema.get("format", ""), st.text(max_size=12)),
        "integer": st.integers(low, high) if low is not None or high is not None else _NUMBERS,
        "number": st.floats(low, high, allow_nan=False, allow_infinity=False, width=32),
    }
    if kind == "array":
        if depth <= 0:
            return st.just([])
        return st.lists(values_of(schema.get("items", {}), definitions, depth - 1), max_size=3)
    if kind == "object":
        return _object(schema, definitions, depth)
    return simple.get(kind, _PLAIN)


@st.composite
def _object(draw: st.DrawFn, schema: Any, definitions: dict[str, Any], depth: int) -> Any:
    required = schema.get("required", [])
    found = {}
    for name, inner in schema.get("properties", {}).items():
        if name in required or (depth > 0 and draw(st.booleans())):
            found[name] = draw(values_of(inner, definitions, depth - 1))
    more = schema.get("additionalProperties", not schema.get("properties"))
    if more and depth > 0:
        names = st.text(max_size=6).filter(lambda name: name not in schema.get("properties", {}))
        inner = values_of(more if isinstance(more, dict) else {}, definitions, depth - 1)
        found |= draw(st.dictionaries(names, inner, max_size=2))
    return found
