"""What is tried on every peer; what came of it in a few words: ``yes``, ``–`` (has none), ``no: why``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

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
    ServerError,
    TaskNotification,
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


async def revision(client: McpClient, tools: Tools, url: str | None) -> str:
    """Which revision the peer speaks."""
    try:
        return ", ".join((await client.discover()).supported_versions)
    except LegacyServer as error:
        return error.version or "older, unsaid"


async def tasks_declared(client: McpClient, tools: Tools, url: str | None) -> str:
    """Whether it declares the Tasks extension."""
    return "yes" if (await client.discover()).has_tasks else "no"


async def listed(client: McpClient, tools: Tools, url: str | None) -> str:
    """Whether it lists tools, none of them left out."""
    found = await client.list_tools()
    if found.warnings or not found.tools:
        raise Surprise("; ".join(found.warnings) or "no tools")
    return "yes"


async def called(client: McpClient, tools: Tools, url: str | None) -> str:
    """Whether a tool answers."""
    if tools.call is None:
        return NONE
    outcome = await client.call_tool(*tools.call)
    if not isinstance(outcome, CallToolResult) or outcome.is_error:
        raise Surprise(f"{type(outcome).__name__}")
    return "yes"


async def asks_first(client: McpClient, tools: Tools, url: str | None) -> str:
    """Whether a call that asks is answered, and goes on."""
    if tools.asks_first is None:
        return NONE
    name, arguments = tools.asks_first
    asked = await client.call_tool(name, arguments)
    if not isinstance(asked, InputRequiredResult):
        raise Surprise(f"{type(asked).__name__} instead of questions")
    answers = accepted(asked.input_requests)
    outcome = await client.call_tool(
        name, arguments, input_responses=answers, request_state=asked.request_state
    )
    if isinstance(outcome, CreateTaskResult):
        await until(client, outcome.task_id, CompletedTask)
        return "yes, then a task"
    if not isinstance(outcome, CallToolResult) or outcome.is_error:
        raise Surprise(f"{type(outcome).__name__} behind the answer")
    return "yes"


async def task(client: McpClient, tools: Tools, url: str | None) -> str:
    """Whether a task is made and completes, and an unknown one is said to be unknown."""
    if tools.task is None:
        return NONE
    done = await until(client, await begun(client, tools.task), CompletedTask)
    assert isinstance(done, CompletedTask)
    if done.faults:
        raise Surprise("; ".join(done.faults))
    try:
        await client.get_task("no-such-task")
    except ServerError as error:
        if error.is_invalid_params:
            return "yes"
    raise Surprise("an unknown task is not refused with -32602")


async def questions(client: McpClient, tools: Tools, url: str | None) -> str:
    """Whether a task's questions arrive, and their answers."""
    if tools.asks is None:
        return NONE
    task_id = await begun(client, tools.asks)
    given: set[tuple[str, str]] = set()
    while True:
        now = await until(client, task_id, CompletedTask, InputRequiredTask)
        if not isinstance(now, InputRequiredTask):
            return "yes"
        # The state before an answer may still show behind it: each question is answered once.
        new = {
            key: asked for key, asked in now.input_requests.items() if (key, str(asked.params)) not in given
        }
        given |= {(key, str(asked.params)) for key, asked in new.items()}
        if new:
            await client.update_task(task_id, accepted(new))
        await asyncio.sleep(PAUSE)


async def cancelled(client: McpClient, tools: Tools, url: str | None) -> str:
    """Whether a task can be cancelled."""
    if tools.long is None:
        return NONE
    task_id = await begun(client, tools.long)
    await client.cancel_task(task_id)
    while True:
        now = await client.get_task(task_id)
        if now.status in ("cancelled", "completed", "failed"):
            return "yes" if now.status == "cancelled" else f"ends {now.status}"
        await asyncio.sleep(PAUSE)


async def listened(client: McpClient, tools: Tools, url: str | None) -> str:
    """What comes of asking to be told of a task."""
    if tools.task is None:
        return NONE
    task_id = await begun(client, tools.task)
    try:
        async with client.listen([task_id]) as subscription:
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


async def signed_in(client: McpClient, tools: Tools, url: str | None) -> str:
    """Whether nobody gets in without a token, and nobody sees another one's tasks."""
    if url is None or tools.long is None:
        return NONE
    task_id = await begun(client, tools.long)
    async with McpClient.http(url) as nobody:
        try:
            await nobody.discover()
            raise Surprise("needs no token")
        except AuthRequired:
            pass
    async with McpClient.http(url, headers={"Authorization": "Bearer bob-token"}) as other:
        try:
            await other.get_task(task_id)
            raise Surprise("shows another one's task")
        except ServerError as error:
            if not error.is_invalid_params:
                raise
    await client.cancel_task(task_id)
    return "yes"


Probe = Callable[[McpClient, Tools, str | None], Awaitable[str]]

PROBES: Final[Mapping[str, Probe]] = {
    "revision": revision,
    "tasks declared": tasks_declared,
    "list": listed,
    "call": called,
    "asks first": asks_first,
    "task": task,
    "questions": questions,
    "cancel": cancelled,
    "listen": listened,
    "sign-in": signed_in,
}
"""The columns of the table, in order."""


async def probe(column: str, client: McpClient, tools: Tools, url: str | None) -> str:
    """Fill one cell; *url* is where to sign in as somebody else, ``None`` where nobody has to sign in."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await PROBES[column](client, tools, url)
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
