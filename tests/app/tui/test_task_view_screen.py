"""A task over the whole screen of a narrow terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.task_app import KEY, TaskApp, ask, change, form, open_store, painted, until
from textual.widgets import Input

from app.engine.commands import Changes
from app.tui.messages import ArchiveRequested, CancelRequested, RefreshRequested
from app.tui.screens.task import TaskScreen
from storage.records import TaskKey
from storage.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


async def test_opening_a_task_begins_in_its_form_and_escape_goes_back_with_the_draft_kept(
    store: Store,
) -> None:
    ask(store, form({"s": {"type": "string"}}))
    app = TaskApp(store, None)
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(TaskScreen(KEY))
        await until(pilot, lambda: isinstance(app.focused, Input))
        await pilot.press(*"ace", "escape")
        await until(pilot, lambda: not isinstance(app.screen, TaskScreen))
        app.push_screen(TaskScreen(KEY))
        await until(pilot, lambda: isinstance(app.focused, Input) and app.focused.value == "ace")
        assert not app.messages


async def test_the_keys_mean_the_task_that_is_shown(store: Store) -> None:
    ask(store)
    app = TaskApp(store, None)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = TaskScreen(KEY)
        app.push_screen(screen)
        await until(pilot, lambda: screen.view.record is not None)
        await pilot.press("c", "e", "r")
        await until(pilot, lambda: len(app.messages) == 3)
        assert [type(m) for m in app.messages] == [CancelRequested, ArchiveRequested, RefreshRequested]
        assert {m.key for m in app.messages} == {KEY}


async def test_only_a_change_of_this_task_is_read_again(store: Store) -> None:
    ask(store)
    app = TaskApp(store, None)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = TaskScreen(KEY)
        app.push_screen(screen)
        await until(pilot, lambda: screen.view.record is not None)
        change(store, new_questions=(form({}, message="New here?"),))
        screen.changed(Changes(tasks=frozenset({TaskKey("ci", "other")})))
        await pilot.pause()
        assert "New here?" not in painted(app)
        screen.changed(Changes(tasks=frozenset({KEY})))
        await until(pilot, lambda: "New here?" in painted(app))
