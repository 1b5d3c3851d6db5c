"""A command of the person's own that drafts a reply to a sampling request: only when it is asked to.

It gets the request, ``{"method": …, "params": …}``, on its stdin, and what it prints is the draft. It is
started without a shell, with the person's environment, and within bounds; it leads a process group of its
own, so that what it has started ends with it. Nothing that it says is sent before a person has seen it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from app.engine.commands import EngineError
from app.text import byte_size, inert_line

SECONDS: Final = 120.0
OUTPUT_MOST: Final = 256 * 1024
"""Bytes of a draft; a command that prints more is ended."""
_STDERR_MOST: Final = 64 * 1024
_CHUNK: Final = 16 * 1024


async def draft(
    command: Sequence[str], request_json: str, *, environ: Mapping[str, str], seconds: float = SECONDS
) -> str:
    """Return what *command* prints for the request, without white space around it.

    Raises `EngineError` ``invalid``: it can't be started, fails, takes more than *seconds*, prints too much,
    nothing, or what is not UTF-8.
    """
    name = inert_line(command[0], 120)
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(environ),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise _failed(f"The command {name} can't be started: {why}.") from None
    try:
        async with asyncio.timeout(seconds):
            told, said, _ = await asyncio.gather(
                _read(process.stdout, OUTPUT_MOST),
                _read(process.stderr, _STDERR_MOST, drains=True),
                _write(process.stdin, request_json.encode("utf-8", "surrogatepass")),
            )
            code = await process.wait()
    except TimeoutError:
        raise _failed(f"The command {name} took more than {seconds:g} s and was ended.") from None
    except OverflowError:
        most = byte_size(OUTPUT_MOST)
        raise _failed(f"The command {name} printed more than {most} and was ended.") from None
    finally:
        await _end(process)
    if code:
        last = said.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise _failed(f"The command {name} failed (exit code {code})" + (f": {last}" if last else "") + ".")
    try:
        text = told.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise _failed(f"What the command {name} printed is not UTF-8 text.") from None
    if not text:
        raise _failed(f"The command {name} printed nothing.")
    return text


async def _read(stream: asyncio.StreamReader | None, most: int, *, drains: bool = False) -> bytes:
    """Read all of *stream*; past *most* bytes, raise `OverflowError`, or drop the oldest."""
    assert stream is not None
    found = bytearray()
    while chunk := await stream.read(_CHUNK):
        found += chunk
        if len(found) > most:
            if not drains:
                raise OverflowError
            del found[:-most]
    return bytes(found)


async def _write(stream: asyncio.StreamWriter | None, data: bytes) -> None:
    assert stream is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # it need not read what it was asked
        stream.write(data)
        await stream.drain()
    stream.close()


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the command and all that it has started and left in its group."""
    if process.returncode is None or os.name == "posix":
        with suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
    await asyncio.shield(process.wait())


def _failed(words: str) -> EngineError:
    return EngineError("invalid", f"{words} Nothing was drafted; you can write the reply yourself.")
