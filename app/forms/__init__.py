"""Forms: a schema becomes fields; what was typed becomes content, or an error per field.

Pure: no screen, no wire, no store.

How entries become values
- Untouched (not named): the schema's default if it has one (a constant is its own), else absent. A default
  that breaks its own schema is refused if left.
- Cleared (an empty text): null for a required nullable field; the empty text where a text field admits it; no
  choices where a multiple choice admits that; else absent. Absent is an error where the field is required.
- ``true`` and ``false`` alone are booleans; numbers follow JSON's grammar and stay exact; a choice is named
  by its value or its title; what the flat fields don't cover is JSON, validated against its schema.
"""

from __future__ import annotations

from app.forms.assigning import UnknownField, parse_assignments
from app.forms.form import Form
from app.forms.model import ABSENT, Absent, Choice, Entry, Field, Filled, Kind, SchemaRefused
from app.forms.reading import read_form

__all__ = [
    "ABSENT",
    "Absent",
    "Choice",
    "Entry",
    "Field",
    "Filled",
    "Form",
    "Kind",
    "SchemaRefused",
    "UnknownField",
    "parse_assignments",
    "read_form",
]
