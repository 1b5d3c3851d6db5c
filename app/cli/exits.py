"""What a command can end with: the exit codes, and every expected failure in one line."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from app.config import ConfigError, UnknownServer
from app.engine.commands import EngineError, Failure
from storage.errors import QuestionClosed, StorageError, StoreUnreadable, UnknownQuestion, UnknownTask


class Exit(IntEnum):
    """The exit codes of ``taskinbox``."""

    DONE = 0
    FAILED = 1
    """The task failed, was cancelled or lost, completed with ``isError``, or the server refused."""
    USAGE = 2
    """Wrong usage, or an answer that is not valid."""
    UNKNOWN = 3
    """No such server, task or question."""
    UNREACHABLE = 4
    SIGN_IN = 5
    INPUT_REQUIRED = 6
    TIMED_OUT = 7
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    """Whoever read our output stopped reading: as a shell reports SIGPIPE."""


FAILURES: Final[dict[Failure, Exit]] = {
    "unreachable": Exit.UNREACHABLE,
    "refused": Exit.FAILED,
    "faulty": Exit.FAILED,
    "sign-in": Exit.SIGN_IN,
    "unknown-server": Exit.UNKNOWN,
    "unknown-task": Exit.UNKNOWN,
    "invalid": Exit.USAGE,
    "closed": Exit.UNKNOWN,
}


class CommandError(Exception):
    """A command ends here: with words for a person and an exit code.

    *bare* words stand for themselves, as a line per field does; others are printed after ``Error:``.
    """

    def __init__(self, code: Exit, message: str, *, bare: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.bare = bare


def usage(message: str) -> CommandError:
    """Return the error for a command that was not said rightly."""
    return CommandError(Exit.USAGE, message)


EXPECTED: Final = (CommandError, EngineError, ConfigError, StorageError, OSError)
"""All that a user, a server or the machine can cause; anything else is a bug and shows as one."""


def explain(error: CommandError | EngineError | ConfigError | StorageError | OSError) -> CommandError:
    """Return what a person is told of *error*."""
    if isinstance(error, CommandError):
        return error
    if isinstance(error, EngineError):
        return CommandError(FAILURES[error.failure], error.message)
    if isinstance(error, UnknownServer | UnknownTask | UnknownQuestion | QuestionClosed):
        return CommandError(Exit.UNKNOWN, str(error))
    if isinstance(error, ConfigError):
        return CommandError(Exit.USAGE, str(error))
    if isinstance(error, StoreUnreadable):
        return CommandError(
            Exit.FAILED,
            f"{error}. To begin with an empty inbox, move that file away (`taskinbox locate` names it); "
            "what is in it stays in it.",
        )
    if isinstance(error, StorageError):
        return CommandError(Exit.FAILED, str(error))
    place = f"{error.filename}: " if error.filename else ""
    return CommandError(Exit.FAILED, f"{place}{error.strerror or error}")
