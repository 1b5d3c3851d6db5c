"""The composition root: which parts make the program.

Importing this module loads neither the network parts nor pydantic: a screen or a listing is drawn from the
store alone, and `engine_factory` brings the rest after the first paint.
"""

from __future__ import annotations

import copy
import logging
import logging.handlers
import os
from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from app.config import ServersFile
from app.paths import Paths, private_file
from app.text import inert, inert_line

if TYPE_CHECKING:
    from app.engine.commands import Engine, EngineFactory
    from app.engine.engine import InboxEngine
    from storage.reader import StoreReader

MESSAGE_MOST = 4_000
"""Characters of one message in the log."""
LOG_BYTES = 1_000_000
"""Size at which the log is turned over; two old ones are kept."""


def open_reader(paths: Paths) -> StoreReader:
    """Open the store for reading, making it where there is none; light, and contacts nobody.

    Raises `storage.errors.StorageError`, or `OSError` where the folders can't be made.
    """
    from storage.reader import StoreReader

    paths.make()
    return StoreReader.open(paths.database)


def servers_file(paths: Paths) -> ServersFile:
    """Return the servers file."""
    return ServersFile(paths.servers_file)


async def open_engine(paths: Paths, environ: Mapping[str, str] = os.environ) -> Engine:
    """Load the network parts and open the engine on the store; the caller closes it with ``aclose()``.

    Raises `storage.errors.StorageError`, or `OSError` where the folders can't be made. An unusable servers
    file is no reason to fail here: each verb that needs it says so.
    """
    import asyncio

    def load() -> type[InboxEngine]:
        from app.engine.engine import InboxEngine

        return InboxEngine

    paths.make()
    start_log(paths)
    engine = await asyncio.to_thread(load)
    return await engine.open(
        database=paths.database,
        programs=paths.state / "programs",
        servers=ServersFile(paths.servers_file),
        environ=environ,
        stderr=paths.stderr,
    )


def engine_factory(paths: Paths, environ: Mapping[str, str] = os.environ) -> EngineFactory:
    """Return what opens the engine later, after the first paint."""

    async def connect() -> Engine:
        return await open_engine(paths, environ)

    return connect


def start_log(paths: Paths) -> None:
    """Send the log to its file, readable by nobody else; calling it again changes nothing.

    The log names servers, tasks and what went wrong, never headers, arguments, answers or results.
    """
    root = logging.getLogger()
    if any(getattr(handler, "taskinbox", None) == str(paths.log) for handler in root.handlers):
        return
    private_file(paths.log)
    handler = _PrivateLog(paths.log, maxBytes=LOG_BYTES, backupCount=2, encoding="utf-8", delay=True)
    handler.taskinbox = str(paths.log)
    handler.setFormatter(_InertFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    for noisy in ("httpx", "httpcore", "asyncio"):  # httpx logs each request's URL, once a poll
        logging.getLogger(noisy).setLevel(logging.WARNING)


class _PrivateLog(logging.handlers.RotatingFileHandler):
    taskinbox: str

    def _open(self) -> TextIOWrapper:
        private_file(Path(self.baseFilename))
        return super()._open()


class _InertFormatter(logging.Formatter):
    """What a server says reaches the log as visible characters: the log is read in terminals."""

    def format(self, record: logging.LogRecord) -> str:
        plain = copy.copy(record)
        # One line a message, so that no server writes lines of the log; a traceback keeps its own.
        plain.msg, plain.args = inert_line(record.getMessage(), MESSAGE_MOST), ()
        return inert(super().format(plain)).replace("\t", "    ")
