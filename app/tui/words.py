"""The words and marks in which a task is spoken of, the same on every screen.

A mark is never alone and colour is never the only difference: each status has a word, too. The marks are
one cell wide everywhere but in the oldest East Asian terminals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from app.engine.commands import TOO_OLD
from app.text import duration, inert_line, plural
from storage.records import Section, ServerRecord, TaskRow

Tone = Literal["ask", "run", "good", "bad", "quiet"]
"""What a status means to a person; a theme gives each tone its colour."""

SECTION_NAMES: Final[dict[Section, str]] = {
    "needs-you": "Needs you",
    "running": "Running",
    "finished": "Finished",
    "lost": "Lost",
    "archived": "Archived",
}

TIME_HEADS: Final[dict[Section, str]] = {
    "needs-you": "asked",
    "running": "age",
    "finished": "ended",
    "lost": "since",
    "archived": "ended",
}
"""What the column of the time says, section by section."""

EMPTY_WORDS: Final[dict[Section, tuple[str, str]]] = {
    "needs-you": ("Nothing is waiting for you.", "A task that asks something will stand here."),
    "running": ("Nothing is running.", "Press n to call a tool."),
    "finished": ("Nothing has finished yet.", "Completed, failed and cancelled tasks will stand here."),
    "lost": (
        "Nothing is lost.",
        "A task its server no longer knows would stand here; our record of it stays.",
    ),
    "archived": ("Nothing is archived.", "Press e on a task to put it away; new activity brings it back."),
}

NO_SERVERS: Final = (
    "No server yet.",
    "Press s to add one, or in a shell:",
    "taskinbox servers add NAME URL",
)


def blank_words(section: Section, filter_text: str, *, nothing_yet: bool) -> tuple[str, ...]:
    """Return what an empty list says; *nothing_yet*: there is neither a task nor a server."""
    if filter_text:
        shown = inert_line(filter_text, 60)
        return ("Nothing matches.", f"No task here with “{shown}”. Escape clears the filter.")
    return NO_SERVERS if nothing_yet else EMPTY_WORDS[section]


def inbox_keys(section: Section, marked: int = 0) -> tuple[tuple[str, str, str], ...]:
    """Return the keys of the inbox for its last line: key, word and action, the most needed first.

    *marked*: so many tasks are marked, to be answered together.
    """
    away = "bring back" if section == "archived" else "archive"
    together = (("A", f"answer {marked} marked", "answer_marked"),) if marked else ()
    return (
        *together,
        ("⏎", "open", "open"),
        ("a", "answer", "answer"),
        ("c", "cancel task", "cancel"),
        ("e", away, "archive"),
        ("/", "filter", "filter"),
        ("n", "call a tool", "call"),
        ("?", "help", "help"),
        ("s", "servers", "servers"),
        ("space", "mark", "mark"),
        ("r", "look now", "look"),
        ("f", "forget", "forget"),
        ("^p", "commands", "app.command_palette"),
        ("q", "quit", "app.quit"),
    )


@dataclass(frozen=True, slots=True)
class Status:
    """How a task stands, for a person."""

    mark: str
    word: str
    tone: Tone

    def __str__(self) -> str:
        return f"{self.mark} {self.word}"


_BY_WORD: Final[dict[str, Status]] = {
    "completed": Status("✓", "completed", "good"),
    "failed": Status("✗", "failed", "bad"),
    "cancelled": Status("⊘", "cancelled", "quiet"),
}


def status_of(row: TaskRow) -> Status:
    """Say how a task stands: what it asks first, then what we know of it, then its server's own word."""
    state = row.state
    if state.tracking == "lost":
        unknown = row.kind == "call"
        return Status("?", "not known" if unknown else "lost", "bad")
    if state.tracking == "stopped":
        return Status("-", "stopped" if row.kind == "call" else "not watched", "quiet")
    if state.tracking == "ended":
        if state.status == "completed" and state.is_error:
            return Status("✗", "tool error", "bad")
        return _BY_WORD.get(state.status or "", Status("·", state.status or "ended", "quiet"))
    if state.cancel_requested_at is not None:
        return Status("⊘", "cancel asked", "quiet")
    if row.open_questions:
        return Status("!", plural(row.open_questions, "question"), "ask")
    if state.status == "input_required":
        return Status("↻", "waiting", "run")
    if row.kind == "call":
        return Status("⋯", "calling", "run")
    if state.status in (None, "working"):
        return Status("⋯", "working" if state.status else "not seen yet", "run")
    return Status("⋯", state.status or "", "run")


def message_of(row: TaskRow) -> str:
    """Return what to say beside the status: why it is lost, what is wrong, or the server's message."""
    state = row.state
    return state.reason or state.problem or state.status_message or ""


def since_of(row: TaskRow) -> int:
    """Return the time from which a task's age counts: its start while it runs, else its last change."""
    if row.section == "running":
        return row.added_at if row.state.created_at is None else row.state.created_at
    return row.changed_at


def age_of(row: TaskRow, now: int) -> str:
    """Return how long ago that was: ``3m``."""
    return duration(now - since_of(row))


def left_of(row: TaskRow, now: int, *, short: bool = False) -> str:
    """Return the time before the server may forget a task: ``12m left``, ``expired``, or nothing.

    Only for a task that is being watched: of the others we have our own record, which does not expire. With
    *short*, it is said in one unit.
    """
    end = row.state.expires_at
    if end is None or row.state.tracking != "active":
        return ""
    if end <= now:
        return "expired"
    length = duration(end - now)
    return f"{length.split()[0] if short else length} left"


def is_urgent(row: TaskRow, now: int) -> bool:
    """Say whether less than five minutes are left."""
    end = row.state.expires_at
    return end is not None and row.state.tracking == "active" and end - now < 5 * 60_000


def server_health(record: ServerRecord | None, now: int, observing: str = "") -> Status:
    """Say how a server is; ``None``: nothing is known of it yet.

    *observing* says how the tasks of a server that is well are observed (``subscribed``: it tells of them,
    ``polling``: it is asked); empty: it has none that are watched.
    """
    if record is None or record.state == "unknown":
        return Status("○", "not contacted yet", "quiet")
    if record.state == "ok":
        return Status("●", observing or "ok", "good")
    age = duration(now - record.since)
    if record.state == "sign-in":
        return Status("○", "sign-in needed", "ask")
    if record.state == "faulty" and (record.message or "").startswith(TOO_OLD):
        return Status("○", "too old", "quiet")
    if record.state == "faulty":
        return Status("◍", f"faulty {age}", "bad")
    return Status("○", f"unreachable {age}", "bad")
