"""Wire models: what a server's replies say, with what came kept beside it in ``raw``.

Python names are snake case, the wire's are camelCase; unknown members are ignored here and kept in ``raw``.
Pages: the Tasks extension, basic/patterns/mrtr, server/tools, server/discover.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, TypeAdapter
from pydantic.alias_generators import to_camel

from mcp_client.jsonrpc import JSONObject, JSONValue
from mcp_client.tool_headers import MirroredParameter

TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"

TASK_METHODS: Final = frozenset({"tools/call"})
"""Requests that may be answered with a task; the extension's page says that it may grow."""

INPUT_METHODS: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Requests that may be answered with questions (basic/patterns/mrtr, Supported Requests)."""

TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]


class WireModel(BaseModel):
    """A frozen model; ``raw`` is the object as it came, ``faults`` what was wrong with it and could be passed
    over."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=to_camel,
        populate_by_name=True,
        arbitrary_types_allowed=True,
    )

    raw: Any = Field(default_factory=dict, repr=False)
    """A `JSONObject`, numbers exact. Not to be changed."""
    faults: tuple[str, ...] = ()
    """One sentence each, for a person."""


class Implementation(WireModel):
    """A program's name and version, as it gives them itself."""

    name: StrictStr
    version: StrictStr
    title: StrictStr | None = None
    description: StrictStr | None = None
    website_url: StrictStr | None = None

    def to_wire(self) -> JSONObject:
        """Return the object that goes into a request."""
        return self.model_dump(by_alias=True, exclude_none=True, exclude={"raw", "faults"})


class ClientCapabilities(BaseModel):
    """What this client can really answer; sent with every request.

    The default declares forms, web addresses and tasks; sampling and roots are ``None``: not declared.
    """

    model_config = ConfigDict(frozen=True)

    elicitation: dict[str, Any] | None = Field(default_factory=lambda: {"form": {}, "url": {}})
    sampling: dict[str, Any] | None = None
    roots: dict[str, Any] | None = None
    extensions: dict[str, Any] | None = Field(default_factory=lambda: {TASKS_EXTENSION: {}})
    experimental: dict[str, Any] | None = None

    def to_wire(self) -> JSONObject:
        """Return the object that goes into a request."""
        return self.model_dump(exclude_none=True)


class InputRequest(WireModel):
    """One question of a server. ``raw`` is the whole request: ``{"method": …, "params": …}``."""

    key: StrictStr
    """Its name in ``inputRequests``."""
    method: StrictStr
    """``elicitation/create``, ``sampling/createMessage``, ``roots/list``, or what the server sent."""
    params: Any = None
    """A `JSONObject`, or ``None`` where none came."""

    @property
    def mode(self) -> str | None:
        """Return an elicitation's mode; a missing one means ``form``. ``None`` for other methods."""
        if self.method != "elicitation/create":
            return None
        mode = (self.params or {}).get("mode", "form")
        return mode if isinstance(mode, str) else "form"


class _TaskFields(WireModel):
    task_id: StrictStr = Field(min_length=1)
    status_message: StrictStr | None = None
    created_at: StrictStr | None = None
    """As it came."""
    created_at_ms: StrictInt | None = None
    """The same in milliseconds since the epoch; ``None``: missing or unreadable."""
    last_updated_at: StrictStr | None = None
    """As it came; some servers put the time of the poll here."""
    last_updated_at_ms: StrictInt | None = None
    ttl_ms: StrictInt | None = None
    """From ``created_at``; ``None``: unlimited, or missing (then there is a fault)."""
    poll_interval_ms: StrictInt | None = None
    """The server's suggestion; ``None``: none."""


class WorkingTask(_TaskFields):
    """The request is being worked on."""

    status: Literal["working"]


class InputRequiredTask(_TaskFields):
    """The server waits for answers."""

    status: Literal["input_required"]
    input_requests: dict[str, InputRequest] = Field(default_factory=dict)
    """Everything outstanding at this moment, in the order it came, which means nothing."""


