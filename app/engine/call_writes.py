"""Pure: what each turn of a call's life writes. Each function returns a decision for the store to apply.

A call uses the words of a task's status for what we know of it: ``working`` while it is being sent,
``input_required`` while it waits for answers, then how it ended. Its owner is the program that sends it, or
pauses before it repeats a call that was asked nothing (``input_required``, then). As long as there is one,
dead or alive, no other program sends it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from app.engine.commands import ASK_ON, EngineError
from app.engine.observed import to_json
from app.engine.reconcile import QUESTIONS_PER_TASK, about, event
from app.engine.sight import asked_of
from app.text import inert_line
from mcp_client import CallToolResult, CompleteResult, CreateTaskResult, InputRequiredResult
from storage.records import (
    NewEvent,
    NewQuestion,
    NewTask,
    QuestionChange,
    QuestionRecord,
    QuestionState,
    TaskKey,
    TaskRecord,
    TaskState,
    TaskWrites,
)

ROUNDS_MOST: Final = 20
"""Rounds after which a server that asks before it begins is stopped, until a person lets it ask on: that many
more, each time."""

Questions = tuple[QuestionRecord, ...]
Decide = Callable[[TaskRecord, Questions], TaskWrites]
IsDead = Callable[[str], bool]


def handle_state(handle: CreateTaskResult) -> TaskState:
    """Return the state in which a task handle says its task begins; results come with tasks/get."""
    return TaskState(
        status=handle.status,
        status_message=handle.status_message,
        created_at=handle.created_at_ms,
        last_updated_at=handle.last_updated_at_ms,
        ttl_ms=handle.ttl_ms,
        poll_interval_ms=handle.poll_interval_ms,
        snapshot_json=to_json(handle.raw),
    )


def became(task: TaskKey, handle: CreateTaskResult) -> Decide:
    """The reply was a task handle: the task is added, and the call's id points there."""

    def decide(call: TaskRecord, questions: Questions) -> TaskWrites:
        new = NewTask(task, "task", call.method, call.tool, call.params_json, state=handle_state(handle))
        facts = (*_taken(questions), event("task_created", {"taskId": task.id}))
        return TaskWrites(became=new, events=facts, unarchive=True)

    return decide


def completed(reply: CallToolResult | CompleteResult) -> Decide:
    """The reply was the result itself."""
    is_error = isinstance(reply, CallToolResult) and reply.is_error
    result = to_json(reply.raw)

    def decide(call: TaskRecord, questions: Questions) -> TaskWrites:
        state = replace(
            call.state,
            status="completed",
            tracking="ended",
            reason=None,
            problem=" ".join(inert_line(fault) for fault in reply.faults[:3]) or None,
            is_error=is_error,
            result_json=result,
            snapshot_json=result,
            request_state=None,
        )
        facts = (*_taken(questions), event("call_completed", {"isError": is_error or None}))
        return TaskWrites(state, question_changes=_closing(questions), events=facts, owner="", unarchive=True)

    return decide


def failed(words: str, *, error_json: str | None = None) -> Decide:
    """The server answered with an error (*error_json*), or with what is no valid reply."""

    def decide(call: TaskRecord, questions: Questions) -> TaskWrites:
        state = replace(
            call.state,
            status="failed",
            tracking="ended",
            reason=None,
            problem=None if error_json else words,
            error_json=error_json,
            request_state=None,
        )
        facts = (*_left(questions), event("call_failed", {"reason": words}))
        return TaskWrites(state, question_changes=_closing(questions), events=facts, owner="", unarchive=True)

    return decide


