"""A server's schema made safe to work with: bounded, its malformed keywords left out, only local references.

JSON Schema 2020-12 is the default dialect, as the specification says (basic/index.mdx, "JSON Schema usage");
2019-09 and draft-07 are understood where ``$schema`` names them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal, TypeGuard
from urllib.parse import unquote

from app.forms.jsonvalues import measure, normal, number_problem
from app.forms.model import SchemaRefused
from app.forms.patterns import UNCHECKED, compile_pattern
from app.text import inert_line

Dialect = Literal["2020-12", "2019-09", "draft-07"]

MAX_SUBSCHEMAS: Final = 20_000
MAX_HOPS: Final = 32
"""References followed one after the other."""

_DIALECTS: Final[dict[str, Dialect]] = {
    "json-schema.org/draft/2020-12/schema": "2020-12",
    "json-schema.org/draft/2019-09/schema": "2019-09",
    "json-schema.org/draft-07/schema": "draft-07",
}
_TYPES: Final = ("null", "boolean", "object", "array", "number", "integer", "string")
_ONE: Final = (
    "not",
    "if",
    "then",
    "else",
    "items",
    "additionalProperties",
    "additionalItems",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
)
_MANY: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_IN_PLACE: Final = frozenset(("$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"))
_UNFOLLOWED: Final = ("$dynamicRef", "$recursiveRef")
_DROPPED: Final = ("$schema", "$id", "$vocabulary", "$dynamicAnchor", "$recursiveAnchor", "$comment", "id")
"""Left out in silence: they say where a schema is at home; here every reference is followed from the root."""


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return False
    return number_problem(value) is None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_names(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_type(value: Any) -> bool:
    names = value if isinstance(value, list) else [value]
    return bool(names) and all(isinstance(name, str) and name in _TYPES for name in names)


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict | bool)


_CHECKS: Final[dict[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    "multipleOf": lambda value: _is_number(value) and value > 0,
    **dict.fromkeys(
        (
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "minProperties",
            "maxProperties",
            "minContains",
            "maxContains",
        ),
        _is_count,
    ),
    **dict.fromkeys(("uniqueItems", "readOnly", "writeOnly", "deprecated"), _is_flag),
    **dict.fromkeys(("title", "description", "format", "pattern", "$ref", "$anchor"), _is_text),
    "type": _is_type,
    "enum": lambda value: isinstance(value, list),
    "enumNames": _is_names,
    "required": _is_names,
    "dependentRequired": lambda value: isinstance(value, dict) and all(map(_is_names, value.values())),
    "dependencies": lambda value: (
        isinstance(value, dict) and all(_is_names(item) or _is_schema(item) for item in value.values())
    ),
    **dict.fromkeys(_ONE, _is_schema),
    **dict.fromkeys(_MANY, lambda value: isinstance(value, list) and bool(value)),
    **dict.fromkeys(_NAMED, lambda value: isinstance(value, dict)),
}


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema with which nothing can go wrong any more."""

    root: dict[str, Any]
    dialect: Dialect
    anchors: Mapping[str, dict[str, Any]]
    problems: Mapping[int, list[str]]
    """What was left out, by the ``id()`` of the subschema."""

    def target(self, node: Mapping[str, Any]) -> Any:
        """Return what the ``$ref`` of *node* points to; every reference left in a `Schema` has a target."""
        return _target(self.root, self.anchors, node["$ref"])

    def reach(self, node: Any) -> Iterator[dict[str, Any]]:
        """Yield *node* and every subschema that can be reached from it, references included, each once."""
        seen: set[int] = set()
        pending = [node]
        while pending:
            item = pending.pop()
            if not isinstance(item, dict) or id(item) in seen:
                continue
            seen.add(id(item))
            yield item
            pending.extend(child for _, _, child in _children(item, definitions=False))
            if "$ref" in item:
                pending.append(self.target(item))

    def complaints(self, node: Any) -> list[str]:
        """Return what was left out of *node* and of all that it reaches."""
        if not self.problems:
            return []
        found: list[str] = []
        for item in self.reach(node):
            found += (problem for problem in self.problems.get(id(item), ()) if problem not in found)
        return found


def read_schema(document: Mapping[str, Any]) -> Schema:
    """Return *document* made safe.

    Raises `SchemaRefused` for what is no schema, is too deep or too large, or is in a dialect not known here.
    """
    if not isinstance(document, Mapping):
        raise SchemaRefused("the schema is not a JSON object")
    problem = measure(document)
    if problem is not None:
        raise SchemaRefused(f"the schema can't be used: {problem}")
    dialect = _dialect(document.get("$schema"))
    try:
        root = normal(document)
    except TypeError as error:
        raise SchemaRefused(f"the schema is not JSON: {error}") from None
    return _Cleaner(root, dialect).run()


def _dialect(named: Any) -> Dialect:
    if not isinstance(named, str) or not named.strip():
        return "2020-12"
    address = named.strip().removesuffix("#").removeprefix("https://").removeprefix("http://")
    try:
        return _DIALECTS[address]
    except KeyError:
        raise SchemaRefused(
            f"the schema is written in a dialect that is not supported here ({inert_line(named, 100)}); "
            "2020-12, 2019-09 and draft-07 are"
        ) from None


