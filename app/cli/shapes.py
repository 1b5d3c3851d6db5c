"""The JSON that ``--json`` prints: protocol field names, ISO 8601 times in UTC, numbers as they came."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from simplejson import RawJSON, dumps, loads

from app.config import Abilities, ServerEntry
from app.engine.commands import CallOutcome, Delivery, ServerReport, ToolInfo
from storage.records import EventRecord, QuestionRecord, ServerRecord, TaskRecord, TaskRow

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NOT_PLAIN: Final = re.compile(r"[^\x20-\x7e]")


def to_json(value: object) -> str:
    """Return *value* as one line of JSON in printable ASCII, whatever strings it holds."""
    return str(dumps(value, ensure_ascii=True, use_decimal=True, ignore_nan=True))


def plain_json(text: str) -> str:
    """Return the JSON *text* on one line in printable ASCII, otherwise token for token as it is.

    Outside of strings JSON is ASCII, so that escaping characters never changes a value; numbers of any size
    and precision stay as they were written.
    """
    return _NOT_PLAIN.sub(_escape, text).strip()


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    if char in "\n\r\t":
        return " "  # raw ones stand between tokens only
    code = ord(char)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def embedded(text: str | None) -> RawJSON | None:
    """Return stored JSON for use inside a value given to `to_json`."""
    return None if text is None else RawJSON(plain_json(text))


def moment(at: int | None) -> str | None:
    """Return a time in epoch milliseconds as ``2026-07-28T10:30:00.000Z``; ``None`` beyond the year 9999."""
    if at is None:
        return None
    try:
        return (_EPOCH + timedelta(milliseconds=at)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError:
        return None


def row_shape(row: TaskRow, open_keys: Sequence[str]) -> dict[str, Any]:
    """Return a task or call as ``list --json`` shows it."""
    state = row.state
    shape = {
        "server": row.key.server,
        "taskId": row.key.id,
        "kind": row.kind,
        "method": row.method,
        "tool": row.tool,
        "section": row.section,
        "status": state.status,
        "statusMessage": state.status_message,
        "isError": state.is_error,
        "tracking": state.tracking,
        "reason": state.reason,
        "problem": state.problem,
        "createdAt": moment(state.created_at),
        "lastUpdatedAt": moment(state.last_updated_at),
        "ttlMs": state.ttl_ms,
        "expiresAt": moment(state.expires_at),
        "pollIntervalMs": state.poll_interval_ms,
        "cancelRequestedAt": moment(state.cancel_requested_at),
        "addedAt": moment(row.added_at),
        "changedAt": moment(row.changed_at),
        "archivedAt": moment(row.archived_at),
        "openQuestions": list(open_keys),
    }
    if row.kind == "call":
        shape["callId"] = row.key.id
    return shape


def question_shape(question: QuestionRecord) -> dict[str, Any]:
    """Return a question, with what became of it."""
    return {
        "key": question.key,
        "fingerprint": question.fingerprint,
        "method": question.method,
        "state": question.state,
        "request": embedded(question.request_json),
        "draft": embedded(question.draft_json),
        "response": embedded(question.response_json),
        "round": question.round,
        "fault": question.fault,
        "refusal": question.refusal,
        "stillAsked": question.still_asked,
        "attempts": question.attempts,
        "answeredBy": question.answered_by,
        "askedAt": moment(question.asked_at),
        "queuedAt": moment(question.queued_at),
        "sentAt": moment(question.sent_at),
        "acknowledgedAt": moment(question.acknowledged_at),
        "closedAt": moment(question.closed_at),
    }


def event_shape(event: EventRecord) -> dict[str, Any]:
    """Return one line of the log."""
    return {
        "seq": event.seq,
        "at": moment(event.at),
        "kind": event.kind,
        "data": embedded(event.data_json),
    }


def task_shape(
    task: TaskRecord, questions: Sequence[QuestionRecord], events: Iterable[EventRecord]
) -> dict[str, Any]:
    """Return a task or call as ``show --json`` shows it."""
    return {
        **row_shape(task, [q.key for q in questions if q.is_open]),
        "originCall": task.origin_call,
        "arguments": arguments_of(task.params_json),
        "result": embedded(task.state.result_json),
        "error": embedded(task.state.error_json),
        "questions": [question_shape(q) for q in questions],
        "events": [event_shape(e) for e in events],
    }


def arguments_of(params_json: str) -> Any:
    """Return the arguments in a request's parameters, numbers exact; ``None`` where there are none."""
    params = parsed(params_json)
    return params.get("arguments") if isinstance(params, dict) else None


