"""What reaches a screen is inert: app/text.py."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.text import byte_size, duration, inert, inert_line, is_inert, plural

HOSTILE = {
    "a colour": "\x1b[31mred",
    "a clipboard write": "\x1b]52;c;aGk=\x07",
    "an 8-bit CSI": "\x9b31m",
    "a carriage return": "real\rfake",
    "a bidi override": "\u202egnp.exe",
    "an isolate": "\u2066a\u2069",
    "tag characters": "\U000e0041",
    "a lone surrogate": "\ud800",
    "a byte order mark": "\ufeffa",
    "a line separator": "a\u2028b",
    "delete": "a\x7fb",
}


@pytest.mark.rule("wire.text-inert")
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_becomes_visible_and_says_that_it_changed(text: str) -> None:
    safe = inert(text)
    assert is_inert(safe)
    assert not is_inert(text)
    assert len(safe) >= len(text), "nothing disappears"


@given(st.text(st.characters(), max_size=300))
def test_no_control_character_but_newline_and_tab_is_left(text: str) -> None:
    for character in inert(text):
        assert character in "\n\t" or unicodedata.category(character) not in {"Cc", "Cs"}
    assert "\n" not in inert_line(text)
    inert(text).encode("utf-8")


@given(st.text(st.characters(blacklist_categories=("Cc", "Cs", "Cf", "Zl", "Zp")), max_size=300))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert inert(text) == text


@pytest.mark.parametrize("text", ["👩‍💻", "क्‍ष", "نامه‌ای", "e\u0301"])
def test_joiners_and_combining_marks_stay(text: str) -> None:
    assert inert(text) == text
    assert is_inert(text)


def test_a_long_text_is_cut_and_says_how_much_was_left_out() -> None:
    assert inert("x" * 70_000, limit=65_536).endswith("(4,464 more characters)")
    assert len(inert_line("x" * 1_000_000, limit=40)) == 41


def test_a_line_has_no_line_breaks() -> None:
    assert inert_line("a\r\nb\tc\nd") == "a b c d"


def test_sizes_durations_and_counts_read_as_people_say_them() -> None:
    assert [duration(ms) for ms in (-5, 999, 45_000, 720_000, 7_500_000, 273_600_000, 864_000_000)] == [
        "0s",
        "0s",
        "45s",
        "12m",
        "2h 5m",
        "3d 4h",
        "10d",
    ]
    assert [byte_size(n) for n in (1, 812, 4200, 1_300_000)] == ["1 byte", "812 bytes", "4.2 KB", "1.3 MB"]
    assert (plural(1, "question"), plural(2, "question")) == ("1 question", "2 questions")
