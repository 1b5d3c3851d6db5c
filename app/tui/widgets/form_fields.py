"""The fields of a form, one below the other: what was typed, and what it comes to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message

from app.forms import Entry, Field, Filled
from app.forms.filling import entry_for
from app.forms.history import History
from app.forms.jsonvalues import Malformed, decode
from app.forms.redacting import NOT_KEPT
from app.tui.widgets.choice_rows import ChoiceRow, ChoicesRow, ConstantRow
from app.tui.widgets.field_rows import UNTOUCHED, FieldRow, State
from app.tui.widgets.inert import InertText
from app.tui.widgets.raw_form import NAME, AnyForm, RawForm
from app.tui.widgets.text_rows import ListRow, TextRow

NARROW = 56
"""Columns below which a label stands above its control."""


SHORT = 30
"""Lines of the screen below which no line between the fields is left blank."""


def make_row(field: Field, state: State = UNTOUCHED) -> FieldRow:
    """Return the row for *field*."""
    if field.kind in ("boolean", "choice"):
        return ChoiceRow(field, state)
    if field.kind == "choices":
        return ChoicesRow(field, state)
    if field.kind == "list":
        return ListRow(field, state)
    if field.kind == "constant":
        return ConstantRow(field, state)
    return TextRow(field, state)


class FormFields(Vertical):
    """All rows of a form; the same for a question and for a tool's arguments."""

    DEFAULT_CSS = """
    FormFields { height: auto; }
    FormFields > .whole { color: $text-error; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        # With priority: the app has moved the focus before it hands out the next key, however quickly that
        # comes. Else what is typed right behind a Tab lands in the field that was left.
        Binding("tab", "app.focus_next", "Next field", show=False, priority=True, id="form.next"),
        Binding(
            "shift+tab", "app.focus_previous", "Field before", show=False, priority=True, id="form.before"
        ),
        # With priority: a text area has an undo of its own, which knows nothing of the other fields.
        Binding("ctrl+z", "undo", "Undo", show=False, priority=True, id="form.undo"),
        Binding("ctrl+y", "redo", "Redo", show=False, priority=True, id="form.redo"),
    ]

    class Grown(Message):
        """The form takes another room: its fields have come, or it was laid out anew."""

    class Changed(Message):
        """What was typed changed."""

        def __init__(self, fields: FormFields) -> None:
            super().__init__()
            self.fields = fields

        @property
        def control(self) -> FormFields:
            """The fields."""
            return self.fields

    def __init__(self, form: AnyForm, draft: Mapping[str, Entry] | None = None) -> None:
        super().__init__()
        self.form = form
        given = draft or {}
        self.rows = [make_row(field, _fitting(field, given)) for field in form.fields]
        self._history: History[State] = History()
        self._known = {row.field.name: row.state for row in self.rows}
        """The states up to which the history reaches."""
        self._judged = False
        self._whole = InertText("", classes="whole")
        self._whole.display = False

    def compose(self) -> ComposeResult:
        if not self.rows:
            yield InertText("Nothing to fill in.", "$text-muted")
        # At once, not at the first resize: the form would be laid out twice before anybody sees it.
        for row in self.rows:
            row.set_class(self.app.size.height < SHORT, "tight")
        yield from self.rows
        yield self._whole

    def on_resize(self, event: events.Resize) -> None:
        """Use little room well: labels above the controls, no blank lines."""
        for row in self.rows:
            row.set_class(event.size.width < NARROW, "stacked")
            row.set_class(self.app.size.height < SHORT, "tight")
        self.post_message(self.Grown())

    @property
    def entries(self) -> dict[str, Entry]:
        """What was typed, by field; a field that nobody touched is not in it."""
        return {row.field.name: row.state for row in self.rows if row.state is not UNTOUCHED}

    @property
    def draft_json(self) -> str | None:
        """What was typed, to be kept; secrets are not. ``None``: nothing."""
        kept = {
            row.field.name: row.state
            for row in self.rows
            if row.state is not UNTOUCHED and not row.field.secret
        }
        return json.dumps(kept, ensure_ascii=False) if kept else None

    def fill(self) -> Filled:
        """Return what the form comes to, without showing anything."""
        return self.form.fill(self.entries)

    def judge(self) -> Filled | None:
        """Show an error beside each field that has one; returns the content when there is none.

        From the first time on, errors follow what is typed. The first bad field gets the focus.
        """
        self._judged = True
        filled = self.fill()
        self._show(filled)
        if filled.ok:
            return filled
        for row in self.rows:
            if row.error:
                row.focus_control()
                # Once more when the errors have taken their lines: they have moved what was in sight.
                self.call_after_refresh(row.scroll_visible, animate=False)
                break
        return None

    def _show(self, filled: Filled) -> None:
        names = {row.field.name for row in self.rows}
        for row in self.rows:
            name = row.field.name
            row.show_error(filled.errors.get(name, ""), _unsaid(row.field, filled.warnings.get(name, "")))
        rest = [text for name, text in filled.errors.items() if name not in names]
        self._whole.display = bool(rest)
        self._whole.show("\n".join(f"✗ {text}" for text in rest))

    def on_field_row_changed(self, event: FieldRow.Changed) -> None:
        """Keep the shown errors true, and tell whoever keeps the draft."""
        event.stop()
        self._remember(event.row)
        self._tell()

    def _tell(self) -> None:
        if self._judged:
            self._show(self.fill())
        self.post_message(self.Changed(self))

    def _remember(self, row: FieldRow) -> None:
        name = row.field.name
        if row.state != self._known[name]:
            self._history.record(name, self._known[name], row.state)
            self._known[name] = row.state

    def become(self, draft: Mapping[str, Entry]) -> None:
        """Hold what *draft*, typed elsewhere, holds and nothing else. Secrets are in no draft, and stay."""
        if any(row.frozen for row in self.rows):
            return
        for row in self.rows:
            state = _fitting(row.field, draft)
            if state != row.state and not row.field.secret and row.field.kind != "constant":
                row.put(state)
                self._remember(row)
        self._history.pause()
        self._tell()

    def take(self, draft: Mapping[str, Entry]) -> None:
        """Fill in what *draft* holds, as if it had been typed; the other fields stay as they are."""
        if any(row.frozen for row in self.rows):
            return
        for row in self.rows:
            state = _fitting(row.field, draft)
            if state is not UNTOUCHED and row.field.kind != "constant":
                self._remember(row)
                row.put(state)
                self._history.pause()
                self._remember(row)
        self._history.pause()
        self._tell()

    def action_undo(self) -> None:
        """Take back the last change, in whichever field it was made."""
        for row in self.rows:
            self._remember(row)  # a change may still be on its way here
        self._set_back(self._history.undo)

    def action_redo(self) -> None:
        """Make the last change that was taken back once more."""
        self._set_back(self._history.redo)

    def _set_back(self, step: Callable[[], tuple[str, State] | None]) -> None:
        if any(row.frozen for row in self.rows):
            return
        found = step()
        if found is None:
            return
        name, state = found
        row = next(row for row in self.rows if row.field.name == name)
        row.put(state)
        self._known[name] = state
        row.focus_control()
        self._tell()

    def on_field_row_left(self, event: FieldRow.Left) -> None:
        """Go on to the next field; from the last one nowhere, so that Enter alone never reaches a button."""
        event.stop()
        self.go_on(event.row)

    def go_on(self, row: FieldRow) -> None:
        """Give the focus to the field below *row*, at once."""
        place = self.rows.index(row)
        for below in self.rows[place + 1 :]:
            if below.field.kind != "constant":
                below.focus_control()
                return

    def focus_first(self) -> bool:
        """Give the focus to the first field that can be filled; ``False`` when there is none."""
        for row in self.rows:
            if row.field.kind != "constant":
                row.focus_control()
                return True
        return False


def _unsaid(field: Field, told: str) -> str:
    """Return what *told* (`Filled.warnings`) says beyond what its row shows anyway."""
    shown = [*field.warnings, f"its default breaks its own schema: {field.default_problem}"]
    for words in shown:
        told = told.removeprefix(words).removeprefix("; ")
    return told


def _fitting(field: Field, draft: Mapping[str, Entry]) -> Any:
    """Return what *draft* holds for *field*, where a row can show it; else untouched."""
    if field.name not in draft:
        return UNTOUCHED
    entry = draft[field.name]
    if entry is None or isinstance(entry, str):
        return entry
    return [text for text in entry if isinstance(text, str)] if isinstance(entry, list) else UNTOUCHED


def read_draft(draft_json: str | None) -> dict[str, Entry]:
    """Return a stored draft; one that can't be read counts as nothing."""
    try:
        draft = json.loads(draft_json or "{}")
    except ValueError:
        return {}
    return draft if isinstance(draft, dict) else {}


def entries_of(form: AnyForm, content_json: str) -> dict[str, Entry]:
    """Return the entries that give this content again: for an answer that its server refused.

    Secrets are not among them, nor is a text in which words stand in a secret's place: they are typed again.
    """
    if isinstance(form, RawForm):
        return {} if NOT_KEPT in content_json else {NAME: content_json}
    try:
        content = decode(content_json)
    except Malformed:
        return {}
    if not isinstance(content, dict):
        return {}
    return {
        field.name: entry_for(field, content[field.name])
        for field in form.fields
        if field.name in content and not field.secret
    }
