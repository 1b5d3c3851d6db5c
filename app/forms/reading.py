"""Schema to form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final, cast

from app.forms.choosing import choices
from app.forms.filling import value_problem
from app.forms.flatten import Flat, Flattener
from app.forms.form import Form
from app.forms.formats import NAMES
from app.forms.hints import hint
from app.forms.jsonvalues import encode
from app.forms.judge import Judge
from app.forms.merging import NotFlat, types_of
from app.forms.model import Choice, Field, Kind, SchemaRefused
from app.forms.schemas import Schema, read_schema
from app.forms.secrets import WARNING, asks_for_secret, message_asks_for_secret
from app.text import is_inert, plural

MAX_FIELDS: Final = 500
"""Fields of one form; an object with more is filled in as one JSON text."""

MAX_WARNINGS: Final = 5
_LONG_TEXT: Final = 250
"""A text that may be longer than this many characters gets an editor of several lines."""

_CONDITIONS: Final = frozenset(("not", "if", "then", "else", "anyOf", "oneOf", "allOf"))
_ARRAY_CONDITIONS: Final = _CONDITIONS | {"contains", "prefixItems", "unevaluatedItems"}
_WHOLE_CONDITIONS: Final = _CONDITIONS | {
    "$ref",
    "const",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "enum",
    "maxProperties",
    "minProperties",
    "patternProperties",
    "propertyNames",
}
"""What a whole form may say that its fields don't show."""


def read_form(schema: Mapping[str, Any], message: object = None) -> Form:
    """Return the form for *schema*, a JSON Schema for an object (client/elicitation.mdx, server/tools.mdx).

    *message* is what the server says above it; anything but a text counts as nothing.

    Raises `SchemaRefused` alone: for what is no schema of an object, is too deep or too large, or is in a
    dialect that is not supported. Keywords that are malformed are left out, with a warning.
    """
    safe = read_schema(schema)
    return _Reader(safe, message if isinstance(message, str) else "").form()


