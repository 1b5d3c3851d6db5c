"""A server that was stopped from asking: why, and the choice, in sight on any screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.task_app import KEY, TaskApp, ask, form, open_store, painted, until
from textual.widgets import Button

from app.engine.commands import ASK_ON
from app.tui.messages import CancelRequested
from storage.records import NewTask, TaskKey, TaskState
from storage.store import Store

WHY = f"The server asks more than 500 questions; the rest is not taken in. {ASK_ON}"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_the_choice_stands_below_the_reason_and_is_carried_out(
    store: Store, size: tuple[int, int]
) -> None:
    ask(store, form({"s": {"type": "string"}}), problem=WHY)
    app = TaskApp(store)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: "Let it ask on" in painted(app))
        drawn = painted(app)
        assert "asks more than 500 questions" in drawn
        assert "Accept" in drawn
        await pilot.click("AskingOn .on")
        await until(pilot, lambda: ("let_ask", KEY) in app.recorder.again)
        await pilot.click("AskingOn .end")
        await until(pilot, lambda: any(isinstance(one, CancelRequested) for one in app.messages))


async def test_a_call_that_was_stopped_can_be_given_up_there(store: Store) -> None:
    call = TaskKey("ci", "call-1")
    state = TaskState(status="input_required", tracking="stopped", reason=f"It has asked 20 times. {ASK_ON}")
    store.add_task(NewTask(call, "call", tool="deploy", state=state))
    app = TaskApp(store, call)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "Let it ask on" in painted(app))
        assert "asked 20 times" in painted(app)
        assert "stopped" in painted(app)
        await pilot.click("AskingOn .end")
        await until(pilot, lambda: any(isinstance(one, CancelRequested) for one in app.messages))
        assert "Give up" in painted(app)


@pytest.mark.parametrize(
    "state", [{}, {"problem": "ci did not answer"}, {"problem": WHY, "tracking": "ended"}]
)
async def test_there_is_no_choice_where_nothing_was_stopped(store: Store, state: dict[str, Any]) -> None:
    ask(store, form({}), **state)
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.view.record is not None)
        await pilot.pause()
        assert "Let it ask on" not in painted(app)
        assert not any(button.region for button in app.query("AskingOn Button").results(Button))
