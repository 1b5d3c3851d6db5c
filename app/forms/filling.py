"""What was typed into one field, as a value, or why not (the rules: docs of `app.forms`)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from app.forms.choosing import NoChoice, choice_for, choose, listing
from app.forms.formats import format_problem
from app.forms.jsonvalues import (
    NO_NUMBER,
    Malformed,
    decode,
    encode,
    half_character,
    identity,
    is_double,
    number_problem,
    parse_number,
    type_of,
)
from app.forms.model import ABSENT, Absent, Entry, Field
from app.forms.patterns import found
from app.text import inert_line, plural

if TYPE_CHECKING:
    from app.forms.judge import Judge

MAX_TEXT: Final = 1_000_000
"""Characters typed into one field."""

MISSING: Final = "required"


class Refused(Exception):
    """What was typed can't be sent; the message is for the person who typed it."""


def value_of(field: Field, entry: Entry | Absent, judge: Judge) -> Any:
    """Return the value that *entry* means for *field*; `ABSENT`: nothing is sent for it.

    Raises `Refused`.
    """
    if entry is ABSENT:
        value = field.default if field.has_default else ABSENT
    elif entry is None:
        value = None
    elif _is_cleared(field, entry):
        value = _cleared(field, judge)
    else:
        value = _typed(field, entry)
    if value is ABSENT:
        if field.required:
            raise Refused(MISSING)
        return ABSENT
    problem = value_problem(field, value, judge)
    if problem is not None:
        raise Refused(f"the default can't be sent: {problem}" if entry is ABSENT else problem)
    return value


def _is_cleared(field: Field, entry: Entry | Absent) -> bool:
    if entry == "" and field.kind in ("choice", "constant", "choices"):
        return choice_for(field.choices, "") is None
    if entry == "" and field.kind == "text" and not field.nullable:
        return True
    return entry == "" or entry == []


def _cleared(field: Field, judge: Judge) -> Any:
    if field.nullable:
        return None if field.required else ABSENT
    if field.kind == "text":
        return "" if value_problem(field, "", judge) is None else ABSENT
    if field.kind == "choices":
        return [] if value_problem(field, [], judge) is None else ABSENT
    return ABSENT


def _typed(field: Field, entry: Entry | Absent) -> Any:
    texts = entry if isinstance(entry, list) else [str(entry)]
    if sum(map(len, texts)) > MAX_TEXT:
        raise Refused(f"more than {MAX_TEXT:,} characters")
    if half_character(texts):
        raise Refused("it holds half a character (a lone surrogate), which can't be sent")
    try:
        if field.kind == "choices":
            return [choose(field.choices, text).value for text in texts]
        if field.kind == "list":
            return texts
        if len(texts) != 1:
            raise Refused(f"takes one value, not {len(texts)}")
        return _one(field, texts[0])
    except (Malformed, NoChoice) as error:
        raise Refused(str(error)) from None


def _one(field: Field, text: str) -> Any:
    match field.kind:
        case "text":
            return text
        case "integer" | "number":
            try:
                number = parse_number(text)
            except Malformed as error:
                if field.kind == "integer" and str(error) == NO_NUMBER:
                    raise Refused("not a whole number (digits alone)") from None
                raise
            if field.kind == "integer" and not isinstance(number, int):
                raise Refused("not a whole number")
            return number
        case "boolean":
            if text.strip() not in ("true", "false"):
                raise Refused("true or false is expected")
            return text.strip() == "true"
        case "choice" | "constant":
            if field.nullable and text.strip() == "null" and not _has_text(field, text):
                return None
            return choose(field.choices, text).value
        case _:
            return _json(text)


def _json(text: str) -> Any:
    try:
        return decode(text)
    except Malformed as error:
        bare = text.lstrip()[:1] not in ("", "{", "[", '"', "-") and not text.lstrip()[:1].isdigit()
        raise Refused(f'{error}; a text is written in "quotes"' if bare else str(error)) from None


def _has_text(field: Field, text: str) -> bool:
    return any(choice.value == text or choice.label == text for choice in field.choices)


def value_problem(field: Field, value: Any, judge: Judge) -> str | None:
    """Say in what way *value* breaks the schema of *field*; ``None``: it is what was asked for."""
    if half_character(value):
        return "it holds half a character (a lone surrogate), which can't be sent"
    if field.node is False:
        return "the server admits no value for it"
    if field.kind == "json":
        return judge.problem(value, field.node)
    problem = _shape_problem(field, value)
    if problem is None and field.judged:
        problem = judge.problem(value, field.node)
    return problem


