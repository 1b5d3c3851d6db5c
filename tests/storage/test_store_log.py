"""The log as a whole, and what is saved to fill questions in with."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from fakes.stored import TASK, Ticking, asked, task, writes

from storage.records import NewEvent, SavedReply, TaskKey
from storage.store import Store, StoreReader


def test_the_log_is_read_in_its_order_and_by_server_and_time(store: Store, reader: StoreReader) -> None:
    store.log(NewEvent("a"), TaskKey("ci", "t"))
    store.log(NewEvent("b"), server="lab")
    store.log(NewEvent("c"))
    store.log(NewEvent("d"), TaskKey("ci", "t"))
    every = list(reader.log())
    assert [(event.seq, event.kind) for event in every] == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    assert [event.kind for event in reader.log(server="ci")] == ["a", "d"]
    assert [event.kind for event in reader.log(since=every[1].at)] == ["b", "c", "d"]
    assert [event.kind for event in reader.log(server="ci", since=every[1].at)] == ["d"]
    assert list(reader.log(since=every[3].at + 1)) == []


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 2000])
def test_every_event_is_read_once_whatever_is_read_ahead(
    store: Store, reader: StoreReader, count: int
) -> None:
    with store.group():
        for _ in range(count):
            store.log(NewEvent("x"))
    assert [event.seq for event in reader.log()] == list(range(1, count + 1))


def test_what_is_written_meanwhile_is_not_read_and_nobody_waits(store: Store, reader: StoreReader) -> None:
    store.log(NewEvent("a"))
    store.log(NewEvent("b"))
    reading = reader.log()
    assert next(reading).kind == "a"
    store.log(NewEvent("c"))
    assert store._connection.value("PRAGMA wal_checkpoint(TRUNCATE)") == 0
    assert [event.kind for event in reading] == ["b"]


def test_a_log_of_any_length_is_read_in_little_memory(path: Path) -> None:
    store = Store.open(path, clock=Ticking())
    with store.group():
        for _ in range(20_000):
            store.log(NewEvent("x", '{"text": "' + "y" * 1000 + '"}'))
    store.close()
    reader = StoreReader.open(path)
    tracemalloc.start()
    assert sum(1 for _ in reader.log()) == 20_000
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    reader.close()
    assert most < 2_000_000


def test_saved_replies_belong_to_a_fingerprint_and_a_name(store: Store, reader: StoreReader) -> None:
    store.save_reply("f1", "staging", '{"environment": "staging"}')
    store.save_reply("f1", "production", '{"environment": "prod"}')
    store.save_reply("f2", "staging", "{}")
    store.save_reply("f1", "staging", '{"environment": "stage"}')
    first, second = reader.replies("f1")
    assert (first.name, second.name) == ("production", "staging")
    assert second == SavedReply("f1", "staging", '{"environment": "stage"}', second.saved_at)
    assert second.saved_at > first.saved_at
    assert store.delete_reply("f1", "staging")
    assert not store.delete_reply("f1", "staging")
    assert [reply.name for reply in reader.replies("f1")] == ["production"]
    assert [reply.name for reply in reader.replies("f2")] == ["staging"]


def test_leave_to_ask_on_is_counted_and_logged(store: Store, reader: StoreReader) -> None:
    store.add_task(task(), questions=[asked()])
    for _ in range(2):
        store.change_task(TASK, writes(leave=True, events=(NewEvent("asking_allowed"),)))
    record = reader.task(TASK)
    assert record is not None
    assert record.leave == 2
    assert [event.kind for event in reader.events(TASK)][-2:] == ["asking_allowed", "asking_allowed"]