def asked(reply: InputRequiredResult) -> Decide:
    """The reply asks something first, or only to be repeated: the next round."""
    requests = sorted(asked_of(reply.input_requests.values()), key=lambda one: one.key)
    faults = " ".join(inert_line(fault, 200) for fault in reply.faults[:3])
    unreadable = bool(reply.raw.get("inputRequests")) and not requests

    def decide(call: TaskRecord, questions: Questions) -> TaskWrites:
        number = call.state.round + 1
        if unreadable:
            return failed(f"The server asks something that can't be read. {faults}")(call, questions)
        if len(requests) > QUESTIONS_PER_TASK:
            return failed("The server asks too much before it begins.")(call, questions)
        too_often = number > ROUNDS_MOST * (1 + call.leave)
        state = replace(
            call.state,
            status="input_required",
            tracking="stopped" if too_often else "active",
            reason=f"The server has asked {number - 1} times before it began. {ASK_ON}"
            if too_often
            else None,
            problem=faults or None,
            request_state=reply.request_state,
            round=number,
            snapshot_json=to_json(reply.raw),
        )
        new = tuple(
            NewQuestion(one.key, one.fingerprint, one.method, one.request_json, number) for one in requests
        )
        facts = [*_taken(questions)]
        facts += [event("question_asked", {"key": q.key, "method": q.method, "round": number}) for q in new]
        if not new:
            facts.append(event("call_to_be_repeated", {"round": number}))
        changes = _closing(questions)
        if too_often:
            facts.append(event("asking_stopped", {"reason": state.reason}))
        ours = not new and not too_often  # who was asked nothing goes on with the call after a pause
        owner = None if ours else ""
        return TaskWrites(state, new, changes, tuple(facts), owner=owner, unarchive=not ours)

    return decide


def refused(words: str) -> Decide:
    """The server refused the answers (-32602): they are open again, with what was typed and the reason."""

    def decide(call: TaskRecord, questions: Questions) -> TaskWrites:
        sent = [q for q in questions if q.round == call.state.round and q.state == "sent"]
        changes = tuple(QuestionChange(q.id, "refused", refusal=words) for q in sent)
        state = replace(call.state, status="input_required")
        facts = tuple(about("answer_refused", q, reason=words) for q in sent)
        return TaskWrites(state, question_changes=changes, events=facts, owner="", unarchive=True)

    return decide


def requeued(words: str) -> Decide:
    """A round provably did not reach the server: its answers wait again."""

    def decide(call: TaskRecord, questions: Questions) -> TaskWrites:
        changes = _moved(questions, call.state.round, "queued")
        state = replace(call.state, status="input_required", problem=words)
        back = {change.id for change in changes}
        facts = (*(about("answer_released", q) for q in questions if q.id in back), event("call_held_back"))
        return TaskWrites(state, question_changes=changes, events=facts, owner="")

    return decide


def unknown(reason: str) -> Decide:
    """The call was sent and nobody knows what came of it; only a person repeats it.

    Its answers stay as sent as they are: nothing delivers those of a call that is lost.
    """

    def decide(call: TaskRecord, _: Questions) -> TaskWrites:
        state = replace(call.state, tracking="lost", reason=reason, problem=None)
        facts = (event("call_outcome_unknown", {"reason": reason}),)
        return TaskWrites(state, events=facts, owner="", unarchive=True)

    return decide


def left(owner: str) -> Decide:
    """The program *owner* died with the call in its hands: it goes on where it provably was not in flight,
    and is unknown everywhere else.

    The call is taken first, then its round's answers, then it is sent: an answer that waits still, or a pause
    between two rounds, says that it had not come to that.
    """

    def decide(call: TaskRecord, questions: Questions) -> TaskWrites:
        if call.owner != owner or call.state.tracking != "active":
            return TaskWrites(owner="") if call.owner == owner else TaskWrites()
        asked = [q for q in questions if q.round == call.state.round]
        if call.state.status != "input_required" and not any(q.state == "queued" for q in asked):
            reason = "Outcome unknown: the program ended after the call was sent, before its reply came."
            return unknown(reason)(call, questions)
        state = replace(call.state, status="input_required")
        return TaskWrites(state, events=(event("call_left_waiting"),), owner="")

    return decide


