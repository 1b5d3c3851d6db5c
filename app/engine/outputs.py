"""Structured results, held against the output schemas of the tools that returned them (server/tools).

A result that breaks its schema is shown with what is wrong; it is never hidden, and never mended.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final

import simplejson

from app.engine import reconcile
from app.engine.commands import EngineError
from app.engine.servers import Servers
from app.engine.watcher import Observer
from app.text import inert_line
from mcp_client import McpClient, McpError, read_tool_result
from storage.errors import UnknownTask
from storage.reader import StoreReader
from storage.records import TaskKey

LISTING_S: Final = 5.0
"""Seconds a server has to list its tools for this."""

log = logging.getLogger(__name__)


class Outputs:
    """Judges the results that are in the store by their server's tools as they are listed now."""

    def __init__(self, reader: StoreReader, servers: Servers, observer: Observer) -> None:
        self._reader = reader
        self._servers = servers
        self._observer = observer

    async def judge(self, key: TaskKey) -> str | None:
        """Store what is wrong with the result of a task or call, and return it; ``None``: nothing, or nobody
        can tell."""
        broken = await self._judged(key)
        if broken is not None:
            with suppress(UnknownTask):  # forgotten meanwhile
                await self._observer.change(key, lambda task, _: reconcile.faulty_result(task, broken))
        return broken

    async def _judged(self, key: TaskKey) -> str | None:
        task = self._reader.task(key)
        # The tool of a task that was made elsewhere is not known.
        if task is None or task.tool is None or task.state.result_json is None or task.state.is_error:
            return None
        tool = task.tool
        result = read_tool_result(simplejson.loads(task.state.result_json, use_decimal=True))

        async def ask(client: McpClient) -> tuple[str, ...]:
            if result.has_structured_content or client.knows(tool):
                await client.list_tools()  # as they are now, by the cache where that is still fresh
            return await client.output_faults(tool, result)

        try:
            async with asyncio.timeout(LISTING_S):
                found = await self._servers.request(key.server, ask)
        except (McpError, EngineError, TimeoutError) as error:
            log.info("The tools of %s are not known: %s", inert_line(key.server), type(error).__name__)
            return None
        return " ".join(inert_line(fault, 300) for fault in found) or None
