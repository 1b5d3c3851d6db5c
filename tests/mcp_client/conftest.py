"""What the tests of the client share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from fakes.mcp_server import ScriptedServer
from fakes.peers import fastmcp_json_url, fastmcp_url  # noqa: F401

from mcp_client import Limits, McpClient


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    """A scripted server; what its replies raised fails the test."""
    async with ScriptedServer() as running:
        yield running
    assert not running.errors


@pytest.fixture
async def client(server: ScriptedServer) -> AsyncIterator[McpClient]:
    """A client of it that gives up within seconds."""
    async with McpClient.http(server.url, limits=Limits(request_seconds=20, call_seconds=20)) as connected:
        yield connected
