"""A server on stdio, as a real process: basic/transports/stdio."""

from __future__ import annotations

import asyncio
import json
import tracemalloc

import pytest
from fakes.stdio_server import SCRIPTED, Watched

from mcp_client import InvalidRequest, Limits, ProtocolError, RawJSON, StdioTransport, TransportError


async def test_a_request_is_answered_over_the_process_streams() -> None:
    async with Watched("for r in requests(): reply(r, method=r['method'])") as server:
        assert (await server.ask("tools/list"))["result"]["method"] == "tools/list"
        assert (await server.ask("tasks/get"))["result"]["method"] == "tasks/get"
    assert server.faults == []


@pytest.mark.rule("stdio.responses-by-id")
async def test_responses_are_correlated_by_id_whatever_their_order() -> None:
    script = """
        first, second, third = read(), read(), read()
        for r in (third, first, second): reply(r, n=r["params"]["n"])
        read()
    """
    async with Watched(script) as server:
        found = await asyncio.gather(*(server.ask(n=n) for n in range(3)))
    assert [message["result"]["n"] for message in found] == [0, 1, 2]


@pytest.mark.rule("stdio.no-newlines-inside", "stdio.stdin-messages-only")
async def test_each_message_is_one_line_even_where_an_argument_was_written_over_several() -> None:
    async with Watched("for r in requests(): reply(r, got=r['params'])") as server:
        message = await server.ask("tools/call", arguments=RawJSON('{\r\n  "a":\n 1}'))
    assert message["result"]["got"] == {"arguments": {"a": 1}}


async def test_a_json_rpc_error_is_returned_not_raised() -> None:
    script = """
        r = read()
        say({"jsonrpc": "2.0", "id": r["id"], "error": {"code": -32602, "message": "no"}})
        read()
    """
    async with Watched(script) as server:
        assert (await server.ask())["error"]["code"] == -32602


@pytest.mark.rule("stdio.no-newlines-inside")
async def test_output_in_pieces_of_every_size_gives_the_same_messages() -> None:
    script = """
        import os
        for r in requests():
            message = {"jsonrpc": "2.0", "id": r["id"], "result": {"text": "grün ✓"}}
            data = json.dumps(message, ensure_ascii=False).encode() + b"\\n"
            size = r["params"]["size"]
            for at in range(0, len(data), size):
                os.write(1, data[at : at + size])
    """
    async with Watched(script) as server:
        for size in range(1, 80):
            assert (await server.ask(size=size))["result"] == {"text": "grün ✓"}
    assert server.faults == []


async def test_several_messages_in_one_piece_are_all_taken() -> None:
    script = """
        a, b = read(), read()
        both = ({"jsonrpc": "2.0", "id": r["id"], "result": {}} for r in (a, b))
        raw(b"".join(json.dumps(message).encode() + b"\\r\\n" for message in both))
        read()
    """
    async with Watched(script) as server:
        await asyncio.gather(server.ask(), server.ask())
    assert server.faults == []


@pytest.mark.rule(
    "cancellation.timeout-cancels", "stdio.cancelled-by-notification", "index.notifications-without-id"
)
async def test_a_request_that_timed_out_is_cancelled_by_its_id() -> None:
    """basic/patterns/cancellation, “Timeouts”."""
    async with Watched("for r in requests(): pass") as server:
        with pytest.raises(TransportError, match=r"did not answer within 0.2 s\.$") as caught:
            await server.ask(timeout=0.2, request_id="slow")
        sent = json.loads(await server.told("notifications/cancelled"))
    assert caught.value.may_have_reached
    assert sent["params"]["requestId"] == "slow"
    assert sent["params"]["reason"] == "The response took too long."
    assert "id" not in sent


@pytest.mark.rule("cancellation.told", "cancellation.stdio-notification", "stdio.cancelled-by-notification")
async def test_cancelling_a_request_tells_the_server() -> None:
    script = "r = read(); tell('got it'); tell(json.dumps(read())); read()"
    async with Watched(script) as server:
        asking = asyncio.create_task(server.ask(request_id="mine"))
        await server.told("got it")
        asking.cancel()
        assert json.loads(await server.told("cancelled"))["params"]["requestId"] == "mine"
        with pytest.raises(asyncio.CancelledError):
            await asking


@pytest.mark.rule("cancellation.late-response-ignored", "cancellation.races", "stdio.server-silent-after")
async def test_a_late_answer_to_a_cancelled_request_is_ignored_silently() -> None:
    script = """
        slow = read()
        read()
        reply(slow)
        reply(slow)
        for r in requests(): reply(r)
    """
    async with Watched(script) as server:
        with pytest.raises(TransportError):
            await server.ask(timeout=0.1)
        await server.ask()
    assert server.faults == []


@pytest.mark.rule("cancellation.own-requests-in-progress")
async def test_an_answered_request_is_never_cancelled() -> None:
    async with Watched("for r in messages(): tell(json.dumps(r)); reply(r)") as server:
        await server.ask(request_id="a")
        await server.ask(request_id="b")
        await server.told('"b"')
    assert b"cancelled" not in server.stderr


