"""The documentation of the library: its examples run, and it names what is there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.demo import DemoProcess

import mcp_client
from mcp_client import McpClient, StdioTransport

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
PAGE = (ROOT / "docs" / "mcp_client.md").read_text()


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[DemoProcess]:
    with DemoProcess(tmp_path / "demo") as running:
        yield running


def run(name: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run an example as a reader would."""
    command = [sys.executable, str(EXAMPLES / name), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


async def handle_of(demo: DemoProcess, tool: str, **arguments: object) -> str:
    async with McpClient.http(demo.url) as client:
        outcome = await client.call_tool(tool, arguments)
    assert isinstance(outcome, mcp_client.CreateTaskResult)
    return outcome.task_id


@pytest.mark.e2e
async def test_the_example_that_runs_a_task_runs(demo: DemoProcess) -> None:
    done = run("run_task.py", demo.url, "deploy_service", '{"service": "web", "build": "4711"}')
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"asked: [^\n]+\n(?:asked: [^\n]+\n)*completed: \{.+\}\n", done.stdout), done.stdout


@pytest.mark.e2e
async def test_the_example_that_listens_runs(demo: DemoProcess) -> None:
    task_id = await handle_of(demo, "long_build", minutes=1)
    done = run("listen.py", demo.url, task_id)
    assert done.returncode == 0, done.stderr
    assert f"{task_id} completed" in done.stdout


@pytest.mark.parametrize("name", ["run_task.py", "listen.py"])
def test_an_example_without_a_server_ends_with_one_line(name: str) -> None:
    done = run(name, "http://127.0.0.1:9/mcp", "x")
    assert done.returncode == 1
    assert re.fullmatch(r"TransportError: [^\n]+\n", done.stderr)


def test_the_page_names_every_verb_and_every_error() -> None:
    verbs = {name for name in vars(McpClient) if not name.startswith("_")} - {
        "aclose",
        "knows",
        "output_faults",
    }
    errors = {
        name for name in mcp_client.__all__ if name.endswith(("Error", "Required", "Request", "Server"))
    }
    missing = [name for name in verbs if f"{name}(" not in PAGE]
    missing += [name for name in errors - {"McpError", "InputRequest"} if f"`{name}`" not in PAGE]
    assert missing == []


def test_every_name_in_the_page_s_code_is_exported() -> None:
    named = set(re.findall(r"`([A-Z][A-Za-z]+)(?:\(|`)", PAGE)) - {"None"}
    assert named <= set(mcp_client.__all__) | {"Bearer"}
    assert StdioTransport.__name__ in named
