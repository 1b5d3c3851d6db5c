"""Every line is exactly as wide as its list, whatever a server wrote and whatever the width."""

from __future__ import annotations

import pytest
from fakes.reader import NOW, record
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from app.tui.columns import GAP, MARGIN, cells, columns, fit
from app.tui.words import age_of, left_of, status_of
from storage.records import TaskRow


@given(text=st.text(max_size=60), width=st.integers(1, 40), right=st.booleans())
def test_fitted_text_has_exactly_the_width_asked_for(text: str, width: int, right: bool) -> None:
    from app.text import inert_line

    assert cell_len(fit(inert_line(text), width, right=right)) == width


@pytest.mark.parametrize(
    "text", ["デプロイを承認する", "👩‍👩‍👧‍👦👩‍👩‍👧‍👦", "é" * 30, "a\u0301" * 30, "한국어 작업"]
)
def test_wide_and_combining_characters_are_measured_in_cells(text: str) -> None:
    for width in range(1, 24):
        assert cell_len(fit(text, width)) == width


@pytest.mark.parametrize("width", [*range(32, 130), 200])
def test_the_columns_fill_the_line_and_never_pass_it(width: int) -> None:
    for servers in ([], ["ci"], ["a-very-long-server-name-of-forty-letters"]):
        layout = columns(width, servers)
        used = sum(column.width for column in layout) + GAP * (len(layout) - 1) + 2 * MARGIN
        assert used <= width
        names = [column.name for column in layout]
        assert names[:3] == ["server", "tool", "status"], "these stay however narrow it is"
        made = cells(record(tool="x" * 300, status_message="\x1b[31m" * 99), layout, NOW)
        assert [cell_len(cell.text) for cell in made] == [column.width for column in layout]


def test_eighty_columns_show_all_six() -> None:
    assert [column.name for column in columns(80, ["demo"])] == [
        "server", "tool", "status", "message", "age", "left",
    ]  # fmt: skip


CASES: list[tuple[TaskRow, str]] = [
    (record(section="needs-you", open_questions=2), "! 2 questions"),
    (record(section="needs-you", open_questions=1), "! 1 question"),
    (record(), "⋯ working"),
    (record(status="input_required"), "↻ waiting"),
    (record(cancel_requested_at=NOW), "⊘ cancel asked"),
    (record(section="needs-you", cancel_requested_at=NOW), "⊘ cancel asked"),
    (record(section="finished"), "✓ completed"),
    (record(section="finished", is_error=True), "✗ tool error"),
    (record(section="finished", status="failed"), "✗ failed"),
    (record(section="finished", status="cancelled"), "⊘ cancelled"),
    (record(section="archived", status="failed"), "✗ failed"),
    (record(section="lost"), "? lost"),
    (record(section="lost", kind="call"), "? not known"),
    (record(section="lost", tracking="stopped"), "- not watched"),
    (record(kind="call", status=None), "⋯ calling"),
    (record(status=None), "⋯ not seen yet"),
    (record(status="paused"), "⋯ paused"),
]


@pytest.mark.parametrize(("row", "words"), CASES, ids=[words for _, words in CASES])
def test_each_status_has_a_mark_and_a_word(row: TaskRow, words: str) -> None:
    assert str(status_of(row)) == words


def test_the_time_left_is_said_while_a_task_is_watched() -> None:
    assert left_of(record(created_at=NOW - 60_000, ttl_ms=780_000), NOW) == "12m left"
    assert left_of(record(created_at=NOW - 60_000, ttl_ms=60_000), NOW) == "expired"
    assert left_of(record(ttl_ms=None), NOW) == ""
    assert left_of(record(created_at=NOW, ttl_ms=7_500_000), NOW) == "2h 5m left"
    assert left_of(record(created_at=NOW, ttl_ms=7_500_000), NOW, short=True) == "2h left"
    assert left_of(record(section="finished", created_at=NOW, ttl_ms=1), NOW) == ""


def test_age_counts_from_the_start_while_running_and_from_the_last_change_after() -> None:
    assert age_of(record(added_at=NOW - 5_000, created_at=NOW - 180_000), NOW) == "3m"
    assert age_of(record(section="finished", created_at=0, changed_at=NOW - 45_000), NOW) == "45s"


@pytest.mark.parametrize("created_at", [-(10**18), 0, 10**18])
def test_a_server_with_an_absurd_clock_only_looks_absurd(created_at: int) -> None:
    row = record(created_at=created_at, ttl_ms=10**18)
    for width in (40, 80, 120):
        for cell, column in zip(cells(row, columns(width), NOW), columns(width), strict=True):
            assert cell_len(cell.text) == column.width


@pytest.mark.parametrize("width", [*range(32, 130), 200])
def test_what_has_ended_gives_the_room_of_the_time_left_to_the_message(width: int) -> None:
    layout = columns(width, ["demo"], ends=False)
    assert sum(column.width for column in layout) + GAP * (len(layout) - 1) + 2 * MARGIN <= width
    assert "left" not in [column.name for column in layout]
    if width >= 80:
        wider = {column.name: column.width for column in layout}
        narrower = {column.name: column.width for column in columns(width, ["demo"])}
        assert wider["message"] > narrower["message"]
