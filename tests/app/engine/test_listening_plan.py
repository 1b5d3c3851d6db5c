"""Which stream is opened next: few streams for many tasks, and none for nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.plan import STREAM_IDS, STREAMS_MOST, Wish, plan


def ids(count: int, start: int = 0) -> tuple[str, ...]:
    return tuple(f"t{number}" for number in range(start, start + count))


@pytest.mark.parametrize("streams", [[], [("a", ids(3), 3)], [("a", ids(3), 6), ("b", ids(500, 3), 500)]])
def test_nothing_is_opened_where_all_is_told_of(streams: Sequence[tuple[str, Sequence[str], int]]) -> None:
    assert plan([], streams) is None


def test_the_first_tasks_get_a_stream_of_their_own() -> None:
    assert plan(ids(2), []) == Wish(ids(2), None)


def test_a_task_that_comes_later_goes_into_the_place_of_the_youngest_stream_with_room() -> None:
    streams = [("old", ids(2), 2), ("young", ids(2, 2), 2), ("full", ids(STREAM_IDS, 4), STREAM_IDS)]
    assert plan(["new"], streams) == Wish(("t2", "t3", "new"), "young")


def test_what_has_no_room_gets_a_stream_of_its_own() -> None:
    full = ("full", ids(STREAM_IDS), STREAM_IDS)
    assert plan(["new"], [full]) == Wish(("new",), None)
    almost = ("almost", ids(STREAM_IDS - 1), STREAM_IDS)
    assert plan(["new", "newer"], [almost]) == Wish((*ids(STREAM_IDS - 1), "new"), "almost")


def test_streams_leave_connections_for_looks_and_answers() -> None:
    full = [(number, ids(STREAM_IDS, number * STREAM_IDS), STREAM_IDS) for number in range(STREAMS_MOST)]
    assert plan(["new"], full[1:]) == Wish(("new",), None)
    assert plan(["new"], full) is None
    assert plan(["new"], [*full[1:], (0, ids(1), 1)]) == Wish(("t0", "new"), 0)


def test_a_stream_of_which_less_than_half_is_alive_is_made_anew_and_smaller() -> None:
    assert plan([], [("half", ids(2), 4)]) is None
    assert plan([], [("less", ids(2), 5)]) == Wish(ids(2), "less")
    assert plan([], [("none", (), 5)]) is None  # that one is closed, not replaced


@settings(deadline=None)
@given(st.integers(0, 3_000), st.lists(st.integers(0, STREAM_IDS), max_size=4))
def test_it_ends_with_every_task_in_one_stream_and_no_more_streams_than_needed(
    new: int, before: list[int]
) -> None:
    missing = list(ids(new))
    streams: dict[int, tuple[str, ...]] = {
        number: ids(size, 10_000 * (number + 1)) for number, size in enumerate(before)
    }
    wanted = set(missing).union(*streams.values())
    steps = 0
    while wish := plan(missing, [(number, alive, len(alive)) for number, alive in streams.items()]):
        assert 0 < len(wish.ids) <= STREAM_IDS
        if wish.instead_of is not None:
            assert set(streams.pop(wish.instead_of)) <= set(wish.ids)
        streams[100 + steps] = wish.ids
        taken = set(wish.ids)
        missing = [one for one in missing if one not in taken]
        steps += 1
        assert steps <= new // STREAM_IDS + 2 + len(before)
    told = [one for alive in streams.values() for one in alive]
    assert len(told) == len(set(told))
    assert set(told) == wanted