class _Reader:
    def __init__(self, schema: Schema, message: str) -> None:
        self.schema = schema
        self.message = message
        self.judge = Judge(schema)
        self.flattener = Flattener(schema)

    def form(self) -> Form:
        root = self.schema.root
        merged = root
        if "$ref" in root or "allOf" in root:
            try:
                merged = self.flattener.merged(root)
            except NotFlat:
                merged = root
        if "type" in merged and "object" not in types_of(merged["type"]):
            raise SchemaRefused("the schema does not describe an object, so no form can be made of it")
        properties: dict[str, Any] = merged.get("properties", {})
        required: list[str] = merged.get("required", [])
        names = [*properties, *dict.fromkeys(name for name in required if name not in properties)]
        reason = self._whole(merged, names)
        warnings = tuple(self.schema.problems.get(id(root), ())[:MAX_WARNINGS])
        if reason is not None:
            fields: tuple[Field, ...] = (self._whole_field(reason),)
        else:
            if len(names) > 1:
                self.message = ""  # nobody knows which of them it is about
            fields = tuple(self.field(name, properties.get(name), name in required) for name in names)
        return Form(
            fields=fields,
            title=merged.get("title"),
            description=merged.get("description"),
            warnings=warnings,
            whole=reason is not None,
            judged=self._root_judged(merged, names),
            judge=self.judge,
        )

    def _whole(self, root: dict[str, Any], names: list[str]) -> str | None:
        """Say why the content must be written as one JSON text; ``None``: it has fields."""
        if len(names) > MAX_FIELDS:
            return f"it has {plural(len(names), 'field')}, too many for a form: write it as one JSON object"
        branches = [*root.get("allOf", ()), *root.get("anyOf", ()), *root.get("oneOf", ())]
        branches += [root[keyword] for keyword in ("then", "else") if keyword in root]
        branches += root.get("dependentSchemas", {}).values()
        if "$ref" in root:
            branches.append(self.schema.target(root))
        if any(isinstance(branch, dict) and self._mentions(branch) - set(names) for branch in branches):
            return "its fields depend on each other: write it as one JSON object"
        if names:
            return None
        if root.get("patternProperties") or root.get("additionalProperties", False) is not False:
            return "it takes names of your own: write it as one JSON object"
        return None

    def _mentions(self, node: dict[str, Any]) -> set[str]:
        try:
            merged = self.flattener.merged(node)
        except NotFlat:
            merged = node
        found = {*merged.get("properties", {}), *merged.get("required", [])}
        for keyword in ("allOf", "anyOf", "oneOf"):
            for child in merged.get(keyword, ()):
                if isinstance(child, dict):
                    found |= {*child.get("properties", {}), *child.get("required", [])}
        return found

    def _whole_field(self, reason: str) -> Field:
        root = self.schema.root
        default: Any = root.get("default", {})
        has_default = isinstance(default, dict) and ("default" in root or not self.judge.problem({}, root))
        # Not masked, since the rest must be seen: what is typed for a secret is taken out where it is kept.
        asked = (WARNING,) if self._secret_inside(root) else ()
        field = Field(
            name="",
            kind="json",
            title="The whole answer",
            description=None,
            required=True,
            nullable=False,
            has_default=has_default,
            default=default,
            default_problem=None,
            choices=(),
            secret=False,
            warnings=(reason, *asked, *self.schema.complaints(root)[:MAX_WARNINGS]),
            hint="JSON, an object",
            multiline=True,
            format=None,
            schema=root,
            node=root,
            judged=True,
        )
        return self._with_default_checked(field)

    def _root_judged(self, root: dict[str, Any], names: list[str]) -> bool:
        if root.keys() & _WHOLE_CONDITIONS:
            return True
        extra = [name for name in names if name not in root.get("properties", {})]
        return bool(extra) and root.get("additionalProperties", True) is not True

    def field(self, name: str, node: Any, required: bool) -> Field:
        """Return the field for one property; *node* is ``None`` for a required name that is not described."""
        undescribed = node is None
        if undescribed:
            node = {}
        try:
            flat: Flat | None = self.flattener.flatten(node)
        except NotFlat:
            flat = None
        kind, items = self._kind(flat)
        keywords: Mapping[str, Any] = node if isinstance(node, dict) else {}
        if flat is not None:
            keywords = flat.keywords
        shown = {**self._target_words(node), **keywords}
        if kind == "json":
            schema: Mapping[str, Any] = node if isinstance(node, dict) else {}
        else:
            schema = {**keywords, "items": items.keywords} if items is not None else keywords
        choices = _choices(kind, items if items is not None else flat)
        has_default, default = _default(kind, shown, choices)
        secret = (
            asks_for_secret(name, shown.get("title"), shown, kind)
            or message_asks_for_secret(self.message, name, kind)
            or (kind == "json" and self._secret_inside(node))
        )
        warnings = ["the server requires it and doesn't describe it"] if undescribed else []
        if node is False:
            warnings.append("the server admits no value for it")
        warnings += self.schema.complaints(node)[:MAX_WARNINGS]
        if secret:
            warnings.append(WARNING)
        if has_default and not _inert_value(default):
            warnings.append("its default holds control characters")
        field = Field(
            name=name,
            kind=kind,
            title=shown.get("title") or name or "(no name)",
            description=shown.get("description"),
            required=required,
            nullable=flat.nullable if flat is not None else self._admits_null(node),
            has_default=has_default,
            default=default,
            default_problem=None,
            choices=choices,
            secret=secret,
            warnings=tuple(dict.fromkeys(warnings)),
            hint=hint(kind, schema, choices),
            multiline=_multiline(kind, shown),
            format=_format(schema, kind),
            schema=schema,
            node=node,
            judged=kind == "json" or _judged(kind, flat, items),
        )
        return self._with_default_checked(field)

    def _secret_inside(self, node: Any) -> bool:
        """Say whether a JSON field has room for a secret under a name of its own."""
        inside = islice(self.schema.reach(node), MAX_FIELDS)
        named = ((name, part) for each in inside for name, part in each.get("properties", {}).items())
        return any(
            asks_for_secret(name, None, part if isinstance(part, dict) else {}, "text")
            for name, part in named
            if not isinstance(part, dict) or part.get("type") in (None, "string")
        )

    def _target_words(self, node: Any) -> Mapping[str, Any]:
        """Return the title and description that stand behind a reference."""
        if not isinstance(node, dict) or "$ref" not in node:
            return {}
        target = self.schema.target(node)
        words = target if isinstance(target, dict) else {}
        return {key: words[key] for key in ("title", "description", "default") if key in words}

    def _admits_null(self, node: Any, level: int = 0) -> bool:
        """Say whether a type list or a union in *node* has null; `value_problem` has the last word."""
        if not isinstance(node, dict) or level > 8:
            return False
        if "type" in node:
            return "null" in types_of(node["type"])
        if "$ref" in node and self._admits_null(self.schema.target(node), level + 1):
            return True
        branches = [*node.get("anyOf", ()), *node.get("oneOf", ()), *node.get("allOf", ())]
        return any(self._admits_null(branch, level + 1) for branch in branches[:50])

    def _with_default_checked(self, field: Field) -> Field:
        if not field.has_default:
            return field
        problem = value_problem(field, field.default, self.judge)
        return field if problem is None else replace(field, default_problem=problem)

    def _kind(self, flat: Flat | None) -> tuple[Kind, Flat | None]:
        if flat is None:
            return "json", None
        types = flat.types
        if flat.options is not None:
            if any(isinstance(value, list | dict) for value, _ in flat.options):
                return "json", None
            return ("constant" if "const" in flat.keywords else "choice"), None
        if types == frozenset():
            return "constant", None
        if types is None or len(types - {"integer"} if "number" in types else types) != 1:
            return "json", None
        (name,) = types - {"integer"} if "number" in types else types
        if name in ("integer", "number", "boolean"):
            return cast(Kind, name), None
        if name == "string":
            return "text", None
        return self._list_kind(flat) if name == "array" else ("json", None)

    def _list_kind(self, flat: Flat) -> tuple[Kind, Flat | None]:
        items = flat.keywords.get("items")
        if not isinstance(items, dict) or "prefixItems" in flat.keywords:
            return "json", None
        try:
            each = self.flattener.flatten(items)
        except NotFlat:
            return "json", None
        if each.options is not None:
            scalar = all(not isinstance(value, list | dict) for value, _ in each.options)
            return ("choices", each) if scalar and not each.nullable else ("json", None)
        if each.types == frozenset({"string"}) and not each.nullable:
            return "list", each
        return "json", None


