"""What is pressed counts for what was on the screen when it was pressed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from textual import events

from app.tui.appearing import GRACE, Appearance


def app(pressed_at: float | None) -> Any:
    return SimpleNamespace(pressed_at=pressed_at)


def test_nothing_counts_before_it_was_painted_however_long_it_takes() -> None:
    now = [0.0]
    appearance = Appearance(lambda: now[0])
    now[0] = 100.0
    assert not appearance.is_settled(app(None))
    appearance.seen()
    assert not appearance.is_settled(app(None))
    now[0] += GRACE
    assert appearance.is_settled(app(None))


@pytest.mark.parametrize("early", [0.001, GRACE - 0.05, -0.001, -5.0])
def test_what_was_pressed_too_early_never_counts_however_late_its_turn_comes(early: float) -> None:
    now = [0.0]
    appearance = Appearance(lambda: now[0])
    now[0] = 50.0
    appearance.seen()
    for waited in (0.01, 1.0, 100.0):
        now[0] += waited
        pressed = 50.0 + early
        assert not appearance.is_settled(app(events.Event().time - (now[0] - pressed)))
    assert appearance.is_settled(app(events.Event().time))


def test_a_key_that_is_held_down_never_counts_and_one_after_a_pause_does() -> None:
    now = [0.0]
    appearance = Appearance(lambda: now[0])
    appearance.seen()
    for _ in range(100):
        now[0] += 0.1
        assert not appearance.is_settled(app(events.Event().time))
    now[0] += GRACE + 0.1
    assert appearance.is_settled(app(events.Event().time))


def test_what_has_moved_is_new_again_and_painting_again_changes_nothing() -> None:
    now = [0.0]
    appearance = Appearance(lambda: now[0])
    appearance.moved()
    assert not appearance.is_settled(app(None))
    appearance.seen()
    now[0] = 10.0
    appearance.seen()
    assert appearance.is_settled(app(None))
    appearance.moved()
    assert not appearance.is_settled(app(None))
