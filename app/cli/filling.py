"""From what was typed on the command line to JSON content, by the same forms as the screen's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.cli.exits import CommandError, Exit, usage
from app.cli.output import words
from app.cli.parts import json_object, read_argument
from app.text import inert_line

_NAME_LIMIT: Final = 200


def field_lines(problems: Mapping[str, str], prefix: str = "") -> list[str]:
    """Return a line per field, ``NAME: reason``; what concerns the whole form is named ``(form)``."""
    return [
        f"{prefix}{inert_line(name, _NAME_LIMIT) or '(form)'}: {inert_line(reason)}"
        for name, reason in problems.items()
    ]


def invalid(errors: Mapping[str, str]) -> CommandError:
    """Return the error for an answer or arguments that are not valid."""
    return CommandError(Exit.USAGE, "\n".join(field_lines(errors)), bare=True)


def fill(
    schema: Mapping[str, Any],
    texts: Sequence[str],
    nulls: Sequence[str],
    *,
    instead: str,
    message: object = None,
) -> str:
    """Return the content, as it is sent, that *texts* (``NAME=TEXT``) and *nulls* (names) make of a form.

    *message* as for `read_form`. Warnings go to stderr. Raises `CommandError`, usage: an unknown field, a
    line for each invalid one, or a schema that makes no form; *instead* says what to do then.
    """
    from app.forms import SchemaRefused, UnknownField, parse_assignments, read_form

    try:
        form = read_form(schema, message)
    except SchemaRefused as refused:
        raise usage(f"These fields can't be asked one by one: {refused}. {instead}") from None
    try:
        entries = parse_assignments(form, list(texts), list(nulls))
    except UnknownField as unknown:
        raise CommandError(Exit.USAGE, str(unknown), bare=True) from None
    filled = form.fill(entries)
    for line in field_lines(filled.warnings, "warning: "):
        words(line)
    if not filled.ok:
        raise invalid(filled.errors)
    return filled.content_json


def whole(schema: Mapping[str, Any], text: str, option: str) -> str:
    """Return the content given as JSON in *text* (``@FILE`` and ``-`` are read), as it will be sent.

    It is validated against *schema*, unless that can't be understood: then the server judges. Raises
    `CommandError`, usage.
    """
    from app.forms import SchemaRefused, read_form

    text = read_argument(text, option).strip()
    json_object(text, option)
    try:
        form = read_form(schema)
    except SchemaRefused as refused:
        words(f"warning: not checked here, the server decides: {refused}")
        return text
    filled = form.fill_json(text)
    if not filled.ok:
        raise invalid(filled.errors)
    return filled.content_json
