"""``watch``: a line per change, and when it ends."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from fakes.cli_engine import Installation, change, form_question

from storage.records import NewTask, Reply, TaskKey, TaskState, TaskWrites
from storage.store import Store


def becomes(key: TaskKey, **state: object) -> Callable[[Store], TaskKey]:
    return lambda store: change(store, key, **state)


def asks(key: TaskKey, name: str) -> Callable[[Store], TaskKey]:
    def step(store: Store) -> TaskKey:
        store.change_task(key, lambda task, _: TaskWrites(new_questions=(form_question(name, "{}"),)))
        return key

    return step


END = {"status": "completed", "tracking": "ended"}


def test_a_line_for_each_change_until_the_task_ends(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    key = home.task("tsk_1")
    home.engine.script = [
        becomes(key, status_message="step 1"),
        becomes(key, poll_interval_ms=7),
        becomes(key, status_message="step 2\x1b[1m"),
        becomes(key, status_message=None, **END),
    ]
    assert home.run("watch", "tsk_1") == 0
    assert capsys.readouterr().out.splitlines() == [
        "lab/tsk_1  working",
        "lab/tsk_1  working  step 1",
        "lab/tsk_1  working  step 2␛[1m",
        "lab/tsk_1  completed",
    ]


def test_json_is_one_object_a_line(home: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    key = home.task("tsk_1")
    home.engine.script = [becomes(key, status_message="x"), becomes(key, **END)]
    assert home.run("watch", "tsk_1", "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["statusMessage"] for line in lines] == [None, "x", "x"]
    assert lines[-1]["section"] == "finished"


def test_it_ends_with_6_at_the_first_open_question(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    key = home.task("tsk_1")
    home.engine.script = [asks(key, "sure"), becomes(key, **END)]
    assert home.run("watch", "tsk_1") == 6
    assert capsys.readouterr().out.splitlines()[-1].endswith("asks: sure")


@pytest.mark.parametrize(("until", "code"), [("input", 6), ("end", 0)])
def test_until_end_waits_through_questions(home: Installation, until: str, code: int) -> None:
    key = home.task("tsk_1")
    home.engine.script = [asks(key, "sure"), becomes(key, **END)]
    assert home.run("watch", "tsk_1", "--until", until) == code


@pytest.mark.parametrize("until", ["input", "end"])
@pytest.mark.parametrize(
    "state",
    [
        {"status": "failed", "tracking": "ended"},
        {"status": "cancelled", "tracking": "ended"},
        {"status": "completed", "tracking": "ended", "is_error": True},
        {"tracking": "lost", "reason": "unknown to the server"},
        {"tracking": "stopped", "reason": "its server was removed"},
    ],
)
def test_a_task_that_does_not_end_well_ends_with_1(
    home: Installation, until: str, state: dict[str, object]
) -> None:
    key = home.task("tsk_1")
    home.engine.script = [becomes(key, **state)]
    assert home.run("watch", "tsk_1", "--until", until) == 1


def test_a_task_that_is_over_already_needs_no_engine_to_run(home: Installation) -> None:
    home.task("tsk_1", **END)
    home.engine.script = [lambda store: pytest.fail("the engine was run")]
    assert home.run("watch", "tsk_1") == 0


@pytest.mark.parametrize("argv", [["watch", "tsk_1"], ["watch"], ["watch", "--until", "end"]])
def test_when_the_time_is_over_it_ends_with_7(home: Installation, argv: list[str]) -> None:
    home.task("tsk_1")
    assert home.run(*argv, "--timeout", "0.05") == 7


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf", "soon"])
def test_a_timeout_is_a_number_of_seconds(home: Installation, seconds: str) -> None:
    home.task("tsk_1")
    assert home.run("watch", "tsk_1", "--timeout", seconds) == 2


def test_a_call_is_followed_into_its_task(home: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    call, task = TaskKey("lab", "call-1"), TaskKey("lab", "tsk_1")
    home.store.add_task(NewTask(call, kind="call", state=TaskState("working")))

    def became(store: Store) -> TaskKey:
        new = NewTask(task, state=TaskState("working"))
        store.change_task(call, lambda _stored, _: TaskWrites(became=new))
        return call

    home.engine.script = [became, becomes(task, **END)]
    assert home.run("watch", "call-1") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "lab/call-1",
        "lab/tsk_1",
        "lab/tsk_1",
    ]


def test_a_task_that_is_forgotten_meanwhile_ends_with_3(home: Installation) -> None:
    key = home.task("tsk_1")

    def forget(store: Store) -> TaskKey:
        store.forget(key)
        return key

    home.engine.script = [forget]
    assert home.run("watch", "tsk_1") == 3


def test_without_a_task_all_active_ones_are_watched(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = home.task("a"), home.task("b")
    home.task("old", **END)
    home.engine.script = [becomes(first, **END), becomes(second, **END)]
    assert home.run("watch", "--until", "end") == 0
    assert capsys.readouterr().out.splitlines() == [
        "lab/a  working",
        "lab/b  working",
        "lab/a  completed",
        "lab/b  completed",
    ]


def test_without_a_task_until_input_ends_with_the_first_question(home: Installation) -> None:
    home.task("a")
    second = home.task("b")
    home.engine.script = [asks(second, "sure")]
    assert home.run("watch", "--until", "input") == 6


def test_an_engine_that_breaks_is_not_waited_for(home: Installation) -> None:
    home.task("tsk_1")

    def breaks(store: Store) -> TaskKey:
        raise ZeroDivisionError

    home.engine.script = [breaks]
    with pytest.raises(ZeroDivisionError):
        home.run("watch", "tsk_1")
    assert home.engine.is_closed


def test_what_changes_outside_of_the_line_prints_no_second_one(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    key = home.task("tsk_1", form_question("a", "{}"), form_question("b", "{}"))
    first, second = home.questions(key)

    def answered(store: Store) -> TaskKey:
        for question in (first, second):
            reply = Reply(question.id, question.fingerprint, '{"action": "decline"}')
            store.queue_answers(key, [reply], by="x")
        return key

    def sent(store: Store) -> TaskKey:
        store.claim([first.id], owner="o", dead=lambda owner: False)
        return key

    home.engine.script = [answered, sent, becomes(key, status="working"), becomes(key, **END)]
    for command in (["watch", "tsk_1", "--until", "end"], ["watch", "--until", "end"]):
        home.run(*command)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].endswith("completed")
    assert len(set(lines)) == len(lines)
    assert len(lines) >= 4
