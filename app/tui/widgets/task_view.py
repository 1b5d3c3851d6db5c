"""One task, whole: its questions, its result or failure, its timeline, its JSON, what can be done with it.

Everything is read from the store; a refresh changes what has changed and leaves the rest alone, so that typed
text, focus and scroll survive whatever the network brings.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widget import Widget
from textual.widgets import Button, TabbedContent, TabPane

from app.engine.commands import Engine, EngineError
from app.tui.messages import Answered, ArchiveRequested, CancelRequested, RefreshRequested
from app.tui.widgets.all_at_once import AllAtOnce
from app.tui.widgets.answered_view import AnsweredView, StuckAnswer
from app.tui.widgets.browser import open_in_browser
from app.tui.widgets.calling_again import CallingAgain
from app.tui.widgets.cards import make_card
from app.tui.widgets.drafts import drafts_of
from app.tui.widgets.host import abilities_of, host_of, in_background, let_keys_act, now_ms
from app.tui.widgets.inert import InertText, content, say
from app.tui.widgets.overview import Overview
from app.tui.widgets.question_card import QuestionCard
from app.tui.widgets.raw_view import RawView
from app.tui.widgets.result_view import FailureView, ResultView
from app.tui.widgets.task_header import TaskHeader
from app.tui.widgets.timeline import Timeline
from storage.errors import StorageError
from storage.records import QuestionRecord, TaskKey, TaskRecord

PANES: Final = ("overview", "timeline", "raw")
MOST_CARDS: Final = 10
"""Forms at a time: a server may ask hundreds of questions at once, and each form takes its time."""


class TaskView(Widget):
    """Shows one task; `show` says which, `refresh_task` after it changed."""

    DEFAULT_CSS = """
    TaskView { layout: vertical; height: 1fr; width: 1fr; }
    TaskView TabbedContent { height: 1fr; }
    TaskView TabPane { padding: 0; height: 1fr; }
    TaskView ContentSwitcher { height: 1fr; }
    TaskView > .nothing { padding: 1 2; color: $text-muted; }
    TaskView > .actions { height: 1; padding: 0 1; }
    TaskView > .actions Button { margin: 0 1 0 0; min-width: 12; }
    TaskView > .actions .danger { color: $text-error; }
    TaskView Tabs, TaskView Tabs #tabs-scroll { height: 1; min-height: 1; }
    TaskView Tabs #tabs-list-bar, TaskView Tabs #tabs-list { height: 1; min-height: 1; }
    TaskView Tabs Underline { display: none; }
    TaskView Tab { color: $text-muted; height: 1; }
    TaskView Tab.-active { color: $text-primary; text-style: bold underline; }
    TaskView > Horizontal Button:focus { background: $primary; color: $background; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("alt+1", "pane('overview')", "Overview", show=False, id="task.overview"),
        Binding("alt+2", "pane('timeline')", "Timeline", show=False, id="task.timeline"),
        Binding("alt+3", "pane('raw')", "Raw", show=False, id="task.raw"),
        # Many terminals send something else for Alt and a figure.
        Binding("left_square_bracket", "turn(-1)", "Pane before", show=False, id="task.pane-before"),
        Binding("right_square_bracket", "turn(1)", "Next pane", show=False, id="task.pane-next"),
    ]

    def __init__(
        self,
        key: TaskKey | None = None,
        *,
        opener: Callable[[str], bool] = open_in_browser,
        monotonic: Callable[[], float] = time.monotonic,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.key = key
        self._opener = opener
        self._monotonic = monotonic
        self._ready = False
        self._unreadable = False
        self._record: TaskRecord | None = None
        self._questions: tuple[QuestionRecord, ...] = ()
        self._cards: dict[int, QuestionCard] = {}
        self._outcome: tuple[str | None, str | None, bool] | None = None
        self._nothing = InertText("", classes="nothing")
        self._header = TaskHeader()
        self._tabs = TabbedContent(initial="overview")
        self._actions = Horizontal(classes="actions")
        self._overview = Overview()
        self._more = InertText("", "$text-warning")
        self._answered = AnsweredView(opener)
        self._timeline = Timeline()
        self._raw = RawView()
        self._cancel = Button(content("Cancel task…"), compact=True, classes="danger")
        self._archive = Button(content("Archive"), compact=True)
        self._look = Button(content("Look now"), compact=True)
        self._again = Button(content("Call again…"), "warning", compact=True)
        self._sure = CallingAgain()
        self._all = AllAtOnce(monotonic=monotonic)

    def compose(self) -> ComposeResult:
        yield self._nothing
        yield self._header
        with self._tabs:
            with TabPane("Overview", id="overview"), self._overview:
                yield self._more
                yield self._all
                yield self._answered
            with TabPane("Timeline", id="timeline"), VerticalScroll():
                yield self._timeline
            with TabPane("Raw", id="raw"):
                yield self._raw
        yield self._sure
        with self._actions:
            yield self._cancel
            yield self._again
            yield self._archive
            yield self._look

    def on_mount(self) -> None:
        """Show the task that was given, and let its ages and times left go on."""
        self._ready = True
        self.refresh_task()
        self.set_interval(1.0, self.tick)

    @property
    def record(self) -> TaskRecord | None:
        """The task as it is shown."""
        return self._record

    @property
    def cards(self) -> tuple[QuestionCard, ...]:
        """The cards, in their order."""
        return tuple(self._cards.values())

    def show(self, key: TaskKey | None) -> None:
        """Show another task; ``None``: none. What was typed for the former is kept."""
        if key == self.key:
            self.refresh_task()
            return
        drafts_of(self.app).save_soon()
        if any(card.has_focus_within for card in self._cards.values()):
            # Else Textual chooses where the focus goes when its widget is removed.
            self._overview.focus(scroll_visible=False)
        self.key = key
        self._record, self._questions, self._outcome = None, (), None
        for card in self._cards.values():
            card.display = False  # or it would stand under the other task's name until it is gone
            card.remove()
        self._cards = {}
        self.query(".outcome").remove()
        self._sure.leave()
        self._overview.scroll_home(animate=False)
        self.refresh_task()

    def refresh_task(self) -> None:
        """Read the task again and show what has changed; where the store can't be read, say so."""
        if not self._ready:
            return
        try:
            self._read()
        except StorageError as error:
            if not self._unreadable:
                say(self.app, f"The store can't be read: {error}", "error")
            self._unreadable = True
        else:
            self._unreadable = False

    def _read(self) -> None:
        reader = host_of(self).reader
        record = reader.task(self.key) if self.key is not None else None
        self._show_presence(record)
        if record is None:
            self._record = None
            self._follow_questions(())
            return
        questions = tuple(reader.questions(record.key))
        now = now_ms(self)
        self._header.show(record, now)
        self._follow_questions(questions)
        closed = [q for q in questions if q.id not in self._cards and not q.is_open]
        self._answered.show(closed, now, watched=record.state.tracking == "active")
        self._record, self._questions = record, questions
        self._show_outcome(record)
        self._show_actions(record)
        self._show_pane()

    def tick(self) -> None:
        """Let ages and times left go on; reads nothing."""
        if self._record is not None and self._ready:
            self._header.show(self._record, now_ms(self))

    def _show_presence(self, record: TaskRecord | None) -> None:
        there = record is not None
        self._nothing.display = not there
        self._nothing.show(
            "No task is chosen." if self.key is None else "This task is no longer in the inbox."
        )
        for widget in (self._header, self._tabs, self._actions):
            widget.display = there

    # questions

    def _follow_questions(self, questions: Sequence[QuestionRecord]) -> None:
        """Bring the cards up to date by their questions' ids; one that somebody works on stays."""
        by_id = {question.id: question for question in questions}
        for question_id, card in list(self._cards.items()):
            if card.follow(by_id.get(question_id)):
                self._drop(question_id)
        drafts = drafts_of(self.app)
        waiting = [q for q in questions if q.is_open and q.id not in self._cards]
        came = waiting[: max(0, MOST_CARDS - len(self._cards))]
        self._more.display = len(waiting) > len(came)
        self._more.show(f"And {len(waiting) - len(came):,} more: they come as these are answered.")
        for question in came:
            able, draft = abilities_of(self, question.task.server), drafts.of(question)
            card = make_card(question, draft, able, opener=self._opener, monotonic=self._monotonic)
            card.limit_height(self._room)
            self._cards[question.id] = card
            # Below the others: a card that came later never pushes another from under a finger.
            self._overview.mount(card, before=self._more)
        self._all.follow(self.cards)

    def _drop(self, question_id: int) -> None:
        card = self._cards.pop(question_id)
        if card.has_focus_within:
            # Else Textual would hand the focus to the neighbour: another question's button, perhaps.
            self._overview.focus(scroll_visible=False)
        card.remove()
        for other in self._cards.values():
            other.disarm()

    @property
    def _room(self) -> int:
        # Before the first layout: what the header, the tabs and the last line leave.
        height = self._overview.size.height or self.size.height - (self._header.size.height or 3) - 2
        return max(9, height)

    def on_overview_resized(self) -> None:
        """Keep each card's buttons in reach, whatever the height."""
        for card in self._cards.values():
            card.limit_height(self._room)

    def on_question_card_closed(self, event: QuestionCard.Closed) -> None:
        """A dead card has been read."""
        event.stop()
        self._drop(event.card.question.id)
        self.refresh_task()

    def on_question_card_unanswered(self, event: QuestionCard.Unanswered) -> None:
        """Another may have answered it meanwhile."""
        event.stop()
        self.refresh_task()

    def on_answered(self, event: Answered) -> None:
        """Show at once what became of it; the app hears it, too."""
        if self._record is not None and event.question_id in self._cards:
            self.refresh_task()

    def on_stuck_answer_send_again(self, event: StuckAnswer.SendAgain) -> None:
        """Send the same answer once more."""
        event.stop()
        engine = self._engine()
        if engine is not None:
            in_background(self.app, self._send_again(engine, event.question_id), group="answers")

    async def _send_again(self, engine: Engine, question_id: int) -> None:
        app = self.app
        try:
            delivery = await engine.send_again(question_id)
        except EngineError as error:
            say(app, error.message, "error")
        else:
            say(app, delivery.message or f"Sent again: {delivery.state}.")

    def focus_question(self) -> bool:
        """Give the focus to the first open question's form; ``False`` when nothing is asked."""
        self._tabs.active = "overview"
        for card in self._cards.values():
            if card.phase == "asking":
                card.begin()
                return True
        let_keys_act(self)
        return False

    def focus_first(self) -> None:
        """Give the focus to the first open question, else to what scrolls."""
        if not self.focus_question():
            self._overview.focus()

    # result and failure

    def _show_outcome(self, record: TaskRecord) -> None:
        state = record.state
        outcome = (state.result_json, state.error_json, state.is_error)
        if outcome == self._outcome:
            return
        self._outcome = outcome
        self._overview.query(".outcome").remove()
        # On top: below a card that is gone and still stands there, it would be out of sight.
        for widget in reversed(self._outcome_widgets(record)):
            widget.add_class("outcome")
            self._overview.mount(widget, before=0)

    def _outcome_widgets(self, record: TaskRecord) -> list[Widget]:
        state = record.state
        found: list[Widget] = []
        if state.error_json is not None:
            found.append(FailureView(state.error_json))
        if state.result_json is not None:
            found.append(ResultView(state.result_json, is_error=state.is_error))
        return found

    # panes

    def action_pane(self, pane: str) -> None:
        """Show the overview, the timeline or the JSON."""
        self._tabs.active = pane

    def action_turn(self, by: int) -> None:
        """Show the pane to the left or to the right."""
        self._tabs.active = PANES[(PANES.index(self._tabs.active) + by) % len(PANES)]

    def on_tabbed_content_tab_activated(self, event: TabbedContent.TabActivated) -> None:
        """Fill a pane when it is looked at."""
        event.stop()
        self.refresh_task()

    def _show_pane(self) -> None:
        if self._record is None:
            return
        pane = self._tabs.active
        if pane == "timeline":
            self._timeline.show_events(host_of(self).reader.events(self._record.key), now_ms(self))
        elif pane == "raw":
            self._raw.show(self._record, self._questions)

    # what can be done

    def _show_actions(self, record: TaskRecord) -> None:
        state = record.state
        unknown = record.kind == "call" and state.tracking == "lost"
        self._again.display = unknown
        self._cancel.display = state.tracking == "active" or unknown
        self._cancel.label = content("Give up…" if record.kind == "call" else "Cancel task…")
        self._archive.label = content("Archive" if record.archived_at is None else "Bring back")
        self._look.display = record.kind == "task"
        if not unknown:
            self._sure.leave()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Do it, or tell the app."""
        record = self._record
        if record is None:
            return
        event.stop()
        button = event.button
        if button is self._cancel:
            self.post_message(CancelRequested(record.key))
        elif button is self._archive:
            self.post_message(ArchiveRequested(record.key, archive=record.archived_at is None))
        elif button is self._look:
            self.post_message(RefreshRequested(record.key))
        elif button is self._again:
            self._sure.ask()

    def on_calling_again_left(self, event: CallingAgain.Left) -> None:
        """Nothing is called."""
        event.stop()
        self._overview.focus()

    def on_calling_again_wanted(self, event: CallingAgain.Wanted) -> None:
        """Call it once more."""
        event.stop()
        engine = self._engine()
        if engine is not None and self.key is not None:
            in_background(self.app, self._calling(engine, self.key), group="calls")

    async def _calling(self, engine: Engine, key: TaskKey) -> None:
        app = self.app
        try:
            outcome = await engine.call_again(key)
        except EngineError as error:
            say(app, error.message, "error")
        else:
            say(app, outcome.message or f"Called again: {outcome.kind.replace('_', ' ')}.")

    def _engine(self) -> Engine | None:
        engine = host_of(self).engine
        if engine is None:
            say(self.app, "Still connecting: try again in a moment.", "warning")
        return engine
