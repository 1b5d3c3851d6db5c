"""Where things are kept, and who may read them: app/paths.py."""

from __future__ import annotations

import os
from pathlib import Path

from app import paths


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_one_variable_moves_everything_under_one_folder(tmp_path: Path) -> None:
    found = paths.find({"TASKINBOX_HOME": str(tmp_path / "home")})
    for part in (
        found.config,
        found.data,
        found.state,
        found.servers_file,
        found.database,
        found.log,
        found.demo,
    ):
        assert part.is_relative_to(tmp_path / "home")
    assert not (tmp_path / "home").exists(), "finding makes nothing"


def test_without_it_the_platform_says_where(tmp_path: Path) -> None:
    found = paths.find({})
    assert found.config.name == "taskinbox"
    assert found.database.parent == found.data


def test_folders_and_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        found = paths.find({"TASKINBOX_HOME": str(tmp_path / "home")}).make()
        paths.private_file(found.database)
    finally:
        os.umask(old)
    assert [mode(p) for p in (found.config, found.data, found.state)] == [0o700] * 3
    assert mode(tmp_path / "home") == 0o700, "what was missing above them, too"
    assert mode(found.database) == 0o600


def test_what_was_open_to_others_is_closed(tmp_path: Path) -> None:
    folder, file = tmp_path / "d", tmp_path / "d" / "f"
    folder.mkdir(mode=0o755)
    file.touch(mode=0o644)
    paths.private_folder(folder)
    paths.private_file(file)
    assert (mode(folder), mode(file)) == (0o700, 0o600)
