"""The verbs of the service, free of HTTP: each takes the request's params and returns a result, or raises.

Every verb reads and writes the store within one turn of the event loop, so a verb either happened or did not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from app import __version__
from app.demo_server.errors import INVALID_PARAMS, MISSING_CAPABILITY, RpcError
from app.demo_server.owners import LOCAL, Caller
from app.demo_server.questions import fault, mismatch
from app.demo_server.records import CANCELLED, UNFINISHED, Question, Task
from app.demo_server.request_state import Seal
from app.demo_server.store import Store
from app.demo_server.tools import Tool, tool_result

PROTOCOL_VERSION: Final = "2026-07-28"
TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"
SERVER_INFO: Final = {"name": "taskinbox-demo", "title": "taskinbox demo service", "version": __version__}

TASK_TTL_MS: Final = 24 * 3600 * 1000
LIST_TTL_MS: Final = 3600 * 1000
"""How long discovery and the tools may be cached: they change only with the program."""

_INSTRUCTIONS: Final = (
    "A service to try a task inbox on. Most of its tools run as tasks and ask a person something on the way; "
    "nothing outside this service happens."
)


Reply = dict[str, Any] | Awaitable[dict[str, Any]]
"""A result, or the work that ends with one, for the one verb that may take its time."""


@dataclass(frozen=True, slots=True)
class Client:
    """Who sent one request, and what it can do; the protocol has no session to remember it in."""

    tasks: bool
    modes: frozenset[str]
    """The elicitation modes it declared."""
    declared: frozenset[str] = frozenset()
    """The names of all capabilities it declared."""
    caller: Caller = LOCAL

    @classmethod
    def from_capabilities(cls, capabilities: Mapping[str, Any], caller: Caller = LOCAL) -> Client:
        """Read a request's ``clientCapabilities``; an empty elicitation object means form mode."""
        extensions = capabilities.get("extensions")
        tasks = isinstance(extensions, dict) and isinstance(extensions.get(TASKS_EXTENSION), dict)
        declared = frozenset(name for name, value in capabilities.items() if isinstance(value, dict))
        elicitation = capabilities.get("elicitation")
        if not isinstance(elicitation, dict):
            return cls(tasks, frozenset(), declared, caller)
        modes = frozenset(mode for mode in ("form", "url") if isinstance(elicitation.get(mode), dict))
        return cls(tasks, modes if modes or elicitation else frozenset({"form"}), declared, caller)

    def need(
        self, *, tasks: bool, modes: frozenset[str] = frozenset(), others: frozenset[str] = frozenset()
    ) -> None:
        """Raise `RpcError` (-32021) naming what is missing: the extension, elicitation modes, others."""
        missing: dict[str, Any] = {name: {} for name in sorted(others - self.declared)}
        if tasks and not self.tasks:
            missing["extensions"] = {TASKS_EXTENSION: {}}
        if modes - self.modes:
            missing["elicitation"] = {mode: {} for mode in sorted(modes - self.modes)}
        if missing:
            raise RpcError(
                MISSING_CAPABILITY,
                f"this request needs a client with: {', '.join(sorted(missing))}",
                {"requiredCapabilities": missing},
            )


