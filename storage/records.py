"""What the store hands out and takes in: frozen records, free of protocol models and of any screen.

Times are integer milliseconds since the Unix epoch, in UTC. JSON travels as text, exactly as it was received
or as it will be sent; a name ending in ``_json`` says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol

Kind = Literal["task", "call"]
"""``call``: a request whose task does not exist (yet): being sent, asking first, or answered at once."""

Section = Literal["needs-you", "running", "finished", "lost", "archived"]
SECTIONS: Final[tuple[Section, ...]] = ("needs-you", "running", "finished", "lost", "archived")

Tracking = Literal["active", "ended", "lost", "stopped"]
"""What *we* know, beside the server's status: watched; over; not to be had any more; no longer watched."""

QuestionState = Literal["open", "refused", "queued", "sent", "acknowledged", "settled", "withdrawn"]
"""``open → queued → sent → acknowledged → settled``. ``refused``: the server said no, so it is open again.
``withdrawn``: it vanished unanswered."""

OPEN_STATES: Final[tuple[QuestionState, ...]] = ("open", "refused")
"""The states in which a person is asked."""


class TaskKey(NamedTuple):
    """Names one task or call: the server's name in the servers file, and the task id (or ``call-…``)."""

    server: str
    id: str

    def __str__(self) -> str:
        return f"{self.server}/{self.id}"


@dataclass(frozen=True, slots=True)
class TaskState:
    """All that changes about a task or call over its life, as one value: the last known state."""

    status: str | None = None
    """The server's own word (working, input_required, completed, failed, cancelled); ``None``: never seen.
    For a call, the same words are used for what we know of it."""
    status_message: str | None = None
    tracking: Tracking = "active"
    reason: str | None = None
    """Why it is lost or stopped, in words for a person."""
    problem: str | None = None
    """What went wrong at the last look (an unreachable server, an invalid reply); ``None``: all well."""
    created_at: int | None = None
    """The server's ``createdAt``."""
    last_updated_at: int | None = None
    """The server's ``lastUpdatedAt``; some servers put the time of the poll here."""
    ttl_ms: int | None = None
    """Time to live in milliseconds, from ``created_at``; ``None``: unlimited or unknown."""
    poll_interval_ms: int | None = None
    """What the server last suggested; ``None``: nothing."""
    is_error: bool = False
    """The task completed with a result that says ``isError``."""
    result_json: str | None = None
    error_json: str | None = None
    """The JSON-RPC error of a failed task."""
    snapshot_json: str | None = None
    """The last reply as it came, for the raw view."""
    request_state: str | None = None
    """A call's opaque ``requestState``, to be echoed byte for byte; ``None``: none came."""
    round: int = 0
    """A call's rounds of questions so far; 0 for a task."""
    cancel_requested_at: int | None = None
    cancel_acknowledged_at: int | None = None
    observed_by: Literal["poll", "subscription"] | None = None

    @property
    def expires_at(self) -> int | None:
        """When the server may forget the task; ``None``: never, or not known."""
        if self.ttl_ms is None or self.created_at is None:
            return None
        return self.created_at + self.ttl_ms


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One line of the list."""

    key: TaskKey
    kind: Kind
    method: str
    """The request that made it: ``tools/call``, or whatever else a server may answer with a task one day."""
    tool: str | None
    """The name in that request (``params.name``); ``None`` for a task made elsewhere."""
    section: Section
    open_questions: int
    added_at: int
    """When this program first had it."""
    changed_at: int
    """When its content last changed, by our clock."""
    archived_at: int | None
    state: TaskState
    """``result_json``, ``error_json`` and ``snapshot_json`` are ``None`` in a row; `TaskRecord` has them."""


@dataclass(frozen=True, slots=True)
class TaskRecord(TaskRow):
    """One task or call, whole."""

    params_json: str = "{}"
    """The parameters of the request that made it (``name``, ``arguments``), without ``_meta``."""
    origin_call: str | None = None
    """The id of the call this task came from."""
    owner: str | None = None
    """A call being sent: the program that sends it."""
    leave: int = 0
    """How often a person let the server ask on, after it had asked as much as is taken in by itself."""


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task or call to be added."""

    key: TaskKey
    kind: Kind = "task"
    method: str = "tools/call"
    tool: str | None = None
    params_json: str = "{}"
    state: TaskState = field(default_factory=TaskState)
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """One input request, as it was asked, with what became of it."""

    id: int
    task: TaskKey
    key: str
    """Its name in ``inputRequests``."""
    round: int
    """The round of a call it belongs to; 0 for a task."""
    fingerprint: str
    """A digest of its content: same key and other fingerprint is another question."""
    method: str
    """``elicitation/create``, ``sampling/createMessage``, ``roots/list``, or what the server sent."""
    request_json: str
    """The whole input request: ``{"method": …, "params": …}``."""
    state: QuestionState
    position: int
    """Its place among the task's questions: the order in which they were first seen."""
    asked_at: int
    fault: str | None = None
    """What the server did wrong in asking (a key used again for other content); shown with the question."""
    refusal: str | None = None
    """Why the server refused the last answer."""
    still_asked: int = 0
    """Looks since the acknowledgement at which the server still showed it."""
    draft_json: str | None = None
    """What has been typed: ``{field: text | [text…] | null}``; ``null`` is the value null."""
    response_json: str | None = None
    """The last answer given: exactly the text that is or was sent, unless `withheld`."""
    answered_by: str | None = None
    queued_at: int | None = None
    sent_at: int | None = None
    acknowledged_at: int | None = None
    closed_at: int | None = None
    """When it was settled or withdrawn."""
    owner: str | None = None
    """The program that has claimed its answer for delivery."""
    attempts: int = 0
    digest: str | None = None
    """A digest of the last answer's text as it is sent, ``sha256:…``; keyed (``hmac-sha256:…``) where it is
    `withheld`."""
    withheld: bool = False
    """The answer holds secrets: ``response_json`` has words in their place, and what is sent stands apart
    until the server has it."""

    @property
    def is_open(self) -> bool:
        """Say whether a person is being asked."""
        return self.state in OPEN_STATES


