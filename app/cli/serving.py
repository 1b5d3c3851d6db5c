"""``servers`` and ``tools``."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Final

import click

from app.cli.allowing import allow
from app.cli.exits import usage
from app.cli.output import data, json_line, json_lines, table, words
from app.cli.parts import Parts, run_async
from app.cli.tasks import json_option
from app.config import NONE, ServerEntry
from app.engine.commands import EngineError, ServerReport, ToolListing
from app.text import inert_line

_COMMAND: Final = "taskinbox.is-command"


@click.group()
def servers() -> None:
    """Add, list, test and remove servers; say what each may ask."""


class _Add(click.Command):
    """Knows whether ``--`` was given, which click itself forgets: behind it stands a command, not a URL."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_COMMAND] = "--" in args
        return super().parse_args(ctx, args)


@servers.command(cls=_Add)
@click.argument("name")
@click.argument("address", nargs=-1, required=True, metavar="URL | -- COMMAND ARG…")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="Send this header; ${VAR} in it is read from the environment at each connection. Repeatable.",
)
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME=VALUE",
    help="Start the command with this variable; ${VAR} in it is read from our environment. Repeatable.",
)
@click.option("--cwd", metavar="DIR", help="Start the command in this folder.")
@click.option("--force", is_flag=True, help="Replace another entry of that name.")
@json_option
@click.pass_context
def add(
    ctx: click.Context,
    name: str,
    address: tuple[str, ...],
    headers: tuple[str, ...],
    variables: tuple[str, ...],
    cwd: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Save a server under NAME: the URL of one that runs, or, behind --, a command that starts it. Nobody is
    contacted, and nothing is started."""
    from app.config import add_command, add_server

    parts: Parts = ctx.obj
    new = _entry(name, address, headers, variables, cwd, is_command=ctx.meta[_COMMAND])
    old = parts.entries().get(name)
    old = None if old is None else replace(old, abilities=NONE)
    if old is not None and old != new and not force:
        raise usage(_is_taken(old, new))
    if old != new:
        file = parts.paths.servers_file
        if new.command is None:
            warnings = add_server(file, name, new.url or "", new.headers)
        else:
            warnings = add_command(file, name, new.command, new.args, new.env, new.cwd)
        for warning in (*warnings, *_relative(new)):
            words(f"warning: {warning}")
    if as_json:
        from app.cli.shapes import entry_shape, to_json

        json_line(to_json({"name": name, **entry_shape(new)}))
    verb = "is already there" if old == new else "added" if old is None else "replaced"
    contacts = "contacts" if new.command is None else "starts"
    words(f"Server {name} {verb}; `taskinbox servers test {name}` {contacts} it.")


def _entry(
    name: str,
    address: tuple[str, ...],
    headers: tuple[str, ...],
    variables: tuple[str, ...],
    cwd: str | None,
    *,
    is_command: bool,
) -> ServerEntry:
    """Return what was said as an entry; raises `CommandError`, usage, for what fits no kind of server."""
    if not is_command or (len(address) == 1 and address[0].lower().startswith(("http://", "https://"))):
        if len(address) > 1 or "://" not in address[0]:
            raise usage(
                "A URL begins with http:// or https://; a command that starts a server stands behind --, "
                f"as in `taskinbox servers add {inert_line(name)} -- npx -y some-server`."
            )
        if variables or cwd is not None:
            raise usage("--env and --cwd are for servers that are started with a command.")
        return ServerEntry(name, address[0], dict(_header(text) for text in headers))
    if headers:
        raise usage("--header is for servers that have a URL; a command gets what it needs with --env.")
    command, *args = address
    folder = None if cwd is None else cwd if "${" in cwd else os.path.abspath(cwd)
    if os.sep in command and "${" not in command:
        command = os.path.abspath(os.path.join(folder or "", os.path.expanduser(command)))
    env = dict(_variable(text) for text in variables)
    return ServerEntry(name, command=command, args=tuple(args), env=env, cwd=folder)


def _is_taken(old: ServerEntry, new: ServerEntry) -> str:
    other = inert_line(old.target) if old.target is not None else "an entry without a URL"
    what = "headers" if old.command is None else "variables or another folder"
    differs = f" with other {what}" if old.target is not None and old.target == new.target else ""
    return f"Server {old.name} is there already: {other}{differs}. --force replaces it."


def _relative(entry: ServerEntry) -> list[str]:
    """Return a warning for each argument that names a file only as seen from the folder we are in now."""
    if entry.cwd is not None:
        return []
    return [
        f"{inert_line(arg)} is found only by programs that run in this folder: give its full path, or --cwd."
        for arg in entry.args
        if not os.path.isabs(arg) and os.path.isfile(arg)
    ]


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise usage("--env: write it as NAME=VALUE.")  # not repeated: it may hold a secret
    return name, value


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise usage("--header: write it as 'Name: value'.")  # not repeated: it may hold a secret
    return name.strip(), value.strip()


servers.add_command(allow)


@servers.command("list")
@json_option
@click.pass_obj
def list_servers(parts: Parts, as_json: bool) -> None:
    """List the servers, with what was last seen of each; nobody is contacted."""
    entries = parts.entries()
    with parts.reader() as reader:
        seen = {record.name: record for record in reader.servers()}
    if as_json:
        from app.cli.shapes import server_shape

        json_lines([server_shape(entry, seen.get(entry.name)) for entry in entries.values()])
    elif entries:
        rows = []
        for entry in entries.values():
            record = seen.get(entry.name)
            state = record.state if record else "unknown"
            about = entry.problem or (record.message if record and record.state != "ok" else None) or ""
            rows.append((entry.name, "unusable" if entry.problem else state, entry.target or "-", about))
        table(("NAME", "STATE", "URL OR COMMAND", "ABOUT"), rows)
    else:
        words("No servers yet: `taskinbox servers add NAME URL` adds one, `taskinbox demo` brings its own.")


@servers.command()
@click.argument("name")
@click.pass_obj
def remove(parts: Parts, name: str) -> None:
    """Remove a server; its tasks stay here, no longer watched."""
    from app.config import remove_server

    remove_server(parts.paths.servers_file, name)
    words(f"Server {inert_line(name)} removed. Its tasks stay here, no longer watched.")


@servers.command()
@click.argument("name")
@json_option
@click.pass_obj
def test(parts: Parts, name: str, as_json: bool) -> None:
    """Contact a server, or start it, and say what it is."""

    async def work() -> ServerReport:
        async with parts.engine() as engine:
            return await engine.test_server(name)

    try:
        report = run_async(work())
    except EngineError as error:
        for line in error.stderr:
            words(f"stderr| {inert_line(line)}")
        raise
    for warning in report.warnings:
        words(f"warning: {inert_line(warning)}")
    if as_json:
        from app.cli.shapes import report_shape, to_json

        json_line(to_json(report_shape(report)))
        return
    pairs = [
        ("server", report.name),
        ("is", report.title),
        ("versions", ", ".join(report.versions)),
        ("tasks", "yes" if report.has_tasks else "no: calls are answered at once, nothing is tracked"),
        ("tools", str(report.tools)),
    ]
    lines = [f"{label:<10}{inert_line(text)}" for label, text in pairs]
    if report.instructions:
        lines += ["", *(f"| {line}" for line in report.instructions.splitlines())]
    data("\n".join(lines))


@click.command()
@click.argument("server")
@json_option
@click.pass_obj
def tools(parts: Parts, server: str, as_json: bool) -> None:
    """List a server's tools."""

    async def work() -> ToolListing:
        async with parts.engine() as engine:
            return await engine.tools(server)

    listing = run_async(work())
    for warning in listing.warnings:
        words(f"warning: {inert_line(warning)}")
    if as_json:
        from app.cli.shapes import tool_shape

        json_lines([tool_shape(tool) for tool in listing.tools])
    elif listing.tools:
        rows = [(t.name, _arguments(t.input_schema), _about(t.title, t.description)) for t in listing.tools]
        table(("TOOL", "ARGUMENTS", "ABOUT"), rows)
    else:
        words(f"Server {inert_line(server)} has no tools.")


def _arguments(schema: object) -> str:
    """Return the names of a tool's arguments, the required ones with a ``*``."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or not properties:
        return "-"
    required = schema.get("required") if isinstance(schema, dict) else None
    needed = required if isinstance(required, list) else []
    names = [f"{name}*" if name in needed else str(name) for name in list(properties)[:8]]
    more = len(properties) - len(names)
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _about(title: str | None, description: str | None) -> str:
    first = (description or "").strip().split("\n", 1)[0]
    return ": ".join(part for part in (title, first) if part)
