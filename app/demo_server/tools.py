"""What a tool is: a small step function over what is on disk.

A step is pure. It gets the arguments, how many steps came before, what the last step left behind and the
answers given so far; it returns what happens next. The worker commits that before it takes another step, so a
step may be computed twice after a crash, but only one of the two outcomes is ever seen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.demo_server.errors import ServeError


@dataclass(frozen=True, slots=True)
class Job:
    """What a step knows."""

    arguments: Mapping[str, Any]
    """Checked against the tool's schema."""
    position: int
    """How many steps came before."""
    state: Mapping[str, Any]
    """What the last step left."""
    answers: Mapping[str, Mapping[str, Any]]
    """Responses by key: ``{"action": …, "content": …}``."""
    token: str
    """Random, new at each step; what must last goes into the state."""
    cancel_requested: bool = False
    """Somebody no longer wants it. Only a tool that handles that itself ever sees this set."""

    def action(self, key: str) -> str:
        """Return how the question was answered: ``accept``, ``decline`` or ``cancel``."""
        return str(self.answers[key]["action"])

    def refusal(self, key: str) -> str | None:
        """Return how the question was not accepted, ``declined`` or ``dismissed``; ``None``: it was."""
        return {"decline": "declined", "cancel": "dismissed"}.get(self.action(key))

    def content(self, key: str) -> dict[str, Any]:
        """Return what was filled in; empty where the question wasn't accepted, or had no form."""
        return dict(self.answers[key].get("content") or {}) if self.action(key) == "accept" else {}


@dataclass(frozen=True, slots=True)
class Work:
    """Go on after a pause."""

    message: str
    state: Mapping[str, Any] | None = None
    """What the next step finds; ``None`` keeps what there is."""
    pause: float = 1
    """In steps: the service decides how long one is."""
    pause_ms: int | None = None
    """In milliseconds, instead, where the caller said how long."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Wait until every one of these questions is answered."""

    message: str
    requests: Mapping[str, Mapping[str, Any]]
    """By key; no key may have been asked before in this task."""


@dataclass(frozen=True, slots=True)
class Done:
    """End with a result of tools/call; with ``isError`` in it the task is completed all the same."""

    message: str
    result: Mapping[str, Any]
    keep_ms: int | None = None
    """How long the result is kept from now on; ``None`` keeps it for the time the task was given."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """End as cancelled: for a tool that handles a cancellation itself."""

    message: str


Outcome = Work | Ask | Done | Stopped
"""To fail a task with a JSON-RPC error, a step raises `RpcError`."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as it is listed, and what it does.

    Exactly one of `reply` (an immediate result) and `step` (a task) is set; `inline` goes with `step`.
    """

    name: str
    title: str
    description: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    output_schema: Mapping[str, Any] | None = None
    reply: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None
    step: Callable[[Job], Outcome] | None = None
    before: Callable[[Mapping[str, Any]], Mapping[str, Mapping[str, Any]]] | None = None
    """The questions asked before the work begins; every one must be accepted, or nothing is done."""
    inline: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]] | None = None
    """The same work within the call, for a client without tasks; with ``None`` it is refused."""
    modes: frozenset[str] = frozenset()
    """The elicitation modes it asks in: ``form``, ``url``. A client lacking one is refused at the call."""
    handles_cancel: bool = False
    """Its steps see that the task is no longer wanted and decide; for all others the next step ends it."""
    capabilities: frozenset[str] = frozenset()
    """What else a client must declare."""
    schema: Mapping[str, Any] | None = None
    """The whole schema of the arguments, where `properties` and `required` can't say it."""

    @property
    def input_schema(self) -> dict[str, Any]:
        """Return the schema of the arguments; others than those named are refused."""
        if self.schema is not None:
            return dict(self.schema)
        schema: dict[str, Any] = {"type": "object", "properties": dict(self.properties)}
        if self.required:
            schema["required"] = list(self.required)
        return {**schema, "additionalProperties": False}

    def listed(self) -> dict[str, Any]:
        """Return the tool as tools/list shows it."""
        entry: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.input_schema,
        }
        if self.output_schema is not None:
            entry["outputSchema"] = dict(self.output_schema)
        return entry


def tool_result(
    text: str, structured: Mapping[str, Any] | None = None, *, error: bool = False
) -> dict[str, Any]:
    """Return a result of tools/call with one text, and structured content where there is some."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": error}
    return result if structured is None else {**result, "structuredContent": dict(structured)}


def tools_named(name: str) -> dict[str, Tool]:
    """Return the set of tools with this name, in the order they are listed.

    Raises:
        ServeError: there is no such set.
    """
    if name == "conformance":
        from app.demo_server.conformance_tools import CONFORMANCE as tools
    elif name == "demo":
        from app.demo_server.demo_tools import DEMO as tools
    else:
        raise ServeError(f"there is no set of tools called {name!r}; this service has: demo, conformance")
    return {tool.name: tool for tool in tools}
