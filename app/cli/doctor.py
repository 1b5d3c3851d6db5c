"""``doctor``: what this installation is made of, and what is wrong with it."""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import click

from app import __version__
from app.cli.exits import Exit, explain
from app.cli.output import data, json_line, words
from app.cli.parts import Parts, run_async
from app.cli.shapes import entry_shape, server_shape, to_json
from app.cli.tasks import json_option
from app.config import ConfigError, ServerEntry, connection
from app.engine.commands import EngineError, ServerReport
from app.engine.stderr import last_kept
from app.text import inert_line, plural
from storage.errors import StorageError
from storage.records import ServerRecord

_PATIENCE: Final = 20.0
"""Seconds for all of ``--contact``: the servers are contacted at the same time."""


@click.command()
@click.option("--contact", is_flag=True, help="Contact every server, too, or start it.")
@json_option
@click.pass_context
def doctor(ctx: click.Context, contact: bool, as_json: bool) -> None:
    """Check this installation and say what is wrong: versions, places, the store, the servers file, and what
    was last seen of each server.

    Nobody is contacted unless you say so. Ends with 0 where all is well, else with 1.
    """
    parts: Parts = ctx.obj
    problems: list[str] = []
    store = _store(parts, problems)
    entries = _entries(parts, problems)
    tested = _contact(parts, entries, problems) if contact and store["opens"] else {}
    servers = _servers(parts, entries, tested, problems, knows=store["opens"])
    found = {
        "versions": _versions(),
        "places": {
            "serversFile": str(parts.paths.servers_file),
            "database": str(parts.paths.database),
            "log": str(parts.paths.log),
            "stderr": str(parts.paths.stderr),
        },
        "store": store,
        "servers": servers,
        "problems": problems,
    }
    if as_json:
        json_line(to_json(found))
    else:
        data("\n".join(_lines(found)))
        for problem in problems:
            words(f"problem: {inert_line(problem, 1000)}")
        words(plural(len(problems), "problem") + "." if problems else "All is well.")
    ctx.exit(Exit.FAILED if problems else Exit.DONE)


def _versions() -> dict[str, str]:
    try:
        textual = version("textual")
    except PackageNotFoundError:
        textual = "missing"
    return {
        "taskinbox": __version__,
        "python": platform.python_version(),
        "textual": textual,
        "sqlite": sqlite3.sqlite_version,
        "system": platform.platform(terse=True),
    }


def _store(parts: Parts, problems: list[str]) -> dict[str, Any]:
    from app.wiring import open_reader

    try:
        reader = open_reader(parts.paths)
    except (StorageError, OSError) as error:
        problems.append(explain(error).message)
        return {"opens": False, "version": None, "bytes": None, "tasks": None}
    try:
        tasks = sum(reader.counts().values())
        size = parts.paths.database.stat().st_size
        return {"opens": True, "version": reader.version(), "bytes": size, "tasks": tasks}
    finally:
        reader.close()


def _entries(parts: Parts, problems: list[str]) -> dict[str, ServerEntry]:
    try:
        entries = parts.entries()
    except ConfigError as error:
        problems.append(str(error))
        return {}
    for name in entries:
        try:
            connection(parts.paths.servers_file, name, parts.environ)
        except ConfigError as error:
            problems.append(str(error))
    return entries


def _contact(
    parts: Parts, entries: Mapping[str, ServerEntry], problems: list[str]
) -> dict[str, ServerReport | EngineError]:
    """Return what each server that can be tried said, or how it failed."""
    import asyncio

    async def one(engine: Any, name: str) -> ServerReport | EngineError:
        try:
            async with asyncio.timeout(_PATIENCE):
                report: ServerReport = await engine.test_server(name)
                return report
        except EngineError as error:
            return error
        except TimeoutError:
            return EngineError("unreachable", f"Server {name} did not answer within {_PATIENCE:g} s.")

    async def work() -> dict[str, ServerReport | EngineError]:
        async with parts.engine() as engine:
            replies = await asyncio.gather(*(one(engine, name) for name in entries))
        return dict(zip(entries, replies, strict=True))

    found = run_async(work())
    for reply in found.values():
        if isinstance(reply, EngineError) and reply.failure != "invalid":  # that has been said already
            problems.append(reply.message)
    return found


def _servers(
    parts: Parts,
    entries: Mapping[str, ServerEntry],
    tested: Mapping[str, ServerReport | EngineError],
    problems: list[str],
    *,
    knows: bool,
) -> list[dict[str, Any]]:
    seen: dict[str, ServerRecord] = {}
    if knows:
        with parts.reader() as reader:
            seen = {record.name: record for record in reader.servers()}
    found = []
    for name, entry in entries.items():
        record, reply = seen.get(name), tested.get(name)
        stderr = reply.stderr if isinstance(reply, EngineError) else ()
        if not stderr and entry.command is not None:
            stderr = last_kept(parts.paths.stderr, name)
        ails = reply is None and record is not None and record.state not in ("ok", "unknown")
        if ails and record is not None and record.message:
            problems.append(f"Server {name}: {record.message}")
        found.append(
            {
                **server_shape(entry, record),
                **entry_shape(entry),
                "stderr": list(stderr),
                "warnings": list(reply.warnings) if isinstance(reply, ServerReport) else [],
            }
        )
    return found


def _lines(found: Mapping[str, Any]) -> list[str]:
    versions, store = found["versions"], found["store"]
    lines = [f"{name:<14}{text}" for name, text in versions.items()]
    names = {"serversFile": "servers file"}
    lines += [f"{names.get(name, name):<14}{path}" for name, path in found["places"].items()]
    if store["opens"]:
        size = f"{store['bytes'] / 1024:,.0f} KiB"
        lines.append(f"{'store':<14}version {store['version']}, {size}, {plural(store['tasks'], 'task')}")
    else:
        lines.append(f"{'store':<14}can't be opened")
    for server in found["servers"]:
        state = "unusable" if server["problem"] else server["state"]
        since = f" since {server['since']}" if server["since"] and not server["problem"] else ""
        lines.append(f"{'server':<14}{inert_line(server['name'])}: {state}{since}")
        if server["message"]:
            lines.append(f"{'':<14}{inert_line(server['message'], 400)}")
        lines += [f"{'':<14}warning: {inert_line(text, 400)}" for text in server["warnings"]]
        lines += [f"{'':<14}stderr| {inert_line(text, 400)}" for text in server["stderr"]]
    return lines
