"""The full JSON Schema validator, for what the flat fields do not cover: nested objects and compositions.

jsonschema does the work, with what is dangerous or inexact replaced: patterns run in RE2, ``multipleOf`` and
equality are exact, nothing is fetched, and one validation may take only so many steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from app.forms.formats import format_problem
from app.forms.jsonvalues import encode, number_problem
from app.forms.patterns import found, work
from app.forms.schemas import Dialect, Schema
from app.text import inert_line

MAX_STEPS: Final = 50_000
"""Keywords applied (and values compared) in one validation: about a second."""

MAX_ERRORS: Final = 20
"""Errors looked at in one validation."""

_Problem = tuple[list[str | int], str, list[str], list[str]]
"""Where inside, what is wrong, the names whose absence is wrong, and those whose presence is."""

_UNSURE: Final = frozenset(("not", "if", "then", "else", "oneOf", "contains", "minContains", "maxContains"))
"""Keywords that may fail because something inside them passed."""


@dataclass(slots=True)
class _Account:
    """One validation that is going on."""

    steps: int = MAX_STEPS
    unsure: bool = False
    """A pattern was not searched, and taken to match."""


_account: ContextVar[_Account] = ContextVar("_account")

_TYPE_WORDS: Final = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


class _TooMuch(Exception):
    """The validation took more steps than it may."""


class Judge:
    """Validates values against one schema or a part of it."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._validator: Any = None

    def problem(self, value: Any, node: Any = True) -> str | None:
        """Say in what way *value* breaks *node*, a subschema of the schema; the message says where inside."""
        return next((_located(path, message) for path, message, *_ in self._problems(value, node)), None)

    def whole_problems(self, content: Mapping[str, Any]) -> dict[str, str]:
        """Return what the whole schema complains about, by field (``""``: none in particular)."""
        found: dict[str, str] = {}
        for path, message, missing, strangers in self._problems(content, self._schema.root):
            if path and isinstance(path[0], str):
                found.setdefault(path[0], _located(path[1:], message))
            elif missing:
                for name in missing:
                    found.setdefault(name, "required here")
            elif strangers and not path:
                for name in strangers:
                    found.setdefault(name, "there is no such field")
            else:
                found.setdefault("", message)
        return found

    def _problems(self, value: Any, node: Any) -> list[_Problem]:
        problem = _number_inside(value)
        if problem is not None:
            return [([], problem, [], [])]
        if node is True or node == {}:
            return []
        if self._validator is None:
            self._validator = _validator_class(self._schema.dialect)(
                self._schema.root, registry=_registry(), format_checker=None
            )
        account = _Account()
        token = _account.set(account)
        try:
            errors = list(islice(self._validator.descend(value, node), MAX_ERRORS))
        except (_TooMuch, RecursionError):
            return [([], "too complex to be checked here", [], [])]
        finally:
            _account.reset(token)
        if account.unsure:
            errors = [error for error in errors if not _UNSURE & set(error.absolute_schema_path)]
        # What a union says is the least telling.
        errors.sort(key=lambda error: error.validator in ("anyOf", "oneOf"))
        return [
            (list(error.absolute_path), _wording(error), _missing(error), _strangers(error))
            for error in errors
        ]


def _number_inside(value: Any) -> str | None:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending.extend(item)
        elif isinstance(item, Mapping):
            pending.extend(item.values())
        elif isinstance(item, float | Decimal) and (problem := number_problem(item)) is not None:
            return problem
    return None


def _located(path: list[str | int], message: str) -> str:
    return f"{_where(path)}: {message}" if path else message


def _where(path: list[str | int]) -> str:
    text = ""
    for part in path[:20]:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{inert_line(part, 40)}"
    return inert_line(text, 200)


def _missing(error: Any) -> list[str]:
    """Return the names in the content whose absence is the error."""
    if error.absolute_path or not isinstance(error.instance, Mapping):
        return []
    needed: list[str] = []
    if error.validator == "required":
        needed = error.validator_value
    elif error.validator in ("dependentRequired", "dependencies"):
        for name, names in error.validator_value.items():
            if name in error.instance and isinstance(names, list):
                needed += (str(other) for other in names)
    return [name for name in needed if name not in error.instance]


