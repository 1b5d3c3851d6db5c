"""What commands work with: the folders, the store's reading half, the servers file, the engine."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from time import time_ns
from typing import TYPE_CHECKING, Any, TypeVar

from app.cli.exits import CommandError, Exit, usage
from app.config import NONE, Abilities, ServerEntry, ServersFile, servers
from app.engine.commands import Engine
from app.paths import Paths, find
from app.text import inert_line
from storage.records import Reader, TaskKey, TaskRecord

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


def now_ms() -> int:
    """Return the time in milliseconds since the Unix epoch."""
    return time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Asker:
    """What the servers file says of the server that asks."""

    abilities: Abilities = NONE
    """What it may ask beside elicitations."""
    url: str | None = None
    """Its address; ``None``: it has none."""


@dataclass(frozen=True, slots=True)
class Parts:
    """One installation, as commands use it."""

    paths: Paths = field(default_factory=find)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    now: Callable[[], int] = now_ms

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        """Open the store for reading: quick, and contacts nobody."""
        from app.wiring import open_reader

        reader = open_reader(self.paths)
        try:
            yield reader
        finally:
            reader.close()

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[Engine]:
        """Open the engine, and close it again."""
        from app.wiring import open_engine

        engine = await open_engine(self.paths, self.environ)
        try:
            yield engine
        finally:
            await engine.aclose()

    def entries(self) -> dict[str, ServerEntry]:
        """Return the entries of the servers file. Raises `ConfigError`."""
        return servers(self.paths.servers_file)

    def asker(self, server: str) -> Asker:
        """Return what is known of a server that asks; nothing where its entry can't be used."""
        entry = ServersFile(self.paths.servers_file).usable(server)
        return Asker() if entry is None else Asker(entry.abilities, entry.url)


@asynccontextmanager
async def running(engine: Engine) -> AsyncIterator[asyncio.Task[None]]:
    """Let the engine watch and deliver meanwhile; yields the work, which ends early only on failure."""
    import asyncio

    work = asyncio.create_task(engine.run(), name="engine")
    try:
        yield work
    finally:
        work.cancel()
        await asyncio.wait([work])
        if not work.cancelled() and (error := work.exception()) is not None:
            raise error


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* to its end; an interrupt cancels it, and what is saved stays saved."""
    import asyncio  # a tenth of what `list` takes to start, and it needs none

    return asyncio.run(work)


def resolve(reader: Reader, text: str) -> TaskKey:
    """Return the one task that *text* names: an exact id, a unique prefix, or SERVER/ID.

    Raises `CommandError`: unknown where there is none, usage where there are several.
    """
    found = reader.find(text) if text else []
    if not found:
        raise CommandError(
            Exit.UNKNOWN,
            f"No task or call {inert_line(text)!r} here; `taskinbox list` shows them, "
            "`taskinbox add SERVER TASK_ID` adds one made elsewhere.",
        )
    if len(found) > 1:
        names = "\n".join(f"  {inert_line(str(key))}" for key in found[:20])
        more = f"\n  and {len(found) - 20} more" if len(found) > 20 else ""
        raise usage(f"{inert_line(text)!r} names {len(found)} tasks; say which:\n{names}{more}")
    return found[0]


def load(reader: Reader, key: TaskKey) -> TaskRecord:
    """Return the task *key*, whole; raises `CommandError` when it has gone."""
    task = reader.task(key)
    if task is None:
        raise CommandError(Exit.UNKNOWN, f"{inert_line(str(key))} is not here any more; it was forgotten.")
    return task


def read_argument(text: str, option: str) -> str:
    """Return what an option's value stands for: ``@FILE`` a file's text, ``-`` that of stdin, else itself.

    Raises `CommandError` (usage) when it can't be read or is not UTF-8.
    """
    if text != "-" and not text.startswith("@"):
        return text
    try:
        if text == "-":
            if sys.stdin is None:
                raise usage(f"{option}: stdin is closed.")
            return sys.stdin.buffer.read().decode("utf-8-sig")
        with open(text[1:], "rb") as file:
            return file.read().decode("utf-8-sig")
    except OSError as error:
        raise usage(f"{option}: {text[1:] or 'stdin'} can't be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise usage(f"{option}: {'stdin' if text == '-' else text[1:]} is not UTF-8 text.") from None


def json_object(text: str, option: str) -> dict[str, Any]:
    """Return the JSON object in *text*, numbers exact; raises `CommandError`, usage, saying what is wrong."""
    import simplejson

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not a JSON number")

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            raise ValueError("a name occurs twice in one object")
        return found

    try:
        value = simplejson.loads(text, use_decimal=True, parse_constant=refuse, object_pairs_hook=pairs)
        simplejson.dumps(value, use_decimal=True, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise usage(f"{option}: holds half of a character (a lone surrogate).") from None
    except (ValueError, ArithmeticError) as error:
        raise usage(f"{option}: not valid JSON: {inert_line(str(error))}.") from None
    except RecursionError:
        raise usage(f"{option}: nested too deeply.") from None
    if not isinstance(value, dict):
        raise usage(f'{option}: must be a JSON object such as {{"name": "value"}}.')
    return value
