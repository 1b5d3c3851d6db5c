"""``servers`` and ``tools``."""

from __future__ import annotations

import click

from app.cli.exits import usage
from app.cli.output import data, json_line, json_lines, table, words
from app.cli.parts import Parts, run_async
from app.cli.tasks import json_option
from app.engine.commands import ServerReport, ToolListing
from app.text import inert_line


@click.group()
def servers() -> None:
    """Add, list, test and remove servers."""


@servers.command()
@click.argument("name")
@click.argument("address", nargs=-1, required=True, metavar="URL | -- COMMAND ARG…")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="Send this header; ${VAR} in it is read from the environment at each connection. Repeatable.",
)
@click.option("--force", is_flag=True, help="Replace another entry of that name.")
@json_option
@click.pass_obj
def add(
    parts: Parts, name: str, address: tuple[str, ...], headers: tuple[str, ...], force: bool, as_json: bool
) -> None:
    """Save a server under NAME; nobody is contacted."""
    from app.config import add_server

    url = address[0]
    if len(address) > 1 or "://" not in url:
        raise usage(
            "Servers that are started with a command are not supported yet; "
            "give the URL of a Streamable HTTP server, beginning with http:// or https://."
        )
    given = dict(_header(text) for text in headers)
    old = parts.entries().get(name)
    is_there = old is not None and old.problem is None and (old.url, dict(old.headers)) == (url, given)
    if old is not None and not is_there and not force:
        other = inert_line(old.url) if old.url is not None else "an entry without a URL"
        differs = " with other headers" if old.url == url else ""
        raise usage(f"Server {name} is there already: {other}{differs}. --force replaces it.")
    if not is_there:
        for warning in add_server(parts.paths.servers_file, name, url, given):
            words(f"warning: {warning}")
    if as_json:
        from app.cli.shapes import to_json

        json_line(to_json({"name": name, "url": url, "headers": sorted(given)}))
    verb = "is already there" if is_there else "added" if old is None else "replaced"
    words(f"Server {name} {verb}; `taskinbox servers test {name}` contacts it.")


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise usage("--header: write it as 'Name: value'.")  # not repeated: it may hold a secret
    return name.strip(), value.strip()


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

        json_lines([server_shape(e.name, e.url, e.problem, seen.get(e.name)) for e in entries.values()])
    elif entries:
        rows = []
        for entry in entries.values():
            record = seen.get(entry.name)
            state = record.state if record else "unknown"
            about = entry.problem or (record.message if record and record.state != "ok" else None) or ""
            rows.append((entry.name, "unusable" if entry.problem else state, entry.url or "-", about))
        table(("NAME", "STATE", "URL", "ABOUT"), rows)
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
    """Contact a server and say what it is."""

    async def work() -> ServerReport:
        async with parts.engine() as engine:
            return await engine.test_server(name)

    report = run_async(work())
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
