"""``servers add``: what is there is never replaced by accident."""

from __future__ import annotations

import json

import pytest
from fakes.cli_engine import Installation

URL, OTHER = "http://127.0.0.1:1/mcp", "http://127.0.0.1:2/mcp"


def test_the_same_entry_again_is_no_error_and_writes_nothing(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    assert home.run("servers", "add", "lab", URL, "--header", "X-A: ${TOKEN}") == 0
    before = home.paths.servers_file.stat().st_ino
    capsys.readouterr()
    assert home.run("servers", "add", "lab", URL, "--header", "X-A: ${TOKEN}", "--json") == 0
    captured = capsys.readouterr()
    assert "already there" in captured.err
    assert json.loads(captured.out) == {"name": "lab", "url": URL, "headers": ["X-A"]}
    assert home.paths.servers_file.stat().st_ino == before


@pytest.mark.parametrize("new", [[OTHER], [URL, "--header", "X-A: 1"]])
def test_another_entry_is_replaced_by_force_alone(
    home: Installation, capsys: pytest.CaptureFixture[str], new: list[str]
) -> None:
    assert home.run("servers", "add", "lab", URL) == 0
    before = home.paths.servers_file.read_bytes()
    capsys.readouterr()
    assert home.run("servers", "add", "lab", *new) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert URL in line
    assert "--force" in line
    assert home.paths.servers_file.read_bytes() == before
    assert home.run("servers", "add", "lab", *new, "--force") == 0
    assert "replaced" in capsys.readouterr().err
    assert home.paths.servers_file.read_bytes() != before


def test_an_entry_that_is_started_with_a_command_is_not_replaced_either(home: Installation) -> None:
    home.paths.servers_file.write_text('{"mcpServers": {"lab": {"command": "npx"}}}')
    assert home.run("servers", "add", "lab", URL) == 2
    assert "npx" in home.paths.servers_file.read_text()


def test_a_name_like_an_option_is_refused(home: Installation) -> None:
    assert home.run("servers", "add", "--", "-x", URL) == 2
    assert not home.paths.servers_file.exists()
