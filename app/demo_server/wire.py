"""HTTP and JSON-RPC: from the bytes of a request to a verb of the service, and back.

Everything a client can get wrong about the envelope is refused here; the service sees only well-formed
requests of the right version.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from app.demo_server import headers
from app.demo_server.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    RpcError,
)
from app.demo_server.listening import METHOD as LISTEN
from app.demo_server.listening import Listening, left
from app.demo_server.owners import Caller
from app.demo_server.polling import PollLimit
from app.demo_server.service import PROTOCOL_VERSION, Client, Reply, Service

BODY_LIMIT: Final = 1024 * 1024
"""Bytes of a request's body."""
BODY_SECONDS: Final = 20.0
"""How long a client may take to send it."""

_LOCAL: Final = frozenset({"127.0.0.1", "localhost", "::1"})
_META: Final = "io.modelcontextprotocol/"

_log = logging.getLogger(__name__)

RequestId = str | int | None


class Endpoint:
    """The one endpoint of the service."""

    def __init__(
        self,
        service: Service,
        listening: Listening,
        caller_of: Callable[[str | None], Caller | None],
        polls: PollLimit | None = None,
    ) -> None:
        """*caller_of* reads the header ``Authorization``; without *polls*, polling is not limited."""
        self._service = service
        self._listening = listening
        self._caller_of = caller_of
        self._polls = polls

    async def post(self, request: Request) -> Response:
        """Answer one POST."""
        request_id: RequestId = None
        try:
            given = headers.joined(request.headers.items())
            _check_source(given)
            caller = self._caller(given)
            message = _decode(await _body(request))
            request_id = _id(message)
            if "id" not in message:
                return Response(status_code=202)
            result = self._dispatch(message, given, caller)
            if isinstance(result, Awaitable):
                result = await _unless_over(request, self._listening.closing, result)
        except RpcError as error:
            return _reply({"error": error.body()}, request_id, error.http_status, error.headers)
        except sqlite3.Error:
            _log.exception("the store refused")
            lost = RpcError(INTERNAL_ERROR, "the service can't reach its data")
            return _reply({"error": lost.body()}, request_id, lost.http_status)
        return result if isinstance(result, Response) else _reply({"result": result}, request_id, 200)

    async def other(self, request: Request) -> Response:
        """Answer what is no POST: nothing is here for it, once it comes from where it may."""
        try:
            given = headers.joined(request.headers.items())
            _check_source(given)
            self._caller(given)
        except RpcError as error:
            return _reply({"error": error.body()}, None, error.http_status, error.headers)
        return Response(status_code=405, headers={"Allow": "POST"})

    def _caller(self, given: Mapping[str, str]) -> Caller:
        authorization = given.get("authorization")
        caller = self._caller_of(authorization)
        if caller is None:
            # RFC 6750, 3.1: whoever brought no token at all is told nothing of an error.
            challenge = "Bearer" if authorization is None else 'Bearer error="invalid_token"'
            raise RpcError(
                INVALID_REQUEST,
                "this service needs a valid bearer token",
                http_status=401,
                headers={"WWW-Authenticate": challenge},
            )
        return caller

    def _dispatch(
        self, message: Mapping[str, Any], given: Mapping[str, str], caller: Caller
    ) -> Reply | Response:
        method = message["method"]
        params = message.get("params", {})
        if method == "initialize" and not _is_modern(params):
            # A client of an older revision; it learns what is spoken here.
            raise _unsupported(params.get("protocolVersion") if isinstance(params, dict) else None)
        if not isinstance(params, dict):
            raise RpcError(INVALID_PARAMS, "params must be an object", http_status=400)
        client = _client(params, given, caller)
        headers.check_method(given, method)
        if method == LISTEN:
            return self._listening.open(message["id"], params, client)
        verb = self._service.verbs.get(method)
        if verb is None:
            known = {"supported": [PROTOCOL_VERSION]} if method == "initialize" else None
            raise RpcError(METHOD_NOT_FOUND, f"method not found: {method}", known)
        if method.startswith("tasks/"):
            client.need(tasks=True)
        headers.check_name(given, method, params)
        if method == "tools/call":
            headers.check_params(
                given, self._service.input_schema(params["name"]) or {}, params.get("arguments")
            )
        if method == "tasks/get" and client.tasks and self._polls is not None:
            self._polls.check(caller.tenant, params["taskId"])
        return verb(params, client)


