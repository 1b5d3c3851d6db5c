"""The inbox: sections, the list, and beside it (from 110 columns) the highlighted task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.timer import Timer

from app.engine.commands import Changes
from app.tui.screens.marking import MarkingScreen
from app.tui.widgets.inert import say
from app.tui.widgets.section_tabs import SectionTabs
from app.tui.widgets.status_bar import Banner, KeyBar, StatusBar
from app.tui.widgets.task_list import ListHead, TaskList
from app.tui.widgets.task_pane import TaskPane
from app.tui.words import blank_words, inbox_keys, server_health
from storage.errors import StorageError
from storage.records import SECTIONS, Section, TaskKey, TaskRow

if TYPE_CHECKING:
    from textual.command import Provider

    from app.tui.app import InboxApp

WIDE: Final = 110
"""Columns from which list and task stand side by side."""
LIST_AGAIN: Final = 0.1
"""Seconds between two readings of the whole list; rows in sight are read again at once."""


def _commands() -> type[Provider]:
    from app.tui.commands import InboxCommands

    return InboxCommands


class InboxScreen(MarkingScreen):
    """The first screen. It reads the store; what it wants done, the app's actions do."""

    DEFAULT_CSS = """
    InboxScreen { background: $background; }
    InboxScreen #body { height: 1fr; }
    InboxScreen #left { width: 1fr; }
    InboxScreen #detail { display: none; }
    InboxScreen.-wide #left { width: 45%; min-width: 50; max-width: 96; }
    InboxScreen.-wide #detail { display: block; width: 1fr; height: 1fr; border-left: solid $border-blurred; }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 - Textual's own declaration
    AUTO_FOCUS = "TaskList"
    COMMANDS = {_commands}  # noqa: RUF012 - Textual's own declaration
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open the task", id="inbox.open"),
        Binding("a", "answer", "Answer its first question", id="inbox.answer"),
        Binding("c", "cancel", "Cancel the task…", id="inbox.cancel"),
        Binding("e", "archive", "Archive, or bring back", id="inbox.archive"),
        Binding("f", "forget", "Forget it…", id="inbox.forget"),
        Binding("r", "look", "Look at it now", id="inbox.look"),
        Binding("slash", "filter", "Filter the list", id="inbox.filter"),
        Binding("n", "call", "Call a tool", id="inbox.call"),
        Binding("s", "servers", "Servers", id="inbox.servers"),
        Binding("question_mark", "help", "Keys and words", id="inbox.help"),
        Binding("q", "app.quit", "Quit", id="inbox.quit"),
        Binding("left_square_bracket", "turn(-1)", "Pane before", id="inbox.pane-before", show=False),
        Binding("right_square_bracket", "turn(1)", "Next pane", id="inbox.pane-next", show=False),
        Binding("escape", "back", "Back to the list", id="inbox.back", show=False),
        *(Binding(f"{n}", f"section({s!r})", s, id=f"inbox.section-{n}") for n, s in enumerate(SECTIONS, 1)),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.section: Section = "needs-you"
        self._places: dict[Section, TaskKey] = {}
        self._stale: set[TaskKey] = set()
        self._again: Timer | None = None
        self._note = ""
        # Held, not looked up: the engine may speak while the screen is being taken down.
        self._status = StatusBar(id="status")
        self._tabs = SectionTabs(id="sections")
        self._banner = Banner(id="banner")
        self._keys = KeyBar(id="keys")
        self._tasks = TaskList(self._read_rows, lambda: self.inbox_app.clock(), id="tasks")
        self._total = 0
        self._left = False
        self._pane = TaskPane(lambda work: self.inbox_app.start(work, "view"), id="detail")

    @property
    def inbox_app(self) -> InboxApp:
        """The app this screen is part of."""
        return cast("InboxApp", self.app)

    @property
    def is_wide(self) -> bool:
        """Say whether the task stands beside the list."""
        return self.app.size.width >= WIDE

    def compose(self) -> ComposeResult:
        """Lay out the lines and the list; the task's view is mounted after the first paint."""
        yield self._status
        yield self._tabs
        yield self._banner
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield ListHead(self._tasks)
                yield self._tasks
            yield self._pane
        yield self._keys

    def on_mount(self) -> None:
        """Show what the store holds."""
        self.open_section(self.section)
        self.call_after_refresh(self.prepare_filter)

    # Reading

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn a store that can't be read into a banner; what is on the screen stays."""
        try:
            yield
        except StorageError as error:
            self.trouble(f"The store can't be read: {error}")

    def _read_rows(self, keys: Sequence[TaskKey]) -> Mapping[TaskKey, TaskRow]:
        try:
            return self.inbox_app.reader.rows(keys)
        except StorageError as error:
            self.trouble(f"The store can't be read: {error}")
            return {}

    def open_section(self, section: Section, at: TaskKey | None = None) -> None:
        """Show a section because the person asked for it: at *at*, or where they left it."""
        self.section = section
        self._show_keys()
        with self._reading():
            keys = self._read_list()
            self._tasks.open(section, keys, at or self._places.get(section), blank=self._blank())

    def reload(self) -> None:
        """Read the list, the counts and the servers again."""
        self._again = None
        with self._reading():
            self.follow_marks()
            keys = self._read_list()
            stale, self._stale = self._stale, set()
            self._tasks.replace(keys, stale, renamed=self._renamed(keys), blank=self._blank())

    def _read_list(self) -> list[TaskKey]:
        reader = self.inbox_app.reader
        counts = reader.counts()
        keys = reader.keys(self.section, text=self.filter_text or None)
        self._show_status(counts["needs-you"])
        self._tabs.show(counts, self.section)
        self._total = sum(counts.values())
        return keys

    def _renamed(self, keys: Sequence[TaskKey]) -> TaskKey | None:
        """Return the new key of the highlighted call, where it has become a task."""
        key = self._tasks.highlighted
        if key is None or key in set(keys):
            return None
        record = self.inbox_app.reader.task(key)
        return record.key if record is not None and record.key != key else None

    def _show_status(self, need: int) -> None:
        now = self.inbox_app.clock()
        known = {record.name: record for record in self.inbox_app.reader.servers()}
        names = self.inbox_app.server_names() or sorted(known)
        way = self.inbox_app.observing
        servers = [(name, server_health(known.get(name), now, way(name))) for name in names]
        self._status.show(servers, need, self._note)

    def _blank(self) -> Sequence[str]:
        nothing_yet = not self._total and not self.inbox_app.server_names()
        return blank_words(self.section, self.filter_text, nothing_yet=nothing_yet)

    def changed(self, changes: Changes) -> None:
        """Take in what the engine says has changed: rows in sight now, the whole list soon."""
        self._stale |= changes.tasks
        self._tasks.reread(changes.tasks)
        with self._reading():
            self._pane.changed(changes.tasks)
        if self._again is None:
            self._again = self.set_timer(LIST_AGAIN, self.reload)

    def tick(self) -> None:
        """Let ages and times left go on: only lines whose words change are drawn."""
        self._pane.tick()
        self._tasks.repaint_changed()
        with self._reading():
            self._show_status(self._tabs.counts.get("needs-you", 0))

    # What the app tells it

    def note(self, words: str) -> None:
        """Say something short in the first line, such as connecting…"""
        self._note = words
        self.tick()

    def trouble(self, words: str | None) -> None:
        """Say what is wrong with the program itself; ``None``: nothing any more."""
        self._banner.say(words)

    def expect_departure(self, key: TaskKey, expected: bool = True) -> None:
        """Let the highlight go on to the next task when this one leaves; or not, after all."""
        (self._tasks.let_go if expected else self._tasks.keep)(key)

    def go_to(self, key: TaskKey) -> None:
        """Highlight a task wherever it stands, and open it."""
        record = None
        with self._reading():
            record = self.inbox_app.reader.task(key)
        if record is None:
            say(self.app, f"There is no record of {key}.", "warning")
            return
        self.clear_filter()
        self.open_section(record.section, record.key)
        self.action_open()

    def show_filtered(self) -> None:
        """Show what matches the filter; the highlight stays on its task."""
        self.open_section(self.section, self.current)

    def focus_list(self) -> None:
        """Give the list the focus."""
        self.set_focus(self._tasks)

    # The task beside the list

    @property
    def current(self) -> TaskKey | None:
        """The task that an action means: the highlighted one, or the one shown that has just left the list.

        Asked of the list itself: a message about the highlight may still be on its way when a key is pressed.
        """
        key, departed = self._tasks.highlighted, self._tasks.departed
        if key is None and self.is_wide and departed is not None and self._pane.shown == departed:
            return departed
        return key

    @on(TaskList.Highlighted)
    def _highlighted(self) -> None:
        if (key := self._tasks.highlighted) is not None:
            self._places[self.section] = key
        self._follow()

    def _follow(self) -> None:
        self._pane.follow(self.current if self.is_wide else None)

    def on_resize(self) -> None:
        """Show the task beside the list, or not."""
        if not self.is_wide and self.focused is not None and self._pane in self.focused.ancestors:
            self.set_focus(self._tasks)
        self._show_keys()
        self._follow()

    def on_screen_suspend(self) -> None:
        """Remember that another screen covers this one."""
        self._left = True

    def on_screen_resume(self) -> None:
        """Come back from another screen: read again what may have changed meanwhile."""
        if self._left:
            self._left = False
            self.reload()

    def _show_keys(self) -> None:
        self._keys.show(inbox_keys(self.section, len(self.marks)))

    def marks_changed(self) -> None:
        """Show the marks, and what can be done with them."""
        super().marks_changed()
        self._show_keys()

    # What the person does

    @on(SectionTabs.Chosen)
    def _section_clicked(self, message: SectionTabs.Chosen) -> None:
        self.open_section(message.section)

    @on(TaskList.Chosen)
    def _task_chosen(self) -> None:
        self.action_open()

    def action_section(self, section: Section) -> None:
        """Show a section."""
        self.open_section(section)
        self.set_focus(self._tasks)

    def drafts_changed(self) -> None:
        """Show what was typed for several in the task beside the list, too."""
        self._pane.take_drafts()

    def action_shift_section(self, by: int) -> None:
        """Show the section to the left or to the right."""
        self.open_section(SECTIONS[(SECTIONS.index(self.section) + by) % len(SECTIONS)])

    def action_tab(self, by: int) -> None:
        """Go to the task beside the list; where there is none, to the next section."""
        if not self.is_wide:
            self.action_shift_section(by)
        elif by > 0:
            self.focus_next()
        else:
            self.focus_previous()

    def action_open(self) -> None:
        """Go to the task: beside the list, or over it."""
        key = self._meant()
        if key is None:
            return
        self.inbox_app.hold_keys()
        if self.is_wide:
            self._pane.enter(key)
            return
        from app.tui.screens.task import TaskScreen

        screen = TaskScreen(key)
        self.inbox_app.push_screen(screen)
        screen.call_after_refresh(screen.action_answer)

    def action_answer(self) -> None:
        """Go to the first open question of the task."""
        key = self._meant()
        if key is None:
            return
        row = self._tasks.row(key)
        if row is not None and not row.open_questions:
            say(self.app, "It has no open question.")
            return
        self.action_open()

    def _meant(self) -> TaskKey | None:
        key = self.current
        if key is None:
            say(self.app, "Choose a task first: ↑ ↓." if self._tasks.keys else "There is no task here.")
        return key

    def action_cancel(self) -> None:
        """Cancel the task, after a confirmation."""
        if (key := self._meant()) is not None:
            self.inbox_app.actions.cancel(key)

    def action_archive(self) -> None:
        """Put the task away, or bring it back."""
        if (key := self._meant()) is not None:
            self.inbox_app.actions.archive(key)

    def action_forget(self) -> None:
        """Delete our record of the task, after a confirmation."""
        if (key := self._meant()) is not None:
            self.inbox_app.actions.forget(key)

    def action_look(self) -> None:
        """Look at the task now."""
        if (key := self._meant()) is not None:
            self.inbox_app.actions.look(key)

    def action_turn(self, by: int) -> None:
        """Show another pane of the task beside the list."""
        if self.is_wide:
            self._pane.turn(by)

    def action_call(self) -> None:
        """Call a tool."""
        from app.tui.screens.call_tool import CallScreen

        self.inbox_app.push_screen(CallScreen())

    def action_servers(self) -> None:
        """Show the servers."""
        from app.tui.screens.servers import ServersScreen

        self.inbox_app.push_screen(ServersScreen())

    def action_help(self) -> None:
        """Show the keys and words."""
        from app.tui.screens.help import Help

        self.inbox_app.push_screen(Help())

    def action_back(self) -> None:
        """Go back to the list; from the list or the filter itself, clear the filter."""
        if self.focused is None or self._pane not in self.focused.ancestors:
            self.clear_filter()
            self.clear_marks()
        self._pane.stay()
        self.set_focus(self._tasks)
