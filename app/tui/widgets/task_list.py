"""The list of tasks: drawn line by line from an ordered list of keys, so that its length costs nothing.

A table widget holds every row; this holds keys, and reads from the store only the rows that are in sight.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from app.tui.columns import GAP, MARGIN, SHORT_LEFT_WIDTH, CellText, Column, cells, columns, fit
from app.tui.cursor import ListCursor
from app.tui.words import TIME_HEADS
from storage.records import Section, TaskKey, TaskRow

ReadRows = Callable[[Sequence[TaskKey]], Mapping[TaskKey, TaskRow]]

OVERSCAN: Final = 32
"""Rows read beyond the screen, so that a step of the cursor seldom has to read."""
KEPT_ROWS: Final = 2000
NAMES_MEASURED: Final = 500
"""Keys looked at for the width of the first column."""

COLUMN_HEADS: Final = {"server": "server", "tool": "tool", "status": "status", "message": "message"}


class TaskList(ScrollView, can_focus=True):
    """The tasks of one section; which of them is highlighted is `ListCursor`'s to say."""

    DEFAULT_CSS = """
    TaskList {
        height: 1fr;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
    }
    TaskList > .task-list--cursor { background: $block-cursor-blurred-background; }
    TaskList:focus > .task-list--cursor { background: $block-cursor-background; text-style: bold; }
    TaskList > .task-list--hover { background: $boost; }
    TaskList > .task-list--plain { color: $foreground; }
    TaskList > .task-list--strong { color: $foreground; text-style: bold; }
    TaskList > .task-list--quiet { color: $quiet; }
    TaskList > .task-list--ask { color: $text-warning; text-style: bold; }
    TaskList > .task-list--run { color: $text-primary; }
    TaskList > .task-list--good { color: $text-success; }
    TaskList > .task-list--bad { color: $text-error; }
    TaskList > .task-list--urgent { color: $text-error; text-style: bold; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"task-list--{name}"
        for name in (
            "cursor", "hover", "plain", "strong", "quiet", "ask", "run", "good", "bad", "urgent",
        )
    }  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "step(-1)", "Up", id="list.up", show=False),
        Binding("down,j", "step(1)", "Down", id="list.down", show=False),
        Binding("pageup", "page(-1)", "Page up", id="list.page-up", show=False),
        Binding("pagedown", "page(1)", "Page down", id="list.page-down", show=False),
        Binding("left", "screen.shift_section(-1)", "Section before", id="list.section-before", show=False),
        Binding("right", "screen.shift_section(1)", "Next section", id="list.section-next", show=False),
        Binding("tab", "screen.tab(1)", "To the task, or the next section", id="list.tab", show=False),
        Binding("shift+tab", "screen.tab(-1)", "Back", id="list.back-tab", show=False),
        Binding("home", "edge(False)", "First", id="list.first", show=False),
        Binding("end", "edge(True)", "Last", id="list.last", show=False),
    ]

    class Highlighted(Message):
        """Another task is highlighted, or none; `TaskList.highlighted` says which."""

    class Chosen(Message):
        """The person double-clicked a task."""

        def __init__(self, key: TaskKey) -> None:
            super().__init__()
            self.key = key

    def __init__(self, read: ReadRows, now: Callable[[], int], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._read = read
        self._now = now
        self._cursor = ListCursor()
        self._rows: dict[TaskKey, TaskRow] = {}
        self._layout: tuple[Column, ...] = ()
        self._painted: dict[int, tuple[CellText, ...]] = {}
        self._hovered: int | None = None
        self._blank: tuple[str, ...] = ()
        self._section: Section = "needs-you"
        self._marked: frozenset[TaskKey] = frozenset()
        self.head: ListHead | None = None
        """The line above that names the columns."""

    # What it holds

    @property
    def keys(self) -> Sequence[TaskKey]:
        """The tasks in their order."""
        return self._cursor.keys

    @property
    def highlighted(self) -> TaskKey | None:
        """The highlighted task; ``None``: there is none."""
        return self._cursor.key

    @property
    def departed(self) -> TaskKey | None:
        """The task that was highlighted and left the list by itself, until the person moves."""
        return self._cursor.departed

    @property
    def layout_columns(self) -> tuple[Column, ...]:
        """The columns as they are now divided."""
        return self._layout

    def row(self, key: TaskKey) -> TaskRow | None:
        """Return a task's line, reading it where it isn't at hand."""
        if key not in self._rows:
            self._rows.update(self._read([key]))
        return self._rows.get(key)

    @property
    def section(self) -> Section:
        """The section that is listed."""
        return self._section

    def open(
        self,
        section: Section,
        keys: Sequence[TaskKey],
        at: TaskKey | None = None,
        *,
        blank: Sequence[str] = (),
    ) -> None:
        """Show another list because the person asked for it; *blank* is said where it is empty."""
        self._section = section
        self._cursor.open(keys, at)
        self._blank = tuple(blank)
        self._rows.clear()
        self._resized()
        self.scroll_to(y=0, animate=False, immediate=True)
        self._reveal()
        self.post_message(self.Highlighted())

    def replace(
        self,
        keys: Sequence[TaskKey],
        changed: Iterable[TaskKey] = (),
        *,
        renamed: TaskKey | None = None,
        blank: Sequence[str] = (),
    ) -> None:
        """Take in the list as it now is; *changed* are read again. The highlight stays on its task."""
        for stale in changed:
            self._rows.pop(stale, None)
        self._blank = tuple(blank)
        if list(keys) == self._cursor.keys:
            self.repaint_changed()
            return
        key, place, top = self._cursor.key, self._cursor.place, round(self.scroll_y)
        self._cursor.replace(keys, renamed=renamed)
        self._resized()
        in_sight = top <= place < top + self.size.height
        if in_sight and (top or self._cursor.place >= self.size.height):
            # The highlighted line keeps its place on the screen, under the eye that reads it.
            self.scroll_to(y=max(0, top + self._cursor.place - place), animate=False, immediate=True)
        if self._cursor.key != key:
            self.post_message(self.Highlighted())

    def show_marks(self, keys: frozenset[TaskKey]) -> None:
        """Show these tasks as marked, wherever they stand."""
        if keys != self._marked:
            self._marked = keys
            self.refresh()

    def let_go(self, key: TaskKey) -> None:
        """Expect that a task leaves because the person put it away."""
        self._cursor.let_go(key)

    def keep(self, key: TaskKey) -> None:
        """Take `let_go` back: it came to nothing."""
        self._cursor.keep(key)

    def reread(self, changed: Iterable[TaskKey]) -> None:
        """Read the lines of these tasks again, and draw those that differ and are in sight."""
        touched = [key for key in changed if self._rows.pop(key, None) is not None]
        if touched:
            self.repaint_changed()

    def repaint_changed(self) -> None:
        """Draw the lines in sight whose text is not what was drawn last: ages, or rows read again."""
        top = round(self.scroll_y)
        self._load(top, top + self.size.height)
        now = self._now()
        for line in range(top, top + self.size.height):
            made = self._made(line, now)
            if made != self._painted.get(line):
                self.refresh_line(line)

    # Drawing

    def render_line(self, y: int) -> Strip:
        """Draw one line of the screen."""
        width = self.size.width
        base = self.get_component_rich_style("task-list--plain")
        if not self._cursor.keys:
            return self._blank_line(y, width, base)
        line = y + round(self.scroll_y)
        self._load(line, line + 1)
        made = self._made(line, self._now())
        self._painted[line] = made
        if not made:
            return Strip.blank(width, base)
        style = base
        here = line == self._cursor.place and self._cursor.key is not None
        if here:
            style += self.get_component_rich_style("task-list--cursor", partial=True)
        elif line == self._hovered:
            style += self.get_component_rich_style("task-list--hover", partial=True)
        mark = "◆" if self._cursor.keys[line] in self._marked else "▌" if here else " "
        segments = [Segment(mark, style)]
        for number, text in enumerate(made):
            if number:
                segments.append(Segment(" " * GAP, style))
            # A highlighted line with the focus is drawn in one colour: tones on the cursor's are hard to
            # read.
            tone = Style() if here and self.has_focus else self._tone(text.tone)
            segments.append(Segment(text.text, style + tone))
        return Strip(segments).adjust_cell_length(width, style)

    def _tone(self, tone: str) -> Style:
        return self.get_component_rich_style(f"task-list--{tone}", partial=True)

    def _blank_line(self, y: int, width: int, base: Style) -> Strip:
        inside = max(10, width - 6)
        words = [
            (line, not number)
            for number, text in enumerate(self._blank)
            for line in textwrap.wrap(text, inside) or [""]
        ]
        at = y - max(1, (self.size.height - len(words)) // 3)
        if not 0 <= at < len(words):
            return Strip.blank(width, base)
        text, first = words[at]
        style = base + self._tone("strong" if first else "quiet")
        return Strip([Segment(fit(text.center(width).rstrip(), width), style)])

    def _made(self, line: int, now: int) -> tuple[CellText, ...]:
        if not 0 <= line < len(self._cursor.keys):
            return ()
        row = self._rows.get(self._cursor.keys[line])
        return cells(row, self._layout, now) if row is not None else ()

    def _load(self, first: int, last: int) -> None:
        keys = self._cursor.keys
        if all(key in self._rows for key in keys[first:last]):
            return
        if len(self._rows) > KEPT_ROWS:
            self._rows.clear()
        wanted = keys[max(0, first - OVERSCAN) : last + max(OVERSCAN, self.size.height)]
        self._rows.update(self._read([key for key in wanted if key not in self._rows]))

    def _resized(self) -> None:
        width = self.size.width
        names = {key.server for key in self._cursor.keys[:NAMES_MEASURED]}
        self._layout = columns(width, sorted(names), ends=self._section in ("needs-you", "running"))
        if self.head is not None:
            self.head.refresh()
        self._painted.clear()
        self.virtual_size = Size(width, len(self._cursor.keys))
        self.refresh()

    def on_resize(self) -> None:
        """Divide the columns anew, and keep the highlight in sight."""
        self._resized()
        self._reveal()

    # The person's moves

    def action_step(self, lines: int) -> None:
        """Move the highlight."""
        self._move(lambda: self._cursor.step(lines))

    def action_page(self, pages: int) -> None:
        """Move the highlight by what fits on the screen."""
        self._move(lambda: self._cursor.step(pages * max(1, self.size.height - 1)))

    def action_edge(self, end: bool) -> None:
        """Move to the first or the last task."""
        self._move(lambda: self._cursor.move_to(len(self._cursor.keys) - 1 if end else 0))

    def highlight(self, key: TaskKey) -> bool:
        """Move to a task; says whether the list has it."""
        line = self._cursor.line_of(key)
        if line is None:
            return False
        self._move(lambda: self._cursor.move_to(line))
        return True

    def _move(self, move: Callable[[], None]) -> None:
        before, key = self._cursor.place, self._cursor.key
        move()
        self.refresh_line(before)
        self.refresh_line(self._cursor.place)
        self._reveal()
        if self._cursor.key != key:
            self.post_message(self.Highlighted())

    def _reveal(self) -> None:
        if self._cursor.keys and self.size.height:
            region = Region(0, self._cursor.place, self.size.width, 1)
            self.scroll_to_region(region, animate=False, immediate=True, x_axis=False)

    def on_click(self, event: events.Click) -> None:
        """Highlight what was clicked; a double click chooses it."""
        line = event.y + round(self.scroll_y)
        if 0 <= line < len(self._cursor.keys):
            self._move(lambda: self._cursor.move_to(line))
            if event.chain == 2 and self._cursor.key is not None:
                self.post_message(self.Chosen(self._cursor.key))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Show what a click would highlight."""
        self._hover(event.y + round(self.scroll_y))

    def on_leave(self) -> None:
        """Show nothing under the pointer any more."""
        self._hover(None)

    def _hover(self, line: int | None) -> None:
        before, self._hovered = self._hovered, line
        for changed in {before, line} if before != line else ():
            if changed is not None:
                self.refresh_line(changed)


class ListHead(Widget):
    """The names of the columns, above a list and divided as it is."""

    DEFAULT_CSS = """
    ListHead {
        height: 1;
        color: $quiet;
    }
    """

    def __init__(self, of: TaskList) -> None:
        super().__init__()
        self._list = of
        of.head = self

    def render_line(self, y: int) -> Strip:
        """Draw the one line."""
        parts = []
        for column in self._list.layout_columns:
            word = COLUMN_HEADS.get(column.name)
            if word is None:
                left = "time left" if column.width > SHORT_LEFT_WIDTH else "time"
                word = left if column.name == "left" else TIME_HEADS[self._list.section]
            parts.append(fit(word, column.width, right=column.right))
        text = " " * MARGIN + (" " * GAP).join(parts)
        return Strip([Segment(fit(text, self.size.width), self.rich_style)])
