"""Server-sent events from bytes, with bounds. Page: the HTML standard, “Interpreting an event stream”.

httpx-sse reads the fields. What it leaves open is settled on the way into it: how long an event may become,
bytes that are no UTF-8, a byte order mark, and line endings (a carriage return at the end of a chunk would
hold an event back until the next chunk comes).
"""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Final

import httpx
from httpx_sse import EventSource

from mcp_client.errors import ProtocolError

_PIECE: Final = 16 * 1024
"""Bytes taken in at a time: all lines of a piece become strings, tens of bytes for one of input, and nothing
else runs meanwhile."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event that carries data."""

    type: str
    """``message`` where the stream names none."""
    data: bytes


async def events(chunks: AsyncIterator[bytes], *, limit: int) -> AsyncGenerator[Event, None]:
    """Yield the events of *chunks*, which may be cut anywhere, each as soon as its last line ends.

    Comments, unknown fields, ``id:`` and ``retry:`` carry nothing for this protocol and are dropped, as are
    events without data and one that the end of the stream cuts short. *limit* bounds the bytes between two
    empty lines, so neither a line nor an event can grow past it while a stream as such may go on for ever.

    Raises `ProtocolError` past *limit* and where a byte is no UTF-8, after the events that came before; what
    *chunks* raises passes as it is. *chunks* is not closed: that is for who opened it.
    """
    feed = _Feed(chunks, limit)
    # A response of its own: one of a server's would be decoded by whatever charset its headers claim.
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=feed)
    response.encoding = "utf-8"  # or httpx reads it off the headers by way of the email package
    found = EventSource(response).aiter_sse()
    try:
        async for event in found:
            if event.data:
                yield Event(event.event, event.data.encode())
    finally:
        # Closing `found` would leave the generators of the response below it to the garbage collector. They
        # all finish when their input does, and that needs no waiting.
        feed.end()
        async for _ in found:
            pass


class _Feed(httpx.AsyncByteStream):
    """The chunks as httpx-sse takes them without harm: UTF-8, one line ending, bounded blocks of lines."""

    def __init__(self, chunks: AsyncIterator[bytes], limit: int) -> None:
        self._chunks = chunks
        self._limit = limit
        self._rest = memoryview(b"")
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._received = 0
        self._after_cr = False
        self._size = 0
        """Bytes handed out since the last empty line."""
        self._edge = b""
        """The line ending after them, not counted yet: an empty line may begin with it."""
        self._fault: ProtocolError | None = None
        self._ended = False

    def end(self) -> None:
        """Let the stream end here, whatever is still to come."""
        self._ended = True

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        piece = b""
        while not piece:
            if self._ended:
                raise StopAsyncIteration
            if self._fault is not None:
                raise self._fault
            piece = self._bounded(self._decoded(await self._next()))
        return piece

    async def _next(self) -> bytes:
        if not self._rest:
            self._rest = memoryview(await anext(self._chunks))
        piece, self._rest = self._rest[:_PIECE], self._rest[_PIECE:]
        if len(piece) == _PIECE:  # a body already in memory never waits, and a timeout has to get in
            await asyncio.sleep(0)
        return bytes(piece)

    def _decoded(self, chunk: bytes) -> bytes:
        """Return the part of *chunk* before its first fault, with ``\\n`` for every line ending."""
        self._received += len(chunk)
        try:
            text = self._decoder.decode(chunk)
        except UnicodeDecodeError as error:
            at = self._received - len(error.object) + error.start
            self._fault = ProtocolError(f"The event stream is not UTF-8 (byte {at}).")
            text = error.object[: error.start].decode()
        if not text:
            return b""
        if self._after_cr:
            text = text.removeprefix("\n")
        self._after_cr = text.endswith("\r")
        return text.replace("\r\n", "\n").replace("\r", "\n").encode()

    def _bounded(self, data: bytes) -> bytes:
        """Return *data* up to where a block of lines grows past the limit."""
        lines = self._edge + data
        start, size = 0, self._size
        while True:
            end = lines.find(b"\n\n", start)
            stop = end if end >= 0 else len(lines) - lines.endswith(b"\n", start)
            size += stop - start
            if size > self._limit:
                self._fault = ProtocolError(f"An event of the stream is larger than {self._limit:,} bytes.")
                return lines[len(self._edge) : start]
            if end < 0:
                break
            start, size = end + 2, 0
        self._size, self._edge = size, lines[stop:]
        return data
