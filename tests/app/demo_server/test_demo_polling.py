"""The limit on polling (the Tasks page, "Task Polling"): off by default, and no harm to whoever waits."""

from __future__ import annotations

import pytest
from fakes.demo import DemoProcess
from fakes.demo_wire import RpcFailure, envelope

from app.demo_server import polling
from app.demo_server.errors import RpcError
from app.demo_server.polling import PollLimit


async def test_polling_is_not_limited_unless_asked_for(service):
    task_id = await service.started("long_build")
    for _ in range(20):
        assert (await service.wire.get(task_id))["status"] == "working"


@pytest.mark.rule("tasks.rate-limited", "index.own-codes-elsewhere", "index.legacy-codes-not-used")
async def test_a_look_that_comes_too_soon_is_refused_with_the_time_to_wait(serving):
    async with serving(limit_polling=True, poll_ms=1500) as service:
        task_id = await service.started("long_build")
        await service.wire.get(task_id)
        service.clock.now += 100
        for _ in range(3):
            response = await service.wire.send(envelope("tasks/get", {"taskId": task_id}))
            assert (response.status_code, response.headers["retry-after"]) == (429, "2")
            error = response.json()["error"]
            assert (error["code"], error["data"]) == (429, {"retryAfterMs": 1400})
        service.clock.now += 1400
        assert (await service.wire.get(task_id))["pollIntervalMs"] == 1500


async def test_refused_looks_do_not_put_off_the_next_answer(serving):
    """Whoever looks every 100 ms gets an answer once every interval all the same."""
    async with serving(limit_polling=True, poll_ms=1000) as service:
        task_id = await service.started("long_build")
        answered = 0
        for _ in range(30):
            response = await service.wire.send(envelope("tasks/get", {"taskId": task_id}))
            answered += response.status_code == 200
            service.clock.now += 100
    assert answered == 4


async def test_each_task_is_limited_by_itself_and_nothing_else_is(serving):
    async with serving(limit_polling=True) as service:
        one, two = await service.started("two_questions"), await service.started("two_questions")
        for task_id in (one, two):
            await service.wire.get(task_id)
        await service.settle()
        await service.wire.answer(one, count={"action": "decline"})
        await service.wire.answer(one, colour={"action": "decline"})
        await service.wire.call("tasks/cancel", {"taskId": two})
        await service.wire.call("tasks/cancel", {"taskId": two})
        async with service.wire.listening([one]) as stream:
            await stream.next()
            assert (await stream.next())["params"]["taskId"] == one


async def test_what_a_client_lacks_is_said_before_a_limit(serving):
    async with serving(limit_polling=True) as service:
        for _ in range(3):
            with pytest.raises(RpcFailure) as refused:
                await service.wire.call("tasks/get", {"taskId": "x"}, {})
            assert refused.value.code == -32021


def test_a_look_nearly_on_time_is_on_time_and_a_clock_set_back_forgives():
    now = 1_000_000
    limit = PollLimit(1000, lambda: now)
    for step in (0, 800, 1000, -50_000):
        now += step
        limit.check("local", "a")
    now += 799
    with pytest.raises(RpcError, match="1000 ms"):
        limit.check("local", "a")
    limit.check("another", "a")


def test_the_memory_is_bounded_whatever_ids_are_asked_for():
    limit = PollLimit(1000, lambda: 0)
    for number in range(polling.REMEMBERED + 100):
        limit.check("local", f"tsk_{number}")
    assert len(limit._looks) == polling.REMEMBERED
    limit.check("local", "tsk_0")
    with pytest.raises(RpcError):
        limit.check("local", f"tsk_{polling.REMEMBERED}")


@pytest.mark.e2e
async def test_our_own_inbox_follows_a_task_to_its_end_under_the_limit(tmp_path):
    from fakes.cli_program import Program

    program = Program(tmp_path / "home")
    with DemoProcess(tmp_path / "data", speed=0.05, poll_ms=400, options=("--limit-polling",)) as demo:
        program.run("servers", "add", "lab", demo.url)
        task_id = program.json("call", "lab", "long_build", "--args", '{"minutes": 1}')["taskId"]
        program.run("watch", task_id, "--timeout", "60")
        (row,) = program.json("list")
    assert (row["status"], row["tracking"]) == ("completed", "ended")
