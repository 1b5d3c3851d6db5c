"""Event streams, cut anywhere: the HTML standard, “Interpreting an event stream”."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_client import ProtocolError
from mcp_client.sse import Event, EventParser


def parse(*chunks: bytes, limit: int = 10_000) -> list[Event]:
    parser = EventParser(limit=limit)
    return [event for chunk in chunks for event in parser.feed(chunk)]


def data(*chunks: bytes) -> list[bytes]:
    return [event.data for event in parse(*chunks)]


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


def test_every_line_ending_comment_and_field_is_understood() -> None:
    assert parse(RICH) == EVENTS


@pytest.mark.parametrize("at", range(len(RICH) + 1))
def test_a_stream_split_at_any_byte_holds_the_same_events(at: int) -> None:
    assert parse(RICH[:at], RICH[at:]) == EVENTS


def test_a_stream_that_comes_byte_by_byte_holds_the_same_events() -> None:
    assert parse(*(RICH[i : i + 1] for i in range(len(RICH)))) == EVENTS


LINES = st.lists(
    st.one_of(
        st.sampled_from(
            [b"", b":", b"data", b"data:", b"id:", b"event: x", b"event:", b"retry: 1", b"\xef\xbb\xbf"]
        ),
        st.binary(max_size=12),
        st.binary(max_size=12).map(lambda rest: b"data: " + rest),
    )
)


@given(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"]), st.lists(st.integers(0, 400), max_size=6))
def test_generated_streams_do_not_depend_on_where_they_are_cut(
    lines: list[bytes], ending: bytes, cuts: list[int]
) -> None:
    whole = ending.join(lines) + ending
    edges = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    chunks = [whole[start:end] for start, end in pairwise(edges)]
    assert parse(*chunks) == parse(whole)


@given(st.lists(st.binary(min_size=1, max_size=20).filter(lambda b: b"\r" not in b and b"\n" not in b)))
def test_every_event_that_is_written_is_read(texts: list[bytes]) -> None:
    assert data(b"".join(b"data: " + text + b"\n\n" for text in texts)) == texts


def test_an_id_with_empty_data_and_keepalives_after_it_bring_nothing() -> None:
    assert data(b"id: 1\ndata:\n\n: ping\n\n: ping\n\n") == []


def test_an_event_type_holds_for_one_event_only() -> None:
    assert parse(b"event: a\ndata: 1\n\ndata: 2\n\n") == [Event("a", b"1"), Event("message", b"2")]


@pytest.mark.parametrize(
    "chunks",
    [
        [b"data: " + b"x" * 2000],
        [b"x" * 600, b"x" * 600],
        [b"data: " + b"x" * 400 + b"\n"] * 3,
        [b"data:\n"] * 1001,
    ],
    ids=["one line", "an unfinished line", "many lines", "empty lines"],
)
def test_an_endless_line_or_event_is_given_up_at_the_limit(chunks: list[bytes]) -> None:
    with pytest.raises(ProtocolError, match="larger than 1,000 bytes"):
        parse(*chunks, limit=1000)
