"""The same question of several tasks, answered together: each gets an answer of its own.

What will be answered stands above the form, task by task. A question that changes or goes meanwhile gets
nothing, and its line says so.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import Screen
from textual.widgets import Button

from app.engine.commands import Answer, Engine, EngineError, answerable
from app.text import inert_line, plural
from app.tui.appearing import Appearance
from app.tui.screens.replies import offer_replies
from app.tui.widgets.answer_words import ACTION_WORDS, Action
from app.tui.widgets.drafts import drafts_of
from app.tui.widgets.form_fields import FormFields, read_draft
from app.tui.widgets.host import host_of, in_background, is_alive
from app.tui.widgets.inert import InertLine, InertText, Part, cell, content, joined_line, say
from app.tui.widgets.message_box import MessageBox
from app.tui.widgets.question_card import request_params
from app.tui.widgets.question_form import preview
from app.tui.widgets.raw_form import form_asked
from app.tui.widgets.status_bar import KeyBar
from app.urls import review_url
from storage.records import QuestionRecord, Reader

AT_ONCE: Final = 8
"""Answers on their way at a time."""

_OUTCOMES: Final[dict[str, str]] = {
    "acknowledged": "✓ sent, and the server has it",
    "saved": "✓ saved, delivered as soon as its server can be reached",
    "waiting": "✓ saved; the call goes on once its other questions are answered",
    "refused": "✗ refused by the server, and open again",
    "withdrawn": "✗ not sent: the question changed or vanished",
    "unknown": "? sent, but no reply came",
}
_SUMS: Final[dict[str, str]] = {
    "acknowledged": "sent",
    "saved": "saved, to be delivered",
    "waiting": "saved, waiting for other answers",
    "refused": "refused",
    "withdrawn": "not sent, as the question was gone",
    "unknown": "sent without a reply",
    "failed": "failed",
}
_KEYS: Final = (
    ("esc", "back", "back"),
    ("^S", "accept all", ""),
    ("^O", "show JSON", ""),
    ("^L", "saved replies", ""),
)


class Asked:
    """One of the questions, and what became of it."""

    def __init__(self, question: QuestionRecord) -> None:
        self.question = question
        self.outcome: str | None = None
        """Of `_SUMS`; ``None``: not answered yet."""
        self.said = ""
        self.line = InertText("")

    def show(self, tool: str) -> None:
        """Say which it is: server, tool, task and question."""
        question = self.question
        style = "$text-error" if self.said.startswith("✗") else "$text-success"
        parts: list[Part] = [
            (inert_line(question.task.server, 40), "bold"),
            (" › ", "$text-muted"),
            (inert_line(tool, 40), "bold"),
            f"  {inert_line(question.task.id, 60)}",
            (f"  {inert_line(question.key, 40)}", "$text-muted"),
        ]
        if question.fault:
            parts.append((f"  ! The server's mistake: {inert_line(question.fault, 200)}", "$text-warning"))
        if question.refusal and not self.said:
            parts.append((f"  ! It refused: {inert_line(question.refusal, 200)}", "$text-warning"))
        self.line.show(joined_line(*parts, (f"  {self.said}" if self.said else "", style)))


class TogetherScreen(Screen[None]):
    """Accept, decline or dismiss one question of many tasks."""

    DEFAULT_CSS = """
    TogetherScreen { layout: vertical; background: $background; }
    TogetherScreen > .title { padding: 0 1; }
    TogetherScreen > .asked { height: auto; max-height: 35%; padding: 0 1; scrollbar-size-vertical: 1; }
    TogetherScreen > .frame {
        height: 1fr; border: round $border-blurred; padding: 0 1;
        border-title-color: $text-warning; border-title-style: bold;
    }
    TogetherScreen > .frame:focus-within { border: round $primary; }
    TogetherScreen .frame > VerticalScroll { height: 1fr; scrollbar-size-vertical: 1; }
    TogetherScreen .review { background: $surface; padding: 0 1; margin: 0 0 1 0; }
    TogetherScreen .buttons { height: 1; }
    TogetherScreen .buttons Button { margin: 0 1 0 0; }
    TogetherScreen .buttons .warns { color: $text-warning; }
    TogetherScreen Button:focus { background: $primary; color: $background; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", id="together.back"),
        Binding("ctrl+s", "accept", "Accept all", id="together.accept"),
        Binding("ctrl+o", "show_json", "Show JSON", id="together.json"),
        Binding("ctrl+l", "replies", "Saved replies", id="together.replies"),
        Binding("pageup", "read(-1)", "Read up", show=False, id="together.up"),
        Binding("pagedown", "read(1)", "Read on", show=False, id="together.down"),
    ]

    def __init__(
        self,
        questions: Sequence[QuestionRecord],
        draft_json: str | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """*draft_json* is the draft of the first of them: what is typed here is kept as that."""
        super().__init__()
        self.asked = [Asked(question) for question in questions]
        first = questions[0]
        self.params = request_params(first)
        self.fields: FormFields | None = None
        if answerable(first) == "form":
            self.fields = FormFields(form_asked(self.params), read_draft(draft_json))
        self.sending = False
        self._appearance = Appearance(monotonic)
        self._body = VerticalScroll(can_focus=False)
        self._title = InertLine("", classes="title")
        self._review = InertText("", classes="review")
        self._review.display = False
        self._status = InertText("")
        self._status.display = False
        self._accept = Button(content(""), "success", compact=True)
        self._decline = Button(content(""), compact=True, classes="warns")
        self._dismiss = Button(content(""), compact=True)
        self._close = Button(content("Close"), compact=True)
        self._keys = KeyBar()

    def compose(self) -> ComposeResult:
        """Lay out the list, the form and the buttons."""
        yield self._title
        with VerticalScroll(classes="asked"):
            for asked in self.asked:
                yield asked.line
        servers = sorted({asked.question.task.server for asked in self.asked})
        with Vertical(classes="frame") as frame:
            with self._body:
                with MessageBox():
                    yield InertText(str(self.params.get("message", "")))
                yield from self._asks()
                yield self._review
            yield self._status
            with Horizontal(classes="buttons"):
                yield self._accept
                yield self._decline
                yield self._dismiss
                yield self._close
        frame.border_title = cell(f"{', '.join(servers)} {'asks' if len(servers) == 1 else 'ask'}")
        yield self._keys

    def _asks(self) -> ComposeResult:
        if self.fields is not None:
            yield self.fields
            return
        url = self.params.get("url")
        review = review_url(url if isinstance(url, str) else "")
        yield InertText(review.url or "‹no address›")
        yield InertText("Each task's address is opened by itself: together they can only be declined.")

    def on_mount(self) -> None:
        """Say what will be answered; begin in the form."""
        self._show()
        self.call_after_refresh(self._appearance.seen)
        if self.fields is None or not self.fields.focus_first():
            self.query_one(MessageBox).enter()

    @property
    def waiting(self) -> list[Asked]:
        """Those that are not answered yet and can still be."""
        return [asked for asked in self.asked if asked.outcome is None]

    def _show(self) -> None:
        reader: Reader = host_of(self).reader
        tools = {key: row.tool for key, row in reader.rows([a.question.task for a in self.asked]).items()}
        for asked in self.asked:
            asked.show(tools.get(asked.question.task) or "‹no tool›")
        count = len(self.waiting)
        left = (
            f"{plural(count, 'question')} to be answered together"
            if count
            else "Nothing is left to answer here"
        )
        self._title.show(joined_line((left, "bold")))
        self._keys.show(_KEYS if count else _KEYS[:1])
        for button, word in (
            (self._accept, "Accept"),
            (self._decline, "Decline"),
            (self._dismiss, "Dismiss"),
        ):
            button.label = content(f"{word} {'all ' if count > 1 else ''}{count}")
            button.disabled = self.sending or not count
            button.display = count > 0 or self.sending
        self._accept.display = self._accept.display and self.fields is not None

    def refresh_task(self) -> None:
        """Something has changed: what is no longer asked is not answered. Raises `StorageError`."""
        if self.sending or not self.is_mounted:
            return
        for asked in self.waiting:
            now = host_of(self).reader.question(asked.question.id)
            if now is None or not now.is_open or now.fingerprint != asked.question.fingerprint:
                asked.outcome, asked.said = "withdrawn", "✗ no longer asked; nothing is sent"
                self._pass_on()
        self._show()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Answer, or leave."""
        event.stop()
        if event.button is self._accept:
            self.action_accept()
        elif event.button is self._decline:
            self._give("decline", None)
        elif event.button is self._dismiss:
            self._give("cancel", None)
        elif event.button is self._close:
            self.dismiss(None)

    def action_accept(self) -> None:
        """Accept all with what is filled in; where that is not valid, say why and send nothing."""
        if self.fields is None or self.sending or not self.waiting:
            return
        filled = self.fields.judge()
        if filled is None:
            self._say("Not sent: see what is marked with ✗.", "$text-error")
        else:
            self._give("accept", filled.content_json)

    def action_replies(self) -> None:
        """Show the saved replies; they only fill in the form."""
        if self.fields is not None and not self.sending and self.waiting:
            offer_replies(self.asked[0].question, self.fields)

    def _keep(self) -> None:
        """Keep what is typed, as the draft of the first question that is still asked."""
        if self.fields is not None and self.waiting:
            drafts_of(self.app).keep(self.waiting[0].question.id, self.fields.draft_json)

    def _pass_on(self) -> None:
        """Keep it for the next question when the first has gone, unless that has a draft of its own."""
        typed = self.fields is not None and bool(self.fields.entries)
        if typed and self.waiting and drafts_of(self.app).of(self.waiting[0].question) is None:
            self._keep()

    def action_show_json(self) -> None:
        """Show or hide exactly what each of them would get."""
        self._review.display = not self._review.display and self.fields is not None
        if self._review.display:
            self._show_review()
            self._review.scroll_visible()

    def _show_review(self) -> None:
        assert self.fields is not None
        self._review.show(preview(self.asked[0].question, self.fields))

    def on_form_fields_changed(self, event: FormFields.Changed) -> None:
        """Keep the draft, and the shown JSON true; what was said of the form before is no longer so."""
        event.stop()
        self._appearance.touched()
        if not self.sending:
            self._say("")
        self._keep()
        if self._review.display:
            self._show_review()

    def on_form_fields_grown(self, event: FormFields.Grown) -> None:
        """The fields have come, or take another room."""
        event.stop()
        self._appearance.grown()

    def action_read(self, pages: int) -> None:
        """Scroll what is asked."""
        self._body.scroll_relative(y=pages * max(1, self._body.size.height - 1), animate=False)

    def _give(self, action: Action, content_json: str | None) -> None:
        if self.sending or not self.waiting:
            return
        if not self._appearance.is_settled(self.app):
            self._say("This has only just appeared here: look at it, then press again.", "italic")
            return
        engine = host_of(self).engine
        if engine is None:
            self._say("Still connecting: try again in a moment.", "$text-warning")
            return
        self.sending = True
        for row in self.fields.rows if self.fields is not None else ():
            row.freeze(True)
        self._show()
        self._say(f"{ACTION_WORDS[action].capitalize()}: sending…")
        in_background(self.app, self._send(engine, self.waiting, action, content_json), group="answers")

    async def _send(
        self, engine: Engine, waiting: Sequence[Asked], action: Action, content_json: str | None
    ) -> None:
        app, room, drafts = self.app, asyncio.Semaphore(AT_ONCE), drafts_of(self.app)
        # What is typed must be safe even if saving the answer fails, and no draft may follow the answer.
        await drafts.save()

        async def one(asked: Asked) -> None:
            question = asked.question
            async with room:
                try:
                    delivery = await engine.answer(question.task, [Answer(question, action, content_json)])
                except EngineError as error:
                    gone = error.failure == "closed"
                    asked.outcome, asked.said = "withdrawn" if gone else "failed", f"✗ {error.message}"
                else:
                    asked.outcome, asked.said = delivery.state, _OUTCOMES[delivery.state]
                    if delivery.state not in ("refused", "withdrawn"):
                        drafts.drop(question.id)
                    if delivery.message:
                        asked.said += f". {delivery.message}"

        await asyncio.gather(*(one(asked) for asked in waiting))
        words = f"{ACTION_WORDS[action].capitalize()}: {summed(waiting)}."
        if not is_alive(self):
            say(app, words)
            return
        self.sending = False
        failed = [asked for asked in waiting if asked.outcome == "failed"]
        for asked in failed:
            asked.outcome = None  # it was not saved, so it can be tried again
        self._pass_on()
        for row in self.fields.rows if self.fields is not None else ():
            row.freeze(not failed)
        self._show()
        self._say(words, "$text-error" if failed else "$text-success")
        self._close.focus()

    def _say(self, text: str, style: str = "") -> None:
        self._status.display = bool(text)
        self._status.show(text, style)

    def action_back(self) -> None:
        """Leave; what is typed is the draft of the first question."""
        drafts_of(self.app).save_soon()
        self.dismiss(None)


def summed(answered: Sequence[Asked]) -> str:
    """Return what became of the answers, counted: ``2 sent, 1 refused``."""
    counts = Counter(asked.outcome or "failed" for asked in answered)
    return ", ".join(f"{counts[outcome]} {words}" for outcome, words in _SUMS.items() if counts[outcome])
