"""How the tasks of real servers are observed: fastmcp-tasks as it ships, and with subscriptions added.

The servers are those of ``../shared/peers``; where they are not there, the tests are skipped.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fakes.inbox import Inbox, Running
from fakes.peers import free_port, running

SHARED = Path(__file__).parents[3] / "shared" / "peers"

pytestmark = pytest.mark.skipif(not SHARED.exists(), reason="the shared servers are not there")


@asynccontextmanager
async def inbox(root: Path, script: str) -> AsyncIterator[Inbox]:
    """Run an engine at its true pace on a server of the shared folder."""
    port = free_port()
    with running([sys.executable, str(SHARED / script), str(port)], port, root / "log"):
        opened = await Inbox.open(root / "home", {"real": f"http://127.0.0.1:{port}/mcp"}, faster=1)
        try:
            async with Running(opened.engine):
                yield opened
        finally:
            await opened.close()


async def test_a_server_that_tells_of_its_tasks_is_listened_to(tmp_path: Path) -> None:
    async with inbox(tmp_path, "fastmcp_ext_server.py") as box:
        slow = (await box.engine.call("real", "slow", json.dumps({"seconds": 15}))).key
        await box.until(lambda: box.engine.observing("real") == "subscribed")
        asking = (await box.engine.call("real", "ask", "{}")).key
        await box.until(lambda: box.task(asking).section == "needs-you")
        await box.until(lambda: box.engine.observing("real") == "subscribed")
        (question,) = box.reader.questions(asking)
        await box.engine.answer(asking, [box.accept(asking, question.key, '{"name": "Ann"}')])
        await box.until(lambda: box.task(slow).section == "finished")
        assert box.task(slow).state.observed_by == "subscription"
        await box.until(lambda: box.task(asking).section == "finished")
        assert "Ann" in (box.task(asking).state.result_json or "")
        await box.until(lambda: box.engine.observing("real") is None)
        assert box.facts(asking).count("question_asked") == 1
        assert [record.state for record in box.reader.servers()] == ["ok"]


async def test_a_server_without_subscriptions_is_polled(tmp_path: Path) -> None:
    async with inbox(tmp_path, "fastmcp_server.py") as box:
        slow = (await box.engine.call("real", "slow", json.dumps({"seconds": 5}))).key
        await box.until(lambda: box.engine.observing("real") == "polling")
        await box.until(lambda: box.task(slow).section == "finished")
        assert box.task(slow).state.observed_by == "poll"
        assert box.engine.observing("real") in (None, "polling")
        assert [record.state for record in box.reader.servers()] == ["ok"]
