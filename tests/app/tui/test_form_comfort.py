"""What makes a long form comfortable: undo over its fields, a preview, a search, boxes that scroll."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.task_app import (
    KEY,
    TaskApp,
    ask,
    form,
    open_store,
    painted,
    press_calmly,
    question,
    row,
    shown,
    texts,
    until,
)
from textual import events
from textual.geometry import Size
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from app.tui.screens.task import TaskScreen
from app.tui.widgets.field_rows import UNTOUCHED, FieldRow
from app.tui.widgets.message_box import MessageBox
from app.tui.widgets.question_form import QuestionForm
from storage.store import Store

SMALL = (80, 24)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


def state(card: QuestionForm) -> dict[str, Any]:
    return card.fields.entries


KINDS: dict[str, Any] = {
    "s": {"type": "string"},
    "b": {"type": "boolean"},
    "long": {"type": "string", "maxLength": 5000},
    "many": {"type": "array", "items": {"enum": ["x", "y", "z"]}},
    "n": {"type": ["integer", "null"], "default": 7},
}


async def test_every_change_can_be_undone_and_redone_over_all_kinds_of_fields(store: Store) -> None:
    ask(store, form(KINDS))
    app = TaskApp(store)
    async with app.run_test(size=(80, 40)) as pilot:
        card = await shown(pilot)
        await pilot.press(*"hi", "tab", "space")
        row(card, "many").focus_control()
        await pilot.press("space", "down", "space")
        row(card, "n").focus_control()
        await pilot.press("ctrl+n")
        stages = [state(card)]
        assert stages[0] == {"s": "hi", "b": "true", "many": ["x", "y"], "n": None}
        for expected in (
            {"s": "hi", "b": "true", "many": ["x", "y"]},
            {"s": "hi", "b": "true", "many": ["x"]},
            {"s": "hi", "b": "true"},
            {"s": "hi"},
            {},
            {},
        ):
            await pilot.press("ctrl+z")
            assert state(card) == expected
        assert row(card, "s").state is UNTOUCHED
        assert row(card, "s").query_one(Input).value == ""
        assert row(card, "n").query_one(Input).value == "7"
        await pilot.press(*["ctrl+y"] * 6)
        assert state(card) == stages[0]
        assert app.focused in row(card, "n").query("*")


async def test_undo_in_a_text_area_goes_on_into_the_field_before_and_takes_the_draft_along(
    store: Store,
) -> None:
    ask(store, form({"s": {"type": "string"}, "l": {"type": "array", "items": {"type": "string"}}}))
    app = TaskApp(store)
    async with app.run_test(size=SMALL) as pilot:
        card = await shown(pilot)
        await pilot.press(*"one", "tab", *"two", "enter", *"three")
        assert state(card) == {"s": "one", "l": ["two", "three"]}
        await pilot.press("ctrl+z")
        assert state(card)["l"] == ["two"]
        while "l" in state(card):
            await pilot.press("ctrl+z")
        assert row(card, "l").query_one(TextArea).text == ""
        await pilot.press("ctrl+z", "x")
        assert state(card) == {"s": "x"}
        await until(pilot, lambda: bool(app.recorder.drafts) and app.recorder.drafts[-1][1] == '{"s": "x"}')


async def test_reset_is_undone_like_anything_else(store: Store) -> None:
    ask(store, form({"s": {"type": "string", "default": "d"}}))
    app = TaskApp(store)
    async with app.run_test(size=SMALL) as pilot:
        card = await shown(pilot)
        await pilot.press("x", "ctrl+r")
        assert state(card) == {}
        await pilot.press("ctrl+z")
        assert state(card) == {"s": "dx"}
        assert row(card, "s").query_one(Input).value == "dx"


@pytest.mark.rule("elicitation.reviewed-before-sent", "elicitation.no-secrets-by-form")
async def test_the_preview_says_how_many_bytes_go_and_masks_secrets(store: Store) -> None:
    ask(store, form({"password": {"type": "string"}, "who": {"type": "string"}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 40)) as pilot:
        card = await shown(pilot)
        await pilot.press(*"hunter2", "tab", *"mé", "ctrl+o")
        await until(pilot, lambda: "Accept sends exactly this" in texts(card))
        assert "hunter2" not in painted(app)
        assert '{"action": "accept", "content": {"password": "••••••", "who": "mé"}}' in texts(card)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: bool(app.recorder.answers))
        sent = app.recorder.answers[0].response_json
        assert '"hunter2"' in sent
        assert f"{len(sent.encode())} bytes" in texts(card) or not card.is_attached


async def test_one_of_five_hundred_is_found_by_typing_on_a_small_screen(store: Store) -> None:
    titled = [{"const": f"id{n}", "title": f"Region {n:03}"} for n in range(500)]
    ask(store, form({"c": {"type": "string", "oneOf": titled}}))
    app = TaskApp(store)
    async with app.run_test(size=SMALL) as pilot:
        card = await shown(pilot)
        await pilot.press(*"ION 498")
        await until(pilot, lambda: "Region 498" in painted(app) and "Region 001" not in painted(app))
        await pilot.press("enter", "enter", "ctrl+s")
        await until(pilot, lambda: bool(app.recorder.answers))
        assert '"id498"' in app.recorder.answers[0].response_json
        assert card.question.id == app.recorder.answers[0].question.id


async def test_a_long_message_scrolls_in_a_box_of_its_own(store: Store) -> None:
    message = "\n".join(f"line {n}" for n in range(200))
    ask(store, form({"s": {"type": "string"}}, message=message))
    app = TaskApp(store)
    async with app.run_test(size=SMALL) as pilot:
        card = await shown(pilot)
        box = card.query_one(MessageBox)
        assert box.size.height <= 8
        assert "Accept" in painted(app)
        await pilot.press("shift+tab")
        assert app.focused is box
        await pilot.press("end")
        await until(pilot, lambda: "line 199" in painted(app))
        assert "Accept" in painted(app)


async def test_thirty_refused_fields_on_a_small_screen_keep_the_buttons_and_show_the_first_fault(
    store: Store,
) -> None:
    fields = {f"field-{n:02}": {"type": "integer", "description": "what it is " * 8} for n in range(30)}
    ask(store, form(fields, required=tuple(fields), message="Please " * 100), status_message="busy " * 50)
    app = TaskApp(store, None)
    async with app.run_test(size=SMALL) as pilot:
        app.push_screen(TaskScreen(KEY))
        screen = await _task_screen(pilot)
        card = screen.view.cards[0]
        assert isinstance(card, QuestionForm)
        row(card, "field-20").focus_control()
        await press_calmly(pilot, "ctrl+s", lambda: bool(row(card, "field-00").error))
        assert app.focused in row(card, "field-00").query("*")
        await until(pilot, lambda: "✗" in painted(app) and "field-00" in painted(app))
        for name in ("field-07", "field-29"):
            row(card, name).focus_control()
            await until(pilot, lambda name=name: name in painted(app))  # type: ignore[misc]
            for word in ("Accept", "Decline", "Dismiss", "Show JSON", "ci asks"):
                assert word in painted(app)
        assert not app.recorder.answers


async def _task_screen(pilot: Pilot[Any]) -> TaskScreen:
    await until(
        pilot,
        lambda: (
            isinstance(pilot.app.screen, TaskScreen)
            and bool(pilot.app.screen.view.cards)
            and pilot.app.screen.view.cards[0].is_mounted
        ),
    )
    assert isinstance(pilot.app.screen, TaskScreen)
    return pilot.app.screen


async def test_tab_goes_through_the_fields_in_their_order_and_then_to_the_buttons(store: Store) -> None:
    ask(store, form(KINDS))
    app = TaskApp(store)
    async with app.run_test(size=(80, 40)) as pilot:
        card = await shown(pilot)
        met: list[str] = []
        for _ in range(7):
            focused = app.focused
            assert focused is not None
            over = [r.field.name for r in card.fields.rows if r in focused.ancestors]
            met.append(over[0] if over else str(getattr(focused, "label", "?")))
            await pilot.press("tab")
        assert met == [*KINDS, "Accept ^S", "Decline"]


async def test_a_warning_is_said_once_however_often_the_form_is_judged(store: Store) -> None:
    ask(store, form({"password": {"type": "string"}, "d": {"type": "integer", "default": "x"}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 40)) as pilot:
        card = await shown(pilot)
        before = texts(row(card, "password"))
        assert "asks for a secret" in before
        await pilot.press("ctrl+s", "ctrl+s")
        await until(pilot, lambda: bool(row(card, "d").error))
        assert texts(row(card, "password")) == before
        assert texts(row(card, "d")).count("not valid here") == 1
        assert "its own schema" not in texts(row(card, "d"))


CONSTANTS = {f"fixed_{n}": {"const": f"value {n}"} for n in range(40)}
LONG = {
    "address": question(
        "elicitation/create",
        {"mode": "url", "message": "Go", "url": "https://example.com/Ψ" + "x" * 4000 + "Ω"},
    ),
    "constants": form({"a": {"const": "Ψ"}, **CONSTANTS, "z": {"const": "Ω"}}),
    "unknown": question("nobody/knows", {"a": "Ψ", **{f"b{n}": n for n in range(60)}, "z": "Ω"}, key="k"),
}


async def test_a_box_that_is_resized_before_the_focus_comes_does_not_send_it_away(store: Store) -> None:
    ask(store, LONG["unknown"], question("elicitation/create", {"message": "Go?", "mode": "form"}, key="go"))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(app.view.cards) == 2 and all(c.is_mounted for c in app.view.cards))
        box = app.view.cards[1].query_one(MessageBox)
        box.enter()
        box.on_resize(events.Resize(Size(10, 1), Size(10, 1)))
        await until(pilot, lambda: app.focused is box)


@pytest.mark.parametrize("kind", LONG)
async def test_all_of_a_long_question_is_read_by_keys_alone(store: Store, kind: str) -> None:
    ask(store, LONG[kind])
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(app.view.cards) == 1 and app.view.cards[0].is_mounted)
        app.view.focus_question()
        await pilot.pause()
        for key, end in (("pagedown", "Ω"), ("pageup", "Ψ"), ("pagedown", "Ω")):
            for _ in range(40):
                if end in painted(app):
                    break
                await pilot.press(key)
            assert end in painted(app), (key, painted(app))
        assert not app.recorder.answers


MANY = {f"field_{n}": {"type": "boolean", "default": True} for n in range(30)}


@pytest.mark.parametrize("size", [(80, 24), (60, 40)])
async def test_nothing_is_accepted_before_the_fields_have_been_on_the_screen(
    store: Store, size: tuple[int, int]
) -> None:
    ask(store, form(MANY, message="Long words. " * 60))
    app = TaskApp(store)
    async with app.run_test(size=size) as pilot:
        for _ in range(1000):
            for card in app.view.cards:
                rows = list(card.query(FieldRow))
                are_there = len(rows) == 30 and all(row.size.height for row in rows)
                card.action_accept()  # the clock has gone on by seconds since the last time
                if card.phase != "asking":
                    assert are_there
                    return
            await pilot.pause()
        raise AssertionError("never accepted")


async def test_a_question_out_of_sight_is_shown_first_and_answered_only_then(store: Store) -> None:
    sure = {"sure": {"type": "boolean", "default": True}}
    ask(
        store,
        form(sure, key="a", message="DELETE the production database?"),
        form({**sure, **MANY}, key="b", message="Second?"),
        form(sure, key="c", message="Third: is this fine?"),
    )
    app = TaskApp(store)
    async with app.run_test(size=SMALL) as pilot:
        await until(pilot, lambda: len(app.view.cards) == 3 and all(c.is_mounted for c in app.view.cards))
        app.view.focus_question()
        await pilot.pause()
        app.view.query_one("Overview").scroll_end(animate=False)
        await until(pilot, lambda: "DELETE" not in painted(app) and "Third" in painted(app))
        await pilot.press("ctrl+s")
        assert not app.recorder.answers
        await until(pilot, lambda: "DELETE" in painted(app) and "in sight" in painted(app))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: [a.question.key for a in app.recorder.answers] == ["a"])
