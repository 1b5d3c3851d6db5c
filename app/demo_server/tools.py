"""The tools: each a small step function over what is on disk.

A step is pure. It gets the arguments, how many steps came before, what the last step left behind and the
answers given so far; it returns what happens next. The worker commits that before it takes another step, so a
step may be computed twice after a crash, but only one of the two outcomes is ever seen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from app.demo_server.errors import INTERNAL_ERROR, RpcError, ServeError
from app.demo_server.questions import deployment_form, form, visit


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
        from app.demo_server.conformance_tools import CONFORMANCE

        return {tool.name: tool for tool in CONFORMANCE}
    if name != "demo":
        raise ServeError(f"there is no set of tools called {name!r}; this service has: demo, conformance")
    return {tool.name: tool for tool in _DEMO}


_SECTIONS: Final = {"small": 2, "medium": 4, "large": 8}


def _generate_report(job: Job) -> Outcome:
    """Three steps, the outline's approval, then the writing; without approval nothing is written."""
    size = job.arguments["size"]
    sections = _SECTIONS[size]
    gathering = ("Collecting sources", "Reading sources", "Drafting the outline")
    if job.position < len(gathering):
        return Work(f"{gathering[job.position]} ({job.position + 1} of {len(gathering)})")
    if "approve_outline" not in job.answers:
        outline = "\n".join(f"{n}. Section {n}" for n in range(1, sections + 1))
        approval = {"type": "boolean", "title": "Approve the outline"}
        message = f"Approve this outline of the {size} report?\n{outline}"
        asked = form(message, {"approved": approval}, ("approved",))
        return Ask("Waiting for the outline's approval", {"approve_outline": asked})
    approved = bool(job.content("approve_outline").get("approved", False))
    structured = {"size": size, "approved": approved}
    if not approved:
        return Done(
            "Ended without a report",
            tool_result(f"No {size} report: the outline was not approved.", structured),
        )
    written = job.position - len(gathering) - 1
    if written < 2:
        return Work(f"Writing {sections} sections ({written + 1} of 2)")
    text = f"The {size} report is ready: {sections} sections, from the outline that was approved."
    return Done("The report is ready", tool_result(text, structured))


def _deploy_service(job: Job) -> Outcome:
    """Checks, the approval with every kind of field, then the deployment; unapproved, nothing is deployed."""
    service = job.arguments["service"]
    build = job.arguments.get("build", "4711")
    if job.position == 0:
        return Work(f"Checking build {build} of {service}")
    if "approve_deployment" not in job.answers:
        asks = {"approve_deployment": deployment_form(service, build)}
        return Ask("Waiting for the deployment's approval", asks)
    action, content = job.action("approve_deployment"), job.content("approve_deployment")
    structured = {"service": service, "build": build, "action": action, "answers": content}
    if action != "accept":
        outcome = "declined" if action == "decline" else "dismissed"
        text = f"{service} was not deployed: the approval was {outcome}."
        return Done("Nothing was deployed", tool_result(text, structured))
    where = content["environment"]
    rollout = (f"Rolling out to {where}", "Watching the health checks")
    done = job.position - 2
    if done < len(rollout):
        return Work(rollout[done])
    result = tool_result(
        f"{service} {build} runs in {where} with {content['replicas']} replicas.", structured
    )
    link = {
        "type": "resource_link",
        "uri": f"https://deployments.example.com/{build}",
        "name": f"Deployment {build}",
    }
    return Done(f"Deployed to {where}", {**result, "content": [*result["content"], link]})


def _approve_in_browser(job: Job) -> Outcome:
    """A question in URL mode; accepting it says only that the person went there."""
    if job.position == 0:
        return Work("Preparing the page", {"request": job.token})
    request = job.state["request"]
    if "approve_in_browser" not in job.answers:
        url = f"https://approvals.example.com/requests/{request}"
        asked = visit("Review the payment run on the approvals site.", url)
        return Ask("Waiting for an approval in the browser", {"approve_in_browser": asked})
    action = job.action("approve_in_browser")
    outcome = {"accept": "approved", "decline": "declined", "cancel": "dismissed"}[action]
    result = tool_result(f"The payment run was {outcome}.", {"request": request, "action": action})
    return Done(f"The approval was {outcome}", result)


def _two_questions(job: Job) -> Outcome:
    """Two keys at once; answering one leaves the other open."""
    if job.position == 0:
        return Work("Looking for what is missing")
    if not job.answers:
        colour = {"type": "string", "title": "Colour", "enum": ["red", "green", "blue"]}
        count = {"type": "integer", "title": "How many", "minimum": 1, "maximum": 99}
        asks = {
            "colour": form("Which colour should the banner be?", {"colour": colour}, ("colour",)),
            "count": form("How many copies?", {"count": count}, ("count",)),
        }
        return Ask("Waiting for two answers", asks)
    answers = {key: job.content(key).get(key) for key in ("colour", "count")}
    told = ", ".join(f"{key}: {'not answered' if value is None else value}" for key, value in answers.items())
    return Done("Both questions were dealt with", tool_result(f"Noted. {told}.", answers))


