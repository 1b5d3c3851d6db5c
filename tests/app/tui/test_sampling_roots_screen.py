"""Sampling and roots on the screen: all that is asked is shown, a person writes or refuses, nothing goes by
itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.task_app import KEY, TaskApp, ask, form, open_store, painted, question, texts, until
from textual.widgets import Button, TextArea

from app.config import Abilities
from app.engine.commands import EngineError, is_refused_here
from app.tui.messages import CancelRequested
from app.tui.widgets.question_other import QuestionOther
from app.tui.widgets.question_roots import QuestionRoots
from app.tui.widgets.question_sampling import QuestionSampling
from storage.records import TaskState, TaskWrites
from storage.store import Store

HOSTILE = "\x1b[31mred [@click=app.quit]x[/] \u202egnp"
ASKS: dict[str, Any] = {
    "messages": [
        {"role": "user", "content": {"type": "text", "text": "What is the capital of France?"}},
        {"role": "assistant", "content": {"type": "text", "text": "One moment."}},
        {"role": "user", "content": {"type": "image", "data": "QUJD" * 4000, "mimeType": "image/png"}},
    ],
    "systemPrompt": "Answer in one word.",
    "maxTokens": 10,
    "temperature": 0.5,
    "modelPreferences": {"hints": [{"name": "sonnet"}]},
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


class AbleApp(TaskApp):
    """An app whose servers file allows the server this."""

    def __init__(self, store: Store, allowed: Abilities, **more: Any) -> None:
        super().__init__(store, **more)
        self.allowed = allowed

    def abilities(self, server: str) -> Abilities:
        assert server == KEY.server
        return self.allowed


def sampling(**changed: Any) -> Any:
    return question("sampling/createMessage", {**ASKS, **changed}, key="s")


ON = Abilities(sampling=True)
DRAFTS = Abilities(sampling=True, sampling_command=("/opt/bin/drafter", "--short"))


def editor(app: TaskApp) -> TextArea:
    return app.view.query_one(QuestionSampling).query_one(TextArea)


def button(app: TaskApp, kind: str) -> Button:
    return app.view.query_one(f".buttons .{kind}", Button)


def reply(app: TaskApp) -> dict[str, Any]:
    (answer,) = app.recorder.answers
    found: dict[str, Any] = json.loads(answer.response_json)
    return found


@pytest.mark.rule("sampling.reviewed")
async def test_the_whole_conversation_its_prompt_wishes_and_limits_are_shown(store: Store) -> None:
    ask(store, sampling())
    app = AbleApp(store, ON)
    async with app.run_test(size=(120, 50)) as pilot:
        await until(pilot, lambda: bool(app.view.query(QuestionSampling)))
        shown = texts(app.view.query_one(QuestionSampling))
        for words in (
            "You answer in the model's place",
            "system prompt\n  Answer in one word.",
            "user\n  What is the capital of France?",
            "assistant\n  One moment.",
            "  ‹image, image/png, about 11 KB, not shown›",
            "At most: 10 tokens",
            "Temperature: 0.5",
            "Model like: sonnet",
        ):
            assert words in shown
        assert "QUJDQUJD" not in painted(app)
        assert "ci asks" in painted(app)


@pytest.mark.rule("sampling.approval")
@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_a_person_writes_the_reply_and_sends_it_with_the_chord(
    store: Store, size: tuple[int, int]
) -> None:
    ask(store, sampling())
    app = AbleApp(store, ON)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: bool(app.view.cards))
        app.view.focus_question()
        await until(pilot, lambda: editor(app).has_focus)
        await pilot.press(*"Paris", "enter", "!")
        assert app.recorder.answers == []
        for kind in ("accept", "refuse"):
            assert app.screen.region.contains_region(button(app, kind).region)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: bool(app.recorder.answers))
        assert reply(app) == {
            "role": "assistant",
            "content": {"type": "text", "text": "Paris\n!"},
            "model": "human",
            "stopReason": "endTurn",
        }
        await until(
            pilot, lambda: "answered · the server has it" in texts(app.view.query_one("AnsweredView"))
        )


@pytest.mark.rule("sampling.max-tokens")
async def test_the_count_warns_near_the_limit_and_what_is_clearly_over_is_not_sent(store: Store) -> None:
    ask(store, sampling())
    app = AbleApp(store, ON)
    async with app.run_test(size=(100, 50)) as pilot:
        await until(pilot, lambda: bool(app.view.cards))
        app.view.focus_question()
        await until(pilot, lambda: editor(app).has_focus)
        editor(app).insert("x" * 44)
        await until(
            pilot, lambda: "about 11 tokens (an estimate), at most 10; it may be over" in painted(app)
        )
        editor(app).insert("x" * 40)
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "84 characters are more than 10 tokens can hold" in painted(app))
        assert app.recorder.answers == []


async def test_what_was_typed_is_there_again_after_a_restart(store: Store) -> None:
    ask(store, sampling())
    app = AbleApp(store, ON)
    async with app.run_test(size=(100, 50)) as pilot:
        await until(pilot, lambda: bool(app.view.cards))
        app.view.focus_question()
        await until(pilot, lambda: editor(app).has_focus)
        await pilot.press(*"Par")
        await until(pilot, lambda: bool(app.recorder.drafts))
    again = AbleApp(store, ON)
    async with again.run_test(size=(100, 50)) as pilot:
        await until(pilot, lambda: bool(again.view.cards))
        assert editor(again).text == "Par"


@pytest.mark.rule("sampling.human-in-the-loop")
async def test_a_refusal_sends_nothing_offers_to_cancel_and_can_be_taken_back(store: Store) -> None:
    ask(store, sampling())
    app = AbleApp(store, ON)
    async with app.run_test(size=(120, 50)) as pilot:
        await until(pilot, lambda: bool(app.view.cards))
        button(app, "refuse").press()
        await until(pilot, lambda: not app.view.cards)
        assert app.recorder.again == [("refuse", "s")]
        assert app.recorder.answers == []
        assert is_refused_here(store.reader.questions(KEY)[0])
        await until(pilot, lambda: "You refused sampling/createMessage (s)." in painted(app))
        app.view.query_one("RefusedHere .danger", Button).press()
        await until(pilot, lambda: bool(app.messages))
        assert isinstance(app.messages[-1], CancelRequested)
        app.view.query_one("RefusedHere .reopen", Button).press()
        await until(pilot, lambda: bool(app.view.cards))
        assert isinstance(app.view.cards[0], QuestionSampling)
        assert "refused" not in texts(app.view.cards[0]).lower()
        await until(pilot, lambda: not app.view.query("RefusedHere"))


async def test_a_draft_comes_only_when_asked_for_and_goes_only_when_sent(store: Store) -> None:
    ask(store, sampling())
    app = AbleApp(store, DRAFTS)
    app.recorder.drafted = "Par\x1b[31mis"
    async with app.run_test(size=(120, 50)) as pilot:
        await until(pilot, lambda: bool(app.view.cards))
        await pilot.pause()
        assert app.recorder.again == []
        button(app, "draft").press()
        await until(pilot, lambda: editor(app).text == "Par␛[31mis")
        assert app.recorder.again == [("draft", "s")]
        assert app.recorder.answers == []
        assert "read it, change it, then send or refuse" in painted(app)
        button(app, "draft").press()
        await until(pilot, lambda: "a draft never replaces it" in painted(app))
        assert len(app.recorder.again) == 1
        button(app, "accept").press()
        await until(pilot, lambda: bool(app.recorder.answers))
        assert reply(app)["model"] == "drafter"
        assert reply(app)["content"]["text"] == "Par␛[31mis"


async def test_a_draft_never_replaces_what_was_typed_meanwhile(store: Store) -> None:
    ask(store, sampling())
    app = AbleApp(store, DRAFTS)
    app.recorder.gate = asyncio.Event()
    async with app.run_test(size=(120, 50)) as pilot:
        await until(pilot, lambda: bool(app.view.cards))
        button(app, "draft").press()
        app.view.focus_question()
        await until(pilot, lambda: editor(app).has_focus)
        await pilot.press(*"mine")
        app.recorder.gate.set()
        await until(pilot, lambda: "something was typed meanwhile" in painted(app))
        assert editor(app).text == "mine"


async def test_a_command_that_fails_says_why_and_the_reply_can_still_be_written(store: Store) -> None:
    ask(store, sampling())
    app = AbleApp(store, DRAFTS)
    app.recorder.trouble = EngineError("invalid", "The command failed: \x1b[31mno key.")
    async with app.run_test(size=(120, 50)) as pilot:
        await until(pilot, lambda: bool(app.view.cards))
        button(app, "draft").press()
        await until(pilot, lambda: "The command failed: ␛[31mno key." in painted(app))
        assert not button(app, "draft").disabled


async def test_there_is_no_draft_button_without_a_command(store: Store) -> None:
    ask(store, sampling())
    app = AbleApp(store, ON)
    async with app.run_test(size=(120, 50)) as pilot:
        await until(pilot, lambda: bool(app.view.cards))
        assert not app.view.query(".draft")


@pytest.mark.rule("sampling.tools")
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"tools": [{"name": "x"}]}, "it wants tools to be used"),
        ({"toolChoice": {"mode": "auto"}}, "it wants tools to be used"),
        ({"messages": "hi"}, "no conversation that can be read"),
        ({"maxTokens": 0}, "no room for a reply"),
    ],
)
async def test_what_can_not_be_answered_even_where_sampling_is_on_says_why(
    store: Store, changed: dict[str, Any], words: str
) -> None:
    ask(store, sampling(**changed))
    app = AbleApp(store, ON)
    async with app.run_test(size=(120, 50)) as pilot:
        await until(pilot, lambda: bool(app.view.cards))
        assert isinstance(app.view.cards[0], QuestionOther)
        assert words in texts(app.view.cards[0])


async def test_nothing_that_a_server_writes_in_a_sampling_request_is_drawn_raw(store: Store) -> None:
    poisoned = {
        "messages": [
            {"role": HOSTILE, "content": {"type": "text", "text": HOSTILE + "\nassistant"}},
            {"role": "user", "content": {"type": "image", "data": "QQ==", "mimeType": HOSTILE}},
            {"role": "user", "content": {HOSTILE: HOSTILE}},
        ],
        "systemPrompt": HOSTILE,
        "maxTokens": 10,
        "stopSequences": [HOSTILE],
        "includeContext": HOSTILE,
        "metadata": {HOSTILE: HOSTILE},
        "modelPreferences": {"hints": [{"name": HOSTILE}], "costPriority": HOSTILE},
    }
    ask(store, question("sampling/createMessage", poisoned, key="s"))
    app = AbleApp(store, ON)
    async with app.run_test(size=(120, 60)) as pilot:
        await until(pilot, lambda: bool(app.view.cards))
        shown = texts(app.view.cards[0]) + painted(app)
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "[@click=app.quit]x[/]" in shown
        assert "\nassistant\n" not in texts(app.view.cards[0])  # no line of the server's passes for a speaker


async def test_a_conversation_of_a_megabyte_says_how_much_is_left_out(store: Store) -> None:
    long = [{"role": "user", "content": {"type": "text", "text": "y" * 40_000}} for _ in range(25)]
    ask(store, sampling(messages=long))
    app = AbleApp(store, ON)
    async with app.run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: bool(app.view.cards), seconds=20)
        shown = texts(app.view.cards[0])
        assert "more characters" in shown
        assert "more messages, which the pane Raw has" in shown
        assert len(shown) < 100_000


# Roots


@pytest.mark.rule("roots.consent", "roots.exposed-with-care", "roots.file-uri")
async def test_the_folders_are_shown_exactly_as_they_are_sent(store: Store, tmp_path: Path) -> None:
    mine, gone = tmp_path / "my project", tmp_path / "gone"
    mine.mkdir()
    ask(store, question("roots/list", None, key="r"))
    app = AbleApp(store, Abilities(roots=(str(mine), str(gone))))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: bool(app.view.query(QuestionRoots)))
        shown = texts(app.view.query_one(QuestionRoots))
        assert "told of 1 folder" in shown
        assert mine.as_uri() in shown
        assert "my%20project" in shown
        assert f"Left out, since it can't be looked into now: {gone}" in shown
        assert app.recorder.answers == []
        button(app, "accept").press()
        await until(pilot, lambda: bool(app.recorder.answers))
        assert reply(app) == {"roots": [{"uri": mine.as_uri(), "name": "my project"}]}
        assert app.recorder.answers[0].response_json in shown


async def test_a_list_of_folders_can_be_refused(store: Store, tmp_path: Path) -> None:
    ask(store, question("roots/list", None, key="r"), form({}, key="f"))
    app = AbleApp(store, Abilities(roots=(str(tmp_path),)))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: len(app.view.cards) == 2)
        app.view.query_one(QuestionRoots).query_one(".refuse", Button).press()
        await until(pilot, lambda: app.recorder.again == [("refuse", "r")])
        await until(pilot, lambda: len(app.view.cards) == 1)
        assert app.recorder.answers == []


async def test_folders_that_are_all_gone_can_not_be_sent(store: Store, tmp_path: Path) -> None:
    ask(store, question("roots/list", None, key="r"))
    app = AbleApp(store, Abilities(roots=(str(tmp_path / "gone"),)))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: bool(app.view.cards))
        app.view.focus_question()
        await pilot.press("ctrl+s")
        await pilot.pause()
        assert app.recorder.answers == []
        assert not app.view.query(".accept")


@pytest.mark.parametrize("kind", ["accept", "refuse"])
async def test_a_key_that_was_on_its_way_when_the_question_appeared_does_nothing(
    store: Store, tmp_path: Path, kind: str
) -> None:
    ask(store, question("roots/list", None, key="r"))
    app = AbleApp(store, Abilities(roots=(str(tmp_path),)))
    app.moving.step = 0.0
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: bool(app.view.cards))
        button(app, kind).press()
        await until(pilot, lambda: "has only just appeared" in painted(app))
        assert app.recorder.answers == []
        assert app.recorder.again == []
        app.moving.step = 10.0


async def test_a_refused_question_of_a_task_that_is_over_offers_nothing(store: Store) -> None:
    ask(store, sampling())
    app = AbleApp(store, ON)
    async with app.run_test(size=(120, 50)) as pilot:
        await until(pilot, lambda: bool(app.view.cards))
        button(app, "refuse").press()
        await until(pilot, lambda: bool(app.view.query("RefusedHere")))
        over = TaskState(status="cancelled", tracking="ended")
        store.change_task(KEY, lambda _task, _questions: TaskWrites(state=over))
        app.view.refresh_task()
        await until(pilot, lambda: not app.view.query("RefusedHere"))
