"""Event streams, cut anywhere: the HTML standard, “Interpreting an event stream”."""

from __future__ import annotations

import asyncio
import re
import sys
import tracemalloc
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing
from itertools import pairwise
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_client import ProtocolError
from mcp_client.sse import Event, events


async def sent(chunks: Iterable[bytes]) -> AsyncGenerator[bytes, None]:
    for chunk in chunks:
        yield chunk


async def collect(chunks: AsyncIterator[bytes], into: list[Event], limit: int = 10_000) -> None:
    async with aclosing(events(chunks, limit=limit)) as found:
        async for event in found:
            into.append(event)


def parse(*chunks: bytes, limit: int = 10_000) -> list[Event]:
    found: list[Event] = []
    asyncio.run(collect(sent(chunks), found, limit))
    return found


def data(*chunks: bytes) -> list[bytes]:
    return [event.data for event in parse(*chunks)]


def by_the_standard(stream: bytes) -> list[Event]:
    """Read a whole stream by the steps of the standard, as they stand there."""
    found, lines, kind = [], [], ""
    *complete, _ = re.split("\r\n|\n|\r", stream.decode("utf-8-sig"))
    for line in complete:
        name, _, value = line.partition(":")
        if line == "":
            if "\n".join(lines):
                found.append(Event(kind or "message", "\n".join(lines).encode()))
            lines, kind = [], ""
        elif name == "data":
            lines.append(value.removeprefix(" "))
        elif name == "event":
            kind = value.removeprefix(" ")
    return found


RICH = (
    b"\xef\xbb\xbf: comment\r\nid:\r\n\r\ndata: one\r\n\r\n:\r\nevent: ping\rdata: two\r\r"
    b"id: 7\ndata: th\ndata:ree\ndata\n\nretry: 99999999999999999999\nunknown: x\ndata: caf\xc3\xa9\n\n"
    b": ping\n\n\n\ndata:  spaced\n\ndata: cut short"
)
EVENTS = [
    Event("message", b"one"),
    Event("ping", b"two"),
    Event("message", b"th\nree\n"),
    Event("message", "café".encode()),
    Event("message", b" spaced"),
]


@pytest.mark.rule("http.comments-ignored", "wire.streams-as-they-come")
def test_every_line_ending_comment_and_field_is_understood() -> None:
    assert parse(RICH) == EVENTS


@pytest.mark.parametrize("at", range(len(RICH) + 1))
def test_a_stream_split_at_any_byte_holds_the_same_events(at: int) -> None:
    assert parse(RICH[:at], RICH[at:]) == EVENTS


def test_a_stream_that_comes_byte_by_byte_holds_the_same_events() -> None:
    assert parse(*(RICH[i : i + 1] for i in range(len(RICH)))) == EVENTS


TEXT = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("\x00\x0b\x0c\x1c\x85\u2028\ufeff: ")))
LINES = st.lists(
    st.one_of(
        st.sampled_from(
            ["", ":", "data", "data:", "id: 1", "id:", "event: x", "event:", "retry: 1", "\ufeff"]
        ),
        TEXT,
        TEXT.map(lambda rest: f"data: {rest}"),
    )
)
ENDINGS = st.sampled_from(["\n", "\r\n", "\r"])
CUTS = st.lists(st.integers(0, 400), max_size=6)


def cut(whole: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(min(at, len(whole)) for at in cuts), len(whole)]
    return [whole[start:end] for start, end in pairwise(edges)]


@given(st.lists(st.tuples(TEXT | st.sampled_from(["data: x", "event: y", ""]), ENDINGS)), CUTS)
def test_generated_streams_hold_what_the_standard_says_wherever_they_are_cut(
    lines: list[tuple[str, str]], cuts: list[int]
) -> None:
    whole = "".join(line + ending for line, ending in lines).encode()
    assert parse(*cut(whole, cuts)) == by_the_standard(whole)


@given(LINES, ENDINGS, CUTS)
def test_generated_fields_hold_what_the_standard_says_wherever_they_are_cut(
    lines: list[str], ending: str, cuts: list[int]
) -> None:
    whole = "".join(line + ending for line in lines).encode()
    assert parse(*cut(whole, cuts)) == by_the_standard(whole)


@given(st.lists(TEXT.filter(lambda text: text and "\r" not in text and "\n" not in text)))
def test_every_event_that_is_written_is_read(texts: list[str]) -> None:
    assert data("".join(f"data: {text}\n\n" for text in texts).encode()) == [t.encode() for t in texts]


