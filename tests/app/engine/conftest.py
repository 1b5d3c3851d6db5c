"""A scripted server, and an inbox that knows it as ``ci``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fakes.inbox import Inbox
from fakes.task_script import TaskScript


@pytest.fixture
async def server() -> AsyncIterator[TaskScript]:
    async with TaskScript() as running:
        yield running
    assert not running.errors


@pytest.fixture
async def inbox(tmp_path: Path, server: TaskScript) -> AsyncIterator[Inbox]:
    opened = await Inbox.open(tmp_path, {"ci": server.url})
    yield opened
    await opened.close()
