"""Keywords that jsonschema checks inexactly, or in unbounded time, done exactly and in linear time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from jsonschema.exceptions import ValidationError

from app.forms.filling import is_multiple
from app.forms.formats import format_problem
from app.forms.jsonvalues import identity, number_problem
from app.forms.judge import search, spend

Rule = Callable[[Any, Any, Any, Any], Iterator[ValidationError]]


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not search(pattern, instance, otherwise=True):
        yield ValidationError("pattern")


def _format(validator: Any, name: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and format_problem(name, instance) is not None:
        yield ValidationError("format")


def _multiple_of(validator: Any, step: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, bool) or not isinstance(instance, int | float | Decimal):
        return
    if number_problem(instance) is not None or not is_multiple(instance, step):
        yield ValidationError("multipleOf")


def _enum(validator: Any, values: list[Any], instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not _contains(values, instance):
        yield ValidationError("enum")


def _contains(values: list[Any], instance: Any) -> bool:
    wanted = identity(instance)
    spend(len(values) // 4)
    return any(identity(value) == wanted for value in values)


def _const(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if identity(value) != identity(instance):
        yield ValidationError("const")


def _unique_items(validator: Any, unique: bool, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if unique and isinstance(instance, list) and len({identity(item) for item in instance}) < len(instance):
        yield ValidationError("uniqueItems")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, Mapping):
        return
    for pattern, subschema in patterns.items():
        spend(len(instance) // 8)
        for name, value in instance.items():
            if search(pattern, name, otherwise=False):
                yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, allowed: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(instance, Mapping):
        return
    patterns = schema.get("patternProperties", {})
    for name, value in instance.items():
        if name in schema.get("properties", {}) or any(
            search(pattern, name, otherwise=True) for pattern in patterns
        ):
            continue
        if allowed is False:
            yield ValidationError("additionalProperties")
            return
        yield from validator.descend(value, allowed, path=name)


RULES: Final[Mapping[str, Rule]] = {
    "pattern": _pattern,
    "format": _format,
    "multipleOf": _multiple_of,
    "enum": _enum,
    "const": _const,
    "uniqueItems": _unique_items,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
}
