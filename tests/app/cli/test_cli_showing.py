"""``show`` for people: enough to answer from, and what can be done where nothing can be answered."""

from __future__ import annotations

import json
import os
import re

import pytest
from fakes.cli_engine import Installation, form_question

from app.cli import output
from app.cli.output import command_name, readable_json
from storage.records import (
    NewEvent,
    NewQuestion,
    NewTask,
    QuestionChange,
    QuestionState,
    Reply,
    TaskKey,
    TaskState,
    TaskWrites,
)


def shown(home: Installation, capsys: pytest.CaptureFixture[str], name: str = "tsk_1") -> str:
    assert home.run("show", name) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("method", "params", "kind"),
    [
        ("roots/list", "{}", "roots/list"),
        ("sampling/createMessage", '{"messages": []}', "sampling/createMessage"),
        ("elicitation/create", '{"mode": "dance", "message": "Hop"}', "an elicitation in the mode dance"),
    ],
)
def test_a_question_that_is_not_answered_here_says_so_and_how_to_cancel(
    home: Installation, capsys: pytest.CaptureFixture[str], method: str, params: str, kind: str
) -> None:
    home.task("tsk_1", NewQuestion("k", "p", method, f'{{"method": "{method}", "params": {params}}}'))
    text = shown(home, capsys)
    assert f"This installation does not answer {kind}" in text
    assert "`taskinbox cancel tsk_1`" in text
    assert "--defaults" not in text


@pytest.mark.rule("elicitation.what-and-why")
def test_each_field_is_a_line_with_kind_choices_bounds_and_default(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = {
        "type": "object",
        "required": ["where", "count"],
        "properties": {
            "where": {"oneOf": [{"const": "eu", "title": "Europe"}, {"const": "us", "title": "America"}]},
            "count": {"type": "integer", "minimum": 1, "maximum": 10, "default": 3},
            "sure": {"type": "boolean", "default": False},
            "note": {"type": "string", "maxLength": 20, "title": "Your note \u001b[31m"},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "default": ["a", "b"], "maxItems": 2},
            "api_key": {"type": "string", "default": "hunter2"},
            "deep": {"type": "object", "properties": {"x": {"type": "object"}}},
        },
    }
    home.task("tsk_1", form_question("k", json.dumps(schema)))
    lines = {re.split(r"  +", line.strip())[0]: line for line in shown(home, capsys).splitlines()}
    assert "one of: eu (Europe) | us (America)" in lines["where *"]
    assert re.search(r"whole number, 1 to 10 +3$", lines["count *"])
    assert re.search(r"true or false +false$", lines["sure"])
    assert "up to 20 characters" in lines["note"]
    assert "Your note ␛[31m" in lines["note"]
    assert "a | b" in lines["tags"]
    assert re.search(r"a, b$", lines["tags"])
    assert "hunter2" not in str(lines)
    assert "JSON" in lines["deep"]


