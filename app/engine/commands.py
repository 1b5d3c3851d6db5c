"""What a screen or a command may ask of the engine, and what it gets back.

This module imports nothing heavy, so that a screen can be drawn before the network parts are loaded.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from app.config import NONE, Abilities
from app.text import inert_line
from storage.records import QuestionRecord, TaskKey, TaskRecord

Failure = Literal[
    "unreachable", "refused", "faulty", "sign-in", "unknown-server", "unknown-task", "invalid", "closed"
]
"""``refused``: the server answered with an error. ``faulty``: it broke the protocol. ``closed``: the question
is no longer open."""


TOO_OLD: Final = "Too old: "
"""How the words for a server of an older revision begin."""


class EngineError(Exception):
    """A command could not be carried out; the message says what happened, to which server, and what to do
    next."""

    def __init__(self, failure: Failure, message: str, *, stderr: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.failure = failure
        self.message = message
        self.stderr = stderr
        """The last lines that a server which was started has written there, where that may say more."""


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """A tool as a server lists it. Every string is the server's."""

    name: str
    title: str | None
    description: str | None
    input_schema: Mapping[str, Any]
    annotations: Mapping[str, Any]
    """Claims of the server about the tool: never more than that."""


@dataclass(frozen=True, slots=True)
class ToolListing:
    """A server's tools, and what was wrong with those left out."""

    tools: tuple[ToolInfo, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What became of a call."""

    kind: Literal["task", "complete", "input_required", "failed", "unknown"]
    """``failed``: the server answered with an error.

    ``unknown``: it may or may not have begun; a person decides.
    """
    key: TaskKey
    """The task, where there is one; else the call."""
    result_json: str | None = None
    error_json: str | None = None
    message: str | None = None


Mode = Literal["form", "url", "sampling", "roots"]
"""How a question is answered: the two modes of an elicitation, and two kinds that a person turns on for a
server (docs/decisions/0014)."""

_RESULTS: Final[dict[str, Literal["sampling", "roots"]]] = {
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""Requests that are answered with a result of their own: there is no action, and no word for "no"."""

REFUSED_HERE: Final = "Refused here; the server was told nothing."
"""The mark (`QuestionRecord.refusal`) of a withdrawn question that a person refused."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer to one question."""

    question: QuestionRecord
    """The question exactly as it was shown."""
    action: Literal["accept", "decline", "cancel"]
    content_json: str | None = None
    """For an accepted form: the content, exactly as it will be sent; for sampling and roots, which can only
    be accepted: the whole response. ``None`` for URL mode and the other actions."""

    @property
    def response_json(self) -> str:
        """Return the response exactly as it is sent: ``{"action": …, "content": …}``, or a result."""
        if self.action == "accept" and self.content_json is not None:
            if has_result(self.question):
                return self.content_json
            return f'{{"action": "accept", "content": {self.content_json}}}'
        return f'{{"action": "{self.action}"}}'


def has_result(question: QuestionRecord) -> bool:
    """Say whether *question* is answered with a result instead of an action: sampling and roots."""
    return question.method in _RESULTS


ASK_ON: Final = "Let it ask on, or cancel it."
"""The choice of a person whose server has asked as much as is taken in by itself."""


def asks_too_much(task: TaskRecord) -> bool:
    """Say whether a loop of questions was stopped, and a person has the choice (`Engine.let_ask`)."""
    state = task.state
    return state.tracking in ("active", "stopped") and (state.problem or state.reason or "").endswith(ASK_ON)


def is_refused_here(question: QuestionRecord) -> bool:
    """Say whether a person refused *question* where the wire has no word for that: it stays unanswered."""
    return question.state == "withdrawn" and question.refusal == REFUSED_HERE


def answerable(question: QuestionRecord, abilities: Abilities = NONE) -> Mode | None:
    """Return how this installation answers *question* of a server with *abilities*; ``None``: it does not.

    An elicitation may leave its mode out, and is a form then (client/elicitation, "Elicitation Requests").
    """
    kind = _RESULTS.get(question.method)
    if kind is not None:
        return None if _why_not(question, kind, abilities) else kind
    if question.method != "elicitation/create":
        return None
    mode = _params(question).get("mode", "form")
    return mode if mode == "form" or mode == "url" else None


def unanswerable(question: QuestionRecord, abilities: Abilities = NONE) -> str | None:
    """Return why this installation does not answer *question*, for a person; ``None``: it does."""
    if answerable(question, abilities) is not None:
        return None
    kind = inert_line(question.method, 80)
    if (result := _RESULTS.get(question.method)) is not None:
        kind += f": {_why_not(question, result, abilities)}"
    elif question.method == "elicitation/create":
        kind = f"an elicitation in the mode {inert_line(str(_params(question).get('mode')), 80)}"
    return f"This installation does not answer {kind}; the task keeps waiting. It can be cancelled."


def _why_not(
    question: QuestionRecord, kind: Literal["sampling", "roots"], abilities: Abilities
) -> str | None:
    if kind == "roots":
        return None if abilities.roots else "no folder is allowed for this server"
    if not abilities.sampling:
        return "it is off for this server"
    params = _params(question)
    if "tools" in params or "toolChoice" in params:
        return "it wants tools to be used"
    if not isinstance(params.get("messages"), list):
        return "it holds no conversation that can be read"
    limit = params.get("maxTokens")
    return "it leaves no room for a reply" if isinstance(limit, int) and limit < 1 else None


def _params(question: QuestionRecord) -> Mapping[str, Any]:
    try:
        request = json.loads(question.request_json)
    except (ValueError, RecursionError):
        return {"mode": None}
    params = request.get("params") if isinstance(request, dict) else None
    return params if isinstance(params, dict) else {}


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of an answer by the time the command returned."""

    state: Literal["acknowledged", "saved", "waiting", "refused", "withdrawn", "unknown"]
    """``acknowledged``: the server has it (for a call: the call went on). ``saved``: durable, and delivered
    later; see ``failure``. ``waiting``: a call goes on once its other questions are answered, too.
    ``refused``: the server said no; the question is open again. ``withdrawn``: the question changed or
    vanished; nothing was sent. ``unknown``: a call was repeated with the answers, its outcome is not known.
    """
    message: str | None = None
    """What to tell a person, whole sentences; ``None``: the state says it all."""
    outcome: CallOutcome | None = None
    """For a call: what it answered."""
    failure: Failure | None = None
    """Why it is only ``saved``; ``None`` there: another living program is still delivering it."""


@dataclass(frozen=True, slots=True)
class ServerReport:
    """What `test_server` found."""

    name: str
    title: str
    """The server's own name and version."""
    versions: tuple[str, ...]
    has_tasks: bool
    tools: int
    instructions: str | None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed since the last time a listener was told."""

    tasks: frozenset[TaskKey] = frozenset()
    servers: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.tasks or self.servers)


class Engine(Protocol):
    """The verbs. Each raises `EngineError` and nothing else that a user or a server can cause.

    All of them work whether or not `run` is running: without it, `answer` and `cancel` deliver once by
    themselves.
    """

    async def run(self) -> None:
        """Watch every active task and deliver saved answers until cancelled."""

    async def call(
        self, server: str, tool: str, arguments_json: str, *, on_progress: Callable[[str], None] | None = None
    ) -> CallOutcome:
        """Call a tool: durable before it is sent, never repeated by itself."""

    async def call_again(self, call: TaskKey) -> CallOutcome:
        """Repeat a call whose outcome is unknown, because a person decided to."""

    async def track(self, server: str, task_id: str, *, handle_json: str | None = None) -> TaskKey:
        """Keep a task made elsewhere; its server is asked for it once."""

    async def answer(self, task: TaskKey, answers: Sequence[Answer]) -> Delivery:
        """Save the answers, then deliver them; returns when the server has acknowledged or can't be reached.

        Raises `EngineError` ``closed`` when a question is not open any more, or is not the one that was
        shown: then nothing was saved.
        """

    async def send_again(self, question_id: int) -> Delivery:
        """Send the same answer once more: for a server that lost one it had acknowledged."""

    async def refuse(self, question: QuestionRecord) -> str:
        """Record that *question*, of a kind that has no "no" on the wire, is not answered; returns words.

        Nothing is sent, the task waits on. Raises `EngineError` ``closed``, as `answer` does.
        """

    async def reopen(self, question_id: int) -> None:
        """Ask a question again that was refused here."""

    async def draft_reply(self, question: QuestionRecord) -> str:
        """Let the server's configured command draft a reply to a sampling question; returns its text.

        Nothing is saved or sent.
        """

    async def cancel(self, task: TaskKey) -> str:
        """Ask the server to cancel; returns words for a person.

        For a call: give it up here, nothing is sent.
        """

    async def let_ask(self, task: TaskKey) -> str:
        """Let a server ask on that was stopped, as often again; returns words for a person.

        Raises `EngineError` ``closed`` where it was not stopped (`asks_too_much`).
        """

    async def refresh(self, task: TaskKey) -> None:
        """Look at a task once, now."""

    async def archive(self, task: TaskKey) -> None:
        """Put a task away; new activity brings it back."""

    async def unarchive(self, task: TaskKey) -> None:
        """Bring a task back."""

    async def forget(self, task: TaskKey) -> None:
        """Delete our record of a task; its server is told nothing."""

    async def save_draft(self, question_id: int, draft_json: str | None) -> None:
        """Keep what has been typed so far (``None``: nothing)."""

    async def save_reply(self, question: QuestionRecord, name: str, draft_json: str) -> None:
        """Keep what was typed, but for secrets, to fill the same question in with another time.

        It is read with `storage.records.Reader.replies`; one of the same name is replaced.
        """

    async def delete_reply(self, question: QuestionRecord, name: str) -> None:
        """Delete a saved reply; nothing happens where there is none of that name."""

    async def tools(self, server: str) -> ToolListing:
        """List a server's tools."""

    async def test_server(self, server: str) -> ServerReport:
        """Contact a server and say what it is."""

    async def reload_servers(self) -> None:
        """Read the servers file again."""

    def listen(self, listener: Callable[[Changes], None]) -> Callable[[], None]:
        """Call *listener* on the event loop with what changed, coalesced; returns a function that ends it."""

    def observing(self, server: str) -> Literal["subscribed", "polling"] | None:
        """Say how a server's tasks are observed; ``None``: none of them is watched.

        ``subscribed``: the server tells of every one of them. A change is told as one of the server.
        """

    async def wait_for(self, task: TaskKey, until: Literal["input", "end"]) -> None:
        """Return when the task needs input (only for ``input``) or is over; needs `run` beside it."""

    async def aclose(self) -> None:
        """End all work and close the store; what is saved is saved."""


EngineFactory = Callable[[], Awaitable[Engine]]
"""Imports the network parts and opens the engine; called after the first paint."""
