"""Requests on their way: ids, `_meta`, the protocol version, and what is known of the server's era.

Pages: basic/index (`_meta`), basic/versioning, basic/transports ("Backward Compatibility").
"""

from __future__ import annotations

import asyncio
import itertools
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Final

from mcp_client import headers as wire_headers
from mcp_client import jsonrpc, reading
from mcp_client.errors import InvalidRequest, LegacyServer, McpError, ServerError, TransportError
from mcp_client.jsonrpc import PROTOCOL_VERSION, JSONObject, Outgoing
from mcp_client.limits import Limits
from mcp_client.transport import OnMessage, Transport
from mcp_client.types import ClientCapabilities, DiscoverResult, Implementation, Progress

VERSIONS: Final = (PROTOCOL_VERSION,)
"""The protocol versions spoken here, the preferred one first."""
LAST_LEGACY: Final = "2025-11-25"
"""The last revision with a handshake; named in the one that tells which revision an old server speaks."""

HANDSHAKE_SECONDS: Final = 5.0
"""For the answer to the old handshake: who was silent before has had the time to start."""

_META: Final = "io.modelcontextprotocol/"
_SLOW_METHODS: Final = frozenset({"tools/call"})
_REVISION: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

OnProgress = Callable[[Progress], None]
Headers = Callable[[JSONObject], tuple[tuple[str, str], ...]]


class Sender:
    """Sends requests to one server; each stands for itself.

    A request that the server refuses for its protocol version is sent once more with one that both speak.
    A server of an older revision is told apart from a broken one by its answer to the old handshake, and
    remembered; over HTTP the next request is always the next probe, on stdio the next process is.
    """

    def __init__(
        self,
        transport: Transport,
        client_info: Implementation,
        capabilities: ClientCapabilities,
        limits: Limits,
    ) -> None:
        self.transport = transport
        self.limits = limits
        # Ids are unlike those of every other client and program: a request that is repeated after a restart
        # must not look like the one before (basic/patterns/mrtr, Client Requirements).
        token = secrets.token_hex(4)
        self._ids = (f"{token}-{number}" for number in itertools.count(1))
        self._info = client_info.to_wire()
        self._capabilities = capabilities.to_wire()
        self._version = VERSIONS[0]
        self._peer: int | None = None
        """The peer whose era is known; ``None``: none is, or there is nothing to know in advance."""
        self._legacy: LegacyServer | None = None
        self._probing = asyncio.Lock()
        self.on_discovery: Callable[[JSONObject], None] = lambda result: None
        """Told the result of each probe, which says the same as a server/discover of one's own."""
        self.on_tools_changed: Callable[[], None] = lambda: None
        """Told that the list of tools is another one now."""

    async def send(
        self,
        method: str,
        params: JSONObject,
        *,
        timeout: float | None = None,
        on_notification: OnMessage | None = None,
        on_progress: OnProgress | None = None,
        headers: Headers | None = None,
    ) -> JSONObject:
        """Send a request and return its result; raises `McpError`."""
        await self.ready()
        try:
            return await self._sent(method, params, timeout, on_notification, on_progress, headers)
        except (ServerError, TransportError) as error:
            await self.check(error, method)
        return await self._sent(method, params, timeout, on_notification, on_progress, headers)

    async def ready(self) -> None:
        """Make sure that there is a peer that speaks this revision, where that can be known in advance.

        Raises `LegacyServer`, or what a request raises.
        """
        peer = await self.transport.connect()
        if peer is None:
            return
        async with self._probing:
            await self._meet(peer)
        if self._legacy is not None:
            raise self._legacy

    def outgoing(
        self,
        method: str,
        params: JSONObject,
        *,
        progress: bool = False,
        headers: Headers | None = None,
    ) -> Outgoing:
        """Return a request ready to be sent, under a new id; raises `InvalidRequest`."""
        request_id = next(self._ids)
        meta = params.get("_meta") or {}
        if not isinstance(meta, Mapping):
            raise InvalidRequest("The request's _meta is not an object.")
        own = {
            f"{_META}protocolVersion": self._version,
            f"{_META}clientInfo": self._info,
            f"{_META}clientCapabilities": self._capabilities,
            **({"progressToken": request_id} if progress else {}),
        }
        whole = {**params, "_meta": {**meta, **own}}
        return Outgoing(
            request_id,
            method,
            wire_headers.routing_name(method, whole),
            jsonrpc.encode_request(request_id, method, whole),
            () if headers is None else headers(whole),
            self._version,
        )

    def can_retry(self, error: ServerError) -> bool:
        """Say whether *error* refused a version where another will do, or the same one that it now names.

        That one is used from then on. Nothing was done for the refused request: the check comes first.
        """
        common = _common(error.supported or ())
        if common is not None:
            self._version = common
        return common is not None

    async def check(self, error: ServerError | TransportError, method: str) -> None:
        """Return where the request is worth sending once more; else raise *error*, or the `LegacyServer`
        that is behind it."""
        if isinstance(error, ServerError) and self.can_retry(error):
            return
        legacy = await self._legacy_behind(error, method)
        if legacy is None:
            raise error
        raise legacy from error

    async def _legacy_behind(self, error: ServerError | TransportError, method: str) -> LegacyServer | None:
        if isinstance(error, ServerError) and error.supported is not None:
            return _behind(error.supported)
        if self._peer is not None or not _looks_legacy(error, method):
            return None
        if self._legacy is None:
            async with self._probing:
                self._legacy = self._legacy or await self._handshake()
        return self._legacy

    async def _sent(
        self,
        method: str,
        params: JSONObject,
        timeout: float | None,
        on_notification: OnMessage | None,
        on_progress: OnProgress | None,
        headers: Headers | None,
    ) -> JSONObject:
        request = self.outgoing(method, params, progress=on_progress is not None, headers=headers)
        listener = on_notification if on_progress is None else _progress_listener(request.id, on_progress)
        if timeout is None:
            timeout = self.limits.call_seconds if method in _SLOW_METHODS else self.limits.request_seconds
        incoming = await self.transport.send(request, timeout=timeout, on_message=listener)
        result = jsonrpc.result_of(incoming, request.id)
        if self._peer is None:
            self._legacy = None  # over HTTP a server may be replaced by a newer one at any time
        return result

    async def _meet(self, peer: int) -> None:
        if peer == self._peer:
            return
        self._legacy = None
        self._legacy = await self._probe()
        self._peer = peer

    async def _probe(self) -> LegacyServer | None:
        """Ask a new peer what it speaks (basic/transports/stdio, "Backward Compatibility")."""
        try:
            async with asyncio.timeout(self.limits.probe_seconds):
                result = await self._sent(
                    "server/discover", {}, self.limits.request_seconds, None, None, None
                )
        except TimeoutError:
            legacy = await self._handshake()
            if legacy is None:
                said = f"The server did not answer within {self.limits.probe_seconds:g} s of its start."
                raise TransportError(said, may_have_reached=False) from None
            return legacy
        except ServerError as error:
            if self.can_retry(error):
                return None
            if error.supported is not None:
                legacy = _behind(error.supported)
                if legacy is None:
                    raise
                return legacy
            return None if error.is_modern else await self._handshake() or LegacyServer(None)
        found: DiscoverResult = reading.read_discovery(result)
        common = _common(found.supported_versions)
        if common is not None:
            self._version = common
        self.on_discovery(result)
        return None if common is not None else _behind(found.supported_versions)

    async def _handshake(self) -> LegacyServer | None:
        """Ask in the old way; ``None``: the server does not answer to that either."""
        params = {"protocolVersion": LAST_LEGACY, "capabilities": {}, "clientInfo": self._info}
        request_id = next(self._ids)
        body = jsonrpc.encode_request(request_id, "initialize", params)
        request = Outgoing(request_id, "initialize", None, body, version=None)
        try:
            timeout = min(self.limits.probe_seconds, HANDSHAKE_SECONDS)
            incoming = await self.transport.send(request, timeout=timeout)
            version = jsonrpc.result_of(incoming, request_id).get("protocolVersion")
        except McpError:
            return None
        known = isinstance(version, str) and _REVISION.fullmatch(version)
        return LegacyServer(version if known else None)


