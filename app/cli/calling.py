"""``call`` and ``add``: how a task or a call comes into the inbox."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any

import click

from app.cli.exits import CommandError, Exit, usage
from app.cli.output import (
    command_name,
    data,
    is_terminal,
    json_line,
    readable_json,
    result_lines,
    status_words,
    words,
)
from app.cli.parts import Asker, Parts, json_object, load, read_argument, resolve, run_async
from app.cli.showing import lost_call_words, question_lines
from app.cli.tasks import json_option, open_keys
from app.cli.watching import Until, follow, print_change, timeout_option
from app.engine.commands import CallOutcome, Engine
from app.text import inert_line
from storage.records import Reader, TaskKey


@click.command()
@click.argument("server", required=False, metavar="SERVER")
@click.argument("tool", required=False, metavar="TOOL")
@click.option("--args", "arguments", metavar="JSON|@FILE|-", help="The arguments, as a JSON object.")
@click.option(
    "--field", "fields", multiple=True, metavar="NAME=TEXT", help="Fill in an argument. Repeatable."
)
@click.option("--null", "nulls", multiple=True, metavar="NAME", help="Set an argument to null. Repeatable.")
@click.option("--wait", is_flag=True, help="Watch until the task ends or needs input, and print its result.")
@timeout_option("With --wait: give up waiting after this long (exit 7); the task goes on.")
@click.option(
    "--again", metavar="CALL", help="Instead: repeat this call, whose outcome is unknown. It may run twice."
)
@json_option
@click.pass_context
def call(
    ctx: click.Context,
    server: str | None,
    tool: str | None,
    arguments: str | None,
    fields: tuple[str, ...],
    nulls: tuple[str, ...],
    wait: bool,
    timeout: float | None,
    again: str | None,
    as_json: bool,
) -> None:
    """Call a TOOL of SERVER: prints the task's handle, the result, or the questions asked first."""
    parts: Parts = ctx.obj
    if again is None and (server is None or tool is None):
        raise click.UsageError(f"Missing argument '{'SERVER' if server is None else 'TOOL'}'.", ctx)
    if again is not None and (server is not None or arguments is not None or fields or nulls):
        raise usage("--again repeats a call as it was: it takes no SERVER, no TOOL and no arguments.")
    if arguments is not None and (fields or nulls):
        raise usage("--args and --field are two ways to say the same; give one.")
    if timeout is not None and not wait:
        raise usage("--timeout goes with --wait.")
    arguments_json = "{}"
    if arguments is not None:
        arguments_json = read_argument(arguments, "--args").strip()
        json_object(arguments_json, "--args")

    with parts.reader() as reader:
        repeated = resolve(reader, again) if again is not None else None

        async def begin(engine: Engine) -> CallOutcome:
            if repeated is not None:
                return await engine.call_again(repeated)
            assert server is not None
            assert tool is not None
            said = arguments_json
            if fields or nulls:
                said = await _fill(engine, server, tool, fields, nulls)
            return await engine.call(server, tool, said, on_progress=_progress)

        async def work() -> tuple[CallOutcome, int | None]:
            async with parts.engine() as engine:
                outcome = await begin(engine)
                if not (wait and outcome.kind == "task"):
                    return outcome, None
                if not as_json:
                    data(inert_line(str(outcome.key)))
                report = None if as_json else print_change
                return outcome, await follow(
                    engine, reader, outcome.key, Until.INPUT, timeout, report=report, to_stderr=True
                )

        before = {row.key for row in reader.list_rows(server=server)} - {repeated}
        try:
            outcome, waited = run_async(work())
        except KeyboardInterrupt:
            _say_where(reader, before, server, tool, repeated)
            raise
        asker = parts.asker(outcome.key.server)
        if waited is None:
            shape, code = finish_outcome(reader, outcome, quiet=as_json, asker=asker)
        else:
            shape, code = _finish_waited(reader, outcome, quiet=as_json, asker=asker), waited
        if as_json:
            from app.cli.shapes import to_json

            json_line(to_json(shape))
        if outcome.kind == "task":
            _say_what_ends(parts, reader, outcome.key)
        raise click.exceptions.Exit(code)


def _say_what_ends(parts: Parts, reader: Reader, key: TaskKey) -> None:
    """Warn of a server that this command has started, and ends: a task that goes on may end with it."""
    task, entry = reader.task(key), parts.entries().get(key.server)
    if task is not None and task.state.tracking == "active" and entry is not None and entry.command:
        words(
            f"warning: server {inert_line(key.server)} was started for this command and ends with it; so "
            "does the task, where the server keeps it in memory. An open inbox keeps its servers running."
        )


