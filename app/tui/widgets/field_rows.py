"""One row of a form: label, control, and what there is to say about it.

A row knows four things apart: untouched, cleared, null, and a value. What a text *means* is decided in
`app.forms`; a row only keeps what was typed.
"""

from __future__ import annotations

from enum import Enum
from typing import ClassVar, Final, Literal, Protocol, runtime_checkable

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.style import Style
from textual.widget import Widget

from app.forms import Entry, Field
from app.forms.model import Absent
from app.text import inert, inert_line
from app.tui.widgets.inert import InertText, Part, joined


class Untouched(Enum):
    """The state of a field that nobody has touched."""

    UNTOUCHED = "untouched"


UNTOUCHED: Final = Untouched.UNTOUCHED
State = Entry | Literal[Untouched.UNTOUCHED]


TITLE_LIMIT: Final = 120
"""Characters of a label; the JSON has all of it."""

ABOUT_LIMIT: Final = 2000
"""Characters of a description."""

_WORD: Final = Style(underline=True, dim=True)


class RowLabel(InertText):
    """A label, with the words that set a field back or make it null."""


@runtime_checkable
class GoesOn(Protocol):
    """What holds rows."""

    def go_on(self, row: FieldRow) -> None:
        """Give the focus to the field below *row*."""


class FieldRow(Widget):
    """A field of a form; subclasses bring the control."""

    DEFAULT_CSS = """
    FieldRow { layout: horizontal; height: auto; margin: 0 0 1 0; }
    FieldRow.tight { margin: 0; }
    FieldRow > .label { width: 22; padding: 0 1 0 0; }
    FieldRow > .body { width: 1fr; max-width: 100; height: auto; }
    FieldRow Input, FieldRow Input:focus { width: 1fr; background: $panel; }
    FieldRow TextArea { width: 1fr; height: auto; min-height: 3; max-height: 8; background: $panel; }
    FieldRow .note { color: $text-muted; }
    FieldRow.stacked { layout: vertical; }
    FieldRow.stacked > .label { width: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "untouch", "Untouch", id="field.untouch"),
        Binding("ctrl+n", "make_null", "Null", id="field.null"),
    ]

    class Changed(Message):
        """What was typed changed."""

        def __init__(self, row: FieldRow) -> None:
            super().__init__()
            self.row = row

    class Left(Message):
        """Enter was pressed in a single line: on to the next field."""

        def __init__(self, row: FieldRow) -> None:
            super().__init__()
            self.row = row

    def __init__(self, field: Field, state: State = UNTOUCHED) -> None:
        super().__init__()
        self.field = field
        self.state: State = state
        self.frozen = False
        """Nothing can be changed."""
        self._error = ""
        self._remark = ""
        self._words: tuple[str, ...] = ()
        self._told: tuple[object, ...] = ()
        """What the note depends on, as it was last shown: most keys change nothing in it."""
        self._label = RowLabel(self._label_content(), classes="label")
        self._note = InertText(self._note_content(), classes="note")

    def compose(self) -> ComposeResult:
        # Few widgets a row: a form of thirty fields is laid out again with every line that comes or goes.
        yield self._label
        with Vertical(classes="body"):
            yield from self.controls()
            yield self._note

    def controls(self) -> ComposeResult:
        """Yield the control that a person fills in."""
        raise NotImplementedError

    def show_state(self) -> None:
        """Make the control show `state`."""
        raise NotImplementedError

    def freeze(self, frozen: bool) -> None:
        """Let nothing be changed (or again); what is typed can still be read and copied."""
        self.frozen = frozen

    def focus_control(self) -> None:
        """Bring the control into view and give it the focus."""
        for widget in self.query("*"):
            if widget.focusable and widget.display:
                # At once: a key that is typed ahead must not land elsewhere.
                self.screen.set_focus(widget)
                return
        self.scroll_visible()

    @property
    def fallback(self) -> Entry | None:
        """The default as an entry; ``None`` when there is none, or it is null."""
        entry = self.field.initial()
        return None if isinstance(entry, Absent) else entry

    def put(self, state: State) -> None:
        """Show *state*, as if it had been typed; tells nobody."""
        self.state = state
        self._words = ()
        self.show_state()
        self.refresh_note()

    def touched(self, entry: Entry) -> None:
        """Take what was typed."""
        self.state = entry
        self.refresh_note()
        self.post_message(self.Changed(self))

    def action_untouch(self) -> None:
        """Go back to untouched: the default, where there is one, else not answered."""
        if self.frozen:
            return
        self.put(UNTOUCHED)
        self.post_message(self.Changed(self))

    def action_make_null(self) -> None:
        """Answer with null, where the field admits it."""
        if self.frozen or not self.field.nullable:
            return
        self.put(None)
        self.post_message(self.Changed(self))

    def on_click(self, event: events.Click) -> None:
        """The two words beside the label, for the mouse; the keys do the same."""
        wanted = event.style.meta.get("field")
        if wanted == "untouch":
            self.action_untouch()
        elif wanted == "null":
            self.action_make_null()

    def show_error(self, error: str, remark: str = "") -> None:
        """Show why the value is refused (empty: it is not), and a remark about it."""
        if (error, remark) == (self._error, self._remark):
            return
        self._error, self._remark = error, remark
        self.refresh_note()

    def tell(self, word: str) -> None:
        """Say what became of what the person did here; that stands until another state is put."""
        if word not in self._words:
            self._words += (word,)
            self.refresh_note()

    @property
    def error(self) -> str:
        """The reason that is shown; empty when there is none."""
        return self._error

    def refresh_note(self) -> None:
        """Say again how the field stands."""
        stands = (self._state_words(), self.state is None, self.state is UNTOUCHED)
        told = (*stands, self._error, self._remark, self._words)
        if told == self._told:
            return
        self._told = told
        self._note.show(self._note_content())
        self._label.show(self._label_content())

    def _label_content(self) -> Content:
        style = "bold $text-error" if self._error else "bold"
        parts: list[Content] = [joined((inert_line(self.field.title or "‹no name›", TITLE_LIMIT), style))]
        if self.field.required:
            parts.append(joined((" *", "bold $text-warning")))
        for word, wanted in self._label_words():
            parts.append(joined("  "))
            parts.append(Content.assemble((word, _WORD + Style.from_meta({"field": wanted}))))
        return Content("").join(parts)

    def _label_words(self) -> list[tuple[str, str]]:
        words = [("reset", "untouch")] if self.state is not UNTOUCHED else []
        if self.field.nullable and self.state is not None:
            words.append(("null", "null"))
        return words

    def _state_words(self) -> Part:
        field, state = self.field, self.state
        if state is UNTOUCHED:
            if not field.has_default:
                return ("‹not answered›", "italic")
            shown = "‹null›" if field.default is None else "‹empty›" if field.default in ("", []) else ""
            return (f"default {shown}".rstrip(), "italic $text-accent")
        if state is None:
            return ("‹null›", "bold italic")
        return ("‹empty›", "italic") if state in ("", []) else ""

    def _note_content(self) -> Content:
        field = self.field
        parts: list[Part] = [(f"✗ {self._error}", "$text-error"), "\n"] if self._error else []
        words = self._state_words()
        if words:
            parts += [words, " · "]
        if field.hint and field.kind != "boolean":
            parts += [field.hint, " · "]
        if field.description:
            if parts and parts[-1] == " · ":
                parts[-1] = "\n"
            parts += [inert(field.description, ABOUT_LIMIT), "\n"]
        elif parts:
            parts[-1] = "\n"
        warnings = [*field.warnings, *([self._remark] if self._remark else []), *self._words]
        if field.default_problem and self.state is UNTOUCHED:
            warnings.append(f"the default is not valid here: {field.default_problem}")
        for warning in warnings:
            parts += [(f"! {warning}", "$text-warning"), "\n"]
        return joined(*parts[:-1])
