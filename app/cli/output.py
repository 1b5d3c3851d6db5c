"""Printing: data to stdout, words to stderr, nothing of a server's unescaped.

`data` and `words` make what they are given inert, so that a control sequence in a server's text can't reach
the terminal by any route through this module; colour is added after that, and only for a terminal.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, TextIO

import click

from app.text import PREVIEW_LIMIT, duration, inert, inert_line, plural
from storage.records import TaskKey, TaskRow

GAP: Final = "  "

NARROW: Final = 100
"""Columns of a terminal below which a long key is abbreviated."""

KEY_LIMIT: Final = 28
"""Characters of a key shown on a narrow terminal; a beginning or an ending is enough to name it."""

# An escaped character beyond ASCII, or any other escape, so that the second half of "\\\\u00e9" is not
# taken for one. A surrogate that has lost its other half stays as it is.
_ESCAPE: Final = re.compile(
    r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})|\\."
)


def prepare_streams() -> None:
    """Let a terminal that can't show a character show an escape instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def is_terminal(stream: TextIO | None) -> bool:
    """Say whether *stream* is a terminal; ``None`` is a stream that was closed before we began."""
    return stream is not None and stream.isatty()


def words(text: str) -> None:
    """Print words for a person on stderr."""
    click.echo(inert(text), err=True)


def data(text: str) -> None:
    """Print data on stdout; all of it, unless it goes to a terminal, which says how much was left out."""
    click.echo(inert(text, PREVIEW_LIMIT if is_terminal(sys.stdout) else len(text)))


def readable_json(text: str) -> str:
    """Return JSON for a person: on one line, escaped characters as themselves, inert; tokens as they are."""
    return inert_line(_ESCAPE.sub(_character, text.strip()), len(text))


def _character(match: re.Match[str]) -> str:
    high, low, single = match.groups()
    if high is not None:
        return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))
    code = int(single, 16) if single is not None else 0
    return chr(code) if code >= 0x80 and not 0xD800 <= code < 0xE000 else match.group()


def command_name(key: TaskKey) -> str:
    """Return a task's id as it is typed after a command: quoted where a shell would make more of it."""
    return shlex.quote(inert_line(key.id, len(key.id)))


def short_key(key: str, stream: TextIO | None = None) -> str:
    """Return a question's key, its middle left out where the terminal has no room for a long one."""
    narrow = is_terminal(stream or sys.stdout) and shutil.get_terminal_size().columns < NARROW
    shown = inert_line(key)
    if not narrow or len(shown) <= KEY_LIMIT:
        return shown
    half = KEY_LIMIT // 2
    return f"{shown[:half]}…{shown[-half:]}"


def json_line(text: str) -> None:
    """Print JSON that is printable ASCII already, at once (a reader may be waiting for it)."""
    click.echo(text)


def json_lines(items: Sequence[Any]) -> None:
    """Print an array, one item a line."""
    from app.cli.shapes import to_json

    if not items:
        json_line("[]")
        return
    body = ",\n".join(f" {to_json(item)}" for item in items)
    json_line(f"[\n{body}\n]")


def has_colour() -> bool:
    """Say whether stdout is a terminal that wants colour (https://no-color.org)."""
    return is_terminal(sys.stdout) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width(text: str) -> int:
    """Return how many cells *text* takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    cells = 0
    for char in text:
        if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
            continue
        cells += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return cells


def fit(text: str, cells: int) -> str:
    """Return *text* cut to *cells*, ending in ``…`` where something was left out."""
    if width(text) <= cells:
        return text
    kept, used = [], 1
    for char in text:
        used += width(char)
        if used > cells:
            break
        kept.append(char)
    return "".join(kept).rstrip() + "…"


def columns(header: Sequence[str], rows: Sequence[Sequence[str]], *, room: int | None = None) -> list[str]:
    """Return aligned lines, header first; the last column is cut to *room* cells (``None``: never)."""
    cells = [list(header), *([inert_line(cell) for cell in row] for row in rows)]
    widths = [max(width(row[i]) for row in cells) for i in range(len(header))]
    lines = []
    for row in cells:
        line = GAP.join(cell + " " * (widths[i] - width(cell)) for i, cell in enumerate(row[:-1]))
        line = f"{line}{GAP}{row[-1]}" if line else row[-1]
        lines.append((fit(line, room) if room else line).rstrip())
    return lines


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print *rows* as aligned columns; on a terminal no wider than it."""
    terminal = is_terminal(sys.stdout)
    room = max(40, shutil.get_terminal_size().columns) if terminal else None
    first, *rest = columns(header, rows, room=room)
    click.echo(click.style(first, bold=True) if has_colour() else first)
    for line in rest:
        click.echo(line)


