"""The command line. Importing it loads neither the screen nor the network parts; commands bring their own."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from app.cli.parts import Parts

__all__ = ["Parts", "main"]


def main(argv: Sequence[str] | None = None, parts: Parts | None = None) -> int:
    """Run one command; returns its exit code (`app.cli.exits.Exit`)."""
    from app.cli.root import run

    return int(run(list(sys.argv[1:] if argv is None else argv), parts))
