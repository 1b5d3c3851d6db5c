"""A question in form mode: fields to fill in, and three ways to answer (elicitation, "Form mode")."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Button

from app.engine.commands import Answer
from app.forms.redacting import without_secrets
from app.text import byte_size
from app.tui.widgets.drafts import drafts_of
from app.tui.widgets.form_fields import FormFields, entries_of, read_draft
from app.tui.widgets.inert import InertText, content
from app.tui.widgets.json_view import response_content
from app.tui.widgets.question_card import QuestionCard
from app.tui.widgets.raw_form import form_asked
from storage.records import QuestionRecord

MASK: Final = "••••••"


class QuestionForm(QuestionCard):
    """Asks for content."""

    DEFAULT_CSS = """
    QuestionForm > .buttons Button { min-width: 9; }
    QuestionForm .review { background: $surface; padding: 0 1; margin: 0 0 1 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "accept", "Accept", id="question.accept"),
        Binding("ctrl+o", "show_json", "Show JSON", id="question.json"),
        Binding("ctrl+l", "replies", "Saved replies", id="question.replies"),
    ]

    def __init__(
        self,
        question: QuestionRecord,
        draft_json: str | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(question, monotonic=monotonic)
        form = form_asked(self.params)
        draft = read_draft(draft_json)
        if not draft and question.state == "refused" and question.response_json:
            sent = response_content(question.response_json)
            draft = entries_of(form, sent) if sent is not None else {}
        self.fields = FormFields(form, draft)
        self._review = InertText("", classes="review")
        self._review.display = False
        self._json = Button(content("Show JSON"), compact=True, classes="json")
        self._replies = Button(content("Replies…"), compact=True)
        self._copy = Button(content("Copy what you typed"), compact=True, classes="copy")
        self._copy.display = False

    def body(self) -> ComposeResult:
        yield self.fields
        yield self._review

    def buttons(self) -> ComposeResult:
        yield Button(content("Accept ^S"), "success", compact=True, classes="answer accept")
        yield Button(content("Decline"), compact=True, classes="answer decline warns")
        yield Button(content("Dismiss"), compact=True, classes="answer dismiss")
        yield self._json
        yield self._replies
        yield self._copy

    @property
    def dirty(self) -> bool:
        return bool(self.fields.entries)

    def hold(self, locked: bool) -> None:
        for row in self.fields.rows:
            row.freeze(locked)
        self._copy.display = self.phase == "gone" and self.dirty
        self._replies.display = self.phase == "asking" or not locked

    def answer_content(self) -> tuple[bool, str | None]:
        filled = self.fields.judge()
        return (False, None) if filled is None else (True, filled.content_json)

    def focus_form(self) -> None:
        if not self.fields.focus_first():
            super().focus_form()

    def on_form_fields_changed(self, event: FormFields.Changed) -> None:
        """Keep the draft, and the shown JSON true; what was said of the form before is no longer so."""
        event.stop()
        self._appearance.touched()
        if self._is_passing:
            self._say("")
        drafts_of(self.app).keep(self.question.id, self.fields.draft_json)
        if self._review.display:
            self._show_review()

    def on_form_fields_grown(self, event: FormFields.Grown) -> None:
        """The fields have come, or take another room."""
        event.stop()
        self._appearance.grown()

    def take_draft(self) -> None:
        """Show the draft anew: it was typed elsewhere."""
        if self.phase == "asking":
            self.fields.become(read_draft(drafts_of(self.app).of(self.question)))

    def on_descendant_blur(self, _event: events.DescendantBlur) -> None:
        """A field was left: save at once."""
        drafts_of(self.app).save_soon()

    async def on_unmount(self) -> None:
        """The card goes, or the program ends: save what is typed."""
        await drafts_of(self.app).save()

    def pressed(self, button: Button) -> None:
        """Toggle the JSON; everything else is the card's."""
        if button is self._json:
            self.action_show_json()
        elif button is self._replies:
            self.action_replies()
        elif button is self._copy:
            self.app.copy_to_clipboard(self.fields.draft_json or "")
            self._say("Copied.")
        else:
            super().pressed(button)

    def action_replies(self) -> None:
        """Show the saved replies; they only fill in the form."""
        if self.phase == "asking":
            from app.tui.screens.replies import offer_replies

            offer_replies(self.question, self.fields)

    def action_show_json(self) -> None:
        """Show or hide exactly what Accept would send."""
        self._review.display = not self._review.display
        self._json.label = content("Hide JSON" if self._review.display else "Show JSON")
        if self._review.display:
            self._show_review()
            self._review.scroll_visible()

    def _show_review(self) -> None:
        self._review.show(preview(self.question, self.fields))


def preview(question: QuestionRecord, fields: FormFields) -> str:
    """Return the response as Accept would send it, or why it would not; only secrets are not shown."""
    filled = fields.fill()
    if not filled.ok:
        wrong = [f"{name or 'the form'}: {why}" for name, why in filled.errors.items()]
        return "Not valid yet, so nothing would be sent:\n" + "\n".join(wrong)
    response = Answer(question, "accept", filled.content_json).response_json
    head = f"Accept sends exactly this, {byte_size(len(response.encode('utf-8', 'surrogatepass')))}"
    shown = without_secrets(question.request_json, response, instead=MASK)
    if shown is None:
        return f"{head}:\n{response}"
    return f"{head} (but for the secrets, which are not shown):\n{shown}"
