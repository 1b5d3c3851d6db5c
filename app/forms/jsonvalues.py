"""JSON values kept exact: integers of any size, decimals as `Decimal`, an integral number always as `int`.

Inside the forms a number is an ``int`` or a ``Decimal``, never a ``float``; ``True`` is not ``1``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Mapping
from decimal import Decimal
from typing import Any, Final

import simplejson

from app.text import inert_line

MAX_DIGITS: Final = 4300
"""Characters of one number; CPython refuses to convert longer integers from and to text."""

MAX_SCALE: Final = 10_000
"""Decimal places of one number: arithmetic on more would need unbounded memory."""

MAX_DEPTH: Final = 64
"""Levels of nesting in a schema or in a value that was typed."""

MAX_NODES: Final = 200_000
"""Values within one schema or one typed value."""

_TOO_LONG: Final = 10**MAX_DIGITS

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Malformed(Exception):
    """A text is not what it should be; the message is for the person who typed it."""


NO_NUMBER: Final = "not a number (digits, with . for decimals)"


def parse_number(text: str) -> int | Decimal:
    """Return the number that *text* is in JSON's grammar, exactly; white space around it is allowed.

    Raises `Malformed`. Written as plain digits it may have any size up to `MAX_DIGITS`; with a fraction or an
    exponent it must be finite as a double, since most programs would read it as infinity.
    """
    text = text.strip(" \t\r\n")
    if len(text) > MAX_DIGITS:
        raise Malformed(f"a number of more than {MAX_DIGITS} characters is too long")
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise Malformed(NO_NUMBER)
    if match.group(1) is None and match.group(2) is None:
        return int(text)
    exponent = match.group(2)
    if exponent is not None and len(exponent) > 12:
        raise Malformed("the exponent is too large")
    value = _integral(Decimal(text))
    if isinstance(value, Decimal) and (problem := number_problem(value)) is not None:
        raise Malformed(problem)
    return value


def number_problem(value: int | float | Decimal) -> str | None:
    """Say why *value* can't be sent as a number: not finite as a double, or with too many decimal places."""
    if isinstance(value, int):
        return None
    if not is_double(value):
        return "too large for a number"
    if isinstance(value, Decimal) and -int(value.as_tuple().exponent) > MAX_SCALE:
        return f"a number may have at most {MAX_SCALE:,} decimal places"
    return None


def is_double(value: int | float | Decimal) -> bool:
    """Say whether *value* stays finite in a program that keeps numbers as doubles."""
    try:
        return math.isfinite(float(value))
    except (OverflowError, ValueError):
        return False


def _integral(value: Decimal) -> int | Decimal:
    if not value.is_finite() or not is_double(value):
        return value
    if not value:
        return 0
    exponent = int(value.as_tuple().exponent)
    if exponent < -MAX_SCALE or (exponent < 0 and value != value.to_integral_value()):
        return value
    return int(value)


def normal(value: Any) -> Any:
    """Return a copy of *value* with exact numbers: floats as the decimals they are written as, ``3.0`` as 3.

    A float that is not finite stays as it is, for the checks to refuse. The depth must be bounded.
    """
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        # An integer too long to be turned into text: as a decimal it can be shown, and is refused.
        return value if abs(value) < _TOO_LONG else Decimal(value)
    if isinstance(value, float):
        return _integral(Decimal(repr(value))) if math.isfinite(value) else value
    if isinstance(value, Decimal):
        return _integral(value)
    if isinstance(value, Mapping):
        return {str(key): normal(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [normal(item) for item in value]
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def measure(value: Any) -> str | None:
    """Say in what way *value* is too deep or too large to be worked with, or ``None``."""
    level = [value]
    nodes = 0
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for item in level:
            if isinstance(item, Mapping):
                below.extend(item.values())
            elif isinstance(item, list | tuple):
                below.extend(item)
            nodes += 1
        if not below:
            return None
        if nodes + len(below) > MAX_NODES:
            return f"it holds more than {MAX_NODES:,} values"
        level = below
    return f"it is nested more than {MAX_DEPTH} levels deep"


def identity(value: Any) -> Hashable:
    """Return a key that is equal for equal JSON values only: 1 and 1.0 are one, 1, true and "1" are three."""
    if isinstance(value, bool):
        return ("boolean", value)
    if isinstance(value, int | float | Decimal):
        return ("number", value)
    if isinstance(value, list):
        return ("array", tuple(identity(item) for item in value))
    if isinstance(value, Mapping):
        return ("object", frozenset((key, identity(item)) for key, item in value.items()))
    return value if value is None else ("string", value)


def type_of(value: Any) -> str:
    """Return the JSON Schema type of a `normal` value; an integral number is ``integer``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float | Decimal):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def encode(value: Any) -> str:
    """Return *value* as JSON text on one line, with the numbers exact; lone surrogates are escaped.

    A float that is not finite (a schema may hold one) is shown as ``NaN`` or ``Infinity``; no content does.
    """
    text: str = simplejson.dumps(value, use_decimal=True, ensure_ascii=False, allow_nan=True)
    if _SURROGATE.search(text):
        return str(simplejson.dumps(value, use_decimal=True, ensure_ascii=True, allow_nan=True))
    return text


def decode(text: str) -> Any:
    """Return the `normal` value that *text* is in JSON.

    Raises `Malformed` for what is not JSON, for NaN and infinities, a name given twice in one object, half a
    surrogate pair, and what is too large or too deep.
    """
    try:
        value = simplejson.loads(
            text,
            parse_int=_member,
            parse_float=_member,
            parse_constant=_no_constant,
            object_pairs_hook=_object,
        )
    except simplejson.JSONDecodeError as error:
        raise Malformed(f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise Malformed(f"it is nested more than {MAX_DEPTH} levels deep") from None
    problem = measure(value)
    if problem is not None:
        raise Malformed(problem)
    if half_character(value):
        raise Malformed("it holds half a character (a lone surrogate), which can't be sent")
    return value


def half_character(value: Any) -> bool:
    """Say whether a text in *value* (of bounded depth) holds a lone surrogate, which UTF-8 can't carry."""
    if isinstance(value, str):
        return _SURROGATE.search(value) is not None
    if isinstance(value, list):
        return any(half_character(item) for item in value)
    if isinstance(value, Mapping):
        return any(half_character(key) or half_character(item) for key, item in value.items())
    return False


def _member(text: str) -> int | Decimal:
    try:
        return parse_number(text)
    except Malformed as error:
        raise Malformed(f"{inert_line(text, 20)}: {error}") from None


def _no_constant(text: str) -> Any:
    raise Malformed(f"{text} is not a JSON value")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise Malformed(f"the name {inert_line(key, 60)} is given twice")
        found[key] = value
    return found
