"""``servers allow``: what one server may ask beside forms and web pages."""

from __future__ import annotations

import shlex
from dataclasses import replace

import click

from app.cli.exits import usage
from app.cli.output import data, json_line, words
from app.cli.parts import Parts
from app.cli.tasks import json_option
from app.config import Abilities, folder, set_abilities
from app.text import inert_line


@click.command()
@click.argument("name")
@click.option(
    "--sampling/--no-sampling",
    default=None,
    help="Let it ask for what a model would say: you write, or see, every reply.",
)
@click.option(
    "--draft-with",
    metavar="COMMAND",
    help="A command that drafts such a reply when you ask for one: the request on its stdin, no shell. "
    'Empty ("") for none.',
)
@click.option("--root", "roots", multiple=True, metavar="DIR", help="Let it know of this folder. Repeatable.")
@click.option("--no-roots", is_flag=True, help="Let it know of no folder (of none but those given with it).")
@json_option
@click.pass_obj
def allow(
    parts: Parts,
    name: str,
    sampling: bool | None,
    draft_with: str | None,
    roots: tuple[str, ...],
    no_roots: bool,
    as_json: bool,
) -> None:
    """Say what a server may ask beside forms and web pages; alone, show it. Nothing is on by itself.

    Sampling and roots are deprecated by the protocol, and declared to a server only when they are on for it.
    """
    command = _command(draft_with)
    folders = tuple(folder(path) for path in roots)
    before: list[Abilities] = []

    def change(old: Abilities) -> Abilities:
        before.append(old)
        return replace(
            old,
            sampling=old.sampling if sampling is None else sampling,
            sampling_command=old.sampling_command if command is None else command,
            roots=tuple(dict.fromkeys((*(() if no_roots else old.roots), *folders))),
        )

    now = set_abilities(parts.paths.servers_file, name, change)
    if as_json:
        from app.cli.shapes import abilities_shape, to_json

        json_line(to_json({"name": name, **abilities_shape(now)}))
    else:
        data("\n".join(_lines(now)))
    if before[0].declared != now.declared and parts.entries()[name].command is not None:
        words(f"An inbox that is open now starts {inert_line(name)} anew, to tell it.")


def _command(text: str | None) -> tuple[str, ...] | None:
    try:
        return None if text is None else tuple(shlex.split(text))
    except ValueError as error:
        raise usage(f"--draft-with can't be read as a command: {error}.") from None


def _lines(now: Abilities) -> list[str]:
    drafts = shlex.join(now.sampling_command) if now.sampling_command else "no command"
    lines = [f"sampling  {'on' if now.sampling else 'off'}"]
    if now.sampling or now.sampling_command:
        lines.append(f"drafts    {inert_line(drafts)}")
    lines += [f"root      {inert_line(root)}" for root in now.roots]
    return lines if now.roots else [*lines, "roots     none"]
