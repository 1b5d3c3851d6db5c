"""Answers to sampling and roots: a result of their own, from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from app.cli.exits import CommandError, Exit, usage
from app.cli.filling import field_lines, invalid
from app.cli.output import words
from app.cli.parts import json_object, read_argument
from app.config import Abilities, present
from app.text import inert, inert_line

if TYPE_CHECKING:
    from app.cli.answering import Said
    from app.forms import Filled


def result(
    mode: Literal["sampling", "roots"], params: Mapping[str, Any], said: Said, abilities: Abilities
) -> str:
    """Return the response as it is sent; raises `CommandError`, usage, with a line for each part that is
    wrong."""
    return _reply(params, said) if mode == "sampling" else _folders(said, abilities)


def _reply(params: Mapping[str, Any], said: Said) -> str:
    from app.forms import UnknownField, parse_assignments
    from app.forms.sampling import SamplingForm

    form = SamplingForm(params)
    if said.content is not None:
        return _checked(form.fill_json(_given(said.content)))
    try:
        entries = parse_assignments(form.form, list(said.fields), list(said.nulls))
    except UnknownField as unknown:
        raise CommandError(Exit.USAGE, str(unknown), bare=True) from None
    return _checked(form.fill(entries))


def _folders(said: Said, abilities: Abilities) -> str:
    from app.forms import roots

    if said.fields or said.nulls:
        raise usage("This question asks which folders the server may know of, and has no fields.")
    there = present(abilities.roots)
    if gone := [root for root in abilities.roots if root not in there]:
        words(f"warning: left out, since it can't be looked into now: {', '.join(map(inert_line, gone))}")
    if said.content is None:
        return roots.roots_json(there)
    return _checked(roots.fill_json(_given(said.content), there))


def _given(text: str) -> str:
    found = read_argument(text, "--accept").strip()
    json_object(found, "--accept")
    return found


def _checked(filled: Filled) -> str:
    for line in field_lines(filled.warnings, "warning: "):
        words(line)
    if not filled.ok:
        raise invalid(filled.errors)
    return filled.content_json


def result_lines(
    mode: Literal["sampling", "roots"], params: Mapping[str, Any], abilities: Abilities
) -> list[str]:
    """Return what is asked, the server's words marked as such, and how to answer it."""
    if mode == "roots":
        lines = ["  asks which folders it may know of; --defaults tells it of these:"]
        return [*lines, *(f"    {inert_line(root)}" for root in present(abilities.roots))]
    from app.forms.sampling import SamplingForm, blocks_of

    form = SamplingForm(params)
    lines = ["  asks for what a model would say; you can write it in its place:"]
    for who, what in blocks_of(form.sampling):
        lines.append(f"  {inert_line(who, 40)}:")
        lines += [f"  | {line}" for line in inert(what).splitlines()]
    lines += [f"  {name}: {inert_line(value)}" for name, value in form.sampling.settings]
    lines += [f"  server fault: {fault}" for fault in form.sampling.faults]
    return [
        *lines,
        "  --field text=… answers it (also: model, stopReason), or --accept JSON; --decline refuses it",
    ]
