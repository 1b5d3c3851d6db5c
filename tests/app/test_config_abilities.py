"""What a server may ask beside elicitations, in the servers file."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.config import (
    NONE,
    Abilities,
    ConfigError,
    ServersFile,
    UnknownServer,
    connection,
    present,
    set_abilities,
)


def file(tmp_path: Path, ours: Any, **more: Any) -> Path:
    path = tmp_path / "mcp.json"
    entry = {"url": "https://ci.example/mcp", "disabled": False, "taskinbox": ours, **more}
    path.write_text(json.dumps({"inputs": [1], "mcpServers": {"ci": entry}}))
    return path


def test_what_is_not_named_is_off(tmp_path: Path) -> None:
    for ours in ({}, None, {"sampling": False, "roots": [], "samplingCommand": []}):
        path = file(tmp_path, ours)
        assert ServersFile(path).abilities("ci") == NONE
        assert connection(path, "ci", {}).declared == ()
    assert ServersFile(path).abilities("nobody") == NONE
    assert ServersFile(tmp_path / "none.json").abilities("ci") == NONE


def test_what_is_named_is_read_and_declared(tmp_path: Path) -> None:
    path = file(
        tmp_path, {"sampling": True, "samplingCommand": ["x", ""], "roots": ["/a", "/b", "/a"], "new": 1}
    )
    assert ServersFile(path).abilities("ci") == Abilities(True, ("x", ""), ("/a", "/b"))
    assert connection(path, "ci", {}).declared == ("sampling", "roots")


@pytest.mark.parametrize(
    ("ours", "words"),
    [
        ([], "is not an object"),
        ({"sampling": "yes"}, "neither true nor false"),
        ({"sampling": 1}, "neither true nor false"),
        ({"samplingCommand": "x y"}, "no list of a command"),
        ({"samplingCommand": [" "]}, "no list of a command"),
        ({"samplingCommand": ["x", 1]}, "no list of a command"),
        ({"samplingCommand": ["x", "\0"]}, "no list of a command"),
        ({"roots": "/a"}, "not a list of folders"),
        ({"roots": ["a"]}, "not an absolute path"),
        ({"roots": ["file:///a"]}, "not an absolute path"),
        ({"roots": ["/a/../b"]}, 'goes up with ".."'),
        ({"roots": ["/a\x1b[31m"]}, "control characters"),
        ({"roots": ["/a\u202e"]}, "control characters"),
        ({"roots": ["/a\ud800"]}, "control characters"),
        ({"roots": [f"/{n}" for n in range(101)]}, "more than 100"),
    ],
)
def test_what_is_wrong_allows_nothing_and_says_so(tmp_path: Path, ours: Any, words: str) -> None:
    path = file(tmp_path, ours)
    found = ServersFile(path).entries()["ci"]
    assert words in (found.problem or "")
    assert "\x1b" not in (found.problem or "")
    assert ServersFile(path).abilities("ci") == NONE
    with pytest.raises(ConfigError, match="can't be used"):
        connection(path, "ci", {})
    before = path.read_bytes()
    with pytest.raises(ConfigError):
        set_abilities(path, "ci", lambda old: replace(old, sampling=True))
    assert path.read_bytes() == before


def test_keys_that_are_not_ours_stay_and_a_key_without_content_goes(tmp_path: Path) -> None:
    path = file(tmp_path, {"new": 1})
    set_abilities(path, "ci", lambda old: replace(old, sampling=True))
    document = json.loads(path.read_text())
    assert document["inputs"] == [1]
    assert document["mcpServers"]["ci"]["taskinbox"] == {"new": 1, "sampling": True}
    assert document["mcpServers"]["ci"]["disabled"] is False
    set_abilities(path, "ci", lambda _: NONE)
    assert json.loads(path.read_text())["mcpServers"]["ci"]["taskinbox"] == {"new": 1}
    with pytest.raises(UnknownServer):
        set_abilities(path, "nobody", lambda _: NONE)


def test_a_change_that_changes_nothing_leaves_the_file_alone(tmp_path: Path) -> None:
    path = file(tmp_path, {"sampling": True})
    before = path.stat().st_mtime_ns, path.read_bytes()
    set_abilities(path, "ci", lambda old: old)
    assert (path.stat().st_mtime_ns, path.read_bytes()) == before


def test_only_folders_that_are_there_are_present(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)
    found = present([str(tmp_path), str(tmp_path / "file"), str(tmp_path / "none"), str(closed)])
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0  # who may look anywhere
    assert found == (str(tmp_path), *((str(closed),) if is_root else ()))