class Service:
    """The task service over one store."""

    def __init__(
        self,
        store: Store,
        tools: Mapping[str, Tool],
        seal: Seal,
        *,
        poll_ms: int,
        now_ms: Callable[[], int],
        token: Callable[[], str],
        wake: Callable[[], None],
    ) -> None:
        self._poll_ms = poll_ms
        self._store = store
        self._tools = tools
        self._seal = seal
        self._now_ms = now_ms
        self._token = token
        self._wake = wake
        self.verbs: Mapping[str, Callable[[Mapping[str, Any], Client], Reply]] = {
            "server/discover": self.discover,
            "tools/list": self.list_tools,
            "prompts/list": lambda params, client: self._nothing("prompts", params),
            "resources/list": lambda params, client: self._nothing("resources", params),
            "resources/templates/list": lambda params, client: self._nothing("resourceTemplates", params),
            "tools/call": self.call_tool,
            "tasks/get": self.get_task,
            "tasks/update": self.update_task,
            "tasks/cancel": self.cancel_task,
        }
        """The methods this service implements; all others are unknown."""

    def discover(self, params: Mapping[str, Any], client: Client) -> dict[str, Any]:
        """Say what this service speaks and offers."""
        return _result(
            "complete",
            {
                "supportedVersions": [PROTOCOL_VERSION],
                # Whoever lists prompts or resources gets an empty list, and what is answered is declared.
                "capabilities": {
                    "tools": {},
                    "prompts": {},
                    "resources": {},
                    "extensions": {TASKS_EXTENSION: {}},
                },
                "instructions": _INSTRUCTIONS,
                "ttlMs": LIST_TTL_MS,
                "cacheScope": "public",
            },
        )

    def list_tools(self, params: Mapping[str, Any], client: Client) -> dict[str, Any]:
        """List the tools, in one page and always in the same order."""
        return _page("tools", [tool.listed() for tool in self._tools.values()], params)

    def _nothing(self, kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
        return _page(kind, [], params)

    def input_schema(self, tool: object) -> Mapping[str, Any] | None:
        """Return the schema of a tool's arguments; ``None``: there is no such tool."""
        found = self._tools.get(tool) if isinstance(tool, str) else None
        return None if found is None else found.input_schema

    def call_tool(self, params: Mapping[str, Any], client: Client) -> Reply:
        """Answer at once, ask first, or make a task: its handle leaves only once it is on disk."""
        tool = self._tools.get(params["name"])
        if tool is None:
            raise RpcError(INVALID_PARAMS, f"unknown tool: {params['name']}")
        arguments = params.get("arguments", {})
        if not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "arguments must be an object")
        needs_tasks = tool.step is not None and tool.inline is None
        client.need(tasks=needs_tasks, modes=tool.modes, others=tool.capabilities)
        wrong = mismatch(tool.input_schema, arguments)
        if wrong is not None:
            return _result("complete", tool_result(f"The arguments don't fit: {wrong}", error=True))
        if tool.before is None:
            return self._begin(tool, arguments, client)
        return self._begin_after_questions(tool, arguments, tool.before(arguments), params, client)

    def get_task(self, params: Mapping[str, Any], client: Client) -> dict[str, Any]:
        """Return the whole task as it is now."""
        client.need(tasks=True)
        return _result("complete", detailed(self._find(params, client)))

    def update_task(self, params: Mapping[str, Any], client: Client) -> dict[str, Any]:
        """Take the responses to outstanding questions; those to others are ignored.

        A response that doesn't fit refuses the whole request, and its question stays open.
        """
        client.need(tasks=True)
        task = self._find(params, client)
        responses = params.get("inputResponses")
        if not isinstance(responses, dict):
            raise RpcError(INVALID_PARAMS, "inputResponses must be an object")
        taken = _responses(task.outstanding, responses) if task.status == "input_required" else {}
        if taken:
            self._store.answer(task.owner, task.id, taken, client.caller.principal, self._now_ms())
            self._wake()
        return _result("complete", {})

    def cancel_task(self, params: Mapping[str, Any], client: Client) -> dict[str, Any]:
        """Note that the task is no longer wanted: a waiting one ends now, a working one at its next step."""
        client.need(tasks=True)
        task = self._find(params, client)
        self._store.cancel(task.owner, task.id, CANCELLED, self._now_ms())
        self._wake()
        return _result("complete", {})

    def find(self, client: Client, task_id: str) -> Task | None:
        """Return the task that ``tasks/get`` would show to *client*, or ``None`` where it would refuse."""
        try:
            return self._find({"taskId": task_id}, client)
        except RpcError:
            return None

    def _find(self, params: Mapping[str, Any], client: Client) -> Task:
        """Return the caller's task; somebody else's is looked for, and not found, like one that never was."""
        owner, task_id, now = client.caller.tenant, params["taskId"], self._now_ms()
        task = self._store.get(owner, task_id)
        if task is not None and task.status in UNFINISHED and task.is_past_ttl(now):
            self._store.fail_expired(owner, task_id, now)
            task = self._store.get(owner, task_id)
        if task is None:
            expired = self._store.is_gone(owner, task_id)
            raise RpcError(INVALID_PARAMS, "task has expired" if expired else "task not found")
        if task.is_past_ttl(now):
            raise RpcError(INVALID_PARAMS, "task has expired")
        return task

    def _begin(
        self, tool: Tool, arguments: Mapping[str, Any], client: Client, answered: tuple[Question, ...] = ()
    ) -> Reply:
        if tool.reply is not None:
            return _result("complete", tool.reply(arguments))
        if tool.inline is not None and not client.tasks:
            return _finished(tool.inline(arguments))
        return self._start(tool, arguments, client.caller, answered)

    def _start(
        self, tool: Tool, arguments: Mapping[str, Any], caller: Caller, questions: tuple[Question, ...]
    ) -> dict[str, Any]:
        now = self._now_ms()
        task = Task(
            id=f"tsk_{self._token()}",
            tool=tool.name,
            arguments=arguments,
            created_ms=now,
            updated_ms=now,
            ttl_ms=TASK_TTL_MS,
            poll_ms=self._poll_ms,
            due_ms=now,
            message="Accepted",
            questions=questions,
            owner=caller.tenant,
            caller=caller.principal,
        )
        self._store.create(task)
        self._wake()
        return _result("task", _handle(task))

    def _begin_after_questions(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        asked: Mapping[str, Mapping[str, Any]],
        params: Mapping[str, Any],
        client: Client,
    ) -> Reply:
        responses: Mapping[str, Any] = {}
        if "requestState" in params:
            self._seal.check(params["requestState"], client.caller, tool.name, arguments, self._now_ms())
            responses = params.get("inputResponses", {})
            if not isinstance(responses, dict):
                raise RpcError(INVALID_PARAMS, "inputResponses must be an object")
        taken = _responses(asked, responses)
        for response in taken.values():
            if response["action"] != "accept":
                refusal = "declined" if response["action"] == "decline" else "dismissed"
                text = f"Nothing was started: a question before it was {refusal}."
                return _result("complete", tool_result(text))
        if len(taken) < len(asked):
            state = self._seal.make(client.caller, tool.name, arguments, self._now_ms())
            return _result("input_required", {"inputRequests": dict(asked), "requestState": state})
        answered = tuple(Question(key, asked[key], taken[key]) for key in asked)
        return self._begin(tool, arguments, client, answered)


