"""Opening the inbox: the only place that brings in the screen."""

from __future__ import annotations

import sys

from app.cli.exits import usage
from app.cli.output import is_terminal
from app.cli.parts import Parts


def need_terminal(command: str) -> None:
    """Raise `CommandError` (usage) unless a person sits at both ends of this program."""
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise usage(
            f"`{command}` opens the inbox, which needs a terminal; "
            "`taskinbox list`, `show` and `answer` work anywhere."
        )


def open_inbox(parts: Parts, command: str = "taskinbox") -> int:
    """Open the inbox until it is left; returns its exit code."""
    need_terminal(command)
    from app.tui.app import run
    from app.wiring import engine_factory, open_reader, servers_file

    reader = open_reader(parts.paths)
    try:
        return run(reader, engine_factory(parts.paths, parts.environ), servers_file(parts.paths))
    finally:
        reader.close()
