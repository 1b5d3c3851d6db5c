"""What a quick command must not load."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
HEAVY = ("textual", "rich", "httpx", "pydantic", "starlette", "uvicorn", "jsonschema", "asyncio")

PROBE = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import app.cli
loaded = [app.cli.main(sys.argv[1:])] if len(sys.argv) > 1 else []
found = [name for name in {HEAVY!r} if name in sys.modules]
print("LOADED", found, "CODE", loaded)
"""


def probe(home: Path, *argv: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *argv],
        env={**os.environ, "TASKINBOX_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()[-1]


def test_importing_the_command_line_loads_neither_screen_nor_network(tmp_path: Path) -> None:
    assert probe(tmp_path) == "LOADED [] CODE []"


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["list"], 0),
        (["list", "--json"], 0),
        (["locate"], 0),
        (["servers", "list"], 0),
        (["servers", "add", "lab", "http://127.0.0.1:1/mcp"], 0),
        (["show", "nothing"], 3),
        (["--help"], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_commands_that_read_the_store_alone_load_neither_screen_nor_network(
    tmp_path: Path, argv: list[str], code: int
) -> None:
    assert probe(tmp_path, *argv) == f"LOADED [] CODE [{code}]"
