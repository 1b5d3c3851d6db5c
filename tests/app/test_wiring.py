"""What wires the program: light until the engine is wanted, and private in what it writes."""

from __future__ import annotations

import logging
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.task_script import APPROVE, TaskScript

from app import wiring
from app.paths import Paths, find
from storage.records import SECTIONS


@pytest.fixture
def paths(tmp_path: Path) -> Iterator[Paths]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield find({"TASKINBOX_HOME": str(tmp_path / "home")})
    for handler in [h for h in root.handlers if h not in handlers]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)


@pytest.mark.parametrize("also", ["", "wiring.open_reader(here).counts(); wiring.servers_file(here).list();"])
def test_wiring_and_reading_load_no_network_parts_and_no_screen(tmp_path: Path, also: str) -> None:
    code = (
        "import sys; from app import paths, wiring;"
        "here = paths.find({'TASKINBOX_HOME': sys.argv[1]});"
        "wiring.engine_factory(here);"
        f"{also}"
        "print([m for m in ('httpx', 'pydantic', 'textual', 'rich', 'mcp_client') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_reader_opens_where_nothing_is_yet(paths: Paths) -> None:
    reader = wiring.open_reader(paths)
    assert reader.counts() == dict.fromkeys(SECTIONS, 0)
    reader.close()
    for folder in (paths.config, paths.data, paths.state):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


async def test_the_engine_opens_works_and_leaves_private_files(paths: Paths) -> None:
    async with TaskScript() as server:
        server.ask("t1", q=APPROVE)
        wiring.servers_file(paths).add("ci", server.url)
        engine = await wiring.engine_factory(paths)()
        key = await engine.track("ci", "t1")
        await engine.aclose()
    reader = wiring.open_reader(paths)
    assert [q.state for q in reader.questions(key)] == ["open"]
    reader.close()
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in _files(paths)}
    assert {"inbox.db", "mcp.json", "taskinbox.log"} <= modes.keys()
    assert set(modes.values()) == {0o600}


def _files(paths: Paths) -> list[Path]:
    return [p for folder in (paths.config, paths.data, paths.state) for p in folder.rglob("*") if p.is_file()]


async def test_an_unusable_servers_file_does_not_keep_the_engine_from_opening(paths: Paths) -> None:
    paths.make().servers_file.write_text("{")
    engine = await wiring.open_engine(paths)
    await engine.aclose()


def test_what_a_server_says_is_inert_in_the_log_and_the_log_is_opened_once(paths: Paths) -> None:
    paths.make()
    wiring.start_log(paths)
    count = len(logging.getLogger().handlers)
    wiring.start_log(paths)
    assert len(logging.getLogger().handlers) == count
    logging.getLogger("app.engine").warning("it said %s", "\x1b]52;c;aGk=\x07")
    text = paths.log.read_text(encoding="utf-8")
    assert "it said" in text
    assert "\x1b" not in text
    assert stat.S_IMODE(paths.log.stat().st_mode) == 0o600


def test_the_log_is_turned_over_and_stays_private(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring, "LOG_BYTES", 2_000)
    paths.make()
    wiring.start_log(paths)
    for _ in range(200):
        logging.getLogger("app.engine").warning("%s", "x" * 50)
    files = sorted(paths.state.glob("taskinbox.log*"))
    assert [file.name for file in files] == ["taskinbox.log", "taskinbox.log.1", "taskinbox.log.2"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_no_message_writes_a_line_of_the_log_of_its_own(paths: Paths) -> None:
    paths.make()
    wiring.start_log(paths)
    logging.getLogger("app.engine").warning(
        "The tool %s was left out", "a\n2026-01-01 ERROR forged\tx\x1b[2J"
    )
    (line,) = [line for line in paths.log.read_text().splitlines() if "left out" in line or "forged" in line]
    assert "\t" not in line
    assert "\x1b" not in line
