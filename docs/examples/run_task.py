"""Call a tool, answer what it asks, and print what comes of it: python run_task.py URL TOOL [JSON]."""

from __future__ import annotations

import asyncio
import json
import sys

from mcp_client import (
    CallToolResult,
    CompletedTask,
    CreateTaskResult,
    DetailedTask,
    FailedTask,
    InputRequest,
    InputRequiredResult,
    InputRequiredTask,
    JSONObject,
    McpClient,
    McpError,
    WorkingTask,
)


def answer(question: InputRequest) -> JSONObject:
    """Ask the person at the keyboard; this one only knows how to decline."""
    print(f"asked: {(question.params or {}).get('message')}")
    return {"action": "decline"}


async def call(client: McpClient, tool: str, arguments: JSONObject) -> CallToolResult | DetailedTask:
    """Call a tool; questions before there is a task are answered by repeating the call."""
    outcome = await client.call_tool(tool, arguments)
    while isinstance(outcome, InputRequiredResult):
        answers = {key: answer(question) for key, question in outcome.input_requests.items()}
        outcome = await client.call_tool(
            tool, arguments, input_responses=answers, request_state=outcome.request_state
        )
    if isinstance(outcome, CreateTaskResult):
        return await follow(client, outcome.task_id)
    return outcome


async def follow(client: McpClient, task_id: str) -> DetailedTask:
    """Look at a task until it is over; each of its questions is answered once."""
    answered: set[str] = set()
    while True:
        task = await client.get_task(task_id)
        if isinstance(task, InputRequiredTask):
            new = {key: question for key, question in task.input_requests.items() if key not in answered}
            if new:
                answered |= new.keys()
                await client.update_task(task_id, {key: answer(one) for key, one in new.items()})
        elif not isinstance(task, WorkingTask):
            return task
        await asyncio.sleep((task.poll_interval_ms or 5_000) / 1_000)


async def main(url: str, tool: str, arguments: str = "{}") -> str:
    async with McpClient.http(url) as client:
        found = await call(client, tool, json.loads(arguments))
    if isinstance(found, CallToolResult):
        return "\n".join(block.get("text", "") for block in found.content)
    if isinstance(found, CompletedTask):
        return f"completed: {found.result}"
    if isinstance(found, FailedTask):
        return f"failed: {found.error}"
    return found.status


if __name__ == "__main__":
    try:
        print(asyncio.run(main(*sys.argv[1:4])))
    except McpError as error:
        sys.exit(f"{type(error).__name__}: {error}")
