"""Servers that the engine starts: one process a program, what it says beside the protocol, and its end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fakes import stdio_tasks
from fakes.inbox import Inbox, Running

from app.config import ServersFile
from app.engine.commands import EngineError
from app.engine.stderr import CAP, StderrFile, last_kept, last_lines
from app.paths import Paths
from mcp_client import Limits
from storage.records import TaskKey

SERVER = str(Path(stdio_tasks.__file__).resolve())
LIMITS = Limits(request_seconds=15, call_seconds=15, exit_seconds=5)


@asynccontextmanager
async def opened(root: Path, *words: str, env: dict[str, str] | None = None) -> AsyncIterator[Inbox]:
    """A program on the installation at *root*, whose server ``own`` is started with *words*."""
    paths = Paths(root / "config", root / "data", root / "state").make()
    file = ServersFile(paths.servers_file)
    if "own" not in file.entries():
        file.add_command("own", sys.executable, [SERVER, *words], env)
    inbox = await Inbox.open(root, {}, limits=LIMITS)
    try:
        yield inbox
    finally:
        await inbox.close()


async def pid(inbox: Inbox) -> int:
    outcome = await inbox.engine.call("own", "pid", "{}")
    assert outcome.kind == "complete"
    return int(json.loads(outcome.result_json or "")["content"][0]["text"])


async def asked(inbox: Inbox) -> TaskKey:
    outcome = await inbox.engine.call("own", "ask", "{}")
    assert outcome.kind == "task"
    await inbox.until(lambda: inbox.task(outcome.key).open_questions)
    return outcome.key


async def restarted(inbox: Inbox) -> int:
    """Return the number of the process that is started again, a second after the quick exit of the last."""
    while True:
        try:
            return await pid(inbox)
        except EngineError as error:
            if "is started again in" not in error.message:
                raise
            await asyncio.sleep(0.1)


async def answered(inbox: Inbox, key: TaskKey) -> dict[str, object]:
    await inbox.engine.answer(key, [inbox.accept(key, "who", '{"name": "Ann"}')])
    await inbox.until(lambda: inbox.task(key).state.status == "completed")
    result = json.loads(inbox.task(key).state.result_json or "")
    found: dict[str, object] = json.loads(result["content"][0]["text"])
    return found


@pytest.mark.rule("index.stdio-process-outlives-tasks")
async def test_one_process_serves_all_tasks_of_a_program_and_ends_with_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as inbox, Running(inbox.engine):
        first = await pid(inbox)
        for _ in range(2):
            key = await asked(inbox)
            done = await answered(inbox, key)
            assert done == {"answer": {"action": "accept", "content": {"name": "Ann"}}, "pid": first}
        assert await pid(inbox) == first
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


async def test_a_server_that_exits_is_started_again_and_its_tasks_are_looked_for(tmp_path: Path) -> None:
    async with opened(tmp_path) as inbox, Running(inbox.engine):
        first = await pid(inbox)
        key = await asked(inbox)
        os.kill(first, signal.SIGKILL)
        await inbox.until(lambda: inbox.task(key).state.tracking == "lost")
        assert "Task not found" in (inbox.task(key).state.reason or "")
        assert await restarted(inbox) != first


@pytest.mark.rule("subscriptions.resent-after-restart", "stdio.restarted")
async def test_subscriptions_are_asked_for_again_after_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path, "listen") as inbox, Running(inbox.engine):
        await asked(inbox)
        await inbox.eventually(lambda: inbox.engine.observing("own") == "subscribed")
        first = await pid(inbox)
        os.kill(first, signal.SIGKILL)
        await inbox.eventually(lambda: inbox.engine.observing("own") != "subscribed")
        await restarted(inbox)
        key = await asked(inbox)
        await inbox.eventually(lambda: inbox.engine.observing("own") == "subscribed")
        second = (await answered(inbox, key))["pid"]
        said = (inbox.paths.stderr / "own.log").read_text()
    assert second != first
    assert f"{first} subscriptions/listen" in said
    assert f"{second} subscriptions/listen" in said


async def test_rubbish_on_stdout_is_a_warning_of_the_test_and_stops_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path, "rubbish") as inbox:
        report = await inbox.engine.test_server("own")
    assert report.has_tasks
    assert report.tools == 2
    assert any("is no JSON-RPC message: “Loading model…”" in warning for warning in report.warnings)


async def test_a_test_that_fails_brings_the_last_words_of_the_server(tmp_path: Path) -> None:
    async with opened(tmp_path, "exit") as inbox:
        with pytest.raises(EngineError, match="ended with exit code 3") as caught:
            await inbox.engine.test_server("own")
        assert caught.value.failure == "unreachable"
        assert caught.value.stderr[-1].endswith(" server/discover")
        (record,) = inbox.reader.servers()
        assert record.state == "unreachable"


async def test_a_command_that_is_not_there_is_said_with_what_to_do(tmp_path: Path) -> None:
    async with opened(tmp_path) as inbox:
        ServersFile(inbox.paths.servers_file).add_command("gone", "surely-no-such-command")
        with pytest.raises(EngineError, match=r"no such command\. Install it, or give its full path\."):
            await inbox.engine.test_server("gone")


@pytest.mark.rule("authorization.stdio", "index.auth-stdio")
async def test_credentials_come_from_the_environment_and_stay_out_of_the_log(tmp_path: Path) -> None:
    paths = Paths(tmp_path / "config", tmp_path / "data", tmp_path / "state").make()
    script = "import os, sys; print(os.environ['TOKEN'][::-1], file=sys.stderr, flush=True); sys.stdin.read()"
    ServersFile(paths.servers_file).add_command("own", sys.executable, ["-c", script], {"TOKEN": "${T}"})
    inbox = await Inbox.open(tmp_path, {}, limits=Limits(request_seconds=2), environ={"T": "s3cret"})
    with pytest.raises(EngineError) as caught:
        await inbox.engine.test_server("own")
    await inbox.close()
    assert "".join(caught.value.stderr) == "terc3s"
    assert "s3cret" not in str(caught.value)


async def test_a_server_whose_entry_is_changed_or_removed_is_ended(tmp_path: Path) -> None:
    async with opened(tmp_path) as inbox:
        file = ServersFile(inbox.paths.servers_file)
        entry = file.entries()["own"]
        first = await pid(inbox)
        await inbox.engine.reload_servers()
        assert await pid(inbox) == first
        file.add_command("own", entry.command or "", entry.args, {"NEW": "1"})
        await inbox.engine.reload_servers()
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)
        second = await pid(inbox)
        file.remove("own")
        await inbox.engine.reload_servers()
        with pytest.raises(ProcessLookupError):
            os.kill(second, 0)


async def test_a_task_in_another_programs_process_is_not_lost_and_answered_there(tmp_path: Path) -> None:
    """Each program starts a server of its own, and a server that keeps its tasks in memory knows but its."""
    async with opened(tmp_path) as inbox:
        async with Running(inbox.engine):
            key = await asked(inbox)
        async with opened(tmp_path) as other:
            with pytest.raises(EngineError, match="that of another program, which is open now, may"):
                await other.engine.refresh(key)
            assert other.task(key).state.tracking == "active"
            delivery = await other.engine.answer(key, [other.accept(key, "who", '{"name": "Bo"}')])
            assert delivery.state == "saved"
            assert "another program" in (delivery.message or "")
        async with Running(inbox.engine):
            await inbox.until(lambda: inbox.task(key).state.status == "completed")
        assert "Bo" in (inbox.task(key).state.result_json or "")


async def test_a_wish_to_cancel_reaches_the_process_of_another_program(tmp_path: Path) -> None:
    async with opened(tmp_path) as inbox:
        async with Running(inbox.engine):
            key = await asked(inbox)
        async with opened(tmp_path) as other:
            with pytest.raises(EngineError, match="that of another program"):
                await other.engine.cancel(key)
        async with Running(inbox.engine):
            await inbox.until(lambda: inbox.task(key).state.status == "cancelled")


async def test_a_task_that_no_program_can_know_any_more_is_lost(tmp_path: Path) -> None:
    async with opened(tmp_path) as inbox, Running(inbox.engine):
        key = await asked(inbox)
    async with opened(tmp_path) as later:
        await later.engine.refresh(key)
        assert later.task(key).state.tracking == "lost"


def test_stderr_is_kept_in_a_private_file_its_newest_part(tmp_path: Path) -> None:
    file = StderrFile(tmp_path / "state" / "stderr", "own")
    (tmp_path / "state").mkdir()
    for number in range(40_000):
        file.write(f"line {number:06}\n".encode())
    assert CAP // 2 <= file.path.stat().st_size <= CAP
    lines = file.path.read_text().splitlines()
    assert lines[-1] == "line 039999"
    assert all(len(line) == len("line 000000") for line in lines)
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
    assert [path.name for path in file.path.parent.iterdir()] == ["own.log"]
    file.write(b"x" * (3 * CAP))
    assert file.path.stat().st_size <= CAP
    assert last_kept(tmp_path / "state" / "stderr", "own") == ("x" * 300 + "…",)


def test_stderr_that_cannot_be_kept_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = StderrFile(tmp_path / "missing" / "stderr", "own")
    file.write(b"a")
    file.write(b"b")
    assert len(caplog.records) == 1
    assert last_kept(tmp_path / "missing" / "stderr", "own") == ()


def test_the_last_lines_are_those_that_say_something() -> None:
    assert last_lines("a\n\n b \r\n\n") == ("a", " b")
    assert last_lines("\n".join("abcdefgh"), 3) == ("f", "g", "h")
