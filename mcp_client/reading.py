"""From raw objects to models: strict in what is vital, forgiving in the rest, and it says what it forgave.

A field is vital when a wrong one would make us act on the wrong thing: ``taskId``, ``status``,
``resultType``, ``requestState``. There a `ProtocolError` names the field. Anything else that is broken
becomes a fault of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final, TypeVar, get_args

from pydantic import ValidationError

from mcp_client.errors import ProtocolError
from mcp_client.jsonrpc import JSONObject, quoted
from mcp_client.tool_headers import mirrored_parameters
from mcp_client.types import (
    DETAILED_TASK,
    INPUT_METHODS,
    TASK_METHODS,
    CallOutcome,
    CallToolResult,
    CompleteResult,
    CreateTaskResult,
    DetailedTask,
    DiscoverResult,
    Implementation,
    InputRequest,
    InputRequiredResult,
    Progress,
    TaskStatus,
    Tool,
    WireModel,
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST: Final = 2**53 - 1
"""The largest whole number that every JSON implementation holds exactly; also fits every database."""
NO_SCHEMA: Final = "The tool's output schema is no object."

_STATUSES: Final = get_args(TaskStatus)
_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
_RESULT_TYPES: Final = ("complete", "input_required", "task")

Model = TypeVar("Model", bound=WireModel)


def result_type(raw: Mapping[str, Any]) -> str:
    """Return a result's type; a missing one means ``complete``. Raises `ProtocolError` for an unknown one."""
    found = raw.get("resultType", "complete")
    if found not in _RESULT_TYPES:
        raise ProtocolError(f"The result's type {quoted(found)} is not known.", field="resultType")
    return str(found)


def check_result_type(method: str, raw: Mapping[str, Any], *, tasks: bool = True) -> str:
    """Return a result's type; raises `ProtocolError` for one that *method* must not be answered with.

    *tasks* says whether the request declared the extension: a server must make no task for one that did not
    (the Tasks extension, "Capability Negotiation").
    """
    found = result_type(raw)
    allowed = {"task": TASK_METHODS, "input_required": INPUT_METHODS}.get(found)
    if allowed is not None and method not in allowed:
        raise ProtocolError(f"A result of type “{found}” is not allowed for {method}.", field="resultType")
    if found == "task" and not tasks:
        made = quoted(raw.get("taskId"))
        raise ProtocolError(
            f"The server made a task ({made}), though none was offered: tasks were not declared.",
            field="resultType",
        )
    return found


def read_outcome(method: str, raw: JSONObject, *, tasks: bool = True) -> CallOutcome:
    """Read the result of a request that may also become a task, where it declared *tasks*, or ask something
    first."""
    found = check_result_type(method, raw, tasks=tasks)
    if found == "task":
        return read_handle(raw)
    if found == "input_required":
        return read_input_required(raw)
    if method == "tools/call":
        return read_tool_result(raw)
    return CompleteResult(raw=raw)


def read_task(raw: JSONObject, *, asked_for: str | None = None) -> DetailedTask:
    """Read a task as ``tasks/get`` shows it.

    The extension's own page shows such a reply with ``resultType: "task"``: it is read, and noted as a fault.
    Raises `ProtocolError` for a task other than *asked_for*, and for a vital field that is broken.
    """
    fields, faults = _task_fields(raw, asked_for)
    found = result_type(raw)
    if found == "input_required":
        raise ProtocolError(
            "A result of type “input_required” is not allowed for tasks/get.", field="resultType"
        )
    if found == "task":
        faults.append("The reply says resultType “task” where “complete” is due.")
    status = fields["status"]
    if status == "input_required":
        fields["input_requests"] = _input_requests(raw, faults)
    elif status in ("completed", "failed"):
        member = "result" if status == "completed" else "error"
        value = raw.get(member)
        if not isinstance(value, dict):
            faults.append(f"The task is {status}, but its {member} is missing or no object.")
            value = None
        fields[member] = value
    try:
        return DETAILED_TASK.validate_python({**fields, "raw": raw, "faults": tuple(faults)})
    except ValidationError as error:
        raise _broken(error) from None


def read_handle(raw: JSONObject) -> CreateTaskResult:
    """Read a task handle; raises `ProtocolError` for a vital field that is broken."""
    fields, faults = _task_fields(raw, None)
    return _build(CreateTaskResult, fields, raw, faults)


