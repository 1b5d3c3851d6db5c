"""What does not fit is wrapped or left out whole; keys typed ahead go where they were meant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.shell import Shell, painted, until
from fakes.task_app import form
from rich.cells import cell_len
from textual import events
from textual.widgets import Input, TabbedContent

from app.tui.screens.task import TaskScreen
from app.tui.widgets.controls import MARK, InlineChoice, option_places
from app.tui.widgets.question_form import QuestionForm
from app.tui.widgets.status_bar import KeyBar
from app.tui.widgets.task_header import shorten, times_line
from app.tui.widgets.task_view import TaskView
from app.tui.words import inbox_keys, server_health
from storage.records import NewTask, QuestionChange, ServerRecord, TaskKey, TaskState, TaskWrites

TIMES = ("786530c0-1111-4222-8333", "started 10:30", "changed 7s ago", "12m left")


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    yield made
    made.store.close()


@pytest.mark.parametrize("width", range(1, 60))
@pytest.mark.parametrize(
    "labels", [["Yes", "No"], ["canary", "Right now"], ["本番環境", "検証環境です"], ["", "a"]]
)
def test_every_option_stands_whole_within_any_width(labels: list[str], width: int) -> None:
    places = option_places(labels, width)
    for index, label in enumerate(labels):
        assert "".join(place.text for place in places if place.index == index) == label
    taken = [(p.y, x) for p in places for x in range(p.x, p.x + MARK + cell_len(p.text))]
    assert len(taken) == len(set(taken))
    if width > MARK + 1:
        assert all(place.x + MARK + cell_len(place.text) <= width for place in places)


@pytest.mark.parametrize("width", range(8, 100))
def test_the_times_of_a_task_are_left_out_whole_and_the_time_left_stays_longest(width: int) -> None:
    shown = times_line(*TIMES, width)
    assert cell_len(shown) <= max(width, 8)
    assert "12m left" in shown or width < 8
    for words in TIMES[1:]:
        assert words in shown or words.split()[0] not in shown
    if "started" not in shown:
        assert TIMES[0] not in shown  # the id is shortened before any time goes


def test_a_message_is_cut_after_a_word() -> None:
    assert shorten("one two three", 9) == "one two…"
    assert shorten("one two", 9) == "one two"
    assert cell_len(shorten("本番環境にデプロイします", 9)) <= 9


def test_a_server_that_is_well_says_how_it_is_observed_and_ok_only_where_that_is_not_known() -> None:
    well = ServerRecord("lab", "ok", 0)
    assert str(server_health(well, 0, "polling")) == "● polling"
    assert str(server_health(well, 0)) == "● ok"
    assert server_health(ServerRecord("p", "unreachable", 0), 180_000, "polling").word == "unreachable 3m"


@pytest.mark.parametrize("width", [30, 47, 80, 124])
async def test_keys_at_the_bottom_are_whole_words_at_any_width(inbox: Shell, width: int) -> None:
    async with inbox.app.run_test(size=(width, 24)) as pilot:
        await pilot.pause()
        bar = inbox.screen.query_one(KeyBar)
        words = str(bar.render()).strip()
        whole = "  ".join(f"{key} {word}" for key, word, _ in inbox_keys("needs-you"))
        assert whole.startswith(words)
        assert whole[len(words) : len(words) + 2] in ("", "  ")


@pytest.mark.parametrize("again", [False, True])
async def test_letters_right_behind_the_slash_are_the_filters_and_never_commands(
    inbox: Shell, again: bool
) -> None:
    inbox.add("tsk_1", "approve")
    async with inbox.app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: inbox.engine.runs == 1 and bool(inbox.screen.query("FilterBar")))
        if again:
            await pilot.press("slash", "x", "escape")
        for key in ("slash", "e", "f", "q", "1"):  # in one burst, as a terminal hands over what was typed
            inbox.app.post_message(events.Key(key, "/" if key == "slash" else key))
        await until(pilot, lambda: inbox.screen.filter_text == "efq1")
        assert inbox.app.is_running
        assert inbox.screen.query_one("FilterInput", Input).value == "efq1"
        assert inbox.store.reader.counts()["archived"] == 0
        assert len(inbox.app.screen_stack) == 1


async def test_the_card_in_which_somebody_works_has_a_brighter_frame_and_its_options_wrap(
    inbox: Shell,
) -> None:
    key = TaskKey("ci", "tsk_1")
    properties = {"env": {"enum": ["canary", "Right now"]}, "sure": {"type": "boolean"}}
    new = NewTask(key, tool="deploy", state=TaskState(status="input_required"))
    inbox.store.add_task(new, questions=(form(properties), form({"b": {"type": "boolean"}}, key="second")))
    async with inbox.app.run_test(size=(40, 40)) as pilot:
        await until(pilot, lambda: inbox.engine.runs == 1)
        await pilot.press("a")
        await until(pilot, lambda: isinstance(inbox.app.screen, TaskScreen))
        await until(pilot, lambda: isinstance(inbox.app.focused, InlineChoice))
        shown = painted(inbox.app)
        assert "( ) canary" in shown
        assert "( ) Right now" in shown
        first, second = inbox.app.screen.query(QuestionForm)
        assert first.styles.border_top != second.styles.border_top
        choice = first.query(InlineChoice).first()
        await pilot.click(choice, offset=(2, option_places(choice.labels, choice.size.width)[1].y))
        assert first.fields.entries in ({"env": "canary"}, {"env": "Right now"})


async def test_brackets_turn_the_panes_of_a_task_in_every_terminal(inbox: Shell) -> None:
    inbox.add("tsk_1")
    async with inbox.app.run_test(size=(130, 36)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: bool(inbox.screen.query(TaskView)))
        tabs = inbox.screen.query_one(TabbedContent)
        await until(pilot, lambda: inbox.screen.query_one(TaskView).key is not None)
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: tabs.active == "timeline")
        await pilot.press("left_square_bracket", "left_square_bracket")
        await until(pilot, lambda: tabs.active == "raw")


async def test_a_label_without_end_is_cut(inbox: Shell) -> None:
    key = TaskKey("ci", "tsk_1")
    long = form({"x": {"type": "string", "title": "t" * 60_000, "description": "d" * 60_000}})
    inbox.store.add_task(NewTask(key, state=TaskState(status="input_required")), questions=(long,))
    async with inbox.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("a")
        await until(pilot, lambda: isinstance(inbox.app.focused, Input))
        row = inbox.app.screen.query_one(QuestionForm).fields.rows[0]
        assert row.size.height < 50


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_the_buttons_of_a_call_are_in_sight_however_long_its_form(
    inbox: Shell, size: tuple[int, int]
) -> None:
    from app.engine.commands import ToolInfo, ToolListing
    from app.tui.screens.call_tool import CallScreen

    fields = {f"f{n}": {"type": "string", "description": "words " * 40} for n in range(20)}
    tool = ToolInfo("deploy", None, "what it does " * 40, {"type": "object", "properties": fields}, {})
    inbox.engine.listing = ToolListing((tool,))
    async with inbox.app.run_test(size=size) as pilot:
        await until(pilot, lambda: inbox.engine.runs == 1)
        await pilot.press("n")
        await until(
            pilot,
            lambda: isinstance(inbox.app.screen, CallScreen) and inbox.app.focused is inbox.app.screen._list,
        )
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(inbox.app.focused, Input))
        assert "Run ^S" in painted(inbox.app)


async def test_hundreds_of_questions_come_ten_at_a_time(inbox: Shell) -> None:
    key = TaskKey("ci", "tsk_1")
    asks = tuple(form({"yes": {"type": "boolean"}}, key=f"q{n:03}") for n in range(300))
    inbox.store.add_task(
        NewTask(key, tool="deploy", state=TaskState(status="input_required")), questions=asks
    )
    async with inbox.app.run_test(size=(130, 36)) as pilot:
        await until(pilot, lambda: len(inbox.screen.query(QuestionForm)) == 10)
        view = inbox.screen.query_one(TaskView)
        assert view._more.display
        assert "290 more" in view._more.text
        first = view.cards[0].question
        inbox.store.change_task(
            key, lambda _t, _q: TaskWrites(question_changes=(QuestionChange(first.id, "withdrawn"),))
        )
        inbox.engine.changed(key)
        await until(pilot, lambda: "289 more" in view._more.text)
        assert len(view.cards) == 10
        assert first.id not in [card.question.id for card in view.cards]
