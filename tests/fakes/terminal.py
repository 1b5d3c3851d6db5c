"""A real pseudo-terminal with a screen in memory: the program runs as it does for a person.

Waiting is on what the program draws, never on time: every chunk it writes wakes the waiters. The terminal
says that it draws updates as a whole (mode 2026), as most do, so that nobody looks at half of one.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import pyte

KEYS: Final = {
    "enter": "\r",
    "tab": "\t",
    "shift+tab": "\x1b[Z",
    "escape": "\x1b",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~",
    "backspace": "\x7f",
    "space": " ",
}

# pyte prints what it does not know of some sequences: modes asked for (CSI ? … $ p), the keyboard protocol
# (CSI > … u, CSI < u, CSI = … u), and the version question (CSI > q).
_FOREIGN: Final = re.compile(rb"\x1b\[(?:\?[0-9;]*\$p|[><=?][0-9;]*[uq])")
_FOREIGN_START: Final = re.compile(rb"\x1b(?:\[[><=?0-9;$]*)?$")
_ASKED: Final = b"\x1b[?2026$p"
_CAN: Final = b"\x1b[?2026;2$y"
_BEGIN: Final = b"\x1b[?2026h"
_END: Final = b"\x1b[?2026l"
# At a character of no width pyte leaves out the rest of the text; terminals leave out nothing.
_NO_WIDTH: Final = re.compile("[\u00ad\u180e\u200b\u2060-\u2064]")


def key(name: str) -> str:
    """Return what a terminal sends for a key: a name from `KEYS`, ``ctrl+x``, or the text itself."""
    if name.startswith("ctrl+") and len(name) == 6:
        return chr(ord(name[5].upper()) - 64)
    return KEYS.get(name, name)


def _own_terminal() -> None:
    """Make the terminal the program's own, so that it hangs up on the program when the test ends."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A program in a pseudo-terminal of *columns* × *rows*."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        columns: int = 120,
        rows: int = 36,
    ) -> None:
        self.screen = pyte.Screen(columns, rows)
        self.raw = bytearray()
        self._stream = pyte.Stream(self.screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = b""
        self._halfway = False
        """Whether an update has begun and is not over."""
        self._changed = threading.Condition()
        self._over = False
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})}
        for name in ("NO_COLOR", "COLUMNS", "LINES"):  # pytest's workers have a size of their own in these
            environment.pop(name, None)
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            list(argv), stdin=slave, stdout=slave, stderr=slave, env=environment, preexec_fn=_own_terminal
        )
        os.close(slave)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while True:
            try:
                ready, _, _ = select.select([self._master], [], [], 0.5)
                chunk = os.read(self._master, 65536) if ready else None
            except (OSError, ValueError):
                chunk = b""
            if chunk is None:
                continue
            with self._changed:
                if not chunk:
                    self._over = True
                    self._changed.notify_all()
                    return
                seam = bytes(self.raw[-len(_ASKED) + 1 :])
                self.raw += chunk
                self._follow_updates(seam + chunk)
                data = self._held + chunk
                partial = _FOREIGN_START.search(data)
                self._held = data[partial.start() :] if partial else b""
                data = data[: partial.start()] if partial else data
                self._stream.feed(_NO_WIDTH.sub("", self._decoder.decode(_FOREIGN.sub(b"", data))))
                self._changed.notify_all()

    def _follow_updates(self, news: bytes) -> None:
        if _ASKED in news:
            os.write(self._master, _CAN)
        begun, ended = news.rfind(_BEGIN), news.rfind(_END)
        if begun != ended:
            self._halfway = begun > ended

    def _lines(self) -> list[str]:
        # Not pyte's own: that one fails where half of a wide character was drawn over.
        cells, columns = self.screen.buffer, range(self.screen.columns)
        return ["".join(cells[row][column].data for column in columns) for row in range(self.screen.lines)]

    def text(self) -> str:
        """Return what is on the screen now, line by line, without trailing spaces."""
        with self._changed:
            self._changed.wait_for(lambda: not self._halfway or self._over, 1)
            return "\n".join(line.rstrip() for line in self._lines())

    def send(self, *keys: str) -> None:
        """Press *keys*: names as in `key`, or text."""
        for name in keys:
            os.write(self._master, key(name).encode())

    def where(self, text: str) -> tuple[int, int]:
        """Return the column and row of the middle of *text*, which must stand on the screen once."""
        with self._changed:
            lines = self._lines()
        (row,) = [number for number, line in enumerate(lines) if text in line]
        # One column a character: no wide ones before it.
        return lines[row].index(text) + len(text) // 2 + 1, row + 1

    def click(self, text: str) -> None:
        """Click the middle of *text*, which must stand on the screen once."""
        self.click_at(*self.where(text))

    def click_at(self, column: int, row: int) -> None:
        """Click a place, counted from 1."""
        for ending in "Mm":
            self.send(f"\x1b[<0;{column};{row}{ending}")

    def click_until(
        self, text: str, holds: Callable[[str], bool], *, patience: float = 4, tries: int = 5
    ) -> None:
        """Click *text* until *holds* says yes of the screen: it may be laid out anew under the pointer, and a
        click right after a question appeared is not taken.
        """

        def click() -> None:
            with suppress(ValueError):  # it is not there just now
                self.click(text)

        self._calmly(click, holds, f"a click on {text}", patience, tries)

    def press_calmly(
        self, name: str, holds: Callable[[str], bool], *, patience: float = 1.5, tries: int = 10
    ) -> None:
        """Press a key until *holds* says yes of the screen, giving it time: for keys that do more when
        pressed twice, and those that answer, which are not taken right after a question appeared.
        """
        self._calmly(lambda: self.send(name), holds, name, patience, tries)

    def _calmly(
        self, act: Callable[[], None], holds: Callable[[str], bool], what: str, patience: float, tries: int
    ) -> None:
        for _ in range(tries):
            act()
            try:
                self.wait_until(holds, what, patience)
                return
            except AssertionError:
                continue
        self.wait_until(holds, what, 1)

    def wait_until(
        self, holds: Callable[[str], bool], what: str = "the condition", timeout: float = 20
    ) -> str:
        """Return the screen once *holds* says yes of it; fails with the screen in the message."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                shown = "\n".join(line.rstrip() for line in self._lines())
                if not self._halfway and holds(shown):
                    return shown
                left = deadline - time.monotonic()
                if self._over or left <= 0:
                    why = "the program ended" if self._over else f"{timeout:g} s went by"
                    raise AssertionError(f"waiting for {what}: {why}; the screen was\n{shown}")
                self._changed.wait(left)

    def wait_for(self, *texts: str, timeout: float = 20) -> str:
        """Return the screen once it shows every one of *texts*."""
        return self.wait_until(lambda s: all(t in s for t in texts), f"{texts!r}", timeout)

    def wait_gone(self, text: str, timeout: float = 20) -> str:
        """Return the screen once it does not show *text* any more."""
        return self.wait_until(lambda s: text not in s, f"{text!r} to go", timeout)

    def press_until(self, name: str, holds: Callable[[str], bool], presses: int = 60) -> str:
        """Press a key, look, and press again until *holds*: for walks whose length depends on the layout."""
        for _ in range(presses):
            with self._changed:
                before = len(self.raw)
            self.send(name)
            with self._changed:
                self._changed.wait_for(lambda: len(self.raw) > before or self._over, 2)  # noqa: B023
            # The focus scrolls its place into sight in many small drawings, which all belong to this press.
            self.wait_quiet()
            shown = self.text()
            if holds(shown):
                return shown
        raise AssertionError(f"{presses} × {name} did not do it; the screen was\n{self.text()}")

    def wait_quiet(self, moment: float = 0.1, timeout: float = 2) -> None:
        """Return once nothing has been drawn for a *moment*, or after *timeout* seconds of drawing."""
        deadline = time.monotonic() + timeout
        with self._changed:
            before = -1
            while len(self.raw) > before and time.monotonic() < deadline and not self._over:
                before = len(self.raw)
                self._changed.wait_for(lambda: len(self.raw) > before or self._over, moment)  # noqa: B023

    def resize(self, columns: int, rows: int) -> None:
        """Give the window another size."""
        with self._changed:
            self.screen.resize(rows, columns)
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.killpg(self.process.pid, signal.SIGWINCH)

    def kill(self) -> None:
        """End the program at once, as a power cut would."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)

    def wait_ended(self, timeout: float = 20) -> int:
        """Return the exit code once the program has ended by itself."""
        return self.process.wait(timeout)

    def drained(self) -> bytes:
        """Return all that the program, which has ended, has written."""
        self._thread.join(10)
        return bytes(self.raw)

    def close(self) -> None:
        """End the program and the terminal."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(10)
        self._thread.join(5)
        try:
            os.close(self._master)
        except OSError:
            pass

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
