"""The real ``taskinbox`` executable, in an installation of its own, as a person's shell starts it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 60.0
"""Seconds until a command that does not end counts as hung."""


class Program:
    """``taskinbox`` with everything it keeps under *home*."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.executable = str(Path(sys.executable).with_name("taskinbox"))
        # Neither this project's folder nor what the tests import helps the installed program along.
        self.environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "NO_COLOR")}
        self.environment["TASKINBOX_HOME"] = str(home)

    def run(
        self, *argv: str, code: int | None = 0, stdin: str = "", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run one command to its end and hold it to its exit code (``None``: any)."""
        done = subprocess.run(
            [self.executable, *argv],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env={**self.environment, **(env or {})},
            cwd=self.home.parent,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert code is None or done.returncode == code, (argv, done.returncode, done.stdout, done.stderr)
        return done

    def json(self, *argv: str, code: int = 0, stdin: str = "") -> Any:
        """Run one command with ``--json`` and return what it printed."""
        return json.loads(self.run(*argv, "--json", code=code, stdin=stdin).stdout)

    @contextmanager
    def start(self, *argv: str) -> Iterator[subprocess.Popen[str]]:
        """Start a command that goes on by itself; it is killed with the block where it hasn't ended."""
        process = subprocess.Popen(
            [self.executable, *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            cwd=self.home.parent,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def command(self, *argv: str) -> Sequence[str]:
        """Return the command line, for a terminal."""
        return [self.executable, *argv]


async def run(program: Program, *argv: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    """Run the program beside a server of this process."""
    return await asyncio.to_thread(program.run, *argv, code=code)


async def tracking(folder: Path, *tasks: str, **servers: str) -> Program:
    """Return an installation in *folder* with *servers* (name and URL) and *tasks* of the first of them."""
    program = Program(folder)
    for name, url in servers.items():
        await run(program, "servers", "add", name, url)
    for task in tasks:
        await run(program, "add", next(iter(servers)), task)
    return program
