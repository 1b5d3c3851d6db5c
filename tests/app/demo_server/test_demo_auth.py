"""Who may do what over HTTP: bearer tokens, and tasks that nobody else's token reaches."""

from __future__ import annotations

import json
import logging
import signal

import pytest
from fakes.demo import DemoProcess
from fakes.demo_wire import DemoWire, RpcFailure, accept, envelope

from app.demo_server.owners import load

ADA, BOB, EVE = "ada-token-0123456789", "bob-token-0123456789", "eve-token-0123456789"
TOKENS = {
    ADA: {"tenant": "acme", "principal": "ada"},
    BOB: {"tenant": "acme", "principal": "bob"},
    EVE: {"tenant": "other", "principal": "eve"},
}


@pytest.fixture
async def guarded(serving, tmp_path):
    """A service with tokens, moved by hand; its own client has none."""
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps(TOKENS))
    file.chmod(0o600)
    async with serving(owners=load(file)) as service:
        yield service


def bearer(token: str) -> dict[str, str | None]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    ("authorization", "challenge"),
    [
        (None, "Bearer"),
        ("", 'Bearer error="invalid_token"'),
        ("Bearer", 'Bearer error="invalid_token"'),
        ("Bearer nobody-has-this-token", 'Bearer error="invalid_token"'),
        (f"Bearer {ADA}x", 'Bearer error="invalid_token"'),
        (f"Basic {ADA}", 'Bearer error="invalid_token"'),
        (f"Bearer {ADA}, Bearer {ADA}", 'Bearer error="invalid_token"'),
        (ADA, 'Bearer error="invalid_token"'),
    ],
)
@pytest.mark.parametrize("method", ["server/discover", "tasks/get", "subscriptions/listen", "nonsense"])
async def test_nothing_is_answered_without_a_valid_token(guarded, caplog, method, authorization, challenge):
    caplog.set_level(logging.DEBUG)
    response = await guarded.wire.send(envelope(method, {"taskId": "x"}), {"Authorization": authorization})
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == challenge
    assert ADA not in response.text + caplog.text
    assert "result" not in response.json()


@pytest.mark.rule("http.authenticated", "http.notification-refused-body")
async def test_a_message_that_wants_no_answer_needs_a_token_too(guarded):
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    refused = await guarded.wire.send(message)
    assert (refused.status_code, refused.json().keys()) == (401, {"jsonrpc", "error"})
    assert (await guarded.wire.send(message, bearer(ADA))).status_code == 202


async def test_a_tenant_shares_its_tasks_and_nobody_else_sees_them(guarded):
    async with guarded.client(bearer(ADA)) as ada, guarded.client(bearer(BOB)) as bob:
        task_id = (await ada.tool("two_questions"))["taskId"]
        await guarded.settle()
        await bob.answer(task_id, count=accept(count=1))
        assert list((await ada.get(task_id))["inputRequests"]) == ["colour"]


@pytest.mark.rule("tasks.each-request-authorised")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_another_tenants_task_is_refused_in_the_words_of_one_that_never_was(guarded, method):
    async with guarded.client(bearer(ADA)) as ada, guarded.client(bearer(EVE)) as eve:
        task_id = (await ada.tool("two_questions"))["taskId"]
        await guarded.settle()
        before = await ada.get(task_id)
        answers = {"inputResponses": {"count": accept(count=1)}}
        refusals = []
        for asked in (task_id, "tsk_" + "0" * 32):
            with pytest.raises(RpcFailure) as refused:
                await eve.call(method, {"taskId": asked, **answers})
            refusals.append((refused.value.code, refused.value.message, refused.value.http_status))
        assert refusals[0] == refusals[1]
        assert await ada.get(task_id) == before


@pytest.mark.rule(
    "tasks.each-request-authorised", "tasks.listen-accepted-ids", "caching.server-controls-access"
)
async def test_a_subscription_tells_of_the_callers_own_tasks_alone(guarded):
    async with guarded.client(bearer(ADA)) as ada, guarded.client(bearer(EVE)) as eve:
        hers = (await ada.tool("flaky_job"))["taskId"]
        mine = (await eve.tool("flaky_job"))["taskId"]
        async with eve.listening([hers, mine, "tsk_never_was"]) as stream:
            assert (await stream.next())["params"]["notifications"] == {"taskIds": [mine]}
            await guarded.settle()
            await stream.until(lambda message: message["params"].get("status") == "failed")
            assert {each["params"].get("taskId", mine) for each in stream.seen} == {mine}


@pytest.mark.e2e
async def test_a_process_with_a_file_of_tokens_says_nothing_of_them(tmp_path):
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps(TOKENS))
    file.chmod(0o600)
    demo = DemoProcess(tmp_path / "data", options=("--tokens", str(file))).start()
    async with DemoWire(demo.url) as nobody, DemoWire(demo.url, bearer(ADA)) as ada:
        assert (await nobody.send(envelope("tools/list"))).status_code == 401
        assert (await ada.tool("echo", {"text": "x"}))["structuredContent"] == {"text": "x"}
    assert demo.end(signal.SIGTERM) == (0, "", "")
