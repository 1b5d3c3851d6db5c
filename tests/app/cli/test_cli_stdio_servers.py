"""``servers`` for servers that are started with a command, and ``doctor``."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from fakes.cli_engine import Installation

from app.engine.commands import EngineError, ServerReport
from app.engine.stderr import StderrFile
from storage.migrations import MIGRATIONS
from storage.records import ServerRecord

URL = "http://127.0.0.1:1/mcp"


def written(home: Installation) -> dict[str, object]:
    return json.loads(home.paths.servers_file.read_text())["mcpServers"]


def test_a_command_behind_two_dashes_is_saved_as_other_hosts_write_it(
    home: Installation, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    command = ["npx", "-y", "some-server", "--force", "--json"]
    options = ["--env", "KEY=${KEY}", "--env", "EMPTY=", "--cwd", str(tmp_path), "--json"]
    assert home.run("servers", "add", "files", *options, "--", *command) == 0
    captured = capsys.readouterr()
    assert "added; `taskinbox servers test files` starts it" in captured.err
    assert json.loads(captured.out) == {
        "name": "files",
        "command": "npx",
        "args": command[1:],
        "env": ["EMPTY", "KEY"],
        "cwd": str(tmp_path),
    }
    env = {"KEY": "${KEY}", "EMPTY": ""}
    assert written(home) == {
        "files": {"command": "npx", "args": command[1:], "env": env, "cwd": str(tmp_path)}
    }
    assert not home.engine.asked


def test_the_same_command_again_is_no_error_and_another_one_needs_force(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    assert home.run("servers", "add", "files", "--", "npx", "a") == 0
    assert home.run("servers", "add", "files", "--", "npx", "a") == 0
    assert "already there" in capsys.readouterr().err
    assert home.run("servers", "add", "files", "--env", "A=1", "--", "npx", "a") == 2
    assert "npx a with other variables or another folder. --force" in capsys.readouterr().err
    assert home.run("servers", "add", "files", URL) == 2
    assert "is there already: npx a. --force" in capsys.readouterr().err
    assert home.run("servers", "add", "files", URL, "--force") == 0
    assert written(home) == {"files": {"url": URL}}


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["npx"], "a command that starts a server stands behind --"),
        (["lab.example.com/mcp"], "A URL begins with http:// or https://"),
        ([URL, "--env", "A=1"], "--env and --cwd are for servers that are started"),
        ([URL, "--cwd", "/"], "--env and --cwd are for servers that are started"),
        (["--header", "A: b", "--", "npx"], "--header is for servers that have a URL"),
        (["--env", "A", "--", "npx"], "--env: write it as NAME=VALUE."),
        (["--env", "=b", "--", "npx"], "--env: write it as NAME=VALUE."),
        (["--", ""], "The command is empty."),
        (["--", "npx", "${"], "can't be read"),
    ],
)
def test_what_is_said_wrongly_is_refused_and_nothing_is_written(
    home: Installation, capsys: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    assert home.run("servers", "add", "x", *argv) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert not home.paths.servers_file.exists()


def test_a_url_behind_two_dashes_is_still_a_url(home: Installation) -> None:
    assert home.run("servers", "add", "--", "lab", URL) == 0
    assert written(home) == {"lab": {"url": URL}}


def test_paths_are_made_absolute_where_that_can_be_known_and_warned_of_where_not(
    home: Installation,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.py").write_text("")
    assert home.run("servers", "add", "a", "--", "./server.py") == 0
    assert home.run("servers", "add", "b", "--", "python", "server.py") == 0
    assert "warning: server.py is found only by programs that run in this folder" in capsys.readouterr().err
    assert home.run("servers", "add", "c", "--cwd", ".", "--", "python", "server.py") == 0
    assert "warning" not in capsys.readouterr().err
    assert written(home) == {
        "a": {"command": str(tmp_path / "server.py")},
        "b": {"command": "python", "args": ["server.py"]},
        "c": {"command": "python", "args": ["server.py"], "cwd": str(tmp_path)},
    }


def test_a_secret_in_clear_is_warned_of(home: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    assert home.run("servers", "add", "a", "--env", "API_TOKEN=s3cret", "--", "npx") == 0
    said = capsys.readouterr().err
    assert "API_TOKEN is written in clear" in said
    assert "s3cret" not in said


def test_the_list_shows_the_command_line_inert_and_quoted(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.paths.servers_file.write_text(
        '{"mcpServers": {"a": {"command": "npx", "args": ["a b", "\\u001b[31m"]}}}'
    )
    assert home.run("servers", "list") == 0
    shown = capsys.readouterr().out
    assert "npx 'a b' '␛[31m'" in shown
    assert home.run("servers", "list", "--json") == 0
    (shape,) = json.loads(capsys.readouterr().out)
    assert (shape["url"], shape["command"], shape["args"]) == (None, "npx", ["a b", "\x1b[31m"])


def test_a_test_that_fails_shows_what_the_server_said_last_inert(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.engine.failure = EngineError("unreachable", "It ended.", stderr=("Traceback", "\x1b[31mno"))
    assert home.run("servers", "test", "a") == 4
    assert capsys.readouterr().err.splitlines() == [
        "stderr| Traceback",
        "stderr| ␛[31mno",
        "Error: It ended.",
    ]


def test_the_doctor_says_that_all_is_well(home: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    home.run("servers", "add", "lab", URL)
    home.task()
    capsys.readouterr()
    assert home.run("doctor") == 0
    captured = capsys.readouterr()
    assert "All is well." in captured.err
    assert str(home.paths.database) in captured.out
    assert "1 task" in captured.out
    assert "lab: unknown" in captured.out
    assert not home.engine.asked


def test_the_doctor_names_each_problem_and_ends_with_1(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.paths.servers_file.write_text(
        json.dumps(
            {
                "mcpServers": {
                    "bad": {"command": 3},
                    "unset": {"command": "npx", "env": {"A": "${NOT_SET}"}},
                    "down": {"command": "npx"},
                }
            }
        )
    )
    home.store.set_server(ServerRecord("down", "unreachable", home.now, "Unreachable: \x1b[31mit ended."))
    StderrFile(home.paths.stderr, "down").write(b"one\ntwo\nthree\n\nfour\nfive\nsix \x1b[1m\n")
    assert home.run("doctor") == 1
    captured = capsys.readouterr()
    assert "3 problems." in captured.err
    assert "Server bad in" in captured.err
    assert "Server unset: the variable A needs the variable NOT_SET" in captured.err
    assert "Server down: Unreachable: ␛[31mit ended." in captured.err
    assert "bad: unusable" in captured.out
    assert "stderr| six ␛[1m" in captured.out
    assert "stderr| one" not in captured.out
    assert home.run("doctor", "--json") == 1
    shape = json.loads(capsys.readouterr().out)
    assert len(shape["problems"]) == 3
    assert [server["name"] for server in shape["servers"]] == ["bad", "unset", "down"]
    assert shape["servers"][2]["stderr"] == ["two", "three", "four", "five", "six \x1b[1m"]
    assert (shape["store"]["opens"], shape["store"]["version"]) == (True, len(MIGRATIONS))
    assert not home.engine.asked


def test_the_doctor_survives_a_store_and_a_servers_file_that_cannot_be_read(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.close()
    for file in home.paths.data.iterdir():
        file.unlink()
    home.paths.database.write_bytes(b"x" * 10_000)
    home.paths.servers_file.write_text("{")
    for argv in (["doctor"], ["doctor", "--contact"]):
        assert home.run(*argv) == 1
        captured = capsys.readouterr()
        assert "can't be opened" in captured.out
        assert "2 problems." in captured.err
        assert "mcp.json, line 1" in captured.err
    assert home.run("doctor", "--json") == 1
    assert json.loads(capsys.readouterr().out)["store"]["opens"] is False


def test_the_doctor_contacts_every_server_only_when_told_to(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.run("servers", "add", "a", URL)
    home.run("servers", "add", "b", "--", "npx")
    capsys.readouterr()
    home.engine.report = ServerReport("a", "A", ("2026-07-28",), True, 3, None, warnings=("odd\x1b[1m",))
    assert home.run("doctor", "--contact") == 0
    assert home.engine.asked == [("test", "a"), ("test", "b")]
    assert "warning: odd␛[1m" in capsys.readouterr().out
    home.engine.failure = EngineError("unreachable", "Server a: gone.", stderr=("last words",))
    assert home.run("doctor", "--contact", "--json") == 1
    shape = json.loads(capsys.readouterr().out)
    assert shape["servers"][1]["stderr"] == ["last words"]
    assert shape["problems"] == ["Server a: gone.", "Server a: gone."]


def test_the_doctor_does_not_wait_for_ever(
    home: Installation, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silence(server: str) -> ServerReport:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(home.engine, "test_server", silence)
    monkeypatch.setattr("app.cli.doctor._PATIENCE", 0.01)
    home.run("servers", "add", "a", URL)
    assert home.run("doctor", "--contact") == 1
    assert "problem: Server a did not answer within 0.01 s." in capsys.readouterr().err
