"""Server-sent events from bytes, with bounds. Page: the HTML standard, “Interpreting an event stream”.

Written out here because the usual parser for httpx has no bound on a line, drops into empty events after an
``id:`` line, and offers its decoder only as a private module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mcp_client.errors import ProtocolError

_BOM: Final = b"\xef\xbb\xbf"
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Event:
    """One event that carries data."""

    type: str
    """``message`` where the stream names none."""
    data: bytes


class EventParser:
    """Turns chunks of bytes, cut anywhere, into events.

    Comments, unknown fields, ``id:`` and ``retry:`` carry nothing for this protocol and are dropped, as are
    events without data and one that the end of the stream cuts short.
    """

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._type = "message"
        self._started = False
        self._after_cr = False

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yield the events that *chunk* completes; raises `ProtocolError` past the limit of bytes in an
        event."""
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        start = 0
        for ending in _LINE_END.finditer(chunk):
            line = bytes(self._line) + chunk[start : ending.start()]
            self._line.clear()
            start = ending.end()
            event = self._take(line)
            if event is not None:
                yield event
        self._after_cr = chunk.endswith(b"\r")
        self._line += chunk[start:]
        self._check()

    def _take(self, line: bytes) -> Event | None:
        if not self._started:
            self._started = True
            line = line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._size += len(value) + 1
            self._check()
        elif name == b"event":
            self._type = value.decode("utf-8", "replace") or "message"
        return None

    def _dispatch(self) -> Event | None:
        data, kind = b"\n".join(self._data), self._type
        self._data, self._size, self._type = [], 0, "message"
        return Event(kind, data) if data else None

    def _check(self) -> None:
        if self._size + len(self._line) > self._limit:
            raise ProtocolError(f"An event of the stream is larger than {self._limit:,} bytes.")