def _shape_problem(field: Field, value: Any) -> str | None:
    if value is None:
        return None if field.nullable else "null is not one of its values"
    match field.kind:
        case "choice" | "constant":
            if choice_for(field.choices, value) is None:
                return f"not one of the choices: {listing(field.choices)}"
            return scalar_problem(field.schema, value)
        case "text":
            return scalar_problem(field.schema, value) if isinstance(value, str) else "a text is expected"
        case "boolean":
            return None if isinstance(value, bool) else "true or false is expected"
        case "integer" if type_of(value) != "integer":
            return "a whole number is expected"
        case "integer" | "number":
            if type_of(value) not in ("integer", "number"):
                return "a number is expected"
            if field.kind == "number" and not is_double(value):
                return "too large for a number"
            return scalar_problem(field.schema, value)
        case _:
            return _items_problem(field, value)


def _items_problem(field: Field, value: Any) -> str | None:
    if not isinstance(value, list):
        return "a list is expected"
    items: Mapping[str, Any] = field.schema.get("items", {})
    known = {identity(choice.value) for choice in field.choices}
    for index, item in enumerate(value, 1):
        problem: str | None
        if field.kind == "choices":
            problem = None if identity(item) in known else "not one of the choices"
            if problem is None and item is not None:
                problem = scalar_problem(items, item)
        else:
            problem = scalar_problem(items, item) if isinstance(item, str) else "a text is expected"
        if problem is not None:
            return f"no. {index}: {problem}" if len(value) > 1 else problem
    least, most = field.schema.get("minItems", 0), field.schema.get("maxItems")
    if len(value) < least:
        return f"at least {least} needed, {len(value)} given"
    if most is not None and len(value) > most:
        return f"at most {most} allowed, {len(value)} given"
    if field.schema.get("uniqueItems") and len({identity(item) for item in value}) < len(value):
        return "the same value is given twice"
    return None


def scalar_problem(schema: Mapping[str, Any], value: Any) -> str | None:
    """Say in what way a text or a number breaks the bounds of *schema*."""
    if isinstance(value, str):
        return _text_problem(schema, value)
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return _number_problem(schema, value)
    return None


def _text_problem(schema: Mapping[str, Any], value: str) -> str | None:
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if len(value) < least:
        return f"at least {plural(least, 'character')} needed, {len(value)} given"
    if most is not None and len(value) > most:
        return f"at most {plural(most, 'character')} allowed, {len(value)} given"
    pattern = schema.get("pattern")
    if pattern is not None and not found(pattern, value):
        return f"does not match the pattern {inert_line(pattern, 80)}"
    return format_problem(schema.get("format"), value)


_BOUNDS: Final[tuple[tuple[str, str, Callable[[Any, Any], bool]], ...]] = (
    ("minimum", "at least", operator.lt),
    ("maximum", "at most", operator.gt),
    ("exclusiveMinimum", "more than", operator.le),
    ("exclusiveMaximum", "less than", operator.ge),
)
"""Each bound with the comparison that breaks it."""


def _number_problem(schema: Mapping[str, Any], value: int | float | Decimal) -> str | None:
    problem = number_problem(value)
    if problem is not None:
        return problem
    for keyword, words, broken in _BOUNDS:
        if keyword in schema and broken(value, schema[keyword]):
            return f"must be {words} {_shown(schema[keyword])}"
    step = schema.get("multipleOf")
    if step is not None and not is_multiple(value, step):
        return f"must be a multiple of {_shown(step)}"
    return None


def is_multiple(value: int | float | Decimal, step: int | Decimal) -> bool:
    """Say whether *value* is a multiple of *step*, exactly: 0.3 is one of 0.1."""
    return (Fraction(value) / Fraction(step)).denominator == 1


def _shown(number: Any) -> str:
    return inert_line(encode(number), 60)


def entry_for(field: Field, value: Any) -> Entry:
    """Return the entry that stands for *value*: what a person would have typed."""
    if value is None and field.kind != "json":
        return None
    if field.kind in ("choice", "constant"):
        choice = choice_for(field.choices, value)
        return choice.entry if choice is not None else encode(value)
    if field.kind in ("choices", "list") and isinstance(value, list):
        return [_member_entry(field, item) for item in value]
    if field.kind == "text" and isinstance(value, str):
        return value
    return encode(value)


def _member_entry(field: Field, value: Any) -> str:
    choice = choice_for(field.choices, value)
    if choice is not None:
        return choice.entry
    return value if isinstance(value, str) else encode(value)
