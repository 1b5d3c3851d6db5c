"""``export``: the log, whole or in part, for other programs and for proof."""

from __future__ import annotations

import contextlib
import csv
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TextIO

import click

from app.cli.exits import CommandError, Exit, usage
from app.cli.output import words
from app.cli.parts import Parts
from app.text import inert_line, plural
from storage.records import EventRecord, Reader

COLUMNS: Final = (
    *("seq", "at", "server", "taskId", "kind", "key", "question", "by", "fingerprint"),
    *("request", "response", "digest", "reason", "data"),
)
"""Of the CSV. What an event says beside these is JSON in ``data``."""

_TEXTS: Final = ("key", "by", "fingerprint", "response", "digest", "reason")
_FORMULA: Final = re.compile("[=+\\-@\t\r\n＝＋－＠]")
"""A cell that begins so is computed by spreadsheets (OWASP, "CSV Injection")."""


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "csv"]),
    default="jsonl",
    help="JSON Lines (an event a line), or CSV. Default: jsonl.",
)
@click.option("--server", metavar="NAME", help="Only this server's events.")
@click.option("--since", metavar="TIME", help="Only from this time on: 2026-07-28, or 2026-07-28T10:30:00Z.")
@click.option("--output", metavar="FILE", default="-", help="Write a private file; - is stdout, the default.")
@click.pass_obj
def export(parts: Parts, form: str, server: str | None, since: str | None, output: str) -> None:
    """Write the log: every question, every answer with who gave it and what was sent, and all else that
    happened, oldest first.

    Nobody is contacted. Times are in UTC, as is a TIME that names no zone. Secrets were never logged: "sent,
    not kept" stands in their place.
    """
    start = None if since is None else read_time(since)
    with parts.reader() as reader:
        if server is not None and not _is_known(parts, reader, server):
            raise CommandError(
                Exit.UNKNOWN, f"No server named {inert_line(server)}; `taskinbox servers list` shows them."
            )
        events = reader.log(server=server, since=start)
        write = _csv if form == "csv" else _json_lines
        if output == "-":
            if sys.stdout is None:
                raise usage("stdout is closed; use --output FILE.")
            write(events, sys.stdout)
            return
        path = _writable(output)
        count = _to_file(path, lambda file: write(events, file))
        words(f"{plural(count, 'event')} written to {inert_line(str(path))}.")


def read_time(text: str) -> int:
    """Return a time (ISO 8601; UTC where it names no zone) in epoch milliseconds.

    Raises `CommandError`, usage.
    """
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
        return int(found.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise usage(
            f"--since: {inert_line(text, 60)!r} is not a time such as 2026-07-28 or 2026-07-28T10:30:00Z."
        ) from None


def _is_known(parts: Parts, reader: Reader, server: str) -> bool:
    return next(reader.log(server=server), None) is not None or server in parts.entries()


def _writable(output: str) -> Path:
    try:
        path = Path(output).expanduser().resolve()
    except RuntimeError as error:  # the home folder of nobody
        raise usage(f"--output: {inert_line(str(error))}.") from None
    if path.exists() and not path.is_file():
        raise usage(f"--output: {inert_line(str(path))} is not a regular file.")
    if not path.parent.is_dir():
        raise usage(f"--output: there is no folder {inert_line(str(path.parent))}.")
    return path


def _to_file(path: Path, write: Callable[[TextIO], int]) -> int:
    """Write a file that nobody else can read, whole or not at all; returns what *write* does."""
    number, name = tempfile.mkstemp(prefix=".taskinbox-", dir=path.parent)  # made 0600
    try:
        with open(number, "w", encoding="utf-8", newline="") as file:
            count = write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    return count


def _json_lines(events: Iterator[EventRecord], out: TextIO) -> int:
    from app.cli.shapes import embedded, moment, to_json

    count = 0
    for event in events:
        count += 1
        line = {
            "seq": event.seq,
            "at": moment(event.at),
            "server": event.server,
            "taskId": event.task_id,
            "kind": event.kind,
            "data": embedded(event.data_json),
        }
        out.write(f"{to_json(line)}\n")
    return count


def _csv(events: Iterator[EventRecord], out: TextIO) -> int:
    from app.cli.shapes import moment

    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    count = 0
    for event in events:
        count += 1
        row = {"at": moment(event.at), "server": event.server, "taskId": event.task_id, "kind": event.kind}
        cells = {name: _cell(value) for name, value in {**row, **_told(event.data_json)}.items()}
        writer.writerow([event.seq, *(cells.get(name, "") for name in COLUMNS[1:])])
    return count


def _told(data_json: str) -> dict[str, str]:
    """Return what an event says, by column."""
    from app.cli.shapes import parsed, plain_json, to_json

    data: Any = parsed(data_json)
    if not isinstance(data, dict):
        return {"data": plain_json(data_json)}
    found = {name: data.pop(name) for name in _TEXTS if isinstance(data.get(name), str)}
    if "response" in found:
        found["response"] = plain_json(found["response"])
    try:
        found |= {name: to_json(data.pop(name)) for name in ("request", "question") if name in data}
        return found | ({"data": to_json(data)} if data else {})
    except RecursionError:  # what can be read can still be nested too deeply to be written
        return {"data": plain_json(data_json)}


def _cell(text: str | None) -> str:
    """Return a cell without control characters, that no spreadsheet takes for a formula."""
    shown = inert_line(text or "", len(text or ""))
    return f"'{shown}" if _FORMULA.match(text or "") else shown
