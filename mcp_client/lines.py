"""Lines of a byte stream, with a bound on their length. Page: basic/transports/stdio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HEAD: Final = 4096
"""Bytes kept of a line that is too long, so that an error can say what it was."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line, without its newline."""

    data: bytes
    is_cut: bool = False
    """It is longer than what is taken: `data` is its beginning, the rest has been dropped."""
    is_open: bool = False
    """The stream has ended before its newline came."""


class LineSplitter:
    """Splits a stream that comes in pieces of any size; holds at most one line and one piece at a time."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = bytearray()
        self._skipping = False

    def feed(self, piece: bytes) -> list[Line]:
        """Return the lines that end in *piece*.

        A line of more than *limit* bytes is returned as soon as that is known, since its end may never come.
        """
        found: list[Line] = []
        *ended, rest = piece.split(b"\n")
        for part in ended:
            self._take(part, found)
            if not self._skipping:
                found.append(Line(bytes(self._held)))
            self._held.clear()
            self._skipping = False
        self._take(rest, found)
        return found

    def end(self) -> list[Line]:
        """Return what came behind the last newline, where that is anything."""
        return [Line(bytes(self._held), is_open=True)] if self._held.strip() else []

    def _take(self, part: bytes, found: list[Line]) -> None:
        if self._skipping:
            return
        self._held += part
        if len(self._held) > self._limit:
            found.append(Line(bytes(self._held[:HEAD]), is_cut=True))
            self._held.clear()
            self._skipping = True
