"""What the tools ask, and whether a response fits.

The requests have the shapes of the specification's page on elicitation; responses are checked with jsonschema
against the very schema that was asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from itertools import islice
from typing import Any, Final
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.validators import extend

_FORMATS: Final = FormatChecker(formats=())

VALUES_MOST: Final = 5_000
"""Values in one answer, or in one tool's arguments: every other request waits while they are checked."""
ERRORS_MOST: Final = 20
"""Errors that the most telling one is chosen from."""


def form(message: str, properties: Mapping[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return an elicitation in form mode."""
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = list(required)
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": message, "requestedSchema": schema},
    }


def visit(message: str, url: str) -> dict[str, Any]:
    """Return an elicitation in URL mode."""
    return {"method": "elicitation/create", "params": {"mode": "url", "message": message, "url": url}}


def fault(request: Mapping[str, Any], response: object) -> str | None:
    """Say why *response* is no answer to *request*, or return ``None`` where it is one."""
    if not isinstance(response, dict):
        return "a response is an object with an action"
    action = response.get("action")
    if action not in ("accept", "decline", "cancel"):
        return "action must be accept, decline or cancel"
    if action != "accept" or request["params"].get("mode") == "url":
        return None
    content = response.get("content")
    if not isinstance(content, dict):
        return "an accepted form needs content, an object"
    return mismatch(request["params"]["requestedSchema"], content)


def mismatch(schema: Mapping[str, Any], instance: object) -> str | None:
    """Say where *instance* departs from *schema*, as ``name: reason``, or return ``None``."""
    if _is_large(instance):
        return f"it holds more than {VALUES_MOST:,} values"
    found = _VALIDATOR(schema, format_checker=_FORMATS).iter_errors(instance)
    error = best_match(islice(found, ERRORS_MOST))
    if error is None:
        return None
    where = ".".join(str(part) for part in error.absolute_path)
    reason = error.message if len(error.message) <= 300 else f"does not satisfy {error.validator}"
    return f"{where}: {reason}" if where else reason


def _is_large(instance: object) -> bool:
    count, pending = 0, [instance]
    while pending and count <= VALUES_MOST:
        value = pending.pop()
        count += 1
        if isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list):
            pending += value[: VALUES_MOST + 1]
    return count > VALUES_MOST


def _pattern(_validator: Any, pattern: str, instance: object, _schema: Any) -> Iterator[ValidationError]:
    # ECMA 262's $ is the end of the text; Python's also stands before a line break at the end.
    if isinstance(instance, str) and re.search(re.sub(r"(?<!\\)\$", r"\\Z", pattern), instance) is None:
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


_extend: Any = extend  # it has no types
_VALIDATOR: Final = _extend(Draft202012Validator, {"pattern": _pattern})


@_FORMATS.checks("email")
def _is_email(value: object) -> bool:
    return not isinstance(value, str) or re.fullmatch(r"[^@\s]+@[^@\s.]+(\.[^@\s.]+)*", value) is not None


@_FORMATS.checks("uri", raises=ValueError)
def _is_uri(value: object) -> bool:
    if not isinstance(value, str):
        return True
    parts = urlsplit(value)
    return bool(parts.scheme and (parts.netloc or parts.path)) and value.isascii() and " " not in value


@_FORMATS.checks("date", raises=ValueError)
def _is_date(value: object) -> bool:
    return not isinstance(value, str) or date.fromisoformat(value).isoformat() == value


@_FORMATS.checks("date-time", raises=ValueError)
def _is_date_time(value: object) -> bool:
    if not isinstance(value, str):
        return True
    # RFC 3339 wants a time and an offset, which ISO 8601, and so Python, leave optional.
    moment = re.fullmatch(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.\d+)?([Zz]|[+-]\d\d:\d\d)", value)
    if moment is None:
        return False
    day, clock, offset = moment.groups()
    datetime.fromisoformat(f"{day}T{clock}{'+00:00' if offset in 'Zz' else offset}")
    return True


def deployment_form(service: str, build: str) -> dict[str, Any]:
    """Return the approval that `deploy_service` asks for: one field of every kind a form can have."""
    return form(f"Approve build {build} of {service}?", _DEPLOYMENT, _DEPLOYMENT_REQUIRED)


_DEPLOYMENT_REQUIRED: Final = ("environment", "replicas", "approver", "reason")

_DEPLOYMENT: Final[dict[str, Any]] = {
    "environment": {
        "type": "string",
        "title": "Environment",
        "description": "Where it goes",
        "oneOf": [
            {"const": "staging", "title": "Staging"},
            {"const": "production", "title": "Production"},
        ],
        "default": "staging",
    },
    "strategy": {
        "type": "string",
        "title": "Strategy",
        "enum": ["rolling", "blue-green", "canary"],
        "default": "rolling",
    },
    "urgency": {
        "type": "string",
        "title": "Urgency",
        "enum": ["low", "normal", "high"],
        "enumNames": ["Whenever", "Today", "Right now"],
    },
    "regions": {
        "type": "array",
        "title": "Regions",
        "minItems": 1,
        "maxItems": 3,
        "items": {
            "anyOf": [
                {"const": "eu-west-1", "title": "Ireland"},
                {"const": "us-east-1", "title": "Virginia"},
                {"const": "ap-south-1", "title": "Mumbai"},
            ]
        },
        "default": ["eu-west-1"],
    },
    "notify": {
        "type": "array",
        "title": "Notify",
        "description": "Channels that are told",
        "maxItems": 2,
        "items": {"type": "string", "enum": ["chat", "email", "pager"]},
    },
    "replicas": {
        "type": "integer",
        "title": "Replicas",
        "minimum": 1,
        "maximum": 10,
        "default": 3,
    },
    "canary_percent": {
        "type": "number",
        "title": "Canary share",
        "description": "Per cent of the traffic",
        "minimum": 0,
        "maximum": 100,
    },
    "run_migrations": {"type": "boolean", "title": "Run migrations", "default": False},
    "approver": {
        "type": "string",
        "title": "Approver",
        "format": "email",
        "description": "Whose approval this is",
    },
    "reason": {
        "type": "string",
        "title": "Reason",
        "description": "Why now, in a sentence",
        "minLength": 5,
        "maxLength": 200,
    },
    "change_ticket": {
        "type": "string",
        "title": "Change ticket",
        "description": "Such as CHG-1234",
        "pattern": "^CHG-[0-9]{4,6}$",
    },
    "runbook": {"type": "string", "title": "Runbook", "format": "uri"},
    "freeze_until": {"type": "string", "title": "Freeze until", "format": "date"},
    "start_at": {"type": "string", "title": "Start at", "format": "date-time"},
}
