"""What happened to a task, in order, as the log has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from app.text import inert_line
from app.tui.widgets.inert import InertText, Part, joined
from app.tui.widgets.json_view import load
from app.tui.widgets.times import clock_time
from storage.records import EventRecord

_LONGEST: Final = 160
"""Characters of one value in a line."""

_LEFT_OUT: Final = frozenset(
    {"request", "response", "snapshot", "result", "question", "digest", "fingerprint", "withheld"}
)
"""Large parts that the other views show, and what is for the export alone."""


def event_words(event: EventRecord) -> str:
    """Return one event in words: what happened, then its data."""
    data = load(event.data_json)
    words = inert_line(event.kind, 60).replace("_", " ")
    if not isinstance(data, Mapping):
        return words
    told = [
        f"{inert_line(str(name), 40)}: {inert_line(_told(value), _LONGEST)}"
        for name, value in data.items()
        if name not in _LEFT_OUT and value is not None
    ]
    return f"{words}  {' · '.join(told)}" if told else words


def _told(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


class Timeline(InertText):
    """The events of a task, the newest last."""

    def show_events(self, events: Sequence[EventRecord], now: int) -> None:
        """Show these."""
        parts: list[Part] = []
        for event in events:
            parts += [
                (clock_time(event.at, now, seconds=True), "$text-muted"),
                f"  {event_words(event)}",
                "\n",
            ]
        self.show(joined(*parts[:-1]) if parts else "Nothing has happened yet.")
