"""How a server is, in a word."""

from __future__ import annotations

from dataclasses import replace

from app.engine.problems import describe
from app.tui.words import server_health
from mcp_client import LegacyServer
from storage.records import ServerRecord


def test_a_server_of_an_older_revision_is_too_old_and_not_broken() -> None:
    words = describe(LegacyServer("2025-11-25"))
    record = ServerRecord("old", "faulty", since=0, message=words)
    assert server_health(record, now=60_000).word == "too old"
    assert server_health(replace(record, message="Invalid reply"), now=60_000).word.startswith("faulty")
