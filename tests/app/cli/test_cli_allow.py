"""``servers allow``, and answers to sampling and roots from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes.cli_engine import Installation

from app.config import add_command, add_server
from storage.records import NewQuestion

ASKS = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Capital\nof \x1b[31mFrance?"}}],
    "systemPrompt": "Be brief.",
    "maxTokens": 10,
    "modelPreferences": {"hints": [{"name": "sonnet"}]},
}


def sampling(**changed: Any) -> NewQuestion:
    request = {"method": "sampling/createMessage", "params": {**ASKS, **changed}}
    return NewQuestion("s", "f", "sampling/createMessage", json.dumps(request))


ROOTS = NewQuestion("r", "f", "roots/list", '{"method": "roots/list"}')


def entry(home: Installation, name: str = "lab") -> dict[str, Any]:
    document = json.loads(home.paths.servers_file.read_text())
    found: dict[str, Any] = document["mcpServers"][name]
    return found


@pytest.fixture
def lab(home: Installation) -> Installation:
    add_server(home.paths.servers_file, "lab", "https://lab.example/mcp")
    return home


def sent(home: Installation) -> list[Any]:
    return [json.loads(what[2]) for what in home.engine.asked if what[0] == "answer"]  # type: ignore[call-overload]


def test_a_server_is_allowed_to_ask_and_no_longer(
    lab: Installation, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert lab.run("servers", "allow", "lab") == 0
    assert capsys.readouterr().out == "sampling  off\nroots     none\n"
    assert "taskinbox" not in entry(lab)
    folder = tmp_path / "a b"
    folder.mkdir()
    command = ["servers", "allow", "lab", "--sampling", "--draft-with", "llm -m 'my model'", "--root"]
    assert lab.run(*command, str(folder)) == 0
    assert entry(lab)["taskinbox"] == {
        "sampling": True,
        "samplingCommand": ["llm", "-m", "my model"],
        "roots": [str(folder)],
    }
    assert capsys.readouterr().out.splitlines() == [
        "sampling  on",
        "drafts    llm -m 'my model'",
        f"root      {folder}",
    ]
    assert lab.run("servers", "allow", "lab", "--root", str(tmp_path), "--json") == 0
    assert json.loads(capsys.readouterr().out)["roots"] == [str(folder), str(tmp_path)]
    assert lab.run("servers", "allow", "lab", "--no-roots", "--root", str(tmp_path)) == 0
    assert entry(lab)["taskinbox"]["roots"] == [str(tmp_path)]
    assert lab.run("servers", "allow", "lab", "--no-sampling", "--draft-with", "", "--no-roots") == 0
    assert entry(lab) == {"url": "https://lab.example/mcp"}


def test_a_folder_is_kept_where_it_really_is(
    lab: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    monkeypatch.chdir(tmp_path)
    assert lab.run("servers", "allow", "lab", "--root", "link", "--root", "real/../real") == 0
    assert entry(lab)["taskinbox"]["roots"] == [str(real)]


@pytest.mark.parametrize(
    "options", [["--root", "/no/such/folder"], ["--root", "\0"], ["--draft-with", "'open"], ["--nonsense"]]
)
def test_what_can_not_be_allowed_changes_nothing(
    lab: Installation, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    assert lab.run("servers", "allow", "lab", "--sampling", *options) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert entry(lab) == {"url": "https://lab.example/mcp"}


def test_a_server_that_is_not_there_can_be_allowed_nothing(lab: Installation) -> None:
    assert lab.run("servers", "allow", "other", "--sampling") == 3


def test_a_server_that_is_started_is_said_to_be_started_anew(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    add_command(home.paths.servers_file, "tool", "/opt/tool")
    assert home.run("servers", "allow", "tool", "--sampling") == 0
    assert "starts tool anew" in capsys.readouterr().err
    assert home.run("servers", "allow", "tool", "--draft-with", "x") == 0
    assert "anew" not in capsys.readouterr().err


def test_another_server_under_the_same_name_is_allowed_nothing(lab: Installation) -> None:
    assert lab.run("servers", "allow", "lab", "--sampling") == 0
    assert lab.run("servers", "add", "lab", "https://lab.example/mcp") == 0
    assert entry(lab)["taskinbox"] == {"sampling": True}
    assert lab.run("servers", "add", "lab", "https://other.example/mcp", "--force") == 0
    assert "taskinbox" not in entry(lab)


# Answering


@pytest.mark.rule("sampling.approval", "sampling.reviewed")
def test_a_sampling_request_is_shown_in_full_and_answered_by_fields_or_as_json(
    lab: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.task("tsk_1", sampling())
    assert lab.run("answer", "tsk_1", "--field", "text=Paris") == 2
    assert "off for this server" in capsys.readouterr().err
    lab.run("servers", "allow", "lab", "--sampling")
    capsys.readouterr()
    assert lab.run("show", "tsk_1") == 0
    shown = capsys.readouterr().out
    for line in ("  system prompt:\n  | Be brief.", "  user:\n  | Capital\n  | of ␛[31mFrance?", "10 tokens"):
        assert line in shown
    expected = {
        "role": "assistant",
        "content": {"type": "text", "text": "Paris"},
        "model": "human",
        "stopReason": "endTurn",
    }
    assert lab.run("answer", "tsk_1", "--field", "text=Paris", "--dry-run") == 0
    assert json.loads(capsys.readouterr().out) == expected
    assert not lab.engine.asked
    result = '{"role": "assistant", "content": [{"type": "text", "text": "P"}], "model": "m"}'
    assert lab.run("answer", "tsk_1", "--accept", result, "--dry-run") == 0
    assert json.loads(capsys.readouterr().out) == json.loads(result)
    assert lab.run("answer", "tsk_1", "s", "--accept", result) == 0
    assert sent(lab) == [json.loads(result)]


@pytest.mark.rule("sampling.max-tokens")
@pytest.mark.parametrize(
    ("said", "line"),
    [
        (["--accept", "{}"], "role: required"),
        (["--accept", "{}"], "model: required"),
        (["--accept", '{"action": "accept"}'], "content: required"),
        (["--field", "model=m"], "text: required"),
        (["--field", "tex=m"], "tex"),
        (["--field", "text=" + "x" * 100], "text: 100 characters are more than 10 tokens can hold"),
        (["--defaults"], "text: required"),
    ],
)
def test_what_is_no_reply_is_refused_field_by_field(
    lab: Installation, capsys: pytest.CaptureFixture[str], said: list[str], line: str
) -> None:
    lab.run("servers", "allow", "lab", "--sampling")
    lab.task("tsk_1", sampling())
    capsys.readouterr()
    assert lab.run("answer", "tsk_1", *said) == 2
    assert line in capsys.readouterr().err
    assert not lab.engine.asked


def test_a_reply_that_may_be_too_long_is_warned_of_and_goes(
    lab: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.run("servers", "allow", "lab", "--sampling")
    lab.task("tsk_1", sampling())
    assert lab.run("answer", "tsk_1", "--field", "text=" + "x" * 60) == 0
    assert "warning: text: about 15 tokens" in capsys.readouterr().err
    assert len(sent(lab)) == 1


@pytest.mark.rule("sampling.human-in-the-loop", "roots.consent")
@pytest.mark.parametrize("option", ["--decline", "--dismiss"])
def test_a_refusal_is_recorded_and_not_sent(
    lab: Installation, capsys: pytest.CaptureFixture[str], tmp_path: Path, option: str
) -> None:
    lab.run("servers", "allow", "lab", "--sampling", "--root", str(tmp_path))
    lab.task("tsk_1", sampling(), ROOTS)
    capsys.readouterr()
    assert lab.run("answer", "tsk_1", "s", option, "--dry-run") == 0
    assert "Nothing would be sent" in capsys.readouterr().err
    assert not lab.engine.asked
    assert lab.run("answer", "tsk_1", "s", option) == 0
    assert "`taskinbox cancel tsk_1`" in capsys.readouterr().err
    assert lab.run("answer", "tsk_1", "r", option, "--json") == 0
    assert json.loads(capsys.readouterr().out)["state"] == "refused-here"
    assert lab.engine.asked == [("refuse", "s"), ("refuse", "r")]


def test_what_was_refused_is_shown_so_and_can_be_answered_after_all_by_its_key(
    lab: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.run("servers", "allow", "lab", "--sampling")
    key = lab.task("tsk_1", sampling())
    assert lab.run("answer", "tsk_1", "--decline") == 0
    capsys.readouterr()
    assert lab.run("show", "tsk_1") == 0
    assert "Refused here; the server was told nothing." in capsys.readouterr().out
    assert lab.run("answer", "tsk_1", "--field", "text=Paris") == 3  # which one is not said
    assert lab.run("answer", "tsk_1", "s", "--decline") == 3
    assert "refused here already" in capsys.readouterr().err
    assert lab.run("answer", "tsk_1", "s", "--field", "text=Paris", "--dry-run") == 0
    assert lab.questions(key)[0].state == "withdrawn"
    assert lab.run("answer", "tsk_1", "s", "--field", "text=") == 2
    assert lab.questions(key)[0].state == "withdrawn"
    assert lab.run("answer", "tsk_1", "s", "--field", "text=Paris") == 0
    assert len(sent(lab)) == 1


@pytest.mark.rule("roots.exposed-with-care", "roots.file-uri")
def test_the_allowed_folders_are_shown_and_sent_and_no_others(
    lab: Installation, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    gone, there = tmp_path / "gone", tmp_path / "there"
    gone.mkdir()
    there.mkdir()
    lab.task("tsk_1", ROOTS)
    assert lab.run("answer", "tsk_1", "--defaults") == 2
    assert "no folder is allowed" in capsys.readouterr().err
    lab.run("servers", "allow", "lab", "--root", str(gone), "--root", str(there))
    gone.rmdir()
    capsys.readouterr()
    assert lab.run("show", "tsk_1") == 0
    assert f"    {there}\n" in capsys.readouterr().out
    expected = {"roots": [{"uri": there.as_uri(), "name": "there"}]}
    assert lab.run("answer", "tsk_1", "--dry-run") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == expected
    assert f"left out, since it can't be looked into now: {gone}" in captured.err
    other = json.dumps({"roots": [{"uri": "file:///etc"}]})
    assert lab.run("answer", "tsk_1", "--accept", other) == 2
    assert lab.run("answer", "tsk_1", "--field", "x=1") == 2
    assert not lab.engine.asked
    assert lab.run("answer", "tsk_1", "--defaults") == 0
    assert sent(lab) == [expected]
