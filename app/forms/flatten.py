"""A subschema told as one flat schema.

References are followed, ``allOf`` is merged, unions with null and unions of constants are resolved. What
can't be told so raises `NotFlat`; then a person fills the field in as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from app.forms.jsonvalues import identity, type_of
from app.forms.merging import NotFlat, conjunction, types_of
from app.forms.schemas import MAX_HOPS, Schema

MAX_STEPS: Final = 50_000
"""Subschemas visited for one form: references can make a short schema stand for an endless one."""

MAX_LEVELS: Final = 32

Option = tuple[Any, str | None]
"""A value that may be chosen, with its title."""


@dataclass(frozen=True, slots=True)
class Flat:
    """One schema without references and unions."""

    keywords: Mapping[str, Any]
    nullable: bool
    """Null is admitted by a type list, a union or an enumeration."""
    options: tuple[Option, ...] | None = None
    """The values that may be chosen, without null; ``None``: any value."""
    exact: bool = True
    """False where the flat schema admits more than the original: the original must be asked, too."""

    @property
    def types(self) -> frozenset[str] | None:
        """The types that are admitted, null left out; ``None``: any."""
        named = self.keywords.get("type")
        return None if named is None else types_of(named) - {"null"}


class Flattener:
    """Flattens the subschemas of one schema, with a bound on the work for all of them together."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._steps = 0

    def flatten(self, node: Any, level: int = 0) -> Flat:
        """Return *node* as one flat schema; raises `NotFlat`."""
        self._steps += 1
        if self._steps > MAX_STEPS or level > MAX_LEVELS or node is False:
            raise NotFlat
        keywords = self._resolved({} if node is True else node, level)
        union = [keyword for keyword in ("anyOf", "oneOf") if keyword in keywords]
        if len(union) > 1:
            raise NotFlat
        if union:
            return self._union(keywords, union[0], level)
        return _plain(keywords)

    def merged(self, node: dict[str, Any], level: int = 0) -> dict[str, Any]:
        """Return *node* with references and ``allOf`` merged, unions left as they are; raises `NotFlat`."""
        return self._resolved(node, level)

    def _resolved(self, node: dict[str, Any], level: int) -> dict[str, Any]:
        self._steps += 1
        if self._steps > MAX_STEPS or level > MAX_LEVELS + MAX_HOPS:
            raise NotFlat
        self._steps += sum(len(value) for value in node.values() if isinstance(value, list | dict)) // 8
        keywords = dict(node)
        if "$ref" in keywords:
            target = self._schema.target(keywords)
            del keywords["$ref"]
            if self._schema.dialect == "draft-07":
                # There, what stands beside a reference has no force; its words are still worth showing.
                keywords = {
                    key: keywords[key] for key in ("title", "description", "default") if key in keywords
                }
            if target is False:
                raise NotFlat
            if isinstance(target, dict):
                keywords = conjunction(self._resolved(target, level + 1), keywords)
        parts = keywords.pop("allOf", ())
        for part in parts:
            if part is False:
                raise NotFlat
            if part is not True:
                keywords = conjunction(self._resolved(part, level + 1), keywords)
        return keywords

    def _union(self, keywords: dict[str, Any], keyword: str, level: int) -> Flat:
        rest = {key: value for key, value in keywords.items() if key != keyword}
        branches = [self.flatten(branch, level + 1) for branch in keywords[keyword]]
        null_branches = sum(branch.nullable for branch in branches)
        branches = [branch for branch in branches if branch.types != frozenset()]
        outer = _plain(rest)
        # Null passes when the union has it (in oneOf: exactly once) and nothing beside the union forbids it.
        null = null_branches == 1 if keyword == "oneOf" else null_branches > 0
        null = null and (outer.nullable or not rest.keys() & {"type", "enum", "const"})
        if not branches:
            return Flat({**rest, "type": "null"}, null, (), exact=False)
        if len(branches) == 1:
            (branch,) = branches
            inner = dict(branch.keywords)
            if "const" in inner:
                # A union of one constant is a choice (its title is the choice's), not a constant.
                inner.pop("const")
                inner.pop("title", None)
            merged = conjunction(inner, rest)
            flat = _plain(merged) if branch.options is None else _chosen(merged, _within(branch, outer))
            return replace(flat, nullable=null, exact=flat.exact and branch.exact and outer.exact)
        if any(branch.options is None for branch in branches):
            raise NotFlat
        options = [option for branch in branches for option in _within(branch, outer)]
        unique = {identity(value) for value, _ in options}
        exact = all(branch.exact for branch in branches) and len(unique) == len(options)
        flat = _chosen(rest, tuple(options))
        return replace(flat, nullable=null, exact=exact and flat.exact)


def _within(branch: Flat, outer: Flat) -> tuple[Option, ...]:
    """Return the options of a union's branch that what stands beside the union admits."""
    options = branch.options or ()
    if outer.options is None:
        return options
    allowed = {identity(value) for value, _ in outer.options}
    return tuple(option for option in options if identity(option[0]) in allowed)


def _plain(keywords: dict[str, Any]) -> Flat:
    """Return keywords without references and unions as a flat schema, ``enum`` and ``const`` as options."""
    named = keywords.get("type")
    null = "null" in types_of(named) if named is not None else "enum" in keywords or "const" in keywords
    if "enum" in keywords:
        null = null and None in keywords["enum"]
    if "const" in keywords:
        null = null and keywords["const"] is None
    options: list[Option] | None = None
    if "enum" in keywords:
        names = keywords.get("enumNames", ())
        values = keywords["enum"]
        titles = names if len(names) == len(values) else [None] * len(values)
        options = list(zip(values, titles, strict=True))
    if "const" in keywords:
        const = keywords["const"]
        if options is None:
            options = [(const, keywords.get("title"))]
        else:
            options = [option for option in options if identity(option[0]) == identity(const)]
    if options is None:
        return Flat(keywords, null)
    return replace(_chosen(keywords, tuple(options)), nullable=null)


def _chosen(keywords: dict[str, Any], options: tuple[Option, ...]) -> Flat:
    """Return a choice among *options*, each value once, those left out that the type forbids."""
    types = types_of(keywords["type"]) if "type" in keywords else None
    kept: dict[Any, Option] = {}
    for value, title in options:
        if value is not None and (types is None or type_of(value) in types):
            kept.setdefault(identity(value), (value, title))
    return Flat(
        keywords, False, tuple(kept.values()), exact=all(_scalar(value) for value, _ in kept.values())
    )


def _scalar(value: Any) -> bool:
    return not isinstance(value, list | dict)
