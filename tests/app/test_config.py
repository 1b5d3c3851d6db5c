"""The servers file: what is read, refused, expanded and kept."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from app.config import (
    ConfigError,
    ServersFile,
    StdioConnection,
    UnknownServer,
    add_command,
    add_server,
    check_name,
    check_url,
    connection,
    remove_server,
    servers,
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "mcp.json"


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_a_missing_or_empty_file_has_no_servers(file: Path) -> None:
    assert servers(file) == {}
    assert servers(write(file, "\n")) == {}
    assert servers(write(file, '{"mcpServers": null}')) == {}


def test_an_added_server_is_there_in_a_private_file(file: Path) -> None:
    assert add_server(file, "ci", "https://ci.example.com/mcp", {"X-Team": "${TEAM}"}) == ()
    entry = servers(file)["ci"]
    assert (entry.url, dict(entry.headers), entry.problem) == (
        "https://ci.example.com/mcp",
        {"X-Team": "${TEAM}"},
        None,
    )
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [p.name for p in file.parent.iterdir()] == ["mcp.json"]


def test_rewriting_keeps_what_this_program_does_not_know(file: Path) -> None:
    write(
        file,
        '{"theme": "dark", "mcpServers": {"a": {"url": "http://localhost:1/mcp", "note": "é"},'
        ' "local": {"command": "npx", "args": ["x"]}}}',
    )
    add_server(file, "b", "http://127.0.0.1:2/mcp")
    add_server(file, "a", "http://localhost:9/mcp")
    document = json.loads(file.read_text(encoding="utf-8"))
    assert document["theme"] == "dark"
    assert document["mcpServers"]["a"] == {"url": "http://localhost:9/mcp", "note": "é"}
    assert document["mcpServers"]["local"] == {"command": "npx", "args": ["x"]}
    assert list(document["mcpServers"]) == ["a", "local", "b"]
    remove_server(file, "a")
    assert list(servers(file)) == ["local", "b"]


def test_a_link_to_the_file_stays_a_link(tmp_path: Path) -> None:
    real = write(tmp_path / "dotfiles" / "mcp.json", "{}")
    link = tmp_path / "config" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    add_server(link, "a", "http://localhost:1/mcp")
    assert link.is_symlink()
    assert "a" in servers(real)


def test_a_failed_write_leaves_the_old_file(file: Path) -> None:
    add_server(file, "a", "http://localhost:1/mcp")
    before = file.read_bytes()
    with pytest.raises(ConfigError):
        add_server(file, "b", "http://localhost:1/mcp", {"X": "\ud800"})
    assert file.read_bytes() == before
    assert [p.name for p in file.parent.iterdir()] == ["mcp.json"]


def test_a_malformed_file_is_named_with_its_line_and_left_alone(file: Path) -> None:
    write(file, '{"mcpServers": {\n  "a": {"url": "x",}\n}}')
    with pytest.raises(ConfigError, match=r"mcp\.json, line 2, column"):
        servers(file)
    with pytest.raises(ConfigError):
        add_server(file, "b", "http://localhost/mcp")
    assert '"url": "x",}' in file.read_text()


@pytest.mark.parametrize("text", ["[]", "3", '{"mcpServers": []}', '{"mcpServers": 1}', "[" * 100_000])
def test_a_file_of_another_shape_is_refused(file: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"mcp\.json"):
        servers(write(file, text))


def test_a_file_that_is_not_utf_8_is_refused(file: Path) -> None:
    write(file, "")
    file.write_bytes(b'{"\xff": 1}')
    with pytest.raises(ConfigError, match="UTF-8"):
        servers(file)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ('{"command": 3}', '"command" is not a text'),
        ('{"command": " "}', '"command" is not a text, or is empty'),
        ('{"type": "stdio", "url": "x"}', '"command" is not a text'),
        ('{"command": "x", "args": "-y"}', '"args" are not a list of strings'),
        ('{"command": "x", "args": [1]}', '"args" are not a list of strings'),
        ('{"command": "x", "env": []}', '"env" is no object of strings'),
        ('{"command": "x", "env": {"A": 1}}', '"env" is no object of strings'),
        ('{"command": "x", "cwd": 1}', '"cwd" is not a text'),
        ('{"command": "x", "url": "http://x/"}', 'both a "url" and a "command"'),
        ('{"type": "sse", "url": "http://x/"}', "'sse'"),
        ("3", "not an object"),
        ("{}", 'no "url"'),
        ('{"url": 3}', 'no "url"'),
        ('{"url": "http://x/", "headers": []}', "headers"),
        ('{"url": "http://x/", "headers": {"A": 1}}', "headers"),
    ],
)
def test_one_bad_entry_says_why_and_does_not_hide_the_others(file: Path, entry: str, problem: str) -> None:
    found = servers(write(file, f'{{"mcpServers": {{"bad": {entry}, "good": {{"url": "http://x/"}}}}}}'))
    assert problem in (found["bad"].problem or "")
    assert found["good"].problem is None
    with pytest.raises(ConfigError, match="Server bad in"):
        connection(file, "bad", {})


@pytest.mark.parametrize("kind", ["http", "streamable-http", "streamableHttp"])
def test_an_entry_pasted_from_another_host_may_name_its_type(file: Path, kind: str) -> None:
    write(file, f'{{"mcpServers": {{"a": {{"type": "{kind}", "url": "https://x/mcp"}}}}}}')
    assert connection(file, "a", {}).url == "https://x/mcp"


@pytest.mark.parametrize("name", ["a", "ci-1", "büro", "x" * 64, "日本"])
def test_a_plain_name_is_accepted(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize(
    "name", ["", "x" * 65, "a/b", "a b", "a\tb", "a\x1bb", "a\u202eb", "a\u00a0b", "\ud800", "-a", "--help"]
)
def test_a_name_that_could_not_stand_in_a_task_s_address_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        check_name(name)


@pytest.mark.parametrize(
    "url", ["http://localhost:8080/mcp", "https://x", "HTTPS://EXAMPLE.com/a?b=c", "http://[::1]:3/"]
)
def test_an_http_address_is_accepted(url: str) -> None:
    check_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x",
        "ftp://x/",
        "file:///etc/passwd",
        "http://",
        "http:///mcp",
        "https://user:pw@x/",
        "https://user@x/",
        "http://x:99999/",
        "http://x:a/",
        "http://[::1/",
        "http://x/ y",
        "http://x/\x1b[1m",
        "http://x/#f",
    ],
)
def test_another_address_is_refused_before_anything_is_written(file: Path, url: str) -> None:
    with pytest.raises(ConfigError):
        add_server(file, "a", url)
    assert not file.exists()


def test_variables_expand_only_when_connecting(file: Path) -> None:
    add_server(file, "ci", "http://localhost:${PORT:-8000}/mcp", {"Authorization": "Bearer ${TOKEN}"})
    assert servers(file)["ci"].headers == {"Authorization": "Bearer ${TOKEN}"}
    made = connection(file, "ci", {"TOKEN": "s3cret${X}"})
    assert made.url == "http://localhost:8000/mcp"
    assert made.headers == {"Authorization": "Bearer s3cret${X}"}
    assert connection(file, "ci", {"TOKEN": "", "PORT": "9"}).url == "http://localhost:9/mcp"


def test_an_unset_variable_names_server_header_and_variable(file: Path) -> None:
    add_server(file, "ci", "https://x/mcp", {"Authorization": "Bearer ${TOKEN}"})
    with pytest.raises(ConfigError, match=r"Server ci: the header Authorization needs the variable TOKEN"):
        connection(file, "ci", {})


@pytest.mark.parametrize("value", ["${", "${}", "${1A}", "${A", "x ${A-b} y"])
def test_a_variable_that_can_not_be_read_is_refused(file: Path, value: str) -> None:
    with pytest.raises(ConfigError, match=r"\$\{NAME"):
        add_server(file, "a", "https://x/", {"H": value})


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("A b", "x"),
        ("", "x"),
        ("A", "x\r\nB: y"),
        ("A", "é\u2603"),
        ("Mcp-Method", "x"),
        ("Content-Type", "x"),
    ],
)
def test_a_header_that_can_not_be_sent_is_refused(file: Path, header: str, value: str) -> None:
    with pytest.raises(ConfigError):
        add_server(file, "a", "https://x/", {header: value})


def test_a_line_break_that_comes_from_the_environment_is_refused_without_being_shown(file: Path) -> None:
    add_server(file, "a", "https://x/", {"Authorization": "${T}"})
    with pytest.raises(ConfigError) as caught:
        connection(file, "a", {"T": "hush\nX: y"})
    assert "hush" not in str(caught.value)


def test_a_url_from_the_environment_is_checked_like_any_other(file: Path) -> None:
    add_server(file, "a", "${URL}")
    with pytest.raises(ConfigError, match="Server a"):
        connection(file, "a", {"URL": "file:///etc/passwd"})


@pytest.mark.parametrize(
    ("url", "headers", "warned"),
    [
        ("http://example.com/mcp", {"X-Key": "${K}"}, "unencrypted"),
        ("http://example.com/mcp", {}, None),
        ("http://127.0.0.1:1/mcp", {"X-Key": "${K}"}, None),
        ("http://[::1]:1/mcp", {"X-Key": "${K}"}, None),
        ("http://localhost/mcp", {"X-Key": "${K}"}, None),
        ("https://example.com/mcp", {"X-Key": "${K}"}, None),
        ("https://example.com/mcp", {"Authorization": "Bearer abc"}, "in clear"),
    ],
)
def test_a_secret_in_danger_is_warned_about(
    file: Path, url: str, headers: dict[str, str], warned: str | None
) -> None:
    text = " ".join(add_server(file, "a", url, headers))
    assert (warned in text) if warned else text == ""
    assert "abc" not in text


def test_secrets_are_not_in_the_representation_of_a_connection(file: Path) -> None:
    add_server(file, "a", "https://x/", {"Authorization": "Bearer ${T}"})
    assert "hush" not in repr(connection(file, "a", {"T": "hush"}))


def test_a_server_that_is_not_there_can_not_be_removed_or_connected(file: Path) -> None:
    with pytest.raises(UnknownServer):
        remove_server(file, "a")
    with pytest.raises(UnknownServer, match="servers add"):
        connection(file, "a", {})
    assert not file.exists()


def test_the_interface_for_screens_lists_adds_and_removes(file: Path) -> None:
    face = ServersFile(file)
    face.add("a", "http://localhost:1/mcp", {"X": "1"})
    write(file, file.read_text().replace('"mcpServers": {', '"mcpServers": {"s": {"command": "npx"},'))
    assert face.list()[1] == ("a", "http://localhost:1/mcp")
    assert face.list()[0] == ("s", "npx")
    face.add_command("t", "npx", ["-y", "a b"])
    assert face.list()[2] == ("t", "npx -y 'a b'")
    write(file, file.read_text().replace('"npx"', "3"))
    assert face.list()[0] == ("s", '(its "command" is not a text, or is empty)')
    face.remove("a")
    face.remove("t")
    assert list(face.entries()) == ["s"]


def test_reading_names_loads_nothing_heavy(file: Path) -> None:
    add_server(file, "a", "http://localhost:1/mcp")
    code = (
        "import sys, pathlib, app.config as c; assert list(c.servers(pathlib.Path(sys.argv[1]))) == ['a'];"
        "print([m for m in ('pydantic', 'httpx', 'textual', 'sqlite3') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_server_that_is_started_is_written_as_other_hosts_write_it(file: Path) -> None:
    assert add_command(file, "files", "npx", ["-y", "some-server"], {"API_KEY": "${API_KEY}"}, "/srv") == ()
    assert json.loads(file.read_text())["mcpServers"]["files"] == {
        "command": "npx",
        "args": ["-y", "some-server"],
        "env": {"API_KEY": "${API_KEY}"},
        "cwd": "/srv",
    }
    add_command(file, "files", "npx")
    assert json.loads(file.read_text())["mcpServers"]["files"] == {"command": "npx"}


def test_variables_of_a_command_expand_when_it_is_started(file: Path) -> None:
    add_command(file, "a", "${BIN:-npx}", ["--dir", "${DIR}"], {"T": "${TOKEN}"}, "${DIR}/x")
    made = connection(file, "a", {"DIR": "/d", "TOKEN": "s3cret"})
    assert made == StdioConnection("a", "npx", ("--dir", "/d"), {"T": "s3cret"}, Path("/d/x"))
    assert "s3cret" not in repr(made)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"command": "${X}"}, "Server a: the command needs the variable X"),
        ({"command": "x", "args": ["b", "${X}"]}, "Server a: the argument 2 needs the variable X"),
        ({"command": "x", "env": {"B": "${X}"}}, "Server a: the variable B needs the variable X"),
        ({"command": "x", "cwd": "${X}"}, "Server a: the cwd needs the variable X"),
        ({"command": "x", "cwd": "here"}, "must be an absolute path"),
        ({"command": "x", "args": ["\0"]}, "The arguments can't hold a null character"),
        ({"command": "x\0"}, "The command can't hold a null character"),
        ({"command": "x", "env": {"": "1"}}, "can't be a variable of the environment"),
        ({"command": "x", "env": {"A=B": "1"}}, "can't be a variable of the environment"),
        ({"command": "x", "env": {"A": "\0"}}, "can't be a variable of the environment"),
        ({"command": "x", "args": ["${"]}, "Server a: the argument 1 holds a"),
    ],
)
def test_a_command_that_cannot_be_used_names_the_entry_and_the_field(
    file: Path, entry: dict[str, object], said: str
) -> None:
    write(file, json.dumps({"mcpServers": {"a": entry}}))
    with pytest.raises(ConfigError) as caught:
        connection(file, "a", {})
    assert said in str(caught.value)
    assert str(caught.value).startswith("Server a")


@pytest.mark.parametrize(
    ("command", "args", "env", "cwd"),
    [
        ("", [], {}, None),
        ("x", ["${"], {}, None),
        ("${1}", [], {}, None),
        ("x", [], {"A": "${"}, None),
        ("x", [], {"A=": "1"}, None),
        ("x", [], {}, "relative"),
        ("x", [], {}, "${"),
    ],
)
def test_a_command_that_would_be_refused_later_is_not_written(
    file: Path, command: str, args: list[str], env: dict[str, str], cwd: str | None
) -> None:
    with pytest.raises(ConfigError):
        add_command(file, "a", command, args, env, cwd)
    assert not file.exists()


def test_a_secret_in_clear_is_warned_of_and_not_repeated(file: Path) -> None:
    env = {"API_KEY": "abc", "GITHUB_TOKEN": "def", "MONKEY": "x", "PASSWORD": "${PW}", "KEYBOARD": "y"}
    warnings = add_command(file, "a", "x", env=env)
    assert [warning.split()[0] for warning in warnings] == ["API_KEY", "GITHUB_TOKEN"]
    assert connection(file, "a", {"PW": "p"}).warnings == warnings


def test_an_entry_that_becomes_one_of_the_other_kind_keeps_nothing_of_the_first(file: Path) -> None:
    write(
        file, '{"mcpServers": {"a": {"type": "http", "url": "http://x/", "note": 1}, "b": {"type": "http"}}}'
    )
    add_command(file, "a", "npx")
    add_command(file, "b", "npx")
    assert json.loads(file.read_text())["mcpServers"] == {"a": {"command": "npx"}, "b": {"command": "npx"}}
    add_server(file, "a", "http://y/")
    assert json.loads(file.read_text())["mcpServers"]["a"] == {"url": "http://y/"}


def test_a_type_decides_where_an_entry_has_both(file: Path) -> None:
    both = '"url": "http://x/", "command": "npx"'
    found = servers(
        write(
            file,
            f'{{"mcpServers": {{"a": {{"type": "stdio", {both}}}, "b": {{"type": "http", {both}}}}}}}',
        )
    )
    assert (found["a"].target, found["b"].target) == ("npx", "http://x/")