class CompletedTask(_TaskFields):
    """The request has its result, which may still say ``isError``."""

    status: Literal["completed"]
    result: Any = None
    """What the request itself would have returned, a `JSONObject`; ``None`` where it is missing (then a
    fault)."""


class FailedTask(_TaskFields):
    """The request ended in a JSON-RPC error."""

    status: Literal["failed"]
    error: Any = None
    """The JSON-RPC error, a `JSONObject`; ``None`` where it is missing (then a fault)."""


class CancelledTask(_TaskFields):
    """The request was cancelled before it was done."""

    status: Literal["cancelled"]


DetailedTask: TypeAlias = Annotated[
    WorkingTask | InputRequiredTask | CompletedTask | FailedTask | CancelledTask,
    Field(discriminator="status"),
]
"""A task as ``tasks/get`` and ``notifications/tasks`` show it."""

DETAILED_TASK: Final[TypeAdapter[DetailedTask]] = TypeAdapter(DetailedTask)


class CreateTaskResult(_TaskFields):
    """A task handle: the request goes on as a task, and this is how it stood at first."""

    status: TaskStatus


class CompleteResult(WireModel):
    """The ordinary result of a request without a model of its own: look in ``raw``."""


class CallToolResult(CompleteResult):
    """What a tool returned."""

    content: tuple[Any, ...] = ()
    """Content blocks, each a `JSONObject` with a ``type``."""
    structured_content: JSONValue = None
    has_structured_content: StrictBool = False
    """Tells ``null`` from nothing."""
    is_error: StrictBool = False


class InputRequiredResult(WireModel):
    """The server asks something before it goes on with a request: repeat it with the answers.

    Without input requests there is nothing to ask: the request may be repeated as it is, slowly and not for
    ever.
    """

    input_requests: dict[str, InputRequest] = Field(default_factory=dict)
    request_state: StrictStr | None = None
    """Opaque: goes back exactly as it came, and where it is ``None`` nothing goes back."""


CallOutcome: TypeAlias = CallToolResult | CompleteResult | CreateTaskResult | InputRequiredResult


class DiscoverResult(WireModel):
    """What a server says of itself. Everything in it is a claim."""

    supported_versions: tuple[StrictStr, ...]
    capabilities: Any
    """A `JSONObject`."""
    server_info: Implementation | None = None
    instructions: StrictStr | None = None
    ttl_ms: StrictInt | None = None
    cache_scope: Literal["public", "private"] | None = None

    @property
    def has_tasks(self) -> bool:
        """Say whether the server declares the Tasks extension."""
        extensions = self.capabilities.get("extensions")
        return isinstance(extensions, dict) and TASKS_EXTENSION in extensions

    @property
    def has_tools(self) -> bool:
        """Say whether the server declares tools."""
        return "tools" in self.capabilities


class Tool(WireModel):
    """A tool as a server lists it."""

    name: StrictStr
    title: StrictStr | None = None
    description: StrictStr | None = None
    input_schema: Any
    """JSON Schema, untrusted; a `JSONObject`."""
    output_schema: Any = None
    """JSON Schema or ``None``."""
    annotations: Any = Field(default_factory=dict)
    """Claims about the tool; a `JSONObject`."""
    mirrored: tuple[MirroredParameter, ...] = ()
    """Parameters that a call repeats in its headers."""


class ToolList(WireModel):
    """All tools of a server, from all pages. ``raw`` is empty."""

    tools: tuple[Tool, ...]
    warnings: tuple[str, ...] = ()
    """Tools left out, and why."""
    ttl_ms: StrictInt | None = None
    """How long the list may be kept; the shortest of its pages."""
    cache_scope: Literal["public", "private"] | None = None
    """``private`` where any page said so."""


class Progress(WireModel):
    """How far an open request has come. ``raw`` is the notification's params."""

    progress: JSONValue = None
    """A number, or ``None`` where it was none."""
    total: JSONValue = None
    message: str | None = None