@pytest.mark.rule("wire.streams-as-they-come", "wire.sse-bounded")
def test_an_id_with_empty_data_and_keepalives_after_it_bring_nothing() -> None:
    assert data(b"id: 1\ndata:\n\n: ping\n\n: ping\n\n") == []
    assert data(b"id: 1\n\n", b": ping\n\n", b"retry: 1\n\n", b"event: x\n\n", b"data: 1\n\n") == [b"1"]


def test_an_event_type_holds_for_one_event_only() -> None:
    assert parse(b"event: a\ndata: 1\n\ndata: 2\n\n") == [Event("a", b"1"), Event("message", b"2")]
    assert parse(b"event: a\n\ndata: 2\n\n") == [Event("message", b"2")]


def test_a_byte_order_mark_is_dropped_once() -> None:
    mark = "\ufeff".encode()
    assert data(mark + b"data: 1\n\n") == [b"1"]
    assert data(mark + mark + b"data: 1\n\ndata: 2\n\n") == [b"2"]
    assert data(b"data: 1\n\n" + mark + b"data: 2\n\n" + b"data: " + mark + b"\n\n") == [b"1", mark]


# An event is there as soon as it is complete.


@pytest.mark.rule("wire.fakes-stream")
@pytest.mark.parametrize(
    "chunks",
    [
        [b"data: 1\n\n"],
        [b"data: 1\r\n\r\n"],
        [b"data: 1\r\n\r"],
        [b"data: 1\r\r"],
        [b"data: 1\r", b"\r"],
        [b"data: 1\r", b"\n", b"\r", b"\n"],
        [b"data: 1\r\n", b"", b"\r\n"],
    ],
    ids=["lf", "crlf", "half of crlf", "cr", "cr in pieces", "crlf in pieces", "an empty chunk between"],
)
async def test_a_complete_event_is_yielded_without_waiting_for_another_chunk(chunks: list[bytes]) -> None:
    async def open_ended() -> AsyncGenerator[bytes, None]:
        for chunk in chunks:
            yield chunk
        pytest.fail("asked for more, though the event is complete")

    async with aclosing(open_ended()) as stream, aclosing(events(stream, limit=100)) as found:
        assert await anext(found) == Event("message", b"1")


def test_the_second_half_of_a_line_ending_ends_no_second_line() -> None:
    assert parse(b"event: x\r", b"\ndata: 1\r", b"\n\r", b"\n") == [Event("x", b"1")]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
def test_an_event_that_the_end_of_the_stream_cuts_short_is_dropped(ending: bytes) -> None:
    assert data(b"data: 1" + ending * 2 + b"data: 2" + ending) == [b"1"]
    assert data(b"data: 1" + ending * 2 + "data: é".encode()[:-1]) == [b"1"], "cut inside a character"


# Bounds.


@pytest.mark.rule("wire.sse-bounded")
@pytest.mark.parametrize(
    "chunks",
    [
        [b"data: " + b"x" * 2000],
        [b"x" * 600, b"x" * 600],
        [b"data: " + b"x" * 400 + b"\n"] * 3,
        [b"data:\n"] * 1001,
        [b":\n"] * 501,
        [b"event: " + b"x" * 600 + b"\r\nid: " + b"x" * 600 + b"\r\n\r\n"],
    ],
    ids=["one line", "an unfinished line", "many lines", "empty data", "comments", "other fields"],
)
@pytest.mark.parametrize("alone", [True, False], ids=["in chunks", "in one chunk"])
async def test_an_endless_line_or_event_is_given_up_at_the_limit(chunks: list[bytes], alone: bool) -> None:
    before = b"data: 1\n\n"
    heard: list[Event] = []
    with pytest.raises(ProtocolError, match="larger than 1,000 bytes"):
        await collect(sent([before, *chunks] if alone else [before + b"".join(chunks)]), heard, limit=1000)
    assert heard == [Event("message", b"1")], "what came before is heard, however the stream is cut"


@pytest.mark.parametrize("size", [1, 7, 100, 1000])
def test_the_limit_is_exact_however_the_stream_is_cut(size: int) -> None:
    def chunks(lines: bytes) -> list[bytes]:
        return [lines[at : at + size] for at in range(0, len(lines), size)]

    longest = b"data: " + b"x" * 94
    assert len(parse(*chunks((longest + b"\n\n") * 5), limit=100)) == 5
    with pytest.raises(ProtocolError):
        parse(*chunks((longest + b"\n\n") * 5 + longest + b"x\n\n"), limit=100)


