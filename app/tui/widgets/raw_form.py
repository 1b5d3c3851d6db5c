"""A form whose schema can't be shown as fields: its content as one JSON object, judged by the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from app.forms import Entry, Field, Filled, Form, SchemaRefused, read_form
from app.forms.jsonvalues import Malformed, decode, encode

NAME: Final = ""
"""The name of the one field."""


class AnyForm(Protocol):
    """What the rows need of a form."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """Its fields, in order."""

    def fill(self, entries: Mapping[str, Entry]) -> Filled:
        """Turn what was typed into content, or into an error a field."""


class RawForm:
    """One field for the whole content."""

    def __init__(self, reason: str) -> None:
        self.fields: tuple[Field, ...] = (
            Field(
                name=NAME,
                kind="json",
                title="Content",
                description=None,
                required=True,
                nullable=False,
                has_default=False,
                default=None,
                default_problem=None,
                choices=(),
                secret=False,
                warnings=(f"this form can't be shown as fields: {reason}",),
                hint="a JSON object; the server decides whether it fits",
                multiline=True,
                format=None,
                schema={},
            ),
        )

    def fill(self, entries: Mapping[str, Entry]) -> Filled:
        """Take the text as it is, when it is a JSON object."""
        text = entries.get(NAME)
        if not isinstance(text, str) or not text.strip():
            return Filled({}, "{}", {NAME: "an object is needed; {} is the empty one"}, {})
        try:
            content: Any = decode(text)
        except Malformed as error:
            return Filled({}, "{}", {NAME: str(error)}, {})
        if not isinstance(content, dict):
            return Filled({}, "{}", {NAME: "a JSON object is needed: { … }"}, {})
        return Filled(content, encode(content), {}, {})


def form_of(schema: object, message: object = None) -> AnyForm:
    """Return the form for *schema*, and for what its server says above it.

    Where it is refused, the content as JSON: never a decline by itself.
    """
    if not isinstance(schema, Mapping):
        return RawForm("it has no schema")
    try:
        form: Form = read_form(schema, message)
    except SchemaRefused as refusal:
        return RawForm(str(refusal))
    return form


def form_asked(params: Mapping[str, Any]) -> AnyForm:
    """Return the form that an elicitation's parameters ask for."""
    return form_of(params.get("requestedSchema"), params.get("message"))
