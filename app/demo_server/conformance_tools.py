"""The tools that the official conformance suite calls, as its scenarios describe them.

Their names, texts and outcomes are the suite's; nothing outside this service happens here either.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any, Final

from app.demo_server.errors import INTERNAL_ERROR, RpcError
from app.demo_server.questions import form
from app.demo_server.tools import Ask, Done, Job, Outcome, Tool, Work, tool_result

_SECONDS_MOST: Final = 600
_TICKS: Final = 4
"""Steps in a second of work: how soon a cancellation is noticed."""
_FORM: Final = frozenset({"form"})


def _greet(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    return tool_result(f"Hello, {arguments['name']}!")


def _slow_compute(job: Job) -> Outcome:
    """Work for the given time, in ticks, so that it can be cancelled on the way."""
    seconds = job.arguments["seconds"]
    ticks = math.ceil(seconds * _TICKS)
    if job.position < ticks:
        return Work(f"Computing ({job.position + 1} of {ticks})", pause_ms=round(seconds * 1000 / ticks))
    return Done("Computed", _computed(job.arguments))


async def _slow_compute_inline(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    await asyncio.sleep(arguments["seconds"])
    return _computed(arguments)


def _computed(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return tool_result(f"{arguments.get('label', 'It')} took {arguments['seconds']} s.")


def _failing_job(job: Job) -> Outcome:
    """Complete with an error result: the tool ran, and failed."""
    if job.position == 0:
        return Work("Trying", pause_ms=1000)
    return Done("The tool reported an error", tool_result("This job always fails.", error=True))


def _protocol_error_job(job: Job) -> Outcome:
    """Fail with a JSON-RPC error: the call itself could not be served."""
    if job.position == 0:
        return Work("Trying")
    raise RpcError(INTERNAL_ERROR, "this job always ends with a protocol error")


def _confirm_delete(job: Job) -> Outcome:
    """Ask one question; without a yes nothing is deleted. With one neither: there are no files here."""
    filename = job.arguments["filename"]
    if "confirm" not in job.answers:
        confirm = {"confirm": {"type": "boolean", "title": "Delete it"}}
        return Ask(
            "Waiting for a confirmation", {"confirm": form(f"Delete {filename}?", confirm, ("confirm",))}
        )
    if job.content("confirm").get("confirm") is True:
        return Done("Deleted", tool_result(f"Deleted {filename}."))
    return Done("Nothing was deleted", tool_result(f"{filename} was kept."))


def _multi_input(job: Job) -> Outcome:
    """Ask two questions at once; each can be answered by itself."""
    if not job.answers:
        name = {"name": {"type": "string", "title": "Name"}}
        confirm = {"confirm": {"type": "boolean", "title": "Go on"}}
        asks = {
            "user_name": form("What is your name?", name, ("name",)),
            "go_on": form("Go on?", confirm, ("confirm",)),
        }
        return Ask("Waiting for two answers", asks)
    answers = {"name": job.content("user_name").get("name"), "confirm": job.content("go_on").get("confirm")}
    return Done(
        "Both were dealt with", tool_result(f"name: {answers['name']}, confirm: {answers['confirm']}")
    )


def _asks_name(arguments: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    name = {"name": {"type": "string", "title": "Name", "minLength": 1}}
    return {"user_name": form("What is your name?", name, ("name",))}


def _test_tool_with_task(job: Job) -> Outcome:
    """Work with what was answered before the task existed."""
    if job.position == 0:
        return Work("Working")
    return Done("Done", tool_result(f"Hello, {job.content('user_name')['name']}!"))


def _said(text: str) -> Any:
    return lambda arguments: tool_result(text)


def _custom_header(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    return tool_result(f"The call for {arguments['region']!r} went where its headers said.")


_SCHEMA_2020_12: Final[Mapping[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

CONFORMANCE: Final = (
    Tool(
        "greet",
        "Greet",
        "Greets somebody at once, without a task.",
        {"name": {"type": "string", "title": "Name"}},
        ("name",),
        reply=_greet,
    ),
    Tool(
        "slow_compute",
        "Compute slowly",
        "Works for the given time: as a task, or within the call for a client without tasks.",
        {
            "seconds": {"type": "number", "title": "Seconds", "minimum": 0, "maximum": _SECONDS_MOST},
            "label": {"type": "string", "title": "Label"},
        },
        ("seconds",),
        step=_slow_compute,
        inline=_slow_compute_inline,
    ),
    Tool(
        "failing_job",
        "Run a failing job",
        "Completes with an error result after a second. Runs as a task.",
        step=_failing_job,
    ),
    Tool(
        "protocol_error_job",
        "Run a job with a protocol error",
        "Fails with a JSON-RPC error. Runs as a task.",
        step=_protocol_error_job,
    ),
    Tool(
        "confirm_delete",
        "Delete after a confirmation",
        "Asks one question before it says that it deleted something. Runs as a task.",
        {"filename": {"type": "string", "title": "File"}},
        ("filename",),
        step=_confirm_delete,
        modes=_FORM,
    ),
    Tool(
        "multi_input",
        "Ask for two things",
        "Asks two questions at once. Runs as a task.",
        step=_multi_input,
        modes=_FORM,
    ),
    Tool(
        "test_tool_with_task",
        "Ask, then run as a task",
        "Asks for a name before its task exists, and greets with it at the end.",
        step=_test_tool_with_task,
        before=_asks_name,
        modes=_FORM,
    ),
    Tool(
        "test_missing_capability",
        "Need sampling",
        "Is refused to a client that does not declare sampling; does nothing for others.",
        reply=_said("The client declared sampling; nothing was sampled."),
        capabilities=frozenset({"sampling"}),
    ),
    Tool(
        "test_streaming_elicitation",
        "Ask within a call",
        "Asks for a name, and answers without a task once it has it.",
        before=_asks_name,
        reply=_said("Thank you."),
        modes=_FORM,
    ),
    Tool(
        "test_logging_tool",
        "Log nothing",
        "Answers at once; this service sends no log messages.",
        reply=_said("Nothing was logged."),
    ),
    Tool(
        "test_custom_header",
        "Repeat parameters in headers",
        "Has parameters that HTTP headers repeat, one of each type that may be.",
        {
            "region": {"type": "string", "title": "Region", "x-mcp-header": "Region"},
            "priority": {"type": "integer", "title": "Priority", "x-mcp-header": "Priority"},
            "dry_run": {"type": "boolean", "title": "Dry run", "x-mcp-header": "Dry-Run"},
        },
        ("region",),
        reply=_custom_header,
    ),
    Tool(
        "json_schema_2020_12_tool",
        "Take a schema of 2020-12",
        "Has a schema with keywords of JSON Schema 2020-12.",
        schema=_SCHEMA_2020_12,
        reply=_said("The arguments fit the schema."),
    ),
)
"""In the order they are listed. The first one answers a call without arguments with a result, as it must."""
