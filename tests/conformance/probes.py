"""What is tried on every peer; what came of it in a few words: ``yes``, ``–`` (has none), ``no: why``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from jsonschema import Draft202012Validator

from mcp_client import (
    AuthRequired,
    CallToolResult,
    CompletedTask,
    CreateTaskResult,
    DetailedTask,
    InputRequest,
    InputRequiredResult,
    InputRequiredTask,
    LegacyServer,
    McpClient,
    McpError,
    Progress,
    ServerError,
    TaskNotification,
    ToolsChanged,
)

PATIENCE: Final = 30.0
"""Seconds until a probe is given up."""
PAUSE: Final = 0.1
"""Seconds between two looks at a task."""
NONE: Final = "–"

Call: TypeAlias = tuple[str, dict[str, Any]]


class Surprise(Exception):
    """A peer did something else than the probe is about; the message goes into the cell."""


@dataclass(frozen=True, slots=True)
class Tools:
    """Which of a peer's tools does what; ``None``: none does."""

    call: Call | None = None
    """Answers at once."""
    asks_first: Call | None = None
    """Asks before it answers, or before it makes a task."""
    task: Call | None = None
    """A task of a second or two."""
    long: Call | None = None
    """A task that is to be cancelled."""
    asks: Call | None = None
    """A task that asks, once or several times."""
    steps: Call | None = None
    """Reports progress while the call is open."""
    structured: Call | None = None
    """Has an output schema."""
    mirrored: Call | None = None
    """Has a parameter that must travel as a header, too."""
    announces: Call | None = None
    """Tells subscribers that the tools have changed."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """One peer, and ways to speak to it."""

    client: McpClient
    tools: Tools
    again: Callable[[Mapping[str, str]], McpClient] | None = None
    """Makes another client, with these headers; ``None`` over stdio."""
    secured: bool = False
    """Whether it wants a token."""


async def revision(at: Meeting) -> str:
    """Which revision the peer speaks."""
    try:
        return ", ".join((await at.client.discover()).supported_versions)
    except LegacyServer as error:
        return error.version or "older, unsaid"


async def tasks_declared(at: Meeting) -> str:
    """Whether it declares the Tasks extension."""
    return "yes" if (await at.client.discover()).has_tasks else "no"


async def listed(at: Meeting) -> str:
    """Whether it lists tools, none of them left out."""
    found = await at.client.list_tools()
    if found.warnings or not found.tools:
        raise Surprise("; ".join(found.warnings) or "no tools")
    return "yes"


async def called(at: Meeting) -> str:
    """Whether a tool answers."""
    if at.tools.call is None:
        return NONE
    outcome = await at.client.call_tool(*at.tools.call)
    if not isinstance(outcome, CallToolResult) or outcome.is_error:
        raise Surprise(f"{type(outcome).__name__}")
    return "yes"


async def asks_first(at: Meeting) -> str:
    """Whether a call that asks is answered, and goes on."""
    if at.tools.asks_first is None:
        return NONE
    name, arguments = at.tools.asks_first
    asked = await at.client.call_tool(name, arguments)
    if not isinstance(asked, InputRequiredResult):
        raise Surprise(f"{type(asked).__name__} instead of questions")
    answers = accepted(asked.input_requests)
    outcome = await at.client.call_tool(
        name, arguments, input_responses=answers, request_state=asked.request_state
    )
    if isinstance(outcome, CreateTaskResult):
        await until(at.client, outcome.task_id, CompletedTask)
        return "yes, then a task"
    if not isinstance(outcome, CallToolResult) or outcome.is_error:
        raise Surprise(f"{type(outcome).__name__} behind the answer")
    return "yes"


async def task(at: Meeting) -> str:
    """Whether a task is made and completes, and an unknown one is said to be unknown."""
    if at.tools.task is None:
        return NONE
    done = await until(at.client, await begun(at.client, at.tools.task), CompletedTask)
    assert isinstance(done, CompletedTask)
    if done.faults:
        raise Surprise("; ".join(done.faults))
    try:
        await at.client.get_task("no-such-task")
    except ServerError as error:
        if error.is_invalid_params:
            return "yes"
    raise Surprise("an unknown task is not refused with -32602")


async def questions(at: Meeting) -> str:
    """Whether a task's questions arrive, and their answers."""
    if at.tools.asks is None:
        return NONE
    task_id = await begun(at.client, at.tools.asks)
    given: set[tuple[str, str]] = set()
    while True:
        now = await until(at.client, task_id, CompletedTask, InputRequiredTask)
        if not isinstance(now, InputRequiredTask):
            return "yes"
        # The state before an answer may still show behind it: each question is answered once.
        new = {
            key: asked for key, asked in now.input_requests.items() if (key, str(asked.params)) not in given
        }
        given |= {(key, str(asked.params)) for key, asked in new.items()}
        if new:
            await at.client.update_task(task_id, accepted(new))
        await asyncio.sleep(PAUSE)


async def cancelled(at: Meeting) -> str:
    """Whether a task can be cancelled."""
    if at.tools.long is None:
        return NONE
    task_id = await begun(at.client, at.tools.long)
    await at.client.cancel_task(task_id)
    while True:
        now = await at.client.get_task(task_id)
        if now.status in ("cancelled", "completed", "failed"):
            return "yes" if now.status == "cancelled" else f"ends {now.status}"
        await asyncio.sleep(PAUSE)


