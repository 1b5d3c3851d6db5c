"""What a field expects, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.forms.formats import NAMES as FORMATS
from app.forms.jsonvalues import encode
from app.forms.model import Choice, Kind
from app.text import inert_line

_TYPES: Final = {"object": "an object", "array": "a list", "string": "a text", "integer": "a whole number"}


def hint(kind: Kind, schema: Mapping[str, Any], choices: Sequence[Choice]) -> str:
    """Return what may be entered: ``whole number, 1 to 10``; an empty text where anything may."""
    return inert_line(_hint(kind, schema, choices), 200)


def _hint(kind: Kind, schema: Mapping[str, Any], choices: Sequence[Choice]) -> str:
    if kind in ("integer", "number"):
        return ", ".join(["whole number" if kind == "integer" else "number", *_bounds(schema)])
    if kind == "text":
        return _text(schema)
    if kind == "boolean":
        return "true or false"
    if kind == "choices":
        return _amount(schema, "minItems", "maxItems", "choice") or "any number of choices"
    if kind == "list":
        amount = _amount(schema, "minItems", "maxItems", "text") or "any number of texts"
        each = _text(schema.get("items", {}))
        return f"{amount}, each {each}" if each else amount
    if kind == "constant":
        return f"always {inert_line(choices[0].label, 40)}" if choices else "always null"
    if kind == "json":
        named = schema.get("type")
        return f"JSON, {_TYPES[named]}" if isinstance(named, str) and named in _TYPES else "JSON"
    return ""


def _number(value: Any) -> str:
    return inert_line(encode(value), 40)


def _bounds(schema: Mapping[str, Any]) -> list[str]:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    words: list[str] = []
    if low is not None and high is not None:
        words.append(f"{_number(low)} to {_number(high)}")
    elif low is not None:
        words.append(f"at least {_number(low)}")
    elif high is not None:
        words.append(f"at most {_number(high)}")
    if above is not None:
        words.append(f"more than {_number(above)}")
    if below is not None:
        words.append(f"less than {_number(below)}")
    if (step := schema.get("multipleOf")) is not None and step != 1:
        words.append(f"a multiple of {_number(step)}")
    return words


def _text(schema: Mapping[str, Any]) -> str:
    words = []
    if (name := schema.get("format")) in FORMATS:
        words.append(FORMATS[name])
    words.append(_amount(schema, "minLength", "maxLength", "character"))
    if (pattern := schema.get("pattern")) is not None:
        words.append(f"matching {inert_line(pattern, 40)}")
    return ", ".join(word for word in words if word)


def _amount(schema: Mapping[str, Any], least: str, most: str, noun: str) -> str:
    low, high = schema.get(least, 0), schema.get(most)
    if high is None:
        return f"at least {_count(low, noun)}" if low else ""
    if low == high:
        return f"exactly {_count(low, noun)}"
    if low == 0:
        return f"up to {_count(high, noun)}"
    return f"{low} or {high} {noun}s" if high == low + 1 else f"{low} to {high} {noun}s"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
