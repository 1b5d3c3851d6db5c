"""One task from its call to its end, with nothing but HTTP and JSON: python six_lines.py URL

Start a service with `taskinbox demo-server`; the URL is what it prints. Each line says what one reply
was; an acknowledgement has no status. In between, the script waits to be told of the task, and does not poll.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from typing import IO, Any

PREFIX = "io.modelcontextprotocol/"
VERSION = "2026-07-28"
CAPABILITIES: dict[str, Any] = {"extensions": {f"{PREFIX}tasks": {}}, "elicitation": {"form": {}}}


def sent(url: str, request_id: int | str, method: str, params: dict[str, Any]) -> IO[bytes]:
    """Send one request, which says everything about itself, and return the reply to be read."""
    meta = {f"{PREFIX}protocolVersion": VERSION, f"{PREFIX}clientCapabilities": CAPABILITIES}
    body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**params, "_meta": meta}}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": method,
    }
    if name := params.get("name", params.get("taskId")):
        headers["Mcp-Name"] = name
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    reply: IO[bytes] = urllib.request.urlopen(request, timeout=60)
    return reply


def call(url: str, request_id: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of one request, and print what it was."""
    with sent(url, request_id, method, params) as reply:
        message = json.load(reply)
    result: dict[str, Any] = message["result"]
    print(f"id={message['id']} resultType={result['resultType']} status={result.get('status', 'ack')}")
    return result


def wait(url: str, task_id: str, status: str) -> None:
    """Return when the service says that a task has *status*; it begins with what the task has now."""
    with sent(url, "wait", "subscriptions/listen", {"notifications": {"taskIds": [task_id]}}) as stream:
        for line in stream:
            if line.startswith(b"data: ") and json.loads(line[6:]).get("params", {}).get("status") == status:
                return
    raise SystemExit(f"the service ended before the task was {status}")


def main(url: str) -> None:
    call(url, 0, "server/discover", {})
    arguments = {"name": "generate_report", "arguments": {"size": "small"}}
    task = {"taskId": call(url, 1, "tools/call", arguments)["taskId"]}
    call(url, 2, "tasks/get", task)
    wait(url, task["taskId"], "input_required")
    (question,) = call(url, 3, "tasks/get", task)["inputRequests"]
    answer = {question: {"action": "accept", "content": {"approved": True}}}
    call(url, 4, "tasks/update", {**task, "inputResponses": answer})
    wait(url, task["taskId"], "completed")
    call(url, 5, "tasks/get", task)


if __name__ == "__main__":
    main(sys.argv[1])
