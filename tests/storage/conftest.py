"""A store in a folder of its own, and a reader beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.stored import Ticking

from storage.store import Store, StoreReader


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "inbox.db"


@pytest.fixture
def clock() -> Ticking:
    return Ticking()


@pytest.fixture
def store(path: Path, clock: Ticking) -> Iterator[Store]:
    store = Store.open(path, clock=clock)
    yield store
    store.close()


@pytest.fixture
def reader(store: Store, path: Path) -> Iterator[StoreReader]:
    reader = StoreReader.open(path)
    yield reader
    reader.close()