class _Cleaner:
    """Walks a copy of the schema once, and takes out what could not be relied on."""

    def __init__(self, root: dict[str, Any], dialect: Dialect) -> None:
        self.root = root
        self.dialect = dialect
        self.base = root.get("$id")
        self.problems: dict[int, list[str]] = {}
        self.nodes: dict[int, dict[str, Any]] = {}
        self.anchors: dict[str, dict[str, Any]] = {}

    def run(self) -> Schema:
        pending: list[Any] = [self.root]
        while pending:
            node = pending.pop()
            if not isinstance(node, dict) or id(node) in self.nodes:
                continue
            self.nodes[id(node)] = node
            if len(self.nodes) > MAX_SUBSCHEMAS:
                raise SchemaRefused(f"the schema holds more than {MAX_SUBSCHEMAS:,} subschemas")
            self._clean(node)
            pending.extend(child for _, _, child in _children(node, definitions=True))
            if isinstance(ref := node.get("$ref"), str) and ref.startswith("#"):
                # A reference may lead where no keyword does ("#/components/…").
                pending.append(_target(self.root, {}, ref))
        for node in self.nodes.values():
            self._check_reference(node)
        return Schema(self.root, self.dialect, self.anchors, self.problems)

    def _say(self, node: dict[str, Any], text: str) -> None:
        self.problems.setdefault(id(node), []).append(text)

    def _clean(self, node: dict[str, Any]) -> None:
        for keyword in _DROPPED:
            node.pop(keyword, None)
        for keyword in _UNFOLLOWED:
            if node.pop(keyword, None) is not None:
                self._say(node, f"{keyword} is not checked here; the server decides")
        for keyword in [keyword for keyword in node if keyword in _CHECKS]:
            self._check(node, keyword)
        self._close(node)
        for keyword in _NAMED:
            for name, child in node.get(keyword, {}).items():
                if not _is_schema(child):
                    replacement: dict[str, Any] = {}
                    node[keyword][name] = replacement
                    self._say(replacement, "the server describes it with something that is no schema")
        for keyword in _MANY:
            for index, child in enumerate(node.get(keyword, ())):
                if not _is_schema(child):
                    replacement = {}
                    node[keyword][index] = replacement
                    self._say(replacement, "a part of its description is no schema")
        if isinstance(anchor := node.pop("$anchor", None), str):
            self.anchors.setdefault(anchor, node)
        pattern = node.get("pattern")
        for text in [*([pattern] if pattern is not None else []), *node.get("patternProperties", ())]:
            if compile_pattern(text) is None:
                self._say(node, UNCHECKED)

    def _close(self, node: dict[str, Any]) -> None:
        """Replace ``unevaluated…`` by the plain keyword that means the same, where one does.

        Where schemas beside it count, too, telling what was evaluated takes unbounded work.
        """
        for keyword, plain in (
            ("unevaluatedProperties", "additionalProperties"),
            ("unevaluatedItems", "items"),
        ):
            if keyword not in node:
                continue
            value = node.pop(keyword)
            if self.dialect == "draft-07" or value is True:
                continue
            if node.keys() & _IN_PLACE or (plain == "items" and "contains" in node):
                self._say(node, f"{keyword} is not checked here; the server decides")
                continue
            if isinstance(node.get(plain), list):
                plain = "additionalItems"
            node.setdefault(plain, value)

    def _check(self, node: dict[str, Any], keyword: str) -> None:
        value = node[keyword]
        if keyword == "items" and isinstance(value, list) and self.dialect != "2020-12":
            node[keyword] = [item if _is_schema(item) else {} for item in value]
            return
        if _CHECKS[keyword](value):
            return
        if keyword == "required" and isinstance(value, list):
            node[keyword] = [name for name in value if isinstance(name, str)]
        else:
            del node[keyword]
        self._say(node, f"a malformed “{keyword}” in its description is ignored")

    def _check_reference(self, node: dict[str, Any]) -> None:
        ref = node.get("$ref")
        if ref is None:
            return
        if (
            not ref.startswith("#")
            and isinstance(self.base, str)
            and ref.startswith(self.base.rstrip("#") + "#")
        ):
            ref = node["$ref"] = ref[len(self.base.rstrip("#")) :]
        if not ref.startswith("#"):
            self._say(node, f"it is described elsewhere ({inert_line(ref, 80)}), which is not followed")
        elif not _is_schema(target := _target(self.root, self.anchors, ref)):
            self._say(node, f"its description is missing ({inert_line(ref, 80)})")
        elif isinstance(target, dict) and id(target) not in self.nodes:
            # It points into the middle of a value (an example, say) that nobody checked.
            self._say(node, f"its description can't be used ({inert_line(ref, 80)})")
        else:
            return
        del node["$ref"]


def _children(node: dict[str, Any], *, definitions: bool) -> Iterator[tuple[str, str | int | None, Any]]:
    """Yield (keyword, name or index, subschema)."""
    for keyword in _ONE:
        if keyword in node:
            value = node[keyword]
            if isinstance(value, list):
                yield from ((keyword, index, child) for index, child in enumerate(value))
            else:
                yield keyword, None, value
    for keyword in _MANY:
        yield from ((keyword, index, child) for index, child in enumerate(node.get(keyword, ())))
    for keyword in (*_NAMED, "dependencies"):
        if keyword in ("$defs", "definitions") and not definitions:
            continue
        for name, child in node.get(keyword, {}).items():
            if _is_schema(child):
                yield keyword, name, child


def _target(root: dict[str, Any], anchors: Mapping[str, dict[str, Any]], ref: str) -> Any:
    """Return what a local reference points to: a JSON pointer (RFC 6901) or an anchor; ``None``: nothing."""
    pointer = unquote(ref[1:])
    if not pointer:
        return root
    if not pointer.startswith("/"):
        return anchors.get(pointer)
    node: Any = root
    for part in pointer[1:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict):
            node = node.get(name)
        elif isinstance(node, list) and name.isascii() and name.isdigit() and len(name) < 7:
            node = node[int(name)] if int(name) < len(node) else None
        else:
            return None
    return node
