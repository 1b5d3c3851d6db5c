"""``NAME=TEXT`` from a command line, as entries for a form."""

from __future__ import annotations

from collections.abc import Sequence

from app.forms.form import Form
from app.forms.model import Entry
from app.text import inert_line


class UnknownField(Exception):
    """An assignment names no field of the form, or none at all; the message is one line for a person."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


def parse_assignments(form: Form, texts: Sequence[str], nulls: Sequence[str] = ()) -> dict[str, Entry]:
    """Return the entries that ``NAME=TEXT`` *texts* and the *nulls* make; a name given twice is a list.

    The name is the longest one of the form's that fits before an ``=``: names may hold ``=`` themselves.

    Raises `UnknownField`.
    """
    names = {field.name for field in form.fields}
    longest = max(map(len, names), default=0)
    given: dict[str, list[str]] = {}
    for text in texts:
        name = _name(text, names, longest)
        given.setdefault(name, []).append(text[len(name) + 1 :])
    entries: dict[str, Entry] = {
        name: values[0] if len(values) == 1 else values for name, values in given.items()
    }
    for name in nulls:
        if name not in names:
            raise UnknownField(name, _unknown(name, names))
        if name in entries and entries[name] is not None:
            raise UnknownField(name, f"{inert_line(name, 60)}: given a text and null; give one of them")
        entries[name] = None
    return entries


def _name(text: str, names: set[str], longest: int) -> str:
    ends = [index for index, character in enumerate(text[: longest + 1]) if character == "="]
    for end in reversed(ends):
        if text[:end] in names:
            return text[:end]
    name, sign, _ = text.partition("=")
    if not sign:
        raise UnknownField(name, f"{inert_line(name, 60)}: write NAME=TEXT")
    raise UnknownField(name, _unknown(name, names))


def _unknown(name: str, names: set[str]) -> str:
    known = ", ".join(inert_line(other, 40) for other in sorted(names)[:10])
    more = " …" if len(names) > 10 else ""
    return (
        f"{inert_line(name, 60) or '(no name)'}: there is no such field; there are: {known or 'none'}{more}"
    )
