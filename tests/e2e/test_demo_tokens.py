"""``demo-server --tokens FILE`` and the inbox's commands as its clients."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fakes.cli_program import PATIENCE, Program

pytestmark = pytest.mark.e2e

TOKENS = {"ada": "token-of-ada-in-a-test", "eve": "token-of-eve-in-a-test"}


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "tokens.json"
    entries = {token: {"tenant": f"{who}'s", "principal": who} for who, token in TOKENS.items()}
    path.write_text(json.dumps(entries))
    path.chmod(0o600)
    return path


@contextmanager
def serving(program: Program, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The service by its command; yields its URL."""
    process = subprocess.Popen(
        [program.executable, "demo-server", "--step-seconds", "0.01", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=program.environment,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1], process
    finally:
        process.kill()
        process.communicate()


def test_a_tenant_reaches_its_own_tasks_and_a_stranger_none(tmp_path: Path, tokens: Path) -> None:
    program = Program(tmp_path / "home")
    program.home.mkdir()
    with serving(program, "--tokens", str(tokens)) as (url, process):
        program.run("servers", "add", "nobody", url)
        for who in TOKENS:
            header = f"Authorization: Bearer ${{TOKEN_OF_{who.upper()}}}"
            program.run("servers", "add", who, url, "--header", header)
        known = {f"TOKEN_OF_{who.upper()}": token for who, token in TOKENS.items()}
        done = program.run("call", "ada", "flaky_job", "--wait", "--json", code=1, env=known)
        task_id = json.loads(done.stdout)["taskId"]
        program.run("add", "ada", task_id, env=known)
        stranger = program.run("add", "eve", task_id, code=None, env=known)
        assert stranger.returncode in (1, 3)
        assert "task not found" in stranger.stderr
        unknown = program.run("tools", "nobody", code=5)
        assert "sign-in" in unknown.stderr
        process.terminate()
        _, said = process.communicate(timeout=PATIENCE)
    assert said == ""


def test_a_file_that_others_can_read_is_warned_of_and_no_token_is_told(tmp_path: Path, tokens: Path) -> None:
    program = Program(tmp_path / "home")
    tokens.chmod(0o644)
    with serving(program, "--tokens", str(tokens)) as (_, process):
        process.terminate()
        _, said = process.communicate(timeout=PATIENCE)
    assert said.startswith("warning: other users of this machine can read the tokens in")
    assert not any(token in said for token in TOKENS.values())


@pytest.mark.parametrize(("text", "words"), [(None, "can't be read"), ("{]", "isn't JSON")])
def test_a_file_of_tokens_that_cannot_be_used_is_one_clear_line(
    tmp_path: Path, text: str | None, words: str
) -> None:
    program = Program(tmp_path / "home")
    path = tmp_path / "tokens.json"
    if text is not None:
        path.write_text(text)
        path.chmod(0o600)
    done = program.run("demo-server", "--tokens", str(path), code=1)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert words in done.stderr
