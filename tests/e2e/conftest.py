"""Fixtures of the end-to-end tests: real processes over real sockets."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.demo import demo as demo
from fakes.peers import fastmcp_json_url as fastmcp_json_url
from fakes.peers import fastmcp_url as fastmcp_url

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is here, and keep one file's tests on one worker: they share a peer."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("e2e")
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
