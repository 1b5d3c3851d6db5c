"""What stands where on a line of the list, measured in cells; pure, so that every width can be tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len, set_cell_size

from app.text import inert_line
from app.tui.words import Tone, age_of, is_urgent, left_of, message_of, status_of
from storage.records import TaskRow

ColumnName = Literal["server", "tool", "status", "message", "age", "left"]
GAP = 2
MARGIN = 1
LEFT_WIDTH = 11
SHORT_LEFT_WIDTH = 8
"""Of a narrow line, which says the time left in one unit."""
AGE_WIDTH = 6


@dataclass(frozen=True, slots=True)
class Column:
    """A column and its width in cells."""

    name: ColumnName
    width: int
    right: bool = False
    """Its text stands at its right edge."""


@dataclass(frozen=True, slots=True)
class CellText:
    """The text of one cell, inert, and its tone."""

    text: str
    tone: Tone | Literal["plain", "strong", "urgent"] = "plain"


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Return inert *text* in exactly *width* cells, cut with an ellipsis where it is longer."""
    if text.isascii():
        length = len(text)
        if length <= width:
            return text.rjust(width) if right else text.ljust(width)
        return text[: width - 1] + "…" if width > 0 else ""
    length = cell_len(text)
    if length > width:
        # A wide character may straddle the edge: it is then left out and a blank stands for its first half.
        return set_cell_size(text, width - 1) + "…" if width > 0 else ""
    blank = " " * (width - length)
    return blank + text if right else text + blank


def columns(width: int, servers: Sequence[str] = (), *, ends: bool = True) -> tuple[Column, ...]:
    """Divide a line of *width* cells.

    *servers* are the names that the first column should have room for, within reason. With *ends*, there is a
    column for the time left. A narrow line gives up the server's message first, then the age, then the time
    left; server, tool and status stay.
    """
    room = max(0, width - 2 * MARGIN)
    longest = max((cell_len(inert_line(name, 40)) for name in servers), default=6)
    server = max(6, min(longest, 8 if width < 60 else 12 if width < 110 else 18))
    status = 13 if width < 72 else 14 if width < 110 else 17
    if width < 50:
        tool = max(4, room - server - status - 2 * GAP)
        return (Column("server", server), Column("tool", tool), Column("status", status))
    age = Column("age", AGE_WIDTH, right=True)
    times: tuple[Column, ...] = (age,)
    if ends:
        wide = width >= 72
        left = Column("left", LEFT_WIDTH if wide else SHORT_LEFT_WIDTH, right=True)
        times = (age, left) if wide else (left,)
    used = server + status + sum(column.width + GAP for column in times) + 2 * GAP
    if width < 72:
        tool = max(6, room - used)
        return (Column("server", server), Column("tool", tool), Column("status", status), *times)
    flexible = room - used - GAP
    tool = max(10, min(30, flexible // 2))
    return (
        Column("server", server),
        Column("tool", tool),
        Column("status", status),
        Column("message", max(0, flexible - tool)),
        *times,
    )


def cells(row: TaskRow, layout: Sequence[Column], now: int) -> tuple[CellText, ...]:
    """Return the text of each column for a task, inert and cut to its width."""
    return tuple(
        CellText(fit(made.text, column.width, right=column.right), made.tone)
        for column in layout
        for made in (_cell(row, column.name, now, ages=any(c.name == "age" for c in layout)),)
    )


def _cell(row: TaskRow, name: ColumnName, now: int, *, ages: bool) -> CellText:
    if name == "server":
        return CellText(inert_line(row.key.server, 80))
    if name == "tool":
        return CellText(inert_line(row.tool or row.key.id, 160), "strong")
    if name == "status":
        status = status_of(row)
        return CellText(inert_line(str(status), 80), status.tone)
    if name == "message":
        return CellText(inert_line(message_of(row), 300), "bad" if row.state.problem else "quiet")
    if name == "left":
        left = left_of(row, now, short=not ages)
        if left or ages:
            return CellText(left, "urgent" if is_urgent(row, now) else "quiet")
        return CellText(f"{age_of(row, now).split()[0]} ago", "quiet")
    return CellText(age_of(row, now), "quiet")
