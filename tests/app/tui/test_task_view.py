"""One task, whole: what is shown of it, and what can be done with it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.task_app import KEY, NOW, TaskApp, ask, change, form, open_store, painted, question, texts, until
from textual.widgets import Button, TextArea

from app.engine.commands import CallOutcome
from app.tui.messages import ArchiveRequested, CancelRequested, RefreshRequested
from app.tui.screens.save_file import SaveFileScreen
from app.tui.widgets.question_other import QuestionOther
from app.tui.widgets.question_url import QuestionUrl
from storage.records import NewTask, QuestionChange, TaskKey, TaskState, TaskWrites
from storage.store import Store

HOSTILE = "[/foo] \x1b[31mred\x1b]52;c;ZXZpbA==\x07 \u202eabc [@click=app.quit]x[/]"
DANGEROUS = ("\x1b", "\x07", "\u202e", "\x9b")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


def set_state(store: Store, key: TaskKey = KEY, **fields: object) -> None:
    store.change_task(key, lambda task, _: TaskWrites(state=replace(task.state, **fields)))  # type: ignore[arg-type]


@pytest.mark.rule(
    "elicitation.who-asks-is-clear", "elicitation.server-indicated", "tasks.status-message-shown"
)
async def test_a_task_shows_its_server_tool_id_times_and_status(store: Store) -> None:
    ask(store, form({}), status_message="building", problem="ci did not answer")
    app = TaskApp(store)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: app.view.record is not None)
        drawn = painted(app)
        for words in (
            "ci",
            "deploy_service",
            KEY.id,
            "12m left",
            "waiting for you",
            "building",
            "did not answer",
        ):
            assert words in drawn


async def test_what_is_not_in_the_store_is_said_to_be_gone(store: Store) -> None:
    app = TaskApp(store, TaskKey("ci", "none"))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "no longer in the inbox" in painted(app))
        app.view.show(None)
        await until(pilot, lambda: "No task is chosen" in painted(app))


@pytest.mark.rule("cancellation.shown")
async def test_a_wish_to_cancel_is_said_until_the_server_says_more(store: Store) -> None:
    ask(store, cancel_requested_at=NOW - 10_000)
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "Asked to cancel 10s ago; the server has not confirmed" in painted(app))
        set_state(store, cancel_acknowledged_at=NOW - 5_000)
        app.view.refresh_task()
        await until(pilot, lambda: "taken note" in painted(app))
        set_state(store, status="cancelled", tracking="ended")
        app.view.refresh_task()
        await until(pilot, lambda: "Asked to cancel" not in painted(app))
        assert "cancelled" in painted(app)


@pytest.mark.rule("tools.resource-links", "tools.results-checked")
async def test_a_result_shows_text_structure_links_and_describes_what_is_binary(store: Store) -> None:
    result = {
        "content": [
            {"type": "text", "text": f"report {HOSTILE}"},
            {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"x" * 4200).decode()},
            {"type": "audio", "mimeType": HOSTILE, "data": "not base64!"},
            {"type": "resource_link", "uri": f"https://example.com/{HOSTILE}", "name": "r"},
            {"type": "resource", "resource": {"uri": "file:///a/b.bin", "blob": "AAEC"}},
            {"type": HOSTILE},
            7,
        ],
        "structuredContent": {"size": "large", HOSTILE: HOSTILE},
    }
    ask(store, status="completed", tracking="ended", result_json=json.dumps(result))
    app = TaskApp(store)
    async with app.run_test(size=(100, 70)) as pilot:
        await until(pilot, lambda: "report" in painted(app))
        drawn = painted(app)
        for words in (
            "image/png",
            "4.2 KB",
            "not valid base64",
            "Link to a resource",
            "3 bytes",
            '"size": "large"',
        ):
            assert words in drawn
        assert not any(bad in drawn for bad in DANGEROUS)
        assert len(app.view.query(".save")) == 6


async def test_a_tool_that_says_it_failed_is_shown_as_such(store: Store) -> None:
    result = '{"content": [{"type": "text", "text": "no such build"}], "isError": true}'
    ask(store, status="completed", tracking="ended", is_error=True, result_json=result)
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "The tool says it failed" in painted(app))
        assert "tool error" in painted(app)


async def test_a_failure_shows_code_message_and_data(store: Store) -> None:
    error = json.dumps({"code": -32603, "message": f"boom {HOSTILE}", "data": {"step": 3}})
    ask(store, status="failed", tracking="ended", error_json=error)
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "boom" in painted(app))
        for words in ("-32603", '"step": 3', "failed"):
            assert words in painted(app)
        assert not any(bad in painted(app) for bad in DANGEROUS)


async def test_a_long_result_is_cut_and_all_of_it_can_be_saved(store: Store, tmp_path: Path) -> None:
    text = "line of text\n" * 20_000
    result = json.dumps({"content": [{"type": "text", "text": text}]})
    ask(store, status="completed", tracking="ended", result_json=result)
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: bool(app.view.query(".save")))
        assert "more characters" in texts(app.view)
        app.view.query(".save").first(Button).press()
        await until(pilot, lambda: isinstance(app.screen, SaveFileScreen))
        target = tmp_path / "result.txt"
        target.write_text("mine")
        screen = app.screen
        assert isinstance(screen, SaveFileScreen)
        screen._path.value = str(target)
        await pilot.pause()
        await pilot.press("enter", "enter")
        await until(pilot, lambda: "already a file" in painted(app))
        assert target.read_text() == "mine"
        # Textual lets a button rest for a moment after it was pressed.
        await until(pilot, lambda: not screen._save.has_class("-active"))
        await pilot.press("enter")
        await until(pilot, lambda: not isinstance(app.screen, SaveFileScreen))
        assert target.read_text() == text


async def test_timeline_and_raw_show_the_log_and_what_came(store: Store) -> None:
    ask(store, form({}), snapshot_json='{"taskId": "tsk", "n": 1.10}')
    app = TaskApp(store)
    async with app.run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: app.view.record is not None)
        app.view.action_pane("timeline")
        await until(pilot, lambda: "added" in painted(app))
        app.view.action_pane("raw")
        await until(pilot, lambda: "lastReply" in painted(app))
        assert "1.10" in app.view.query_one("RawView TextArea", TextArea).text


async def test_the_buttons_tell_the_app_which_task_is_meant(store: Store) -> None:
    ask(store)
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.view.record is not None)
        for label in ("Cancel task…", "Archive", "Look now"):
            button = next(
                b for b in app.view.query(".actions Button").results(Button) if str(b.label) == label
            )
            button.press()
            await pilot.pause()
        await until(pilot, lambda: len(app.messages) == 3)
        kinds = [type(message) for message in app.messages]
        assert kinds == [CancelRequested, ArchiveRequested, RefreshRequested]
        assert {message.key for message in app.messages} == {KEY}


async def test_answered_questions_are_folded_with_their_answer_and_never_asked_again(store: Store) -> None:
    secret = {"token": {"type": "string"}, "size": {"type": "string"}}
    ask(store, form(secret, key="k"))
    asked = store.reader.questions(KEY)[0]
    app = TaskApp(store)
    async with app.run_test(size=(80, 30)) as pilot:
        await until(pilot, lambda: len(app.view.cards) == 1)
        app.view.cards[0].give("accept", '{"token": "s3cr3t", "size": "large"}')
        await until(pilot, lambda: not app.view.cards)
        for state in ("acknowledged", "settled"):
            change(store, question_changes=(QuestionChange(asked.id, state, still_asked=1),))
            app.view.refresh_task()
            await pilot.pause()
            assert not app.view.cards
        fold = texts(app.view.query_one("AnsweredView"))
        assert "accepted · done" in fold
        assert "large" in fold
        assert "s3cr3t" not in fold


@pytest.mark.rule("elicitation.retry-or-cancel-by-hand")
async def test_an_acknowledged_answer_that_is_still_asked_can_be_sent_again(store: Store) -> None:
    ask(store, form({}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 30)) as pilot:
        await until(pilot, lambda: len(app.view.cards) == 1)
        question_id = app.view.cards[0].question.id
        app.view.cards[0].give("accept", "{}")
        await until(pilot, lambda: not app.view.cards)
        change(store, question_changes=(QuestionChange(question_id, "acknowledged", still_asked=5),))
        app.view.refresh_task()
        await until(pilot, lambda: "still asks" in painted(app))
        app.view.query_one("StuckAnswer Button", Button).press()
        await until(pilot, lambda: app.recorder.again == [question_id])


@pytest.mark.rule(
    "elicitation.only-declared-modes", "sampling.human-in-the-loop", "wire.sampling-and-roots-off"
)
async def test_a_question_of_another_kind_is_shown_as_one_not_answered_here(store: Store) -> None:
    ask(
        store,
        question("sampling/createMessage", {"messages": [{"role": "user", "content": HOSTILE}]}, key="s"),
        question("roots/list", None, key="r"),
        question(HOSTILE, {"x": 1}, key="h"),
        question("elicitation/create", {"mode": "voice", "message": "m"}, key="v"),
    )
    app = TaskApp(store)
    async with app.run_test(size=(80, 60)) as pilot:
        await until(pilot, lambda: len(app.view.cards) == 4)
        assert all(isinstance(card, QuestionOther) for card in app.view.cards)
        assert "does not answer" in painted(app)
        assert not app.view.query(".accept")
        assert not any(bad in painted(app) for bad in DANGEROUS)
        app.view.cards[0].query_one(".cancel-task", Button).press()
        await until(pilot, lambda: bool(app.messages))
        assert isinstance(app.messages[0], CancelRequested)


@pytest.mark.rule(
    "elicitation.host-and-consent",
    "elicitation.url-not-opened-without-consent",
    "elicitation.url-shown-in-full",
    "elicitation.url-opened-outside",
    "elicitation.url-domain-highlighted",
    "tasks.input-as-standalone",
    "tasks.input-not-trusted-more",
)
async def test_an_address_is_shown_with_its_host_and_opened_only_after_consent(store: Store) -> None:
    url = "https://user@xn--pypal-4ve.com:8443/go?id=1"
    ask(store, question("elicitation/create", {"mode": "url", "message": "Go there", "url": url}))
    app = TaskApp(store)
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: len(app.view.cards) == 1)
        card = app.view.cards[0]
        assert isinstance(card, QuestionUrl)
        for words in ("xn--pypal-4ve.com:8443", url, "other alphabets", "before the @", "port"):
            assert words in painted(app)
        card.query_one(".open", Button).press()
        await pilot.pause()
        assert not app.opened
        assert app.focused is card.query_one(".not-now", Button)
        card.query_one(".go", Button).press()
        await until(pilot, lambda: bool(app.recorder.answers))
        assert app.opened == [url]
        assert app.recorder.answers[0].response_json == '{"action": "accept"}'


@pytest.mark.rule("elicitation.retry-or-cancel-by-hand")
async def test_where_no_browser_opens_nothing_is_answered(store: Store) -> None:
    ask(store, question("elicitation/create", {"mode": "url", "message": "m", "url": "https://example.com/"}))
    app = TaskApp(store, opener=lambda url: False)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(app.view.cards) == 1)
        card = app.view.cards[0]
        card.query_one(".open", Button).press()
        await pilot.pause()
        card.query_one(".go", Button).press()
        await until(pilot, lambda: "No browser" in painted(app))
        assert not app.recorder.answers
        card.query_one(".copy", Button).press()
        await pilot.pause()
        card.query_one(".go", Button).press()
        await until(pilot, lambda: bool(app.recorder.answers))
        assert app.clipboard == "https://example.com/"


@pytest.mark.rule("elicitation.url-valid", "elicitation.decline-any-time")
@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "file:///etc/passwd", "https://a\x1b]52;c;x\x07.com/", 7, None]
)
async def test_an_address_that_is_not_for_the_web_is_never_opened(store: Store, url: object) -> None:
    ask(store, question("elicitation/create", {"mode": "url", "message": "m", "url": url}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(app.view.cards) == 1)
        card = app.view.cards[0]
        assert not card.query(".open")
        assert not card.query(".copy")
        card.action_accept()
        await pilot.pause()
        assert not app.recorder.answers
        card.query_one(".decline", Button).press()
        await until(pilot, lambda: bool(app.recorder.answers))
        assert not any(bad in painted(app) for bad in DANGEROUS)


async def test_a_call_of_unknown_outcome_is_repeated_only_after_a_second_yes(store: Store) -> None:
    key = TaskKey("ci", "call-1")
    state = TaskState(tracking="lost", reason="outcome unknown: the connection broke")
    store.add_task(NewTask(key, kind="call", tool="deploy", state=state))
    app = TaskApp(store, key)
    app.recorder.outcome = CallOutcome("complete", key, "{}")
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "outcome unknown" in painted(app))
        buttons = {str(b.label): b for b in app.view.query(Button)}
        assert buttons["Give up…"].display
        buttons["Call again…"].press()
        await pilot.pause()
        assert app.recorder.again == []
        assert app.focused is buttons["Leave it"]
        buttons["Call it again"].press()
        await until(pilot, lambda: app.recorder.again == [key])


async def test_a_call_that_became_a_task_is_shown_as_that_task(store: Store) -> None:
    call = TaskKey("ci", "call-2")
    store.add_task(NewTask(call, kind="call", tool="deploy"), questions=[form({}, key="first")])
    app = TaskApp(store, call)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(app.view.cards) == 1)
        change(store, call, became=NewTask(KEY, tool="deploy", state=TaskState(status="working")))
        app.view.refresh_task()
        await until(pilot, lambda: KEY.id in painted(app))


async def test_moving_between_tasks_shows_each_with_its_own_questions(store: Store) -> None:
    other = TaskKey("lab", "tsk_2")
    ask(store, form({"s": {"type": "string"}}))
    ask(store, form({}, message="Another?"), form({}, key="b"), key=other)
    app = TaskApp(store)
    async with app.run_test(size=(80, 40)) as pilot:
        await until(pilot, lambda: len(app.view.cards) == 1)
        app.view.focus_question()
        await pilot.press(*"typed")
        app.view.show(other)
        await until(pilot, lambda: len(app.view.cards) == 2)
        assert "lab asks" in painted(app)
        app.view.show(KEY)
        await until(pilot, lambda: len(app.view.cards) == 1)
        await until(pilot, lambda: "typed" in painted(app))


async def test_a_store_with_hostile_json_does_not_end_the_program(store: Store) -> None:
    deep = "[" * 5000 + "]" * 5000
    ask(
        store,
        question("elicitation/create", {"message": 7, "requestedSchema": [1]}),
        result_json=deep,
        error_json='"\x1b[31m"',
        snapshot_json="not json \x1b[2J",
        created_at=9_223_372_036_854_775,
        ttl_ms=1,
    )
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(app.view.cards) == 1)
        for pane in ("timeline", "raw", "overview"):
            app.view.action_pane(pane)
            await pilot.pause()
            assert not any(bad in painted(app) for bad in DANGEROUS)
        assert app.is_running


async def test_the_focus_never_slips_onto_another_tasks_buttons(store: Store) -> None:
    other = TaskKey("lab", "tsk_2")
    ask(store, form({"s": {"type": "string"}}))
    ask(store, form({}, message="Another?"), key=other)
    app = TaskApp(store)
    async with app.run_test(size=(80, 30)) as pilot:
        await until(pilot, lambda: len(app.view.cards) == 1)
        app.view.cards[0].query_one(".accept", Button).focus()
        await pilot.pause()
        app.view.show(other)
        await pilot.press("enter", "enter", "space")
        await until(pilot, lambda: app.view.cards[0].is_mounted)
        await pilot.press("enter", "space")
        assert not app.recorder.answers
        assert not isinstance(app.focused, Button)


async def test_a_task_opened_at_once_has_the_focus_in_its_form(store: Store) -> None:
    other = TaskKey("lab", "tsk_2")
    ask(store, form({"s": {"type": "string"}}))
    ask(store, form({"t": {"type": "string"}}), key=other)
    app = TaskApp(store)
    async with app.run_test(size=(80, 30)) as pilot:
        await until(pilot, lambda: len(app.view.cards) == 1)
        app.view.show(other)
        app.view.focus_first()
        await until(pilot, lambda: app.focused is not None and app.focused in app.view.cards[0].query("*"))
        await pilot.press("o", "k", "ctrl+s")
        await until(pilot, lambda: bool(app.recorder.answers))
        assert app.recorder.answers[0].question.task == other
        assert json.loads(app.recorder.answers[0].response_json)["content"] == {"t": "ok"}


async def test_a_store_that_can_not_be_read_is_said_and_what_is_shown_stays(store: Store) -> None:
    ask(store, form({"s": {"type": "string"}}))
    app = TaskApp(store)
    async with app.run_test(size=(80, 30), notifications=True) as pilot:
        await until(pilot, lambda: len(app.view.cards) == 1)
        app.view.focus_first()
        await pilot.press("k")
        store.close()
        app.view.refresh_task()
        await until(pilot, lambda: "can't be read" in painted(app))
        assert "deploy_service" in painted(app)
        assert app.view.cards[0].dirty
        app.engine = None
