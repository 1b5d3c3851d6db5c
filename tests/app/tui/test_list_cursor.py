"""The highlight belongs to a task, not to a line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.tui.cursor import ListCursor
from storage.records import TaskKey


def keys(text: str) -> list[TaskKey]:
    return [TaskKey("demo", letter) for letter in text]


def at(text: str, letter: str) -> ListCursor:
    cursor = ListCursor()
    cursor.open(keys(text), TaskKey("demo", letter))
    return cursor


def here(cursor: ListCursor) -> str | None:
    return cursor.key.id if cursor.key is not None else None


def test_a_row_that_goes_above_leaves_the_highlight_on_its_task() -> None:
    cursor = at("abcde", "d")
    cursor.replace(keys("acde"))
    assert (here(cursor), cursor.place) == ("d", 2)


def test_a_row_that_comes_above_leaves_the_highlight_on_its_task() -> None:
    cursor = at("abc", "b")
    cursor.replace(keys("xyabc"))
    assert (here(cursor), cursor.place) == ("b", 3)


def test_another_order_leaves_the_highlight_on_its_task() -> None:
    cursor = at("abcde", "b")
    cursor.replace(keys("edcba"))
    assert (here(cursor), cursor.place) == ("b", 3)


def test_when_the_highlighted_task_leaves_nothing_is_highlighted_until_the_person_moves() -> None:
    cursor = at("abcde", "c")
    cursor.replace(keys("abde"))
    assert here(cursor) is None
    cursor.replace(keys("bde"))
    assert here(cursor) is None
    cursor.step(1)
    assert here(cursor) == "d", "a step down goes to the row that took its place"


def test_a_step_up_from_a_gap_goes_to_the_row_above_it() -> None:
    cursor = at("abcde", "c")
    cursor.replace(keys("abde"))
    cursor.step(-1)
    assert here(cursor) == "b"


def test_a_gap_at_the_end_of_the_list_leads_to_the_last_row_either_way() -> None:
    for step in (1, -1):
        cursor = at("abc", "c")
        cursor.replace(keys("ab"))
        cursor.step(step)
        assert here(cursor) == "b"


def test_what_the_person_put_away_hands_the_highlight_to_the_next_row() -> None:
    cursor = at("abcde", "c")
    cursor.let_go(TaskKey("demo", "c"))
    cursor.replace(keys("abde"))
    assert here(cursor) == "d"
    cursor.replace(keys("abe"))
    assert here(cursor) is None, "the next one left by itself"


def test_putting_away_the_last_row_hands_the_highlight_to_the_one_above() -> None:
    cursor = at("abc", "c")
    cursor.let_go(TaskKey("demo", "c"))
    cursor.replace(keys("ab"))
    assert here(cursor) == "b"


def test_the_first_task_in_a_list_that_was_opened_empty_is_highlighted() -> None:
    cursor = ListCursor()
    cursor.open([])
    cursor.replace(keys("a"))
    assert here(cursor) == "a"


def test_a_task_that_arrives_after_the_only_one_left_is_not_highlighted() -> None:
    cursor = at("a", "a")
    cursor.replace([])
    cursor.replace(keys("b"))
    assert here(cursor) is None


def test_a_call_that_became_a_task_keeps_the_highlight_under_its_new_key() -> None:
    cursor = at("abc", "b")
    cursor.replace(keys("xac"), renamed=TaskKey("demo", "x"))
    assert (here(cursor), cursor.place) == ("x", 0)


def test_moves_stay_inside_the_list() -> None:
    cursor = at("abc", "b")
    cursor.step(-50)
    assert here(cursor) == "a"
    cursor.step(50)
    assert here(cursor) == "c"
    cursor.open([])
    cursor.step(1)
    assert here(cursor) is None


letters = st.lists(st.sampled_from("abcdefghijkl"), unique=True)


@given(first=letters, changes=st.lists(letters, max_size=6), start=st.integers(0, 11))
def test_a_change_of_the_list_never_moves_the_highlight_to_another_task(
    first: list[str], changes: list[list[str]], start: int
) -> None:
    cursor = ListCursor()
    cursor.open(keys("".join(first)))
    cursor.move_to(start)
    mine = cursor.key
    for change in changes:
        cursor.replace(keys("".join(change)))
        if mine is not None:
            assert cursor.key in (mine, None)
            mine = cursor.key if cursor.key is None else mine
            if cursor.key is not None:
                assert cursor.keys[cursor.place] == mine
        if mine is None:
            break
