"""Pure: what the store holds of a task, and what a look at it found, become the writes that join them.

The rules are those of the Tasks page ("Task Update Requests": a key is unique for the task's life,
`inputRequests` is a snapshot of what is outstanding, acknowledgements are eventually consistent), and of
servers that break them. `lastUpdatedAt` alone is no change: some servers put the time of the poll there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from app.engine.commands import ASK_ON, asks_too_much, is_refused_here
from app.engine.observed import Observed, to_json
from app.text import duration, inert_line
from storage.records import (
    NewEvent,
    NewQuestion,
    QuestionChange,
    QuestionRecord,
    TaskRecord,
    TaskState,
    TaskWrites,
)

STILL_ASKED_NOTED: Final = 3
"""Looks after an acknowledgement from which on a question that is still there is more than a late
settling."""
STILL_ASKED_MOST: Final = 10
"""The count stops here: a server that never settles must not cause a write at every look."""
VERSIONS_PER_KEY: Final = 20
"""Contents of one key that are taken in; a server that asks anew at every look is stopped here, until a
person lets it ask on: that many more, each time."""
QUESTIONS_PER_TASK: Final = 500

NEWS: Final = frozenset(
    {
        "question_asked",
        "question_reopened",
        "question_still_asked",
        "question_asked_again",
        "task_found_again",
    }
)
"""Facts that bring a task back from the archive. Progress and a server that is away do not: a person puts a
task away to see no more of those."""

FAULT_REUSED: Final = "The server had used this key for another question."
FAULT_ASKED_AGAIN: Final = "The server asks this again after it had taken the answer."


def event(kind: str, data: Mapping[str, Any] | None = None) -> NewEvent:
    """Return a fact for the log; entries that are ``None`` are left out."""
    return NewEvent(kind, to_json({name: v for name, v in (data or {}).items() if v is not None}))


def about(kind: str, question: QuestionRecord, **more: Any) -> NewEvent:
    """Return a fact about an answer; the digest says which one it is."""
    return event(kind, {"key": question.key, "question": question.id, "digest": question.digest, **more})


def reconcile(task: TaskRecord, questions: Sequence[QuestionRecord], seen: Observed) -> TaskWrites:
    """Return what *seen* changes about *task* and its *questions*; falsy when nothing did.

    A task that is over stays as it was: a reply that was overtaken on its way does not bring it back.
    """
    if task.state.tracking == "ended":
        return TaskWrites()
    own = [q for q in questions if q.round == 0 and q.task == task.key]
    new, changes, events, problem = _questions(own, seen, 1 + task.leave)
    state = _state(task.state, seen, problem)
    events = [*_state_events(task.state, state), *events]
    if _content(state) == _content(task.state):
        if not (new or changes):
            return TaskWrites()
        state = task.state
    return TaskWrites(
        state=state if state != task.state else None,
        new_questions=tuple(new),
        question_changes=tuple(changes),
        events=tuple(events),
        unarchive=seen.is_terminal
        or any(fact.kind in NEWS for fact in events)
        or (problem is not None and problem != task.state.problem),  # it asks what can't be read
    )


def lost(
    task: TaskRecord, questions: Sequence[QuestionRecord], *, now: int, words: str | None = None
) -> TaskWrites:
    """Return the writes for a server that does not know *task* (-32602 to tasks/get); our record stays.

    *words* are the server's. An answer that was sent stays sent: should the task turn up again, it is still
    the answer to that question.
    """
    if task.state.tracking == "ended":
        return TaskWrites()
    expires = task.state.expires_at
    reason = "The server does not know this task"
    if expires is not None and now >= expires and task.state.ttl_ms is not None:
        reason += f"; its time to live ({duration(task.state.ttl_ms)}) is over"
    reason += f" ({inert_line(words, 200)})." if words else "."
    if task.state.tracking == "lost":
        return TaskWrites()
    closed = [QuestionChange(q.id, "withdrawn") for q in questions if _waits_here(q)]
    unsent = [about("question_withdrawn", q, unsentAnswer=True) for q in questions if q.state == "queued"]
    return TaskWrites(
        state=replace(task.state, tracking="lost", reason=reason, problem=None),
        question_changes=tuple(closed),
        events=(event("task_lost", {"reason": reason}), *unsent),
        unarchive=True,
    )


def stopped(task: TaskRecord, reason: str) -> TaskWrites:
    """Return the writes for a task that is no longer watched; its questions stay as they are."""
    if task.state.tracking != "active":
        return TaskWrites()
    return TaskWrites(
        state=replace(task.state, tracking="stopped", reason=reason, problem=None),
        events=(event("tracking_stopped", {"reason": reason}),),
    )


def resumed(task: TaskRecord) -> TaskWrites:
    """Return the writes for a task that is watched again after it was stopped."""
    if task.state.tracking != "stopped" or task.kind == "call":  # a call is stopped for another reason
        return TaskWrites()
    return TaskWrites(
        state=replace(task.state, tracking="active", reason=None), events=(event("tracking_resumed"),)
    )


def asking_on(task: TaskRecord, by: str) -> TaskWrites:
    """Return the writes for a person (*by*) who lets a stopped server ask on; none where it was not."""
    if not asks_too_much(task):
        return TaskWrites()
    state = replace(task.state, tracking="active", reason=None, problem=None)
    return TaskWrites(state=state, leave=True, events=(event("asking_allowed", {"by": by}),))


def problem(task: TaskRecord, words: str | None) -> TaskWrites:
    """Return the writes for a look that failed (*words*), or for one that is well again (``None``)."""
    if task.state.problem == words or task.state.tracking != "active":
        return TaskWrites()
    kind = "problem_met" if words else "problem_over"
    return TaskWrites(state=replace(task.state, problem=words), events=(event(kind, {"problem": words}),))


def faulty_result(task: TaskRecord, words: str) -> TaskWrites:
    """Return the writes for a result that breaks what its tool promised."""
    if task.state.status != "completed" or task.state.problem == words:
        return TaskWrites()
    return TaskWrites(
        state=replace(task.state, problem=words), events=(event("fault_noted", {"fault": words}),)
    )


def _waits_here(question: QuestionRecord) -> bool:
    return question.is_open or question.state == "queued"


def _questions(
    own: Sequence[QuestionRecord], seen: Observed, times: int
) -> tuple[list[NewQuestion], list[QuestionChange], list[NewEvent], str | None]:
    new: list[NewQuestion] = []
    changes: list[QuestionChange] = []
    events: list[NewEvent] = []
    trouble: str | None = None
    known = {(q.key, q.fingerprint): q for q in own}
    versions: dict[str, int] = {}
    for q in own:
        versions[q.key] = versions.get(q.key, 0) + 1
    outstanding: set[int] = set()
    asked = () if seen.is_terminal else sorted(seen.asked, key=lambda a: a.key)
    for one in asked:
        stored = known.get((one.key, one.fingerprint))
        if stored is not None:
            outstanding.add(stored.id)
            _still_there(stored, changes, events)
        elif versions.get(one.key, 0) >= VERSIONS_PER_KEY * times:
            trouble = "The server keeps asking new questions under old names; they are no longer taken in."
            trouble = f"{trouble} {ASK_ON}"
        elif len(own) + len(new) >= QUESTIONS_PER_TASK * times:
            trouble = f"The server asks more than {QUESTIONS_PER_TASK * times} questions; the rest is not "
            trouble += f"taken in. {ASK_ON}"
        else:
            fault = FAULT_REUSED if one.key in versions else None
            new.append(NewQuestion(one.key, one.fingerprint, one.method, one.request_json, fault=fault))
            events.append(event("question_asked", {"key": one.key, "method": one.method, "fault": fault}))
    for q in own:
        if q.id not in outstanding:
            _gone(q, changes, events)
    unreadable = seen.status == "input_required" and not asked and (seen.faults or not own)
    if trouble is None and unreadable:
        trouble = "The server says that it needs input, and asks nothing that can be read."
        trouble += "".join(f" {inert_line(fault, 200)}." for fault in seen.faults[:3])
    return new, changes, events, trouble


def _still_there(q: QuestionRecord, changes: list[QuestionChange], events: list[NewEvent]) -> None:
    if q.state == "acknowledged" and q.still_asked < STILL_ASKED_MOST:
        count = q.still_asked + 1
        changes.append(QuestionChange(q.id, "acknowledged", still_asked=count))
        if count == STILL_ASKED_NOTED:
            events.append(event("question_still_asked", {"key": q.key, "looks": count}))
    elif q.state == "settled":
        changes.append(QuestionChange(q.id, "acknowledged", fault=FAULT_ASKED_AGAIN, still_asked=1))
        events.append(event("question_asked_again", {"key": q.key, "fault": FAULT_ASKED_AGAIN}))
    elif q.state == "withdrawn" and not is_refused_here(q):
        changes.append(QuestionChange(q.id, "open"))
        events.append(event("question_reopened", {"key": q.key}))


def _gone(q: QuestionRecord, changes: list[QuestionChange], events: list[NewEvent]) -> None:
    if _waits_here(q):
        changes.append(QuestionChange(q.id, "withdrawn"))
        if q.state == "queued":
            events.append(about("question_withdrawn", q, unsentAnswer=True))
        else:
            events.append(event("question_withdrawn", {"key": q.key}))
    elif q.state in ("sent", "acknowledged"):
        changes.append(QuestionChange(q.id, "settled"))
        events.append(about("answer_settled", q, acknowledged=q.state == "acknowledged"))


def _state(old: TaskState, seen: Observed, trouble: str | None) -> TaskState:
    interval = seen.poll_interval_ms
    return replace(
        old,
        status=seen.status,
        status_message=seen.status_message,
        tracking="ended" if seen.is_terminal else "active",
        reason=None,
        problem=trouble,
        created_at=old.created_at if seen.created_at is None else seen.created_at,
        last_updated_at=seen.last_updated_at,
        ttl_ms=seen.ttl_ms,
        poll_interval_ms=old.poll_interval_ms if interval is None else interval,
        is_error=seen.is_error,
        result_json=seen.result_json,
        error_json=seen.error_json,
        snapshot_json=seen.snapshot_json,
        observed_by=seen.by,
    )


def _content(state: TaskState) -> TaskState:
    return replace(state, last_updated_at=None, snapshot_json=None, observed_by=None)


def _state_events(old: TaskState, new: TaskState) -> Iterable[NewEvent]:
    if old.tracking == "lost" and new.tracking != "lost":
        yield event("task_found_again")
    elif old.tracking == "stopped":
        yield event("tracking_resumed")
    if old.status != new.status:
        said = {"from": old.status, "to": new.status, "message": new.status_message}
        yield event("status_changed", said)
    elif old.status_message != new.status_message:
        yield event("progressed", {"message": new.status_message})
    if new.tracking == "ended" and old.tracking != "ended":
        data = {"isError": True} if new.is_error else None
        yield event(f"task_{new.status}", data)
    if (old.ttl_ms, old.poll_interval_ms) != (new.ttl_ms, new.poll_interval_ms) and old.status is not None:
        yield event("timing_changed", {"ttlMs": new.ttl_ms, "pollIntervalMs": new.poll_interval_ms})
    if old.problem != new.problem:
        kind = "problem_met" if new.problem else "problem_over"
        yield event(kind, {"problem": new.problem})
