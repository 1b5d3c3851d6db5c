"""A field's text in the person's own editor, ``VISUAL`` or ``EDITOR``.

The terminal is the editor's while it runs; tasks are watched on meanwhile. The text lies in a folder that
only its owner may read, and the folder is gone afterwards, with whatever the editor left there.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

from textual.app import App, SuspendNotSupported

from app.text import byte_size, inert, inert_line
from app.tui.widgets.controls import PASTE_LIMIT, line_ends

MOST_BYTES: Final = 4 * PASTE_LIMIT
"""Bytes of a text that comes back: UTF-8 takes up to four for each character."""

_EDITING: Final[WeakSet[App[Any]]] = WeakSet()
"""The apps whose terminal is an editor's: the key may come twice before the first one has it."""


class EditorFailed(Exception):
    """The text was not edited; the message says why, and what to do."""


def editor_command(environ: Mapping[str, str]) -> list[str]:
    """Return the words of the person's editor; no shell reads them. Raises `EditorFailed`."""
    name = next((name for name in ("VISUAL", "EDITOR") if environ.get(name, "").strip()), None)
    if name is None:
        raise EditorFailed("No editor is set: set VISUAL or EDITOR, and start taskinbox again.")
    try:
        words = shlex.split(environ[name])
    except ValueError as error:
        raise EditorFailed(f"{name} can't be read as a command: {error}.") from None
    if not words:
        raise EditorFailed(f"{name} names no command.")
    return words


def edit_in(command: Sequence[str], text: str, suffix: str) -> str:
    """Return *text* as the editor left it; blocks until that ends. Raises `EditorFailed`.

    A line end that the editor put behind the last line is not part of the text.
    """
    with tempfile.TemporaryDirectory(prefix="taskinbox-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / f"answer.{suffix}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace", newline="") as file:
            file.write(text)
        name = inert_line(command[0], 80)
        try:
            code = subprocess.run([*command, str(path)], check=False).returncode
        except OSError as error:
            raise EditorFailed(f"{name} could not be started: {error.strerror or error}.") from None
        if code != 0:
            raise EditorFailed(f"{name} ended with exit code {code}; the field is as it was.")
        return _read(path, name, ends_line=text.endswith("\n"))


def _read(path: Path, name: str, *, ends_line: bool) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        why = error.strerror or str(error)
        raise EditorFailed(f"What {name} wrote can't be read: {why}; the field is as it was.") from None
    try:
        text = line_ends(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        if len(data) <= MOST_BYTES:
            raise EditorFailed(f"What {name} wrote is not UTF-8; the field is as it was.") from None
        text = ""
    if len(data) > MOST_BYTES or len(text) > PASTE_LIMIT:
        raise EditorFailed(f"That is too long: {byte_size(MOST_BYTES)} at most; the field is as it was.")
    if text.endswith("\n") and not ends_line:
        text = text[:-1]
    return inert(text, PASTE_LIMIT)


async def edited(app: App[Any], text: str, suffix: str) -> str:
    """Return *text* as the person left it in their editor; one at a time, a second one changes nothing.

    Raises `EditorFailed`.
    """
    if app in _EDITING:
        return text
    command = editor_command(os.environ)
    _EDITING.add(app)
    try:
        # Nothing may be drawn meanwhile: the terminal is not ours, and what is drawn would wait in a queue
        # whose end holds up the program.
        with app.batch_update(), app.suspend(), _interrupts_are_the_editors():
            return await asyncio.to_thread(edit_in, command, text, suffix)
    except SuspendNotSupported:
        raise EditorFailed("This terminal can't be handed over to an editor.") from None
    finally:
        _EDITING.discard(app)
        app.refresh()


@contextmanager
def _interrupts_are_the_editors() -> Iterator[None]:
    """Let a Ctrl+C in the editor be the editor's alone: the terminal sends it to both."""
    # A function, not SIG_IGN: that one the editor would inherit.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
