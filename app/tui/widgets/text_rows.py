"""The rows in which text is typed: on one line, on several, or in the person's own editor."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, TextArea

from app.forms import Entry, Field
from app.forms.secrets import WARNING
from app.text import is_inert, plural
from app.tui.widgets.controls import LINE_ENDS, MaskedTextArea, PasteAltered, SafeInput, SafeTextArea
from app.tui.widgets.editor import EditorFailed, edited
from app.tui.widgets.field_rows import UNTOUCHED, FieldRow, GoesOn, State
from app.tui.widgets.host import in_background
from app.tui.widgets.inert import Part, say


class TextRow(FieldRow):
    """Text, numbers and dates: a single line, or several where the schema or a paste says so."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "go_on", "Next field", show=False, priority=True, id="field.next"),
        Binding("ctrl+g", "edit", "Your editor", id="field.editor"),
    ]

    def __init__(self, field: Field, state: State = UNTOUCHED) -> None:
        super().__init__(field, state)
        text = self._text()
        self.control: SafeInput | SafeTextArea
        if self._is_long or ("\n" in text and not field.secret):
            self.control = self._area(text)
        else:
            self.control = SafeInput(
                text,
                compact=True,
                password=field.secret,
                placeholder=self._placeholder(),
                select_on_focus=False,
            )
        self._shown = text

    @property
    def _is_long(self) -> bool:
        return self.field.multiline or self.field.kind in ("json", "list")

    @property
    def _is_masked(self) -> bool:
        # JSON with a secret in it is not: the rest of it must be seen.
        return self.field.secret and self.field.kind != "json"

    def _area(self, text: str) -> SafeTextArea:
        if self._is_masked:
            return MaskedTextArea(text, placeholder=self._placeholder())
        return SafeTextArea(text, compact=True, placeholder=self._placeholder())

    def _state_words(self) -> Part:
        if not self._is_masked or self.state is UNTOUCHED or not self.state:
            return super()._state_words()
        if isinstance(self.state, list):
            return f"{plural(len(self.state), 'line')}, masked"
        if not self._is_long and "\n" not in self.state:
            return super()._state_words()
        lines = plural(self.state.removesuffix("\n").count("\n") + 1, "line")
        return f"{lines}, masked" + (", with a line end behind it" if self.state.endswith("\n") else "")

    def controls(self) -> ComposeResult:
        yield self.control

    def _text(self) -> str:
        entry = self.fallback if self.state is UNTOUCHED else self.state
        text = "\n".join(entry) if isinstance(entry, list) else entry or ""
        # A default that holds control characters is described, never put into a control: it would be drawn
        # raw, and go back changed.
        return text if is_inert(text) else ""

    def _placeholder(self) -> str:
        return "‹null›" if self.state is None else ""

    def show_state(self) -> None:
        text = self._shown = self._text()
        self.control.placeholder = self._placeholder()
        if isinstance(self.control, SafeInput):
            if "\n" in text and not self.field.secret:
                self._become_area(text)
                return
            with self.control.prevent(Input.Changed):
                self.control.value = text
            self.control.cursor_position = len(text)
        else:
            with self.control.prevent(TextArea.Changed):
                self.control.load_text(text)
            self.control.move_cursor(self.control.document.end)

    def _become_area(self, text: str) -> None:
        line = self.control
        self.control = self._area(text)
        had_focus = line.has_focus
        self.query_one(".body").mount(self.control, before=line)
        line.remove()
        if had_focus:
            self.control.focus()
            self.control.move_cursor(self.control.document.end)

    def _typed(self, text: str) -> None:
        if text == self._shown:
            return
        if self.frozen:
            # The focus stays where it is: moved away, the next keys typed would be commands of the inbox.
            self.show_state()
            return
        self._shown = text
        if not text:
            self._words = ()
        self.control.placeholder = ""
        self.touched(self._entry(text))

    def _entry(self, text: str) -> Entry:
        return text

    @property
    def has_editor(self) -> bool:
        """Say whether the text may be written in the person's editor: a secret is never put into a file."""
        return self.field.kind in ("text", "list", "json") and not self._may_hold_secret

    @property
    def _may_hold_secret(self) -> bool:
        # Of JSON that is all of the answer, the warning alone says it: it is kept, without the secret.
        return self.field.secret or WARNING in self.field.warnings

    def _label_words(self) -> list[tuple[str, str]]:
        words = super()._label_words()
        # Where only a line is asked for, the key alone: the word would stand beside every field.
        if self.has_editor and (self.field.multiline or self.field.kind in ("list", "json")):
            words.append(("editor", "edit"))
        return words

    def on_click(self, event: events.Click) -> None:
        """The word beside the label, for the mouse; the other two are the base's, which is called, too."""
        if event.style.meta.get("field") == "edit":
            self.action_edit()

    def action_edit(self) -> None:
        """Write the text in the person's own editor."""
        if self.frozen:
            return
        if self._may_hold_secret:
            self.tell("no editor here: it would need the secret in a file")
        elif self.has_editor:
            in_background(self.app, self._edit(), group="editor")

    async def _edit(self) -> None:
        app, before = self.app, self._shown
        try:
            text = await edited(app, before, "json" if self.field.kind == "json" else "txt")
        except EditorFailed as failure:
            say(app, str(failure), "error", timeout=10)
            return
        if text != before:
            # Also where the question has gone meanwhile: what was written must not be lost.
            self.put(self._entry(text))
            self.post_message(self.Changed(self))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Take each key; not those that a line got on its way out, when its text is already in an area."""
        event.stop()
        if event.input is self.control:
            self._typed(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes on to the next field; it never sends anything."""
        event.stop()
        self.post_message(self.Left(self))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enter goes on only from a single line; in several it begins another."""
        return action != "go_on" or (isinstance(self.control, SafeInput) and self.control.has_focus)

    def action_go_on(self) -> None:
        """Go on to the next field before the next key is handed out."""
        form = next((above for above in self.ancestors if isinstance(above, GoesOn)), None)
        if form is not None:
            form.go_on(self)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Take each key."""
        event.stop()
        self._typed(event.text_area.text)

    def on_safe_input_several_lines(self, event: SafeInput.SeveralLines) -> None:
        """Keep every line that was pasted, where the field can hold them."""
        event.stop()
        text = event.text
        if self.frozen:
            return
        if self.field.kind != "text":
            event.input.value = " ".join(part for part in text.split("\n") if part)
            self.tell("the lines of the paste are on one line now")
            return
        self._become_area(text)
        self._typed(text)

    def on_paste_altered(self, event: PasteAltered) -> None:
        """Say what was not taken to the letter: behind a mask nobody would see it."""
        event.stop()
        how = [word for word in event.how if word != LINE_ENDS or self.field.kind == "text"]
        if not self.frozen:
            for word in how:
                self.tell(word)


class ListRow(TextRow):
    """A list of free strings: one a line."""

    def _entry(self, text: str) -> Entry:
        return text.removesuffix("\n").split("\n") if text else []
