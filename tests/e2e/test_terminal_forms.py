"""Filling in a form in a real terminal: its keys as terminals send them, and the person's own editor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.demo import DemoProcess
from fakes.proxy import Proxy
from fakes.running_inbox import home
from fakes.terminal import Terminal

pytestmark = pytest.mark.terminal

TASKINBOX = str(Path(sys.executable).with_name("taskinbox"))

EDITOR = """
import pathlib, sys
path = pathlib.Path(sys.argv[-1])
print("\\x1b[2J\\x1b[HMY OWN EDITOR", path.read_text(), flush=True)
path.write_text(sys.stdin.readline().strip() + "\\nsecond line\\n")
"""


@pytest.fixture
def proxy(demo: DemoProcess) -> Iterator[Proxy]:
    with Proxy(demo.port) as between:
        yield between


@pytest.fixture
def terminal(tmp_path: Path, proxy: Proxy) -> Iterator[Terminal]:
    """The inbox at 80×24, at the form of deploy_service, with an editor of its own."""
    script = tmp_path / "my editor.py"
    script.write_text(EDITOR)
    home(tmp_path / "home", demo=proxy.url)
    env = {
        "TASKINBOX_HOME": str(tmp_path / "home"),
        "VISUAL": f"{sys.executable} '{script}'",
        "TMPDIR": str(tmp_path),
    }
    words = ("call", "demo", "deploy_service", "--args", '{"service": "checkout"}', "--json")
    made = subprocess.run([TASKINBOX, *words], env={**os.environ, **env}, capture_output=True, timeout=60)
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["resultType"] == "task"
    with Terminal([TASKINBOX], env=env, columns=80, rows=24) as opened:
        opened.wait_for("Needs you 1", "deploy_service")
        opened.send("a")
        opened.wait_for("Approve build", "Accept ^S")
        yield opened


def test_the_terminal_is_the_editors_while_it_runs_and_its_text_is_in_the_field(
    terminal: Terminal, tmp_path: Path, proxy: Proxy
) -> None:
    terminal.send(*["tab"] * 8)
    for _ in range(12):  # what is no text has no editor, so that the key does nothing there
        terminal.send("ctrl+g")
        try:
            terminal.wait_for("MY OWN EDITOR", timeout=4)
            break
        except AssertionError:
            terminal.send("tab")
    terminal.wait_for("MY OWN EDITOR")
    terminal.send("because it is time\r")
    terminal.wait_for("because it is time", "second line", "Accept ^S")
    assert "MY OWN EDITOR" not in terminal.text()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("taskinbox-")] == []
    # Ctrl+Z and Ctrl+Y reach the program: neither stops it, as they would in a shell.
    terminal.send("ctrl+z")
    terminal.wait_gone("second line")
    terminal.send("ctrl+y")
    terminal.wait_for("because it is time", "second line")
    terminal.send("ctrl+o")
    terminal.wait_for("Hide JSON")
