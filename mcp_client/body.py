"""The body of an HTTP reply, bounded while it is read and after it is unpacked."""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, Iterator
from typing import Final

import httpx

from mcp_client.errors import ProtocolError

_PIECE: Final = 64 * 1024
_ANY_HEADER: Final = 32 + zlib.MAX_WBITS
"""Tells zlib to recognise a gzip or a zlib header by itself."""


async def body_chunks(response: httpx.Response, *, limit: int | None) -> AsyncGenerator[bytes, None]:
    """Yield the body of *response*, unpacked.

    httpx would unpack a whole chunk at a time, in as many layers as the reply claims, before anything is
    counted; here one layer is unpacked in pieces. Raises `ProtocolError` past *limit* bytes (``None``: no
    bound, for a stream whose reader bounds each of its parts) or for a broken encoding.
    """
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding in ("", "identity"):
        unpack = None
    elif coding in ("gzip", "x-gzip", "deflate"):
        unpack = zlib.decompressobj(_ANY_HEADER)
    else:
        raise ProtocolError("The reply has an encoding that was not asked for.", field="Content-Encoding")
    total = packed = 0
    async for chunk in response.aiter_raw():
        packed += len(chunk)
        if limit is not None and packed > limit:
            raise ProtocolError(f"The reply is larger than {limit:,} bytes.")
        for piece in (chunk,) if unpack is None else _unpacked(unpack, chunk):
            total += len(piece)
            if limit is not None and total > limit:
                raise ProtocolError(f"The reply is larger than {limit:,} bytes.")
            yield piece
    if unpack is not None and not unpack.eof and packed:
        raise ProtocolError("The reply's compressed data is cut short.", field="Content-Encoding")


def _unpacked(unpack: zlib._Decompress, chunk: bytes) -> Iterator[bytes]:
    data = chunk
    while True:
        try:
            piece = unpack.decompress(data, _PIECE)
        except zlib.error:
            raise ProtocolError("The reply's compressed data is broken.", field="Content-Encoding") from None
        if piece:
            yield piece
        data = unpack.unconsumed_tail
        if not data and len(piece) < _PIECE:
            return
