"""Choices, and which of them a text names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from app.forms.jsonvalues import Malformed, decode, encode, identity, type_of
from app.forms.model import Choice
from app.text import inert_line


class NoChoice(Exception):
    """A text names no choice, or several; the message is for the person who typed it."""


def choices(options: Sequence[tuple[Any, str | None]]) -> tuple[Choice, ...]:
    """Return the choices for values with their titles; each gets a text that names it alone."""
    strings = {value for value, _ in options if isinstance(value, str)}
    titles = Counter(title for _, title in options if title is not None)
    found: list[Choice] = []
    for value, title in options:
        json = encode(value)
        label = _label(value, json, title, title is not None and titles[title] > 1, strings)
        if isinstance(value, str):
            entry = value if value else json
        elif json not in strings:
            entry = json
        elif title and titles[title] == 1 and title not in strings:
            entry = title
        else:
            entry = _typed(value, json)
        found.append(Choice(value, label, json, entry, title))
    return tuple(found)


def _typed(value: Any, json: str) -> str:
    return f"{json} ({type_of(value)})"


def _label(value: Any, json: str, title: str | None, shared: bool, strings: set[str]) -> str:
    if title:
        return f"{title} ({json})" if shared else title
    if isinstance(value, str):
        return value if value.strip() else json
    return _typed(value, json) if json in strings else json


def choose(among: Sequence[Choice], text: str) -> Choice:
    """Return the choice that *text* names: by its string value, else by its JSON, else by its title.

    Raises `NoChoice`, also for a title that several values share.
    """
    for choice in among:
        if isinstance(choice.value, str) and choice.value == text:
            return choice
    try:
        wanted = identity(decode(text))
    except Malformed:
        wanted = None
    if wanted is not None or text.strip() == "null":
        for choice in among:
            if identity(choice.value) == wanted:
                return choice
    titled = [choice for choice in among if choice.title == text]
    if len(titled) > 1:
        raise NoChoice(f"several choices are called {inert_line(text, 60)}: name one by its value")
    if titled:
        return titled[0]
    for choice in among:
        if text in (choice.entry, choice.label):
            return choice
    raise NoChoice(f"not one of the choices: {listing(among)}")


def choice_for(among: Sequence[Choice], value: Any) -> Choice | None:
    """Return the choice whose value is *value*; 1, true and "1" are three values."""
    wanted = identity(value)
    return next((choice for choice in among if identity(choice.value) == wanted), None)


def listing(among: Sequence[Choice], limit: int = 8) -> str:
    """Return the first choices in words."""
    names = [inert_line(choice.label, 40) for choice in among[:limit]]
    more = len(among) - len(names)
    if not names:
        return "there are none"
    return ", ".join(names) + (f" and {more} more" if more else "")
