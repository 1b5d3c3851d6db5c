"""``taskinbox`` and ``python -m app``."""

from __future__ import annotations

import sys

from app.cli import main as command_line


def main() -> None:
    """Run the command line and end with its exit code."""
    sys.exit(command_line())


if __name__ == "__main__":
    main()
