"""A server's process: its start, its streams, and its end. Page: basic/transports/stdio ("Shutdown").

On POSIX the process leads a group of its own, so that what it has started ends with it, and so that Ctrl+C in
a terminal reaches the program alone.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self, cast

from mcp_client.errors import TransportError
from mcp_client.limits import Limits
from mcp_client.lines import Line, LineSplitter

STDERR_TAIL: Final = 64 * 1024
"""Bytes of a process's stderr that are kept."""
_LOOK_SECONDS: Final = 0.02
"""Between two looks at a group whose leader has exited: its members are not our children, so nobody tells
when they end."""
_SAID: Final = 200
"""Characters of stderr that an error repeats."""
_INHERITED: Final = frozenset(
    {
        *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"),
        *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
        *("PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
    }
)


def default_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what every server gets of *environ*: enough to run, and none of the secrets in it.

    A value that begins with ``()`` is left out: it may be an exported shell function.
    """
    return {k: v for k, v in environ.items() if k.upper() in _INHERITED and not v.startswith("()")}


class ServerProcess(asyncio.SubprocessProtocol):
    """One running process. Lines of its stdout, and its stderr, are told as they come.

    `ended` is done when nothing more can come of it: it has exited, or has closed its stdin or stdout and has
    then been given *limits.exit_seconds* to exit. `end` must be called even then.
    """

    def __init__(
        self,
        command: str,
        limits: Limits,
        on_line: Callable[[Line], None],
        on_stderr: Callable[[bytes], None],
    ) -> None:
        self._command = command
        self._limits = limits
        self._on_line = on_line
        self._on_stderr = on_stderr
        self._splitter = LineSplitter(limits.reply_bytes)
        self._tail = bytearray()
        self._transport: asyncio.SubprocessTransport | None = None
        self._loop = asyncio.get_running_loop()
        self._exited: asyncio.Future[None] = self._loop.create_future()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._grace: asyncio.TimerHandle | None = None
        self._outputs = {1, 2}
        self._writing = asyncio.Lock()
        self._writable = asyncio.Event()
        self._writable.set()
        self.accepts = True
        """It can be written to; false from the first sign of its end."""

    @classmethod
    async def start(
        cls,
        command: str,
        args: Sequence[str],
        env: Mapping[str, str],
        cwd: Path | None,
        limits: Limits,
        *,
        on_line: Callable[[Line], None],
        on_stderr: Callable[[bytes], None],
    ) -> Self:
        """Start *command*; raises `TransportError` that says what to do where it can't be started."""
        _check_folder(command, cwd)
        loop = asyncio.get_running_loop()
        try:
            _, protocol = await loop.subprocess_exec(
                lambda: cls(command, limits, on_line, on_stderr),
                command,
                *args,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise TransportError(_not_started(command, error), may_have_reached=False) from None
        return protocol

    async def write(self, line: bytes) -> bool:
        """Write *line* and its newline once the process has taken what was written before.

        A line is handed over whole or not at all, also where the wait is cancelled. Returns false where the
        process no longer reads.
        """
        async with self._writing:
            await self._writable.wait()
            return self.write_now(line)

    def write_now(self, line: bytes) -> bool:
        """Write *line* and its newline behind all that waits to be taken; false as in `write`."""
        if self.accepts:
            # JSON has line breaks between its tokens only, where a space means the same.
            flat = line.replace(b"\r", b" ").replace(b"\n", b" ")
            self._stdin.write(flat + b"\n")
        return self.accepts

    def stderr_tail(self) -> str:
        """Return the last of what it wrote to stderr, as it came."""
        return self._tail.decode("utf-8", "replace")

    def obituary(self) -> str:
        """Say how it ended and what it said last, for a person."""
        code = None if self._transport is None else self._transport.get_returncode()
        if code is None:
            how = "stopped talking: it closed its standard input or output"
        elif code >= 0:
            how = f"ended with exit code {code}"
        else:
            how = f"was ended by {_signal_name(-code)}"
        said = next((line.strip() for line in reversed(self.stderr_tail().splitlines()) if line.strip()), "")
        last = f" It last said: “{said[:_SAID]}{'…' if len(said) > _SAID else ''}”." if said else ""
        return f"The server's process ({Path(self._command).name}) {how}.{last}"

    async def end(self) -> None:
        """End it and all it has started: close its input, wait, ask it to terminate, wait, kill.

        Each wait is *limits.exit_seconds* long at most. Cancelled, it kills at once. To be called once.
        """
        seconds = self._limits.exit_seconds
        self.accepts = False
        try:
            self._stdin.close()
            asked = False
            if not await _within(seconds, self._exited):
                asked = True
                self._signal(signal.SIGTERM)
                await _within(seconds, self._exited)
            if self._exited.done():
                await self._end_rest(asked)
        finally:
            self._signal(signal.SIGKILL)
            await _within(seconds, self._exited)
            self._close()
            await _within(seconds, self._closed)

    async def _end_rest(self, asked: bool) -> None:
        """Wait for what the process has started, when it has exited itself."""
        looks = round(self._limits.exit_seconds / _LOOK_SECONDS)
        if not asked and self._signal(signal.SIGTERM):
            while looks > 0 and self._signal(0):
                looks -= 1
                await asyncio.sleep(_LOOK_SECONDS)

    def _close(self) -> None:
        assert self._transport is not None
        if self._stdin.get_write_buffer_size():
            self._stdin.abort()  # closing would wait for somebody to take the rest
        self._transport.close()
        self._end()

    def _signal(self, number: int) -> bool:
        """Signal the whole group; says whether there is one (still)."""
        assert self._transport is not None
        if sys.platform == "win32":  # pragma: no cover
            if number and self._transport.get_returncode() is None:
                self._transport.terminate()
            return False
        try:
            os.killpg(self._transport.get_pid(), number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    @property
    def _stdin(self) -> asyncio.WriteTransport:
        assert self._transport is not None
        return cast(asyncio.WriteTransport, self._transport.get_pipe_transport(0))

    # What the event loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._tail += data
            del self._tail[:-STDERR_TAIL]
            self._on_stderr(data)
            return
        for line in self._splitter.feed(data):
            self._on_line(line)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._outputs.discard(fd)
        if fd == 1:
            for line in self._splitter.end():
                self._on_line(line)
        if fd != 2 or not self.accepts:  # a server may close its stderr and work on
            self._stops()

    def process_exited(self) -> None:
        self._exited.set_result(None)
        self._stops()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set_result(None)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _stops(self) -> None:
        """Take the first sign of its end, and wait for the others: its last words may still be under way."""
        self.accepts = False
        self._writable.set()
        if self._grace is None:
            self._grace = self._loop.call_later(self._limits.exit_seconds, self._end)
        if not self._outputs and self._exited.done():
            self._end()

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


async def _within(seconds: float, future: asyncio.Future[None]) -> bool:
    await asyncio.wait((future,), timeout=seconds)
    return future.done()


def _check_folder(command: str, cwd: Path | None) -> None:
    if cwd is not None and not cwd.is_dir():
        said = f"{command} can't be started: there is no folder {cwd}. Correct the server's cwd."
        raise TransportError(said, may_have_reached=False)


def _not_started(command: str, error: OSError | ValueError) -> str:
    code = error.errno if isinstance(error, OSError) else None
    if code == errno.ENOENT:
        return f"{command} can't be started: no such command. Install it, or give its full path."
    if code == errno.EACCES:
        return f"{command} can't be started: it is not an executable file, or you may not run it."
    if code == errno.ENOEXEC:
        return f"{command} can't be started: it is not a program of this system, or its first line is no #!."
    why = error.strerror if isinstance(error, OSError) else error
    return f"{command} can't be started: {why}."


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
