"""Saved replies fill in a form: the same question of another task, with the same words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.task_app import KEY, TaskApp, ask, form, open_store, painted, row, shown, texts, until
from textual.pilot import Pilot
from textual.widgets import Button, Input

from app.engine.commands import EngineError
from app.tui.screens.replies import RepliesScreen
from storage.records import QuestionRecord, TaskKey
from storage.store import Store

HOSTILE = "[/foo] \x1b[31mred\x1b]52;c;ZXZpbA==\x07 \u202eabc"
OTHER = TaskKey("lab", "tsk_other")
FIELDS: dict[str, Any] = {
    "s": {"type": "string"},
    "b": {"type": "boolean"},
    "n": {"type": ["integer", "null"]},
    "password": {"type": "string"},
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


async def replies(pilot: Pilot[Any]) -> RepliesScreen:
    await pilot.press("ctrl+l")
    await until(pilot, lambda: isinstance(pilot.app.screen, RepliesScreen) and pilot.app.focused is not None)
    screen = pilot.app.screen
    assert isinstance(screen, RepliesScreen)
    return screen


def button(screen: RepliesScreen, label: str) -> Button:
    return next(one for one in screen.query(Button) if str(one.label) == label)


async def test_what_is_typed_is_saved_but_for_secrets_and_fills_the_same_question_of_another_task(
    store: Store,
) -> None:
    ask(store, form(FIELDS, fingerprint="same"))
    ask(store, form(FIELDS, fingerprint="same", key="again"), key=OTHER)
    app = TaskApp(store)
    async with app.run_test(size=(80, 30)) as pilot:
        card = await shown(pilot)
        await pilot.press(*"as usual", "tab", "space", "tab", "ctrl+n", "tab", *"hunter2")
        await replies(pilot)
        assert "No reply to this question is saved yet" in painted(app)
        await pilot.press(*"the usual", "enter", "enter")
        await until(pilot, lambda: "the usual" in painted(app) and "only fill in the form" in painted(app))
        (saved,) = store.reader.replies("same")
        assert json.loads(saved.draft_json) == {"s": "as usual", "b": "true", "n": None}
        await pilot.press("escape")
        assert not app.recorder.answers
        app.view.show(OTHER)
        await until(pilot, lambda: bool(app.view.cards) and app.view.cards[0] is not card)
        card = await shown(pilot)
        row(card, "s").focus_control()
        await pilot.press("x")
        await replies(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: card.fields.entries == {"s": "as usual", "b": "true", "n": None})
        assert row(card, "s").query_one(Input).value == "as usual"
        assert not app.recorder.answers
        await until(
            pilot, lambda: bool(app.recorder.drafts) and '"as usual"' in (app.recorder.drafts[-1][1] or "")
        )
        await pilot.press("ctrl+z", "ctrl+z", "ctrl+z")
        assert card.fields.entries == {"s": "x"}


async def test_a_saved_reply_is_deleted_and_nothing_is_filled_in_by_leaving(store: Store) -> None:
    ask(store, form(FIELDS, fingerprint="same"))
    store.save_reply("same", "old", '{"s": "text"}')
    store.save_reply("other", "not for this", '{"s": "text"}')
    app = TaskApp(store)
    async with app.run_test(size=(80, 30)) as pilot:
        card = await shown(pilot)
        screen = await replies(pilot)
        assert "not for this" not in painted(app)
        await pilot.press("escape")
        assert card.fields.entries == {}
        screen = await replies(pilot)
        button(screen, "Delete").press()
        await until(pilot, lambda: "No reply to this question" in painted(app))
        assert store.reader.replies("same") == []
        assert app.focused is button(screen, "Back")


async def test_without_a_name_or_against_the_engines_word_nothing_is_saved(store: Store) -> None:
    ask(store, form(FIELDS, fingerprint="same"))
    app = TaskApp(store)

    async def refuse(question: QuestionRecord, name: str, draft_json: str) -> None:
        raise EngineError("invalid", f"There is nothing to keep {HOSTILE}")

    async with app.run_test(size=(80, 30)) as pilot:
        await shown(pilot)
        await pilot.press("x")
        screen = await replies(pilot)
        await pilot.press("enter", "enter")
        await until(pilot, lambda: "A name is needed" in painted(app))
        app.recorder.save_reply = refuse  # type: ignore[method-assign]
        await pilot.press("n", "enter", "enter")
        await until(pilot, lambda: "nothing to keep" in painted(app))
        app.engine = None
        button(screen, "Save what is typed").press()
        await until(pilot, lambda: "Still connecting" in painted(app))
        assert not any(bad in painted(app) for bad in ("\x1b", "\x07", "\u202e"))


async def test_names_and_texts_that_are_hostile_are_only_text(store: Store) -> None:
    ask(store, form({"s": {"type": "string"}}, fingerprint="same"))
    store.save_reply("same", HOSTILE, json.dumps({"s": HOSTILE, "unknown": 3, "b": {"x": 1}}))
    store.save_reply("same", "broken", "{")
    app = TaskApp(store)
    async with app.run_test(size=(80, 30)) as pilot:
        await shown(pilot)
        for place in (0, 1):
            await replies(pilot)
            assert not any(bad in painted(app) for bad in ("\x1b", "\x07", "\u202e"))
            await pilot.press(*["down"] * place, "enter")
            await until(pilot, lambda: not isinstance(app.screen, RepliesScreen))
            assert not any(bad in painted(app) for bad in ("\x1b", "\x07", "\u202e"))
        assert not app.recorder.answers


async def test_every_button_stands_in_the_narrow_pane(store: Store) -> None:
    ask(store, form(FIELDS))
    app = TaskApp(store, KEY)
    async with app.run_test(size=(59, 40)) as pilot:
        card = await shown(pilot)
        for word in ("Accept ^S", "Decline", "Dismiss", "Show JSON", "Replies…"):
            assert word in painted(app)
        card.query_one(".buttons").query("Button")[4].press()  # type: ignore[attr-defined]
        await until(pilot, lambda: isinstance(app.screen, RepliesScreen))
        assert "Fill in the form" in texts(app.screen)
