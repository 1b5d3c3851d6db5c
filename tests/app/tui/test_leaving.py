"""Leaving the inbox: at any instant, without an error, and without losing what is typed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from fakes.shell import Shell, painted, until
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from app.engine.commands import Changes
from app.tui.screens.task import TaskScreen
from app.tui.widgets.drafts import drafts_of
from storage.records import TaskKey

NARROW = (80, 24)
WIDE = (130, 36)
INSTANTS = (0, 1, 2, 4, 6, 9, 13, 18, 26, 40, 80)
"""Turns of the event loop after a key; a task is on the screen long before the last of them."""


async def turns(count: int) -> None:
    """Let everything else have *count* turns of the event loop."""
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_leaving_at_any_instant_after_a_task_is_opened_is_safe(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    for instant in INSTANTS:
        inbox = Shell(tmp_path / str(instant))
        key = inbox.add("tsk_1", "approve", "name")
        try:
            async with inbox.app.run_test(size=size) as pilot:  # raises what went wrong within the app
                await until(pilot, lambda inbox=inbox: inbox.engine.runs == 1)
                inbox.screen.action_open()
                await turns(instant)
                inbox.end(key)
                inbox.app.exit()
                await turns(instant // 2)
                inbox.end(key)
            assert inbox.app.return_code == 0
            assert inbox.engine.closed
        finally:
            inbox.store.close()


async def test_leaving_at_any_instant_of_the_start_is_safe(tmp_path: Path) -> None:
    for instant in INSTANTS:
        inbox = Shell(tmp_path / str(instant), connects=False)
        inbox.add("tsk_1", "approve")
        try:
            async with inbox.app.run_test(size=WIDE):
                await turns(instant)
                inbox.gate.set()
                await turns(instant // 2)
                inbox.app.exit()
            assert inbox.app.return_code == 0
            # Whatever was opened is closed again.
            assert inbox.engine.closed or inbox.engine.runs == 0
        finally:
            inbox.store.close()


async def test_news_and_ticks_after_the_widgets_have_gone_are_passed_over(tmp_path: Path) -> None:
    inbox = Shell(tmp_path)
    key = inbox.add("tsk_1", "approve")
    async with inbox.app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: inbox.engine.runs == 1)
    inbox.app._on_changes(Changes(tasks=frozenset({key}), servers=frozenset({"ci"})))
    inbox.app._tick()
    inbox.store.close()


async def _type_unconnected(inbox: Shell, pilot: Pilot[None]) -> None:
    await until(pilot, lambda: "deploy" in painted(inbox.app))
    inbox.screen.action_open()
    await until(
        pilot,
        lambda: isinstance(inbox.app.screen, TaskScreen) and isinstance(inbox.app.focused, Input | TextArea),
    )


def draft(inbox: Shell) -> str | None:
    """Return what the store holds of the one question's draft."""
    return inbox.store.reader.questions(TaskKey("ci", "tsk_1"))[0].draft_json


async def test_leaving_waits_for_the_engine_so_that_what_is_typed_is_kept(tmp_path: Path) -> None:
    inbox = Shell(tmp_path, connects=False)
    inbox.add("tsk_1", "approve")
    try:
        async with inbox.app.run_test(size=NARROW, notifications=True) as pilot:
            await _type_unconnected(inbox, pilot)
            await pilot.press("h", "i")
            await inbox.app.action_quit()
            await until(pilot, lambda: "Saving what you typed" in painted(inbox.app))
            assert inbox.app.is_running
            inbox.gate.set()
            await until(pilot, lambda: not inbox.app.is_running)
        assert "hi" in (draft(inbox) or "")
        assert inbox.engine.closed
    finally:
        inbox.store.close()


async def test_what_can_not_be_kept_is_said_and_a_second_quit_leaves(tmp_path: Path) -> None:
    inbox = Shell(tmp_path)
    inbox.connect_error = OSError("no room")
    inbox.add("tsk_1", "approve")
    try:
        async with inbox.app.run_test(size=NARROW, notifications=True) as pilot:
            await _type_unconnected(inbox, pilot)
            await pilot.press("h", "i")
            assert drafts_of(inbox.app).unsaved
            await inbox.app.action_quit()
            await until(pilot, lambda: "can't be kept" in " ".join(painted(inbox.app).split()))
            assert inbox.app.is_running
            await inbox.app.action_quit()
        assert inbox.app.return_code == 0
        assert draft(inbox) is None
    finally:
        inbox.store.close()


async def test_with_nothing_typed_leaving_waits_for_nothing(tmp_path: Path) -> None:
    inbox = Shell(tmp_path, connects=False)
    try:
        async with inbox.app.run_test(size=NARROW) as pilot:
            await pilot.press("q")
            await until(pilot, lambda: not inbox.app.is_running)
    finally:
        inbox.store.close()
