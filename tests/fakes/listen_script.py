"""What a server may say on a ``subscriptions/listen`` stream, for `fakes.mcp_server.stream`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fakes.mcp_server import Json, Received, notification, response

SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
Item = Callable[[Received], Json]


def marked(request: Received) -> Json:
    """Return the mark that every message on the stream of *request* carries."""
    return {SUBSCRIPTION_ID: request.json["id"]}


def ids_of(request: Received) -> list[str]:
    """Return the task ids that a listen request names."""
    return request.params["notifications"].get("taskIds", [])


def said(method: str, **params: Any) -> Item:
    """A notification with the mark of its subscription."""
    return lambda request: notification(method, {"_meta": marked(request), **params})


def ack(*ids: Any, **filters: Any) -> Item:
    """The acknowledgement of these ids; without any, of all that the request names."""

    def make(request: Received) -> Json:
        named = list(ids) or ids_of(request)
        return said("notifications/subscriptions/acknowledged", notifications={"taskIds": named, **filters})(
            request
        )

    return make


def ack_with(notifications: Any) -> Item:
    """An acknowledgement that says whatever a test likes."""
    return said("notifications/subscriptions/acknowledged", notifications=notifications)


def told(task: Json) -> Item:
    """A task's snapshot, as notifications carry it."""
    return said("notifications/tasks", **{name: v for name, v in task.items() if name != "resultType"})


def cancelled(reason: str | None = None) -> Item:
    """The server tears the stream down."""
    more = {} if reason is None else {"reason": reason}
    return lambda request: said("notifications/cancelled", requestId=request.json["id"], **more)(request)


def finished(**members: Any) -> Item:
    """The final result."""
    return lambda request: response({"resultType": "complete", "_meta": marked(request), **members})(request)


def event(value: Json) -> bytes:
    """The bytes of one event."""
    return b"event: message\r\ndata: " + json.dumps(value).encode() + b"\r\n\r\n"
