"""Secrets in answers, on the screen: typed again where they are needed, and shown nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.task_app import KEY, TaskApp, ask, form, open_store, painted, question, texts, until
from textual.widgets import Input, TextArea

from app.forms.redacting import without_secrets
from app.tui.widgets.form_fields import entries_of
from app.tui.widgets.question_form import QuestionForm
from app.tui.widgets.raw_form import form_of
from storage.records import QuestionChange, QuestionState, Reply, TaskWrites
from storage.store import Store

SECRET = "hush-4711"
EXACT = f'{{"action": "accept", "content": {{"user": "ada", "password": "{SECRET}"}}}}'


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


def answered(store: Store, state: QuestionState) -> None:
    """Ask for a password, answer, and bring the question into *state*."""
    ask(store, form({"user": {"type": "string"}, "password": {"type": "string"}}))
    (asked,) = store.reader.questions(KEY)
    reply = Reply(asked.id, asked.fingerprint, EXACT, without_secrets(asked.request_json, EXACT))
    store.queue_answers(KEY, [reply], by="ada")
    if state != "queued":
        store.claim([asked.id], owner="me", dead=lambda _: False)
        change = QuestionChange(asked.id, state, refusal="too short", still_asked=9)
        store.change_task(KEY, lambda _task, _questions: TaskWrites(question_changes=(change,)))


@pytest.mark.rule("elicitation.no-secrets-by-form")
async def test_a_refused_answer_comes_back_without_its_secret(store: Store) -> None:
    answered(store, "refused")
    app = TaskApp(store)
    async with app.run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: bool(app.view.cards) and app.view.cards[0].is_mounted)
        card = app.view.cards[0]
        assert isinstance(card, QuestionForm)
        typed = {row.field.name: row.query_one(Input).value for row in card.fields.rows}
        assert typed == {"user": "ada", "password": ""}
        assert card.fields.entries == {"user": "ada"}


@pytest.mark.parametrize("state", ["queued", "acknowledged", "settled", "withdrawn"])
async def test_a_secret_is_in_no_view_of_an_answered_question(store: Store, state: QuestionState) -> None:
    answered(store, state)
    app = TaskApp(store)
    async with app.run_test(size=(120, 60)) as pilot:
        await pilot.pause()
        for pane in ("overview", "timeline", "raw"):
            app.view.action_pane(pane)
            await pilot.pause()
            await pilot.pause()
            assert SECRET not in painted(app) + texts(app.view)
        assert "sent, not kept" in app.view._raw._text


async def test_a_lost_answer_with_a_secret_is_to_be_given_anew_and_says_why(store: Store) -> None:
    answered(store, "acknowledged")
    app = TaskApp(store)
    async with app.run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: "Answer it anew" in painted(app))
        drawn = painted(app)
        assert "secrets" in drawn
        assert "Send it again" not in drawn
        await pilot.click("StuckAnswer Button")
        await until(pilot, lambda: store.reader.questions(KEY)[0].id in app.recorder.again)


@pytest.mark.rule("elicitation.no-secrets-by-form")
async def test_a_secret_inside_of_json_is_warned_about_and_masked_in_the_preview(store: Store) -> None:
    inner = {"type": "object", "properties": {"password": {"type": "string"}}}
    request = {"message": "?", "requestedSchema": {"type": "object", "additionalProperties": inner}}
    ask(store, question("elicitation/create", request))
    app = TaskApp(store)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: bool(app.view.cards) and app.view.cards[0].is_mounted)
        card = app.view.cards[0]
        assert isinstance(card, QuestionForm)
        assert "asks for a secret" in texts(card)
        card.query_one(TextArea).text = f'{{"a": {{"password": "{SECRET}", "n": 1.50}}}}'
        await until(pilot, lambda: bool(card.fields.entries))
        card.action_show_json()
        await pilot.pause()
        shown = card._review.text
        assert '{"password": "••••••", "n": 1.50}' in shown
        assert SECRET not in shown


async def test_the_timeline_leaves_digests_to_the_export(store: Store) -> None:
    answered(store, "acknowledged")
    app = TaskApp(store)
    async with app.run_test(size=(120, 60)) as pilot:
        app.view.action_pane("timeline")
        await until(pilot, lambda: "answer sent" in painted(app))
        assert "by: ada" in painted(app)
        assert "sha256" not in painted(app)


@pytest.mark.parametrize("schema", [{"type": "string"}, None])
def test_json_in_which_words_stand_for_a_secret_is_not_offered_again(schema: Any) -> None:
    assert entries_of(form_of(schema), '{"password": "sent, not kept"}') == {}
    assert entries_of(form_of(schema), '{"user": "ada"}') == {"": '{"user": "ada"}'}


async def test_a_password_asked_for_by_the_message_alone_is_masked_and_in_no_draft(store: Store) -> None:
    ask(store, form({"value": {"type": "string"}}, message="Enter your password"))
    app = TaskApp(store)
    async with app.run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: bool(app.view.cards) and app.view.cards[0].is_mounted)
        app.view.focus_question()
        await pilot.press(*SECRET)
        await pilot.pause()
        assert "asks for a secret" in painted(app)
        assert SECRET not in painted(app)
    assert store.reader.questions(KEY)[0].draft_json is None
