"""A question in form mode: what is typed is what is sent, and only when a person means it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.task_app import KEY, TaskApp, ask, change, form, open_store, painted, question, texts, until
from textual import events
from textual.pilot import Pilot
from textual.widgets import Button, Input, TextArea

from app.engine.commands import Delivery, EngineError
from app.tui.widgets.controls import InlineChoice, PickList
from app.tui.widgets.field_rows import UNTOUCHED, FieldRow
from app.tui.widgets.question_form import QuestionForm
from storage.records import QuestionChange
from storage.store import Store

HOSTILE = "[/foo] \x1b[31mred\x1b]52;c;ZXZpbA==\x07 \u202eabc [@click=app.quit]x[/]"
DANGEROUS = ("\x1b", "\x07", "\u202e", "\x9b")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


async def shown(pilot: Pilot[Any], count: int = 1) -> QuestionForm:
    app = pilot.app
    assert isinstance(app, TaskApp)
    await until(pilot, lambda: len(app.view.cards) == count and all(c.is_mounted for c in app.view.cards))
    card = app.view.cards[0]
    assert isinstance(card, QuestionForm)
    return card


def row(card: QuestionForm, name: str) -> FieldRow:
    return next(row for row in card.fields.rows if row.field.name == name)


def sent(app: TaskApp) -> list[Any]:
    return [json.loads(answer.response_json) for answer in app.recorder.answers]


async def press_button(pilot: Pilot[Any], card: QuestionForm, kind: str) -> None:
    card.query_one(f".{kind}", Button).press()
    await pilot.pause()


async def test_what_is_typed_is_sent_when_ctrl_s_is_pressed(store: Store) -> None:
    ask(store, form({"n": {"type": "integer", "minimum": 1}, "s": {"type": "string"}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        assert app.view.focus_question()
        await pilot.press("4", "2", "enter", "h", "i", "ctrl+s")
        await until(pilot, lambda: bool(app.recorder.answers))
        assert sent(app) == [{"action": "accept", "content": {"n": 42, "s": "hi"}}]
        await until(pilot, lambda: not app.view.cards)
        assert "the server has it" in texts(app.view)


@pytest.mark.rule("elicitation.decline-and-cancel", "tasks.input-as-standalone")
@pytest.mark.parametrize(
    ("kind", "action"), [("accept", "accept"), ("decline", "decline"), ("dismiss", "cancel")]
)
async def test_three_buttons_give_three_different_answers(store: Store, kind: str, action: str) -> None:
    ask(store, form({"s": {"type": "string"}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        await press_button(pilot, card, kind)
        await until(pilot, lambda: bool(app.recorder.answers))
        assert sent(app)[0]["action"] == action
        assert ("content" in sent(app)[0]) == (action == "accept")


@pytest.mark.rule("elicitation.decline-any-time")
async def test_each_button_answers_a_real_click(store: Store) -> None:
    ask(store, form({"s": {"type": "string"}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        await pilot.click(card.query_one(".decline", Button))
        await until(pilot, lambda: bool(app.recorder.answers))
        assert sent(app) == [{"action": "decline"}]


@pytest.mark.rule("elicitation.responses-validated")
async def test_an_invalid_form_is_not_sent_and_its_first_bad_field_has_the_focus(store: Store) -> None:
    ask(
        store,
        form({"s": {"type": "string"}, "n": {"type": "integer"}, "m": {"type": "integer"}}, required=("m",)),
    )
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        row(card, "n").focus_control()
        await pilot.press("x")
        row(card, "s").focus_control()
        await pilot.press("ctrl+s")
        await until(pilot, lambda: bool(row(card, "n").error))
        assert row(card, "m").error
        assert not row(card, "s").error
        assert app.focused is row(card, "n").query_one(Input)
        assert not app.recorder.answers
        await pilot.press("backspace", "7")
        await until(pilot, lambda: not row(card, "n").error)


@pytest.mark.rule("elicitation.approval")
async def test_an_answer_can_not_be_given_by_a_key_in_flight_when_the_form_appears(store: Store) -> None:
    ask(store, form({}))
    app = TaskApp(store)
    app.moving.step = 0.0
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        app.view.focus_question()
        await pilot.press("ctrl+s", "enter", "space")
        card.query_one(".decline", Button).press()
        await pilot.pause()
        assert not app.recorder.answers
        assert card.phase == "asking"
        assert "only just appeared" in texts(card)
        app.moving.now += 1.0
        await pilot.press("ctrl+s")
        await until(pilot, lambda: bool(app.recorder.answers))


@pytest.mark.rule("elicitation.approval")
async def test_enter_alone_never_accepts_however_often_it_is_pressed(store: Store) -> None:
    ask(store, form({"a": {"type": "string"}, "b": {"type": "string"}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        app.view.focus_question()
        await pilot.press(*["enter"] * 8)
        assert not app.recorder.answers


@pytest.mark.rule("elicitation.defaults-filled-in", "wire.content-as-asked")
async def test_untouched_cleared_null_and_default_stay_four_things(store: Store) -> None:
    nullable = {"type": ["string", "null"], "default": "d"}
    ask(
        store,
        form(dict.fromkeys(("left", "cleared", "nulled", "reset"), nullable), required=("cleared",)),
    )
    app = TaskApp(store)
    async with app.run_test(size=(100, 40)) as pilot:
        card = await shown(pilot)
        assert "default" in texts(row(card, "left"))
        row(card, "cleared").focus_control()
        await pilot.press("backspace")
        assert row(card, "cleared").state == ""
        assert "‹empty›" in texts(row(card, "cleared"))
        row(card, "nulled").focus_control()
        await pilot.press("ctrl+n")
        assert row(card, "nulled").state is None
        assert "‹null›" in texts(row(card, "nulled"))
        row(card, "reset").focus_control()
        await pilot.press("x", "ctrl+r")
        assert row(card, "reset").state is UNTOUCHED
        assert row(card, "reset").query_one(Input).value == "d"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: bool(app.recorder.answers))
        assert sent(app)[0]["content"] == {"left": "d", "cleared": None, "nulled": None, "reset": "d"}


async def test_a_yes_or_no_that_nobody_gave_is_not_answered(store: Store) -> None:
    ask(store, form({"ok": {"type": "boolean"}, "sure": {"type": "boolean"}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        choice = row(card, "sure").query_one(InlineChoice)
        assert choice.chosen is None
        choice.focus()
        await pilot.press("right", "space")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: bool(app.recorder.answers))
        assert sent(app)[0]["content"] == {"sure": False}


async def test_choices_that_look_alike_are_told_apart_by_their_place(store: Store) -> None:
    ask(store, form({"v": {"enum": ["1", 1, True, "true", None]}}))
    app = TaskApp(store)
    async with app.run_test(size=(100, 30)) as pilot:
        card = await shown(pilot)
        picker = row(card, "v").query(InlineChoice).first() if row(card, "v").query(InlineChoice) else None
        control = picker or row(card, "v").query_one(PickList)
        labels = control.labels
        control.focus()
        await pilot.press(*(["down"] if isinstance(control, PickList) else ["right"]) * 1, "enter", "ctrl+s")
        await until(pilot, lambda: bool(app.recorder.answers))
        value = sent(app)[0]["content"]["v"]
        assert value == 1
        assert not isinstance(value, bool)
        assert len(labels) >= 4


async def test_several_choices_are_picked_by_space_and_sent_in_the_schemas_order(store: Store) -> None:
    items = {
        "anyOf": [{"const": c, "title": t} for c, t in (("#f00", "Red"), ("#0f0", "Green"), ("#00f", "Blue"))]
    }
    ask(store, form({"c": {"type": "array", "items": items, "minItems": 1}}, required=("c",)))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        row(card, "c").focus_control()
        await pilot.press("end", "space", "home", "space", "ctrl+s")
        await until(pilot, lambda: bool(app.recorder.answers))
        assert sent(app)[0]["content"] == {"c": ["#f00", "#00f"]}


async def test_many_choices_are_found_by_typing(store: Store) -> None:
    ask(store, form({"c": {"type": "string", "enum": [f"region-{n}" for n in range(300)]}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        row(card, "c").focus_control()
        await pilot.press(*"n-271", "enter", "down", "enter", "ctrl+s")
        await until(pilot, lambda: bool(app.recorder.answers))
        assert sent(app)[0]["content"] == {"c": "region-271"}


async def test_a_list_takes_one_text_a_line_and_a_pasted_block(store: Store) -> None:
    ask(store, form({"tags": {"type": "array", "items": {"type": "string"}}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        row(card, "tags").focus_control()
        app.focused.post_message(events.Paste("one\r\ntwo\rthree"))  # type: ignore[union-attr]
        await until(pilot, lambda: row(card, "tags").state == ["one", "two", "three"])
        await pilot.press("ctrl+s")
        await until(pilot, lambda: bool(app.recorder.answers))
        assert sent(app)[0]["content"] == {"tags": ["one", "two", "three"]}


async def test_a_paste_of_several_lines_keeps_them_all(store: Store) -> None:
    ask(store, form({"s": {"type": "string"}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        app.view.focus_question()
        await pilot.press("a")
        app.focused.post_message(events.Paste("first\nsecond\n"))  # type: ignore[union-attr]
        await until(pilot, lambda: bool(card.query(TextArea)))
        await pilot.press("!")
        await until(pilot, lambda: row(card, "s").state == "afirst\nsecond\n!")


async def test_what_is_pasted_can_not_reach_the_terminal_as_a_control_sequence(store: Store) -> None:
    ask(store, form({"s": {"type": "string"}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        app.view.focus_question()
        app.focused.post_message(events.Paste(HOSTILE))  # type: ignore[union-attr]
        await until(pilot, lambda: row(card, "s").state is not UNTOUCHED)
        assert not any(bad in painted(app) for bad in DANGEROUS)


@pytest.mark.rule("elicitation.url-not-clickable-elsewhere", "tasks.input-not-trusted-more")
async def test_hostile_strings_are_shown_as_text_everywhere_in_a_form(store: Store) -> None:
    properties = {
        HOSTILE: {"type": "string", "title": HOSTILE, "description": HOSTILE, "default": HOSTILE},
        "e": {
            "type": "string",
            "oneOf": [{"const": HOSTILE, "title": HOSTILE}, {"const": "b", "title": "b"}],
        },
        "m": {"type": "array", "items": {"enum": [HOSTILE, "x"]}},
        "c": {"const": HOSTILE},
        "p": {"type": "string", "pattern": HOSTILE},
        "j": {"type": "object", "title": HOSTILE},
        "bad": {"type": HOSTILE, "format": HOSTILE, "minimum": HOSTILE},
    }
    ask(
        store,
        form(properties, key=HOSTILE, message=HOSTILE * 3, required=(HOSTILE,), fault=HOSTILE),
        status_message=HOSTILE,
        problem=HOSTILE,
    )
    app = TaskApp(store)
    async with app.run_test(size=(100, 60)) as pilot:
        card = await shown(pilot)
        await pilot.press("tab")
        card.action_accept()
        card.action_show_json()
        await pilot.pause()
        assert app.is_running
        assert "[/foo]" in painted(app)
        assert not any(bad in painted(app) for bad in DANGEROUS)
        for pane in ("timeline", "raw"):
            app.view.action_pane(pane)
            await pilot.pause()
            assert not any(bad in painted(app) for bad in DANGEROUS)


async def test_a_default_with_control_characters_is_marked_and_not_put_into_the_control(store: Store) -> None:
    ask(store, form({"s": {"type": "string", "default": "a\x1b[31mb"}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        assert row(card, "s").query_one(Input).value == ""
        assert "!" in texts(row(card, "s"))


@pytest.mark.rule("elicitation.no-secrets-by-form")
async def test_a_secret_is_masked_warned_about_and_kept_out_of_drafts(store: Store) -> None:
    ask(store, form({"password": {"type": "string"}, "user": {"type": "string"}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        assert "!" in texts(row(card, "password"))
        row(card, "password").focus_control()
        await pilot.press(*"hunter2")
        assert "hunter2" not in painted(app)
        row(card, "user").focus_control()
        await pilot.press("m", "e")
        await until(
            pilot, lambda: bool(app.recorder.drafts) and app.recorder.drafts[-1][1] == '{"user": "me"}'
        )
        assert all("hunter2" not in (draft or "") for _, draft in app.recorder.drafts)


async def test_a_draft_is_saved_while_typing_and_is_there_when_the_task_is_opened_again(store: Store) -> None:
    fields: dict[str, Any] = {
        "s": {"type": "string"},
        "b": {"type": "boolean"},
        "c": {"enum": ["x", "y"]},
        "n": {"type": ["integer", "null"]},
    }
    ask(store, form(fields))
    app = TaskApp(store)
    async with app.run_test(size=(100, 40)) as pilot:
        card = await shown(pilot)
        row(card, "s").focus_control()
        await pilot.press(*"half", "tab", "space", "tab", "space", "tab", "ctrl+n")
        await until(pilot, lambda: row(card, "n").state is None)
        await until(
            pilot, lambda: bool(app.recorder.drafts) and '"n": null' in (app.recorder.drafts[-1][1] or "")
        )
    again = TaskApp(store)
    async with again.run_test(size=(100, 40)) as pilot:
        card = await shown(pilot)
        assert card.fields.entries == {"s": "half", "b": "true", "c": "x", "n": None}
        assert row(card, "s").query_one(Input).value == "half"


async def test_typing_before_the_engine_is_there_is_kept_and_saved_once_it_is(store: Store) -> None:
    ask(store, form({"s": {"type": "string"}}))
    app = TaskApp(store, connected=False)
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        app.view.focus_question()
        await pilot.press("h", "i", "ctrl+s")
        assert "Still connecting" in texts(card)
        assert card.phase == "asking"
        app.engine = app.recorder
        await until(pilot, lambda: bool(app.recorder.drafts))
        assert json.loads(app.recorder.drafts[-1][1] or "") == {"s": "hi"}


async def test_leaving_the_program_saves_what_was_just_typed(store: Store) -> None:
    ask(store, form({"s": {"type": "string"}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        await shown(pilot)
        app.view.focus_question()
        await pilot.press(*"last")
    found = store.reader.questions(KEY)[0]
    assert json.loads(found.draft_json or "") == {"s": "last"}


@pytest.mark.rule("elicitation.reviewed-before-sent")
async def test_show_json_shows_the_very_text_that_is_sent(store: Store) -> None:
    ask(store, form({"n": {"type": "number"}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        app.view.focus_question()
        await pilot.press(*"0.10", "ctrl+o")
        await until(pilot, lambda: "accept" in texts(card))
        preview = next(line for line in texts(card).splitlines() if line.startswith('{"action"'))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: bool(app.recorder.answers))
        assert app.recorder.answers[0].response_json == preview


async def test_a_question_that_vanishes_under_the_fingers_says_so_and_sends_nothing(store: Store) -> None:
    ask(store, form({"s": {"type": "string"}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        app.view.focus_question()
        await pilot.press(*"kept")
        change(store, question_changes=(QuestionChange(card.question.id, "withdrawn"),))
        app.view.refresh_task()
        await pilot.press("x", "ctrl+s", "enter")
        assert card.phase == "gone"
        assert "no longer asks" in texts(card)
        assert card.query_one(Input).value == "kept"
        assert app.focused is card.query_one(Input)
        assert card.query_one(".accept", Button).disabled
        assert not app.recorder.answers
        card.query_one(".close", Button).press()
        await until(pilot, lambda: not app.view.cards)


async def test_a_question_asked_anew_with_other_content_is_another_card(store: Store) -> None:
    ask(store, form({"s": {"type": "string"}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 40)) as pilot:
        card = await shown(pilot)
        app.view.focus_question()
        await pilot.press(*"old")
        new = form({"s": {"type": "integer"}}, message="Other?", fault="the key was used before")
        change(
            store,
            question_changes=(QuestionChange(card.question.id, "withdrawn"),),
            new_questions=(new,),
        )
        app.view.refresh_task()
        await shown(pilot, 2)
        first, second = app.view.cards
        assert first is card
        assert first.phase == "gone"
        assert isinstance(second, QuestionForm)
        assert second.fields.entries == {}
        assert "the key was used before" in texts(second)


async def test_a_refresh_keeps_text_focus_and_cursor(store: Store) -> None:
    ask(store, form({"a": {"type": "string"}, "b": {"type": "string"}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        row(card, "b").focus_control()
        await pilot.press(*"abc", "left")
        focused = app.focused
        for n in range(5):
            change(store, new_questions=(form({}, key=f"later-{n}", message="More?"),))
            app.view.refresh_task()
            await pilot.pause()
        assert app.focused is focused
        assert isinstance(focused, Input)
        assert (focused.value, focused.cursor_position) == ("abc", 2)
        assert len(app.view.cards) == 6


@pytest.mark.rule("wire.refused-answers")
async def test_a_refused_answer_is_asked_again_with_what_was_typed_and_the_reason(store: Store) -> None:
    ask(store, form({"n": {"type": "integer"}}))
    app = TaskApp(store)
    app.recorder.delivery = Delivery("refused", "n is too small")
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        app.view.focus_question()
        await pilot.press("3", "ctrl+s")
        await until(pilot, lambda: bool(app.recorder.answers) and card.phase == "asking")
        assert "n is too small" in texts(card)
        assert row(card, "n").query_one(Input).value == "3"
        app.recorder.delivery = Delivery("acknowledged")
        await pilot.press("4", "ctrl+s")
        await until(pilot, lambda: len(app.recorder.answers) == 2)
        assert sent(app)[1]["content"] == {"n": 34}
    again = TaskApp(store)
    async with again.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: again.view.record is not None)
        assert not again.view.cards


async def test_a_refused_answer_is_filled_in_again_after_a_restart(store: Store) -> None:
    ask(store, form({"n": {"type": "integer"}, "ok": {"type": "boolean"}}))
    app = TaskApp(store)
    app.recorder.delivery = Delivery("refused", "not today")
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        app.view.focus_question()
        await pilot.press("3", "tab", "space", "ctrl+s")
        await until(pilot, lambda: bool(app.recorder.answers) and card.phase == "asking")
    again = TaskApp(store)
    async with again.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        assert card.fields.entries == {"n": "3", "ok": "true"}
        assert "not today" in texts(card)


async def test_an_answer_outlives_the_card_it_was_given_in(store: Store) -> None:
    import asyncio

    ask(store, form({"s": {"type": "string"}}))
    app = TaskApp(store)
    app.recorder.gate = asyncio.Event()
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        await press_button(pilot, card, "accept")
        assert card.query_one(".accept", Button).disabled
        assert "sending" in texts(card)
        app.view.show(None)
        await pilot.pause()
        app.recorder.gate.set()
        await until(pilot, lambda: bool(app.recorder.answers))


async def test_a_failure_to_save_an_answer_leaves_the_form_open_with_the_reason(store: Store) -> None:
    ask(store, form({"s": {"type": "string"}}))
    app = TaskApp(store)
    app.recorder.trouble = EngineError("sign-in", f"{HOSTILE} sign in first")
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        app.view.focus_question()
        await pilot.press("x", "ctrl+s")
        await until(pilot, lambda: "sign in first" in texts(card))
        assert card.phase == "asking"
        assert not card.query_one(".accept", Button).disabled
        assert row(card, "s").query_one(Input).value == "x"
        assert not any(bad in painted(app) for bad in DANGEROUS)


async def test_each_of_several_questions_is_answered_alone(store: Store) -> None:
    ask(store, form({"s": {"type": "string"}}, key="one"), form({}, key="two", message="And this?"))
    app = TaskApp(store)
    async with app.run_test(size=(80, 40)) as pilot:
        await shown(pilot, 2)
        second = app.view.cards[1]
        second.query_one(".decline", Button).press()
        await until(pilot, lambda: bool(app.recorder.answers))
        assert [answer.question.key for answer in app.recorder.answers] == ["two"]
        await until(pilot, lambda: len(app.view.cards) == 1)
        assert app.view.cards[0].question.key == "one"
        assert app.view.cards[0].phase == "asking"


async def test_thirty_fields_on_a_small_screen_scroll_with_the_buttons_in_reach(store: Store) -> None:
    ask(store, form({f"field-{n}": {"type": "string"} for n in range(30)}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        app.view.focus_question()
        for name in ("field-0", "field-15", "field-29"):
            row(card, name).focus_control()
            await pilot.pause(0.4)
            drawn = painted(app)
            assert "Accept" in drawn
            assert name in drawn


@pytest.mark.rule("elicitation.form-has-schema")
async def test_a_schema_that_is_refused_becomes_one_box_for_json(store: Store) -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    ask(store, question("elicitation/create", {"message": "m", "requestedSchema": schema}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        area = card.query_one(TextArea)
        area.focus()
        await pilot.press("[", "]", "ctrl+s")
        await pilot.pause()
        assert not app.recorder.answers
        area.text = '{"a": 1.10, "b": [true]}'
        await pilot.press("ctrl+s")
        await until(pilot, lambda: bool(app.recorder.answers))
        assert sent(app)[0] == {"action": "accept", "content": {"a": 1.1, "b": [True]}}
        assert "1.10" in app.recorder.answers[0].response_json


async def test_a_form_can_be_filled_by_mouse_alone(store: Store) -> None:
    ask(store, form({"env": {"enum": ["staging", "production"]}, "ok": {"type": "boolean", "default": True}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        env = row(card, "env").query_one(InlineChoice)
        await pilot.click(env, offset=(18, 0))
        assert row(card, "env").state == "production"
        ok = row(card, "ok").query_one(InlineChoice)
        await pilot.click(ok, offset=(12, 0))
        assert row(card, "ok").state == "false"
        await pilot.click(row(card, "ok").query_one(".label"), offset=(5, 0))
        assert row(card, "ok").state is UNTOUCHED
        await pilot.click(card.query_one(".accept", Button))
        await until(pilot, lambda: bool(app.recorder.answers))
        assert sent(app)[0]["content"] == {"env": "production", "ok": True}


async def test_a_text_longer_than_its_line_scrolls_with_the_cursor(store: Store) -> None:
    ask(store, form({"s": {"type": "string"}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        app.view.focus_question()
        app.focused.post_message(events.Paste("x" * 200 + "the-end"))  # type: ignore[union-attr]
        await until(pilot, lambda: row(card, "s").state is not UNTOUCHED)
        await pilot.press("!")
        assert "the-end!" in painted(app)
        await pilot.press("home")
        assert "the-end!" not in painted(app)
