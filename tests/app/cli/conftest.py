from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.cli_engine import Installation


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Installation]:
    installation = Installation(tmp_path / "home")
    yield installation
    installation.close()
