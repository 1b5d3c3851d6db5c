"""What a form is: its fields, what may be typed into them, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Literal

Entry = str | list[str] | None
"""What was typed into a field: a text, several texts, or the value null. A field not named was untouched."""

Kind = Literal["text", "integer", "number", "boolean", "choice", "choices", "list", "json", "constant"]


class SchemaRefused(Exception):
    """No form can be made of a schema; the message is for a person."""


class Absent(Enum):
    """The type of `ABSENT`."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
"""No entry at all, where ``None`` is the value null."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One value that may be chosen."""

    value: Any
    label: str
    """The server's title for it, with the value where others have the same title; else the value itself."""
    json: str
    """The value as JSON."""
    entry: str
    """The text that names this choice, and no other, in an `Entry`."""
    title: str | None = None
    """The server's title."""


@dataclass(frozen=True, slots=True)
class Field:
    """One property of the content, as a person fills it in. Its strings are the server's, not yet made inert;
    `hint`, `warnings` and `default_problem` alone are ours."""

    name: str
    kind: Kind
    title: str
    """The server's title, or the name."""
    description: str | None
    required: bool
    nullable: bool
    has_default: bool
    default: Any
    """The value sent if nobody touches the field, where `has_default`; a constant is its own default."""
    default_problem: str | None
    """In what way the default breaks its own schema; then it is refused if left."""
    choices: tuple[Choice, ...]
    secret: bool
    """It seems to ask for a password, a token or a card number: masked, and kept out of drafts."""
    warnings: tuple[str, ...]
    """Shown beside the field."""
    hint: str
    """What is expected, in words: ``whole number, 1 to 10``."""
    multiline: bool
    format: str | None
    schema: Mapping[str, Any]
    """What the value must satisfy, references and unions resolved; for a JSON field, as it came."""
    node: Any = field(default=True, repr=False)
    """The property's own subschema within the form's schema."""
    judged: bool = field(default=False, repr=False)
    """It has constraints that only the JSON Schema validator knows."""

    def initial(self) -> Entry | Absent:
        """Return the default as the entry that stands for it; `ABSENT` where there is none."""
        from app.forms.filling import entry_for

        return entry_for(self, self.default) if self.has_default else ABSENT


@dataclass(frozen=True, slots=True)
class Filled:
    """What was typed, as content, or why not."""

    content: dict[str, Any]
    """The values by name; numbers are ``int`` or ``Decimal``. Only of use where `ok`."""
    content_json: str
    """Exactly the text to be sent."""
    errors: dict[str, str]
    """A reason for each field that is refused; ``""`` names the form as a whole."""
    warnings: dict[str, str]
    """For each field that is shown with warnings, these; ``""`` names the form as a whole."""

    @property
    def ok(self) -> bool:
        """Say whether the content may be sent."""
        return not self.errors
