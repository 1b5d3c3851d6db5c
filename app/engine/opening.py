"""A client for one entry of the servers file, and what is heard of the server beside the protocol."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from app import __version__
from app.config import Connection, HttpConnection, StdioConnection
from app.engine.abilities import capabilities
from app.engine.slots import Slots
from app.engine.stderr import StderrFile, last_lines
from app.engine.structured import check_output
from app.text import inert_line
from mcp_client import Implementation, Limits, McpClient, StdioTransport

CLIENT: Final = Implementation(name="taskinbox", version=__version__)
_FAULTS: Final = 5
"""Faults of a server's output that a test of it shows."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Opened:
    """A server that is spoken to."""

    connection: Connection
    client: McpClient
    process: StdioTransport | None = None
    """What starts it; ``None``: it runs by itself."""
    faults: deque[str] = field(default_factory=lambda: deque(maxlen=_FAULTS))
    """The last of what it wrote to its stdout against the rules, as sentences that may quote it."""
    slots: Slots = field(default_factory=Slots)

    def last_words(self) -> tuple[str, ...]:
        """Return the last lines that a server which this program started wrote to stderr, as they came."""
        return () if self.process is None else last_lines(self.process.stderr_tail())


def open_server(connection: Connection, limits: Limits, stderr: Path | None) -> Opened:
    """Return a client for *connection*; nothing is contacted, or started, before it is used.

    *stderr* is the folder in which the stderr of servers is kept; ``None``: nowhere.
    """
    match connection:
        case HttpConnection():
            client = McpClient.http(
                connection.url,
                headers=connection.headers,
                client_info=CLIENT,
                capabilities=capabilities(connection),
                limits=limits,
                check_output=check_output,
            )
            return Opened(connection, client)
        case StdioConnection():
            return _open_process(connection, limits, stderr)


def _open_process(connection: StdioConnection, limits: Limits, stderr: Path | None) -> Opened:
    faults: deque[str] = deque(maxlen=_FAULTS)

    def note(fault: str) -> None:
        faults.append(fault)
        log.warning("Server %s: %s", inert_line(connection.name), inert_line(fault, 400))

    keep: Callable[[bytes], None] | None = None
    if stderr is not None:
        keep = StderrFile(stderr, connection.name).write
    process = StdioTransport(
        connection.command,
        connection.args,
        env=connection.env,
        cwd=connection.cwd,
        limits=limits,
        on_stderr=keep,
        on_fault=note,
    )
    client = McpClient(
        process,
        client_info=CLIENT,
        capabilities=capabilities(connection),
        limits=limits,
        check_output=check_output,
    )
    return Opened(connection, client, process, faults)