def status_words(row: TaskRow) -> str:
    """Return a task's status in a word or two: the server's, with what we know beside it."""
    state = row.state
    if state.tracking in ("lost", "stopped"):
        return "outcome unknown" if row.kind == "call" and state.tracking == "lost" else state.tracking
    status = state.status or "unknown"
    if state.is_error:
        status += " (isError)"
    if state.tracking == "active" and state.cancel_requested_at is not None:
        status += ", asked to cancel"
    return status


def left_words(row: TaskRow, now: int) -> str:
    """Return the time left before the server may forget an active task; empty where there is no limit."""
    expires = row.state.expires_at
    if expires is None or row.state.tracking != "active":
        return ""
    return f"{duration(expires - now)} left" if expires > now else "expired"


def message_words(row: TaskRow) -> str:
    """Return the one thing worth saying about a task."""
    if row.state.problem and row.state.tracking == "active":
        return row.state.problem
    if row.state.tracking in ("lost", "stopped") and row.state.reason:
        return row.state.reason
    asks = plural(row.open_questions, "question") if row.open_questions else ""
    return ": ".join(part for part in (asks, row.state.status_message or "") if part)


def short_ids(keys: Collection[TaskKey], floor: int = 12) -> dict[TaskKey, str]:
    """Return for each task the beginning of its id, at least *floor* characters, that names no other one."""
    ids = sorted(key.id for key in keys)
    needed: dict[str, int] = {}
    for left, right in pairwise(ids):
        pairs = enumerate(zip(left, right, strict=False))
        shared = next((place for place, (a, b) in pairs if a != b), min(len(left), len(right))) + 1
        needed[left] = max(needed.get(left, floor), shared)
        needed[right] = max(needed.get(right, floor), shared)
    return {key: key.id[: needed.get(key.id, floor)] for key in keys}


def list_rows(rows: Sequence[TaskRow], now: int, ids: Mapping[TaskKey, str] | None = None) -> None:
    """Print the list for a person; with what names each task in *ids* instead of its whole id."""
    header = ("SECTION", "SERVER", "TASK", "TOOL", "STATUS", "AGE", "LEFT", "MESSAGE")
    body = [
        (
            row.section,
            row.key.server,
            (ids or {}).get(row.key, row.key.id),
            row.tool or "-",
            status_words(row),
            duration(now - (row.state.created_at or row.added_at)),
            left_words(row, now) or "-",
            message_words(row),
        )
        for row in rows
    ]
    table(header, body)


def clock_words(at: int | None) -> str:
    """Return a time for a person, in UTC."""
    from app.cli.shapes import moment

    text = moment(at)
    return "-" if text is None else f"{text[:10]} {text[11:19]} UTC"


def result_lines(result: Any) -> list[str]:
    """Return a tool's result for a person: its texts as they are, all else described."""
    from app.cli.shapes import to_json

    if not isinstance(result, dict):
        return [inert(result) if isinstance(result, str) else readable_json(to_json(result))]
    lines: list[str] = []
    content = result.get("content")
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            lines += block["text"].splitlines() or [""]
        elif isinstance(block, dict):
            lines.append(_block_words(block))
    structured = result.get("structuredContent")
    if structured is not None:
        lines.append(readable_json(to_json(structured)))
    return lines


def _block_words(block: dict[str, Any]) -> str:
    kind, mime = str(block.get("type")), block.get("mimeType")
    resource = block.get("resource") if isinstance(block.get("resource"), dict) else block
    uri = resource.get("uri") if isinstance(resource, dict) else None
    payload = block.get("data") or (resource.get("blob") if isinstance(resource, dict) else None)
    parts = [kind, *(str(part) for part in (mime, uri) if part)]
    if isinstance(payload, str):
        parts.append(f"{len(payload):,} characters of base64")
    return f"[{inert_line(', '.join(parts))}]"
