"""``answer`` against a server that does not take the answer: the real program and its exit code."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fakes.cli_program import Program, run, tracking
from fakes.mcp_server import Reply, error, http_reply, result, wait
from fakes.task_script import APPROVE, TaskScript

pytestmark = pytest.mark.e2e


@pytest.fixture
async def server() -> AsyncIterator[TaskScript]:
    async with TaskScript() as script:
        script.ask("t1", approve=APPROVE)
        yield script


@pytest.fixture
async def program(tmp_path: Path, server: TaskScript) -> Program:
    """An installation that tracks a task which asks for approval."""
    return await tracking(tmp_path / "home", "t1", ci=server.url)


async def state(program: Program) -> str:
    shown = json.loads((await run(program, "show", "t1", "--json")).stdout)
    return str(shown["questions"][0]["state"])


@pytest.mark.parametrize(
    ("reply", "code", "word"),
    [
        (http_reply(401, headers={"WWW-Authenticate": "Bearer"}), 5, "Sign-in needed"),
        (error(-32603, "disk full"), 1, "disk full"),
        (result({"resultType": 7}), 1, "Invalid reply"),
        (http_reply(200, "{nonsense"), 1, "Invalid reply"),
    ],
    ids=["401", "internal error", "wrong result", "no JSON"],
)
async def test_a_server_that_answers_is_not_called_unreachable(
    program: Program, server: TaskScript, reply: Reply, code: int, word: str
) -> None:
    server.on("tasks/update", reply)
    server.on("tasks/get", server.get)
    done = await run(program, "answer", "t1", "--field", "ok=true", code=None)
    assert done.returncode == code, done.stderr
    if done.returncode == 1 and await state(program) == "refused":
        assert word in done.stderr  # the server's own refusal: the question is open again
    else:
        assert done.stderr.count("aved") == 1, done.stderr
        assert word in done.stderr
        assert await state(program) in ("queued", "sent")
    assert "reached" not in done.stderr


@pytest.mark.parametrize("reply", [http_reply(401), error(-32603, "disk full")])
async def test_a_look_that_fails_before_the_answer_is_sent_has_its_own_code(
    program: Program, server: TaskScript, reply: Reply
) -> None:
    server.on("tasks/get", reply)
    done = await run(program, "answer", "t1", "--field", "ok=true", code=None)
    assert done.returncode in (1, 5)
    assert done.stderr.count("aved") == 1, done.stderr
    assert "reached" not in done.stderr
    assert server.updates == []
    assert await state(program) == "queued"


async def test_an_unreachable_server_ends_with_4_and_the_answer_is_saved(
    program: Program, server: TaskScript
) -> None:
    await server.stop()
    done = await run(program, "answer", "t1", "--field", "ok=true", code=4)
    assert done.stderr.count("aved") == 1, done.stderr
    assert await state(program) == "queued"


async def test_a_refresh_that_fails_prints_what_is_stored(program: Program, server: TaskScript) -> None:
    await server.stop()
    for argv in (["list", "--refresh"], ["show", "t1", "--refresh"]):
        done = await run(program, *argv, code=4)
        assert "t1" in done.stdout
        assert done.stderr.count("\n") == 1


async def test_an_interrupted_call_ends_with_130_and_says_where_it_is_kept(
    program: Program, server: TaskScript
) -> None:
    never = asyncio.Event()
    server.on("tools/call", wait(never, result({"resultType": "complete", "content": []})))
    with program.start("call", "ci", "work") as process:
        await server.wait_for(1, "tools/call")
        process.send_signal(signal.SIGINT)
        out, err = await asyncio.to_thread(process.communicate, timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    (line,) = err.splitlines()
    name, _, rest = line.partition(": ")
    assert name.startswith("call-")
    assert rest == f"outcome unknown; taskinbox show {name}"
    assert "outcome unknown" in (await run(program, "show", name)).stdout
