"""Keys that come faster than the screen: each acts where it was meant, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.shell import Shell, painted, until
from fakes.task_app import form
from textual import events
from textual.widgets import Input, OptionList

from app.engine.commands import ToolInfo, ToolListing
from app.tui.screens.call_tool import CallScreen
from app.tui.widgets.controls import InlineChoice
from app.tui.widgets.question_form import QuestionForm
from storage.records import NewTask, TaskKey, TaskState

KEY = TaskKey("ci", "tsk_1")
NARROW = (80, 24)
WIDE = (130, 36)
FIELDS = {
    "mail": {"type": "string"},
    "count": {"type": "integer"},
    "sure": {"type": "boolean"},
    "note": {"type": "string", "maxLength": 5000},
    "tags": {"type": "array", "items": {"enum": ["red", "green"]}},
    "last": {"type": "string"},
}


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    made.store.add_task(
        NewTask(KEY, tool="deploy", state=TaskState(status="input_required")), questions=(form(FIELDS),)
    )
    yield made
    made.store.close()


def burst(inbox: Shell, *keys: str) -> None:
    """Hand over keys as a terminal does that sends them in one piece."""
    for key in keys:
        inbox.app.post_message(events.Key(key, key if len(key) == 1 else " " if key == "space" else None))


def shown_form(inbox: Shell) -> QuestionForm:
    return inbox.app.screen.query_one(QuestionForm)


def ready(inbox: Shell) -> bool:
    focused = inbox.app.focused
    return isinstance(focused, Input) and any(isinstance(a, QuestionForm) for a in focused.ancestors)


@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_what_is_typed_right_behind_a_tab_lands_in_the_next_field(
    inbox: Shell, size: tuple[int, int]
) -> None:
    async with inbox.app.run_test(size=size) as pilot:
        await until(pilot, lambda: inbox.engine.runs == 1)
        await pilot.press("a")
        await until(pilot, lambda: ready(inbox))
        burst(inbox, *"one", "tab", *"42", "tab", "right", "space", "tab", *"hey", "tab", "space", "tab", "z")
        wanted = {"mail": "one", "count": "42", "sure": "false", "note": "hey", "tags": ["red"], "last": "z"}
        await until(pilot, lambda: shown_form(inbox).fields.entries == wanted)
        burst(inbox, "shift+tab", "down", "space", "shift+tab", "!")
        await until(pilot, lambda: shown_form(inbox).fields.entries["note"] == "hey!")
        assert shown_form(inbox).fields.entries["tags"] == ["red", "green"]


async def test_what_is_typed_right_behind_enter_lands_in_the_next_field(inbox: Shell) -> None:
    async with inbox.app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: inbox.engine.runs == 1)
        await pilot.press("a")
        await until(pilot, lambda: ready(inbox))
        burst(inbox, *"ab", "enter", "7", "enter")
        await until(pilot, lambda: isinstance(inbox.app.focused, InlineChoice))
        assert shown_form(inbox).fields.entries == {"mail": "ab", "count": "7"}


@pytest.mark.parametrize("size", [NARROW, WIDE])
@pytest.mark.parametrize("opens", ["a", "enter"])
async def test_what_is_typed_before_the_form_is_there_commands_nothing(
    inbox: Shell, size: tuple[int, int], opens: str
) -> None:
    other = inbox.add("tsk_2", "approve")
    async with inbox.app.run_test(size=size) as pilot:
        await until(pilot, lambda: inbox.engine.runs == 1)
        burst(inbox, opens, *"ecfqnsr3")
        await until(pilot, lambda: ready(inbox))
        assert inbox.app.is_running
        assert inbox.store.reader.counts()["archived"] == 0
        assert inbox.engine.again == []
        assert len(inbox.app.screen_stack) == (2 if size is NARROW else 1)
        assert shown_form(inbox).question.task == KEY
        assert inbox.store.reader.questions(other)[0].draft_json is None
        await pilot.press("x")
        assert shown_form(inbox).fields.entries == {"mail": "x"}
        await pilot.press("escape")
        await until(pilot, lambda: inbox.app.focused is inbox.tasks)
        await pilot.press("question_mark")  # keys are commands again
        await until(pilot, lambda: len(inbox.app.screen_stack) == 2)


async def test_letters_on_the_list_of_tools_find_a_tool(inbox: Shell) -> None:
    schema = {"type": "object", "properties": {}}
    inbox.engine.listing = ToolListing(
        tuple(ToolInfo(name, None, None, schema, {}) for name in ("drop_all", "echo", "report"))
    )
    async with inbox.app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: inbox.engine.runs == 1)
        await pilot.press("n")
        await until(
            pilot,
            lambda: isinstance(inbox.app.screen, CallScreen) and isinstance(inbox.app.focused, OptionList),
        )
        screen = inbox.app.screen
        assert isinstance(screen, CallScreen)
        burst(inbox, *"echo", "enter")
        await until(pilot, lambda: screen._filter.value == "echo" and inbox.app.focused is screen._list)
        assert screen.tool is None
        await pilot.press("enter")
        await until(pilot, lambda: screen.tool is not None and screen.tool.name == "echo")


async def test_a_servers_file_that_can_not_be_read_says_why_where_the_servers_would_stand(
    inbox: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.config import ConfigError

    def broken() -> list[tuple[str, str]]:
        raise ConfigError("mcp.json, line 3: a comma is missing [/foo].")

    monkeypatch.setattr(inbox.servers, "list", broken)
    async with inbox.app.run_test(size=NARROW, notifications=True) as pilot:
        await pilot.press("s")
        await until(pilot, lambda: "a comma is missing [/foo]" in painted(inbox.app))
        assert "No server yet" not in painted(inbox.app)


@pytest.mark.parametrize("before", ["1", "escape"])
@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_a_filter_asked_for_right_behind_another_key_keeps_the_focus(
    inbox: Shell, size: tuple[int, int], before: str
) -> None:
    """Giving the list the focus must not come late, after the filter has it: letters would be commands."""
    async with inbox.app.run_test(size=size) as pilot:
        await until(pilot, lambda: inbox.engine.runs == 1)
        await pilot.press(before)
        await pilot.press("slash", "escape")  # the filter's line is made
        burst(inbox, before, "slash")
        await pilot.pause(0.3)
        await pilot.press(*"cefrq")
        field = inbox.app.focused
        assert isinstance(field, Input)
        assert field.value == "cefrq"
        assert inbox.app.screen is inbox.app.inbox
        task = inbox.app.reader.task(KEY)
        assert task is not None
        assert task.archived_at is None
