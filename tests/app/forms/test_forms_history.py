"""Undoing within a form: step by step, in whichever field each change was made."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from app.forms.history import MOST_STEPS, History


def typed(history: History[object], name: str, before: object, text: str) -> None:
    """Type *text* behind *before*, key by key."""
    for key in text:
        after = (before if isinstance(before, str) else "") + key
        history.record(name, before, after)
        before = after


def test_a_word_is_one_step() -> None:
    history: History[object] = History()
    typed(history, "s", None, "hello big world")
    assert [history.undo() for _ in range(4)] == [("s", "hello big "), ("s", "hello "), ("s", None), None]


def test_what_was_undone_can_be_redone_until_something_else_is_done() -> None:
    history: History[object] = History()
    typed(history, "s", None, "one two")
    history.record("b", None, "true")
    assert history.undo() == ("b", None)
    assert history.undo() == ("s", "one ")
    assert history.redo() == ("s", "one two")
    assert history.redo() == ("b", "true")
    assert history.redo() is None
    history.undo()
    history.record("b", None, "false")
    assert history.redo() is None
    assert history.undo() == ("b", None)


def test_typing_rubbing_out_and_pasting_are_steps_of_their_own() -> None:
    history: History[object] = History()
    typed(history, "s", "", "abc")
    history.record("s", "abc", "ab")
    history.record("s", "ab", "a")
    history.record("s", "a", "a" + "x" * 100)
    assert [history.undo() for _ in range(4)] == [("s", "a"), ("s", "abc"), ("s", ""), None]


def test_after_a_pause_typing_on_is_a_step_of_its_own() -> None:
    history: History[object] = History()
    typed(history, "s", None, "ab")
    history.pause()
    typed(history, "s", "ab", "cd")
    assert [history.undo() for _ in range(3)] == [("s", "ab"), ("s", None), None]


def test_the_same_text_in_another_field_is_another_step() -> None:
    history: History[object] = History()
    typed(history, "a", None, "x")
    typed(history, "b", None, "x")
    typed(history, "a", "x", "y")
    assert [history.undo() for _ in range(4)] == [("a", "x"), ("b", None), ("a", None), None]


def test_only_so_many_steps_are_remembered() -> None:
    history: History[object] = History()
    for n in range(MOST_STEPS + 50):
        history.record("s", [n], [n + 1])
    for _ in range(MOST_STEPS):
        assert history.undo() is not None
    assert history.undo() is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b"]),
            st.one_of(st.none(), st.text(max_size=4), st.lists(st.text(max_size=2))),
        )
    )
)
def test_undoing_all_leads_back_to_the_beginning_and_redoing_all_to_the_end(
    changes: Sequence[tuple[str, object]],
) -> None:
    history: History[object] = History()
    state: dict[str, object] = {"a": None, "b": None}
    for name, after in changes:
        if after != state[name]:
            history.record(name, state[name], after)
            state[name] = after
    end = dict(state)
    while (step := history.undo()) is not None:
        state[step[0]] = step[1]
    assert state == {"a": None, "b": None}
    while (step := history.redo()) is not None:
        state[step[0]] = step[1]
    assert state == end