def detailed(task: Task) -> dict[str, Any]:
    """Return the task with its questions, result or error, as tasks/get and notifications show it."""
    body = _handle(task)
    if task.status == "input_required":
        body["inputRequests"] = task.outstanding
    elif task.status == "completed" and task.result is not None:
        body["result"] = _result("complete", task.result)
    elif task.status == "failed":
        body["error"] = task.error
    return body


def _handle(task: Task) -> dict[str, Any]:
    body: dict[str, Any] = {
        "taskId": task.id,
        "status": task.status,
        "createdAt": _iso(task.created_ms),
        "lastUpdatedAt": _iso(task.updated_ms),
        "ttlMs": task.ttl_ms,
        "pollIntervalMs": task.poll_ms,
    }
    return body if task.message is None else {**body, "statusMessage": task.message}


def _responses(asked: Mapping[str, Any], responses: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    taken: dict[str, Mapping[str, Any]] = {}
    for key in asked.keys() & responses.keys():
        wrong = fault(asked[key], responses[key])
        if wrong is not None:
            raise RpcError(INVALID_PARAMS, f"the response to {key} was refused: {wrong}", {"key": key})
        taken[key] = responses[key]
    return taken


async def _finished(work: Awaitable[Mapping[str, Any]]) -> dict[str, Any]:
    return _result("complete", await work)


def _page(kind: str, entries: Sequence[Mapping[str, Any]], params: Mapping[str, Any]) -> dict[str, Any]:
    if params.get("cursor") is not None:
        raise RpcError(INVALID_PARAMS, "there is no such page: the list has only one")
    return _result("complete", {kind: list(entries), "ttlMs": LIST_TTL_MS, "cacheScope": "public"})


def _result(kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
    return {"resultType": kind, **body, "_meta": {"io.modelcontextprotocol/serverInfo": SERVER_INFO}}


def _iso(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"