@pytest.mark.rule("cancellation.own-requests-in-progress")
async def test_the_handshake_of_older_revisions_is_not_cancelled() -> None:
    async with Watched(
        "for r in messages(): tell(json.dumps(r)); r['method'] == 'ping' and reply(r)"
    ) as server:
        with pytest.raises(TransportError):
            await server.ask("initialize", timeout=0.1)
        await server.ask("ping")
    assert b"cancelled" not in server.stderr


@pytest.mark.rule("index.request-id-unique")
async def test_an_id_is_used_once() -> None:
    async with Watched("for r in requests(): reply(r)") as server:
        await server.ask(request_id="same")
        with pytest.raises(InvalidRequest, match="used already"):
            await server.ask(request_id="same")


async def test_a_second_reply_is_noted_and_the_first_one_counts() -> None:
    script = """
        r = read()
        reply(r, n=1)
        reply(r, n=2)
        for r in requests(): reply(r)
    """
    async with Watched(script) as server:
        assert (await server.ask(request_id="one"))["result"]["n"] == 1
        await server.ask()
    assert server.faults == ["It replied twice to the request “one”; the first reply counts."]


@pytest.mark.parametrize("reply_id", ["'other'", "7", "['r-1']", "{}", "True"])
async def test_a_reply_to_a_request_never_made_is_noted(reply_id: str) -> None:
    script = f"""
        say({{"jsonrpc": "2.0", "id": {reply_id}, "result": {{}}}})
        for r in requests(): reply(r)
    """
    async with Watched(script) as server:
        await server.ask()
    assert len(server.faults) == 1
    assert server.faults[0].startswith("It replied to a request that was never made: ")


@pytest.mark.parametrize("error_id", ["None", "'server-error'"])
async def test_an_error_without_an_id_is_taken_for_the_only_open_request(error_id: str) -> None:
    script = f"""
        read()
        say({{"jsonrpc": "2.0", "id": {error_id}, "error": {{"code": -32600, "message": "what?"}}}})
        read()
    """
    async with Watched(script) as server:
        assert (await server.ask())["error"]["message"] == "what?"
    assert "names no request and is taken for the reply to the only one open" in server.faults[0]


async def test_an_error_without_an_id_ends_none_of_several_requests() -> None:
    script = """
        a, b = read(), read()
        say({"jsonrpc": "2.0", "error": {"code": -32600, "message": "what?"}})
        reply(a); reply(b)
        read()
    """
    async with Watched(script) as server:
        found = await asyncio.gather(server.ask(), server.ask())
    assert all("result" in message for message in found)
    assert "names no request and can be for any of them" in server.faults[0]


async def test_an_error_without_an_id_is_not_for_a_request_that_was_understood() -> None:
    """A stream that has been acknowledged is none that the server could not read."""
    script = """
        listen = read()
        notify("notifications/subscriptions/acknowledged", _meta=of(listen))
        read()
        say({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "what?"}})
        read()
    """
    async with (
        Watched(script) as server,
        server.transport.stream(server.request("subscriptions/listen")) as found,
    ):
        await anext(found)
        assert (await server.ask())["error"]["message"] == "what?"


async def test_a_reply_that_is_no_json_rpc_2_reaches_its_request() -> None:
    async with Watched("r = read(); say({'id': r['id'], 'result': {}}); read()") as server:
        assert await server.ask(request_id="x") == {"id": "x", "result": {}}


RUBBISH = [
    (b"Listening on port 8000", "is no JSON-RPC message: “Listening on port 8000”."),
    (b"", "is empty"),
    (b"  \r", "is empty"),
    (b"[]", "is no JSON-RPC message: “[]”."),
    (b"null", "is no JSON-RPC message"),
    (b'"text"', "is no JSON-RPC message"),
    (b"{}", "is no JSON-RPC message: “{}”."),
    (b'{"result": {}}', "is no JSON-RPC message"),
    (b"{'a': 1}", "can't be read: The reply is not valid JSON"),
    (b'{"method": "x"}', "is no JSON-RPC message"),
    (b'{"jsonrpc": "2.0", "method": 7}', "is no JSON-RPC message"),
    (b"\xff\xfe", "is no JSON-RPC message"),
    (
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}',
        "a request of its own (“ping”), which this revision forbids",
    ),
    (b'{"a": "\\ud800"}', "can't be read: The reply holds half of a surrogate pair."),
    (b'{"a": 1, "a": 2}', "can't be read: The reply repeats the key “a” in one object."),
    (b'{"a": ' + b"[" * 300 + b"]" * 300 + b"}", "nested deeper than 128 levels"),
    (b'{"jsonrpc": "2.0", "method": "notifications/message", "params": NaN}', "can't be read"),
]


