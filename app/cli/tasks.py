"""``list``, ``show``, ``cancel``, ``archive``, ``forget``, ``locate``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

import click

from app.cli.exits import CommandError, Exit
from app.cli.output import (
    data,
    history_lines,
    is_terminal,
    json_line,
    json_lines,
    list_rows,
    result_lines,
    short_ids,
    task_lines,
    words,
)
from app.cli.parts import Parts, load, resolve, run_async
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
    with parts.reader() as reader:
        if refresh:
            active = [r.key for r in reader.list_rows(server=server) if r.state.tracking == "active"]
            run_async(_refresh(parts, active))
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


def _is_known(parts: Parts, reader: Reader, server: str) -> bool:
    return server in parts.entries() or bool(reader.list_rows(server=server))


async def _refresh(parts: Parts, keys: Sequence[TaskKey]) -> None:
    """Look at each task once; one that can't be seen keeps what is stored, and the first reason is raised."""
    from app.engine.commands import EngineError

    if not keys:
        return
    failures: list[EngineError] = []
    async with parts.engine() as engine:
        for key in keys:
            try:
                await engine.refresh(key)
            except EngineError as error:
                failures.append(error)
                words(f"warning: {inert_line(str(key))}: {inert_line(error.message)}")
    if failures and len(failures) == len(keys):
        raise failures[0]


@click.command()
@click.argument("task")
@refresh_option
@json_option
@click.pass_obj
def show(parts: Parts, task: str, refresh: bool, as_json: bool) -> None:
    """Show one task: its questions, its result, what happened to it."""
    with parts.reader() as reader:
        key = resolve(reader, task)
        if refresh:
            run_async(_refresh(parts, [key]))
        print_task(parts, reader, key, as_json=as_json)


def print_task(parts: Parts, reader: Reader, key: TaskKey, *, as_json: bool) -> None:
    """Print one task, whole."""
    from app.cli.shapes import parsed, plain_json, task_shape, to_json

    record, questions = load(reader, key), reader.questions(key)
    if as_json:
        json_line(to_json(task_shape(record, questions, reader.events(key))))
        return
    lines = task_lines(record, questions, parts.now())
    if record.state.result_json is not None:
        lines += ["", "result", *result_lines(parsed(record.state.result_json))]
    if record.state.error_json is not None:
        lines += ["", f"error     {plain_json(record.state.error_json)}"]
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