@pytest.mark.rule("wire.sse-bounded")
@pytest.mark.parametrize(
    "again",
    [b"data: 1\n\n", b": ping\n\n", b"\r\n", b"id: 1\r\r"],
    ids=["events", "pings", "newlines", "ids"],
)
def test_a_stream_without_end_is_read_for_as_long_as_its_events_are_small(again: bytes) -> None:
    assert data(*[again] * 2000, b"data: 2\n\n")[-1] == b"2"
    assert len(parse(*[again] * 2000, limit=10)) == 2000 * again.startswith(b"data")


async def test_a_body_of_tiny_lines_in_one_chunk_fills_neither_memory_nor_the_event_loop() -> None:
    body, turns = b"ab\n\n" * 100_000, 0

    async def tick() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    tracemalloc.start()
    try:
        await collect(sent([body]), [])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        ticking.cancel()
    assert peak < 2 * len(body)
    assert turns > 20


# Text that is none.


@given(TEXT.map(str.encode), CUTS)
def test_a_byte_that_is_no_utf_8_is_named_after_the_events_before_it(text: bytes, cuts: list[int]) -> None:
    good = b"\xef\xbb\xbfdata: 1\n\n: " + text
    heard: list[Event] = []
    with pytest.raises(ProtocolError, match=rf"not UTF-8 \(byte {len(good)}\)"):
        asyncio.run(collect(sent(cut(good + b"\xff\n\ndata: 2\n\n", cuts)), heard))
    assert heard[0] == Event("message", b"1")
    assert Event("message", b"2") not in heard


@pytest.mark.parametrize(
    "line",
    [b"data: \xed\xa0\x80", b"data: \xc0\xaf", b": \xe9", b"id: \x80", b"data: \xc3", b"\xef\xbb"],
    ids=["surrogate", "overlong", "comment", "id", "half a character", "half a mark"],
)
@pytest.mark.parametrize("size", [1, 100])
def test_every_field_has_to_be_utf_8(line: bytes, size: int) -> None:
    whole = line + b"\n\n"
    with pytest.raises(ProtocolError, match="not UTF-8"):
        parse(*(whole[at : at + size] for at in range(0, len(whole), size)))


# Errors, cancellation and closing.


@pytest.mark.parametrize(
    "error",
    [httpx.ReadError("gone"), ProtocolError("too large"), OSError("reset")],
    ids=lambda e: type(e).__name__,
)
async def test_what_the_chunks_raise_passes_as_it_is(error: Exception) -> None:
    async def broken() -> AsyncGenerator[bytes, None]:
        yield b"data: 1\n\ndata: 2"
        raise error

    heard: list[Event] = []
    with pytest.raises(type(error)) as raised:
        await collect(broken(), heard)
    assert raised.value is error
    assert heard == [Event("message", b"1")]


async def test_cancelling_reaches_the_chunks_and_ends_the_reader() -> None:
    waiting, cancelled = asyncio.Event(), asyncio.Event()

    async def silent() -> AsyncGenerator[bytes, None]:
        yield b"data: 1\n\n"
        waiting.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    reading = asyncio.create_task(collect(silent(), []))
    await waiting.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert cancelled.is_set()


@pytest.fixture
def unfinished() -> Iterable[list[str]]:
    """Names of asynchronous generators that were thrown away before they had finished."""
    found: list[str] = []
    before: tuple[Callable[..., Any] | None, ...] = sys.get_asyncgen_hooks()

    def note(generator: AsyncGenerator[Any, Any]) -> None:
        found.append(generator.__qualname__)

    sys.set_asyncgen_hooks(firstiter=before[0], finalizer=note)
    yield found
    sys.set_asyncgen_hooks(*before)


async def test_closing_early_leaves_no_generator_behind(unfinished: list[str]) -> None:
    stream = sent([b"data: 1\n\ndata: 2\n\ndata: 3\n\n", b"data: 4\n\n"])
    async with aclosing(stream), aclosing(events(stream, limit=100)) as found:
        assert (await anext(found)).data == b"1"
    assert unfinished == []


async def test_closing_asks_the_stream_for_nothing_more_and_leaves_it_open() -> None:
    stream = sent([b"data: 1\n\ndata: 2\n\n", b"data: 3\n\n"])
    async with aclosing(stream):
        async with aclosing(events(stream, limit=100)) as found:
            assert (await anext(found)).data == b"1"
        assert await anext(stream) == b"data: 3\n\n"


async def test_an_error_leaves_no_generator_behind(unfinished: list[str]) -> None:
    async with aclosing(sent([b"data: 1\n\n\xff", b"more"])) as stream:
        with pytest.raises(ProtocolError):
            await collect(stream, [])
    assert unfinished == []
