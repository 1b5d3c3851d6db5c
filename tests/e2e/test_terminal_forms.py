"""Filling in a form in a real terminal: its keys as terminals send them, and the person's own editor."""

from __future__ import annotations

import json
import os
import shutil
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


def environment(folder: Path, url: str, **more: str) -> dict[str, str]:
    """Return what a program needs to run on an installation of its own."""
    home(folder / "home", demo=url)
    return {"TASKINBOX_HOME": str(folder / "home"), "TMPDIR": str(folder), **more}


def call(env: dict[str, str], tool: str, arguments: str) -> str:
    """Call a tool of the demo; returns the task's id."""
    words = ("call", "demo", tool, "--args", arguments, "--json")
    made = subprocess.run([TASKINBOX, *words], env={**os.environ, **env}, capture_output=True, timeout=60)
    assert made.returncode == 0, made.stderr
    return str(json.loads(made.stdout)["taskId"])


@pytest.fixture
def terminal(tmp_path: Path, proxy: Proxy) -> Iterator[Terminal]:
    """The inbox at 80×24, at the form of deploy_service, with an editor of its own."""
    script = tmp_path / "my editor.py"
    script.write_text(EDITOR)
    env = environment(tmp_path, proxy.url, VISUAL=f"{sys.executable} '{script}'")
    call(env, "deploy_service", '{"service": "checkout"}')
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
    terminal.wait_gone("MY OWN EDITOR")
    terminal.wait_for("demo › deploy_service", "Overview", "Cancel task…")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("taskinbox-")] == []
    # Ctrl+Z and Ctrl+Y reach the program: neither stops it, as they would in a shell.
    terminal.send("ctrl+z")
    terminal.wait_gone("second line")
    terminal.send("ctrl+y")
    terminal.wait_for("because it is time", "second line")
    terminal.send("ctrl+o")
    terminal.wait_for("Hide JSON")


def test_two_tasks_that_ask_the_same_are_marked_and_answered_by_keys(tmp_path: Path, proxy: Proxy) -> None:
    env = environment(tmp_path, proxy.url)
    ids = [call(env, "generate_report", '{"size": "small"}') for _ in range(2)]
    with Terminal([TASKINBOX], env=env, columns=80, rows=24) as terminal:
        terminal.wait_for("Needs you 2")
        terminal.send("space", "space")
        terminal.wait_for("answer 2 marked")
        terminal.send("A")
        terminal.wait_for("2 questions to be answered together", "Accept all 2", *ids)
        terminal.press_until("space", lambda shown: "(•) Yes" in shown)
        terminal.press_calmly("ctrl+s", lambda shown: "2 sent" in shown)
        terminal.send("enter")
        terminal.wait_for("Finished 2", "n call a tool")
    assert proxy.passed["tasks/update"] == 2


def test_an_address_is_agreed_to_and_drawn_for_a_phone_by_keys(tmp_path: Path, proxy: Proxy) -> None:
    env = environment(tmp_path, proxy.url)
    call(env, "approve_in_browser", "{}")
    with Terminal([TASKINBOX], env=env, columns=80, rows=24) as terminal:
        terminal.wait_for("Needs you 1", "approve_in_bro", "1 question")
        terminal.send("enter")
        terminal.wait_for("Host  approvals.example.com", "QR code…", "Decline")
        terminal.wait_for("Another place than the server that asks", "http://127.0.0.1:")
        terminal.click_until("QR code…", lambda shown: "Tell demo that you agree" in shown)
        terminal.wait_for("Not now", "Show")
        assert proxy.passed["tasks/update"] == 0
        terminal.click_until("Show", lambda shown: "▀" in shown and "for your phone" in shown)
        terminal.wait_for("▀▀▀▀", "for your phone")
        terminal.wait_until(lambda _: proxy.passed["tasks/update"] == 1, "the answer to be sent")
        terminal.press_until("escape", lambda shown: "for your phone" not in shown)


@pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux here")
def test_undo_preview_and_accept_are_keys_that_tmux_delivers(tmp_path: Path, proxy: Proxy) -> None:
    env = environment(tmp_path, proxy.url)
    task = call(env, "generate_report", '{"size": "small"}')
    tmux = ["tmux", "-S", str(tmp_path / "socket"), "-f", os.devnull]
    try:
        with Terminal([*tmux, "new-session", TASKINBOX], env=env, columns=80, rows=24) as terminal:
            terminal.wait_for("Needs you 1", "generate_report")
            terminal.send("a")
            terminal.wait_for("Approve the outline", "Accept ^S")
            terminal.press_until("space", lambda shown: "(•) Yes" in shown)
            terminal.press_until("ctrl+z", lambda shown: "(•) Yes" not in shown)
            terminal.press_until("ctrl+y", lambda shown: "(•) Yes" in shown)
            terminal.press_until("ctrl+o", lambda shown: "Hide JSON" in shown)
            terminal.wait_for('"approved": true')
            terminal.press_calmly("ctrl+s", lambda shown: "Accept ^S" not in shown)
            terminal.wait_until(lambda _: proxy.passed["tasks/update"] == 1, f"the answer to {task}")
    finally:
        subprocess.run([*tmux, "kill-server"], capture_output=True, check=False)
