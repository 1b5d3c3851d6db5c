"""The engine against servers of other people: all in ``../shared/peers``, and one on the TypeScript SDK.

The former are kept beside this repository, the latter needs what ``make peers`` installs; where they are not
there, the tests are skipped.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fakes.inbox import Inbox, Running
from fakes.peers import free_port, running

from app.config import ServersFile
from app.engine.commands import Answer, EngineError
from mcp_client import CreateTaskResult, McpClient, TaskNotification
from storage.records import QuestionRecord, TaskKey

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "peers"
CONFORMANCE = ROOT / "tests" / "conformance"
INSTALLED = ROOT / "build" / "conformance"


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """Return what starts a server of the shared folder, once for each way, and gives its endpoint."""
    known: dict[tuple[str, ...], str] = {}
    with ExitStack() as stack:

        def start(name: str, *flags: str, **environment: str) -> str:
            script = SHARED / name
            if not script.exists():
                pytest.skip(f"{script} is not there")
            settings = [f"{key}={value}" for key, value in environment.items()]
            asked = (name, *flags, *settings)
            if asked not in known:
                port = free_port()
                command = ["env", *settings, sys.executable, str(script), str(port), *flags]
                stack.enter_context(running(command, port, tmp_path_factory.mktemp("peer") / "log"))
                known[asked] = f"http://127.0.0.1:{port}/mcp"
            return known[asked]

        yield start


@asynccontextmanager
async def inbox(root: Path, url: str, environ: dict[str, str] | None = None) -> AsyncIterator[Inbox]:
    """Run an engine that knows *url* as ``real``; with an environment, behind the token in ``TOKEN``."""
    if environ is not None:
        file = root / "config" / "mcp.json"
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not file.exists():
            ServersFile(file).add("real", url, {"Authorization": "Bearer ${TOKEN}"})
    opened = await Inbox.open(root, {"real": url}, environ=environ)
    try:
        async with Running(opened.engine):
            yield opened
    finally:
        await opened.close()


@pytest.fixture(params=["SSE", "JSON"])
async def stock(
    request: pytest.FixtureRequest, tmp_path: Path, peer: Callable[..., str]
) -> AsyncIterator[Inbox]:
    """An engine on the library as it ships, in each way it replies."""
    flags = ["--json"] if request.param == "JSON" else []
    async with inbox(tmp_path, peer("fastmcp_server.py", *flags)) as opened:
        yield opened


async def call(box: Inbox, tool: str, **arguments: Any) -> TaskKey:
    """Call a tool and return where it stands in the inbox."""
    return (await box.engine.call("real", tool, json.dumps(arguments))).key


async def result(box: Inbox, key: TaskKey) -> str:
    """Return the result, or the error, of a task once it is over, as JSON."""
    await box.until(lambda: box.task(key).section == "finished")
    state = box.task(key).state
    return state.result_json or state.error_json or ""


async def questions(box: Inbox, key: TaskKey, count: int) -> list[QuestionRecord]:
    """Return the open questions of a task once there are *count*."""

    def found() -> list[QuestionRecord]:
        return [question for question in box.reader.questions(key) if question.is_open]

    await box.until(lambda: len(found()) == count)
    return found()


@pytest.mark.parametrize(
    ("tool", "status", "is_error", "says"),
    [
        ("quick", "completed", False, "quick 1"),
        ("required_task", "completed", False, "done 1"),
        ("boom", "completed", True, ""),
        ("tool_error", "completed", True, "visible tool error"),
        ("returns_is_error", "completed", True, "bad input"),
        ("protocol_error", "failed", False, "API rate limit exceeded"),
        ("elicit_imperative", "completed", True, ""),
        ("rich", "completed", False, "line1"),
        ("plain_sync", "completed", False, "sync done"),
    ],
)
async def test_each_way_a_tool_ends_is_kept_as_what_it_is(
    stock: Inbox, tool: str, status: str, is_error: bool, says: str
) -> None:
    key = await call(stock, tool)
    assert says in await result(stock, key)
    state = stock.task(key).state
    assert (state.status, state.is_error) == (status, is_error)


async def test_progress_of_a_task_is_kept_as_its_status_message(stock: Inbox) -> None:
    key = await call(stock, "slow", seconds=2)
    await stock.until(lambda: (stock.task(key).state.status_message or "").startswith("step "))
    assert '"steps": 2' in await result(stock, key) or '"steps":2' in await result(stock, key)


async def test_a_form_of_thirteen_fields_is_answered_as_it_was_given(stock: Inbox) -> None:
    key = await call(stock, "ask_form")
    (asked,) = await questions(stock, key, 1)
    properties = json.loads(asked.request_json)["params"]["requestedSchema"]["properties"]
    assert len(properties) == 13
    content = '{"email": "ada@example.com", "replicas": 3, "env": "prd", "ratio": 0.10, "tags": ["x"]}'
    await stock.engine.answer(key, [Answer(asked, "accept", content)])
    said = await result(stock, key)
    for part in ("action=accept", "'env': 'prd'", "'ratio': 0.1", "'tags': ['x']", "state=s1"):
        assert part in said
    assert "site" not in said


async def test_two_questions_are_followed_by_a_third_under_a_key_of_the_first_two(stock: Inbox) -> None:
    key = await call(stock, "ask_two")
    for asked in await questions(stock, key, 2):
        await stock.engine.answer(key, [Answer(asked, "accept", json.dumps({"value": asked.key}))])
    await stock.until(lambda: len(stock.reader.questions(key)) == 3)
    (third,) = await questions(stock, key, 1)
    assert "Third" in third.request_json
    await stock.engine.answer(key, [Answer(third, "accept", '{"value": "last"}')])
    said = await result(stock, key)
    assert "last" in said
    assert "state=leg2" in said


async def test_a_question_in_url_mode_is_accepted_without_content(stock: Inbox) -> None:
    key = await call(stock, "ask_url")
    (asked,) = await questions(stock, key, 1)
    await stock.engine.answer(key, [Answer(asked, "accept")])
    assert "action=accept" in await result(stock, key)


async def test_what_is_not_answered_here_leaves_cancelling(stock: Inbox) -> None:
    key = await call(stock, "ask_sampling_roots")
    asked = await questions(stock, key, 2)
    assert {question.method for question in asked} == {"sampling/createMessage", "roots/list"}
    await stock.engine.cancel(key)
    await result(stock, key)
    assert stock.task(key).state.status == "cancelled"
    assert set(stock.states(key).values()) == {"withdrawn"}


async def test_a_question_before_the_answer_takes_its_state_back_unchanged(stock: Inbox) -> None:
    key = await call(stock, "mrtr_sync")
    await stock.engine.answer(key, [stock.accept(key, "who", '{"name": "Ann"}')])
    said = await result(stock, key)
    assert "Ann" in said
    assert "state=opaque-state" in said


async def test_a_call_that_is_silent_until_the_server_pings_is_waited_for(
    tmp_path: Path, peer: Callable[..., str]
) -> None:
    async with McpClient.http(peer("fastmcp_server.py")) as client:
        outcome = await client.call_tool("silent_sync", {"seconds": 17})
    assert "silent done" in json.dumps(outcome.raw)


@pytest.fixture
def listening_url(peer: Callable[..., str]) -> str:
    return peer("fastmcp_ext_server.py", TTL="5", PING="1")


async def test_a_subscription_tells_of_each_step_and_ends_with_the_task(listening_url: str) -> None:
    async with McpClient.http(listening_url) as client:
        made = await client.call_tool("slow", {"seconds": 2})
        assert isinstance(made, CreateTaskResult)
        async with client.listen([made.task_id, "no-such-task"]) as subscription:
            assert subscription.accepted == {made.task_id}
            told = [event async for event in subscription]
        assert subscription.ending is not None
        assert subscription.ending.kind == "finished"
        assert subscription.faults == ()
    tasks = [event.task for event in told if isinstance(event, TaskNotification)]
    assert tasks[-1].status == "completed"
    assert len(tasks) == len(told) > 1


async def test_a_question_before_a_task_is_answered_and_the_task_completes(
    tmp_path: Path, listening_url: str
) -> None:
    async with inbox(tmp_path, listening_url) as box:
        asked = await call(box, "test_tool_with_task")
        assert box.task(asked).kind == "call"
        delivery = await box.engine.answer(asked, [box.accept(asked, "user_name", '{"name": "Ann"}')])
        assert delivery.outcome is not None
        assert delivery.outcome.kind == "task"
        assert "escalated" in await result(box, delivery.outcome.key)


async def test_a_task_that_its_server_forgot_is_lost_and_its_question_stays_on_record(
    tmp_path: Path, listening_url: str
) -> None:
    async with inbox(tmp_path, listening_url) as box:
        key = await call(box, "ask")
        await questions(box, key, 1)
        await box.until(lambda: box.task(key).section == "lost")
        (kept,) = box.reader.questions(key)
        assert "name?" in kept.request_json
        assert box.task(key).state.status == "input_required"


@pytest.fixture
def secured_url(peer: Callable[..., str]) -> str:
    return peer("fastmcp_auth_server.py")


async def test_a_token_from_the_environment_opens_the_server_and_is_written_nowhere(
    tmp_path: Path, secured_url: str
) -> None:
    async with inbox(tmp_path, secured_url, {"TOKEN": "alice-token"}) as box:
        report = await box.engine.test_server("real")
        assert (report.has_tasks, report.tools) == (True, 1)
        assert "ok" in await result(box, await call(box, "slow", seconds=1))
    assert files_with(tmp_path, b"${TOKEN}")
    assert not files_with(tmp_path, b"alice-token")


def files_with(folder: Path, words: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and words in path.read_bytes()]


@pytest.mark.parametrize(
    ("environ", "failure", "says"),
    [
        (None, "sign-in", "sign-in"),
        ({"TOKEN": "wrong-token"}, "sign-in", "sign-in"),
        ({}, "invalid", "TOKEN"),
    ],
)
async def test_without_a_token_that_is_good_the_server_is_not_spoken_to(
    tmp_path: Path, secured_url: str, environ: dict[str, str] | None, failure: str, says: str
) -> None:
    async with inbox(tmp_path, secured_url, environ) as box:
        with pytest.raises(EngineError) as refused:
            await box.engine.test_server("real")
        assert refused.value.failure == failure
        assert "real" in refused.value.message
        assert says in refused.value.message


async def test_another_ones_task_is_unknown_and_our_record_of_it_stays(
    tmp_path: Path, secured_url: str
) -> None:
    root = tmp_path / "home"
    async with inbox(root, secured_url, {"TOKEN": "alice-token"}) as box:
        key = await call(box, "slow", seconds=60)
        assert box.task(key).section == "running"
    async with inbox(tmp_path / "bob", secured_url, {"TOKEN": "bob-token"}) as other:
        with pytest.raises(EngineError) as unknown:
            await other.engine.track("real", key.id)
        assert unknown.value.failure == "unknown-task"
    async with inbox(root, secured_url, {"TOKEN": "bob-token"}) as box:
        await box.until(lambda: box.task(key).section == "lost")
        assert (box.task(key).tool, box.task(key).state.status) == ("slow", "working")
    async with inbox(root, secured_url, {"TOKEN": "alice-token"}) as box:
        await box.engine.refresh(key)
        assert box.task(key).section == "running"
        await box.engine.cancel(key)
        await result(box, key)


def installed(part: str) -> Path:
    """Return a file that ``make peers`` has installed."""
    if not (INSTALLED / "node").exists():
        pytest.skip("make peers has installed nothing in build/conformance")
    return INSTALLED / part


@pytest.fixture
def typescript_url(tmp_path: Path) -> Iterator[str]:
    """A server on the official TypeScript SDK."""
    port = free_port()
    script = installed(f"ts_server_{port}.mjs")  # beside node_modules, where its imports are found
    script.write_bytes((CONFORMANCE / "ts_server.mjs").read_bytes())
    command = [str(INSTALLED / "node"), str(script), "http", str(port)]
    try:
        with running(command, port, tmp_path / "log"):
            yield f"http://127.0.0.1:{port}/mcp"
    finally:
        script.unlink()


@pytest.fixture
def older_url(tmp_path: Path) -> Iterator[str]:
    """A server on the first TypeScript SDK, which speaks 2025-11-25."""
    port = free_port()
    script = installed("node_modules/@modelcontextprotocol/server-everything/dist/index.js")
    loopback = f"--import={(CONFORMANCE / 'loopback.mjs').as_uri()}"
    command = ["env", f"PORT={port}", str(INSTALLED / "node"), loopback, str(script), "streamableHttp"]
    with running(command, port, tmp_path / "log"):
        yield f"http://127.0.0.1:{port}/mcp"


async def test_a_server_of_an_older_revision_is_named_as_that(tmp_path: Path, older_url: str) -> None:
    async with inbox(tmp_path / "home", older_url) as box:
        asked = box.engine.test_server("real"), box.engine.call("real", "echo", '{"message": "hi"}')
        for asking in asked:
            with pytest.raises(EngineError) as refused:
                await asking
            assert "real" in refused.value.message
            assert "2025-11-25, which has no Tasks extension" in refused.value.message
        assert box.reader.counts() == dict.fromkeys(box.reader.counts(), 0), "a call that was never made"


async def test_calls_tasks_and_questions_of_the_typescript_sdk_go_through_the_inbox(
    tmp_path: Path, typescript_url: str
) -> None:
    async with inbox(tmp_path / "home", typescript_url) as box:
        report = await box.engine.test_server("real")
        assert (report.title, report.versions, report.has_tasks) == ("ts-peer 1.0.0", ("2026-07-28",), True)
        assert "Hello, Ada!" in await result(box, await call(box, "greet", name="Ada", region=" é "))
        first = await call(box, "ask_first")
        await box.engine.answer(first, [box.accept(first, "who", '{"name": "Ann"}')])
        assert 'accept Ann one \\"é\\" two' in await result(box, first)
        asking = await call(box, "ask")
        (asked,) = await questions(box, asking, 1)
        await box.engine.answer(asking, [Answer(asked, "accept", '{"name": "Eve"}')])
        assert "accept Eve" in await result(box, asking)
        assert "out of paper" in await result(box, await call(box, "broken"))
        slow = await call(box, "slow", ms=60_000)
        await box.engine.cancel(slow)
        await result(box, slow)
        assert box.task(slow).state.status == "cancelled"
