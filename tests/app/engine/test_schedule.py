"""When a task is looked at: honouring the server's suggestion within bounds that protect both sides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine import schedule

CHANCE = st.floats(0, 1, exclude_max=True)


@pytest.mark.rule("tasks.poll-interval-honoured", "tasks.poll-interval-respected", "wire.defaults")
@pytest.mark.parametrize(
    ("suggested", "pause"),
    [
        (None, 5_000),
        (0, 5_000),
        (-1, 5_000),
        (1, 500),
        (499, 500),
        (500, 500),
        (1_000, 1_000),
        (60_000, 60_000),
        (10**12, 300_000),
    ],
)
def test_the_suggested_interval_is_honoured_within_bounds(suggested: int | None, pause: int) -> None:
    assert schedule.interval(suggested) == pause


@given(st.none() | st.integers(-(10**15), 10**15), CHANCE)
def test_looks_are_spread_by_a_tenth_at_most(suggested: int | None, chance: float) -> None:
    pause = schedule.interval(suggested) / 1000
    assert pause * 0.9 - 1e-9 <= schedule.next_look(suggested, chance) <= pause * 1.1 + 1e-9


def test_chance_really_spreads_the_looks() -> None:
    assert schedule.next_look(1_000, 0.0) == pytest.approx(0.9)
    assert schedule.next_look(1_000, 0.5) == pytest.approx(1.0)
    assert schedule.next_look(1_000, 0.999999) == pytest.approx(1.1, abs=1e-3)


@pytest.mark.rule("tasks.observed-after-update", "wire.settling")
def test_after_an_acknowledgement_looks_come_soon_and_then_at_the_usual_pace() -> None:
    paces = [schedule.next_look(30_000, 0.5, quick=n) for n in range(5)]
    assert paces == pytest.approx([0.5, 1, 2, 30, 30])
    assert schedule.next_look(600, 0.5, quick=1) == pytest.approx(0.6)


def test_failures_back_off_up_to_a_minute() -> None:
    paces = [schedule.after_failure(n, None, 0.5) for n in range(1, 10)]
    assert paces == pytest.approx([2.5, 2.5, 4, 8, 16, 32, 60, 60, 60])
    assert schedule.after_failure(10**9, None, 0.5) == pytest.approx(60)


@given(st.integers(1, 10**6), st.none() | st.integers(0, 10**9), CHANCE)
def test_a_backoff_is_never_shorter_than_the_floor_nor_longer_than_its_bound(
    failures: int, suggested: int | None, chance: float
) -> None:
    assert 0.5 <= schedule.after_failure(failures, suggested, chance) <= 75


def test_a_lost_task_is_looked_at_a_few_times_more_and_then_left() -> None:
    assert [schedule.after_loss(n, 0.5) for n in range(4)] == [30, 120, 600, None]


@pytest.mark.parametrize(
    ("interval", "seconds"),
    [(None, 60), (1_000, 60), (5_999, 60), (10_000, 100), (29_000, 290), (60_000, 300), (10**12, 300)],
)
def test_a_task_that_a_stream_tells_of_is_looked_at_seldom_and_still_looked_at(
    interval: int | None, seconds: float
) -> None:
    assert schedule.safety_look(interval, 0.5) == pytest.approx(seconds)
    assert schedule.safety_look(interval, 0.0) == pytest.approx(0.9 * seconds)
    assert schedule.safety_look(interval, 1.0) == pytest.approx(1.1 * seconds)


@pytest.mark.parametrize(("interval", "most"), [(None, 5), (1, 0.5), (15_000, 15), (10**12, 300)])
def test_a_task_whose_stream_ended_is_looked_at_within_one_interval(
    interval: int | None, most: float
) -> None:
    assert schedule.fall_back(interval, 0.0) == 0
    assert schedule.fall_back(interval, 1.0) == most


def test_a_stream_that_ends_soon_is_opened_again_after_a_pause_that_grows_to_a_minute() -> None:
    assert [schedule.listen_again(number, 0.5) for number in (1, 2, 3, 7, 1_000)] == [1, 2, 4, 60, 60]
    assert schedule.listen_again(1, 0.0) == 0.75


def test_a_server_that_refused_is_asked_again_after_ten_minutes() -> None:
    assert schedule.after_refusal(0.5) == 600