def read_input_required(raw: JSONObject) -> InputRequiredResult:
    """Read a result that asks something first; raises `ProtocolError` where it asks nothing and has no
    state."""
    faults: list[str] = []
    state = raw.get("requestState")
    if state is not None and not isinstance(state, str):
        raise ProtocolError("The request state is not a string.", field="requestState")
    if state is None and raw.get("inputRequests") is None:
        raise ProtocolError("The server asks for input but sends no input requests.", field="inputRequests")
    asked = _input_requests(raw, faults) if raw.get("inputRequests") is not None else {}
    return _build(InputRequiredResult, {"input_requests": asked, "request_state": state}, raw, faults)


def read_tool_result(raw: JSONObject) -> CallToolResult:
    """Read what a tool returned; also fits the ``result`` of a completed task."""
    faults: list[str] = []
    blocks = raw.get("content")
    if not isinstance(blocks, list):
        faults.append("The result has no list of content.")
        blocks = []
    kept = tuple(block for block in blocks if isinstance(block, dict) and isinstance(block.get("type"), str))
    if len(kept) != len(blocks):
        faults.append(f"{len(blocks) - len(kept)} of the result's content blocks can't be read.")
    error = raw.get("isError", False)
    if not isinstance(error, bool):
        faults.append("The result's isError is not a boolean.")
    fields = {
        "content": kept,
        "structured_content": raw.get("structuredContent"),
        "has_structured_content": "structuredContent" in raw,
        "is_error": error is True,
    }
    return _build(CallToolResult, fields, raw, faults)


def read_discovery(raw: JSONObject) -> DiscoverResult:
    """Read what a server says of itself."""
    faults: list[str] = []
    versions, capabilities = raw.get("supportedVersions"), raw.get("capabilities")
    if not isinstance(versions, list) or not all(isinstance(version, str) for version in versions):
        raise ProtocolError("The supported versions are not a list of strings.", field="supportedVersions")
    if not isinstance(capabilities, dict):
        raise ProtocolError("The capabilities are not an object.", field="capabilities")
    fields = {
        "supported_versions": tuple(versions),
        "capabilities": capabilities,
        "server_info": _server_info(raw, faults),
        "instructions": _text(raw, "instructions", faults),
        **cache_fields(raw),
    }
    return _build(DiscoverResult, fields, raw, faults)


