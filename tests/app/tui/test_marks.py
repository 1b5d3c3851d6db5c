"""Which tasks can be marked together, and when a mark goes; pure."""

from __future__ import annotations

from dataclasses import replace

from app.tui.marks import MOST_MARKS, Marks
from storage.records import QuestionRecord, TaskKey


def asks(id: int, fingerprint: str = "same", *, task: str | None = None, **more: object) -> QuestionRecord:
    found = QuestionRecord(
        id=id,
        task=TaskKey("ci", task or f"t{id}"),
        key="approve",
        round=0,
        fingerprint=fingerprint,
        method="elicitation/create",
        request_json='{"method": "elicitation/create", "params": {"message": "m"}}',
        state="open",
        position=0,
        asked_at=0,
    )
    return replace(found, **more)  # type: ignore[arg-type]


def test_tasks_that_ask_the_same_are_marked_together_in_the_order_of_marking() -> None:
    marks = Marks()
    for id in (2, 1, 3):
        assert marks.toggle(TaskKey("ci", f"t{id}"), [asks(id)]) is None
    assert [question.id for question in marks.together()] == [2, 1, 3]
    assert marks.toggle(TaskKey("ci", "t1"), []) is None
    assert [question.id for question in marks.together()] == [2, 3]


def test_what_asks_something_else_or_nothing_is_not_marked() -> None:
    marks = Marks()
    marks.toggle(TaskKey("ci", "t1"), [asks(1)])
    assert "something else" in (marks.toggle(TaskKey("ci", "t2"), [asks(2, "other")]) or "")
    assert "no open question" in (marks.toggle(TaskKey("ci", "t3"), []) or "")
    assert "no open question" in (marks.toggle(TaskKey("ci", "t4"), [asks(4, state="queued")]) or "")
    sampling = asks(5, method="sampling/createMessage", request_json='{"method": "sampling/createMessage"}')
    assert "no open question" in (marks.toggle(TaskKey("ci", "t5"), [sampling]) or "")
    assert marks.keys == {TaskKey("ci", "t1")}


def test_of_several_questions_the_one_that_all_ask_is_answered() -> None:
    marks = Marks()
    marks.toggle(TaskKey("ci", "t1"), [asks(1, "a", task="t1"), asks(2, "b", task="t1")])
    marks.toggle(TaskKey("ci", "t2"), [asks(3, "b", task="t2"), asks(4, "c", task="t2")])
    assert [question.id for question in marks.together()] == [2, 3]
    assert "something else" in (marks.toggle(TaskKey("ci", "t3"), [asks(5, "a"), asks(6, "c")]) or "")


def test_a_mark_goes_with_the_very_question_it_was_made_for() -> None:
    marks = Marks()
    stored = {TaskKey("ci", f"t{id}"): [asks(id)] for id in (1, 2, 3)}
    for key, questions in stored.items():
        marks.toggle(key, questions)
    assert not marks.follow(lambda key: stored[key])
    stored[TaskKey("ci", "t1")] = [asks(1, state="acknowledged")]
    stored[TaskKey("ci", "t2")] = [asks(22, task="t2")]  # the same words, asked anew
    assert marks.follow(lambda key: stored[key])
    assert marks.keys == {TaskKey("ci", "t3")}


def test_there_are_only_so_many_marks() -> None:
    marks = Marks()
    for id in range(MOST_MARKS):
        assert marks.toggle(TaskKey("ci", f"t{id}"), [asks(id)]) is None
    assert str(MOST_MARKS) in (marks.toggle(TaskKey("ci", "more"), [asks(999)]) or "")
    assert len(marks) == MOST_MARKS
    marks.clear()
    assert marks.together() == []
