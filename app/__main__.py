"""``taskinbox`` and ``python -m app``."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Final

from app.cli import main as command_line

_ENDINGS: Final = ("SIGTERM", "SIGHUP")


def main() -> None:
    """Run the command line and end with its exit code.

    Being asked to end, and a terminal that is closed, are taken like Ctrl+C: servers that this program has
    started are in sessions of their own, and nobody else would end them.
    """
    ended_by: list[int] = []

    def interrupt(number: int, _frame: FrameType | None) -> None:
        ended_by.append(number)
        signal.raise_signal(signal.SIGINT)

    for name in _ENDINGS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:  # nohup stays nohup
            signal.signal(number, interrupt)
    try:
        code = command_line()
    except KeyboardInterrupt:  # while a command's own modules were loaded
        code = 130
    sys.exit(128 + ended_by[0] if ended_by else code)


if __name__ == "__main__":
    main()
