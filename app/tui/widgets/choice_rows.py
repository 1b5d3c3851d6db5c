"""The rows in which something is picked, and the one in which nothing can be."""

from __future__ import annotations

from typing import Final

from textual.app import ComposeResult
from textual.widgets import Input

from app.forms import Field
from app.tui.widgets.controls import InlineChoice, Picked, PickList, SafeInput, fits_inline
from app.tui.widgets.field_rows import UNTOUCHED, FieldRow, State
from app.tui.widgets.inert import InertText

MANY: Final = 20
"""More choices than this get a line to filter them with."""


class ChoiceRow(FieldRow):
    """One choice: on one line where they are few and short, else one below the other."""

    def __init__(self, field: Field, state: State = UNTOUCHED) -> None:
        super().__init__(field, state)
        self.entries = choice_entries(field)
        labels = choice_labels(field)
        chosen = self._chosen()
        first = min(chosen) if chosen else None
        self.control: InlineChoice | PickList
        if fits_inline(labels):
            self.control = InlineChoice(labels, first)
        else:
            self.control = PickList(labels, chosen, several=False)
        self._filter = SafeInput(
            compact=True, placeholder=f"type to find one of {len(labels)}", classes="filter"
        )

    def controls(self) -> ComposeResult:
        if len(self.entries) > MANY:
            yield self._filter
        yield self.control

    def _chosen(self) -> set[int]:
        entry = self.fallback if self.state is UNTOUCHED else self.state
        if entry is None:
            return set()
        return {
            index for text in ([entry] if isinstance(entry, str) else entry) for index in self._find(text)
        }

    def _find(self, text: str) -> list[int]:
        return find_choice(self.field, self.entries, text)

    def show_state(self) -> None:
        chosen = self._chosen()
        if isinstance(self.control, InlineChoice):
            self.control.chosen = min(chosen) if chosen else None
        else:
            self.control.choose(chosen)

    def on_picked(self, event: Picked) -> None:
        """Take what was picked."""
        event.stop()
        if self.frozen:
            self.show_state()
            return
        self.picked(event.index)

    def picked(self, index: int) -> None:
        """Take the choice at *index*."""
        self.touched(self.entries[index])

    def on_input_changed(self, event: Input.Changed) -> None:
        """Narrow the list to what is typed above it."""
        event.stop()
        if isinstance(self.control, PickList):
            self.control.narrow(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in the filter goes to the list, to the first that was found."""
        event.stop()
        self.control.focus()
        if isinstance(self.control, PickList) and self.control.option_count:
            self.control.highlighted = 0


class ChoicesRow(ChoiceRow):
    """Several choices."""

    def __init__(self, field: Field, state: State = UNTOUCHED) -> None:
        super().__init__(field, state)
        self.control = PickList(choice_labels(field), self._chosen(), several=True)

    def picked(self, index: int) -> None:
        """Take all that is picked now; nothing picked is an empty list, which is not "not answered"."""
        assert isinstance(self.control, PickList)
        self.touched([self.entries[index] for index in sorted(self.control.chosen)])


class ConstantRow(FieldRow):
    """A value that can't be chosen, only sent."""

    def controls(self) -> ComposeResult:
        labels = choice_labels(self.field)
        yield InertText(labels[0] if labels else str(self.field.default), limit=2000)

    def show_state(self) -> None:
        """Nothing changes."""


def choice_labels(field: Field) -> list[str]:
    """Return what a person reads, choice by choice."""
    if field.kind == "boolean":
        return ["Yes", "No"]
    return [choice.label or "‹empty›" for choice in field.choices]


def choice_entries(field: Field) -> list[str]:
    """Return the text that names each choice, and no other."""
    return ["true", "false"] if field.kind == "boolean" else [choice.entry for choice in field.choices]


def find_choice(field: Field, entries: list[str], text: str) -> list[int]:
    """Return the index of the choice that *text* names (a draft may name it by its title); else nothing."""
    for names in (entries, [choice.json for choice in field.choices], [c.label for c in field.choices]):
        if text in names:
            return [names.index(text)]
    return []
