"""JSON as it is shown: indented, with every digit it came with, and never trusted to be valid."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import simplejson

from app.forms.jsonvalues import Malformed, decode, encode

_LARGEST: Final = 2_000_000
"""Characters; larger texts are shown as they came."""


def load(text: str | None) -> Any:
    """Return the value of a JSON text, numbers exact; ``None`` where it is no JSON."""
    if not text or len(text) > _LARGEST:
        return None
    try:
        return simplejson.loads(text, parse_int=Decimal, use_decimal=True)
    except (ValueError, ArithmeticError, RecursionError):
        return None


def dump(value: Any) -> str:
    """Return *value* as indented JSON."""
    try:
        return str(simplejson.dumps(value, ensure_ascii=False, indent=2, use_decimal=True))
    except (ValueError, RecursionError, TypeError):
        return repr(value)


def pretty(text: str | None) -> str:
    """Return *text* indented where it is JSON, else as it is."""
    value = load(text)
    return (text or "") if value is None else dump(value)


def response_content(response_json: str) -> str | None:
    """Return the ``content`` of a response as JSON text; ``None`` where it has none."""
    try:
        response = decode(response_json)
    except Malformed:
        return None
    found = response.get("content") if isinstance(response, dict) else None
    return encode(found) if isinstance(found, dict) else None


def response_action(response_json: str | None) -> str:
    """Return the ``action`` of a response; empty where it can't be read."""
    response = load(response_json)
    action = response.get("action") if isinstance(response, dict) else None
    return action if isinstance(action, str) else ""