def _choices(kind: Kind, flat: Flat | None) -> tuple[Choice, ...]:
    if flat is None or flat.options is None or kind not in ("choice", "choices", "constant"):
        return ()
    if kind == "constant":
        # The title beside a constant is the field's, not the value's.
        return choices([(value, None) for value, _ in flat.options])
    return choices(flat.options)


def _default(kind: Kind, words: Mapping[str, Any], choices: tuple[Choice, ...]) -> tuple[bool, Any]:
    """Return whether there is a default, and the default; a constant is its own."""
    for keyword in ("default", "const"):
        if keyword in words:
            return True, words[keyword]
    return kind == "constant", choices[0].value if choices else None


def _judged(kind: Kind, flat: Flat | None, items: Flat | None) -> bool:
    if flat is None:
        return True
    conditions = _ARRAY_CONDITIONS if kind in ("list", "choices") else _CONDITIONS
    if items is not None and (not items.exact or items.keywords.keys() & _CONDITIONS):
        return True
    return not flat.exact or bool(flat.keywords.keys() & conditions)


def _multiline(kind: Kind, words: Mapping[str, Any]) -> bool:
    if kind == "json":
        return True
    if kind != "text" or "pattern" in words or words.get("format") in NAMES:
        return False
    default = words.get("default")
    return (
        words.get("maxLength", 0) > _LONG_TEXT
        or words.get("minLength", 0) > _LONG_TEXT
        or (isinstance(default, str) and "\n" in default)
        or words.get("format") in ("multiline", "textarea", "markdown")
        or str(words.get("contentMediaType", "")).startswith("text/")
    )


def _format(schema: Mapping[str, Any], kind: Kind) -> str | None:
    name = (schema.get("items", {}) if kind == "list" else schema).get("format")
    return name if isinstance(name, str) else None


def _inert_value(value: Any) -> bool:
    if isinstance(value, str):
        return is_inert(value)
    if isinstance(value, list):
        return all(_inert_value(item) for item in value)
    if isinstance(value, dict):
        return is_inert(encode(value)) and all(_inert_value(item) for item in value.values())
    return True
