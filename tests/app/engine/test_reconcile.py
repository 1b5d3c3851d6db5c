"""Reconciliation, as tables: every stored state of a question against every way of seeing it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.commands import unanswerable
from app.engine.observed import Asked, Observed, asked, fingerprint
from app.engine.reconcile import (
    FAULT_ASKED_AGAIN,
    FAULT_REUSED,
    QUESTIONS_PER_TASK,
    STILL_ASKED_MOST,
    VERSIONS_PER_KEY,
    lost,
    problem,
    reconcile,
    resumed,
    stopped,
)
from storage.records import QuestionRecord, QuestionState, TaskKey, TaskRecord, TaskState, TaskWrites

KEY = TaskKey("ci", "t-1")
FORM: dict[str, Any] = {
    "method": "elicitation/create",
    "params": {"message": "Deploy?", "requestedSchema": {}},
}
OTHER: dict[str, Any] = {"method": "elicitation/create", "params": {"message": "Really?"}}
STATES: tuple[QuestionState, ...] = (
    "open",
    "refused",
    "queued",
    "sent",
    "acknowledged",
    "settled",
    "withdrawn",
)


def task(state: TaskState | None = None, **changes: Any) -> TaskRecord:
    state = state or TaskState(
        status="input_required", created_at=1_000, ttl_ms=60_000, poll_interval_ms=1_000
    )
    return TaskRecord(
        KEY, "task", "tools/call", "deploy", "running", 0, 1_000, 1_000, None, replace(state, **changes)
    )


def question(
    state: QuestionState, request: dict[str, Any] = FORM, key: str = "q", **more: Any
) -> QuestionRecord:
    one = asked(key, request)
    base = {"id": 1, "round": 0, "position": 0, "asked_at": 1_000, **more}
    return QuestionRecord(
        task=KEY,
        key=key,
        fingerprint=one.fingerprint,
        method=one.method,
        request_json=one.request_json,
        state=state,
        **base,
    )


def seen(status: str = "input_required", *requests: Asked, **more: Any) -> Observed:
    base = {"created_at": 1_000, "ttl_ms": 60_000, "poll_interval_ms": 1_000, **more}
    return Observed(status, asked=requests, **base)


def kinds(writes: TaskWrites) -> list[str]:
    return [one.kind for one in writes.events]


SAME = asked("q", FORM)
CHANGED = asked("q", OTHER)

# What becomes of a stored question. "same": it is asked, unchanged. "changed": its key asks something else.
# "gone": it is not asked any more. "over": the task has ended. None: nothing is written about it.
TABLE: dict[QuestionState, dict[str, QuestionState | None]] = {
    "open": {"same": None, "changed": "withdrawn", "gone": "withdrawn", "over": "withdrawn"},
    "refused": {"same": None, "changed": "withdrawn", "gone": "withdrawn", "over": "withdrawn"},
    "queued": {"same": None, "changed": "withdrawn", "gone": "withdrawn", "over": "withdrawn"},
    "sent": {"same": None, "changed": "settled", "gone": "settled", "over": "settled"},
    "acknowledged": {"same": "acknowledged", "changed": "settled", "gone": "settled", "over": "settled"},
    "settled": {"same": "acknowledged", "changed": None, "gone": None, "over": None},
    "withdrawn": {"same": "open", "changed": None, "gone": None, "over": None},
}
SIGHTS = {
    "same": seen("input_required", SAME),
    "changed": seen("input_required", CHANGED),
    "gone": seen("working"),
    "over": seen("completed", result_json="{}"),
}


@pytest.mark.rule("tasks.get-all-outstanding", "tasks.keys-unique", "wire.snapshot")
@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("state", STATES)
def test_each_state_of_a_question_meets_each_sight_of_it(state: QuestionState, sight: str) -> None:
    writes = reconcile(task(), [question(state)], SIGHTS[sight])
    expected = TABLE[state][sight]
    assert [change.state for change in writes.question_changes] == ([expected] if expected else [])
    assert [new.fault for new in writes.new_questions] == ([FAULT_REUSED] if sight == "changed" else [])


def test_a_question_is_taken_in_once_with_exactly_what_was_asked() -> None:
    writes = reconcile(task(TaskState(status="working")), [], seen("input_required", SAME))
    (new,) = writes.new_questions
    assert (new.key, new.method, new.round, new.fault) == ("q", "elicitation/create", 0, None)
    assert json.loads(new.request_json) == FORM
    assert "question_asked" in kinds(writes)
    assert "status_changed" in kinds(writes)
    assert writes.unarchive


@pytest.mark.rule("tasks.input-deduplicated")
def test_the_same_look_again_changes_nothing() -> None:
    state = reconcile(task(TaskState()), [], seen("input_required", SAME)).state
    assert state is not None
    again = reconcile(task(state), [question("open")], seen("input_required", SAME))
    assert not again
    assert again == TaskWrites()


@pytest.mark.rule("wire.last-updated-is-no-change")
def test_the_time_of_the_poll_is_no_change() -> None:
    first = reconcile(task(TaskState()), [], seen("working", last_updated_at=5, snapshot_json="{1}")).state
    assert first is not None
    assert not reconcile(task(first), [], seen("working", last_updated_at=6, snapshot_json="{2}"))


@pytest.mark.rule(
    "tasks.ttl-changes",
    "tasks.poll-interval-changes",
    "tasks.poll-interval-varies",
    "tasks.ttl-varies",
    "wire.ttl",
    "wire.poll-interval",
)
@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"status_message": "half way"}, "progressed"),
        ({"ttl_ms": None}, "timing_changed"),
        ({"poll_interval_ms": 9_000}, "timing_changed"),
        ({"status": "input_required", "asked": (SAME,)}, "question_asked"),
        ({"status": "cancelled"}, "task_cancelled"),
    ],
)
def test_each_change_of_content_is_a_fact(change: dict[str, Any], kind: str) -> None:
    first = reconcile(task(TaskState()), [], seen("working")).state
    assert first is not None
    writes = reconcile(task(first), [], replace(seen("working"), **change))
    assert writes.state is not None
    assert kind in kinds(writes)


@pytest.mark.rule("tasks.poll-interval-varies")
def test_a_missing_poll_interval_keeps_the_last_one_and_a_missing_message_does_not() -> None:
    old = TaskState(status="working", status_message="a", poll_interval_ms=7, created_at=1_000, ttl_ms=60_000)
    state = reconcile(task(old), [], seen("working", poll_interval_ms=None)).state
    assert state is not None
    assert (state.poll_interval_ms, state.status_message) == (7, None)


@pytest.mark.rule("tasks.is-error-completed", "wire.is-error-completed")
@pytest.mark.parametrize(
    ("sight", "kind", "is_error"),
    [
        (seen("completed", result_json='{"content":[]}'), "task_completed", False),
        (seen("completed", result_json="{}", is_error=True), "task_completed", True),
        (seen("failed", error_json='{"code":-1}'), "task_failed", False),
        (seen("cancelled"), "task_cancelled", False),
    ],
)
def test_a_task_that_ends_is_over_with_what_it_left(sight: Observed, kind: str, is_error: bool) -> None:
    writes = reconcile(task(), [question("open"), question("acknowledged", id=2, key="r")], sight)
    state = writes.state
    assert state is not None
    assert (state.tracking, state.is_error) == ("ended", is_error)
    assert (state.result_json, state.error_json) == (sight.result_json, sight.error_json)
    assert kind in kinds(writes)
    assert writes.unarchive


def test_questions_in_a_reply_that_ends_the_task_are_not_asked() -> None:
    assert not reconcile(task(), [], seen("completed", SAME)).new_questions


@pytest.mark.rule("tasks.five-statuses")
@pytest.mark.parametrize("sight", [seen("working"), seen("input_required", SAME), seen("failed")])
def test_a_task_that_is_over_is_not_brought_back_by_an_overtaken_reply(sight: Observed) -> None:
    assert not reconcile(task(status="completed", tracking="ended"), [question("settled")], sight)


@pytest.mark.rule("wire.order-of-keys")
def test_new_questions_are_ordered_by_key_whatever_the_order_of_the_reply() -> None:
    keys = ["b:2", "a", "b:10", "A"]
    orders = [keys, keys[::-1]]
    found = [
        [new.key for new in reconcile(task(), [], seen("x", *(asked(k, FORM) for k in o))).new_questions]
        for o in orders
    ]
    assert found[0] == found[1] == sorted(keys)


@pytest.mark.rule("tasks.update-shows-later", "wire.settling")
def test_a_question_that_is_still_there_after_the_acknowledgement_is_counted_and_said_once() -> None:
    counted, said = [], []
    stored = question("acknowledged")
    for _ in range(STILL_ASKED_MOST + 5):
        writes = reconcile(task(), [stored], seen("input_required", SAME))
        said += kinds(writes)
        for change in writes.question_changes:
            assert change.state == "acknowledged"
            stored = replace(stored, still_asked=change.still_asked or 0)
            counted.append(change.still_asked)
    assert counted == list(range(1, STILL_ASKED_MOST + 1))
    assert said.count("question_still_asked") == 1
    assert not reconcile(task(), [stored], seen("input_required", SAME)).new_questions


@pytest.mark.rule("tasks.keys-not-reused")
def test_a_settled_question_asked_again_is_a_fault_and_never_a_new_question() -> None:
    writes = reconcile(task(), [question("settled")], seen("input_required", SAME))
    (change,) = writes.question_changes
    assert (change.state, change.fault, change.still_asked) == ("acknowledged", FAULT_ASKED_AGAIN, 1)
    assert not writes.new_questions


def test_a_withdrawn_question_that_comes_back_is_open_and_brings_the_task_back() -> None:
    writes = reconcile(task(), [question("withdrawn")], seen("input_required", SAME))
    assert [c.state for c in writes.question_changes] == ["open"]
    assert kinds(writes) == ["question_reopened"]
    assert writes.unarchive


@pytest.mark.rule("wire.asked-again")
def test_a_server_that_changes_its_question_at_every_look_is_stopped() -> None:
    stored = [
        question("withdrawn", {"method": "elicitation/create", "params": {"n": n}}, id=n)
        for n in range(VERSIONS_PER_KEY)
    ]
    writes = reconcile(
        task(), stored, seen("input_required", asked("q", {"method": "m", "params": {"n": -1}}))
    )
    assert not writes.new_questions
    assert writes.state is not None
    assert "no longer taken in" in (writes.state.problem or "")


def test_a_server_that_asks_without_end_is_stopped() -> None:
    flood = [asked(f"k{n:05}", FORM) for n in range(QUESTIONS_PER_TASK + 50)]
    writes = reconcile(task(), [], seen("input_required", *flood))
    assert len(writes.new_questions) == QUESTIONS_PER_TASK
    assert writes.state is not None
    assert "more than 500 questions" in (writes.state.problem or "")


def test_needing_input_and_asking_nothing_readable_is_a_problem_that_names_the_fault() -> None:
    writes = reconcile(task(), [], seen("input_required", faults=("inputRequests.q is not an object",)))
    assert writes.state is not None
    assert "inputRequests.q is not an object" in (writes.state.problem or "")


def test_needing_input_with_nothing_left_to_ask_after_an_answer_is_no_problem() -> None:
    writes = reconcile(task(), [question("acknowledged")], seen("input_required"))
    assert [c.state for c in writes.question_changes] == ["settled"]
    assert writes.state is None


@pytest.mark.rule("wire.two-ways-of-asking")
def test_questions_of_the_call_a_task_came_from_are_left_alone() -> None:
    earlier = replace(question("settled"), task=TaskKey("ci", "call-1"), round=1)
    writes = reconcile(task(), [earlier], seen("input_required", SAME))
    assert [new.fault for new in writes.new_questions] == [None]
    assert not writes.question_changes


@pytest.mark.rule("wire.lost-tasks-stay")
def test_a_task_the_server_does_not_know_is_lost_with_its_record() -> None:
    stored = [question(state, id=n, key=f"k{n}") for n, state in enumerate(STATES)]
    writes = lost(task(), stored, now=2_000, words="no \x1b[31msuch task")
    assert writes.state is not None
    assert (writes.state.tracking, writes.state.status) == ("lost", "input_required")
    assert "does not know" in (writes.state.reason or "")
    assert "\x1b" not in (writes.state.reason or "")
    assert "time to live" not in (writes.state.reason or "")
    assert {c.id: c.state for c in writes.question_changes} == {
        0: "withdrawn",
        1: "withdrawn",
        2: "withdrawn",
    }
    assert kinds(writes) == ["task_lost", "question_withdrawn"]


@pytest.mark.rule("tasks.ttl-is-a-backstop", "tasks.failed-after-ttl", "wire.ttl")
def test_a_loss_after_the_time_to_live_says_so() -> None:
    writes = lost(task(), [], now=61_000)
    assert writes.state is not None
    assert "time to live (1m) is over" in (writes.state.reason or "")


@pytest.mark.parametrize("tracking", ["lost", "ended"])
def test_losing_what_is_lost_or_over_changes_nothing(tracking: Any) -> None:
    assert not lost(task(tracking=tracking), [question("withdrawn")], now=2_000)


def test_a_lost_task_that_answers_again_is_active_and_its_question_open() -> None:
    writes = reconcile(
        task(tracking="lost", reason="gone"), [question("withdrawn")], seen("input_required", SAME)
    )
    assert writes.state is not None
    assert (writes.state.tracking, writes.state.reason) == ("active", None)
    assert [c.state for c in writes.question_changes] == ["open"]
    assert "task_found_again" in kinds(writes)


def test_an_answer_that_was_sent_survives_a_loss() -> None:
    gone = lost(task(), [question("sent")], now=2_000)
    assert not gone.question_changes
    assert gone.state is not None
    back = reconcile(task(gone.state), [question("sent")], seen("input_required", SAME))
    assert not back.question_changes


def test_a_problem_is_written_once_and_cleared_once() -> None:
    first = problem(task(), "unreachable")
    assert first.state is not None
    assert not problem(task(first.state), "unreachable")
    assert problem(task(first.state), None).state == task().state
    assert not problem(task(), None)
    assert reconcile(task(first.state), [question("open")], seen("input_required", SAME)).state is not None


def test_tracking_stops_and_resumes_without_touching_what_is_over() -> None:
    state = stopped(task(), "removed").state
    assert state is not None
    assert (state.tracking, state.reason) == ("stopped", "removed")
    assert not stopped(task(state), "removed")
    assert resumed(task(state)).state == task().state
    assert not resumed(task())
    assert not stopped(task(tracking="ended"), "removed")
    assert not resumed(task(tracking="ended"))


@pytest.mark.rule("roots.not-adopted", "sampling.not-adopted")
@pytest.mark.parametrize(
    ("method", "answered"),
    [
        ("elicitation/create", True),
        ("sampling/createMessage", False),
        ("roots/list", False),
        ("x\x1b", False),
    ],
)
def test_only_elicitations_are_answered(method: str, answered: bool) -> None:
    words = unanswerable(question("open", {"method": method}))
    assert (words is None) == answered
    assert "\x1b" not in (words or "")


def test_a_fingerprint_ignores_the_order_of_keys_and_meta_alone() -> None:
    a = fingerprint({"method": "m", "params": {"x": 1, "y": [1, 2], "_meta": {"t": 1}}})
    assert a == fingerprint({"params": {"y": [1, 2], "x": 1}, "method": "m"})
    for other in ({"x": 1, "y": [2, 1]}, {"x": "1", "y": [1, 2]}, {"x": True, "y": [1, 2]}, {"x": 1}, None):
        assert a != fingerprint({"method": "m", "params": other})
    assert a != fingerprint({"method": "n", "params": {"x": 1, "y": [1, 2]}})


ASKS = st.dictionaries(st.sampled_from("abc"), st.sampled_from([FORM, OTHER]), max_size=3)


@pytest.mark.rule("tasks.input-deduplicated")
@given(st.lists(ASKS, max_size=8), st.data())
def test_whatever_is_asked_in_whatever_order_an_answered_question_is_never_open_again(
    looks: list[dict[str, dict[str, Any]]], data: st.DataObject
) -> None:
    stored: list[QuestionRecord] = []
    state = TaskState()
    answered: set[int] = set()
    for look in looks:
        sight = seen("input_required" if look else "working", *(asked(k, r) for k, r in look.items()))
        writes = reconcile(task(state), stored, sight)
        state = writes.state or state
        by_id = {change.id: change for change in writes.question_changes}
        stored = [replace(q, state=by_id[q.id].state) if q.id in by_id else q for q in stored]
        for new in writes.new_questions:
            stored.append(question("open", look[new.key], new.key, id=len(stored)))
        shown = [q for q in stored if q.is_open]
        assert len({q.key for q in shown}) == len(shown) <= len(look)
        assert not answered & {q.id for q in shown}
        identities = [(q.key, q.fingerprint) for q in stored]
        assert len(set(identities)) == len(identities)
        if shown and data.draw(st.booleans()):
            answered.add(shown[0].id)
            acknowledged = data.draw(st.sampled_from(["sent", "acknowledged"]))
            stored = [replace(q, state=acknowledged) if q.id == shown[0].id else q for q in stored]
        assert not reconcile(task(state), stored, sight).new_questions
