"""Be told of tasks, and look at those that nobody tells of: python listen.py URL TASK_ID…"""

from __future__ import annotations

import asyncio
import sys

from mcp_client import McpClient, McpError, Missed, ServerError, TaskNotification

OVER = ("completed", "failed", "cancelled")


async def poll(client: McpClient, task_id: str) -> None:
    """Look at a task until it is over."""
    while True:
        task = await client.get_task(task_id)
        if task.status in OVER:
            print(f"{task_id} {task.status}")
            return
        await asyncio.sleep((task.poll_interval_ms or 5_000) / 1_000)


async def main(url: str, *task_ids: str) -> None:
    async with McpClient.http(url) as client:
        left = set(task_ids)
        try:
            async with client.listen(task_ids) as subscription:
                async for event in subscription:
                    if isinstance(event, Missed):
                        break  # something was said that could not be kept: look at the tasks instead
                    if isinstance(event, TaskNotification):
                        print(f"{event.task.task_id} {event.task.status}")
                        if event.task.status in OVER:
                            left.discard(event.task.task_id)
                    if not left & subscription.accepted:
                        break
        except ServerError as error:
            print(f"no subscriptions here: {error}")  # most servers have none
        # However it ended: what is left was refused, or is not known to be over.
        await asyncio.gather(*(poll(client, task_id) for task_id in left))


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:]))
    except McpError as error:
        sys.exit(f"{type(error).__name__}: {error}")
