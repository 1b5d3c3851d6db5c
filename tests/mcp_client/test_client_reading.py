"""Tasks and results as servers really send them: vital fields are strict, the rest is forgiven and noted."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from mcp_client import (
    CancelledTask,
    CompletedTask,
    FailedTask,
    InputRequiredTask,
    ProtocolError,
    WorkingTask,
    parse_time,
    read_handle,
    read_input_required,
    read_task,
    read_tool_result,
)

BASE: dict[str, Any] = {
    "resultType": "complete",
    "taskId": "t1",
    "status": "working",
    "createdAt": "2026-01-02T03:04:05.678901+00:00",
    "lastUpdatedAt": "2026-01-02T03:04:06.5Z",
    "ttlMs": 60000,
    "pollIntervalMs": 500,
}
FORM = {"method": "elicitation/create", "params": {"message": "m", "requestedSchema": {"type": "object"}}}


@pytest.mark.rule(
    "tasks.five-statuses",
    "tasks.get-answers-by-status",
    "tasks.get-working",
    "tasks.get-input-required",
    "tasks.get-cancelled",
    "tasks.failed-says-why",
    "wire.result-type-discriminates",
)
@pytest.mark.parametrize(
    ("status", "kind", "more"),
    [
        ("working", WorkingTask, {}),
        ("input_required", InputRequiredTask, {"inputRequests": {"k": FORM}}),
        ("completed", CompletedTask, {"result": {"content": []}}),
        ("failed", FailedTask, {"error": {"code": 1, "message": "m"}}),
        ("cancelled", CancelledTask, {}),
    ],
)
def test_a_task_is_read_by_its_status(status: str, kind: type, more: dict[str, Any]) -> None:
    raw = {**BASE, "status": status, "statusMessage": "so far", "extra": [1], **more}
    task = read_task(raw, asked_for="t1")
    assert type(task) is kind
    assert task.faults == ()
    assert task.raw is raw
    assert (task.task_id, task.status, task.status_message) == ("t1", status, "so far")
    assert (task.ttl_ms, task.poll_interval_ms) == (60000, 500)
    assert (task.created_at_ms, task.last_updated_at_ms) == (1767323045678, 1767323046500)


@pytest.mark.rule("wire.times-in-every-spelling")
@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.001Z", 1),
        ("1970-01-01T01:00:00.0019+01:00", 1),
        ("1969-12-31T23:59:59.999Z", -1),
        ("2026-07-28T12:00:00.123456+00:00", 1785240000123),
        ("2026-07-28T12:00:00.123456789Z", 1785240000123),
        ("2026-07-28T12:00:00", 1785240000000),
        ("2026-07-28T12:00:00-05:30", 1785259800000),
    ],
)
def test_times_of_every_spelling_are_milliseconds_since_the_epoch(text: str, ms: int) -> None:
    assert parse_time(text) == ms


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01T00:00:00Z", "1785240000", "9" * 5000, "\0"])
def test_what_is_no_time_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        parse_time(text)


def test_times_at_the_edge_of_the_calendar_do_no_harm() -> None:
    for text in ("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"):
        assert isinstance(parse_time(text), int)


@pytest.mark.rule("tasks.get-says-complete")
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"taskId": 5}, "taskId"),
        ({"taskId": ""}, "taskId"),
        ({"taskId": None}, "taskId"),
        ({"taskId": "t2"}, "taskId"),
        ({"status": "done"}, "status"),
        ({"status": None}, "status"),
        ({"status": ["working"]}, "status"),
        ({"status": "Working"}, "status"),
        ({"resultType": "stream"}, "resultType"),
    ],
)
def test_a_broken_vital_field_is_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(ProtocolError) as invalid:
        read_task({**BASE, **change}, asked_for="t1")
    assert invalid.value.field == field


@pytest.mark.parametrize("missing", ["taskId", "status"])
def test_a_missing_vital_field_is_named(missing: str) -> None:
    raw = {name: value for name, value in BASE.items() if name != missing}
    with pytest.raises(ProtocolError) as invalid:
        read_task(raw, asked_for="t1")
    assert invalid.value.field == missing


@pytest.mark.parametrize("name", ["createdAt", "lastUpdatedAt"])
@pytest.mark.parametrize("value", ["yesterday", 1785240000, None, ["x"], {}])
def test_a_time_that_cannot_be_read_is_a_fault_and_the_task_stays(name: str, value: Any) -> None:
    task = read_task({**BASE, name: value})
    assert isinstance(task, WorkingTask)
    assert (task.created_at_ms if name == "createdAt" else task.last_updated_at_ms) is None
    assert len(task.faults) == 1
    assert name in task.faults[0]


@pytest.mark.rule("wire.ttl")
@pytest.mark.parametrize(
    ("value", "read", "faults"),
    [
        (None, None, 0),
        (0, 0, 0),
        (1500, 1500, 0),
        (Decimal("1500.0"), 1500, 0),
        (Decimal("1500.9"), 1500, 0),
        (Decimal("1E+3"), 1000, 0),
        (Decimal("1E-999999"), 0, 0),
        (Decimal("1E+999999"), None, 1),
        (10**40, None, 1),
        (-1, None, 1),
        ("60000", None, 1),
        (True, None, 1),
        ([], None, 1),
    ],
)
def test_a_time_to_live_is_a_bounded_whole_number_or_nothing(
    value: Any, read: int | None, faults: int
) -> None:
    task = read_task({**BASE, "ttlMs": value})
    assert (task.ttl_ms, len(task.faults)) == (read, faults)


def test_a_missing_time_to_live_is_a_fault_and_a_missing_poll_interval_is_none() -> None:
    raw = {name: value for name, value in BASE.items() if name not in ("ttlMs", "pollIntervalMs")}
    task = read_task(raw)
    assert (task.ttl_ms, task.poll_interval_ms) == (None, None)
    assert task.faults == ("ttlMs is missing.",)


@pytest.mark.parametrize("value", ["fast", -5, True, 10**30, None])
def test_a_poll_interval_that_makes_no_sense_is_none(value: Any) -> None:
    task = read_task({**BASE, "pollIntervalMs": value})
    assert task.poll_interval_ms is None
    assert len(task.faults) == 1


@pytest.mark.rule("tasks.nothing-else-says-task", "tasks.get-says-complete", "wire.task-page-example")
def test_a_task_reply_that_calls_itself_a_task_is_read_with_the_fault_noted() -> None:
    task = read_task(
        {**BASE, "resultType": "task", "status": "failed", "error": {"code": -1, "message": "m"}}
    )
    assert isinstance(task, FailedTask)
    assert task.error == {"code": -1, "message": "m"}
    assert len(task.faults) == 1
    assert "resultType" in task.faults[0]


@pytest.mark.rule("tasks.get-completed", "tasks.get-failed", "tasks.failed-has-error")
def test_a_finished_task_without_its_outcome_is_finished_all_the_same() -> None:
    completed = read_task({**BASE, "status": "completed"})
    assert isinstance(completed, CompletedTask)
    assert completed.result is None
    failed = read_task({**BASE, "status": "failed", "error": "text"})
    assert isinstance(failed, FailedTask)
    assert failed.error is None
    assert len(completed.faults) == len(failed.faults) == 1


@pytest.mark.rule("mrtr.requests-unique-and-known", "wire.defaults")
def test_one_malformed_question_costs_only_itself() -> None:
    asked = {
        "good": FORM,
        "text": "x",
        "no method": {"params": {}},
        "odd params": {"method": "elicitation/create", "params": [1]},
        "roots": {"method": "roots/list"},
        "new kind": {"method": "vendor/ask", "params": {"a": 1}, "extra": 1},
    }
    task = read_task({**BASE, "status": "input_required", "inputRequests": asked})
    assert isinstance(task, InputRequiredTask)
    assert list(task.input_requests) == ["good", "roots", "new kind"]
    assert len(task.faults) == 3
    assert task.input_requests["roots"].params is None
    assert task.input_requests["new kind"].raw == asked["new kind"]


@pytest.mark.rule("tasks.get-input-required")
@pytest.mark.parametrize("asked", [None, [], "x", 5])
def test_a_task_that_waits_for_nothing_readable_still_waits(asked: Any) -> None:
    task = read_task({**BASE, "status": "input_required", "inputRequests": asked})
    assert isinstance(task, InputRequiredTask)
    assert task.input_requests == {}
    assert len(task.faults) == 1


@pytest.mark.rule(
    "elicitation.mode-and-message",
    "elicitation.mode-may-be-missing",
    "elicitation.no-mode-is-form",
    "elicitation.form-has-schema",
    "elicitation.url-parts",
    "wire.defaults",
)
@pytest.mark.parametrize(
    ("params", "mode", "faults"),
    [
        ({"message": "m", "requestedSchema": {}}, "form", 0),
        ({"mode": "form", "message": "m", "requestedSchema": {}}, "form", 0),
        ({"mode": "url", "message": "m", "url": "https://x"}, "url", 0),
        ({"mode": "url", "message": "m"}, "url", 1),
        ({"message": 5, "requestedSchema": "x"}, "form", 2),
        ({"mode": "video", "message": "m"}, "video", 1),
        ({"mode": 5, "message": "m"}, "form", 1),
        (None, "form", 2),
    ],
)
def test_an_elicitation_says_what_is_wrong_with_it(
    params: dict[str, Any] | None, mode: str, faults: int
) -> None:
    entry = {"method": "elicitation/create", "params": params}
    found = read_input_required({"resultType": "input_required", "inputRequests": {"k": entry}})
    assert found.input_requests["k"].mode == mode
    assert len(found.input_requests["k"].faults) == faults


@pytest.mark.rule("mrtr.server-may", "mrtr.requests-or-state")
def test_a_result_that_asks_has_questions_or_a_state() -> None:
    assert read_input_required({"requestState": ""}).request_state == ""
    assert read_input_required({"inputRequests": {"k": FORM}}).request_state is None
    with pytest.raises(ProtocolError) as invalid:
        read_input_required({"resultType": "input_required"})
    assert invalid.value.field == "inputRequests"
    with pytest.raises(ProtocolError) as invalid:
        read_input_required({"requestState": 5, "inputRequests": {}})
    assert invalid.value.field == "requestState"


@pytest.mark.rule("tasks.handle-in-any-status", "wire.extras-kept")
def test_a_handle_is_read_in_any_status() -> None:
    handle = read_handle({**BASE, "resultType": "task", "status": "completed", "content": []})
    assert (handle.status, handle.task_id) == ("completed", "t1")


def test_a_tool_s_result_keeps_null_apart_from_nothing() -> None:
    nothing = read_tool_result({"content": []})
    null = read_tool_result({"content": [], "structuredContent": None})
    assert (nothing.has_structured_content, null.has_structured_content) == (False, True)
    assert (nothing.is_error, nothing.faults) == (False, ())


def test_a_tool_s_result_is_read_as_far_as_it_can_be() -> None:
    found = read_tool_result(
        {"content": [{"type": "text", "text": "x"}, 5, {}, {"type": 3}], "isError": "yes"}
    )
    assert found.content == ({"type": "text", "text": "x"},)
    assert found.is_error is False
    assert len(found.faults) == 2
    assert read_tool_result({"isError": True}).is_error
    assert len(read_tool_result({}).faults) == 1


def test_models_cannot_be_changed() -> None:
    task = read_task(BASE)
    with pytest.raises(ValueError):
        task.status = "completed"  # type: ignore[assignment,misc]