async def _unless_over(
    request: Request, closing: asyncio.Event, work: Awaitable[dict[str, Any]]
) -> dict[str, Any]:
    """Do work that takes its time; a client that leaves has cancelled it (the page on cancellation)."""
    working = asyncio.ensure_future(work)
    ends = (asyncio.create_task(left(request.receive)), asyncio.create_task(closing.wait()))
    try:
        await asyncio.wait((working, *ends), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise RpcError(INTERNAL_ERROR, "the call was not finished: the service ended", http_status=503)
        return working.result()
    finally:
        for each in (working, *ends):
            each.cancel()
        await asyncio.wait((working, *ends))


def _check_source(given: Mapping[str, str]) -> None:
    """Refuse what a page in a browser could send here by a name that it made resolve to this machine."""
    if _host(f"//{given.get('host', '')}") not in _LOCAL:
        raise RpcError(INVALID_REQUEST, "this service answers to local host names only", http_status=403)
    origin = given.get("origin")
    if origin is not None and _host(origin) not in _LOCAL:
        raise RpcError(INVALID_REQUEST, "this service answers to local origins only", http_status=403)


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


async def _body(request: Request) -> bytes:
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise RpcError(INVALID_REQUEST, "the body must be application/json", http_status=415)
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > BODY_LIMIT:
                    raise RpcError(INVALID_REQUEST, f"a body has at most {BODY_LIMIT} bytes", http_status=413)
    except TimeoutError:
        raise RpcError(INVALID_REQUEST, "the body took too long", http_status=408) from None
    except ClientDisconnect:
        raise RpcError(INVALID_REQUEST, "the client left") from None
    return bytes(body)


def _decode(body: bytes) -> dict[str, Any]:
    try:
        # Refuses what json.loads lets through and SQLite or a reply could not carry: lone surrogates, NaN.
        message = from_json(body, allow_inf_nan=False)
        json.dumps(message, allow_nan=False)  # a number such as 1e999 has become infinite by now
    except ValueError as error:
        raise RpcError(PARSE_ERROR, f"the body is not JSON that can be kept: {error}") from None
    if isinstance(message, list):
        raise RpcError(INVALID_REQUEST, "a body is one message, not a batch")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, "the body is not a JSON-RPC 2.0 message")
    return message


def _id(message: Mapping[str, Any]) -> RequestId:
    request_id = message.get("id")
    if "id" in message and (isinstance(request_id, bool) or not isinstance(request_id, str | int)):
        raise RpcError(INVALID_REQUEST, "an id is a string or an integer")
    if not isinstance(message.get("method"), str):
        raise RpcError(INVALID_REQUEST, "a message needs a method; responses are not accepted")
    return request_id


def _is_modern(params: object) -> bool:
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and f"{_META}protocolVersion" in meta


def _client(params: Mapping[str, Any], given: Mapping[str, str], caller: Caller) -> Client:
    """Check what every request says about itself, and return what its sender can do."""
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        raise RpcError(INVALID_PARAMS, "params._meta is missing", http_status=400)
    version = meta.get(f"{_META}protocolVersion")
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"_meta needs {_META}protocolVersion, a string", http_status=400)
    headers.check_version(given, version)
    if version != PROTOCOL_VERSION:
        raise _unsupported(version)
    capabilities = meta.get(f"{_META}clientCapabilities")
    if not isinstance(capabilities, dict):
        raise RpcError(INVALID_PARAMS, f"_meta needs {_META}clientCapabilities, an object", http_status=400)
    return Client.from_capabilities(capabilities, caller)


def _unsupported(requested: object) -> RpcError:
    return RpcError(
        UNSUPPORTED_VERSION,
        "unsupported protocol version",
        {"supported": [PROTOCOL_VERSION], "requested": requested if isinstance(requested, str) else ""},
    )


def _reply(
    body: Mapping[str, Any], request_id: RequestId, status: int, more: Mapping[str, str] | None = None
) -> Response:
    # An error that answers no particular request carries no id at all.
    envelope = {"jsonrpc": "2.0", **({} if request_id is None else {"id": request_id}), **body}
    text = json.dumps(envelope, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Response(text.encode(), status, more, media_type="application/json")
