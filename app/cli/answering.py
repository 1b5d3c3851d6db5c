"""``answer``: one question, answered exactly as it was asked."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

import click

from app.cli.calling import finish_outcome
from app.cli.exits import FAILURES, CommandError, Exit, usage
from app.cli.finding import named_by, print_instead, question_meant
from app.cli.output import command_name, json_line, words
from app.cli.parts import Asker, Parts, load, resolve, run_async
from app.cli.showing import address_lines, text_of
from app.cli.tasks import json_option, open_keys
from app.engine.commands import (
    Answer,
    Delivery,
    EngineError,
    answerable,
    is_refused_here,
    unanswerable,
)
from app.text import inert, inert_line
from app.urls import review_url
from storage.records import QuestionRecord, Reader, TaskKey

T = TypeVar("T")

DELIVERED: Final[dict[str, tuple[Exit, str]]] = {
    "acknowledged": (Exit.DONE, "Sent, and acknowledged by the server."),
    "saved": (Exit.UNREACHABLE, "Saved, and not delivered yet; whichever taskinbox runs next delivers it."),
    "waiting": (Exit.DONE, "Saved; the call goes on when its other questions are answered, too."),
    "refused": (Exit.FAILED, "The server refused the answer; the question is open again."),
    "withdrawn": (Exit.UNKNOWN, "The question changed or vanished; nothing was sent."),
    "unknown": (Exit.FAILED, "The answer was sent with the call, and what became of it is not known."),
}
"""The exit code, unless the delivery names a failure; and the words, unless it brings its own."""

ACTIONS: Final[dict[str, Literal["accept", "decline", "cancel"]]] = {
    "accept": "accept",
    "decline": "decline",
    "dismiss": "cancel",
}


@dataclass(frozen=True, slots=True)
class Said:
    """What the command line says to a question."""

    action: Literal["accept", "decline", "cancel"]
    content: str | None
    """The value of ``--accept``; ``None``: by fields."""
    fields: tuple[str, ...]
    nulls: tuple[str, ...]
    explicit: bool
    """Whether anything was said at all."""


@click.command()
@click.argument("task")
@click.argument("key", required=False)
@click.option("--field", "fields", multiple=True, metavar="NAME=TEXT", help="Fill in a field. Repeatable.")
@click.option("--null", "nulls", multiple=True, metavar="NAME", help="Set a field to null. Repeatable.")
@click.option("--accept", metavar="JSON", help="Accept with this content (@FILE and - work, too).")
@click.option("--defaults", is_flag=True, help="Accept with every field left as it is.")
@click.option("--decline", is_flag=True, help="Say no.")
@click.option("--dismiss", is_flag=True, help="Close the question without a choice.")
@click.option(
    "--again", is_flag=True, help="Send the answer that was acknowledged, and is still asked for, once more."
)
@click.option(
    "--ask-on", is_flag=True, help="Let a server ask on that was stopped because it asked without end."
)
@click.option(
    "--fingerprint",
    metavar="DIGEST",
    help="Answer only this very question, as `show --json` names it; 8 characters of it will do.",
)
@click.option("--dry-run", is_flag=True, help="Print the exact response, send nothing.")
@json_option
@click.pass_obj
def answer(
    parts: Parts,
    task: str,
    key: str | None,
    fields: tuple[str, ...],
    nulls: tuple[str, ...],
    accept: str | None,
    defaults: bool,
    decline: bool,
    dismiss: bool,
    again: bool,
    ask_on: bool,
    fingerprint: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Answer a question of TASK; KEY may be left out when exactly one is open.

    KEY is a question's key, or a beginning or ending of it that fits no other. Text given with --field
    becomes what the question asks for, as on the screen; a field not named is untouched.
    """
    said = _said(fields, nulls, accept, defaults=defaults, decline=decline, dismiss=dismiss)
    if again and (said.explicit or fingerprint is not None):
        raise usage("--again sends the answer that was given before; give no other with it.")
    if ask_on and (said.explicit or again or dry_run or key is not None or fingerprint is not None):
        raise usage("--ask-on is about a task as a whole; give nothing else with it.")
    with parts.reader() as reader:
        task_key = resolve(reader, task)
        if ask_on:
            _let_ask(parts, reader, task_key, as_json=as_json)
            return
        if again:
            raise click.exceptions.Exit(
                _again(parts, reader, task_key, key, dry_run=dry_run, as_json=as_json)
            )
        question = question_meant(parts, reader, task_key, key, fingerprint, may_look=not dry_run)
        asker = parts.asker(question.task.server)
        abilities = asker.abilities
        if said.action != "accept" and answerable(question, abilities) in ("sampling", "roots"):
            if is_refused_here(question):
                raise CommandError(Exit.UNKNOWN, f"{inert_line(question.key)} was refused here already.")
            raise click.exceptions.Exit(_refuse(parts, reader, question, dry_run=dry_run, as_json=as_json))
        reply = compose(question, said, asker)
        if dry_run:
            from app.cli.shapes import plain_json

            json_line(plain_json(reply.response_json))
            return
        if not said.explicit:
            raise usage(
                "This would accept the question with every field left as it is; say so with --defaults, "
                "or use --field NAME=TEXT, --accept JSON, --decline or --dismiss."
            )
        raise click.exceptions.Exit(_deliver(parts, reader, task_key, reply, as_json=as_json))


