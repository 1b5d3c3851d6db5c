"""Saved replies to one question: to fill the form with, never to be sent by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, OptionList
from textual.widgets.option_list import Option

from app.engine.commands import Engine, EngineError
from app.tui.widgets.controls import SafeInput
from app.tui.widgets.form_fields import FormFields, read_draft
from app.tui.widgets.host import host_of, is_alive
from app.tui.widgets.inert import InertText, content, line
from storage.errors import StorageError
from storage.records import QuestionRecord, SavedReply


class RepliesScreen(ModalScreen[str | None]):
    """The result is what to fill in, as a draft's JSON; ``None``: nothing."""

    DEFAULT_CSS = """
    RepliesScreen { align: center middle; background: $background 60%; }
    RepliesScreen > Vertical {
        width: 70; max-width: 96%; height: auto; max-height: 94%;
        padding: 1 2; background: $panel; border: round $border;
    }
    RepliesScreen OptionList { height: auto; max-height: 8; margin: 1 0; border: none; }
    RepliesScreen Horizontal { height: 1; margin: 0 0 1 0; }
    RepliesScreen Input { width: 1fr; background: $surface; }
    RepliesScreen Button { margin: 0 1 0 0; min-width: 9; }
    RepliesScreen Button:focus { background: $primary; color: $background; text-style: bold; }
    RepliesScreen .problem { color: $text-error; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Back", id="replies.back")]

    def __init__(self, question: QuestionRecord, draft_json: str | None) -> None:
        """Take the *question* and what is typed in its form, secrets left out; ``None``: nothing is."""
        super().__init__()
        self._question = question
        self._draft_json = draft_json
        self._replies: Sequence[SavedReply] = ()
        self._words = InertText("")
        self._list = OptionList(markup=False, compact=True)
        self._named = SafeInput(compact=True, placeholder="a name", select_on_focus=False)
        self._problem = InertText("", classes="problem")
        self._fill = Button(content("Fill in"), "success", compact=True)
        self._delete = Button(content("Delete"), compact=True)
        self._save = Button(content("Save what is typed"), compact=True)
        self._back = Button(content("Back"), compact=True)

    def compose(self) -> ComposeResult:
        """Lay out what is saved, and the line to save more."""
        with Vertical():
            yield self._words
            yield self._list
            with Horizontal():
                yield self._fill
                yield self._delete
                yield self._back
            if self._draft_json is not None:
                with Horizontal():
                    yield self._named
                    yield self._save
            yield self._problem

    def on_mount(self) -> None:
        """Show what is saved."""
        self._show()
        (self._list if self._replies else self._named if self._draft_json is not None else self._back).focus()

    def _show(self) -> None:
        try:
            self._replies = host_of(self).reader.replies(self._question.fingerprint)
        except StorageError as error:
            self._tell(f"The store can't be read: {error}")
        there = bool(self._replies)
        self._words.show(
            "Saved replies to this question. They only fill in the form: you look at it and send it."
            if there
            else "No reply to this question is saved yet. Fill in the form, then save it here under a name."
        )
        self._list.set_options([Option(line(reply.name, limit=60)) for reply in self._replies])
        self._list.highlighted = 0 if there else None
        for widget in (self._list, self._fill, self._delete):
            widget.display = there
        self._problem.display = bool(self._problem.text)

    @property
    def _chosen(self) -> SavedReply | None:
        place = self._list.highlighted
        return self._replies[place] if place is not None and place < len(self._replies) else None

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Fill in what was picked."""
        event.stop()
        self._fill_in()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter behind the name goes to the button."""
        event.stop()
        self._save.focus()

    async def on_button_pressed(self, event: Button.Pressed) -> None:
        """Fill in, delete, save or leave."""
        event.stop()
        if event.button is self._fill:
            self._fill_in()
        elif event.button is self._back:
            self.dismiss(None)
        else:
            engine = host_of(self).engine
            if engine is None:
                self._tell("Still connecting: try again in a moment.")
            elif event.button is self._delete:
                await self._do_delete(engine)
            else:
                await self._do_save(engine)

    def _fill_in(self) -> None:
        if self._chosen is not None:
            self.dismiss(self._chosen.draft_json)

    async def _do_delete(self, engine: Engine) -> None:
        if self._chosen is not None:
            await engine.delete_reply(self._question, self._chosen.name)
            self._tell("")
            self._show()
            if not self._replies:
                self._back.focus()

    async def _do_save(self, engine: Engine) -> None:
        if not self._named.value.strip():
            self._tell("A name is needed.")
            self._named.focus()
            return
        try:
            await engine.save_reply(self._question, self._named.value.strip(), self._draft_json or "{}")
        except EngineError as error:
            self._tell(error.message)
            return
        self._named.value = ""
        self._tell("")
        self._show()
        self._list.focus()

    def _tell(self, text: str) -> None:
        self._problem.show(text)
        self._problem.display = bool(text)

    def action_leave(self) -> None:
        """Fill in nothing."""
        self.dismiss(None)


def offer_replies(question: QuestionRecord, fields: FormFields) -> None:
    """Show what is saved for *question*; what the person picks is filled into *fields*, and stays there to
    be looked at.
    """

    def fill(draft_json: str | None) -> None:
        if draft_json is not None and is_alive(fields):
            fields.take(read_draft(draft_json))
            fields.focus_first()

    fields.app.push_screen(RepliesScreen(question, fields.draft_json), fill)
