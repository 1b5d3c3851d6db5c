"""Results that may be used again for a while. Page: server/utilities/caching.

A cache belongs to one client, and so to one sign-in: nothing is ever shared, whatever `cacheScope` says.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mcp_client import jsonrpc, reading
from mcp_client.jsonrpc import JSONObject

BYTES_MOST: Final = 8 * 1024 * 1024
"""Of all results that are kept; the oldest go first."""
TTL_MOST_MS: Final = 24 * 3_600_000
"""However long a server says that its list stays as it is."""


@dataclass(frozen=True, slots=True)
class _Kept:
    body: bytes
    received: float
    ttl_ms: int


class ResultCache:
    """Keeps results by method and parameters for as long as their servers allow.

    *clock* gives seconds, and goes on while the machine sleeps.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._kept: dict[tuple[str, bytes], _Kept] = {}
        self._size = 0

    def get(self, method: str, params: JSONObject, *, depth: int) -> JSONObject | None:
        """Return a result that is still fresh, a copy for each caller; ``None``: there is none."""
        key = method, jsonrpc.encode(params)
        kept = self._kept.get(key)
        if kept is None:
            return None
        age = self._clock() - kept.received
        if not 0 <= age * 1000 < kept.ttl_ms:
            self._drop(key)
            return None
        found = jsonrpc.decode(kept.body, depth=depth)
        assert isinstance(found, dict)
        return found

    def put(self, method: str, params: JSONObject, result: JSONObject) -> None:
        """Keep *result* as long as it says; one that says nothing, or something wrong, is not kept."""
        key = method, jsonrpc.encode(params)
        self._drop(key)
        ttl_ms = reading.cache_fields(result)["ttl_ms"]
        if not ttl_ms:
            return
        body = jsonrpc.encode(result)
        if len(body) > BYTES_MOST:
            return
        self._kept[key] = _Kept(body, self._clock(), min(ttl_ms, TTL_MOST_MS))
        self._size += len(body)
        while self._size > BYTES_MOST:
            self._drop(next(iter(self._kept)))

    def drop(self, method: str) -> None:
        """Forget all results of *method*: they are known to be out of date."""
        for key in [key for key in self._kept if key[0] == method]:
            self._drop(key)

    def clear(self) -> None:
        """Forget everything: who is signed in may not be who was."""
        self._kept.clear()
        self._size = 0

    def _drop(self, key: tuple[str, bytes]) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._size -= len(kept.body)
