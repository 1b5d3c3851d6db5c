"""What the command line really writes to a terminal."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from fakes.cli_program import Program
from fakes.terminal import Terminal

from storage.records import NewQuestion, NewTask, TaskKey, TaskState
from storage.store import Store

pytestmark = [pytest.mark.e2e, pytest.mark.terminal]

HOSTILE = "\x1b[2J\x1b]52;c;aGk=\x07\x9b31m\u202ered [red]x[/red]\x00"
STYLE = re.compile(rb"\x1b\[[0-9;]*m")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """An installation whose only task is hostile in every string."""
    program = Program(tmp_path / "home")
    program.run("list")
    database = Path(program.json("locate")["database"])
    request = json.dumps({"method": "elicitation/create", "params": {"message": HOSTILE, "mode": HOSTILE}})
    result = json.dumps({"content": [{"type": "text", "text": HOSTILE}], "structuredContent": HOSTILE})
    state = TaskState("input_required", status_message=HOSTILE, result_json=result)
    store = Store.open(database, clock=lambda: 1_800_000_000_000)
    store.add_task(
        NewTask(
            TaskKey("lab", "tsk_1" + HOSTILE.replace("\x00", "")),
            tool=HOSTILE.replace("\x00", ""),
            state=state,
        ),
        questions=[NewQuestion("k\x1b[1m", "print", "elicitation/create", request)],
    )
    store.close()
    return program


@pytest.mark.rule("wire.text-inert")
@pytest.mark.parametrize(
    "argv", [["list"], ["show", "tsk_1"], ["answer", "tsk_1", "--decline"], ["list", "--json"]]
)
def test_no_control_sequence_of_a_server_reaches_the_terminal(program: Program, argv: list[str]) -> None:
    with Terminal(program.command(*argv), env={"TASKINBOX_HOME": str(program.home)}) as terminal:
        terminal.wait_ended()
    raw = bytes(terminal.raw)  # all of it: leaving the block waits for the last byte
    assert b"tsk_1" in raw
    text = STYLE.sub(b"", raw) if argv == ["list"] else raw
    assert not set(text) & {0x00, 0x07, 0x1B}
    assert "\x9b" not in text.decode()
    assert "\u202e" not in text.decode()


def test_the_list_fits_the_terminal_and_says_what_was_cut(program: Program) -> None:
    with Terminal(program.command("list"), env={"TASKINBOX_HOME": str(program.home)}, columns=60) as terminal:
        terminal.wait_ended()
    lines = terminal.text().splitlines()
    assert [line for line in lines if line][-1].endswith("…")
    assert len([line for line in lines if line]) == 2


def test_colour_is_for_terminals_that_want_it(program: Program) -> None:
    def raw(**environment: str) -> bytes:
        env = {"TASKINBOX_HOME": str(program.home), **environment}
        with Terminal(
            ["env", *(f"{k}={v}" for k, v in environment.items()), *program.command("list")], env=env
        ) as t:
            t.wait_ended()
        return bytes(t.raw)

    assert STYLE.search(raw())
    assert not STYLE.search(raw(NO_COLOR="1"))
    assert not STYLE.search(raw(TERM="dumb"))
    assert not STYLE.search(program.run("list").stdout.encode())


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('"$0" list --json >&-', 0),
        ('"$0" list 2>&-', 0),
        ('"$0" <&-', 2),
        ('"$0" call lab x --args - <&-', 2),
        ('"$0" locate --json >/dev/full', 1),
        ('"$0" show nothing 2>/dev/full', 3),
    ],
)
def test_closed_and_full_streams_end_in_an_exit_code_without_a_traceback(
    tmp_path: Path, line: str, code: int
) -> None:
    program = Program(tmp_path / "home")
    done = subprocess.run(
        ["sh", "-c", line, program.executable],
        capture_output=True,
        text=True,
        timeout=60,
        env=program.environment,
    )
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    assert done.returncode == code, done.stderr
