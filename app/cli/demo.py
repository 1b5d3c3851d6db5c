"""``demo`` and ``demo-server``: the embedded task service, with and without the inbox."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from app.cli.exits import CommandError, Exit, usage
from app.cli.inbox import need_terminal, open_inbox
from app.cli.output import json_line, words
from app.cli.parts import Parts, run_async
from app.paths import private_file, private_folder
from app.text import inert_line

NAME: Final = "demo"
"""The service's name in the servers file."""

LOCK: Final = "demo.lock"
"""Locked while a demo runs, and then holding its service's URL."""

PATIENCE: Final = 30.0
"""Seconds for the service to say that it is ready; a slow machine imports for some of them."""

_READY: Final = re.compile(r"taskinbox demo service at (http://127\.0\.0\.1:\d+/mcp)\s*")
_OURS: Final = re.compile(r"http://127\.0\.0\.1:\d+/mcp")


@click.command("demo-server")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0, the default, takes a free one.")
@click.option("--data", type=click.Path(path_type=Path), metavar="DIR", help="Where its tasks are kept.")
@click.option("--tools", type=click.Choice(["demo", "conformance"]), default="demo", show_default=True)
@click.option(
    "--tokens",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help='Ask for bearer tokens: a JSON object, {"TOKEN": {"tenant": NAME, "principal": NAME}}.',
)
@click.option("--limit-polling", is_flag=True, help="Refuse looks that come sooner than the poll interval.")
@click.option("--step-seconds", type=click.FloatRange(0, 3600), hidden=True, help="How long each step takes.")
@click.option("--until-stdin-closes", is_flag=True, hidden=True, help="End with the program that started it.")
@click.pass_obj
def demo_server(
    parts: Parts,
    port: int,
    data: Path | None,
    tools: str,
    tokens: Path | None,
    limit_polling: bool,
    step_seconds: float | None,
    until_stdin_closes: bool,
) -> None:
    """Run only the embedded task service, in the foreground, on 127.0.0.1."""
    from app.demo_server.errors import ServeError
    from app.demo_server.owners import exposure
    from app.demo_server.server import STEP_SECONDS, serve

    if until_stdin_closes:
        threading.Thread(target=_end_with_stdin, daemon=True, name="stdin").start()
    # Each set of tools has its own: one would fail the tasks of the other as those of tools it has not.
    usual = parts.paths.demo if tools == "demo" else parts.paths.demo / tools
    folder = data if data is not None else usual
    private_folder(folder)
    try:
        if tokens is not None and (warning := exposure(tokens)) is not None:
            words(f"warning: {inert_line(warning)}")
        serve(
            port,
            folder,
            tools,
            lambda url: json_line(f"taskinbox demo service at {url}"),
            step_seconds=STEP_SECONDS if step_seconds is None else step_seconds,
            tokens=tokens,
            limit_polling=limit_polling,
        )
    except ServeError as error:
        raise CommandError(Exit.FAILED, str(error)) from None


def _end_with_stdin() -> None:
    """End this process when the one that started it has gone, however it went."""
    while sys.stdin.buffer.read(1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


@click.command()
@click.pass_obj
def demo(parts: Parts) -> None:
    """Start the embedded task service and open the inbox on it.

    Its tasks are kept, and go on the next time.
    """
    need_terminal("taskinbox demo")
    from app.cli.demo_seed import seed_running

    entry = parts.entries().get(NAME)
    if entry is not None and not _OURS.fullmatch(entry.url or ""):
        raise usage(
            f"{parts.paths.servers_file} has another server named {NAME} ({inert_line(entry.url or '-')}); "
            "rename it there first."
        )
    parts.paths.make()
    private_folder(parts.paths.demo)
    with _alone(parts.paths.demo) as is_alone:
        if not is_alone:
            words("Another `taskinbox demo` is running; this inbox opens on the same service.")
            _repair(parts)
            raise click.exceptions.Exit(open_inbox(parts))
        with parts.reader() as reader:
            is_new = not reader.list_rows(server=NAME)
        if is_new:
            words("Setting up the demo…")
            _seed_at_first(parts)
        with service(parts, parts.paths.demo, meanwhile="app.tui.app") as url:
            (parts.paths.demo / LOCK).write_text(url)
            if is_new:
                run_async(seed_running(parts, NAME))
            raise click.exceptions.Exit(open_inbox(parts, "taskinbox demo"))


def _repair(parts: Parts) -> None:
    """Let the servers file name the service that is running; while that still starts, it does so itself."""
    from app.config import add_server

    url = (parts.paths.demo / LOCK).read_text(errors="replace")
    entry = parts.entries().get(NAME)
    if _OURS.fullmatch(url) and (entry is None or entry.url != url):
        add_server(parts.paths.servers_file, NAME, url)


def _seed_at_first(parts: Parts) -> None:
    """Make the tasks that a first demo opens with, by a service that doesn't take its time."""
    from app.cli.demo_seed import seed_finished, seed_forgotten

    with (
        tempfile.TemporaryDirectory(dir=parts.paths.demo) as scratch,
        service(parts, Path(scratch), 0.0, meanwhile="app.engine.engine"),
    ):
        forgotten = run_async(seed_forgotten(parts, NAME))
    with service(parts, parts.paths.demo, 0.0):
        run_async(seed_finished(parts, NAME, forgotten))


@contextlib.contextmanager
def service(
    parts: Parts, folder: Path, step_seconds: float | None = None, *, meanwhile: str | None = None
) -> Iterator[str]:
    """Run the service on *folder* as a process of its own, as `NAME` in the servers file; yields its URL.

    The module *meanwhile* is loaded here while the service starts there: what comes next needs both.

    It ends with the block, and with this program if that is killed. Raises `CommandError` when it can't
    start.
    """
    from app.config import add_server

    # -P: a folder called "app" where the user happens to be is none of ours.
    command = [sys.executable, "-P", "-m", "app", "demo-server", "--until-stdin-closes"]
    command += ["--port", "0", "--data", str(folder)]
    if step_seconds is not None:
        command += ["--step-seconds", str(step_seconds)]
    log = folder / "service.log"
    private_file(log)
    with open(log, "wb") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,  # the terminal's Ctrl+C is the inbox's
            env=dict(parts.environ),
        )
    try:
        if meanwhile is not None:
            importlib.import_module(meanwhile)
        url = _ready(process, log)
        add_server(parts.paths.servers_file, NAME, url)
        yield url
    finally:
        _end(process)


def _ready(process: subprocess.Popen[bytes], log: Path) -> str:
    """Return the URL from the service's first line."""
    assert process.stdout is not None
    killer = threading.Timer(PATIENCE, process.kill)
    killer.start()
    try:
        line = process.stdout.readline().decode(errors="replace")
    finally:
        killer.cancel()
    match = _READY.fullmatch(line)
    if match is None:
        process.wait(PATIENCE)
        said = log.read_text(errors="replace").strip().splitlines()
        raise CommandError(
            Exit.FAILED, f"The demo service did not start: {said[-1] if said else 'it said nothing'}"
        )
    return match.group(1)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the service: politely, then not."""
    with contextlib.suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Say whether this is the only demo over *folder*; the kernel gives the lock back however we end."""
    try:
        import fcntl
    except ImportError:  # Windows: two demos at once are on their own there
        yield True
        return
    private_file(folder / LOCK)
    with open(folder / LOCK, "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        file.truncate()  # the address of a service that has ended
        yield True