def check_versions(found: DiscoverResult) -> DiscoverResult:
    """Return what a server says of itself, with a fault where it names no version that is spoken here.

    Raises `LegacyServer` where it supports older ones only.
    """
    if _common(found.supported_versions) is not None:
        return found
    legacy = _behind(found.supported_versions)
    if legacy is not None:
        raise legacy
    named = ", ".join(found.supported_versions[:5]) or "no version"
    fault = f"It supports {named}, and not {PROTOCOL_VERSION}, which is spoken here."
    return found.model_copy(update={"faults": (*found.faults, fault)})


def _common(supported: tuple[str, ...]) -> str | None:
    return next((version for version in VERSIONS if version in supported), None)


def _behind(supported: tuple[str, ...]) -> LegacyServer | None:
    """Return what a server is that supports these versions, none of which is spoken here."""
    known = [version for version in supported if _REVISION.fullmatch(version)]
    return LegacyServer(max(known)) if known and max(known) < PROTOCOL_VERSION else None


def _looks_legacy(error: ServerError | TransportError, method: str) -> bool:
    """Say whether an old server may refuse in this way over HTTP.

    With 400 and no error that a server of this revision sends; one that keeps no sessions, by not knowing
    server/discover, which every server of this revision has to know.
    """
    if isinstance(error, ServerError):
        return error.is_legacy or (method == "server/discover" and error.is_method_not_found)
    return error.status == 400


def _progress_listener(token: str, on_progress: OnProgress) -> OnMessage:
    def listen(message: JSONObject) -> None:
        params = message.get("params")
        if message.get("method") != "notifications/progress" or not isinstance(params, dict):
            return
        if params.get("progressToken") == token:
            on_progress(reading.read_progress(params))

    return listen
