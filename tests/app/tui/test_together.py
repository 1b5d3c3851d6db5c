"""Several tasks that ask the same, answered together: marked in the list, listed, each its own answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fakes.shell import Shell, painted, until
from fakes.task_app import form, question
from textual.pilot import Pilot
from textual.widgets import Button

from app.engine.commands import Delivery, EngineError
from app.tui.appearing import Appearance
from app.tui.screens.inbox import InboxScreen
from app.tui.screens.together import TogetherScreen
from storage.records import NewTask, QuestionChange, QuestionRecord, TaskKey, TaskState, TaskWrites

SIZE = (80, 24)
HOSTILE = "[/foo] \x1b[31mred\x1b]52;c;ZXZpbA==\x07 \u202eabc"
FIELDS = {"n": {"type": "integer"}, "why": {"type": "string"}}


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    yield made
    made.store.close()


def add(shell: Shell, id: str, *, server: str = "ci", fingerprint: str = "same", **more: Any) -> TaskKey:
    key = TaskKey(server, id)
    asked = form(FIELDS, key=more.pop("key", "approve"), fingerprint=fingerprint, required=("n",), **more)
    new = NewTask(key, tool="deploy", state=TaskState(status="input_required"))
    shell.store.add_task(new, questions=(asked,))
    return key


@asynccontextmanager
async def marked(shell: Shell, *ids: str) -> AsyncIterator[tuple[Pilot[None], TogetherScreen]]:
    """Mark these tasks, which ask the same, and show what they ask."""
    for id in ids:
        add(shell, id)
    async with shell.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await pilot.press(*["space"] * len(ids))
        yield pilot, await together(shell, pilot)


async def together(shell: Shell, pilot: Pilot[None]) -> TogetherScreen:
    await pilot.press("A")
    await until(pilot, lambda: isinstance(shell.app.screen, TogetherScreen) and shell.app.engine is not None)
    screen = shell.app.screen
    assert isinstance(screen, TogetherScreen)
    await until(pilot, lambda: "to be answered together" in painted(shell.app))
    screen._appearance._since = 0.0
    return screen


def withdraw(shell: Shell, gone: QuestionRecord) -> None:
    """Let a server ask this no longer."""
    writes = TaskWrites(question_changes=(QuestionChange(gone.id, "withdrawn"),))
    shell.store.change_task(gone.task, lambda _task, _questions: writes)


def answers(shell: Shell) -> dict[str, Any]:
    return {a.question.task.id: json.loads(a.response_json) for a in shell.engine.answers}


async def test_marked_tasks_get_an_answer_each_after_a_list_of_them_all(inbox: Shell) -> None:
    for id, server in (("tsk_a", "ci"), ("tsk_b", "lab"), ("tsk_c", "ci"), ("tsk_d", "ci")):
        add(inbox, id, server=server)
    async with inbox.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await pilot.press("space", "space", "space")
        assert painted(inbox.app).count("◆") == 3
        assert "answer 3 marked" in painted(inbox.app)
        screen = await together(inbox, pilot)
        shown = painted(inbox.app)
        for words in ("ci › deploy  tsk_a  approve", "lab › deploy  tsk_b", "tsk_c", "ci, lab ask"):
            assert words in shown
        assert "tsk_d" not in shown
        await pilot.press("4", "2", "tab", *"because", "ctrl+s")
        await until(pilot, lambda: "3 sent" in painted(inbox.app))
        expected = {"action": "accept", "content": {"n": 42, "why": "because"}}
        assert answers(inbox) == {"tsk_a": expected, "tsk_b": expected, "tsk_c": expected}
        assert not screen.waiting
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(inbox.app.screen, InboxScreen))
        await until(pilot, lambda: "◆" not in painted(inbox.app))
        assert "marked" not in painted(inbox.app)


@pytest.mark.parametrize(("word", "action"), [("_decline", "decline"), ("_dismiss", "cancel")])
async def test_several_are_declined_or_dismissed_likewise(inbox: Shell, word: str, action: str) -> None:
    async with marked(inbox, "tsk_a", "tsk_b") as (pilot, screen):
        getattr(screen, word).press()
        await until(pilot, lambda: "2 sent" in painted(inbox.app))
        assert answers(inbox) == {"tsk_a": {"action": action}, "tsk_b": {"action": action}}


async def test_an_invalid_form_is_sent_to_nobody(inbox: Shell) -> None:
    async with marked(inbox, "tsk_a") as (pilot, _):
        await pilot.press("x", "ctrl+s")
        await until(pilot, lambda: "Not sent" in painted(inbox.app))
        assert not inbox.engine.answers


async def test_keys_in_flight_answer_nothing(inbox: Shell) -> None:
    async with marked(inbox, "tsk_a") as (pilot, screen):
        screen._appearance = Appearance()  # not painted yet
        await pilot.press("7", "ctrl+s", "enter", "ctrl+s")
        screen._decline.press()
        await pilot.pause()
        assert "only just appeared" in painted(inbox.app)
        assert not inbox.engine.answers


async def test_a_question_that_goes_while_the_form_is_open_gets_nothing(inbox: Shell) -> None:
    keys = [add(inbox, id) for id in ("tsk_a", "tsk_b", "tsk_c")]
    async with inbox.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await pilot.press("space", "space", "space")
        screen = await together(inbox, pilot)
        withdraw(inbox, inbox.store.reader.questions(keys[1])[0])
        # The third goes without a word, in the moment of sending.
        third = inbox.store.reader.questions(keys[2])[0]
        inbox.engine.changed(keys[1])
        await until(pilot, lambda: "no longer asked" in painted(inbox.app))
        assert "Accept all 2" in painted(inbox.app)
        withdraw(inbox, third)
        await pilot.press("1", "ctrl+s")
        await until(pilot, lambda: "1 sent, 1 not sent" in painted(inbox.app))
        assert list(answers(inbox)) == ["tsk_a"]
        assert not screen.waiting


def drafts(shell: Shell) -> dict[str, str | None]:
    rows = (shell.store.reader.questions(row.key)[0] for row in shell.store.reader.list_rows())
    return {question.task.id: question.draft_json for question in rows}


async def test_what_is_typed_is_the_draft_of_the_first_and_there_again_after_leaving(inbox: Shell) -> None:
    async with marked(inbox, "tsk_a", "tsk_b") as (pilot, screen):
        first, second = (asked.question.task.id for asked in screen.asked)
        await pilot.press("4", "2", "tab", *"because")
        await until(pilot, lambda: "because" in (drafts(inbox)[first] or ""))  # nobody has left a field
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(inbox.app.screen, InboxScreen))
        assert json.loads(drafts(inbox)[first] or "") == {"n": "42", "why": "because"}
        assert drafts(inbox)[second] is None
        await together(inbox, pilot)
        assert "because" in painted(inbox.app)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "2 sent" in painted(inbox.app))
        assert {id: a["content"]["n"] for id, a in answers(inbox).items()} == {first: 42, second: 42}


async def test_the_form_beside_the_list_shows_what_was_typed_for_several(inbox: Shell) -> None:
    for id in ("tsk_a", "tsk_b"):
        add(inbox, id)
    async with inbox.app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "Deploy build" in painted(inbox.app))
        await pilot.press("space", "space")
        screen = await together(inbox, pilot)
        first = screen.asked[0].question
        await pilot.press("4", "2", "escape")
        await until(pilot, lambda: isinstance(inbox.app.screen, InboxScreen))
        await until(pilot, lambda: drafts(inbox)[first.task.id] == '{"n": "42"}')
        await pilot.press("up", "up", "a")
        await until(pilot, lambda: inbox.app.focused is not None and "42" in painted(inbox.app))
        await pilot.press("tab", "x")
        await until(
            pilot, lambda: json.loads(drafts(inbox)[first.task.id] or "{}") == {"n": "42", "why": "x"}
        )


async def test_what_was_typed_is_kept_for_those_that_could_not_be_saved(inbox: Shell) -> None:
    async with marked(inbox, "tsk_a", "tsk_b") as (pilot, screen):
        second = screen.asked[1].question
        inbox.engine.troubles[second.task] = EngineError("unreachable", "no")
        await pilot.press("4", "2", "ctrl+s")
        await until(pilot, lambda: "1 sent, 1 failed" in painted(inbox.app))
        await until(pilot, lambda: drafts(inbox)[second.task.id] == '{"n": "42"}')


@pytest.mark.parametrize("own", [None, '{"why": "my own"}'])
async def test_what_is_typed_passes_on_when_the_first_goes_and_overwrites_no_other_draft(
    inbox: Shell, own: str | None
) -> None:
    async with marked(inbox, "tsk_a", "tsk_b") as (pilot, screen):
        first, second = (asked.question for asked in screen.asked)
        if own is not None:
            inbox.store.save_draft(second.id, own)
            screen.asked[1].question = inbox.store.reader.questions(second.task)[0]
        await pilot.press("4", "2")
        withdraw(inbox, first)
        inbox.engine.changed(first.task)
        await until(pilot, lambda: "no longer asked" in painted(inbox.app))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(inbox.app.screen, InboxScreen))
        await until(pilot, lambda: drafts(inbox)[second.task.id] == (own or '{"n": "42"}'))


async def test_saved_answers_are_summed_up_apart_and_outlive_the_screen(inbox: Shell) -> None:
    for id in ("tsk_a", "tsk_b"):
        add(inbox, id)
    inbox.engine.delivery = Delivery("saved", "ci can't be reached.")
    inbox.engine.gate = asyncio.Event()
    async with inbox.app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.pause()
        await pilot.press("space", "space")
        await together(inbox, pilot)
        await pilot.press("1", "ctrl+s")
        await until(pilot, lambda: "sending…" in painted(inbox.app))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(inbox.app.screen, InboxScreen))
        inbox.engine.gate.set()
        await until(pilot, lambda: "2 saved, to be delivered" in painted(inbox.app))
        assert len(inbox.engine.answers) == 2


async def test_marks_stay_with_their_tasks_when_the_list_changes_and_go_with_their_questions(
    inbox: Shell,
) -> None:
    keys = [add(inbox, id) for id in ("tsk_a", "tsk_b", "tsk_c")]
    async with inbox.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await pilot.press("down", "space")
        assert inbox.screen.marks.keys == {keys[1]}
        inbox.store.forget(keys[0])
        inbox.engine.changed(keys[0])
        await until(pilot, lambda: inbox.listed == ["tsk_b", "tsk_c"])
        marked = [line for line in painted(inbox.app).splitlines() if "◆" in line]
        assert len(marked) == 1
        assert inbox.screen.marks.keys == {keys[1]}
        inbox.end(keys[1])
        await until(pilot, lambda: not inbox.screen.marks.keys and "◆" not in painted(inbox.app))


async def test_a_task_that_asks_something_else_is_not_marked_and_escape_clears_all(inbox: Shell) -> None:
    add(inbox, "tsk_a")
    add(inbox, "tsk_b", fingerprint="other")
    inbox.add("tsk_run")
    async with inbox.app.run_test(size=SIZE, notifications=True) as pilot:
        await pilot.pause()
        await pilot.press("A")
        await until(pilot, lambda: "Mark tasks that ask the same first" in painted(inbox.app))
        await pilot.press("space", "space")
        await until(pilot, lambda: "asks something else" in painted(inbox.app))
        assert len(inbox.screen.marks) == 1
        await pilot.press("escape")
        assert len(inbox.screen.marks) == 0


async def test_addresses_can_only_be_declined_together(inbox: Shell) -> None:
    for id in ("tsk_a", "tsk_b"):
        asked = question(
            "elicitation/create",
            {"mode": "url", "message": "Go", "url": "https://example.com/x"},
            key="go",
            fingerprint="same",
        )
        new = NewTask(TaskKey("ci", id), tool="deploy", state=TaskState(status="input_required"))
        inbox.store.add_task(new, questions=(asked,))
    async with inbox.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await pilot.press("space", "space")
        screen = await together(inbox, pilot)
        assert "https://example.com/x" in painted(inbox.app)
        assert not screen._accept.display
        await pilot.press("ctrl+s", "ctrl+o", "enter")
        assert not inbox.engine.answers
        screen._decline.press()
        await until(pilot, lambda: len(inbox.engine.answers) == 2)


async def test_hostile_words_are_only_words_and_many_tasks_leave_room_for_the_form(inbox: Shell) -> None:
    for n in range(40):
        add(inbox, f"tsk_{n:02}{HOSTILE}", server=f"ci{HOSTILE}", key=HOSTILE, message=HOSTILE * 30)
    async with inbox.app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await pilot.press(*["space"] * 40)
        screen = await together(inbox, pilot)
        shown = painted(inbox.app)
        assert not any(bad in shown for bad in ("\x1b", "\x07", "\u202e", "\x9b"))
        for words in ("Accept all 40", "Decline all 40", "Dismiss all 40", "Close", "40 questions"):
            assert words in shown
        assert screen.fields is not None
        assert inbox.app.focused in screen.fields.rows[0].query("*")
        assert isinstance(screen._close, Button)
