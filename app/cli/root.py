"""The root command, and the frame around all commands: errors become one line and an exit code."""

from __future__ import annotations

import contextlib
import os
import sys
from importlib import import_module
from typing import Any, Final

import click

from app import __version__
from app.cli.exits import EXPECTED, CommandError, Exit, explain
from app.cli.output import is_terminal, prepare_streams, words
from app.cli.parts import Parts
from app.text import inert_line

_COMMANDS: Final = {
    "add": "calling:add",
    "answer": "answering:answer",
    "archive": "tasks:archive",
    "call": "calling:call",
    "cancel": "tasks:cancel",
    "demo": "demo:demo",
    "demo-server": "demo:demo_server",
    "doctor": "doctor:doctor",
    "export": "export:export",
    "forget": "tasks:forget",
    "list": "tasks:list_",
    "locate": "tasks:locate",
    "servers": "serving:servers",
    "show": "tasks:show",
    "tools": "serving:tools",
    "watch": "watching:watch",
}
"""Each command's module in this package, and its name there. It is loaded when it is called: the inbox, which
calls none, opens sooner."""

_CLOSE: Final = 0.7
"""How alike, of 1, a name must be to be suggested: ``lst`` is like ``list``."""


class _Frame(click.Group):
    """Loads commands when they are called, maps every expected failure to its exit code, and leaves bugs to
    Python."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f"app.cli.{module}"), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise click.exceptions.Exit(_drop_stdout()) from None
        except KeyboardInterrupt:  # click's own way prints an empty line where nobody typed ^C
            if is_terminal(sys.stderr):
                words("")
            raise click.exceptions.Exit(Exit.INTERRUPTED) from None
        except EXPECTED as error:
            raise explain(error) from None


@click.group(
    cls=_Frame, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name="taskinbox", message="%(prog)s %(version)s")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Every question that any agent's job is waiting on, in one queue in your terminal.

    Without a command: open the inbox. TASK is a task id, a call id, a unique prefix of one, or SERVER/ID.

    Exit codes: 0 done; 1 the task failed, was cancelled or lost, or the server refused; 2 usage or invalid
    answer; 3 no such server, task or question; 4 unreachable; 5 sign-in needed; 6 input required;
    7 timed out; 130 interrupted.
    """
    if ctx.invoked_subcommand is None:
        from app.cli.inbox import open_inbox

        ctx.exit(open_inbox(ctx.obj))


def run(argv: list[str], parts: Parts | None = None) -> int:
    """Run one command; returns its exit code."""
    prepare_streams()
    if any("\ud800" <= char <= "\udfff" for text in argv for char in text):
        words("Error: an argument is not valid text in this terminal's encoding (UTF-8).")
        return Exit.USAGE
    try:
        code = root.main(args=argv, prog_name="taskinbox", standalone_mode=False, obj=parts or Parts())
        if sys.stdout is not None:
            sys.stdout.flush()
        return code if isinstance(code, int) else Exit.DONE
    except CommandError as error:
        return _tell(error)
    except click.exceptions.NoArgsIsHelpError as error:
        with contextlib.suppress(OSError):
            error.show()
        return error.exit_code
    except click.ClickException as error:
        return _tell(CommandError(Exit(error.exit_code), _usage_words(error)))
    except (click.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return _drop_stdout()


def _usage_words(error: click.ClickException) -> str:
    """Return what was not said rightly in one line, and where to read how to say it."""
    said = " ".join(error.format_message().split())
    if isinstance(error, click.exceptions.NoSuchCommand | click.exceptions.NoSuchOption):
        from difflib import SequenceMatcher

        name = error.option_name if isinstance(error, click.exceptions.NoSuchOption) else error.command_name
        said = " ".join(error.message.split())
        known = error.possibilities or (() if isinstance(error, click.exceptions.NoSuchOption) else _COMMANDS)
        near = " or ".join(
            other
            for other in known
            if SequenceMatcher(None, name, other).ratio() >= _CLOSE  # click's own measure takes in too much
        )
        said = f"{said.rstrip('.')}; did you mean {near}?" if near else said
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = context.command_path if context is not None else "taskinbox"
    return f"{inert_line(said)} See {command} --help"


def _tell(error: CommandError) -> int:
    with contextlib.suppress(OSError):  # nobody hears it; the exit code still says it
        words(error.message if error.bare else f"Error: {error.message}")
    return error.code


def _drop_stdout() -> int:
    """Point stdout nowhere, so that Python's own flush at the end doesn't complain of the closed pipe."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return Exit.BROKEN_PIPE
