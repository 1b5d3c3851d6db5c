"""The questions that are no longer asked: what was answered, and how far the answer got."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Button, Collapsible

from app.engine.commands import has_result, is_refused_here
from app.forms import Field
from app.text import inert_line, plural
from app.tui.widgets.address import AddressAtHand, agreed_url
from app.tui.widgets.answer_words import ACTION_WORDS
from app.tui.widgets.browser import open_in_browser
from app.tui.widgets.inert import InertLine, InertText, Part, content, joined, joined_line
from app.tui.widgets.json_view import dump, load, response_action
from app.tui.widgets.question_card import request_params
from app.tui.widgets.raw_form import form_asked
from app.tui.widgets.refusing import RefusedHere
from app.tui.widgets.times import clock_time
from storage.records import QuestionRecord

STILL_ASKED: Final = 3
"""Looks after an acknowledgement at which the question still stood, from which it is worth telling."""

_STATE_WORDS: Final[dict[str, str]] = {
    "queued": "saved, not sent yet",
    "sent": "sent, not acknowledged yet",
    "acknowledged": "the server has it",
    "settled": "done",
    "withdrawn": "withdrawn by the server",
}


def is_stuck(question: QuestionRecord) -> bool:
    """Say whether a server acknowledged the answer and goes on asking."""
    return question.state == "acknowledged" and question.still_asked >= STILL_ASKED


def _outcome(question: QuestionRecord) -> str:
    action = response_action(question.response_json)
    what = ACTION_WORDS.get(action, action) if action else "not answered"  # type: ignore[call-overload]
    if has_result(question) and question.response_json is not None:
        what = "answered"
    state = _STATE_WORDS.get(question.state, question.state)
    if is_refused_here(question):
        return f"{inert_line(question.key, 60)}  refused here · the server is not told"
    if question.state == "withdrawn" and action:
        state = "withdrawn by the server; this answer was not delivered"
    return f"{inert_line(question.key, 60)}  {what} · {state}"


def answered_words(question: QuestionRecord, now: int) -> list[Part]:
    """Return what to say of a question that is not open."""
    at = question.closed_at or question.acknowledged_at or question.sent_at or question.queued_at
    parts: list[Part] = [
        _outcome(question),
        (f"  {clock_time(at, now)}" if at else "", "$text-muted"),
    ]
    params = request_params(question)
    for told, limit in ((params.get("message"), 200), (params.get("url"), 2000)):
        if isinstance(told, str) and told:
            parts.append((f"\n  {inert_line(told, limit)}", "$text-muted"))
    shown = _shown_content(question)
    if shown:
        parts.append("\n" + "\n".join(f"  {line}" for line in shown.splitlines()))
    if question.refusal and not is_refused_here(question):
        parts.append((f"\n  the server refused an earlier answer: {question.refusal}", "$text-warning"))
    if question.fault:
        parts.append((f"\n  the server's mistake: {question.fault}", "$text-warning"))
    return parts


def _shown_content(question: QuestionRecord) -> str:
    response = load(question.response_json)
    given = response.get("content") if isinstance(response, Mapping) else None
    if not isinstance(given, Mapping):
        return ""
    secrets = {field.name for field in _fields(question) if field.secret}
    return dump({name: "••••••" if name in secrets else value for name, value in given.items()})


def _fields(question: QuestionRecord) -> Sequence[Field]:
    return form_asked(request_params(question)).fields


class StuckAnswer(Horizontal):
    """An acknowledged answer that its server seems to have lost: the same one can be sent again, or where it
    held secrets, the question asked again."""

    DEFAULT_CSS = """
    StuckAnswer { height: auto; margin: 0 0 1 0; }
    StuckAnswer InertText { color: $text-warning; }
    """

    class SendAgain(Message):
        """A person wants the same answer sent once more."""

        def __init__(self, question_id: int) -> None:
            super().__init__()
            self.question_id = question_id

    def __init__(self, question: QuestionRecord) -> None:
        super().__init__()
        self.question_id = question.id
        self._words = InertText(_stuck_words(question))
        self._again = Button(
            content("Answer it anew" if question.withheld else "Send it again"), compact=True
        )

    def compose(self) -> ComposeResult:
        yield self._words
        yield self._again

    def follow(self, question: QuestionRecord) -> None:
        """Say how it stands now."""
        self._words.show(_stuck_words(question))

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Ask for it to be sent again, once a press."""
        event.stop()
        self.post_message(self.SendAgain(self.question_id))


