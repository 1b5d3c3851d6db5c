"""Several questions of one task, accepted together: one update, after a list of exactly what it holds."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fakes.task_app import KEY, TaskApp, ask, form, open_store, painted, question, until
from textual.pilot import Pilot
from textual.widgets import Button

from app.engine.commands import Delivery, EngineError
from app.tui.widgets.all_at_once import AllAtOnce
from app.tui.widgets.question_form import QuestionForm
from storage.records import QuestionChange, TaskWrites
from storage.store import Store

SURE = {"sure": {"type": "boolean", "default": True}}
NAME = {"name": {"type": "string", "minLength": 2}}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


@asynccontextmanager
async def running(store: Store, cards: int, **more: Any) -> AsyncIterator[tuple[Pilot[None], TaskApp]]:
    app = TaskApp(store, **more)
    async with app.run_test(size=(100, 60)) as pilot:
        await until(pilot, lambda: len(app.view.cards) == cards and all(c.is_mounted for c in app.view.cards))
        yield pilot, app


def all_of(app: TaskApp) -> AllAtOnce:
    return app.view.query_one(AllAtOnce)


async def press(pilot: Pilot[None], app: TaskApp, words: str) -> None:
    """Press the button of *words* as a person does."""
    (button,) = [b for b in all_of(app).query(Button) if words in str(b.label) and b.display]
    button.focus()
    await pilot.press("enter")
    await pilot.pause()


def form_of(app: TaskApp, key: str) -> QuestionForm:
    (card,) = [c for c in app.view.cards if c.question.key == key]
    assert isinstance(card, QuestionForm)
    return card


def three(store: Store) -> None:
    ask(
        store,
        form(SURE, key="a", message="Delete it?"),
        form(NAME, key="b", message="Who?", required=("name",)),
        question("elicitation/create", {"mode": "url", "message": "Go", "url": "https://a.example"}, key="c"),
    )


async def test_two_forms_are_listed_and_go_out_in_one_update(store: Store) -> None:
    three(store)
    async with running(store, 3) as (pilot, app):
        sent: list[int] = []
        answer = app.recorder.answer

        async def counted(task: Any, answers: Any) -> Delivery:
            sent.append(len(answers))
            return await answer(task, answers)

        app.recorder.answer = counted  # type: ignore[method-assign]
        form_of(app, "b").focus_form()
        await pilot.press(*"Ada")
        await press(pilot, app, "Accept all 2 in one update")
        await until(pilot, lambda: "2 answers in one update" in painted(app))
        shown = painted(app)
        for words in ("Delete it?", "Who?", '"content": {"sure": true}}', '"content": {"name": "Ada"}}'):
            assert words in shown
        assert not app.recorder.answers
        await press(pilot, app, "Send all 2")
        await until(pilot, lambda: len(app.recorder.answers) == 2)
        assert sent == [2], "one update"
        given = {a.question.key: json.loads(a.response_json) for a in app.recorder.answers}
        assert given == {
            "a": {"action": "accept", "content": {"sure": True}},
            "b": {"action": "accept", "content": {"name": "Ada"}},
        }
        await until(pilot, lambda: [c.question.key for c in app.view.cards] == ["c"])
        assert not all_of(app).has_class("offered")


async def test_an_invalid_form_sends_nothing_of_any(store: Store) -> None:
    three(store)
    async with running(store, 3) as (pilot, app):
        await press(pilot, app, "Accept all 2")
        await until(pilot, lambda: "b is not valid yet" in painted(app) and "required" in painted(app))
        assert not app.recorder.answers
        assert not all_of(app).has_class("asked")


async def test_what_is_typed_behind_the_list_is_listed_again_before_it_goes(store: Store) -> None:
    ask(store, form(SURE, key="a"), form({"n": {"type": "integer"}}, key="b"))
    async with running(store, 2) as (pilot, app):
        await press(pilot, app, "Accept all 2")
        form_of(app, "b").focus_form()
        await pilot.press("7")
        await press(pilot, app, "Send all 2")
        await until(pilot, lambda: "look at the list again" in painted(app) and '"n": 7' in painted(app))
        assert not app.recorder.answers
        await press(pilot, app, "Not now")
        assert "in one update:" not in painted(app)
        assert not app.recorder.answers


async def test_a_question_that_goes_meanwhile_takes_the_list_away(store: Store) -> None:
    ask(store, form(SURE, key="a"), form(SURE, key="b"), form(SURE, key="c"))
    async with running(store, 3) as (pilot, app):
        await press(pilot, app, "Accept all 3")
        gone = store.reader.questions(KEY)[0]
        writes = TaskWrites(question_changes=(QuestionChange(gone.id, "withdrawn"),))
        store.change_task(KEY, lambda _task, _questions: writes)
        app.view.refresh_task()
        await until(pilot, lambda: "The questions have changed" in painted(app))
        assert "Accept all 2 in one update" in painted(app)
        assert not app.recorder.answers


async def test_what_is_pressed_as_the_list_appears_sends_nothing(store: Store) -> None:
    ask(store, form(SURE, key="a"), form(SURE, key="b"))
    async with running(store, 2) as (pilot, app):
        app.moving.step = 0.0
        await press(pilot, app, "Accept all 2")
        await press(pilot, app, "Send all 2")
        assert "only just appeared" in painted(app)
        assert not app.recorder.answers


@pytest.mark.parametrize("failure", ["unreachable", "closed"])
async def test_where_nothing_could_be_saved_every_form_is_there_again(store: Store, failure: Any) -> None:
    ask(store, form(SURE, key="a"), form(SURE, key="b"))
    async with running(store, 2) as (pilot, app):
        app.recorder.trouble = EngineError(failure, "It did not work.")
        await press(pilot, app, "Accept all 2")
        await press(pilot, app, "Send all 2")
        await until(pilot, lambda: painted(app).count("It did not work.") == 2)
        assert [card.phase for card in app.view.cards] == ["asking", "asking"]


async def test_one_form_alone_has_no_such_offer(store: Store) -> None:
    ask(store, form(SURE, key="a"))
    async with running(store, 1) as (_, app):
        assert "in one update" not in painted(app)
