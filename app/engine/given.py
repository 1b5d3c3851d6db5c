"""What a person or a command gives the engine, checked; and what they are told became of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import simplejson

from app.engine.commands import Answer, Delivery, EngineError
from app.engine.problems import describe, engine_error
from app.engine.reconcile import unanswerable
from mcp_client import CreateTaskResult, McpError, ProtocolError, read_handle
from storage.records import QuestionRecord, Reply, TaskKey


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


def reply_to(answer: Answer) -> Reply:
    """Return what is saved of an answer; raises `EngineError` for one that can't be given."""
    question = answer.question
    words = unanswerable(question)
    if words is not None:
        raise EngineError("invalid", words)
    if answer.content_json is not None:
        json_object(answer.content_json, "The answer's content")
    return Reply(question.id, question.fingerprint, answer.response_json)


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
        reason = f" {error.message}" if error is not None else " Another program delivers it."
        return Delivery("saved", f"Saved, and delivered as soon as that is possible.{reason}")
    if {"withdrawn", "open"} & by_state.keys() or not questions:
        return Delivery("withdrawn", "The question vanished or changed before the answer could be sent.")
    return Delivery("acknowledged")
