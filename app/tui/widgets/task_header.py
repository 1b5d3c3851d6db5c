"""The head of a task: whose it is, how it stands, what time it has."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from app.text import duration, inert_line
from app.tui.widgets.inert import InertLine, InertText, Part, joined, joined_line
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


class TaskHeader(Vertical):
    """Three or four lines that stay while the rest scrolls."""

    DEFAULT_CSS = """
    TaskHeader { height: auto; padding: 0 1; }
    TaskHeader > Horizontal { height: 1; }
    TaskHeader .status { width: auto; }
    TaskHeader .times { color: $text-muted; }
    TaskHeader .said { max-height: 3; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._title = InertLine("")
        self._status = InertText("", classes="status")
        self._times = InertLine("", classes="times")
        self._said = InertText("", classes="said", limit=1000)

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield self._title
            yield self._status
        yield self._times
        yield self._said

    def show(self, record: TaskRecord, now: int) -> None:
        """Show this task."""
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
        times = [
            inert_line(record.key.id, 44),
            f"started {clock_time(started, now)}",
            f"changed {duration(now - record.changed_at)} ago",
        ]
        left = left_of(record, now)
        if left:
            times.append(left)
        self._times.show("  ".join(times))
        said = self._said_parts(record, now)
        self._said.display = bool(said)
        self._said.show(joined(*said[:-1]))

    def _said_parts(self, record: TaskRecord, now: int) -> list[Part]:
        state = record.state
        parts: list[Part] = []
        message = state.reason or state.status_message
        if message:
            parts += [inert_line(message, 300), "\n"]
        if state.problem:
            parts += [(f"! {inert_line(state.problem, 300)}", "$text-warning"), "\n"]
        cancel = cancel_words(record, now)
        if cancel:
            parts += [(cancel, "$text-warning"), "\n"]
        if record.archived_at is not None:
            parts += [("Archived.", "$text-muted"), "\n"]
        return parts
