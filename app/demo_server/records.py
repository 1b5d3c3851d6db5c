"""What the store keeps of a task, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Status = Literal["working", "input_required", "completed", "failed", "cancelled"]
"""The five statuses of the Tasks extension."""

UNFINISHED: Final = frozenset({"working", "input_required"})


CANCELLED: Final = "Cancelled on request"
"""The message of a task that ended because somebody asked for it."""


@dataclass(frozen=True, slots=True)
class Question:
    """One request for input, and the response once there is one."""

    key: str
    """Unique over the task's life: the table's primary key holds it."""
    request: Mapping[str, Any]
    response: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """A job as it is on disk."""

    id: str
    tool: str
    arguments: Mapping[str, Any]
    created_ms: int
    """Milliseconds since the epoch, as all times here."""
    updated_ms: int
    ttl_ms: int | None
    """From creation; ``None`` is unlimited."""
    poll_ms: int
    due_ms: int | None
    """When the next step may run; ``None`` while the task waits for answers, and once it has ended."""
    status: Status = "working"
    message: str | None = None
    position: int = 0
    """How many steps are done. A step is committed only onto the position it was computed from."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """What the tool wants to find at its next step."""
    cancel_requested: bool = False
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    questions: tuple[Question, ...] = ()
    owner: str = "local"
    """The tenant: a task is looked up by owner and id together, and by nothing less."""
    caller: str = "local"
    """The principal of that tenant who called the tool."""
    attempts: int = 0
    """How often the next step was begun; above 1 where a process ended, or lost its lease, in the middle."""
    revision: int = 0
    """Where its last visible change stands in the order of all changes in the file; 0 before it is stored."""

    @property
    def outstanding(self) -> dict[str, Mapping[str, Any]]:
        """Return the requests nobody has answered, by key, in the order they were asked."""
        return {q.key: q.request for q in self.questions if q.response is None}

    def is_past_ttl(self, now_ms: int) -> bool:
        """Say whether its time to live has run out."""
        return self.ttl_ms is not None and self.created_ms + self.ttl_ms <= now_ms


@dataclass(frozen=True, slots=True)
class Change:
    """What one step makes of a task."""

    status: Status
    message: str | None = None
    state: Mapping[str, Any] = field(default_factory=dict)
    due_ms: int | None = None
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    asks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    ttl_ms: int | None = None
    """From creation; ``None`` leaves it as it is."""
    yields_to_cancel: bool = False
    """It counts as a cancellation where one was asked for while the step was computed."""
