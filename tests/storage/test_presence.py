"""Which programs are alive."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from storage import presence as module
from storage.errors import StorageError
from storage.presence import Presence


def test_programs_see_each_other_until_they_leave(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "programs"
    with Presence.enter(folder) as first:
        second = Presence.enter(folder)
        assert first.owner != second.owner
        assert not first.is_dead(first.owner)
        assert not first.is_dead(second.owner)
        assert not second.is_dead(first.owner)
        second.close()
        second.close()
        assert first.is_dead(second.owner)
        assert second.is_dead(second.owner)
    assert list(folder.iterdir()) == []
    assert folder.stat().st_mode & 0o777 == 0o700


def test_looking_twice_does_not_make_a_program_dead_or_alive(tmp_path: Path) -> None:
    with Presence.enter(tmp_path) as first, Presence.enter(tmp_path) as second:
        for _ in range(3):
            assert not first.is_dead(second.owner)


def test_a_killed_program_is_dead_and_the_next_one_cleans_up_after_it(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib; from storage.presence import Presence;"
        "presence = Presence.enter(pathlib.Path(sys.argv[1]));"
        "print(presence.owner, flush=True); sys.stdin.readline()"
    )
    program = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    owner = program.stdout.readline().strip()
    with Presence.enter(tmp_path) as looking:
        assert not looking.is_dead(owner)
        program.kill()
        program.communicate(timeout=30)
        assert looking.is_dead(owner)
        assert (tmp_path / f"{owner}.lock").exists()
        with Presence.enter(tmp_path):
            assert not (tmp_path / f"{owner}.lock").exists()
            assert not looking.is_dead(looking.owner)
            assert (tmp_path / f"{looking.owner}.lock").exists()
        assert looking.is_dead(owner)


@pytest.mark.skipif(sys.platform == "win32", reason="locks are never shared there")
def test_one_who_looks_is_not_taken_for_the_living_holder(tmp_path: Path) -> None:
    with Presence.enter(tmp_path) as presence:
        (tmp_path / "1-a.lock").write_text("")
        descriptor = os.open(tmp_path / "1-a.lock", os.O_RDWR)
        assert module._lock(descriptor, "look")  # as another program does at this moment
        assert presence.is_dead("1-a")
        os.close(descriptor)


@pytest.mark.parametrize("owner", ["", "never-there", "../../etc/passwd", "1-zz", "12345-abcdef"])
def test_an_owner_that_was_never_here_is_dead(tmp_path: Path, owner: str) -> None:
    with Presence.enter(tmp_path) as presence:
        assert presence.is_dead(owner)


def test_a_name_that_is_taken_is_not_used_twice(tmp_path: Path) -> None:
    tokens = (f"{n // 2:x}" for n in count())
    with (
        Presence.enter(tmp_path, token=lambda: next(tokens)) as first,
        Presence.enter(tmp_path, token=lambda: next(tokens)) as second,
    ):
        assert first.owner == f"{os.getpid()}-0"
        assert second.owner == f"{os.getpid()}-1"


def test_a_file_cleaned_up_between_making_and_locking_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "1-a.lock"
    lock = module._lock

    def late(descriptor: int, how: str) -> bool:
        path.unlink()  # what another program's clean-up does at this moment
        return lock(descriptor, "hold")

    monkeypatch.setattr(module, "_lock", late)
    assert module._take(path) is None


def test_a_folder_that_can_not_be_used_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="can't be used"):
        Presence.enter(tmp_path / "file")


def test_a_program_knows_whether_it_is_alone(tmp_path: Path) -> None:
    with Presence.enter(tmp_path) as first:
        assert not first.has_others()
        with Presence.enter(tmp_path) as second:
            assert first.has_others()
            assert second.has_others()
        assert not first.has_others()
        (tmp_path / "1-abc.lock").touch()
        assert not first.has_others()