def test_a_form_without_fields_and_one_that_can_t_be_read_say_how_to_answer(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.task("none", form_question("k", '{"type": "object", "properties": {}}'))
    assert "--defaults" in shown(home, capsys, "none")
    home.task("odd", form_question("k", '{"type": "array"}'))
    assert "--accept JSON" in shown(home, capsys, "odd")
    home.task("any", form_question("k", '{"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}'))
    assert "--accept" in shown(home, capsys, "any") or "--defaults" in shown(home, capsys, "any")


def test_people_see_characters_programs_see_ascii_and_nobody_a_control(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    result = '{"content": [], "structuredContent": {"a": "\\u2603 \\ud83d\\ude00 \\u202e\\u009b \\\\u2603"}}'
    error = '{"code": 1, "message": "na\\u00efve \\u001b[1m"}'
    home.task("tsk_1", status="failed", tracking="ended", result_json=result, error_json=error)
    text = shown(home, capsys)
    assert "☃ 😀 \\u{202e}\\u{9b} \\\\u2603" in text
    assert "naïve" in text
    assert not set(text) & set("\x1b\x9b\u202e")
    assert home.run("show", "tsk_1", "--json") == 0
    assert capsys.readouterr().out.isascii()


def test_readable_json_changes_no_token() -> None:
    assert readable_json('{"n": 1.100, "q": "\\u0022\\n", "half": "\\ud83d"}') == (
        '{"n": 1.100, "q": "\\u0022\\n", "half": "\\ud83d"}'
    )


def test_a_name_in_a_suggested_command_can_do_no_harm_in_a_shell() -> None:
    assert command_name(TaskKey("s", "tsk_1")) == "tsk_1"
    assert command_name(TaskKey("s", "x; rm -rf ~")) == "'x; rm -rf ~'"


def test_a_lost_call_offers_to_repeat_or_to_drop_it(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    state = TaskState("working", tracking="lost", reason="Outcome unknown.")
    home.store.add_task(NewTask(TaskKey("lab", "call-1"), kind="call", tool="x", state=state))
    text = shown(home, capsys, "call-1")
    assert "`taskinbox call --again call-1`" in text
    assert "`taskinbox forget call-1`" in text


def test_history_says_added_once_and_what_a_problem_was(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    call, task = TaskKey("lab", "call-1"), TaskKey("lab", "tsk_1")
    home.store.add_task(NewTask(call, kind="call", tool="x"))
    became = NewTask(task, tool="x", state=TaskState("working"))
    met = NewEvent("problem_met", '{"problem": "Unreachable: gone \\u001b[1m"}')
    home.store.change_task(call, lambda *_: TaskWrites(became=became))
    home.store.change_task(task, lambda *_: TaskWrites(events=(met,)))
    history = shown(home, capsys).split("history\n")[1].splitlines()
    assert sum(" added" in line for line in history) == 1
    assert any(line.endswith("problem met  Unreachable: gone ␛[1m") for line in history)


@pytest.mark.parametrize(("columns", "is_cut"), [(80, True), (160, False)])
def test_a_long_key_is_abbreviated_on_a_narrow_terminal_alone(
    home: Installation,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
    is_cut: bool,
) -> None:
    key = "elicitation-" + "x" * 36 + "-deployment"
    home.task("tsk_1", form_question(key, "{}"))
    assert key in shown(home, capsys)
    monkeypatch.setattr(output, "is_terminal", lambda stream: True)
    monkeypatch.setattr(output.shutil, "get_terminal_size", lambda: os.terminal_size((columns, 24)))
    text = shown(home, capsys)
    assert (key not in text) == is_cut
    abbreviated = next(line.split(" (")[0] for line in text.splitlines() if line.startswith("elicitation-"))
    assert home.run("answer", "tsk_1", abbreviated, "--decline") == 0


def answered(home: Installation, state: QuestionState, kept: str | None = None) -> None:
    """Give a question an answer (of which *kept* is kept), and let it come to *state*."""
    key = home.task("tsk_1", form_question("k", "{}"))
    (question,) = home.questions(key)
    reply = Reply(question.id, question.fingerprint, '{"action": "decline"}', kept)
    home.store.queue_answers(key, [reply], by="ada")
    if state == "queued":
        return
    home.store.claim([question.id], owner="me", dead=lambda _: False)
    if state == "sent":
        return
    steps: dict[QuestionState, tuple[QuestionState, ...]] = {"open": ("acknowledged", "open")}
    for step in steps.get(state, (state,)):
        change = QuestionChange(question.id, step, still_asked=4 if step == "acknowledged" else None)
        home.store.change_task(key, lambda *_, change=change: TaskWrites(question_changes=(change,)))


@pytest.mark.parametrize("state", ["queued", "sent", "acknowledged", "settled"])
def test_the_answer_that_stands_is_shown_as_such(
    home: Installation, capsys: pytest.CaptureFixture[str], state: QuestionState
) -> None:
    answered(home, state)
    text = shown(home, capsys)
    assert f"): {state}\n" in text
    assert '  answered: {"action": "decline"}' in text


@pytest.mark.parametrize("state", ["open", "refused", "withdrawn"])
def test_an_answer_that_does_not_stand_any_more_is_the_former_one(
    home: Installation, capsys: pytest.CaptureFixture[str], state: QuestionState
) -> None:
    answered(home, state)
    text = shown(home, capsys)
    assert f"): {state}\n" in text
    assert "answered: " not in text
    assert '  the former answer: {"action": "decline"}' in text


def test_an_answer_whose_secrets_are_gone_is_given_anew_and_not_sent_again(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    answered(home, "acknowledged", kept='{"action": "accept", "content": {"password": "sent, not kept"}}')
    text = shown(home, capsys)
    assert "sends it again" not in text
    assert "has to be answered anew: `taskinbox answer --again tsk_1` opens it again" in text
