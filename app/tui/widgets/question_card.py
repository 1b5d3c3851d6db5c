"""A question, in a frame that says who asks: what all kinds of questions share.

A card belongs to one stored question (one fingerprint). It never turns into another one: when its question
changes or goes, the card says so, its buttons go dead, and what was typed stays to be read and copied.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Button

from app.engine.commands import Delivery, Engine, EngineError
from app.text import inert_line
from app.tui.appearing import Appearance
from app.tui.widgets.answer_words import ACTION_WORDS, DELIVERY_WORDS, Action, why_gone
from app.tui.widgets.delivering import deliver
from app.tui.widgets.host import host_of, in_background, is_alive, let_keys_act
from app.tui.widgets.inert import InertText, cell, content
from app.tui.widgets.message_box import MessageBox
from storage.records import QuestionRecord

Phase = Literal["asking", "sending", "answered", "gone"]


class QuestionCard(Vertical):
    """One question; subclasses bring the body and the buttons."""

    DEFAULT_CSS = """
    QuestionCard {
        height: auto;
        border: round $border-blurred;
        border-title-color: $text-warning;
        border-title-style: bold;
        border-subtitle-color: $text-muted;
        padding: 0 1;
        margin: 0 0 1 0;
    }
    QuestionCard:focus-within { border: round $primary; }
    QuestionCard.gone { border-title-color: $text-muted; }
    QuestionCard > .fields { height: auto; scrollbar-size-vertical: 1; }
    QuestionCard .notice { color: $text-warning; margin: 0 0 1 0; }
    QuestionCard .status { margin: 0; }
    QuestionCard > .buttons { height: 1; }
    QuestionCard > .buttons Button { margin: 0 1 0 0; min-width: 11; }
    QuestionCard Button:focus { background: $primary; color: $background; text-style: bold; }
    QuestionCard .buttons .warns { color: $text-warning; }
    QuestionCard .buttons .danger { color: $text-error; }
    QuestionCard.gone > .buttons .answer { text-style: dim; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "accept", "Accept", id="question.accept"),
        Binding("pageup", "read(-1)", "Read up", show=False, id="question.up"),
        Binding("pagedown", "read(1)", "Read on", show=False, id="question.down"),
    ]

    class Closed(Message):
        """A person has read what a dead card says: it may go."""

        def __init__(self, card: QuestionCard) -> None:
            super().__init__()
            self.card = card

    class Unanswered(Message):
        """An answer did not get through: how the question stands now is to be read again."""

    def __init__(self, question: QuestionRecord, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.question = question
        self.phase: Phase = "asking"
        self._focus_wanted = False
        self._most = 0
        self._is_passing = False
        self._appearance = Appearance(monotonic)
        self._notice = InertText("", classes="notice")
        self._status = InertText("", classes="status")
        self._status.display = False
        self._body = VerticalScroll(classes="fields", can_focus=False)
        self._message = MessageBox()
        self._close = Button(content("Close"), compact=True, classes="close")
        self._close.display = False
        self.border_title = cell(f"{question.task.server} asks")
        self.border_subtitle = cell(inert_line(question.key, 40))

    # what a subclass brings

    def body(self) -> ComposeResult:
        """Yield what is asked, below the message."""
        yield from ()

    def buttons(self) -> ComposeResult:
        """Yield the ways to answer."""
        yield from ()

    @property
    def message(self) -> str:
        """What the server says, as it came."""
        text = self.params.get("message")
        return text if isinstance(text, str) else ""

    @property
    def dirty(self) -> bool:
        """Say whether something is typed that would be missed."""
        return False

    def answer_content(self) -> tuple[bool, str | None]:
        """Return whether the card may be accepted as it stands, and the content to send with it."""
        return True, None

    def take_draft(self) -> None:
        """Show the draft anew: it was typed elsewhere."""

    def hold(self, locked: bool) -> None:
        """Let nothing be changed while an answer is on its way, or after."""

    # the life of a card

    @property
    def params(self) -> Mapping[str, Any]:
        """The request's parameters; empty where they can't be read."""
        return request_params(self.question)

    def compose(self) -> ComposeResult:
        with self._body:
            if self.message:
                with self._message:
                    yield InertText(self.message)
            yield self._notice
            yield from self.body()
        yield self._status
        with Horizontal(classes="buttons"):
            yield from self.buttons()
            yield self._close

    def on_mount(self) -> None:
        """Show what is to be said about the question; begin in it where that was asked for meanwhile."""
        self._show_notices()
        self.call_after_refresh(self._appearance.seen)
        if self._focus_wanted:
            self.focus_form()
            let_keys_act(self)

    def begin(self) -> None:
        """Give the focus to the form, as soon as it is there."""
        self._focus_wanted = not self.is_mounted
        if self.is_mounted:
            self.focus_form()
            let_keys_act(self)

    def limit_height(self, rows: int) -> None:
        """Let the body scroll inside the card, so that its buttons stay in reach; *rows* for all of it."""
        # Two lines of frame, one of buttons, one below the card, one to say what became of an answer.
        most = max(5, rows - 5)
        if most != self._most:
            self._most = self._body.styles.max_height = most
            self.disarm()

    def action_read(self, pages: int) -> None:
        """Scroll what is asked: much of a long question holds nothing that the focus could go to."""
        if self._body.max_scroll_y == 0:
            raise SkipAction  # it is all in sight: whatever holds the card scrolls
        self._body.scroll_relative(y=pages * max(1, self._body.size.height - 1), animate=False)

    def disarm(self) -> None:
        """Begin the time of grace again: the card has moved under the person's hand."""
        self._appearance.moved()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Paint the card, and note when that was first; a card whose fields are still to come is not it."""
        if self.is_mounted:
            self._appearance.seen()
        return super().render_lines(crop)

    @property
    def _is_in_sight(self) -> bool:
        """Say whether the card is on the screen from its top on, or as much of it as there is room for.

        Lines that have come below meanwhile, such as what became of an answer, may be out of sight.
        """
        holder = self.parent
        if not isinstance(holder, Widget):
            return False
        card, room = self.region, holder.region
        seen: int = card.intersection(room).height
        from_top = card.y >= room.y or card.height > room.height
        return from_top and 0 < seen >= min(card.height, room.height) - 3

    def _is_meant(self) -> bool:
        """Say whether what was pressed can have been meant for this question; where not, say why."""
        if not self._appearance.is_settled(self.app):
            self._say(
                "This question has only just appeared here: look at it, then press again.",
                "italic",
                passing=True,
            )
            return False
        if not self._is_in_sight:
            self.disarm()
            self._say(
                "Not all of this question was in sight: look at it, then press again.", "italic", passing=True
            )
            self.call_after_refresh(self.scroll_visible, animate=False)
            return False
        return True

    def follow(self, question: QuestionRecord | None) -> bool:
        """Take the question's newest record; says whether the card may go.

        A card that somebody is working on stays, and says what happened.
        """
        if self.phase in ("sending", "gone"):
            return False
        same = question is not None and question.fingerprint == self.question.fingerprint
        if question is not None and same and question.is_open:
            if question != self.question:
                self.question = question
                self._show_notices()
            if self.phase == "answered":
                # Refused after all: open again, with what was typed.
                self._come_back()
            return False
        if self.phase == "answered" or not (self.dirty or self.has_focus_within):
            return True
        self._gone(why_gone(question))
        return False

    @property
    def has_focus_within(self) -> bool:
        """Say whether the focus is somewhere in this card."""
        focused = self.screen.focused if is_alive(self) else None
        return focused is not None and self in focused.ancestors_with_self

    def _come_back(self) -> None:
        self.phase = "asking"
        self._set_locked(False)
        self._say("")

    def _gone(self, words: str) -> None:
        self.phase = "gone"
        self.add_class("gone")
        self._set_locked(True)
        self._close.display = True
        kept = " What you typed is still here." if self.dirty else ""
        self._say(f"{words} Nothing was sent.{kept}", "bold $text-warning")

    def _set_locked(self, locked: bool) -> None:
        for button in self.query(".answer").results(Button):
            button.disabled = locked
        self.hold(locked)

    def _say(self, text: str, style: str = "", *, passing: bool = False) -> None:
        # *passing*: it is about the form as it was when a key was pressed, and over with the next change.
        self._is_passing = passing
        self._status.display = bool(text)
        self._status.show(text, style)

    def _show_notices(self) -> None:
        question = self.question
        lines = []
        if question.refusal:
            lines.append(f"! The server refused the last answer: {question.refusal}")
        elif question.state == "refused":
            lines.append("! The server refused the last answer.")
        if question.fault is not None:
            lines.append(f"! The server's mistake: {question.fault}")
        self._notice.display = bool(lines)
        self._notice.show("\n".join(lines))
        if question.refusal and question.refusal in self._status.text:
            self._say(DELIVERY_WORDS["refused"], "$text-error")

    # answering

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """A button of this card was pressed."""
        event.stop()
        self.pressed(event.button)

    def pressed(self, button: Button) -> None:
        """Answer, or close a dead card; a subclass looks for its own buttons first."""
        # Not named on_…: Textual calls such a handler of every class, the overridden ones included.
        if button is self._close:
            self.post_message(self.Closed(self))
        elif button.has_class("accept"):
            self.action_accept()
        elif button.has_class("decline"):
            self.give("decline")
        elif button.has_class("dismiss"):
            self.give("cancel")

    def action_accept(self) -> None:
        """Accept with what is filled in; where that is not valid, say why and send nothing."""
        if self.phase != "asking":
            return
        if not self._is_meant():
            return
        self._appearance.touched()
        ready, content_json = self.answer_content()
        if ready:
            self.give("accept", content_json)
        else:
            self._say("Not sent: see what is marked with ✗.", "$text-error", passing=True)

    def give(self, action: Action, content_json: str | None = None) -> None:
        """Send this answer, to exactly this question."""
        engine = self._begun()
        if engine is None:
            return
        self._say(f"{ACTION_WORDS[action].capitalize()}: sending…")
        in_background(self.app, deliver(self.app, engine, action, [(self, content_json)]), group="answers")

    def _begun(self) -> Engine | None:
        """Begin to send, and return what sends; ``None``: it is not the time, and what was said says why."""
        if self.phase != "asking":
            return None
        if not self._is_meant():
            return None
        engine = host_of(self).engine
        if engine is None:
            self._say("Still connecting: try again in a moment. What you typed is kept.", "$text-warning")
            return None
        self.begin_sending()
        return engine

    def begin_sending(self) -> None:
        """Let nothing be changed: an answer is on its way."""
        self.phase = "sending"
        self._set_locked(True)

    def failed(self, error: EngineError, *, alone: bool = True) -> None:
        """The answer was not saved. *alone*: it was about this question and no other."""
        self.phase = "asking"
        if error.failure == "closed" and alone:
            self._gone(error.message)
        else:
            self._set_locked(False)
            self._say(error.message, "$text-error")
        if is_alive(self):
            self.post_message(self.Unanswered())

    def delivered(self, action: Action, delivery: Delivery) -> None:
        """Say what became of the answer."""
        words = DELIVERY_WORDS[delivery.state]
        text = f"{words} {delivery.message}" if delivery.message else words
        if delivery.state == "refused":
            self.phase = "asking"
            self._set_locked(False)
            # The reason stands above the form as soon as the store has it: once is enough.
            self._say(words if self.question.refusal else text, "$text-error")
        elif delivery.state == "withdrawn":
            self._gone(delivery.message or "The question changed or vanished.")
        else:
            self.phase = "answered"
            self._say(f"{ACTION_WORDS[action].capitalize()}. {text}", "$text-success")

    def focus_form(self) -> None:
        """Bring the question into view and the focus into it, never onto a button that answers."""
        if self.message:
            self._message.enter()
        else:
            self._body.can_focus = True
            self._body.focus()


def request_params(question: QuestionRecord) -> dict[str, Any]:
    """Return the parameters of the input request; empty where there are none that can be read."""
    try:
        request = json.loads(question.request_json)
    except (ValueError, RecursionError):
        return {}
    params = request.get("params") if isinstance(request, dict) else None
    return params if isinstance(params, dict) else {}
