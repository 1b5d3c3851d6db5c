"""One task for a person: how it stands, what it asks and how to answer that, what happened to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from app.cli.output import (
    clock_words,
    columns,
    command_name,
    left_words,
    readable_json,
    short_key,
    status_words,
)
from app.cli.parts import Asker
from app.engine.commands import REFUSED_HERE, answerable, asks_too_much, is_refused_here, unanswerable
from app.text import inert, inert_line
from app.urls import UrlReview, review_url
from storage.records import EventRecord, QuestionRecord, QuestionState, TaskRecord

if TYPE_CHECKING:
    from app.forms import Field, Form

_FIELDS_MOST: Final = 100
_CHOICES_MOST: Final = 12
_ANSWERED: Final[tuple[QuestionState, ...]] = ("queued", "sent", "acknowledged", "settled")
_DETAILS: Final = ("key", "to", "message", "reason", "problem", "taskId")


def question_lines(question: QuestionRecord, asker: Asker) -> list[str]:
    """Return a question in the server's own words, each line marked as the server's, and how to answer it.

    *asker* is what is known of its server.
    """
    from app.cli.shapes import parsed

    request = parsed(question.request_json)
    params = request.get("params") if isinstance(request, dict) else None
    params = params if isinstance(params, dict) else {}
    message = params.get("message")
    lines = [f"{short_key(question.key)} ({inert_line(question.method)}): {question.state}"]
    if question.fault:
        lines.append(f"  server fault: {inert_line(question.fault)}")
    if is_refused_here(question):
        name = command_name(question.task)
        lines.append(f"  {REFUSED_HERE} It can be answered still; `taskinbox cancel {name}` ends the task.")
    elif question.refusal:
        lines.append(f"  refused: {inert_line(question.refusal)}")
    if isinstance(message, str):
        lines += [f"  | {line}" for line in inert(message).splitlines()]
    if isinstance(params.get("url"), str):
        lines.append(f"  | URL: {inert_line(params['url'], len(params['url']))}")
    if question.is_open:
        lines += _answer_lines(question, params, asker)
    if question.state == "acknowledged" and question.still_asked:
        lines.append(f"  acknowledged, and still asked for; {_again_words(question)}")
    if question.response_json is not None:
        stands = question.state in _ANSWERED
        lines.append(
            f"  {'answered' if stands else 'the former answer'}: {readable_json(question.response_json)}"
        )
    return lines


def _again_words(question: QuestionRecord) -> str:
    command = f"`taskinbox answer --again {command_name(question.task)}`"
    if question.withheld:
        return (
            "its answer held secrets, which are not kept, so it has to be answered anew: "
            f"{command} opens it again"
        )
    return f"{command} sends it again"


def _answer_lines(question: QuestionRecord, params: dict[str, Any], asker: Asker) -> list[str]:
    if (why := unanswerable(question, asker.abilities)) is not None:
        return [f"  {why} `taskinbox cancel {command_name(question.task)}` does that."]
    mode = answerable(question, asker.abilities)
    if mode == "sampling" or mode == "roots":
        from app.cli.results import result_lines

        return result_lines(mode, params, asker.abilities)
    if mode == "url":
        review = review_url(text_of(params, "url"), asker.url)
        if review.problem is not None:
            return [*address_lines(review), "  --decline says no, --dismiss closes it without a choice"]
        return [*address_lines(review), "  --accept '{}' consents to opening it; it is not opened for you"]
    schema = params.get("requestedSchema")
    schema = schema if isinstance(schema, dict) else {"type": "object", "properties": {}}
    return field_lines(schema, params.get("message"))


def text_of(params: Mapping[str, Any], name: str) -> str:
    """Return the text that a server gave under *name*; empty where it gave none."""
    value = params.get(name)
    return value if isinstance(value, str) else ""


def address_lines(review: UrlReview) -> list[str]:
    """Return what a person should know about an address before agreeing to it."""
    told = [*review.warnings, *([review.problem] if review.problem else [])]
    return [f"    host: {inert_line(review.host, 300) or 'none'}", *(f"    ! {text}" for text in told)]


def field_lines(schema: dict[str, Any], message: object) -> list[str]:
    """Return a line for each field of a form: its name, what it takes, its default and its title.

    *message* as for `read_form`.
    """
    from app.forms import SchemaRefused, read_form

    try:
        form: Form = read_form(schema, message)
    except SchemaRefused as refused:
        return [f"    {inert_line(str(refused))}; --accept JSON answers it"]
    if form.whole:
        return [
            "    no fields can be told apart; --accept JSON answers it, and must satisfy",
            f"    {_schema_words(schema)}",
        ]
    rows = [
        (f"{inert_line(f.name)}{' *' if f.required else ''}", _expected(f), _default(f), _title(f))
        for f in form.fields[:_FIELDS_MOST]
    ]
    if not rows:
        return ["    no fields; --defaults accepts it"]
    lines = [f"    {line}" for line in columns(("FIELD", "TAKES", "DEFAULT", "TITLE"), rows)]
    if (more := len(form.fields) - len(rows)) > 0:
        lines.append(f"    and {more} more; `taskinbox show --json` has them")
    if any(f.required for f in form.fields):
        lines.append("    * is required")
    return lines


def _schema_words(schema: dict[str, Any]) -> str:
    from app.cli.shapes import to_json

    return inert_line(readable_json(to_json(schema)), 2000)


def _expected(field: Field) -> str:
    """Return what may be given with ``--field``: the kind, its bounds, its choices as they are typed."""
    words = [field.hint or ("text" if field.kind == "text" else "")]
    if field.kind in ("choice", "choices"):
        shown = [
            inert_line(c.entry if c.title in (None, c.entry) else f"{c.entry} ({c.title})", 60)
            for c in field.choices[:_CHOICES_MOST]
        ]
        more = len(field.choices) - len(shown)
        listed = " | ".join(shown) + (f" | {more} more" if more else "")
        words.append(f"of: {listed}" if field.hint else f"one of: {listed}")
    if field.kind == "text" and field.hint and field.format is None:
        words.insert(0, "text,")
    if field.nullable:
        words.append("(or --null)")
    if field.secret:
        words.append("(seems to be a secret)")
    return " ".join(word for word in words if word)


def _default(field: Field) -> str:
    if not field.has_default:
        return "-"
    if field.secret:
        return "••••••"
    entry = field.initial()
    if entry is None:
        text = "null"
    elif isinstance(entry, list):
        text = ", ".join(entry) or "none"
    else:
        text = str(entry) or '""'
    return inert_line(text, 60) + (" (invalid)" if field.default_problem else "")


def _title(field: Field) -> str:
    parts = [field.title if field.title != field.name else "", field.description or ""]
    return inert_line(": ".join(part for part in parts if part), 200)


def task_lines(task: TaskRecord, questions: Sequence[QuestionRecord], now: int, asker: Asker) -> list[str]:
    """Return one task for a person, without its result; *asker* as in `question_lines`."""
    state = task.state
    pairs = [
        ("task" if task.kind == "task" else "call", str(task.key)),
        ("tool", task.tool or "-"),
        ("status", status_words(task)),
        ("message", state.status_message or ""),
        ("reason", state.reason or ""),
        ("problem", state.problem or ""),
        ("section", task.section),
        ("created", clock_words(state.created_at or task.added_at)),
        ("changed", clock_words(task.changed_at)),
        ("expires", f"{clock_words(state.expires_at)} ({left})" if (left := left_words(task, now)) else ""),
        ("from call", task.origin_call or ""),
    ]
    lines = [f"{name:<10}{inert_line(text)}" for name, text in pairs if text]
    if (advice := lost_call_words(task)) is not None:
        lines.append(advice)
    if asks_too_much(task):
        name = command_name(task.key)
        lines.append(f"`taskinbox answer --ask-on {name}` lets it ask on, `taskinbox cancel {name}` ends it.")
    for question in questions:
        lines += ["", *question_lines(question, asker)]
    return lines


def lost_call_words(task: TaskRecord) -> str | None:
    """Return what can be done about a call whose outcome is unknown; ``None``: this is none."""
    if task.kind != "call" or task.state.tracking != "lost":
        return None
    name = command_name(task.key)
    return (
        f"Look at the server whether it began. `taskinbox call --again {name}` repeats it, "
        f"`taskinbox forget {name}` drops it here."
    )


def history_lines(events: Sequence[EventRecord]) -> list[str]:
    """Return what happened to a task, oldest first: when, what, and the details that tell it apart."""
    from app.cli.shapes import parsed

    lines = []
    for event in events:
        told = parsed(event.data_json)
        told = told if isinstance(told, dict) else {}
        if event.kind == "added" and told.get("origin"):
            continue  # the call it came from was added before, and says what it became
        detail = [str(told[name]) for name in _DETAILS if told.get(name)]
        what = event.kind.replace("_", " ")
        lines.append(inert_line("  ".join([clock_words(event.at), what, *detail]), 300))
    return lines
