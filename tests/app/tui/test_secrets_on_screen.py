"""Secrets in answers, on the screen: typed again where they are needed, and shown nowhere."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.task_app import KEY, TaskApp, ask, form, open_store, painted, question, row, shown, texts, until
from textual import events
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


PEM = "-----BEGIN KEY-----\nMIIE 中文\n\n\tabc=\n-----END KEY-----"
LINE = {"type": "string"}
LONG = {"type": "string", "maxLength": 4000}
SEVERAL = {"type": "array", "items": {"type": "string"}}


async def paste(app: TaskApp, text: str) -> None:
    assert app.focused is not None
    app.focused.post_message(events.Paste(text))


def content(app: TaskApp) -> Any:
    return json.loads(app.recorder.answers[-1].response_json)["content"]


@pytest.mark.parametrize(
    ("schema", "pasted", "sent", "words"),
    [
        (LINE, PEM, PEM, "5 lines, masked"),
        (LINE, f"{PEM}\n", f"{PEM}\n", "5 lines, masked, with a line end behind it"),
        (LINE, "a\r\nb\r\n", "a\nb\n", r"pasted line ends were \r\n, and are sent as \n"),
        (LINE, "a\rb", "a\nb", "2 lines, masked"),
        (LINE, "hush\n", "hush", "the line end of the paste was left out"),
        (LINE, "hush\r\n", "hush", "the line end of the paste was left out"),
        (LINE, " hu\tsh ", " hu\tsh ", None),
        (LINE, "hu\ufeffsh", "hu\\u{feff}sh", "the paste held control characters"),
        (LONG, PEM, PEM, "5 lines, masked"),
        (LONG, f"{PEM}\n", f"{PEM}\n", "5 lines, masked, with a line end behind it"),
        (LONG, "hush\n", "hush\n", "1 line, masked, with a line end behind it"),
        (LONG, "a\r\nb", "a\nb", r"pasted line ends were \r\n, and are sent as \n"),
        (LONG, "hu\x1bsh", "hu␛sh", "the paste held control characters"),
        (SEVERAL, "one\r\n\r\n three\n", ["one", "", " three"], "3 lines, masked"),
    ],
)
async def test_what_is_pasted_behind_a_mask_is_sent_to_the_letter_or_it_is_said(
    store: Store, schema: dict[str, Any], pasted: str, sent: Any, words: str | None
) -> None:
    ask(store, form({"private_key": schema}))
    app = TaskApp(store)
    async with app.run_test(size=(120, 40)) as pilot:
        card = await shown(pilot)
        await paste(app, pasted)
        await until(pilot, lambda: row(card, "private_key").state == sent and (words or "") in painted(app))
        drawn = painted(app)
        assert "•" in drawn
        assert not [part for part in pasted.split() if len(part) > 1 and part in drawn]
        await pilot.press("ctrl+g")
        await until(pilot, lambda: "no editor here" in painted(app) and (words or "") in painted(app))
        assert words or not [word for word in ("paste", ", masked") if word in drawn]
        await pilot.press("ctrl+s")
        await until(pilot, lambda: bool(app.recorder.answers))
        assert content(app) == {"private_key": sent}


async def test_a_list_parted_by_windows_line_ends_is_not_altered_and_nothing_is_said(store: Store) -> None:
    ask(store, form({"tokens": SEVERAL}))
    app = TaskApp(store)
    async with app.run_test(size=(120, 40)) as pilot:
        card = await shown(pilot)
        await paste(app, "one\r\ntwo")
        await until(pilot, lambda: row(card, "tokens").state == ["one", "two"])
        assert "sent as" not in painted(app)


@pytest.mark.parametrize(
    ("schema", "pasted", "state", "words"),
    [
        ({"type": "string"}, "ada\n", "ada", "the line end of the paste was left out"),
        ({"type": "string"}, "a\tb", "a b", "a pasted tab is sent as a space"),
        ({"type": "string"}, "a\r\nb", "a\nb", r"pasted line ends were \r\n, and are sent as \n"),
        ({"type": "integer"}, "1\n2", "1 2", "the lines of the paste are on one line now"),
    ],
)
async def test_what_is_altered_of_a_paste_is_said_where_it_can_be_read_too(
    store: Store, schema: dict[str, Any], pasted: str, state: str, words: str
) -> None:
    ask(store, form({"note": schema}))
    app = TaskApp(store)
    async with app.run_test(size=(120, 40)) as pilot:
        card = await shown(pilot)
        await paste(app, pasted)
        await until(pilot, lambda: row(card, "note").state == state and words in painted(app))
        await pilot.press("ctrl+r")
        await until(pilot, lambda: words not in painted(app))


async def test_a_pasted_key_is_undone_and_redone_to_the_letter(store: Store) -> None:
    ask(store, form({"private_key": LINE}))
    app = TaskApp(store)
    async with app.run_test(size=(120, 40)) as pilot:
        card = await shown(pilot)
        await paste(app, PEM)
        await until(pilot, lambda: row(card, "private_key").state == PEM)
        await pilot.press("ctrl+z")
        await until(pilot, lambda: row(card, "private_key").state != PEM)
        await pilot.press("ctrl+y", "end", "!")
        await until(pilot, lambda: row(card, "private_key").state == f"{PEM}!")
        assert "BEGIN" not in painted(app)


async def test_what_is_copied_in_the_program_is_pasted_by_the_same_rules(store: Store) -> None:
    ask(store, form({"private_key": LINE, "note": LONG}))
    app = TaskApp(store)
    async with app.run_test(size=(120, 40)) as pilot:
        card = await shown(pilot)
        app.copy_to_clipboard("a\nb\x1b\n")
        for name in ("private_key", "note"):
            row(card, name).focus_control()
            await pilot.press("ctrl+v")
            await until(pilot, lambda name=name: row(card, name).state == "a\nb␛\n")  # type: ignore[misc]
        assert painted(app).count("the paste held control characters") == 2


@pytest.mark.parametrize("schema", [LONG, SEVERAL, {"type": "string", "default": f"{SECRET}\nx"}])
@pytest.mark.rule("elicitation.no-secrets-by-form")
async def test_several_lines_of_a_secret_are_masked_as_one_is(store: Store, schema: dict[str, Any]) -> None:
    ask(store, form({"tokens": schema}))
    app = TaskApp(store)
    async with app.run_test(size=(120, 40)) as pilot:
        card = await shown(pilot)
        await pilot.press("ctrl+a", *SECRET, " ", *"(word)")
        if schema is not LONG and schema is not SEVERAL:
            await until(pilot, lambda: SECRET in str(row(card, "tokens").state))
        else:
            typed = f"{SECRET} (word)"
            await until(pilot, lambda: row(card, "tokens").state in (typed, [typed]))
        for key in ("shift+home", "ctrl+left", "ctrl+shift+right", "end", "up"):
            await pilot.press(key)
            drawn = painted(app)
            assert "•••" in drawn
            assert SECRET not in drawn
            assert "word" not in drawn.replace("password", "")


async def test_a_masked_area_tells_nothing_of_words_and_copies_no_line_unasked(store: Store) -> None:
    ask(store, form({"tokens": LONG}))
    app = TaskApp(store)
    async with app.run_test(size=(120, 40)) as pilot:
        card = await shown(pilot)
        area = card.query_one(TextArea)
        await paste(app, f"  one two (three)\nfour {'five ' * 60}")
        await until(pilot, lambda: area.cursor_location[0] == 1)
        assert area.wrapped_document.height == 2
        area.move_cursor((0, 17))
        for key, place in (("ctrl+left", (0, 0)), ("ctrl+right", (0, 17)), ("home", (0, 0))):
            await pilot.press(key)
            assert area.cursor_location == place
        await pilot.press("ctrl+x")
        assert app.clipboard == ""
        assert area.document.line_count == 2
        area.move_cursor((0, 3))
        area.action_delete_word_right()
        assert area.document.get_line(0) == "  o"
        area.action_delete_word_left()
        assert area.document.get_line(0) == ""


@pytest.mark.parametrize(
    "properties",
    [
        {"private_key": LINE},
        {"private_key": LONG},
        {"tokens": SEVERAL},
        {"login": {"type": "object", "properties": {"password": LINE}}},
        None,
    ],
)
async def test_no_editor_gets_a_secret_in_a_file_and_the_row_says_so(
    store: Store, properties: dict[str, Any] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_file(*_args: Any, **_more: Any) -> None:
        raise AssertionError("a file was made")

    monkeypatch.setenv("VISUAL", "true")
    monkeypatch.setattr(tempfile, "TemporaryDirectory", no_file)
    if properties is None:
        inner = {"type": "object", "properties": {"password": LINE}}
        schema = {"type": "object", "additionalProperties": inner}
        ask(store, question("elicitation/create", {"message": "?", "requestedSchema": schema}))
    else:
        ask(store, form(properties))
    app = TaskApp(store)
    async with app.run_test(size=(120, 40)) as pilot:
        card = await shown(pilot)
        await pilot.press("ctrl+g")
        await until(pilot, lambda: "no editor here: it would need the secret in a file" in texts(card))
        assert "editor" not in card.fields.rows[0]._label.text
        assert app.is_running
