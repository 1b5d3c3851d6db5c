"""Which stream to open next, so that few streams tell of many tasks: pure.

The filter of an open stream can't change (basic/patterns/subscriptions): a set of tasks that grows is a new
stream in the place of an old one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

STREAM_IDS: Final = 500
"""Tasks of one stream. A request of a thousand long ids comes near to what common servers take as a body
(100 kB), and a connection that breaks sends all tasks of its stream to polling at once."""

STREAMS_MOST: Final = 16
"""Streams of one server. Each holds one of the connections that looks and answers need, too; tasks beyond
these are polled."""

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Wish(Generic[S]):
    """A stream to be opened."""

    ids: tuple[str, ...]
    instead_of: S | None
    """The stream to be dropped once the new one is acknowledged."""


def plan(missing: Sequence[str], streams: Sequence[tuple[S, Sequence[str], int]]) -> Wish[S] | None:
    """Return the next stream to open; ``None``: all is as well as it can be.

    *missing* are the tasks that no stream tells of. Each of *streams*, the oldest first, comes with the tasks
    of it that are still wanted, and the number of all it tells of. Missing tasks go into the place of the
    youngest stream that has room; a stream of which less than half is wanted is made anew, smaller.
    """
    if missing:
        for stream, alive, _ in reversed(streams):
            if alive and len(alive) < STREAM_IDS:
                return Wish((*alive, *missing[: STREAM_IDS - len(alive)]), stream)
        return Wish(tuple(missing[:STREAM_IDS]), None) if len(streams) < STREAMS_MOST else None
    for stream, alive, size in streams:
        if alive and 2 * len(alive) < size:
            return Wish(tuple(alive), stream)
    return None
