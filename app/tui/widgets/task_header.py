"""The head of a task: whose it is, how it stands, what time it has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.cells import cell_len, set_cell_size
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widget import Widget

from app.text import duration, inert_line
from app.tui.widgets.asking_on import AskingOn
from app.tui.widgets.inert import InertLine, InertText, Part, joined, joined_line, line
from app.tui.widgets.times import clock_time
from app.tui.words import Tone, left_of, status_of
from storage.records import TaskRecord

_TONES: dict[Tone, str] = {
    "ask": "bold $text-warning",
    "run": "$text-primary",
    "good": "$text-success",
    "bad": "bold $text-error",
    "quiet": "$text-muted",
}


SHORT: Final = 30
"""Lines of the screen below which the server's message has one line."""


def shorten(text: str, width: int) -> str:
    """Return *text* in at most *width* cells, cut after a word where there is one."""
    if cell_len(text) <= width:
        return text
    cut = set_cell_size(text, max(0, width - 1))
    head = cut.rsplit(" ", 1)[0] if " " in cut[-20:] else cut
    return f"{head.rstrip()}…"


def cancel_words(record: TaskRecord, now: int) -> str:
    """Return how a wish to cancel stands; empty where there was none. Cancelling is cooperative."""
    state = record.state
    if state.cancel_requested_at is None:
        return ""
    ago = duration(now - state.cancel_requested_at)
    if state.tracking == "ended":
        return "" if state.status == "cancelled" else f"Asked to cancel {ago} ago; it ended first."
    if state.cancel_acknowledged_at is None:
        return f"Asked to cancel {ago} ago; the server has not confirmed yet."
    return f"Asked to cancel {ago} ago; the server has taken note and says no more yet."


SHORT_ID: Final = 9
"""Characters of an id where there is little room; the whole of it stands in the JSON and in confirmations."""


def times_line(id: str, started: str, changed: str, left: str, width: int) -> str:
    """Return what fits into *width* cells, whole parts only: the id is shortened first, then the start goes,
    then the change, then the id; the time left stays longest.
    """
    for parts in _ways(id, started, changed, left):
        text = "  ".join(part for part in parts if part)
        if cell_len(text) <= width:
            return text
    return left or changed


def _ways(id: str, started: str, changed: str, left: str) -> Iterator[tuple[str, ...]]:
    short = f"{id[:SHORT_ID]}…" if len(id) > SHORT_ID + 1 else id
    yield (id, started, changed, left)
    yield (short, started, changed, left)
    yield (short, changed, left)
    yield (short, left) if left else (short,)
    yield (changed, left)


class TimesLine(Widget):
    """Which task it is and what time it has, on one line, in whole words."""

    DEFAULT_CSS = """
    TimesLine { height: 1; color: $text-muted; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._parts = ("", "", "", "")

    def show(self, id: str, started: str, changed: str, left: str) -> None:
        """Show these; an empty one is left out."""
        if (id, started, changed, left) != self._parts:
            self._parts = (id, started, changed, left)
            self.refresh()

    def render(self) -> Content:
        """Draw what there is room for."""
        return line(times_line(*self._parts, self.size.width))


class TaskHeader(Vertical):
    """Three or four lines that stay while the rest scrolls."""

    DEFAULT_CSS = """
    TaskHeader { height: auto; padding: 0 1; }
    TaskHeader > Horizontal { height: 1; }
    TaskHeader .status { width: auto; }
    TaskHeader .said { max-height: 4; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._title = InertLine("")
        self._status = InertText("", classes="status")
        self._times = TimesLine()
        self._said = InertText("", classes="said", limit=1000)
        self._asking_on = AskingOn()

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield self._title
            yield self._status
        yield self._times
        yield self._said
        yield self._asking_on

    def show(self, record: TaskRecord, now: int) -> None:
        """Show this task."""
        self._asking_on.show(record)
        state, status = record.state, status_of(record)
        self._title.show(
            joined_line(
                (record.key.server, "bold"),
                (" › ", "$text-muted"),
                (record.tool or record.method, "bold"),
                "  ",
            )
        )
        word = "waiting for you" if status.tone == "ask" and record.open_questions else status.word
        self._status.show(joined_line((f"{status.mark} {inert_line(word, 40)}", _TONES[status.tone])))
        started = record.added_at if state.created_at is None else state.created_at
        self._times.show(
            inert_line(record.key.id, 44),
            f"started {clock_time(started, now)}",
            f"changed {duration(now - record.changed_at)} ago",
            left_of(record, now),
        )
        said = self._said_parts(record, now)
        # Where there is room, the line stays while a task is watched: what is below must not move under the
        # pointer when its server says something.
        steady = state.tracking == "active" and self.app.size.height >= SHORT
        self._said.display = bool(said) or steady
        self._said.show(joined(*said[:-1]) if said else " ")

    def _said_parts(self, record: TaskRecord, now: int) -> list[Part]:
        state = record.state
        parts: list[Part] = []
        message = state.reason or state.status_message
        if message:
            # In whole words up to an ellipsis: on a small screen the form needs the lines.
            room = self.size.width * (1 if self.app.size.height < SHORT else 2) or 300
            parts += [shorten(inert_line(message, 1000), room), "\n"]
        if state.problem:
            parts += [(f"! {inert_line(state.problem, 300)}", "$text-warning"), "\n"]
        cancel = cancel_words(record, now)
        if cancel:
            parts += [(cancel, "$text-warning"), "\n"]
        if record.archived_at is not None:
            parts += [("Archived.", "$text-muted"), "\n"]
        return parts
