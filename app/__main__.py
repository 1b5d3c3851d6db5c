"""``taskinbox`` and ``python -m app``."""

from __future__ import annotations

import sys

from app.cli import main as command_line


def main() -> None:
    """Run the command line and end with its exit code."""
    try:
        code = command_line()
    except KeyboardInterrupt:  # while a command's own modules were loaded
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
