"""A roots request: the folders that a person has allowed for this server, exactly as it would be told.

Page: client/roots. The list stands in the servers file; here it is sent as it is, or refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.app import ComposeResult
from textual.widgets import Button

from app.config import Abilities, present
from app.forms.roots import roots_json, roots_of
from app.text import inert_line, plural
from app.tui.widgets.inert import InertText, Part, content, joined
from app.tui.widgets.refusing import Refusable
from storage.records import QuestionRecord


class QuestionRoots(Refusable):
    """Shows what would be sent; sends it, or a refusal that stays here."""

    DEFAULT_CSS = """
    QuestionRoots .roots { margin: 0 0 1 0; }
    QuestionRoots .review { background: $surface; padding: 0 1; margin: 0 0 1 0; }
    """

    def __init__(
        self,
        question: QuestionRecord,
        abilities: Abilities,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(question, monotonic=monotonic)
        self._there = present(abilities.roots)
        self._away = [root for root in abilities.roots if root not in self._there]

    @property
    def message(self) -> str:
        return ""

    def body(self) -> ComposeResult:
        count = plural(len(self._there), "folder")
        yield InertText(f"It wants to know which folders it may work in. It would be told of {count}:")
        parts: list[Part] = []
        for number, root in enumerate(roots_of(self._there)):
            parts += [
                "\n" if number else "",
                (f"  {inert_line(root['name'], 80)}", "bold"),
                f"  {root['uri']}",
            ]
        yield InertText(joined(*parts) if parts else "  ‹none›", classes="roots")
        if self._away:
            names = ", ".join(inert_line(root, 200) for root in self._away)
            yield InertText(f"! Left out, since it can't be looked into now: {names}", classes="notice")
        if self._there:
            yield InertText(roots_json(self._there), classes="review")

    def buttons(self) -> ComposeResult:
        if self._there:
            yield Button(content("Send this list ^S"), "success", compact=True, classes="answer accept")
        yield Button(content("Refuse"), compact=True, classes="answer refuse warns")

    def answer_content(self) -> tuple[bool, str | None]:
        return bool(self._there), roots_json(self._there)
