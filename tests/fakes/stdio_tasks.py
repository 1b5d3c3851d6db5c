"""A task server on stdio that keeps its tasks in memory: ``python stdio_tasks.py [WORD…]``.

Its tools: ``ask`` makes a task that asks for a name; ``pid`` answers at once. ``rubbish`` among the words: it
prints what is no message. ``listen``: it has subscriptions, and tells of each task it has changed. ``exit``:
it ends at the first request. Each process says ``PID METHOD`` on stderr for every request it gets.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

Json = dict[str, Any]
TASKS = "io.modelcontextprotocol/tasks"
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("ask", "pid")]
QUESTION = {
    "method": "elicitation/create",
    "params": {
        "message": "Who?",
        "requestedSchema": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        },
    },
}


def write(message: Json) -> None:
    """Send a message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


class Server:
    """What one process knows."""

    def __init__(self, words: set[str]) -> None:
        self.words = words
        self.tasks: dict[str, Json] = {}
        self.subscriptions: dict[str, list[str]] = {}

    def handle(self, request: Json) -> None:
        """Answer one request."""
        request_id, params = request["id"], request["params"]
        match request["method"]:
            case "server/discover":
                self.reply(request_id, supportedVersions=["2026-07-28"], capabilities=self.capabilities())
            case "tools/list":
                self.reply(request_id, tools=TOOLS, ttlMs=0, cacheScope="private")
            case "tools/call" if params["name"] == "pid":
                self.reply(request_id, content=[{"type": "text", "text": str(os.getpid())}])
            case "tools/call":
                task = self.tasks[f"tsk-{os.getpid()}-{len(self.tasks)}"] = {}
                task |= {"status": "input_required", "inputRequests": {"who": QUESTION}}
                self.reply(request_id, kind="task", **self.seen(list(self.tasks)[-1]))
            case "tasks/get" if params["taskId"] in self.tasks:
                self.reply(request_id, **self.seen(params["taskId"]))
            case "tasks/update" if params["taskId"] in self.tasks:
                self.finish(params["taskId"], params["inputResponses"]["who"])
                self.reply(request_id)
            case "tasks/cancel" if params["taskId"] in self.tasks:
                self.tasks[params["taskId"]] = {"status": "cancelled"}
                self.reply(request_id)
            case "subscriptions/listen" if "listen" in self.words:
                self.listen(request_id, params["notifications"]["taskIds"])
            case method if method.startswith("tasks/"):
                self.refuse(request_id, -32602, "Task not found")
            case method:
                self.refuse(request_id, -32601, f"No method {method}")

    def capabilities(self) -> Json:
        return {"tools": {}, "extensions": {TASKS: {}}}

    def seen(self, task_id: str) -> Json:
        at = "2026-07-28T10:00:00Z"
        times = {"createdAt": at, "lastUpdatedAt": at, "ttlMs": None, "pollIntervalMs": 500}
        return {"taskId": task_id, **times, **self.tasks[task_id]}

    def finish(self, task_id: str, answer: Json) -> None:
        text = json.dumps({"answer": answer, "pid": os.getpid()})
        result = {"content": [{"type": "text", "text": text}]}
        self.tasks[task_id] = {"status": "completed", "result": result}
        for subscription, task_ids in self.subscriptions.items():
            if task_id in task_ids:
                self.tell(subscription, "notifications/tasks", **self.seen(task_id))

    def listen(self, request_id: str, task_ids: list[str]) -> None:
        self.subscriptions[request_id] = task_ids
        acknowledged = {"taskIds": task_ids}
        self.tell(request_id, "notifications/subscriptions/acknowledged", notifications=acknowledged)
        for task_id in task_ids:
            if task_id in self.tasks:
                self.tell(request_id, "notifications/tasks", **self.seen(task_id))

    def tell(self, subscription: str, method: str, **params: Any) -> None:
        params["_meta"] = {"io.modelcontextprotocol/subscriptionId": subscription}
        write({"method": method, "params": params})

    def reply(self, request_id: str, kind: str = "complete", **result: Any) -> None:
        write({"id": request_id, "result": {"resultType": kind, **result}})

    def refuse(self, request_id: str, code: int, message: str) -> None:
        write({"id": request_id, "error": {"code": code, "message": message}})


def main() -> None:
    """Serve until stdin is closed."""
    server = Server(set(sys.argv[1:]))
    for line in sys.stdin:
        message = json.loads(line)
        sys.stderr.write(f"{os.getpid()} {message['method']}\n")
        sys.stderr.flush()
        if "exit" in server.words:
            sys.exit(3)
        if "rubbish" in server.words:
            sys.stdout.write("Loading model…\n")
        if "id" in message:
            server.handle(message)


if __name__ == "__main__":
    main()
