"""Real servers as processes of their own, started once a session.

Import the fixtures where they are wanted: ``from fakes.peers import fastmcp_url  # noqa: F401``, or name this
module in ``pytest_plugins``.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).with_name("fastmcp_peer.py")
_START_SECONDS = 60.0


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(command: Sequence[str], port: int, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run *command* until it listens on *port*; its output goes to *log*. It is killed at the end."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        _wait_for(process, port, log)
        yield process
    finally:
        process.kill()
        process.wait()


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    limit = time.monotonic() + _START_SECONDS
    while time.monotonic() < limit:
        if process.poll() is not None:
            pytest.fail(f"the peer ended with {process.returncode}:\n{log.read_text(errors='replace')}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)  # nothing announces that a process has begun to listen
    pytest.fail(f"the peer does not listen:\n{log.read_text(errors='replace')}")


@contextmanager
def fastmcp(log: Path, *flags: str) -> Iterator[str]:
    """Run the fastmcp-tasks peer and yield its endpoint."""
    port = free_port()
    with running([sys.executable, str(_SCRIPT), str(port), *flags], port, log):
        yield f"http://127.0.0.1:{port}/mcp"


@dataclass
class _Shared:
    url: str
    stack: ExitStack
    users: int = 0


_shared: dict[tuple[str, ...], _Shared] = {}


@contextmanager
def _share(factory: pytest.TempPathFactory, *flags: str) -> Iterator[str]:
    """Yield one peer's endpoint to every folder of tests that imports its fixture; the last one ends it."""
    if flags not in _shared:
        stack = ExitStack()
        url = stack.enter_context(fastmcp(factory.mktemp("peer") / "log", *flags))
        _shared[flags] = _Shared(url, stack)
    peer = _shared[flags]
    peer.users += 1
    try:
        yield peer.url
    finally:
        peer.users -= 1
        if not peer.users:
            del _shared[flags]
            peer.stack.close()


@pytest.fixture(scope="session")
def fastmcp_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The fastmcp-tasks peer, answering with event streams."""
    with _share(tmp_path_factory) as url:
        yield url


@pytest.fixture(scope="session")
def fastmcp_json_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The fastmcp-tasks peer, answering with single JSON objects."""
    with _share(tmp_path_factory, "--json") as url:
        yield url
