"""The change feed: coalesced, paced, and deaf to broken listeners."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from app.engine.changes import ChangeFeed
from app.engine.commands import Changes
from storage.records import TaskKey

A, B = TaskKey("s", "a"), TaskKey("s", "b")


async def test_changes_of_one_moment_are_told_together_to_everyone() -> None:
    feed, one, two = ChangeFeed(), asyncio.Queue[Changes](), asyncio.Queue[Changes]()
    feed.listen(one.put_nowait)
    feed.listen(two.put_nowait)
    feed.add(A)
    feed.add(B, A)
    feed.add(server="s")
    for queue in (one, two):
        assert await queue.get() == Changes(frozenset({A, B}), frozenset({"s"}))
        assert queue.empty()


async def test_a_burst_is_told_at_most_twenty_times_a_second_and_nothing_is_left_out() -> None:
    feed, told = ChangeFeed(interval=0.05), []
    done = asyncio.Event()
    last = TaskKey("s", "199")

    def listener(changes: Changes) -> None:
        told.append((asyncio.get_running_loop().time(), changes))
        if last in changes.tasks:
            done.set()

    feed.listen(listener)
    for n in range(200):
        feed.add(TaskKey("s", str(n)))
        await asyncio.sleep(0.001)
    await done.wait()
    assert {key.id for _, changes in told for key in changes.tasks} == {str(n) for n in range(200)}
    gaps = [b - a for (a, _), (b, _) in pairwise(told)]
    assert min(gaps) >= 0.049
    assert len(told) < 60


async def test_a_listener_that_raises_does_not_keep_the_others_from_hearing() -> None:
    feed, heard = ChangeFeed(), asyncio.Queue[Changes]()

    def broken(_: Changes) -> None:
        raise ValueError

    feed.listen(broken)
    feed.listen(heard.put_nowait)
    feed.add(A)
    assert (await heard.get()).tasks == {A}
    feed.add(B)
    assert (await heard.get()).tasks == {B}


async def test_nothing_is_told_after_the_end() -> None:
    feed, one, two = ChangeFeed(), asyncio.Queue[Changes](), asyncio.Queue[Changes]()
    end = feed.listen(one.put_nowait)
    feed.listen(two.put_nowait)
    end()
    end()
    feed.add(A)
    await two.get()
    assert one.empty()
    feed.add(B)
    feed.close()
    await asyncio.sleep(0.1)
    assert two.empty()