@pytest.mark.rule("stdio.stdout-messages-only", "stdio.no-requests-on-stdout")
@pytest.mark.parametrize(("line", "said"), RUBBISH, ids=range(len(RUBBISH)))
async def test_rubbish_on_stdout_is_reported_and_disturbs_nothing(line: bytes, said: str) -> None:
    script = f"""
        r = read()
        raw({line!r} + b"\\n")
        reply(r)
        for r in requests(): reply(r)
    """
    async with Watched(script) as server:
        await server.ask()
        await server.ask()
    assert len(server.faults) == 1
    assert said in server.faults[0]


@pytest.mark.rule("stdio.stdin-messages-only", "stdio.no-responses-sent", "stdio.no-requests-on-stdout")
async def test_a_request_of_the_server_is_never_answered() -> None:
    script = """
        say({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
        for r in messages(): tell(json.dumps(r)); reply(r)
    """
    async with Watched(script) as server:
        await server.ask()
        await server.ask()
    assert [json.loads(line)["method"] for line in server.stderr.splitlines()] == ["tools/list", "tools/list"]


async def test_faults_are_reported_a_bounded_number_of_times() -> None:
    async with Watched("r = read(); raw(b'hello\\n' * 10_000); reply(r); read()") as server:
        await server.ask()
    assert len(server.faults) == 50
    assert server.faults[-1].endswith("Further faults of this process are not reported.")


async def test_a_fault_repeats_little_of_what_the_server_said() -> None:
    async with Watched("r = read(); raw(b'x' * 100_000 + b'\\n'); reply(r); read()") as server:
        await server.ask()
    assert len(server.faults[0]) < 200


BROKEN = [
    '"result": {"a": 1, "a": 2}',
    '"result": {"a": NaN}',
    '"result": {"a": "\\\\ud800"}',
    '"result": {"a": ' + "[" * 200 + "]" * 200 + "}",
    '"result": {',
    '"error": {"code": 1, "code": 2}',
]


@pytest.mark.rule("cancellation.races")
@pytest.mark.parametrize("broken", BROKEN, ids=range(len(BROKEN)))
async def test_a_reply_that_cannot_be_read_fails_the_request_it_names_and_is_not_cancelled(
    broken: str,
) -> None:
    script = f"""
        other, r = sorted((read(), read()), key=lambda r: r["id"], reverse=True)
        raw(b'{{"jsonrpc": "2.0", "id": "' + r["id"].encode() + b'", {broken}}}\\n')
        tell(read()["id"])
        reply(other)
        read()
    """
    async with Watched(script) as server:
        other = asyncio.create_task(server.ask())
        with pytest.raises(ProtocolError):
            await server.ask(request_id="broken")
        with pytest.raises(TransportError):
            await server.ask(request_id="next", timeout=0.1)
        await server.told("next")
        await other


async def test_a_reply_that_cannot_be_read_fails_the_only_open_request() -> None:
    script = """
        r = read()
        raw(b'{"jsonrpc": "2.0", "result": {"a": 1, "a": 2}}\\n')
        for r in requests(): reply(r)
    """
    async with Watched(script) as server:
        with pytest.raises(ProtocolError, match="repeats the key") as caught:
            await server.ask()
        await server.ask()
    assert caught.value.field == "a"


async def test_a_line_that_is_too_long_is_dropped_and_fails_the_request_it_names() -> None:
    script = """
        r = read()
        reply(r, a="x" * 200_000)
        for r in requests(): reply(r)
    """
    async with Watched(script, Limits(reply_bytes=100_000)) as server:
        with pytest.raises(ProtocolError, match="larger than 100,000 bytes"):
            await server.ask()
        await server.ask()
    assert "longer than 100,000 bytes and was dropped: “{" in server.faults[0]
    assert len(server.faults) == 1


async def test_a_request_that_timed_out_says_that_a_line_was_dropped() -> None:
    script = "read(); raw(b'x' * 200_000); tell('said'); read()"
    async with Watched(script, Limits(reply_bytes=100_000)) as server:
        with pytest.raises(TransportError, match=r"within 1 s\. A line of its output .* was dropped\.$"):
            await server.ask(timeout=1)


async def test_a_line_without_an_end_takes_bounded_memory() -> None:
    script = """
        r = read()
        for _ in range(400): raw(b'x' * 250_000)
        raw(b'\\n')
        reply(r)
        read()
    """
    async with Watched(script, Limits(reply_bytes=1_000_000)) as server:
        tracemalloc.start()
        try:
            await server.ask()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 8_000_000
    assert len(server.faults) == 1


async def test_requests_that_are_over_are_remembered_for_a_while_only() -> None:
    script = """
        first = read()
        reply(first)
        for r in requests():
            reply(r)
            if r["params"]["n"] == 1100: reply(first)
    """
    async with Watched(script) as server:
        for n in range(1101):
            await server.ask(n=n)
        await server.fault("never made: “r-1”")
    assert len(server.faults) == 1


async def test_a_fault_tells_nothing_to_whoever_does_not_listen() -> None:
    command, *args = SCRIPTED
    transport = StdioTransport(command, [*args, "tell('x'); raw(b'rubbish\\n'); reply(read()); read()"])
    await transport.connect()
    assert "result" in (await transport.send(Watched("").request(), timeout=20)).message
    await transport.aclose()