def _let_ask(parts: Parts, reader: Reader, task: TaskKey, *, as_json: bool) -> None:
    """Let a server ask on, and say what it asks then."""

    async def work() -> str:
        async with parts.engine() as engine:
            return await engine.let_ask(task)

    words(run_async(work()))
    if as_json:
        from app.cli.shapes import row_shape, to_json

        record = load(reader, task)
        json_line(to_json(row_shape(record, open_keys(reader, record))))


def _said(
    fields: tuple[str, ...],
    nulls: tuple[str, ...],
    accept: str | None,
    *,
    defaults: bool,
    decline: bool,
    dismiss: bool,
) -> Said:
    by_field = bool(fields or nulls)
    ways = {
        "--field/--null": by_field,
        "--accept": accept is not None,
        "--defaults": defaults,
        "--decline": decline,
        "--dismiss": dismiss,
    }
    used = [name for name, is_used in ways.items() if is_used]
    if len(used) > 1:
        raise usage(f"{' and '.join(used)} are different answers; give one.")
    action = ACTIONS["decline" if decline else "dismiss" if dismiss else "accept"]
    return Said(action, accept, fields, nulls, explicit=bool(used))


def compose(question: QuestionRecord, said: Said, asker: Asker) -> Answer:
    """Return the answer to *question*; raises `CommandError` (usage) when it is not valid, field by field.

    *asker* is what is known of its server.
    """
    from app.cli.shapes import parsed

    abilities = asker.abilities
    name = f"{inert_line(str(question.task))} {inert_line(question.key)}"
    request = parsed(question.request_json)
    if not isinstance(request, dict):
        raise usage(f"{name}: what is asked can't be read by this program.")
    params = request.get("params")
    params = params if isinstance(params, dict) else {}
    if (why := unanswerable(question, abilities)) is not None:
        raise usage(f"{name}: {why} `taskinbox cancel {command_name(question.task)}` does that.")
    if said.action != "accept":
        return Answer(question, said.action)
    mode = answerable(question, abilities)
    if mode == "sampling" or mode == "roots":
        from app.cli.results import result

        return Answer(question, "accept", result(mode, params, said, abilities))
    if mode == "url":
        return _consent(question, said, text_of(params, "url"), asker.url)
    schema = params.get("requestedSchema")
    if not isinstance(schema, Mapping):
        schema = {"type": "object", "properties": {}}
    from app.cli.filling import fill, whole

    if said.content is not None:
        return Answer(question, "accept", whole(schema, said.content, "--accept"))
    message = params.get("message")
    content = fill(schema, said.fields, said.nulls, instead="Use --accept JSON.", message=message)
    return Answer(question, "accept", content)


def _consent(question: QuestionRecord, said: Said, url: str, server_url: str | None) -> Answer:
    """Return the consent to open a page, after showing which one it is; raises `CommandError` (usage)."""
    from app.cli.parts import json_object, read_argument

    if said.fields or said.nulls:
        raise usage("This question opens a web page and has no fields; --accept '{}' consents.")
    if said.content is not None and json_object(read_argument(said.content, "--accept"), "--accept"):
        raise usage("This question opens a web page and takes no content; --accept '{}' consents.")
    review = review_url(url, server_url)
    words(f"{inert_line(question.task.server)} asks you to open this page; it is not opened for you:")
    words(f"  {inert(url)}")
    words("\n".join(address_lines(review)))
    if review.problem is not None:
        raise usage(f"{review.problem} Nothing was sent; --decline says no.")
    return Answer(question, "accept")