@dataclass(frozen=True, slots=True)
class NewQuestion:
    """A question seen for the first time."""

    key: str
    fingerprint: str
    method: str
    request_json: str
    round: int = 0
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class QuestionChange:
    """A question that moves to another state, or whose marks change: ``None`` leaves a field as it is."""

    id: int
    state: QuestionState
    fault: str | None = None
    refusal: str | None = None
    still_asked: int | None = None


@dataclass(frozen=True, slots=True)
class NewEvent:
    """A fact for the log: a past-tense name and its data as JSON text."""

    kind: str
    data_json: str = "{}"


@dataclass(frozen=True, slots=True)
class TaskWrites:
    """What a look at a task changes; applied in one transaction."""

    state: TaskState | None = None
    """The new state, whole; ``None``: unchanged."""
    new_questions: tuple[NewQuestion, ...] = ()
    question_changes: tuple[QuestionChange, ...] = ()
    events: tuple[NewEvent, ...] = ()
    owner: str | None = None
    """For a call: the program that sends it from now on; ``""`` clears it, ``None`` leaves it."""
    became: NewTask | None = None
    """A call that turned into a task: the task is added, the call leaves the list and its id points there."""
    unarchive: bool = False
    """Something new happened: an archived task comes back."""
    leave: bool = False
    """A person lets the server ask on: counted."""

    def __bool__(self) -> bool:
        return bool(
            self.state is not None
            or self.new_questions
            or self.question_changes
            or self.events
            or self.became
            or self.owner is not None
            or self.leave
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to be saved: for that question, with that content, exactly these bytes."""

    question_id: int
    fingerprint: str
    response_json: str = field(repr=False)
    kept_json: str | None = None
    """The response with words in place of its secrets, which is all that is shown, logged and kept of it;
    ``None``: it holds none."""


@dataclass(frozen=True, slots=True)
class SavedReply:
    """What a person keeps to fill in the same question with, another time."""

    fingerprint: str
    """The question's."""
    name: str
    draft_json: str
    """As `QuestionRecord.draft_json`."""
    saved_at: int


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One line of the append-only log."""

    seq: int
    at: int
    server: str | None
    task_id: str | None
    kind: str
    data_json: str


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """What was last seen of a server; what it *is* stands in the servers file."""

    name: str
    state: Literal["unknown", "ok", "unreachable", "sign-in", "faulty"]
    since: int
    """When it came into that state."""
    message: str | None = None
    info_json: str | None = None
    """The last ``server/discover`` result."""
    checked_at: int | None = None


class Reader(Protocol):
    """The reading half of the store, for screens: calls that return at once, on their own connection."""

    def counts(self) -> Mapping[Section, int]:
        """Return how many tasks each section holds (every section is there)."""

    def keys(self, section: Section, *, server: str | None = None, text: str | None = None) -> list[TaskKey]:
        """Return a section's tasks in the order of the list.

        Needs you: the longest waiting first. Running: the newest first. The others: the last changed first.
        *text* filters on server, tool, id and status message, without regard to case.
        """

    def rows(self, keys: Sequence[TaskKey]) -> dict[TaskKey, TaskRow]:
        """Return the lines of those *keys* that the store holds."""

    def list_rows(
        self, *, section: Section | None = None, server: str | None = None, status: str | None = None
    ) -> list[TaskRow]:
        """Return all lines that match, sections in their order."""

    def task(self, key: TaskKey) -> TaskRecord | None:
        """Return one task, whole; a call that became a task is found under its own id, too."""

    def find(self, text: str) -> list[TaskKey]:
        """Return the tasks that *text* names: SERVER/ID; else an exact id; else every id it begins."""

    def questions(self, key: TaskKey) -> list[QuestionRecord]:
        """Return a task's questions in their stable order, with those of the call it came from."""

    def question(self, question_id: int) -> QuestionRecord | None:
        """Return one question."""

    def events(self, key: TaskKey, *, limit: int = 500) -> list[EventRecord]:
        """Return the newest *limit* events of a task (and of the call it came from), oldest first."""

    def log(self, *, server: str | None = None, since: int | None = None) -> Iterator[EventRecord]:
        """Yield the events from *since* on, of one server or of all, oldest first, up to the newest one now.

        One at a time is read, however many there are.
        """

    def replies(self, fingerprint: str) -> list[SavedReply]:
        """Return what is kept to fill in that question with, by name."""

    def servers(self) -> list[ServerRecord]:
        """Return what is known of each server, by name."""

    def last_seq(self) -> int:
        """Return the number of the newest event; 0 when there is none."""

    def changed_since(self, seq: int) -> tuple[int, set[TaskKey]]:
        """Return the number up to which events were read, and the tasks that those after *seq* speak of."""
