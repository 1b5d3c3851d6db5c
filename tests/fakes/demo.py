"""The embedded task service as a real process, for tests over a real socket.

In a test: ``with DemoProcess(tmp_path / "demo", speed=0.01) as demo: …demo.url…``; or take the `demo`
fixture, with ``from fakes.demo import demo`` in the conftest of the tests' folder.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 30.0
"""Seconds until a process that says nothing counts as hung."""


class DemoProcess:
    """One service process over one data folder; starting it again keeps the folder and the port."""

    def __init__(
        self,
        data: Path,
        *,
        speed: float = 0.02,
        poll_ms: int = 100,
        tools: str = "demo",
        port: int = 0,
        options: Sequence[str] = (),
    ) -> None:
        self.data = data
        self.speed = speed
        """Seconds per step."""
        self.poll_ms = poll_ms
        """What each task names as its poll interval."""
        self.tools = tools
        self.port = port
        """0 until the first start has found a free one."""
        self.options = options
        """More of the command line."""
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """The endpoint; the same after a restart."""
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def pid(self) -> int:
        """The running process."""
        assert self._process is not None, "the service is not running"
        return self._process.pid

    def start(self) -> DemoProcess:
        """Start the process and wait until it accepts connections."""
        assert self._process is None, "the service is already running"
        command = [
            sys.executable,
            "-m",
            "app.demo_server",
            "--port",
            str(self.port),
            "--data",
            str(self.data),
        ]
        command += ["--tools", self.tools, "--speed", str(self.speed), "--poll-ms", str(self.poll_ms)]
        command += self.options
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        line = self._first_line()
        prefix, _, url = line.strip().rpartition(" ")
        if prefix != "taskinbox demo service at":
            self._process.kill()
            _, errors = self._process.communicate()
            self._process = None
            raise AssertionError(f"the demo service did not start: {line!r} {errors}")
        self.port = int(url.rsplit(":", 1)[1].partition("/")[0])
        return self

    def kill(self) -> None:
        """End the process with SIGKILL: it gets to tidy nothing."""
        self.end(signal.SIGKILL)

    def stop(self) -> int:
        """End the process with SIGTERM; return its exit code."""
        return self.end(signal.SIGTERM)[0]

    def restart(self) -> DemoProcess:
        """Start again on the same folder and port, killing the process first where it still runs."""
        if self._process is not None:
            self.kill()
        return self.start()

    def __enter__(self) -> DemoProcess:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.kill()

    def end(self, how: signal.Signals) -> tuple[int, str, str]:
        """End the process with a signal; return its exit code and what else it wrote to stdout and stderr."""
        assert self._process is not None, "the service is not running"
        process, self._process = self._process, None
        process.send_signal(how)
        return self._ended(process)

    def wait(self) -> tuple[int, str, str]:
        """Wait until the process ends by itself; return the same as `end`."""
        assert self._process is not None, "the service is not running"
        process, self._process = self._process, None
        return self._ended(process)

    @staticmethod
    def _ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
        out, errors = process.communicate(timeout=PATIENCE)
        return process.returncode, out, errors

    def _first_line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        said: queue.Queue[str] = queue.Queue()
        reading = threading.Thread(target=lambda out: said.put(out.readline()), args=(self._process.stdout,))
        reading.daemon = True
        reading.start()
        try:
            return said.get(timeout=PATIENCE)
        except queue.Empty:
            return "(nothing)"


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[DemoProcess]:
    """A running service with a folder of its own, ended with the test."""
    with DemoProcess(tmp_path / "demo-service") as process:
        yield process
