"""``list``, ``show``, ``cancel``, ``archive``, ``forget``, ``locate``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import Final

import click

from app.cli.exits import FAILURES, CommandError, Exit
from app.cli.output import (
    data,
    is_terminal,
    json_line,
    json_lines,
    list_rows,
    readable_json,
    result_lines,
    short_ids,
    words,
)
from app.cli.parts import Parts, load, resolve, run_async
from app.cli.showing import history_lines, task_lines
from app.text import inert_line
from storage.records import SECTIONS, Reader, Section, TaskKey, TaskRow

STATUSES: Final = ("working", "input_required", "completed", "failed", "cancelled")

HISTORY: Final = 20
"""Newest events that `show` prints for people; ``--json`` has more."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
refresh_option = click.option("--refresh", is_flag=True, help="Look at the server first.")


def open_keys(reader: Reader, row: TaskRow) -> list[str]:
    """Return the keys of a task's open questions."""
    return [q.key for q in reader.questions(row.key) if q.is_open] if row.open_questions else []


@click.command("list")
@click.option(
    "--status",
    type=click.Choice([*STATUSES, *SECTIONS]),
    help="Only this status of the protocol, or this section of the inbox.",
)
@click.option("--server", metavar="NAME", help="Only this server's.")
@refresh_option
@json_option
@click.pass_obj
def list_(parts: Parts, status: str | None, server: str | None, refresh: bool, as_json: bool) -> None:
    """List tasks and calls, as the inbox knows them."""
    section: Section | None = next((name for name in SECTIONS if name == status), None)
    wire_status = None if section else status
    code: int = Exit.DONE
    with parts.reader() as reader:
        if refresh:
            code = run_async(_refresh(parts, _to_look_at(parts, reader, server)))
        rows = reader.list_rows(section=section, server=server, status=wire_status)
        if not rows and server is not None and not _is_known(parts, reader, server):
            raise CommandError(
                Exit.UNKNOWN, f"No server named {inert_line(server)}; `taskinbox servers list` shows them."
            )
        if as_json:
            from app.cli.shapes import row_shape

            json_lines([row_shape(row, open_keys(reader, row)) for row in rows])
        elif rows:
            # A beginning that names one task alone is as good as its id, and leaves room for what it says.
            ids = short_ids([row.key for row in reader.list_rows()]) if is_terminal(sys.stdout) else None
            list_rows(rows, parts.now(), ids)
        else:
            words("Nothing here yet." if status is None else "Nothing matches.")
    raise click.exceptions.Exit(code)


def _to_look_at(parts: Parts, reader: Reader, server: str | None) -> list[TaskKey]:
    """Return the active tasks, and the lost ones: a server may know them again.

    A call of unknown outcome can't be looked at, and what was lost with its server is not asked for.
    """
    rows = reader.list_rows(server=server)
    lost = [r.key for r in rows if r.state.tracking == "lost" and r.kind == "task"]
    entries = parts.entries() if lost else {}
    active = [r.key for r in rows if r.state.tracking == "active"]
    return [*active, *(key for key in lost if key.server in entries)]


def _is_known(parts: Parts, reader: Reader, server: str) -> bool:
    return server in parts.entries() or bool(reader.list_rows(server=server))


async def _refresh(parts: Parts, keys: Sequence[TaskKey]) -> Exit:
    """Look at each task once; returns the code of the first failure.

    What can't be seen keeps what is stored, with a warning; a server that can't be used is tried and told of
    once, not for each of its tasks.
    """
    from app.engine.commands import EngineError

    code = Exit.DONE
    away: set[str] = set()
    async with contextlib.AsyncExitStack() as stack:
        engine = await stack.enter_async_context(parts.engine()) if keys else None
        for key in keys:
            if engine is None or key.server in away:
                continue
            try:
                await engine.refresh(key)
            except EngineError as error:
                code = code or FAILURES[error.failure]
                words(f"warning: {inert_line(error.message)}")
                if error.failure in ("unreachable", "sign-in", "unknown-server"):
                    away.add(key.server)
    return code


@click.command()
@click.argument("task")
@refresh_option
@json_option
@click.pass_obj
def show(parts: Parts, task: str, refresh: bool, as_json: bool) -> None:
    """Show one task: its questions, its result, what happened to it."""
    code: int = Exit.DONE
    with parts.reader() as reader:
        key = resolve(reader, task)
        if refresh:
            code = run_async(_refresh(parts, [key]))
        print_task(parts, reader, key, as_json=as_json)
    raise click.exceptions.Exit(code)


def print_task(parts: Parts, reader: Reader, key: TaskKey, *, as_json: bool) -> None:
    """Print one task, whole."""
    from app.cli.shapes import parsed, task_shape, to_json

    record, questions = load(reader, key), reader.questions(key)
    if as_json:
        json_line(to_json(task_shape(record, questions, reader.events(key))))
        return
    lines = task_lines(record, questions, parts.now(), parts.asker(record.key.server))
    if record.state.result_json is not None:
        lines += ["", "result", *result_lines(parsed(record.state.result_json))]
    if record.state.error_json is not None:
        lines += ["", f"error     {readable_json(record.state.error_json)}"]
    if events := reader.events(key, limit=HISTORY):
        lines += ["", "history", *history_lines(events)]
    data("\n".join(lines))


@click.command()
@click.argument("task")
@json_option
@click.pass_obj
def cancel(parts: Parts, task: str, as_json: bool) -> None:
    """Ask the server to cancel a task; give up a call that has no task yet.

    Cancelling is cooperative: the task may still complete.
    """
    with parts.reader() as reader:
        key = resolve(reader, task)

        async def work() -> str:
            async with parts.engine() as engine:
                return await engine.cancel(key)

        words(run_async(work()))
        if as_json:
            from app.cli.shapes import row_shape, to_json

            record = load(reader, key)
            json_line(to_json(row_shape(record, open_keys(reader, record))))


@click.command()
@click.argument("task")
@click.option("--undo", is_flag=True, help="Bring it back instead.")
@click.pass_obj
def archive(parts: Parts, task: str, undo: bool) -> None:
    """Put a task away; it comes back when something new happens."""
    with parts.reader() as reader:
        key = resolve(reader, task)

        async def work() -> None:
            async with parts.engine() as engine:
                await (engine.unarchive(key) if undo else engine.archive(key))

        run_async(work())
        words(f"{inert_line(str(key))} {'is back' if undo else 'archived'}.")


@click.command()
@click.argument("task")
@click.pass_obj
def forget(parts: Parts, task: str) -> None:
    """Delete our record of a task; its server is told nothing."""
    with parts.reader() as reader:
        key = resolve(reader, task)

        async def work() -> None:
            async with parts.engine() as engine:
                await engine.forget(key)

        run_async(work())
        words(f"{inert_line(str(key))} forgotten; its server was told nothing.")


@click.command()
@json_option
@click.pass_obj
def locate(parts: Parts, as_json: bool) -> None:
    """Say where things are kept."""
    paths = parts.paths
    places = {
        "config": paths.config,
        "data": paths.data,
        "state": paths.state,
        "serversFile": paths.servers_file,
        "database": paths.database,
        "log": paths.log,
        "demo": paths.demo,
    }
    if as_json:
        from app.cli.shapes import to_json

        json_line(to_json({name: str(path) for name, path in places.items()}))
        return
    names = {"serversFile": "servers file", "demo": "demo service"}
    data("\n".join(f"{names.get(name, name):<14}{path}" for name, path in places.items()))