def repeated(owner: str, is_dead: IsDead) -> Decide:
    """A person repeats a call whose outcome is unknown. Raises `EngineError` for any other call."""

    def decide(call: TaskRecord, _: Questions) -> TaskWrites:
        if call.kind != "call" or call.state.tracking != "lost":
            raise EngineError("closed", f"{call.key.id} is not a call whose outcome is unknown.")
        _refuse_if_in_flight(call, is_dead)
        state = replace(call.state, status="working", tracking="active", reason=None, problem=None)
        return TaskWrites(state, events=(event("call_repeated"),), owner=owner)

    return decide


def went_on(owner: str, number: int, is_dead: IsDead, *, paused: bool = False) -> Decide:
    """The call is sent with the answers of round *number*. Raises `EngineError` where it is not its turn.

    *paused*: *owner* has the call already, and its pause is over. Any other owner keeps it, a dead one, too:
    what it sent may have arrived, and only a person repeats that.
    """

    def decide(call: TaskRecord, questions: Questions) -> TaskWrites:
        if call.state.tracking != "active" or call.state.round != number:
            raise EngineError("closed", f"{call.key.id} is not waiting for these answers any more.")
        taken = [
            q
            for q in questions
            if q.round == number
            and q.state == "sent"
            and q.owner not in (None, owner)
            and not is_dead(q.owner)
        ]
        if call.owner != (owner if paused else None) or taken:
            raise EngineError("invalid", f"Another program has {call.key.id} in hand.")
        state = replace(call.state, status="working", problem=None)
        return TaskWrites(state, events=(event("call_went_on", {"round": number}),), owner=owner)

    return decide


def given_up(is_dead: IsDead) -> Decide:
    """A person ends the call here. Raises `EngineError` while it is being sent."""

    def decide(call: TaskRecord, questions: Questions) -> TaskWrites:
        if call.state.tracking == "ended":
            raise EngineError("closed", f"{call.key.id} is over already.")
        _refuse_if_in_flight(call, is_dead)
        state = replace(call.state, status="cancelled", tracking="ended", reason=None, problem=None)
        facts = (*_left(questions), event("call_given_up"))
        return TaskWrites(state, question_changes=_closing(questions), events=facts, owner="")

    return decide


def _refuse_if_in_flight(call: TaskRecord, is_dead: IsDead) -> None:
    is_paused = call.state.status == "input_required"
    if call.owner is not None and not is_paused and not is_dead(call.owner):
        raise EngineError(
            "invalid", f"{call.key.id} is being sent to {call.key.server} right now; wait for its reply."
        )


def _closing(questions: Questions) -> tuple[QuestionChange, ...]:
    """Close what is not closed: an answer that went out is settled, all else is withdrawn."""
    closed: dict[QuestionState, QuestionState] = {
        "open": "withdrawn",
        "refused": "withdrawn",
        "queued": "withdrawn",
        "sent": "settled",
        "acknowledged": "settled",
    }
    return tuple(QuestionChange(q.id, closed[q.state]) for q in questions if q.state in closed)


def _taken(questions: Questions) -> tuple[NewEvent, ...]:
    """A reply other than an error acknowledges the answers that the request brought."""
    return tuple(about("answer_acknowledged", q) for q in questions if q.state == "sent")


def _left(questions: Questions) -> tuple[NewEvent, ...]:
    """The call ends without a word on its answers."""
    facts = {"sent": "answer_settled", "queued": "question_withdrawn"}
    more = {"sent": {"acknowledged": False}, "queued": {"unsentAnswer": True}}
    return tuple(about(facts[q.state], q, **more[q.state]) for q in questions if q.state in facts)


def _moved(questions: Questions, number: int, state: QuestionState) -> tuple[QuestionChange, ...]:
    return tuple(QuestionChange(q.id, state) for q in questions if q.round == number and q.state == "sent")
