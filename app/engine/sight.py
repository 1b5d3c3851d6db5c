"""From wire models to what the engine and its callers take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from app.engine.commands import EngineError, ServerReport, ToolListing
from app.engine.observed import Asked, Observed, asked, to_json
from app.text import inert_line
from mcp_client import (
    CompletedTask,
    DetailedTask,
    DiscoverResult,
    FailedTask,
    InputRequest,
    InputRequiredTask,
)


def asked_of(requests: Iterable[InputRequest]) -> tuple[Asked, ...]:
    """Return input requests as they were asked."""
    return tuple(asked(one.key, one.raw) for one in requests)


def observed(task: DetailedTask, *, by: Literal["poll", "subscription"] = "poll") -> Observed:
    """Return what a reply to tasks/get says."""
    result = error = None
    is_error = False
    requests: tuple[Asked, ...] = ()
    faults = task.faults
    match task:
        case CompletedTask():
            result = None if task.result is None else to_json(task.result)
            is_error = isinstance(task.result, dict) and task.result.get("isError") is True
        case FailedTask():
            error = None if task.error is None else to_json(task.error)
        case InputRequiredTask():
            requests = asked_of(task.input_requests.values())
            faults += tuple(fault for one in task.input_requests.values() for fault in one.faults)
        case _:
            pass
    return Observed(
        task.status,
        status_message=task.status_message,
        created_at=task.created_at_ms,
        last_updated_at=task.last_updated_at_ms,
        ttl_ms=task.ttl_ms,
        poll_interval_ms=task.poll_interval_ms,
        asked=requests,
        is_error=is_error,
        result_json=result,
        error_json=error,
        snapshot_json=to_json(task.raw),
        faults=faults,
        by=by,
    )


def report(
    server: str, found: DiscoverResult, listing: ToolListing, faults: tuple[str, ...] = ()
) -> ServerReport:
    """Return what a server says of itself, for a person; *faults* are those of its output."""
    info = found.server_info
    warnings = [*found.faults, *listing.warnings, *faults]
    if not found.has_tasks:
        warnings.append("It does not declare tasks: its tools answer at once, or ask first.")
    return ServerReport(
        name=server,
        title=f"{info.title or info.name} {info.version}" if info is not None else "(it does not say)",
        versions=found.supported_versions,
        has_tasks=found.has_tasks,
        tools=len(listing.tools),
        instructions=found.instructions,
        warnings=tuple(warnings),
    )


def with_words(error: EngineError, faults: Iterable[str], stderr: tuple[str, ...]) -> EngineError:
    """Return *error* with what a server that was started wrote beside the protocol."""
    said = " ".join((error.message, *(inert_line(fault, 300) for fault in faults)))
    return EngineError(error.failure, said, stderr=stderr)
