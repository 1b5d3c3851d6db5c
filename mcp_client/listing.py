"""Lists that come in pages. Pages: server/utilities/pagination, server/utilities/caching.

A cursor is opaque, and any string is one, the empty one too. Each page may be kept for as long as it says; a
list without an end, or one that goes round in circles, is given up.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from mcp_client import jsonrpc, reading
from mcp_client.cache import ResultCache
from mcp_client.errors import ProtocolError, ServerError
from mcp_client.jsonrpc import JSONObject
from mcp_client.limits import Limits
from mcp_client.types import Tool, ToolList

Ask = Callable[[str, JSONObject], Awaitable[JSONObject]]
"""Sends a request; raises `McpError`."""


class Listing:
    """Reads whole lists, from the cache where it may."""

    def __init__(self, ask: Ask, cache: ResultCache, limits: Limits) -> None:
        self._ask = ask
        self._cache = cache
        self._limits = limits

    async def page(self, method: str, params: JSONObject, *, fresh: bool = False) -> JSONObject:
        """Return one result, kept or asked for; *fresh* asks in any case."""
        if not fresh:
            kept = self._cache.get(method, params, depth=self._limits.depth)
            if kept is not None:
                return kept
        result = await self._ask(method, dict(params))
        self._cache.put(method, params, result)
        return result

    async def pages(self, method: str, *, fresh: bool = False) -> list[JSONObject]:
        """Return all pages of a list, in order; raises `ProtocolError` for one that has no end.

        A cursor that is refused makes every kept page worthless: the list is then read anew, once.
        """
        try:
            return await self._read(method, fresh)
        except _StaleCursor:
            self._cache.drop(method)
            try:
                return await self._read(method, True)
            except _StaleCursor as again:
                raise again.error from None

    async def _read(self, method: str, fresh: bool) -> list[JSONObject]:
        found: list[JSONObject] = []
        seen: set[str] = set()
        cursor: str | None = None
        for _ in range(self._limits.pages):
            try:
                page = await self.page(method, {} if cursor is None else {"cursor": cursor}, fresh=fresh)
            except ServerError as error:
                if cursor is not None and error.is_invalid_params:
                    raise _StaleCursor(error) from error
                raise
            found.append(page)
            cursor = page.get("nextCursor")
            if cursor is None:
                return found
            if not isinstance(cursor, str):
                raise ProtocolError("The cursor is not a string.", field="nextCursor")
            if cursor in seen:
                raise ProtocolError(f"The reply to {method} goes round in circles.", field="nextCursor")
            seen.add(cursor)
        raise ProtocolError(
            f"The reply to {method} has more than {self._limits.pages} pages.", field="nextCursor"
        )

    async def tools(self, *, fresh: bool = False) -> ToolList:
        """Return all tools; those that can't be used are left out and named in ``warnings``."""
        tools: dict[str, Tool] = {}
        warnings: list[str] = []
        pages = await self.pages("tools/list", fresh=fresh)
        for page in pages:
            self._take_tools(page, tools, warnings)
        return ToolList(tools=tuple(tools.values()), warnings=tuple(warnings), **_cache_of_all(pages))

    def _take_tools(self, page: JSONObject, tools: dict[str, Tool], warnings: list[str]) -> None:
        entries = page.get("tools")
        if not isinstance(entries, list):
            raise ProtocolError("The tools are not a list.", field="tools")
        if len(tools) + len(warnings) + len(entries) > self._limits.tools:
            raise ProtocolError(f"The server lists more than {self._limits.tools:,} tools.", field="tools")
        for entry in entries:
            tool = reading.read_tool(entry)
            if isinstance(tool, str):
                warnings.append(tool)
            elif tool.name in tools:
                warnings.append(f"The tool {jsonrpc.quoted(tool.name)} is listed twice; the first is used.")
            else:
                tools[tool.name] = tool


class _StaleCursor(Exception):
    def __init__(self, error: ServerError) -> None:
        super().__init__(str(error))
        self.error = error


def _cache_of_all(pages: list[JSONObject]) -> dict[str, Any]:
    kept = [reading.cache_fields(page) for page in pages]
    lengths = [page["ttl_ms"] for page in kept]
    scopes = {page["cache_scope"] for page in kept}
    scope = "private" if "private" in scopes else None if None in scopes else "public"
    return {"ttl_ms": None if None in lengths else min(lengths), "cache_scope": scope}
