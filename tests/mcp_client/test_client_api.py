"""The package's face: what it exports, and what it must not import."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest
from fakes.mcp_server import ScriptedServer, result

import mcp_client
from mcp_client import McpClient, McpError


def test_everything_exported_exists_once_and_in_order() -> None:
    names = mcp_client.__all__
    assert len(set(names)) == len(names)
    assert all(hasattr(mcp_client, name) for name in names)


def test_everything_public_that_a_caller_can_reach_is_exported() -> None:
    public = {
        name
        for name, value in vars(mcp_client).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert public == set(mcp_client.__all__)


def test_every_error_of_the_package_is_exported_and_in_the_tree() -> None:
    from mcp_client import errors

    kinds = {
        name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, McpError)
    }
    assert kinds <= set(mcp_client.__all__)
    assert errors.__doc__ is not None
    assert all(kind in errors.__doc__ for kind in kinds)


def test_every_exported_class_and_function_is_documented() -> None:
    for name in mcp_client.__all__:
        value = getattr(mcp_client, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__doc__, name


def test_the_package_knows_no_screen_and_no_store() -> None:
    code = (
        "import sys, mcp_client;"
        "print([m for m in ('textual', 'sqlite3', 'storage', 'app') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.rule("index.request-id-unique", "mrtr.new-id")
async def test_no_two_clients_ever_use_the_same_request_id() -> None:
    """A call that is repeated by another program after a restart is another request (basic/patterns/mrtr)."""
    async with ScriptedServer() as server:
        server.on("x/y", result({"resultType": "complete"}))
        for _ in range(3):
            async with McpClient.http(server.url) as client:
                await client.request("x/y")
                await client.request("x/y")
        ids = [request.json["id"] for request in server.received]
    assert len(set(ids)) == 6
    assert all(isinstance(one, str) for one in ids)
