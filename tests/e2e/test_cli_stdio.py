"""A server that the program starts, from the shell and in the inbox: fastmcp-tasks over stdio."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from fakes.cli_program import Program
from fakes.running_inbox import home, inbox

from app.config import ServersFile
from app.engine.commands import Answer

pytestmark = pytest.mark.e2e

SERVER = str(Path(__file__).resolve().parents[1] / "fakes" / "fastmcp_peer.py")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """An installation that starts fastmcp-tasks as ``own``."""
    found = Program(tmp_path / "home")
    added = found.run("servers", "add", "own", "--", sys.executable, SERVER, "stdio")
    assert "`taskinbox servers test own` starts it" in added.stderr
    return found


def ours() -> list[str]:
    """Return our own children that are this server on stdio, as Linux knows them."""
    found = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    lines = [Path(f"/proc/{pid}/cmdline").read_text() for pid in found]
    return [line for line in lines if f"{SERVER}\0stdio\0" in line]


def test_a_server_is_added_tested_and_called_from_the_shell(program: Program) -> None:
    (entry,) = program.json("servers", "list")
    assert (entry["command"], entry["args"], entry["url"]) == (sys.executable, [SERVER, "stdio"], None)
    tested = program.run("servers", "test", "own").stdout
    assert "fastmcp-peer 1.2.3" in tested
    assert "tasks     yes" in tested
    assert "required_task" in program.run("tools", "own").stdout
    called = program.run("call", "own", "required_task", "--args", '{"x": 5}', "--wait", "--timeout", "60")
    assert "done 5" in called.stdout
    assert "warning" not in called.stderr
    (row,) = program.json("list")
    assert (row["status"], row["section"]) == ("completed", "finished")
    doctor = program.json("doctor")
    assert doctor["problems"] == []
    assert any("Starting MCP server" in line for line in doctor["servers"][0]["stderr"])
    assert program.run("doctor", "--contact").stderr.endswith("All is well.\n")


def test_a_task_that_a_server_keeps_in_memory_ends_with_the_command_that_started_it(program: Program) -> None:
    """As the README says: only an open program keeps such a server, and its tasks, alive."""
    called = program.run("call", "own", "slow", "--args", '{"steps": 60}')
    assert "was started for this command and ends with it" in called.stderr
    program.run("list", "--refresh")
    (row,) = program.json("list")
    assert row["section"] == "lost"


def test_a_command_that_fails_says_what_the_server_said(program: Program) -> None:
    program.run("servers", "add", "bad", "--", sys.executable, "-c", "raise SystemExit('no config')")
    failed = program.run("servers", "test", "bad", code=4)
    assert "stderr| no config\n" in failed.stderr
    assert "ended with exit code 1" in failed.stderr
    doctor = program.run("doctor", code=1)
    assert "stderr| no config" in doctor.stdout
    assert doctor.stderr.endswith("1 problem.\n")


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to see our own children")
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_program_that_is_ended_ends_its_server(program: Program, ending: signal.Signals) -> None:
    """A server of fastmcp-tasks does not exit by itself while it works on a task."""
    if signal.getsignal(ending) is signal.SIG_IGN:
        pytest.skip("whoever started this run had it ignore that signal, and so do the programs it starts")
    with program.start("call", "own", "slow", "--args", '{"steps": 300}', "--wait") as process:
        assert process.stderr is not None
        while "step " not in process.stderr.readline():
            assert process.poll() is None
        (server,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert SERVER in Path(f"/proc/{server}/cmdline").read_text()
        process.send_signal(ending)
        assert process.wait(30) == 128 + ending
        assert not Path(f"/proc/{server}").exists()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to see our own children")
async def test_an_open_inbox_keeps_its_server_asks_and_answers_and_ends_it(tmp_path: Path) -> None:
    paths = home(tmp_path)
    ServersFile(paths.servers_file).add_command("own", sys.executable, [SERVER, "stdio"])
    async with inbox(paths) as box:
        outcome = await box.engine.call("own", "ask_two", "{}")
        await box.questions(outcome.key, 2)
        assert ours()
        await box.open(outcome.key)
        await box.shows("own asks", "First?", "Second?")
        for question in await box.questions(outcome.key, 2):
            delivery = await box.engine.answer(
                question.task, [Answer(question, "accept", '{"value": "one"}')]
            )
            assert delivery.state in ("acknowledged", "saved")
        await box.until(
            lambda: [
                q for q in box.reader.questions(outcome.key) if q.is_open and "Third?" in q.request_json
            ],
            "the third question",
        )
        (third,) = [q for q in box.reader.questions(outcome.key) if q.is_open]
        await box.answer(third, {"value": "three"})
        record = await box.task(outcome.key, lambda t: t.state.tracking == "ended")
        assert "three" in (record.state.result_json or "")
    assert not ours()


async def test_an_answer_from_the_shell_is_delivered_by_the_open_inbox(tmp_path: Path) -> None:
    paths = home(tmp_path)
    ServersFile(paths.servers_file).add_command("own", sys.executable, [SERVER, "stdio"])
    async with inbox(paths) as box:
        outcome = await box.engine.call("own", "ask_url", "{}")
        await box.questions(outcome.key)
        # The command's own process of the server does not know the task. Whether the inbox has delivered the
        # answer before the command ends is a matter of time.
        answer = ("answer", outcome.key.id, "--decline")
        done = await asyncio.to_thread(Program(tmp_path).run, *answer, code=None)
        assert done.returncode in (0, 4)
        record = await box.task(outcome.key, lambda t: t.state.tracking == "ended")
        assert "action=decline" in (record.state.result_json or "")
