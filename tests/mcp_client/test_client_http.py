"""Streamable HTTP over a real socket: what servers send, whole, broken, late or hostile."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from fakes.mcp_server import (
    Exchange,
    Received,
    Reply,
    ScriptedServer,
    drop,
    error,
    head,
    http_reply,
    message,
    notification,
    pieces,
    reset,
    response,
    result,
    stream,
    wait,
)

from mcp_client import (
    AuthRequired,
    InvalidRequest,
    Limits,
    McpClient,
    McpError,
    ProtocolError,
    ServerError,
    TransportError,
)

OK = {"resultType": "complete", "ok": True}


async def ask(client: McpClient) -> dict[str, Any]:
    return await client.request("test/ask")


# A JSON-RPC answer is the same answer however it travels.


@pytest.mark.rule(
    "http.both-kinds-of-reply",
    "http.both-kinds-understood",
    "http.comments-ignored",
    "wire.json-or-stream",
    "wire.streams-as-they-come",
)
@pytest.mark.parametrize(
    "reply",
    [
        result(OK),
        result(OK, content_type="application/json; charset=utf-8"),
        result(OK, content_type="Application/JSON;Charset=UTF-8"),
        result(OK, content_type="application/vnd.mcp+json"),
        http_reply(200, lambda r: message(r, result=OK), content_type=None),
        http_reply(200, lambda r: b"\xef\xbb\xbf" + message(r, result=OK) + b"\r\n"),
        http_reply(200, lambda r: message(r, result=OK), gzipped=True),
        stream(response(OK)),
        stream(response(OK), content_type="Text/Event-Stream; charset=utf-8"),
        stream(b": ping\r\n\r\n", b"id: 0\r\ndata:\r\n\r\n", b":\r\n\r\n", response(OK), b": ping\r\n\r\n"),
        stream(b"event: ping\ndata: not for us\n\n", response(OK)),
        stream(notification("notifications/message", {"data": "x"}), response(OK)),
    ],
    ids=[
        "json",
        "charset",
        "case",
        "suffix",
        "no content type",
        "bom",
        "gzip",
        "stream",
        "stream case",
        "keepalives",
        "other events",
        "notification",
    ],
)
async def test_a_result_is_read_in_every_dress_it_comes_in(
    server: ScriptedServer, client: McpClient, reply: Reply
) -> None:
    server.queue(reply)
    assert await ask(client) == OK


async def test_an_event_of_several_data_lines_is_one_message(
    server: ScriptedServer, client: McpClient
) -> None:
    async def send(exchange: Exchange) -> None:
        text = json.dumps(response(OK)(exchange.request), indent=1)
        lines = "".join(f"data: {line}\r\n" for line in text.split("\n"))
        await stream(f"event: message\r\n{lines}\r\n".encode())(exchange)

    server.queue(send)
    assert await ask(client) == OK


async def test_a_reply_that_comes_byte_by_byte_is_the_same_reply(
    server: ScriptedServer, client: McpClient
) -> None:
    async def send(exchange: Exchange) -> None:
        body = b"\xef\xbb\xbf: hi\r\n\r\nid:\r\ndata: " + message(exchange.request, result=OK) + b"\r\n\r\n"
        whole = head(200, "text/event-stream", {"Connection": "close"}) + body
        await pieces([whole[i : i + 1] for i in range(len(whole))])(exchange)

    server.queue(send)
    assert await ask(client) == OK


NOT_FOUND = {"code": -32602, "message": "Task not found", "data": ""}


@pytest.mark.rule(
    "http.refusal-body",
    "http.both-kinds-understood",
    "tasks.errors-are-json-rpc",
    "wire.errors-in-every-dress",
    "wire.sse-status-checked",
)
@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (error(-32602, "Task not found", "", status=400), 400),
        (error(-32602, "Task not found", "", status=200), 200),
        (error(-32602, "Task not found", "", status=404), 404),
        (error(-32602, "Task not found", "", status=500), 500),
        (error(-32602, "Task not found", "", status=400, id=None), 400),
        (error(-32602, "Task not found", "", status=200, id="server-error"), 200),
        (stream(lambda r: {"jsonrpc": "2.0", "id": r.json["id"], "error": NOT_FOUND}), 200),
        (stream(lambda r: {"jsonrpc": "2.0", "id": None, "error": NOT_FOUND}), 200),
        (stream(lambda r: {"jsonrpc": "2.0", "id": r.json["id"], "error": NOT_FOUND}, status=400), 400),
        (http_reply(403, lambda r: json.dumps({"jsonrpc": "2.0", "error": NOT_FOUND}).encode()), 403),
    ],
)
async def test_a_json_rpc_error_is_the_same_error_whatever_http_says(
    server: ScriptedServer, client: McpClient, reply: Reply, status: int
) -> None:
    server.queue(reply)
    with pytest.raises(ServerError) as refused:
        await ask(client)
    assert (refused.value.code, refused.value.message, refused.value.data) == (-32602, "Task not found", "")
    assert refused.value.http_status == status


# What HTTP alone says.


@pytest.mark.rule(
    "auth-discovery.challenge-understood", "authorization.status-codes", "wire.errors-in-every-dress"
)
@pytest.mark.parametrize("body", [b"", b'{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"x"}}'])
async def test_401_asks_for_a_sign_in_and_hands_over_the_challenge(
    server: ScriptedServer, client: McpClient, body: bytes
) -> None:
    challenge = 'Bearer resource_metadata="https://x.example/m"'
    server.queue(http_reply(401, body, headers={"WWW-Authenticate": challenge}), http_reply(401, body))
    with pytest.raises(AuthRequired) as wanted:
        await ask(client)
    assert (wanted.value.status, wanted.value.www_authenticate) == (401, challenge)
    with pytest.raises(AuthRequired) as wanted:
        await ask(client)
    assert wanted.value.www_authenticate is None


@pytest.mark.rule("authorization.status-codes")
async def test_403_is_about_signing_in_only_with_a_challenge(
    server: ScriptedServer, client: McpClient
) -> None:
    server.queue(http_reply(403, headers={"WWW-Authenticate": "Bearer"}), http_reply(403))
    with pytest.raises(AuthRequired):
        await ask(client)
    with pytest.raises(TransportError) as refused:
        await ask(client)
    assert refused.value.status == 403


@pytest.mark.rule("http.between-refuses", "wire.errors-in-every-dress")
@pytest.mark.parametrize(
    ("status", "body", "may_have_reached"),
    [
        (404, b"<html>no</html>", False),
        (405, b"", False),
        (406, b"", False),
        (400, b'{"error": "not json-rpc"}', False),
        (404, b'{"error": {"code": 404, "message": "a web API\'s own"}}', False),
        (429, b"slow down", False),
        (408, b"", True),
        (500, b"boom", True),
        (502, b"\xff\xfe", True),
        (503, b"[" * 100_000, True),
        (504, b"", True),
    ],
)
async def test_an_http_error_without_json_rpc_tells_its_status(
    server: ScriptedServer, client: McpClient, status: int, body: bytes, may_have_reached: bool
) -> None:
    server.queue(http_reply(status, body, content_type="text/html"))
    with pytest.raises(TransportError, match=f"HTTP {status}") as failed:
        await ask(client)
    assert (failed.value.status, failed.value.may_have_reached) == (status, may_have_reached)


async def test_an_error_page_that_is_cut_short_still_tells_its_status(
    server: ScriptedServer, client: McpClient
) -> None:
    server.queue(pieces([head(503, "text/html", {"Content-Length": "1000"}), b"<html>"]))
    with pytest.raises(TransportError) as failed:
        await ask(client)
    assert failed.value.status == 503


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        (http_reply(200, b""), "empty reply"),
        (http_reply(202, b"", content_type=None), "empty reply"),
        (http_reply(200, b"<html>Sign in to the hotel</html>", content_type="text/html"), "text/html"),
        (http_reply(200, b"{"), "not valid JSON"),
        (http_reply(200, b"[]"), "not a JSON-RPC message"),
        (stream(b"data: {\n\n"), "not valid JSON"),
        (stream(b'data: {"a": 1, "a": 2}\n\n'), "repeats the key"),
        (stream(b"data: [1]\n\n"), "no JSON-RPC message"),
        (http_reply(200, b"x", headers={"Content-Encoding": "br"}), "encoding"),
        (http_reply(200, b"not gzip", headers={"Content-Encoding": "gzip"}), "broken"),
        (http_reply(200, gzip.compress(b"{}" * 99)[:20], headers={"Content-Encoding": "gzip"}), "cut short"),
        (http_reply(200, b"x", headers={"Content-Encoding": "gzip, gzip, gzip"}), "encoding"),
    ],
)
async def test_a_reply_that_is_none_is_a_protocol_error_that_says_why(
    server: ScriptedServer, client: McpClient, reply: Reply, complaint: str
) -> None:
    server.queue(reply)
    with pytest.raises(ProtocolError, match=complaint):
        await ask(client)


async def test_deflate_is_understood_too(server: ScriptedServer, client: McpClient) -> None:
    server.queue(
        http_reply(
            200, lambda r: zlib.compress(message(r, result=OK)), headers={"Content-Encoding": "deflate"}
        )
    )
    assert await ask(client) == OK


@pytest.mark.rule(
    "http.no-requests-on-stream", "index.notifications-without-id", "mrtr.no-requests-of-servers"
)
async def test_a_request_of_the_server_on_the_stream_is_against_the_rules(
    server: ScriptedServer, client: McpClient
) -> None:
    question = {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}}
    server.queue(stream(question, response(OK)))
    with pytest.raises(ProtocolError, match="elicitation/create") as invalid:
        await ask(client)
    assert invalid.value.field == "id"


async def test_a_result_for_another_request_on_the_stream_is_invalid(
    server: ScriptedServer, client: McpClient
) -> None:
    server.queue(stream({"jsonrpc": "2.0", "id": 999, "result": OK}))
    with pytest.raises(ProtocolError) as invalid:
        await ask(client)
    assert invalid.value.field == "id"


@pytest.mark.rule("http.notifications-before-response")
async def test_notifications_are_handed_on_in_order(server: ScriptedServer, client: McpClient) -> None:
    sent = [notification("notifications/x", {"n": n}) for n in range(5)]
    server.queue(stream(*sent, response(OK)))
    heard: list[dict[str, Any]] = []
    assert await client.request("test/ask", on_notification=heard.append) == OK
    assert heard == sent


async def test_what_a_listener_raises_comes_out_as_it_is(server: ScriptedServer, client: McpClient) -> None:
    def listen(_: dict[str, Any]) -> None:
        raise ValueError("a bug of the caller")

    server.queue(stream(notification("notifications/x", {}), response(OK)))
    with pytest.raises(ValueError, match="a bug of the caller"):
        await client.request("test/ask", on_notification=listen)


# Whether it can have reached the server.


async def test_a_refused_connection_had_no_effect() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    async with McpClient.http(f"http://127.0.0.1:{port}/mcp") as client:
        with pytest.raises(TransportError, match=rf"127\.0\.0\.1:{port} can't be reached") as failed:
            await ask(client)
    assert failed.value.may_have_reached is False


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "ftp://host/mcp",
        "http://",
        "http://[::1",
        "http://host:notaport/",
        "http://host:99999999/",
        "http://a b/",
        "http://" + "a" * 300 + "/",
        "http://xn--\udcff/",
        "http://host/\x00",
        "file:///etc/passwd",
        "http://..:1/",
        "http://no-such-host.invalid/mcp",
    ],
)
async def test_an_address_that_leads_nowhere_had_no_effect(url: str) -> None:
    async with McpClient.http(url) as client:
        with pytest.raises(TransportError) as failed:
            await ask(client)
    assert failed.value.may_have_reached is False


async def test_a_failed_tls_handshake_had_no_effect() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 This is no TLS\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        async with McpClient.http(f"https://127.0.0.1:{port}/mcp") as client:
            with pytest.raises(TransportError, match=r"(?i)ssl|tls") as failed:
                await ask(client)
    assert failed.value.may_have_reached is False


@pytest.mark.parametrize(
    "proxy", ["socks5://127.0.0.1:1", "gopher://127.0.0.1:1", "http://[::1", "http://a:b"]
)
async def test_a_proxy_that_cannot_be_used_had_no_effect(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    async with McpClient.http(server.url) as client:
        with pytest.raises(TransportError) as failed:
            await ask(client)
    assert failed.value.may_have_reached is False
    assert server.received == []


async def test_a_proxy_that_refuses_had_no_effect(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ScriptedServer() as proxy:
        proxy.queue(http_reply(403))
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        async with McpClient.http("https://server.invalid/mcp") as client:
            with pytest.raises(TransportError) as failed:
                await ask(client)
        assert failed.value.may_have_reached is False
        assert [request.verb for request in proxy.received] == ["CONNECT"]


async def test_a_header_that_cannot_be_sent_had_no_effect(server: ScriptedServer) -> None:
    async with McpClient.http(server.url, headers={"X-Token": "secret\r\nX: y"}) as client:
        with pytest.raises(InvalidRequest) as failed:
            await ask(client)
    assert failed.value.may_have_reached is False
    assert "secret" not in str(failed.value)
    assert server.received == []


async def test_a_full_pool_is_waited_for_and_a_request_that_never_left_had_no_effect(
    server: ScriptedServer,
) -> None:
    go = asyncio.Event()
    server.on("test/ask", wait(go, result(OK)))
    async with McpClient.http(server.url, limits=Limits(connections=1)) as client:
        first = asyncio.create_task(ask(client))
        await server.wait_for(1)
        with pytest.raises(TransportError) as failed:
            await client.request("test/ask", timeout=0.05)
        assert failed.value.may_have_reached is False
        go.set()
        assert await first == OK


@pytest.mark.parametrize(
    "reply",
    [
        drop(),
        reset(),
        pieces([b"HTTP/1.1 200 OK\r\nContent-Le"]),
        pieces([head(200, "application/json", {"Content-Length": "100"}), b'{"jsonrpc"']),
        pieces([head(200, "text/event-stream", {"Transfer-Encoding": "chunked"}), b"5\r\nda"]),
        stream(),
        stream(b": ping\n\n", notification("notifications/x", {})),
        stream(b'data: {"jsonrpc":"2.0"'),
    ],
    ids=[
        "close",
        "reset",
        "in headers",
        "in body",
        "in a chunk",
        "empty stream",
        "no response",
        "in an event",
    ],
)
async def test_a_connection_that_ends_after_the_request_left_may_have_had_an_effect(
    server: ScriptedServer, client: McpClient, reply: Reply
) -> None:
    server.queue(reply)
    with pytest.raises(TransportError) as failed:
        await ask(client)
    assert failed.value.may_have_reached is True


@pytest.mark.parametrize(
    "garbage",
    [
        b"SSH-2.0-OpenSSH_9\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbroken header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: \xff\xfe\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: \xff\r\nContent-Length: 2\r\n\r\n{}",
        b"\x00" * 100,
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 307 X\r\nLocation: http://[::1\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 307 X\r\nLocation: //\xff\xfe:x\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 307 X\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 401 X\r\nWWW-Authenticate: \xff\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nSet-Cookie: \xff;;;=\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
async def test_no_garbage_on_the_wire_leaks_another_library_s_error(
    server: ScriptedServer, client: McpClient, garbage: bytes
) -> None:
    server.queue(pieces([garbage]))
    with pytest.raises(McpError):
        await ask(client)


# Bounds.


async def test_a_reply_past_the_limit_is_given_up_while_it_comes_in(server: ScriptedServer) -> None:
    gave_up = asyncio.Event()

    async def endless(exchange: Exchange) -> None:
        await exchange.send(head(200, "application/json", {"Connection": "close"}))
        try:
            while True:
                await exchange.send(b" " * 65536)
        except ConnectionError:
            gave_up.set()

    server.queue(endless)
    async with McpClient.http(server.url, limits=Limits(reply_bytes=1_000_000)) as client:
        with pytest.raises(ProtocolError, match="larger than 1,000,000 bytes"):
            await ask(client)
        await asyncio.wait_for(gave_up.wait(), 20)


async def test_a_stream_past_the_limit_is_given_up_too(server: ScriptedServer) -> None:
    note = notification("notifications/x", {"text": "x" * 1000})
    server.queue(stream(*[note] * 20, response(OK)))
    async with McpClient.http(server.url, limits=Limits(reply_bytes=10_000)) as client:
        with pytest.raises(ProtocolError, match="larger than 10,000 bytes"):
            await ask(client)


def bomb(layers: int) -> bytes:
    data = b" " * 20_000_000
    for _ in range(layers):
        data = gzip.compress(data)
    return data


@pytest.mark.parametrize("status", [200, 400])
async def test_a_small_reply_that_unpacks_to_a_large_one_is_given_up(
    server: ScriptedServer, status: int
) -> None:
    packed = bomb(1)
    assert len(packed) < 50_000
    server.queue(http_reply(status, packed, headers={"Content-Encoding": "gzip"}))
    async with McpClient.http(server.url, limits=Limits(reply_bytes=1_000_000)) as client:
        with pytest.raises(McpError):
            await ask(client)


async def test_bytes_after_the_end_of_a_compressed_reply_count_too(server: ScriptedServer) -> None:
    def body(request: Received) -> bytes:
        return gzip.compress(message(request, result=OK)) + b"\0" * 2_000_000

    server.queue(http_reply(200, body, headers={"Content-Encoding": "gzip"}))
    async with McpClient.http(server.url, limits=Limits(reply_bytes=1_000_000)) as client:
        with pytest.raises(ProtocolError, match="larger"):
            await ask(client)


@pytest.mark.rule("cancellation.timeouts", "cancellation.timeout-cancels")
@pytest.mark.parametrize("after", ["request", "headers", "part of the body"])
async def test_a_server_that_falls_silent_is_given_up_after_the_time_for_the_whole_request(
    server: ScriptedServer, client: McpClient, after: str
) -> None:
    closed = asyncio.Event()

    async def silent(exchange: Exchange) -> None:
        if after != "request":
            await exchange.send(head(200, "text/event-stream", {}))
        if after == "part of the body":
            await exchange.send(b": ping\n\n")
        await exchange.closed_by_client()
        closed.set()

    server.queue(silent)
    with pytest.raises(TransportError, match=r"did not answer within 0\.2 s") as failed:
        await client.request("test/ask", timeout=0.2)
    assert failed.value.may_have_reached is True
    await asyncio.wait_for(closed.wait(), 20)


@pytest.mark.rule("cancellation.time-has-a-maximum")
async def test_keepalives_do_not_stretch_the_time_of_a_request(
    server: ScriptedServer, client: McpClient
) -> None:
    async def pinging(exchange: Exchange) -> None:
        await exchange.send(head(200, "text/event-stream", {}))
        while not exchange.writer.is_closing():
            await exchange.send(b": ping\n\n")
            await asyncio.sleep(0.02)

    server.queue(pinging)
    with pytest.raises(TransportError, match="within"):
        await client.request("test/ask", timeout=0.3)


@pytest.mark.rule(
    "cancellation.told",
    "cancellation.http-disconnect",
    "http.closing-cancels",
    "wire.closing-cancels-the-request",
)
async def test_cancelling_a_request_closes_its_connection_and_raises_nothing_else(
    server: ScriptedServer, client: McpClient
) -> None:
    closed = asyncio.Event()

    async def silent(exchange: Exchange) -> None:
        await exchange.send(head(200, "text/event-stream", {}))
        await exchange.closed_by_client()
        closed.set()

    server.queue(silent)
    request = asyncio.create_task(ask(client))
    await server.wait_for(1)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    await asyncio.wait_for(closed.wait(), 20)
    server.queue(result(OK))
    assert await ask(client) == OK, "the client goes on"


async def test_closing_the_client_ends_requests_under_way_and_refuses_later_ones(
    server: ScriptedServer,
) -> None:
    client = McpClient.http(server.url)
    server.queue(stream(hold=asyncio.Event()))
    request = asyncio.create_task(ask(client))
    await server.wait_for(1)
    await client.aclose()
    await client.aclose()
    with pytest.raises(TransportError):
        await asyncio.wait_for(request, 20)
    with pytest.raises(TransportError) as refused:
        await ask(client)
    assert refused.value.may_have_reached is False


# Connections, redirects, cookies.


@pytest.mark.parametrize("kind", ["json", "stream"])
async def test_one_connection_serves_request_after_request(
    server: ScriptedServer, client: McpClient, kind: str
) -> None:
    async def chunked(exchange: Exchange) -> None:
        body = b"data: " + message(exchange.request, result=OK) + b"\n\n"
        data = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
        await exchange.send(head(200, "text/event-stream", {"Transfer-Encoding": "chunked"}) + data)

    server.on("test/ask", result(OK) if kind == "json" else chunked)
    for _ in range(4):
        assert await ask(client) == OK
    assert server.connections == 1


@pytest.mark.rule("http.response-ends-stream", "wire.fakes-stream")
async def test_a_stream_that_stays_open_after_its_response_does_not_hold_up_the_result(
    server: ScriptedServer, client: McpClient
) -> None:
    server.queue(stream(response(OK), hold=asyncio.Event()))
    async with asyncio.timeout(5):
        assert await ask(client) == OK


@pytest.mark.rule("index.request-id-unique")
async def test_many_requests_at_once_get_their_own_answers(server: ScriptedServer, client: McpClient) -> None:
    server.on("test/ask", result(lambda r: {"n": r.params["n"]}))
    found = await asyncio.gather(*(client.request("test/ask", {"n": n}) for n in range(50)))
    assert [item["n"] for item in found] == list(range(50))
    ids = [request.json["id"] for request in server.received]
    assert len(set(ids)) == 50


def redirect(location: str | Callable[[Received], str], status: int = 307) -> Reply:
    async def send(exchange: Exchange) -> None:
        where = location(exchange.request) if callable(location) else location
        await http_reply(status, headers={"Location": where})(exchange)

    return send


@pytest.mark.rule("authorization.tokens-not-elsewhere", "wire.redirects")
@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_to_the_same_origin_is_followed_with_everything(
    server: ScriptedServer, status: int
) -> None:
    server.queue(redirect("/mcp/", status), result(OK))
    async with McpClient.http(server.url, headers={"Authorization": "Bearer t"}) as client:
        assert await ask(client) == OK
    first, second = server.received
    assert (first.path, second.path) == ("/mcp", "/mcp/")
    assert second.header("Authorization") == "Bearer t"
    assert second.body == first.body


@pytest.mark.rule("authorization.tokens-not-elsewhere", "wire.redirects")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_elsewhere_is_not_followed_and_is_named(
    server: ScriptedServer, client: McpClient, status: int
) -> None:
    async with ScriptedServer() as other:
        server.queue(redirect(other.url, status))
        with pytest.raises(TransportError, match=rf"127\.0\.0\.1:{other.port}") as refused:
            await ask(client)
        assert refused.value.status == status
        assert other.connections == 0


@pytest.mark.parametrize("status", [301, 302, 303, 304])
async def test_other_redirects_are_not_followed_even_at_home(
    server: ScriptedServer, client: McpClient, status: int
) -> None:
    server.queue(redirect("/elsewhere", status))
    with pytest.raises(TransportError, match="/elsewhere"):
        await ask(client)
    assert len(server.received) == 1


async def test_another_host_or_scheme_with_the_same_port_is_elsewhere(
    server: ScriptedServer, client: McpClient
) -> None:
    for target in (
        f"http://localhost:{server.port}/mcp",
        f"https://127.0.0.1:{server.port}/mcp",
        "javascript:1",
    ):
        server.queue(redirect(target))
        with pytest.raises(TransportError):
            await ask(client)
    assert len(server.received) == 3
    assert server.connections == 3


@pytest.mark.rule("wire.redirects")
async def test_a_redirect_cannot_plant_credentials(server: ScriptedServer, client: McpClient) -> None:
    server.queue(redirect(f"http://evil:pw@127.0.0.1:{server.port}/x"), result(OK))
    assert await ask(client) == OK
    assert server.received[1].header("Authorization") is None


async def test_redirects_in_circles_end(server: ScriptedServer, client: McpClient) -> None:
    server.on("test/ask", redirect("/mcp"))
    with pytest.raises(TransportError, match="in circles"):
        await ask(client)
    assert len(server.received) == 4


async def test_cookies_are_neither_kept_nor_sent(server: ScriptedServer, client: McpClient) -> None:
    server.queue(
        http_reply(200, lambda r: message(r, result=OK), headers={"Set-Cookie": "a=b; Path=/"}), result(OK)
    )
    await ask(client)
    await ask(client)
    assert server.received[1].header("Cookie") is None


async def test_a_user_agent_of_the_user_s_own_replaces_ours(
    server: ScriptedServer, client: McpClient
) -> None:
    server.on("test/ask", result(OK))
    await ask(client)
    async with McpClient.http(server.url, headers={"user-agent": "mine"}) as other:
        await ask(other)
    assert [request.header("User-Agent") for request in server.received] == ["mcp-client/0.1.0", "mine"]


async def test_errors_never_repeat_secrets_from_the_address() -> None:
    async with McpClient.http("http://user:hunter2@127.0.0.1:1/mcp?key=hunter2") as client:
        with pytest.raises(TransportError) as failed:
            await ask(client)
    assert "hunter2" not in str(failed.value)


async def test_a_server_that_comes_back_is_found_again(server: ScriptedServer, client: McpClient) -> None:
    server.on("test/ask", result(OK))
    assert await ask(client) == OK
    port = server.port
    await server.stop()
    with pytest.raises(TransportError):
        await ask(client)
    await server.start(port)
    assert await ask(client) == OK