def _refuse(parts: Parts, reader: Reader, question: QuestionRecord, *, dry_run: bool, as_json: bool) -> int:
    """Record a refusal that the wire has no word for, and say so; returns the exit code."""
    if dry_run:
        words("Nothing would be sent: refusing it is recorded here alone.")
        return Exit.DONE

    async def work() -> str:
        async with parts.engine() as engine:
            return await engine.refuse(question)

    said = _or_instead(parts, reader, question, work())
    words(f"{said} `taskinbox cancel {command_name(question.task)}` does that.")
    if as_json:
        from app.cli.shapes import to_json

        key = {"server": question.task.server, "taskId": question.task.id, "key": question.key}
        json_line(to_json({**key, "response": None, "state": "refused-here"}))
    return Exit.DONE


def _deliver(parts: Parts, reader: Reader, task: TaskKey, reply: Answer, *, as_json: bool) -> int:
    """Save and deliver the answer, and say what became of it; returns the exit code."""

    async def work() -> Delivery:
        async with parts.engine() as engine:
            if is_refused_here(reply.question):
                await engine.reopen(reply.question.id)
            return await engine.answer(task, [reply])

    from app.forms.redacting import without_secrets

    told = without_secrets(reply.question.request_json, reply.response_json) or reply.response_json
    delivery = _or_instead(parts, reader, reply.question, work())
    return _tell(parts, reader, reply.question, told, delivery, as_json=as_json)


def _or_instead(parts: Parts, reader: Reader, question: QuestionRecord, work: Coroutine[Any, Any, T]) -> T:
    """Return what *work* on a question gives; where that is not open any more, what is asked instead is shown
    before the error."""
    try:
        return run_async(work)
    except EngineError as error:
        if error.failure == "closed":
            print_instead(parts, reader, question)
        raise


def _again(
    parts: Parts, reader: Reader, task: TaskKey, key: str | None, *, dry_run: bool, as_json: bool
) -> int:
    """Send the same answer once more, to a server that acknowledged it and asks still."""
    acknowledged = [q for q in reader.questions(task) if q.state == "acknowledged"]
    named = named_by(acknowledged, key)
    name = inert_line(str(task))
    if not named:
        raise CommandError(
            Exit.UNKNOWN, f"{name} has no such question whose answer was acknowledged and is still asked for."
        )
    if len(named) > 1:
        keys = "\n".join(f"  {inert_line(q.key)}" for q in named)
        raise usage(f"{name} has {len(named)} such questions; say which:\n{keys}")
    (question,) = named
    response = question.response_json or "null"
    if dry_run and question.withheld:
        raise usage(
            "The answer held secrets, which are not kept: it can't be sent again. --again without --dry-run "
            "asks the question anew."
        )
    if dry_run:
        from app.cli.shapes import plain_json

        json_line(plain_json(response))
        return Exit.DONE

    async def work() -> Delivery:
        async with parts.engine() as engine:
            return await engine.send_again(question.id)

    return _tell(parts, reader, question, response, run_async(work()), as_json=as_json)


def _tell(
    parts: Parts,
    reader: Reader,
    question: QuestionRecord,
    response_json: str,
    delivery: Delivery,
    *,
    as_json: bool,
) -> int:
    """Say what became of an answer; returns the exit code."""
    code: int
    code, text = DELIVERED[delivery.state]
    if delivery.failure is not None:
        code = FAILURES[delivery.failure]
    outcome: Mapping[str, Any] | None = None
    if delivery.outcome is not None and delivery.state == "acknowledged":
        asker = parts.asker(question.task.server)
        outcome, code = finish_outcome(reader, delivery.outcome, quiet=as_json, asker=asker)
    else:
        said = inert_line(delivery.message) if delivery.message else ""
        words(f"{text} {said}".rstrip() if delivery.state == "refused" else said or text)
        if delivery.state == "withdrawn":
            print_instead(parts, reader, question)
    if as_json:
        from app.cli.shapes import delivery_shape, to_json

        json_line(to_json(delivery_shape(question, response_json, delivery, outcome)))
    return code
