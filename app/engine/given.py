"""What a person or a command gives the engine, checked; and what they are told became of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import simplejson

from app.config import NONE, Abilities
from app.engine.commands import Answer, CallOutcome, Delivery, EngineError, has_result, unanswerable
from app.engine.problems import describe, engine_error
from app.engine.results import check_result
from app.forms.redacting import without_secrets
from app.text import inert_line
from mcp_client import CreateTaskResult, McpError, ProtocolError, ServerError, read_handle
from storage.records import QuestionRecord, Reply, TaskKey, TaskRecord


def json_object(text: str, what: str) -> dict[str, Any]:
    """Read a JSON object, numbers exact; raises `EngineError` naming *what*."""
    try:
        value = simplejson.loads(text, use_decimal=True, allow_nan=False)
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise EngineError("invalid", f"{what} can't be read as JSON: {error}") from None
    if not isinstance(value, dict):
        raise EngineError("invalid", f"{what} must be a JSON object.")
    return value


def handle_of(handle_json: str, task_id: str) -> CreateTaskResult:
    """Read the handle of the task *task_id*; raises `EngineError`."""
    raw = json_object(handle_json, "The handle")
    try:
        handle = read_handle(raw)
    except ProtocolError as error:
        raise EngineError("invalid", f"The handle can't be read: {describe(error)}") from None
    if handle.task_id != task_id:
        raise EngineError("invalid", "The handle is another task's.")
    return handle


def reply_to(answer: Answer, abilities: Abilities = NONE) -> Reply:
    """Return what is saved of an answer; raises `EngineError` for one that can't be given to a server with
    *abilities*."""
    question = answer.question
    words = unanswerable(question, abilities)
    if words is not None:
        raise EngineError("invalid", words)
    if has_result(question):
        check_result(answer, abilities)
    elif answer.content_json is not None:
        json_object(answer.content_json, "The answer's content")
    response = answer.response_json
    kept = without_secrets(question.request_json, response)
    return Reply(question.id, question.fingerprint, response, kept)


def delivery_of(
    holder: TaskKey, questions: Sequence[QuestionRecord], error: McpError | EngineError | None
) -> Delivery:
    """Say what became of answers: the *questions* as they stand after an attempt that met *error*."""
    by_state = {q.state: q for q in questions}
    if "refused" in by_state:
        return Delivery("refused", by_state["refused"].refusal)
    if "queued" in by_state or "sent" in by_state:
        if isinstance(error, McpError):
            error = engine_error(holder.server, error, doing="delivering the answer")
        return saved(holder, error)
    if {"withdrawn", "open"} & by_state.keys() or not questions:
        return Delivery("withdrawn", "The question vanished or changed before the answer could be sent.")
    return Delivery("acknowledged")


def saved(holder: TaskKey, error: EngineError | None) -> Delivery:
    """Say that an answer is durable and not delivered yet, and why; ``None``: another program has it in
    hand."""
    if error is None:
        return Delivery("saved", f"Saved: another program is delivering it to {_name(holder)}.")
    return Delivery(
        "saved", f"Saved: delivered {as_soon_as(_name(holder), error)}. {error.message}", None, error.failure
    )


def as_soon_as(server: str, error: EngineError) -> str:
    """Return when something saved for *server* goes out that *error* keeps here for now."""
    can = {
        "unreachable": "can be reached",
        "sign-in": "can be signed in to",
        "invalid": "can be connected to",
        "unknown-server": "is in the servers file again",
    }.get(error.failure, "takes it")
    return f"as soon as {server} {can}"


def not_cancelled(task: TaskKey, error: McpError | EngineError) -> EngineError:
    """Return what to tell of a wish to cancel that met *error*: refused, or saved and passed on later."""
    if isinstance(error, McpError):
        failed = engine_error(task.server, error, doing=f"cancelling {task.id}")
    else:
        failed = error
    if isinstance(error, ServerError):
        return failed  # which ends the wish
    what = f"{task.server} is asked to cancel {inert_line(task.id, 200)}"
    words = f"Saved: {what} {as_soon_as('it', failed)}. {failed.message}"
    return EngineError(failed.failure, words)


def call_delivery_of(call: TaskRecord | None, questions: Sequence[QuestionRecord]) -> Delivery | None:
    """Say what became of answers that another program sent with *call*; ``None``: nothing yet."""
    if call is None or not questions:
        return Delivery("withdrawn", "The call is not in the inbox any more.")
    by_state = {q.state: q for q in questions}
    if call.kind == "call" and call.state.tracking == "lost":
        return Delivery("unknown", call.state.reason, outcome_of(call))
    if "refused" in by_state:
        return Delivery("refused", by_state["refused"].refusal, outcome_of(call))
    if {"open", "queued", "sent"} & by_state.keys():
        return None
    if "withdrawn" in by_state:
        return Delivery("withdrawn", "The call ended before the answer could be sent.")
    return Delivery("acknowledged", None, outcome_of(call))


def outcome_of(record: TaskRecord) -> CallOutcome | None:
    """Return what became of a call, as it is stored; ``None``: it is being sent."""
    state = record.state
    if record.kind == "task":
        return CallOutcome("task", record.key)
    if state.tracking == "lost":
        return CallOutcome("unknown", record.key, message=state.reason)
    if state.tracking == "ended" and state.status == "completed":
        return CallOutcome("complete", record.key, result_json=state.result_json)
    if state.tracking == "ended":
        return CallOutcome("failed", record.key, error_json=state.error_json, message=state.problem)
    return CallOutcome("input_required", record.key) if record.open_questions else None


def _name(task: TaskKey) -> str:
    return inert_line(task.server, 80)
