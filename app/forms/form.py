"""A form: fill it in, and get the content to be sent or a reason for each field that is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as member
from typing import Any

from app.forms.choosing import choice_for
from app.forms.filling import Refused, value_of, value_problem
from app.forms.jsonvalues import Malformed, decode, encode, normal
from app.forms.judge import Judge
from app.forms.model import ABSENT, Absent, Entry, Field, Filled
from app.forms.patterns import UNCHECKED, work
from app.text import inert_line


@dataclass(frozen=True, slots=True)
class Form:
    """What a schema asks a person for."""

    fields: tuple[Field, ...]
    title: str | None
    description: str | None
    warnings: tuple[str, ...]
    """What is wrong with the schema as a whole."""
    whole: bool
    """No fields could be told apart: the one field (named ``""``) takes the whole content as JSON."""
    judged: bool = member(repr=False)
    """The content as a whole is validated, beside its fields."""
    judge: Judge = member(repr=False, compare=False)

    def field(self, name: str) -> Field | None:
        """Return the field of that name."""
        return next((field for field in self.fields if field.name == name), None)

    def fill(self, entries: Mapping[str, Entry]) -> Filled:
        """Return the content that *entries* make, or an error for each field that can't be sent so.

        A field that *entries* doesn't name was untouched. An entry for a field that there is not is an error.
        """
        content: dict[str, Any] = {}
        errors: dict[str, str] = {}
        for field in self.fields:
            entry: Entry | Absent = entries.get(field.name, ABSENT)
            try:
                value = value_of(field, entry, self.judge)
            except Refused as error:
                errors[field.name] = inert_line(str(error))
                continue
            if value is not ABSENT:
                content[field.name] = value
        known = {field.name for field in self.fields}
        errors |= {name: "there is no such field" for name in entries if name not in known}
        if self.whole and not errors:
            if isinstance(content[""], dict):
                content = content[""]
            else:
                errors[""] = "a JSON object is expected"
        return self._filled(content, errors)

    def fill_json(self, text: str) -> Filled:
        """Return the content that *text*, a JSON object, is; or what is wrong with it, field by field."""
        try:
            content = decode(text)
        except Malformed as error:
            return self._filled({}, {"": str(error)})
        if not isinstance(content, dict):
            return self._filled({}, {"": "a JSON object is expected"})
        problems = self.judge.whole_problems(content)
        errors = {name: inert_line(why) for name, why in problems.items()}
        if errors and not self.whole:
            # One validation looks at so many errors only; a refused content is told of field by field.
            for field in self.fields:
                if field.name in errors:
                    continue
                if field.name not in content:
                    problem = "required here" if field.required else None
                elif field.judged or field.kind == "json":
                    continue  # a validation of its own for each would take too long
                else:
                    problem = value_problem(field, content[field.name], self.judge)
                if problem is not None:
                    errors[field.name] = inert_line(problem)
        return self._filled(content, errors)

    def _filled(self, content: dict[str, Any], errors: dict[str, str]) -> Filled:
        if self.judged and not self.whole and not errors:
            errors = self._named(self.judge.whole_problems(content))
        warnings: dict[str, str] = {}
        for field in self.fields:
            told = [*field.warnings]
            if field.default_problem is not None:
                told.append(f"its default breaks its own schema: {field.default_problem}")
            if UNCHECKED not in told and _unchecked(field, content.get(field.name)):
                told.append(UNCHECKED)
            if told:
                warnings[field.name] = "; ".join(told)
        if self.warnings and not self.whole:
            warnings[""] = "; ".join(self.warnings)
        return Filled(content, encode(content), errors, warnings)

    def _named(self, problems: Mapping[str, str]) -> dict[str, str]:
        """Return *problems* with those that name no field under the form as a whole."""
        known = {field.name for field in self.fields if not self.whole}
        errors = {name: reason for name, reason in problems.items() if name in known}
        others = [
            f"{inert_line(n, 60)}: {why}" if n else why for n, why in problems.items() if n not in known
        ]
        if others:
            errors.setdefault("", "; ".join(others[:3]))
        return errors

    def describe(self, content: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return (title, what was answered) for people, in the order of the fields; secrets are not shown.

        *content* may come from anywhere, an older program's answer too; titles and values are the server's
        and the person's own words, not yet made inert.
        """
        content = normal(content)
        if self.whole:
            return [("", encode(content))]
        known = {field.name for field in self.fields}
        pairs = [
            (field.title, _shown(field, content[field.name]))
            for field in self.fields
            if field.name in content
        ]
        return pairs + [(name, encode(value)) for name, value in content.items() if name not in known]


def _unchecked(field: Field, value: Any) -> bool:
    """Say whether a text is too long for its pattern to be searched."""
    pattern = (field.schema.get("items", {}) if field.kind == "list" else field.schema).get("pattern")
    texts = value if isinstance(value, list) else [value]
    if pattern is None or field.kind not in ("text", "list"):
        return False
    return any(isinstance(text, str) and work(pattern, text) is None for text in texts)


def _shown(field: Field, value: Any) -> str:
    if field.secret:
        return "••••••"
    if isinstance(value, list) and field.kind in ("choices", "list"):
        return ", ".join(_one(field, item) for item in value) or "none"
    return _one(field, value)


def _one(field: Field, value: Any) -> str:
    choice = choice_for(field.choices, value)
    if choice is not None:
        return choice.label
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value if value else "(an empty text)"
    return encode(value)
