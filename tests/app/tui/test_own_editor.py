"""The person's own editor: which it is, what it gets, and what is made of what it leaves."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from app.tui.widgets import editor
from app.tui.widgets.editor import EditorFailed, edit_in, editor_command


def script(folder: Path, body: str) -> list[str]:
    """Return an editor: a program that finds the file's path in ``path`` and does *body*."""
    file = folder / "edits.py"
    file.write_text(f"import os, pathlib, sys\npath = pathlib.Path(sys.argv[-1])\n{body}\n")
    return [sys.executable, str(file)]


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"VISUAL": "code --wait", "EDITOR": "vi"}, ["code", "--wait"]),
        ({"VISUAL": " ", "EDITOR": "'my editor' -x"}, ["my editor", "-x"]),
        ({"EDITOR": "vi; rm -rf $HOME"}, ["vi;", "rm", "-rf", "$HOME"]),
    ],
)
def test_visual_comes_first_and_no_shell_reads_it(environ: dict[str, str], words: list[str]) -> None:
    assert editor_command(environ) == words


@pytest.mark.parametrize(
    ("environ", "why"), [({}, "set VISUAL or EDITOR"), ({"EDITOR": "'"}, "EDITOR"), ({"VISUAL": "''"}, "")]
)
def test_an_editor_that_is_not_set_or_not_readable_is_said(environ: dict[str, str], why: str) -> None:
    if environ.get("VISUAL") == "''":
        with pytest.raises(EditorFailed, match="could not be started"):
            edit_in(editor_command(environ), "", "txt")
        return
    with pytest.raises(EditorFailed, match=why):
        editor_command(environ)


def test_the_file_is_private_and_gone_afterwards_with_what_the_editor_left_beside_it(tmp_path: Path) -> None:
    told = tmp_path / "told"
    command = script(
        tmp_path,
        f"pathlib.Path({str(told)!r}).write_text(f'{{path}} {{path.stat().st_mode}} "
        "{path.parent.stat().st_mode}')\n(path.parent / '.answer.txt.swp').write_text('left behind')",
    )
    assert edit_in(command, "as it was", "txt") == "as it was"
    path, mode, folder_mode = told.read_text().split()
    assert stat.S_IMODE(int(mode)) == 0o600
    assert stat.S_IMODE(int(folder_mode)) == 0o700
    assert not Path(path).exists()
    assert not Path(path).parent.exists()


@pytest.mark.parametrize(
    ("before", "written", "after"),
    [
        ("a", b"a\nb\n", "a\nb"),
        ("a\n", b"a\nb\n", "a\nb\n"),
        ("a", b"a\r\nb\r\n", "a\nb"),
        ("a", b"\xef\xbb\xbfa", "a"),
        ("a", b"", ""),
        ("", b"\x1b]52;c;eA==\x07", "␛]52;c;eA==␇"),
    ],
)
def test_the_text_comes_back_without_the_line_end_that_editors_add(
    tmp_path: Path, before: str, written: bytes, after: str
) -> None:
    assert edit_in(script(tmp_path, f"path.write_bytes({written!r})"), before, "txt") == after


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("sys.exit(3)", "exit code 3"),
        ("path.write_bytes(b'\\xff\\xfe')", "not UTF-8"),
        ("path.unlink()", "can't be read"),
        ("path.write_bytes(b'x' * 4_000_001)", "too long"),
        ("path.write_bytes(b'x' * 1_000_001)", "too long"),
    ],
)
def test_a_failure_is_told_and_changes_nothing(tmp_path: Path, body: str, why: str) -> None:
    with pytest.raises(EditorFailed, match=why) as failed:
        edit_in(script(tmp_path, body), "before", "txt")
    assert "the field is as it was" in str(failed.value)


def test_an_editor_that_is_not_there_is_named() -> None:
    with pytest.raises(EditorFailed, match="no-such-editor could not be started: No such file"):
        edit_in(["no-such-editor"], "", "txt")


def test_no_more_is_read_than_may_come_back(tmp_path: Path) -> None:
    endless = script(tmp_path, "path.unlink(); os.symlink('/dev/zero', path)")
    with pytest.raises(EditorFailed, match="too long"):
        edit_in(endless, "", "txt")
    assert editor.MOST_BYTES < 10_000_000
    assert os.path.exists("/dev/zero")