def _strangers(error: Any) -> list[str]:
    """Return the names in the content that its schema does not admit, where that is the error."""
    if error.validator != "additionalProperties" or error.validator_value is not False:
        return []
    if error.absolute_path or not isinstance(error.instance, Mapping):
        return []
    known, patterns = error.schema.get("properties", {}), error.schema.get("patternProperties", {})
    return [
        name
        for name in error.instance
        if name not in known and not any(found(pattern, name) for pattern in patterns)
    ][:MAX_ERRORS]


def _wording(error: Any) -> str:
    keyword, expected, value = error.validator, error.validator_value, error.instance
    if keyword is None:
        return "the server admits no value for it"
    if keyword == "type":
        names = expected if isinstance(expected, list) else [expected]
        return f"{' or '.join(_TYPE_WORDS.get(name, 'another type') for name in names)} is expected"
    if keyword == "enum":
        shown = ", ".join(inert_line(encode(item), 40) for item in expected[:8])
        return f"must be one of {shown}{' …' if len(expected) > 8 else ''}"
    if keyword == "const":
        return f"must be {inert_line(encode(expected), 80)}"
    if keyword == "required":
        missing = next((name for name in expected if name not in value), "")
        return f"{inert_line(missing, 60)} is missing"
    if keyword == "pattern":
        return f"does not match the pattern {inert_line(expected, 80)}"
    if keyword == "format":
        return format_problem(expected, value) or "in the wrong format"
    if keyword in ("anyOf", "oneOf"):
        return _alternatives(error) if error.context else "fits several shapes, not one"
    if keyword in ("additionalProperties", "unevaluatedProperties"):
        return "holds a name that is not allowed"
    words = _BOUNDS.get(keyword)
    if words is not None:
        return words.format(inert_line(encode(expected), 40))
    return f"breaks the rule “{inert_line(str(keyword), 40)}” of its schema"


def _alternatives(error: Any) -> str:
    """Return what each branch of a union has against the value."""
    branches: dict[Any, str] = {}
    for inner in error.context:
        branches.setdefault(
            inner.relative_schema_path[0], _located(list(inner.relative_path), _wording(inner))
        )
    reasons = list(dict.fromkeys(branches.values()))[:3]
    return inert_line("; or ".join(reasons), 300) if len(branches) <= 3 else "fits none of its shapes"


_BOUNDS: Final = {
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be more than {}",
    "exclusiveMaximum": "must be less than {}",
    "multipleOf": "must be a multiple of {}",
    "minLength": "needs a length of at least {}",
    "maxLength": "may have a length of at most {}",
    "minItems": "needs at least {} in the list",
    "maxItems": "may have at most {} in the list",
    "minProperties": "needs at least {} filled in",
    "maxProperties": "may have at most {} filled in",
    "uniqueItems": "holds the same value twice",
}


def spend(steps: int) -> None:
    """Take *steps* from what the validation that is going on may take; ends it when none are left."""
    account = _account.get()
    account.steps -= steps
    if account.steps < 0:
        raise _TooMuch


def search(pattern: str, text: str, *, otherwise: bool) -> bool:
    """Say whether *pattern* is found in *text*, or *otherwise* where that can't be told; counts as steps."""
    cost = work(pattern, text)
    if cost is None:
        _account.get().unsure = True
        return otherwise
    spend(cost // 600)
    return found(pattern, text)


def _counted(keyword: Any) -> Any:
    def check(validator: Any, expected: Any, instance: Any, schema: Any) -> Iterator[Any]:
        # A keyword may walk all of what it holds, and all of the value.
        spend(1 + sum(len(item) for item in (expected, instance) if isinstance(item, list | dict)) // 8)
        for error in keyword(validator, expected, instance, schema) or ():
            spend(1)
            yield error

    return check


@lru_cache(maxsize=1)
def _registry() -> Any:
    # An explicit registry without a way to retrieve: jsonschema's own default would go to the network.
    from referencing import Registry

    return Registry()


@lru_cache(maxsize=8)
def _validator_class(dialect: Dialect) -> Any:
    import jsonschema
    from jsonschema.validators import extend as extend_class

    extend: Any = extend_class

    from app.forms import judge_rules

    base = {
        "2020-12": jsonschema.Draft202012Validator,
        "2019-09": jsonschema.Draft201909Validator,
        "draft-07": jsonschema.Draft7Validator,
    }[dialect]
    rules = {**base.VALIDATORS, **{k: v for k, v in judge_rules.RULES.items() if k in base.VALIDATORS}}
    return extend(base, validators={name: _counted(rule) for name, rule in rules.items()})