def _before_ask_first(arguments: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    name: dict[str, Any] = {"type": "string", "title": "Name", "minLength": 1, "maxLength": 80}
    if "name" in arguments:
        name["default"] = arguments["name"]
    return {"who": form("Who is this for? The job starts once this is answered.", {"name": name}, ("name",))}


def _ask_first(job: Job) -> Outcome:
    """Works after its question was answered, before it was a task."""
    if job.position < 2:
        return Work(f"Preparing ({job.position + 1} of 2)")
    name = job.content("who")["name"]
    return Done("Prepared", tool_result(f"Everything is ready for {name}.", {"name": name}))


def _flaky_job(job: Job) -> Outcome:
    """Fails with a JSON-RPC error at its third step."""
    if job.position < 2:
        return Work(f"Calling the upstream service (attempt {job.position + 1})")
    raise RpcError(INTERNAL_ERROR, "the upstream service is rate limited", {"retryAfterMs": 60_000})


def _broken_tool(job: Job) -> Outcome:
    """Completes with a result that says the tool failed."""
    if job.position == 0:
        return Work("Trying")
    text = "The disk that this tool writes to is full. Free some space and call it again."
    return Done("The tool reported an error", tool_result(text, error=True))


def _long_build(job: Job) -> Outcome:
    """Ten progress messages a minute at the usual speed."""
    ticks = job.arguments.get("minutes", 10) * 10
    if job.position < ticks:
        return Work(f"Building module {job.position + 1} of {ticks}", pause=4)
    return Done("Built", tool_result(f"{ticks} modules were built.", {"modules": ticks}))


def _echo(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    return tool_result(arguments["text"], {"text": arguments["text"]})


def _object_of(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


_FORM: Final = frozenset({"form"})

_DEMO: Final = (
    Tool(
        "generate_report",
        "Generate a report",
        "Collects sources, asks for the outline's approval, and writes the report. Runs as a task.",
        {"size": {"type": "string", "title": "Size", "enum": list(_SECTIONS), "default": "small"}},
        ("size",),
        _object_of(size={"type": "string"}, approved={"type": "boolean"}),
        step=_generate_report,
        modes=_FORM,
    ),
    Tool(
        "deploy_service",
        "Deploy a service",
        "Checks a build, asks for an approval with every kind of field, and rolls it out. Runs as a task.",
        {
            "service": {"type": "string", "title": "Service", "minLength": 1, "maxLength": 60},
            "build": {"type": "string", "title": "Build", "pattern": "^[0-9]{1,8}$", "default": "4711"},
        },
        ("service",),
        _object_of(
            service={"type": "string"},
            build={"type": "string"},
            action={"type": "string"},
            answers={"type": "object"},
        ),
        step=_deploy_service,
        modes=_FORM,
    ),
    Tool(
        "approve_in_browser",
        "Approve in the browser",
        "Asks a person to approve something on a web page. Runs as a task.",
        step=_approve_in_browser,
        modes=frozenset({"url"}),
    ),
    Tool(
        "ask_first",
        "Ask before starting",
        "Asks who it is for before it starts; then it runs as a task.",
        {"name": {"type": "string", "title": "Name", "minLength": 1, "maxLength": 80}},
        step=_ask_first,
        before=_before_ask_first,
        modes=_FORM,
    ),
    Tool(
        "two_questions",
        "Ask two questions",
        "Asks two questions at once; each can be answered by itself. Runs as a task.",
        step=_two_questions,
        modes=_FORM,
    ),
    Tool(
        "long_build",
        "Run a long build",
        "Works for the given number of minutes and tells its progress. Runs as a task.",
        {"minutes": {"type": "integer", "title": "Minutes", "minimum": 1, "maximum": 600, "default": 10}},
        step=_long_build,
    ),
    Tool("flaky_job", "Run a flaky job", "Fails with a protocol error. Runs as a task.", step=_flaky_job),
    Tool(
        "broken_tool",
        "Use a broken tool",
        "Completes with an error result. Runs as a task.",
        step=_broken_tool,
    ),
    Tool(
        "echo",
        "Echo a text",
        "Returns the text at once, without a task.",
        {"text": {"type": "string", "title": "Text", "maxLength": 10_000}},
        ("text",),
        _object_of(text={"type": "string"}),
        reply=_echo,
    ),
)
