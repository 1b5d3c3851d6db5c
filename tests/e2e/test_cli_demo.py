"""``taskinbox demo`` in a terminal: something in every section; the service comes and goes with the inbox."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from fakes.cli_program import Program
from fakes.terminal import Terminal

pytestmark = [pytest.mark.e2e, pytest.mark.terminal]


def services(data: Path) -> list[int]:
    """Return the processes that serve from *data*, as Linux knows them."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"demo-server" in words and os.fsencode(str(data)) in words:
            found.append(int(folder.name))
    return found


def rows(program: Program) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = program.json("list")
    return found


@pytest.mark.skipif(
    not Path("/proc/self/cmdline").exists(), reason="needs /proc to see the service's process"
)
@pytest.mark.timeout(180)
def test_the_demo_opens_alive_and_goes_on_the_next_time(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    data = tmp_path / "home" / "data" / "demo"
    with Terminal(program.command("demo"), env={"TASKINBOX_HOME": str(program.home)}) as terminal:
        terminal.wait_for("Needs you 4", "deploy_service", "demo subscribed", timeout=60)
        listed = rows(program)
        sections = {row["section"] for row in listed}
        assert sections == {"needs-you", "running", "finished", "lost", "archived"}
        by_tool = {(row["section"], row["tool"]) for row in listed}
        for tool in ("deploy_service", "generate_report", "approve_in_browser", "ask_first"):
            assert ("needs-you", tool) in by_tool
        assert ("running", "long_build") in by_tool
        for tool in ("generate_report", "flaky_job", "broken_tool"):
            assert ("finished", tool) in by_tool
        assert len(services(data)) == 1
        entry = json.loads((program.home / "config" / "mcp.json").read_text())["mcpServers"]["demo"]
        assert entry["url"].startswith("http://127.0.0.1:")
        readable = [str(path) for path in data.rglob("*") if path.is_file() and path.stat().st_mode & 0o077]
        assert readable == []
        assert (data / "demo.lock").exists()

        program.run("servers", "add", "demo", "http://127.0.0.1:1/mcp", "--force")
        second = Terminal(program.command("demo"), env={"TASKINBOX_HOME": str(program.home)})
        with second:
            second.wait_for("Needs you 4", timeout=60)
            assert program.json("servers", "list")[0]["url"] == entry["url"]
            second.send("q")
            assert second.wait_ended(60) == 0
        assert len(services(data)) == 1
        terminal.send("q")
        assert terminal.wait_ended(60) == 0
    assert services(data) == []

    with Terminal(program.command("demo"), env={"TASKINBOX_HOME": str(program.home)}) as terminal:
        terminal.wait_for("Needs you 4", timeout=60)
        assert {(r["server"], r["taskId"]) for r in rows(program)} == {
            (r["server"], r["taskId"]) for r in listed
        }
        deploy = next(r["taskId"] for r in listed if r["tool"] == "deploy_service")
        program.run("answer", deploy, "--decline")
        program.run("watch", deploy, "--until", "end", "--timeout", "30")
        terminal.kill()
        terminal.wait_ended(60)
    done = program.run("servers", "test", "demo", code=None)
    for _ in range(100):
        if done.returncode == 4:
            break
        done = program.run("servers", "test", "demo", code=None)
    assert done.returncode == 4, "the service outlived the inbox that was killed"


def test_a_server_that_is_called_demo_already_is_left_alone(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    program.run("servers", "add", "demo", "https://mine.example/mcp")
    with Terminal(program.command("demo"), env={"TASKINBOX_HOME": str(program.home)}) as terminal:
        terminal.wait_until(lambda shown: "another server named demo" in " ".join(shown.split()), timeout=60)
        assert terminal.wait_ended(60) == 2
    (entry,) = program.json("servers", "list")
    assert entry["url"] == "https://mine.example/mcp"