async def listened(at: Meeting) -> str:
    """What comes of asking to be told of a task."""
    if at.tools.task is None:
        return NONE
    task_id = await begun(at.client, at.tools.task)
    try:
        async with at.client.listen([task_id]) as subscription:
            if task_id in subscription.accepted:
                async for event in subscription:
                    if isinstance(event, TaskNotification) and event.task.status == "completed":
                        return "yes"
                raise Surprise(f"ended before the task: {subscription.ending}")
            try:
                async with asyncio.timeout(2):
                    async for _ in subscription:
                        raise Surprise("told of what it had not agreed to")
                return "no: agrees to nothing, and ends"
            except TimeoutError:
                return "no: agrees to nothing, and stays open"
    except ServerError as error:
        return f"no: {error.code}"


async def stepped(at: Meeting) -> str:
    """Whether progress is told of while a call is open."""
    if at.tools.steps is None:
        return NONE
    told: list[Progress] = []
    await at.client.call_tool(*at.tools.steps, on_progress=told.append)
    return "yes" if told else "no: none is told of"


async def structured(at: Meeting) -> str:
    """Whether a structured result keeps to its output schema."""
    if at.tools.structured is None:
        return NONE
    outcome = await at.client.call_tool(*at.tools.structured)
    if not isinstance(outcome, CallToolResult) or not outcome.has_structured_content:
        raise Surprise("no structured content")
    listed = {tool.name: tool for tool in (await at.client.list_tools()).tools}
    judge = Draft202012Validator(listed[at.tools.structured[0]].output_schema)
    faults = [error.message for error in judge.iter_errors(outcome.structured_content)]
    if faults:
        raise Surprise("; ".join(faults))
    return "yes"


async def mirrored(at: Meeting) -> str:
    """Whether a client that has not seen the tools recovers when a header of theirs is missing."""
    if at.tools.mirrored is None or at.again is None:
        return NONE
    name, arguments = at.tools.mirrored
    async with at.again({}) as newcomer:
        try:
            await newcomer.request("tools/call", {"name": name, "arguments": arguments})
            raise Surprise("misses no header")
        except ServerError as error:
            if not error.is_header_mismatch:
                raise
        outcome = await newcomer.call_tool(name, arguments)
    if not isinstance(outcome, CallToolResult) or outcome.is_error:
        raise Surprise(f"{type(outcome).__name__}")
    return "yes"


async def announced(at: Meeting) -> str:
    """Whether a subscriber is told that the tools have changed."""
    if at.tools.announces is None:
        return NONE
    async with at.client.listen([], tools_changed=True) as subscription:
        if not subscription.tools_changed:
            return "no: does not agree to"
        await at.client.call_tool(*at.tools.announces)
        async for event in subscription:
            if isinstance(event, ToolsChanged):
                return "yes"
    raise Surprise(f"ended: {subscription.ending}")


async def signed_in(at: Meeting) -> str:
    """Whether nobody gets in without a token, and nobody sees another one's tasks."""
    if not at.secured or at.again is None or at.tools.long is None:
        return NONE
    task_id = await begun(at.client, at.tools.long)
    async with at.again({}) as nobody:
        try:
            await nobody.discover()
            raise Surprise("needs no token")
        except AuthRequired:
            pass
    async with at.again({"Authorization": "Bearer bob-token"}) as other:
        try:
            await other.get_task(task_id)
            raise Surprise("shows another one's task")
        except ServerError as error:
            if not error.is_invalid_params:
                raise
    await at.client.cancel_task(task_id)
    return "yes"


Probe = Callable[[Meeting], Awaitable[str]]

PROBES: Final[Mapping[str, Probe]] = {
    "revision": revision,
    "tasks declared": tasks_declared,
    "list": listed,
    "call": called,
    "structured": structured,
    "progress": stepped,
    "headers": mirrored,
    "asks first": asks_first,
    "task": task,
    "questions": questions,
    "cancel": cancelled,
    "listen": listened,
    "tools changed": announced,
    "sign-in": signed_in,
}
"""The columns of the table, in order."""


async def probe(column: str, at: Meeting) -> str:
    """Fill one cell."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await PROBES[column](at)
    except LegacyServer:
        return NONE
    except TimeoutError:
        return f"nothing in {PATIENCE:g} s"
    except Surprise as error:
        return f"no: {error}"
    except McpError as error:
        return f"no: {type(error).__name__}: {error}".replace("|", "/").replace("\n", " ")


async def begun(client: McpClient, call: Call) -> str:
    """Make a task and return its id."""
    outcome = await client.call_tool(*call)
    if not isinstance(outcome, CreateTaskResult):
        raise Surprise(f"{type(outcome).__name__} instead of a task")
    return outcome.task_id


async def until(client: McpClient, task_id: str, *kinds: type) -> DetailedTask:
    """Poll a task until it is one of *kinds*; raises `Surprise` where it ends otherwise."""
    while True:
        now = await client.get_task(task_id)
        if isinstance(now, kinds):
            return now
        if now.status in ("completed", "failed", "cancelled"):
            raise Surprise(f"the task ended {now.status}")
        await asyncio.sleep(PAUSE)


def accepted(requests: Mapping[str, InputRequest]) -> dict[str, Any]:
    """Accept forms: text in every field that wants text."""
    answers = {}
    for key, request in requests.items():
        fields = request.params["requestedSchema"]["properties"]
        answers[key] = {"action": "accept", "content": dict.fromkeys(fields, "Ada")}
    return answers