def _stuck_words(question: QuestionRecord) -> str:
    words = (
        f"! The server took your answer to {inert_line(question.key, 60)} and still asks, "
        f"{plural(question.still_asked, 'look')} later."
    )
    gone = " It held secrets, which are not kept, so it can't be sent again."
    return words + gone if question.withheld else words


class AnsweredView(Vertical):
    """All answered questions of a task, folded."""

    DEFAULT_CSS = """
    AnsweredView { height: auto; }
    AnsweredView Collapsible { border-top: none; padding: 0; background: transparent; }
    AnsweredView Collapsible > Contents { padding: 0 0 0 2; }
    """

    def __init__(self, opener: Callable[[str], bool] = open_in_browser) -> None:
        super().__init__()
        self._opener = opener
        self._shown: tuple[object, ...] = ()
        self._text = InertText("")
        self._fold = Collapsible(self._text, title="", collapsed=True)
        self._latest = InertLine("")
        self._stuck: dict[int, StuckAnswer] = {}
        self._addresses: dict[int, AddressAtHand] = {}
        self._refused: dict[int, RefusedHere] = {}

    def compose(self) -> ComposeResult:
        yield self._latest
        yield self._fold

    def show(self, questions: Sequence[QuestionRecord], now: int, *, watched: bool = False) -> None:
        """Show these; the fold stays as the person left it. While the task is *watched*, the addresses that
        the person agreed to visit are at hand.
        """
        self.display = bool(questions)
        if (watched, *questions) == self._shown:
            return
        self._shown = (watched, *questions)
        under_way = sum(question.state in ("queued", "sent") for question in questions)
        title = plural(len(questions), "earlier question")
        self._fold.title = f"{title}, {plural(under_way, 'answer')} on its way" if under_way else title
        parts: list[Part] = []
        for question in questions:
            parts += [*answered_words(question, now), "\n\n"]
        self._text.show(joined(*parts[:-1]))
        self._show_latest(questions)
        self._show_addresses(questions if watched else ())
        self._show_stuck({question.id: question for question in questions if is_stuck(question)})

        self._show_refused({q.id: q for q in questions if is_refused_here(q)} if watched else {})

    def _show_refused(self, refused: Mapping[int, QuestionRecord]) -> None:
        for question_id in [known for known in self._refused if known not in refused]:
            self._refused.pop(question_id).remove()
        for question_id in [new for new in refused if new not in self._refused]:
            self._refused[question_id] = RefusedHere(refused[question_id])
            self.mount(self._refused[question_id], before=self._fold)

    def _show_latest(self, questions: Sequence[QuestionRecord]) -> None:
        """Say without unfolding anything what became of the last answer."""
        given = [question for question in questions if question.response_json is not None]
        self._latest.display = bool(given)
        if given:
            last = max(given, key=lambda question: question.queued_at or 0)
            self._latest.show(joined_line(("Last answer  ", "$text-muted"), _outcome(last)))

    def _show_stuck(self, stuck: Mapping[int, QuestionRecord]) -> None:
        for question_id in [known for known in self._stuck if known not in stuck]:
            self._stuck.pop(question_id).remove()
        for question_id, question in stuck.items():
            if question_id in self._stuck:
                self._stuck[question_id].follow(question)
            else:
                self._stuck[question_id] = StuckAnswer(question)
                self.mount(self._stuck[question_id], before=self._fold)

    def _show_addresses(self, questions: Sequence[QuestionRecord]) -> None:
        agreed = {question.id: url for question in questions if (url := agreed_url(question)) is not None}
        for question_id in [known for known in self._addresses if known not in agreed]:
            self._addresses.pop(question_id).remove()
        for question_id, url in agreed.items():
            if question_id not in self._addresses:
                self._addresses[question_id] = AddressAtHand(url, self._opener)
                self.mount(self._addresses[question_id], before=self._fold)
