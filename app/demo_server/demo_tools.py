"""The tools that people try the inbox on: between them, everything that a task can do.

A question that was declined or dismissed ends its job as completed, with a result that says which of both it
was; nothing is done then. Only `two_questions` goes on: it notes each of its questions by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from app.demo_server.errors import INTERNAL_ERROR, RpcError
from app.demo_server.questions import deployment_form, form, visit
from app.demo_server.tools import Ask, Done, Job, Outcome, Stopped, Tool, Work, tool_result

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
    refusal = job.refusal("approve_outline") or "not approved"
    approved = bool(job.content("approve_outline").get("approved", False))
    structured = {"size": size, "approved": approved}
    if not approved:
        return Done(
            "Ended without a report",
            tool_result(f"No {size} report: the outline was {refusal}.", structured),
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
    refusal = job.refusal("approve_deployment")
    if refusal is not None:
        text = f"{service} was not deployed: the approval was {refusal}."
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
    outcome = job.refusal("approve_in_browser") or "approved"
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
    told = ", ".join(f"{key}: {job.refusal(key) or value}" for key, value in answers.items())
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


def _publish_release(job: Job) -> Outcome:
    """Ignores a cancellation: what is published can't be taken back, so half of it helps nobody."""
    steps = ("Building", "Signing", "Uploading", "Waiting for the mirrors", "Announcing")
    if job.position < len(steps):
        return Work(f"{steps[job.position]} ({job.position + 1} of {len(steps)})")
    return Done("Published", tool_result("The release is published.", {"published": True}))


def _send_newsletter(job: Job) -> Outcome:
    """Finishes first: cancelled, it sends no more, and completes with what was sent."""
    batches = job.arguments.get("batches", 10)
    sent = job.position
    if sent < batches and not job.cancel_requested:
        return Work(f"Sending batch {sent + 1} of {batches}")
    told = f"{sent} of {batches} batches were sent."
    # Nobody needs to know for long.
    return Done("Sent", tool_result(told, {"sent": sent, "of": batches}), keep_ms=_HOUR_MS)


def _restore_backup(job: Job) -> Outcome:
    """Obeys late: cancelled, it first puts things back as they were, which takes three steps."""
    putting_back = job.state.get("putting_back", 1 if job.cancel_requested else 0)
    if putting_back > _PUT_BACK:
        return Stopped("Cancelled; everything is as it was before")
    if putting_back:
        message = f"Cancelling: putting things back ({putting_back} of {_PUT_BACK})"
        return Work(message, {"putting_back": putting_back + 1})
    if job.position < _RESTORE:
        return Work(f"Restoring table {job.position + 1} of {_RESTORE}")
    return Done("Restored", tool_result(f"{_RESTORE} tables were restored.", {"tables": _RESTORE}))


_HOUR_MS: Final = 3600 * 1000
_RESTORE: Final = 8
_PUT_BACK: Final = 3


def _echo(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    return tool_result(arguments["text"], {"text": arguments["text"]})


def _object_of(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


_FORM: Final = frozenset({"form"})

DEMO: Final = (
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
    Tool(
        "publish_release",
        "Publish a release",
        "Publishes in five steps; once begun it can't be cancelled, and goes on. Runs as a task.",
        output_schema=_object_of(published={"type": "boolean"}),
        step=_publish_release,
        handles_cancel=True,
    ),
    Tool(
        "send_newsletter",
        "Send a newsletter",
        "Sends batch by batch; cancelled, it completes with what was sent. Runs as a task.",
        {"batches": {"type": "integer", "title": "Batches", "minimum": 1, "maximum": 600, "default": 10}},
        output_schema=_object_of(sent={"type": "integer"}, of={"type": "integer"}),
        step=_send_newsletter,
        handles_cancel=True,
    ),
    Tool(
        "restore_backup",
        "Restore a backup",
        "Restores table by table; cancelled, it first puts everything back. Runs as a task.",
        output_schema=_object_of(tables={"type": "integer"}),
        step=_restore_backup,
        handles_cancel=True,
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
