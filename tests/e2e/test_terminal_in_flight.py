"""Keys and clicks that were on their way when a form appeared, in a real terminal: they answer nothing.

The form has thirty fields, so that building it takes its time while more is pressed.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from fakes.cli_program import tracking
from fakes.task_script import TaskScript
from fakes.terminal import Terminal

pytestmark = pytest.mark.terminal

LARGE: Final[dict[str, Any]] = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Delete all of it?",
        "requestedSchema": {
            "type": "object",
            "properties": {f"field_{n}": {"type": "string", "default": "x"} for n in range(30)},
        },
    },
}
"""Accepting it as it is would be valid."""

BEAT: Final = 0.1
"""Seconds between two presses; less than the moment in which nobody can have read a form."""

LONG: Final = 25
"""Presses after the form has come to the screen."""


@pytest_asyncio.fixture
async def server() -> AsyncIterator[TaskScript]:
    async with TaskScript() as script:
        for name in ("t1", "t2"):
            script.ask(name, approve=LARGE)
        script.ask("t3", strange={"method": "nobody/knows", "params": {}})
        yield script


async def inbox(folder: Path, server: TaskScript, *tasks: str, wide: bool) -> Terminal:
    """Return a terminal on an installation that knows *tasks* and what they ask."""
    program = await tracking(folder / "home", *tasks, lab=server.url)
    env = {"TASKINBOX_HOME": str(folder / "home")}
    terminal = Terminal([program.executable], env=env, columns=120 if wide else 80, rows=36 if wide else 24)
    await asyncio.to_thread(terminal.wait_for, f"Needs you {len(tasks)}")
    await asyncio.to_thread(terminal.wait_until, lambda s: "connecting" not in s)
    return terminal


def hammer(terminal: Terminal, press: Callable[[], None], there: str) -> None:
    """Press on and on until *there* has been on the screen for a while."""
    seen, deadline = 0, time.monotonic() + 60
    while seen < LONG:
        assert time.monotonic() < deadline, terminal.text()
        press()
        seen += there in terminal.text()
        time.sleep(BEAT)


def at_rest(terminal: Terminal, text: str) -> tuple[int, int]:
    """Return where *text* stands once it has stayed there: it may take its place in two steps."""
    before, place = None, terminal.where(text)
    while place != before:
        terminal.wait_quiet(2, 2)
        before, place = place, terminal.where(text)
    return place


@pytest.mark.parametrize("key", ["enter", "a"])
@pytest.mark.parametrize("wide", [False, True])
async def test_a_chord_that_is_pressed_all_the_while_answers_nothing_until_it_is_let_go(
    tmp_path: Path, server: TaskScript, wide: bool, key: str
) -> None:
    terminal = await inbox(tmp_path, server, "t1", wide=wide)
    with terminal:
        terminal.send(key)
        await asyncio.to_thread(hammer, terminal, lambda: terminal.send("ctrl+s"), "Accept ^S")
        assert "only just" in terminal.text()
        assert server.updates == []
        await asyncio.to_thread(terminal.press_calmly, "ctrl+s", lambda _: bool(server.updates))
        assert len(server.updates) == 1


async def test_a_button_that_is_clicked_all_the_while_answers_nothing_until_it_is_let_go(
    tmp_path: Path, server: TaskScript
) -> None:
    terminal = await inbox(tmp_path, server, "t1", "t3", wide=True)
    with terminal:
        await asyncio.to_thread(
            terminal.wait_until, lambda s: "does not answer" in s or "Accept ^S" in s, "either task"
        )
        # Newest first, or last: whichever, the other one is a step away.
        forth, back = ("up", "down") if "Accept ^S" in terminal.text() else ("down", "up")
        if forth == "down":
            terminal.send(forth)
        await asyncio.to_thread(terminal.wait_for, "Accept ^S")
        place = await asyncio.to_thread(at_rest, terminal, "Accept ^S")
        terminal.send(back)
        await asyncio.to_thread(terminal.wait_for, "does not answer")
        terminal.send(forth)
        # The list moves at once, the form comes after it.
        await asyncio.to_thread(terminal.wait_until, lambda s: re.search("^▌lab +t1 ", s, re.MULTILINE))
        await asyncio.to_thread(hammer, terminal, lambda: terminal.click_at(*place), "Accept ^S")
        await asyncio.to_thread(terminal.wait_for, "only just")
        assert server.updates == []
        await asyncio.to_thread(terminal.click_until, "Accept ^S", lambda _: bool(server.updates))
        assert [list(update.params["inputResponses"]) for update in server.updates] == [["approve"]]


async def test_several_at_once_are_answered_by_nothing_that_was_in_flight(
    tmp_path: Path, server: TaskScript
) -> None:
    terminal = await inbox(tmp_path, server, "t1", "t2", wide=False)
    with terminal:
        terminal.send("space", "space")
        await asyncio.to_thread(terminal.wait_for, "answer 2 marked")
        terminal.send("A")
        await asyncio.to_thread(hammer, terminal, lambda: terminal.send("ctrl+s"), "Accept all 2")
        assert "only just" in terminal.text()
        assert server.updates == []
        await asyncio.to_thread(terminal.press_calmly, "ctrl+s", lambda s: "2 sent" in s)
        assert len(server.updates) == 2