def cache_fields(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return how long and for whom a result may be kept (server/utilities/caching); what is broken is not
    kept."""
    scope = raw.get("cacheScope")
    return {
        "ttl_ms": _whole(raw.get("ttlMs")),
        "cache_scope": scope if scope in ("public", "private") else None,
    }


def read_tool(raw: Any) -> Tool | str:
    """Read one entry of a list of tools, or return why it is left out."""
    if not isinstance(raw, dict) or not isinstance(raw.get("name"), str):
        return "A tool without a name was left out."
    name = raw["name"]
    if not isinstance(raw.get("inputSchema"), dict):
        return f"The tool {quoted(name)} was left out: its input schema is missing or no object."
    try:
        mirrored = mirrored_parameters(raw["inputSchema"])
    except ValueError as error:
        return f"The tool {quoted(name)} was left out: {error}."
    faults: list[str] = []
    annotations = raw.get("annotations")
    output = raw.get("outputSchema")
    fields = {
        "name": name,
        "title": _text(raw, "title", faults),
        "description": _text(raw, "description", faults),
        "input_schema": raw["inputSchema"],
        "output_schema": output if isinstance(output, dict) else None,
        "annotations": annotations if isinstance(annotations, dict) else {},
        "mirrored": mirrored,
    }
    if output is not None and fields["output_schema"] is None:
        faults.append(NO_SCHEMA)
    return _build(Tool, fields, raw, faults)


def read_progress(params: JSONObject) -> Progress:
    """Read the params of a progress notification."""
    message = params.get("message")
    return Progress(
        progress=_number(params.get("progress")),
        total=_number(params.get("total")),
        message=message if isinstance(message, str) else None,
        raw=params,
    )


def parse_time(text: str) -> int:
    """Return an ISO 8601 time in milliseconds since the epoch; a time without a zone is taken as UTC.

    Raises `ValueError` for what is no time.
    """
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return (found - _EPOCH) // timedelta(milliseconds=1)


def _task_fields(raw: JSONObject, asked_for: str | None) -> tuple[dict[str, Any], list[str]]:
    faults: list[str] = []
    task_id, status = raw.get("taskId"), raw.get("status")
    if not isinstance(task_id, str) or not task_id:
        raise ProtocolError("The task's id is missing or no string.", field="taskId")
    if asked_for is not None and task_id != asked_for:
        raise ProtocolError(f"The reply is about another task ({quoted(task_id)}).", field="taskId")
    if status not in _STATUSES:
        raise ProtocolError(f"The task's status {quoted(status)} is not known.", field="status")
    fields: dict[str, Any] = {
        "task_id": task_id,
        "status": status,
        "status_message": _text(raw, "statusMessage", faults),
        "ttl_ms": _milliseconds(raw, "ttlMs", faults, required=True),
        "poll_interval_ms": _milliseconds(raw, "pollIntervalMs", faults, required=False),
    }
    for name, field in (("createdAt", "created_at"), ("lastUpdatedAt", "last_updated_at")):
        fields[field] = text = _text(raw, name, faults, required=True)
        if text is not None:
            fields[f"{field}_ms"] = _time(text, name, faults)
    return fields, faults


def _input_requests(raw: JSONObject, faults: list[str]) -> dict[str, InputRequest]:
    entries = raw.get("inputRequests")
    if not isinstance(entries, dict):
        faults.append("Input is required, but the input requests are missing or no object.")
        return {}
    found: dict[str, InputRequest] = {}
    for key, entry in entries.items():
        method = entry.get("method") if isinstance(entry, dict) else None
        params = entry.get("params") if isinstance(entry, dict) else None
        if not isinstance(method, str) or not (params is None or isinstance(params, dict)):
            faults.append(f"The input request {quoted(key)} can't be read.")
            continue
        wrong = _faults_in_question(method, params or {})
        found[key] = InputRequest(key=key, method=method, params=params, raw=entry, faults=wrong)
    return found


def _faults_in_question(method: str, params: JSONObject) -> tuple[str, ...]:
    if method != "elicitation/create":
        return ()
    faults = []
    mode = params.get("mode", "form")
    if mode not in ("form", "url"):
        faults.append(f"The elicitation's mode {quoted(mode)} is not known.")
    if not isinstance(params.get("message"), str):
        faults.append("The elicitation has no message.")
    if mode == "form" and not isinstance(params.get("requestedSchema"), dict):
        faults.append("The elicitation has no schema.")
    if mode == "url" and not isinstance(params.get("url"), str):
        faults.append("The elicitation has no address.")
    return tuple(faults)


def _text(raw: JSONObject, name: str, faults: list[str], *, required: bool = False) -> str | None:
    value = raw.get(name)
    if isinstance(value, str):
        return value
    if value is not None or required:
        faults.append(f"{name} is missing or no string." if required else f"{name} is not a string.")
    return None


def _milliseconds(raw: JSONObject, name: str, faults: list[str], *, required: bool) -> int | None:
    if name not in raw:
        if required:
            faults.append(f"{name} is missing.")
        return None
    value = raw[name]
    found = _whole(value)
    if found is None and (value is not None or not required):
        faults.append(f"{name} is not a length of time in milliseconds.")
    return found


def _whole(value: Any) -> int | None:
    """Return a number of milliseconds; fractions are dropped, since nothing here is that exact."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return None
    return int(value) if 0 <= value <= _LARGEST else None


def _number(value: Any) -> int | Decimal | None:
    return value if isinstance(value, (int, Decimal)) and not isinstance(value, bool) else None


def _time(text: str, name: str, faults: list[str]) -> int | None:
    try:
        return parse_time(text)
    except ValueError:
        faults.append(f"{name} is no ISO 8601 time: {quoted(text)}.")
        return None


def _server_info(raw: JSONObject, faults: list[str]) -> Implementation | None:
    meta = raw.get("_meta")
    found = meta.get(_SERVER_INFO) if isinstance(meta, dict) else None
    if found is None:
        return None
    try:
        return Implementation.model_validate({**found, "raw": found, "faults": ()})
    except (ValidationError, TypeError):
        faults.append("The server's name and version can't be read.")
        return None


def _build(model: type[Model], fields: Mapping[str, Any], raw: JSONObject, faults: list[str]) -> Model:
    try:
        return model.model_validate({**fields, "raw": raw, "faults": tuple(faults)})
    except ValidationError as error:
        raise _broken(error) from None


def _broken(error: ValidationError) -> ProtocolError:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return ProtocolError(f"The reply's {where} is not valid: {first['msg']}.", field=where)
