"""Calling a tool from the screen: server, tool, arguments, outcome."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.task_app import TaskApp, open_store, painted, texts, until
from textual.pilot import Pilot
from textual.widgets import Button, Input, OptionList, Select

from app.engine.commands import CallOutcome, EngineError, ToolInfo, ToolListing
from app.tui.messages import OpenTask
from app.tui.screens.call_tool import CallScreen
from storage.records import TaskKey
from storage.store import Store

HOSTILE = "[/foo] \x1b[31mred\x1b]52;c;ZXZpbA==\x07 \u202eabc [@click=app.quit]x[/]"
DANGEROUS = ("\x1b", "\x07", "\u202e", "\x9b")
REPORT = ToolInfo(
    "generate_report",
    "Report",
    "Writes a report.",
    {
        "type": "object",
        "properties": {"size": {"enum": ["small", "large"]}, "pages": {"type": "integer"}},
        "required": ["size"],
    },
    {"destructiveHint": True},
)
PLAIN = ToolInfo("ping", None, None, {"type": "object"}, {})
TASK = TaskKey("demo", "tsk_9")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


class Calling:
    """The app with a call screen on top."""

    def __init__(self, store: Store, *tools: ToolInfo, warnings: tuple[str, ...] = ()) -> None:
        self.app = TaskApp(store, None)
        self.app.recorder.listing = ToolListing(tools or (REPORT, PLAIN), warnings)
        self.screen = CallScreen(["demo"])

    async def open(self, pilot: Pilot[Any]) -> None:
        self.app.push_screen(self.screen)
        await until(pilot, lambda: bool(self.screen.tools))

    async def choose(self, pilot: Pilot[Any], place: int = 0) -> None:
        tools = self.screen.query_one("#tools", OptionList)
        tools.focus()
        await pilot.press(*["down"] * place, "enter")
        await until(pilot, lambda: self.screen.fields is not None and self.screen.fields.is_mounted)
        await pilot.pause()


@pytest.mark.rule("tools.human-in-the-loop", "tools.calls-are-seen", "tools.confirmed-and-shown")
async def test_a_call_goes_from_tool_to_task_by_keyboard_alone(store: Store) -> None:
    calling = Calling(store)
    calling.app.recorder.outcome = CallOutcome("task", TASK)
    async with calling.app.run_test(size=(80, 24)) as pilot:
        await calling.open(pilot)
        await calling.choose(pilot)
        await pilot.press("right", "space", "tab", "1", "2", "ctrl+s")
        await until(pilot, lambda: calling.screen.outcome is not None)
        assert calling.app.recorder.calls == [("demo", "generate_report", '{"size": "large", "pages": 12}')]
        assert "It is a task now" in painted(calling.app)
        await pilot.press("enter")
        await until(pilot, lambda: bool(calling.app.messages))
        message = calling.app.messages[0]
        assert isinstance(message, OpenTask)
        assert message.key == TASK


@pytest.mark.rule("tools.human-in-the-loop", "tools.confirmed-and-shown")
async def test_arguments_that_do_not_fit_are_not_sent(store: Store) -> None:
    calling = Calling(store)
    async with calling.app.run_test(size=(120, 36)) as pilot:
        await calling.open(pilot)
        await calling.choose(pilot)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "Not called" in painted(calling.app))
        assert "required" in painted(calling.app)
        assert not calling.app.recorder.calls


async def test_a_tool_without_arguments_is_called_with_an_empty_object(store: Store) -> None:
    calling = Calling(store)
    result = {"content": [{"type": "text", "text": f"pong {HOSTILE}"}]}
    calling.app.recorder.outcome = CallOutcome("complete", TASK, result_json=json.dumps(result))
    async with calling.app.run_test(size=(120, 36)) as pilot:
        await calling.open(pilot)
        await calling.choose(pilot, 1)
        calling.screen.query_one("#run", Button).press()
        await until(pilot, lambda: "pong" in painted(calling.app))
        assert calling.app.recorder.calls == [("demo", "ping", "{}")]
        assert not any(bad in painted(calling.app) for bad in DANGEROUS)


async def test_questions_before_a_task_are_a_keypress_away(store: Store) -> None:
    calling = Calling(store)
    call = TaskKey("demo", "call-1")
    calling.app.recorder.outcome = CallOutcome("input_required", call)
    async with calling.app.run_test(size=(80, 24)) as pilot:
        await calling.open(pilot)
        await calling.choose(pilot, 1)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "asks something before it begins" in painted(calling.app))
        await pilot.press("enter")
        await until(pilot, lambda: bool(calling.app.messages))
        assert calling.app.messages[0].key == call


@pytest.mark.parametrize("kind", ["failed", "unknown"])
async def test_a_failure_is_shown_as_what_it_is(store: Store, kind: Any) -> None:
    calling = Calling(store)
    error = '{"code": -32602, "message": "no such tool"}' if kind == "failed" else None
    calling.app.recorder.outcome = CallOutcome(kind, TASK, error_json=error, message="as the server says")
    async with calling.app.run_test(size=(100, 30)) as pilot:
        await calling.open(pilot)
        await calling.choose(pilot, 1)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "as the server says" in painted(calling.app))
        assert ("no such tool" in painted(calling.app)) == (kind == "failed")


async def test_an_unreachable_server_is_said_and_the_arguments_stay(store: Store) -> None:
    calling = Calling(store)
    async with calling.app.run_test(size=(100, 30)) as pilot:
        await calling.open(pilot)
        await calling.choose(pilot)
        await pilot.press("space", "tab", "7")
        calling.app.recorder.trouble = EngineError("unreachable", f"demo can't be reached {HOSTILE}")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "can't be reached" in painted(calling.app))
        fields = calling.screen.fields
        assert fields is not None
        assert fields.entries == {"size": "small", "pages": "7"}
        assert not calling.screen.query_one("#run", Button).disabled
        assert not any(bad in painted(calling.app) for bad in DANGEROUS)


async def test_a_call_is_made_once_while_it_runs_and_goes_on_when_one_leaves(store: Store) -> None:
    calling = Calling(store)
    calling.app.recorder.outcome = CallOutcome("task", TASK)
    calling.app.recorder.gate = None
    async with calling.app.run_test(size=(100, 30), notifications=True) as pilot:
        await calling.open(pilot)
        await calling.choose(pilot, 1)
        calling.app.recorder.gate = asyncio.Event()
        await pilot.press("ctrl+s", "ctrl+s", "ctrl+s")
        await until(pilot, lambda: "half way" in painted(calling.app))
        await pilot.press("escape")
        await until(pilot, lambda: calling.app.screen is not calling.screen)
        calling.app.recorder.gate.set()
        await until(pilot, lambda: "It is a task now" in painted(calling.app))
        assert len(calling.app.recorder.calls) == 1


@pytest.mark.rule("tools.calls-are-seen", "tools.name-form")
async def test_hostile_tools_are_listed_as_text(store: Store) -> None:
    hostile = ToolInfo(
        HOSTILE,
        HOSTILE,
        HOSTILE,
        {
            "type": "object",
            "title": HOSTILE,
            "properties": {HOSTILE: {"description": HOSTILE}, "x": {"type": 7}},
        },
        {"destructiveHint": HOSTILE},
    )
    refused = ToolInfo("refused", None, None, {"type": "array"}, {})
    calling = Calling(store, hostile, refused, warnings=(HOSTILE,))
    async with calling.app.run_test(size=(100, 40)) as pilot:
        await calling.open(pilot)
        await calling.choose(pilot)
        assert "[/foo]" in painted(calling.app)
        assert not any(bad in painted(calling.app) for bad in DANGEROUS)
        await calling.choose(pilot, 1)
        await until(pilot, lambda: "can't be shown as fields" in texts(calling.screen))


async def test_many_tools_are_found_by_typing(store: Store) -> None:
    tools = [ToolInfo(f"tool_{n}", None, f"does thing {n}", {"type": "object"}, {}) for n in range(200)]
    calling = Calling(store, *tools)
    async with calling.app.run_test(size=(80, 24)) as pilot:
        await calling.open(pilot)
        calling.screen.query_one("#find", Input).focus()
        await pilot.press(*"thing 157", "enter", "enter")
        await until(pilot, lambda: calling.screen.tool is not None)
        assert calling.screen.tool is tools[157]


async def test_tools_that_can_not_be_listed_are_said_to_be_so(store: Store) -> None:
    calling = Calling(store)
    calling.app.recorder.trouble = EngineError("unreachable", "demo can't be reached; is it running?")
    async with calling.app.run_test(size=(80, 24)) as pilot:
        calling.app.push_screen(calling.screen)
        await until(pilot, lambda: "is it running?" in painted(calling.app))


async def test_the_screen_waits_for_the_engine_when_opened_at_once(store: Store) -> None:
    calling = Calling(store)
    calling.app.engine = None
    async with calling.app.run_test(size=(80, 24)) as pilot:
        calling.app.push_screen(calling.screen)
        await until(pilot, lambda: "Connecting" in painted(calling.app))
        calling.app.engine = calling.app.recorder
        await until(pilot, lambda: bool(calling.screen.tools))


async def test_another_server_brings_its_own_tools(store: Store) -> None:
    calling = Calling(store)
    calling.screen = CallScreen([HOSTILE, "lab"])
    async with calling.app.run_test(size=(80, 24)) as pilot:
        calling.app.push_screen(calling.screen)
        await until(pilot, lambda: "Choose a server" in painted(calling.app))
        await pilot.press("enter", "down", "enter")
        await until(pilot, lambda: calling.screen.server is not None and bool(calling.screen.tools))
        assert not any(bad in painted(calling.app) for bad in DANGEROUS)
        assert calling.screen.query_one(Select).value in (0, 1)


async def test_typed_arguments_are_given_up_only_by_a_second_escape(store: Store) -> None:
    calling = Calling(store)
    async with calling.app.run_test(size=(80, 24)) as pilot:
        await calling.open(pilot)
        await calling.choose(pilot)
        await pilot.press("space", "escape")
        await until(pilot, lambda: "Escape again to leave" in painted(calling.app))
        assert calling.app.screen is calling.screen
        await pilot.press("escape")
        await until(pilot, lambda: calling.app.screen is not calling.screen)
