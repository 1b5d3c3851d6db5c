"""A server whose tasks are what a test says they are, over `ScriptedServer`'s real socket.

It keeps to the protocol unless told otherwise: tasks/get shows what `tasks` holds, tasks/update and
tasks/cancel acknowledge and change nothing, so that a test decides when the server shows the effect.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fakes.mcp_server import Exchange, Received, ScriptedServer, error, result

Json = dict[str, Any]
APPROVE: Json = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Deploy build 4711?",
        "requestedSchema": {"type": "object", "properties": {"ok": {"type": "boolean"}}},
    },
}
OTHER: Json = {"method": "elicitation/create", "params": {"mode": "form", "message": "Really?"}}


def task(task_id: str, status: str = "working", **members: Any) -> Json:
    """Return a task as tasks/get shows it."""
    return {
        "resultType": "complete",
        "taskId": task_id,
        "status": status,
        "createdAt": "2026-07-28T10:00:00Z",
        "lastUpdatedAt": "2026-07-28T10:00:00Z",
        "ttlMs": None,
        "pollIntervalMs": 1_000,
        **members,
    }


def handle(task_id: str, **members: Any) -> Json:
    """Return a task handle as tools/call returns it."""
    return {**task(task_id, **members), "resultType": "task"}


@dataclass
class TaskScript(ScriptedServer):
    """The server; `tasks` may be changed at any time."""

    tasks: dict[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.on("tasks/get", self.get)
        self.on("tasks/update", result({"resultType": "complete"}))
        self.on("tasks/cancel", result({"resultType": "complete"}))

    async def get(self, exchange: Exchange) -> None:
        """Answer tasks/get."""
        found = self.tasks.get(exchange.request.params["taskId"])
        reply = error(-32602, "Task not found") if found is None else result(found)
        await reply(exchange)

    def show(self, task_id: str, status: str = "working", **members: Any) -> None:
        """Say how a task is from now on."""
        self.tasks[task_id] = task(task_id, status, **members)

    def ask(self, task_id: str, **requests: Json) -> None:
        """Say what a task asks from now on."""
        self.show(task_id, "input_required", inputRequests=requests)

    @property
    def updates(self) -> list[Received]:
        """The answers that came in."""
        return self.of("tasks/update")

    def answered(self) -> list[Json]:
        """The answers that came in, by key."""
        return [update.params["inputResponses"] for update in self.updates]