def parsed(text: str | None) -> Any:
    """Return stored JSON as a value, numbers exact; the text itself where Python can't hold it.

    A server may nest ten thousand arrays; showing them as they came beats failing.
    """
    if text is None:
        return None
    try:
        return loads(text, use_decimal=True, parse_int=_whole_number)
    except (ValueError, RecursionError, ArithmeticError):
        return text


def _whole_number(digits: str) -> int | Decimal:
    # CPython refuses to turn more than 4,300 digits into an int and back; a Decimal keeps them all.
    return int(digits) if len(digits) <= 4300 else Decimal(digits)


def outcome_shape(
    outcome: CallOutcome, task: TaskRecord | None, questions: Sequence[QuestionRecord]
) -> dict[str, Any]:
    """Return what became of a call as ``call --json`` shows it."""
    key = outcome.key
    if outcome.kind == "task":
        shape: dict[str, Any] = {"resultType": "task", "server": key.server, "taskId": key.id}
        if task is not None:
            shape.update(task_shape(task, questions, ()))
            del shape["events"]
        return shape
    base = {"resultType": outcome.kind, "server": key.server, "callId": key.id}
    if outcome.kind == "complete":
        return {**base, "result": embedded(outcome.result_json)}
    if outcome.kind == "input_required":
        return {**base, "questions": [question_shape(q) for q in questions if q.is_open]}
    return {**base, "error": embedded(outcome.error_json), "message": outcome.message}


def delivery_shape(
    question: QuestionRecord, response_json: str, delivery: Delivery, outcome: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return what became of an answer as ``answer --json`` shows it."""
    return {
        "server": question.task.server,
        "taskId": question.task.id,
        "key": question.key,
        "response": embedded(response_json),
        "state": delivery.state,
        "failure": delivery.failure,
        "message": delivery.message,
        "outcome": outcome,
    }


def tool_shape(tool: ToolInfo) -> dict[str, Any]:
    """Return a tool as the protocol names its parts."""
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": dict(tool.input_schema),
        "annotations": dict(tool.annotations),
    }


def entry_shape(entry: ServerEntry) -> dict[str, Any]:
    """Return where a server is, or how it is started: of headers and variables the names alone."""
    if entry.command is None:
        return {"url": entry.url, "headers": sorted(entry.headers)}
    return {"command": entry.command, "args": entry.args, "env": sorted(entry.env), "cwd": entry.cwd}


def abilities_shape(abilities: Abilities) -> dict[str, Any]:
    """Return what a server may ask beside elicitations, as the servers file names it."""
    return {
        "sampling": abilities.sampling,
        "samplingCommand": list(abilities.sampling_command),
        "roots": list(abilities.roots),
    }


def server_shape(entry: ServerEntry, seen: ServerRecord | None) -> dict[str, Any]:
    """Return an entry of the servers file with what was last seen of it."""
    return {
        "name": entry.name,
        "url": entry.url,
        "command": entry.command,
        "args": entry.args,
        "problem": entry.problem,
        **abilities_shape(entry.abilities),
        "state": seen.state if seen else "unknown",
        "message": seen.message if seen else None,
        "since": moment(seen.since) if seen else None,
        "checkedAt": moment(seen.checked_at) if seen else None,
    }


def report_shape(report: ServerReport) -> dict[str, Any]:
    """Return what a test of a server found."""
    return {
        "name": report.name,
        "title": report.title,
        "supportedVersions": list(report.versions),
        "tasks": report.has_tasks,
        "tools": report.tools,
        "instructions": report.instructions,
        "warnings": list(report.warnings),
    }