def _say_where(
    reader: Reader,
    before: Collection[TaskKey],
    server: str | None,
    tool: str | None,
    repeated: TaskKey | None,
) -> None:
    """Say where a call that was interrupted is kept: it may have begun, and nobody else would tell."""
    if is_terminal(sys.stderr):
        words("")  # the terminal has just shown ^C
    if repeated is not None:
        made = [reader.task(repeated)]
    else:
        rows = (r for r in reader.list_rows(server=server) if r.key not in before and r.tool == tool)
        made = [reader.task(row.key) for row in sorted(rows, key=lambda row: row.added_at)[-1:]]
    for task in made:
        if task is not None:
            name = command_name(task.key)
            words(f"{inert_line(task.key.id)}: {inert_line(status_words(task))}; taskinbox show {name}")


def _progress(text: str) -> None:
    words(inert_line(text))


async def _fill(
    engine: Engine, server: str, tool: str, fields: tuple[str, ...], nulls: tuple[str, ...]
) -> str:
    from app.cli.filling import fill

    listing = await engine.tools(server)
    found = next((t for t in listing.tools if t.name == tool), None)
    if found is None:
        raise CommandError(
            Exit.FAILED,
            f"Server {inert_line(server)} has no tool {inert_line(tool)!r}; `taskinbox tools "
            f"{inert_line(server)}` lists them.",
        )
    return fill(found.input_schema, fields, nulls, instead="Use --args JSON.")


def finish_outcome(
    reader: Reader, outcome: CallOutcome, *, quiet: bool, asker: Asker
) -> tuple[dict[str, Any], int]:
    """Say what became of a call (unless *quiet*); returns its JSON shape and the exit code.

    *asker* is what is known of its server.
    """
    from app.cli.shapes import outcome_shape, parsed

    key, name = outcome.key, inert_line(str(outcome.key))
    task, questions = reader.task(key), reader.questions(key)
    shape = outcome_shape(outcome, task, questions)
    result = parsed(outcome.result_json)
    if outcome.kind == "task":
        if not quiet:
            data(name)
            words(f"A task now; `taskinbox watch {name}` follows it.")
        return shape, Exit.DONE
    if outcome.kind == "complete":
        is_error = isinstance(result, dict) and result.get("isError") is True
        if not quiet:
            data("\n".join(result_lines(result)))
        if outcome.message:
            words(f"Warning: {inert_line(outcome.message)}")
        if is_error:
            words("The tool reports an error (isError).")
        return shape, Exit.FAILED if is_error else Exit.DONE
    if outcome.kind == "input_required":
        if not quiet:
            data(name)
            for question in questions:
                if question.is_open:
                    words("\n".join(question_lines(question, asker)))
            words(f"It asks first; `taskinbox answer {name}` answers.")
        return shape, Exit.INPUT_REQUIRED
    reason = inert_line(outcome.message) if outcome.message else ""
    if outcome.kind == "failed":
        reason = reason or readable_json(outcome.error_json or "")
        words(f"Error: server {inert_line(key.server)} answered with an error. {reason}")
    else:
        words(f"Error: whether {name} began is not known; it is not repeated by itself. {reason}".rstrip())
        if task is not None and (advice := lost_call_words(task)) is not None:
            words(advice)
    return shape, Exit.FAILED


def _finish_waited(reader: Reader, outcome: CallOutcome, *, quiet: bool, asker: Asker) -> dict[str, Any]:
    """Print how a task that was waited for stands now; returns its JSON shape."""
    from app.cli.shapes import outcome_shape, parsed

    task, questions = load(reader, outcome.key), reader.questions(outcome.key)
    if not quiet:
        for question in questions:
            if question.is_open:
                words("\n".join(question_lines(question, asker)))
        if task.state.result_json is not None:
            data("\n".join(result_lines(parsed(task.state.result_json))))
        if task.state.error_json is not None:
            words(f"error: {readable_json(task.state.error_json)}")
    return outcome_shape(outcome, task, questions)


@click.command()
@click.argument("server")
@click.argument("task_id", metavar="TASK_ID | -")
@json_option
@click.pass_obj
def add(parts: Parts, server: str, task_id: str, as_json: bool) -> None:
    """Track a task made elsewhere: by its id, or by its handle (JSON) on stdin. Its server is asked once."""
    handle: str | None = None
    if task_id == "-":
        handle = read_argument("-", "the handle on stdin").strip()
        task_id = _handle_id(json_object(handle, "the handle on stdin"))
    if not task_id:
        raise usage("A task's id is not empty.")

    async def work() -> TaskKey:
        async with parts.engine() as engine:
            return await engine.track(server, task_id, handle_json=handle)

    key = run_async(work())
    with parts.reader() as reader:
        record = load(reader, key)
        if as_json:
            from app.cli.shapes import row_shape, to_json

            json_line(to_json(row_shape(record, open_keys(reader, record))))
        else:
            data(inert_line(str(key)))
            print_change(record, reader.questions(key), to_stderr=True)


def _handle_id(handle: dict[str, Any]) -> str:
    """Return the task id in a handle: as it stands, or inside of a reply's ``result`` or ``task``."""
    for place in (handle, handle.get("result"), handle.get("task")):
        if isinstance(place, dict) and isinstance(place.get("taskId"), str):
            return str(place["taskId"])
    raise usage('The handle on stdin has no "taskId".')
