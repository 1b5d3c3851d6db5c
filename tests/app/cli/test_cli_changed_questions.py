"""``answer`` where the question is not the one that was read: the same line approves nothing new."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.cli_engine import Installation, form_question
from fakes.cli_program import run, tracking
from fakes.task_script import APPROVE, TaskScript

from app.engine.commands import Answer, Delivery, EngineError
from storage.records import NewQuestion, QuestionChange, TaskKey, TaskWrites

OK = '{"type": "object", "properties": {"ok": {"type": "boolean"}}}'
YES = ("--field", "ok=true")
FIRST = "a" * 12 + "1" * 52
OTHER = "b" * 12 + "2" * 52


def asking(key: str, fingerprint: str, message: str, fault: str | None = None) -> NewQuestion:
    return replace(form_question(key, OK, message), fingerprint=fingerprint, fault=fault)


def turn(home: Installation, key: TaskKey, *new: NewQuestion) -> None:
    """Let the server ask *new* instead of all that is open or on its way."""

    def decide(_: object, stored: Sequence[object]) -> TaskWrites:
        open_ones = [q for q in home.questions(key) if q.is_open or q.state == "queued"]
        gone = tuple(QuestionChange(q.id, "withdrawn") for q in open_ones)
        return TaskWrites(question_changes=gone, new_questions=new)

    home.store.change_task(key, decide)


def answers(home: Installation) -> int:
    return sum(what[0] == "answer" for what in home.engine.asked)


def at_delivery(home: Installation, end: Callable[[], Delivery]) -> None:
    """Let *end* happen while the next answer is delivered, and only then."""
    real = home.engine.answer

    async def answer(task: TaskKey, given: Sequence[Answer]) -> Delivery:
        home.engine.answer = real  # type: ignore[method-assign]
        await real(task, given)
        return end()

    home.engine.answer = answer  # type: ignore[method-assign]


@pytest.fixture
def deleting(home: Installation) -> TaskKey:
    """A task that asks something else under the key of its first question."""
    key = home.task("t1", asking("ok", FIRST, "Deploy?"))
    turn(home, key, asking("ok", OTHER, "DELETE ALL?", "The server had used this key for another question."))
    return key


@pytest.mark.parametrize("other_key", ["ok", "second"])
@pytest.mark.parametrize("failure", [None, "closed"])
def test_what_is_asked_instead_is_printed_when_a_delivery_finds_another_question(
    home: Installation, capsys: pytest.CaptureFixture[str], other_key: str, failure: str | None
) -> None:
    key = home.task("t1", asking("ok", FIRST, "Deploy?"))

    def end() -> Delivery:
        turn(home, key, asking(other_key, OTHER, "DELETE ALL?"))
        if failure is not None:
            raise EngineError("closed", "The question changed since it was shown.")
        return Delivery("withdrawn", "The question vanished or changed.")

    at_delivery(home, end)
    assert home.run("answer", "t1", *YES, "--json") == 3
    captured = capsys.readouterr()
    assert "  | DELETE ALL?" in captured.err
    assert "asks something else now; nothing was sent to it" in captured.err
    assert "Deploy?" not in captured.err
    assert "DELETE" not in captured.out


def test_nothing_more_is_said_where_nothing_is_asked_instead(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    key = home.task("t1", asking("ok", FIRST, "Deploy?"))

    def end() -> Delivery:
        turn(home, key)
        return Delivery("withdrawn", "The question vanished or changed.")

    at_delivery(home, end)
    assert home.run("answer", "t1", *YES) == 3
    assert capsys.readouterr().err == "The question vanished or changed.\n"


@pytest.mark.parametrize(
    "said",
    [YES, ("ok", *YES), ("--decline",), ("--dismiss",), ("--defaults",), ("--defaults", "--dry-run"), ()],
)
def test_a_key_that_stood_for_another_question_is_answered_by_its_fingerprint_alone(
    home: Installation, deleting: TaskKey, capsys: pytest.CaptureFixture[str], said: tuple[str, ...]
) -> None:
    for _ in range(2):
        assert home.run("answer", "t1", *said) == 6
        captured = capsys.readouterr()
        assert "  | DELETE ALL?" in captured.err
        assert "nothing was sent" in captured.err
        assert not captured.out
    assert not home.engine.asked
    (option,) = re.findall(r"--fingerprint [0-9a-f]+", captured.err)
    assert home.run("answer", "t1", *(said or ("--decline",)), *option.split()) == 0
    assert answers(home) == ("--dry-run" not in said)


def test_a_question_that_came_back_after_another_of_its_key_is_no_exception(
    home: Installation, deleting: TaskKey
) -> None:
    first, other = home.questions(deleting)
    back = (QuestionChange(other.id, "withdrawn"), QuestionChange(first.id, "open"))
    home.store.change_task(deleting, lambda *_: TaskWrites(question_changes=back))
    assert home.run("answer", "t1", *YES) == 6
    assert home.run("answer", "t1", *YES, "--fingerprint", OTHER) == 3
    assert answers(home) == 0
    assert home.run("answer", "t1", *YES, "--fingerprint", FIRST) == 0


def test_a_reused_key_that_only_now_came_is_not_answered_when_said_again(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    key = home.task("t1", asking("ok", FIRST, "Deploy?"))
    turn(home, key)
    home.engine.on_refresh = lambda _: turn(home, key, asking("ok", OTHER, "DELETE ALL?"))
    for _ in range(2):
        assert home.run("answer", "t1", *YES) == 6
        assert "DELETE ALL?" in capsys.readouterr().err
    assert answers(home) == 0


def test_the_next_round_of_a_call_under_the_same_key_is_another_question(home: Installation) -> None:
    key = home.task("call-1", replace(asking("ok", FIRST, "Deploy?"), round=1))
    assert home.run("answer", "call-1", *YES) == 0
    turn(home, key, replace(asking("ok", OTHER, "DELETE ALL?"), round=2))
    assert home.run("answer", "call-1", *YES) == 6
    assert home.run("answer", "call-1", *YES, "--fingerprint", OTHER) == 0


def test_the_other_questions_of_such_a_task_are_answered_as_ever(
    home: Installation, deleting: TaskKey
) -> None:
    home.store.change_task(
        deleting, lambda *_: TaskWrites(new_questions=(asking("note", "c" * 64, "A note?"),))
    )
    assert home.run("answer", "t1", "note", *YES) == 0
    assert home.run("answer", "t1", *YES) == 6


def test_the_beginning_of_a_fingerprint_that_fits_two_questions_names_neither(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    alike = FIRST[:12] + "2" * 52
    key = home.task("t1", asking("ok", FIRST, "Deploy?"))
    turn(home, key, asking("ok", alike, "DELETE ALL?"))
    assert home.run("answer", "t1", *YES, "--fingerprint", FIRST[:8]) == 2
    assert "more characters" in capsys.readouterr().err
    assert home.run("answer", "t1", *YES) == 6
    (option,) = re.findall(r"--fingerprint [0-9a-f]+", capsys.readouterr().err)
    assert answers(home) == 0
    assert home.run("answer", "t1", *YES, *option.split()) == 0


@pytest.mark.parametrize("given", [OTHER, OTHER[:8], OTHER.upper(), OTHER[:10].upper()])
@pytest.mark.parametrize("named", [(), ("two",), ("tw",)])
def test_a_fingerprint_says_which_of_several_open_questions_is_meant(
    home: Installation, given: str, named: tuple[str, ...]
) -> None:
    key = home.task("t1", asking("one", FIRST, "Deploy?"), asking("two", OTHER, "Delete?"))
    assert home.run("answer", "t1", *named, *YES, "--fingerprint", given) == 0
    assert {q.key: q.state for q in home.questions(key)} == {"one": "open", "two": "queued"}


def test_a_key_that_is_given_has_to_fit_the_fingerprint(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.task("t1", asking("one", FIRST, "Deploy?"), asking("two", OTHER, "Delete?"))
    assert home.run("answer", "t1", "one", *YES, "--fingerprint", OTHER) == 3
    assert "not what you read" in capsys.readouterr().err
    assert home.run("answer", "t1", *YES, "--fingerprint", "c" * 64) == 3
    error = capsys.readouterr().err
    assert FIRST in error
    assert OTHER in error
    assert answers(home) == 0


def test_two_keys_of_one_content_are_told_apart_by_the_key(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.task("t1", asking("one", FIRST, "Deploy?"), asking("two", FIRST, "Deploy?"))
    assert home.run("answer", "t1", *YES, "--fingerprint", FIRST) == 2
    assert "say which:\n  one\n  two" in capsys.readouterr().err
    assert home.run("answer", "t1", "two", *YES, "--fingerprint", FIRST) == 0


def test_the_fingerprint_of_an_answered_question_says_what_became_of_it(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.task("t1", asking("ok", FIRST, "Deploy?"))
    assert home.run("answer", "t1", *YES, "--fingerprint", FIRST) == 0
    assert home.run("answer", "t1", *YES, "--fingerprint", FIRST) == 3
    assert "ok was answered by tester already" in capsys.readouterr().err


@pytest.fixture
async def server() -> AsyncIterator[TaskScript]:
    async with TaskScript() as script:
        script.ask("t1", ok=APPROVE)
        yield script


@pytest.mark.e2e
async def test_the_same_line_again_does_not_approve_what_a_server_put_in_the_place_of_a_question(
    tmp_path: Path, server: TaskScript
) -> None:
    program = await tracking(tmp_path / "home", "t1", ci=server.url)
    other = json.loads(json.dumps(APPROVE))
    other["params"]["message"] = "DELETE ALL?"
    server.ask("t1", ok=other)
    line = ("answer", "t1", *YES)
    for code in (3, 6, 6):
        done = await run(program, *line, code=code)
        assert "  | DELETE ALL?" in done.stderr
    assert server.updates == []
    (option,) = re.findall(r"--fingerprint [0-9a-f]+", done.stderr)
    await run(program, *line, *option.split())
    assert len(server.updates) == 1
