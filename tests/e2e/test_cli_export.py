"""An answer with a secret, from the command line to the export: the real program and a real server."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fakes.cli_program import Program, run, tracking
from fakes.task_script import APPROVE, TaskScript

pytestmark = pytest.mark.e2e

SECRET = "hush-4711-hush"
TEXT = {"type": "string"}
LOGIN: dict[str, Any] = {
    "method": "elicitation/create",
    "params": {
        "message": "Sign in, please.",
        "requestedSchema": {"type": "object", "properties": {"user": TEXT, "password": TEXT}},
    },
}


@pytest.fixture
async def server() -> AsyncIterator[TaskScript]:
    async with TaskScript() as script:
        script.ask("t1", approve=APPROVE, login=LOGIN)
        yield script


@pytest.fixture
async def program(tmp_path: Path, server: TaskScript) -> Program:
    return await tracking(tmp_path / "home", "t1", ci=server.url)


async def test_the_export_proves_an_answer_and_holds_no_secret(
    program: Program, server: TaskScript, tmp_path: Path
) -> None:
    await run(program, "answer", "t1", "approve", "--field", "ok=true")
    given = ["--field", "user=ada", "--field", f"password={SECRET}"]
    done = await run(program, "answer", "t1", "login", *given, "--json")
    assert json.loads(done.stdout)["response"]["content"] == {"user": "ada", "password": "sent, not kept"}
    assert SECRET.encode() in server.updates[1].body

    exported = await run(program, "export", "--server", "ci")
    events = [json.loads(line) for line in exported.stdout.splitlines()]
    assert [event["seq"] for event in events] == sorted(event["seq"] for event in events)
    approve, login = [event["data"] for event in events if event["kind"] == "answer_queued"]
    assert approve["request"] == APPROVE
    assert approve["response"].encode() in server.updates[0].body
    assert approve["digest"] == f"sha256:{hashlib.sha256(approve['response'].encode()).hexdigest()}"
    taken = [event["data"] for event in events if event["kind"] == "answer_acknowledged"]
    assert [data["digest"] for data in taken] == [approve["digest"], login["digest"]]
    assert login["withheld"] is True

    path = tmp_path / "home" / "log.csv"
    await run(program, "export", "--format", "csv", "--output", str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    for argv in (["show", "t1"], ["show", "t1", "--json"], ["list", "--json"], ["export"]):
        assert SECRET not in (await run(program, *argv)).stdout
    kept = [file.name for file in (tmp_path / "home").rglob("*") if file.is_file()]
    assert {"inbox.db", "taskinbox.log", "log.csv"} <= set(kept)
    for file in (tmp_path / "home").rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file.name


async def test_forgetting_a_task_takes_nothing_from_the_export(program: Program) -> None:
    await run(program, "answer", "t1", "approve", "--decline")
    before = (await run(program, "export")).stdout
    await run(program, "forget", "t1")
    after = (await run(program, "export")).stdout
    assert after.startswith(before)
    assert json.loads(after.splitlines()[-1])["kind"] == "forgotten"


async def test_whoever_reads_only_the_beginning_causes_no_error(program: Program) -> None:
    def head() -> tuple[int, bytes]:
        running = subprocess.Popen(
            program.command("export", "--format", "csv"),
            env=program.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert running.stdout is not None
        running.stdout.close()
        _, told = running.communicate(timeout=60)
        return running.returncode, told

    code, told = await asyncio.to_thread(head)
    assert code in (0, 141)
    assert b"Traceback" not in told
