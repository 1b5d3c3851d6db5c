"""``list``, ``show``, ``locate``: what is printed of what is stored."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from fakes.cli_engine import NOW, Installation, form_question

import app.cli
from app.cli.output import columns, fit, short_ids, width
from app.cli.parts import Parts
from app.cli.shapes import moment, plain_json
from app.engine.commands import EngineError
from app.paths import Paths
from storage.records import NewTask, TaskKey, TaskState

HOSTILE = "\x1b[31mred\x1b]52;c;aGk=\x07 \u202eevil\u2066 [bold]x[/bold] \x9b2J\r\nline two"


def out(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_list_json_has_every_field_of_the_contract(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.task(
        "tsk_1",
        form_question("approve", "{}"),
        form_question("name", "{}"),
        status_message="waiting",
        created_at=NOW - 5000,
        last_updated_at=NOW - 1000,
        ttl_ms=60_000,
        poll_interval_ms=2500,
    )
    assert home.run("list", "--json") == 0
    (row,) = json.loads(out(capsys))
    expected = {
        "server": "lab",
        "taskId": "tsk_1",
        "status": "input_required",
        "statusMessage": "waiting",
        "tool": "work",
        "tracking": "active",
        "section": "needs-you",
        "createdAt": "2027-01-15T07:59:55.000Z",
        "lastUpdatedAt": "2027-01-15T07:59:59.000Z",
        "ttlMs": 60_000,
        "expiresAt": "2027-01-15T08:00:55.000Z",
        "pollIntervalMs": 2500,
        "openQuestions": ["approve", "name"],
    }
    assert {name: row[name] for name in expected} == expected


def test_list_filters_by_protocol_status_section_and_server(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.task("a", server="lab")
    home.task("b", server="ci", status="completed", tracking="ended")
    home.task("c", form_question("k", "{}"), server="ci")

    def ids(*options: str) -> list[str]:
        assert home.run("list", "--json", *options) == 0
        return [row["taskId"] for row in json.loads(out(capsys))]

    assert ids() == ["c", "a", "b"]
    assert ids("--server", "ci") == ["c", "b"]
    assert ids("--status", "working") == ["a"]
    assert ids("--status", "needs-you") == ["c"]
    assert ids("--status", "finished", "--server", "ci") == ["b"]
    assert ids("--status", "failed") == []


def test_list_of_an_unknown_server_ends_with_3_and_of_a_known_empty_one_with_0(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    assert home.run("list", "--server", "nowhere") == 3
    assert "nowhere" in capsys.readouterr().err
    assert home.run("servers", "add", "lab", "http://127.0.0.1:1/mcp") == 0
    assert home.run("list", "--server", "lab") == 0


def test_an_unknown_status_is_a_usage_error(home: Installation) -> None:
    assert home.run("list", "--status", "sleeping") == 2


def test_an_empty_list_is_an_empty_array_and_words_go_to_stderr(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    assert home.run("list", "--json") == 0
    assert json.loads(out(capsys)) == []
    assert home.run("list") == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.strip()


@pytest.mark.parametrize(
    "command", [["list"], ["show", "tsk_1"], ["list", "--json"], ["show", "tsk_1", "--json"]]
)
def test_nothing_that_a_server_says_reaches_the_terminal_raw(
    home: Installation, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    request = json.dumps(HOSTILE)[1:-1]
    home.task(
        "tsk_1",
        form_question("k" + HOSTILE, "{}", message=request),
        tool="work",
        status_message=HOSTILE,
        problem=HOSTILE,
        result_json=json.dumps(
            {"content": [{"type": "text", "text": HOSTILE}], "structuredContent": HOSTILE}
        ),
        error_json=json.dumps({"code": 1, "message": HOSTILE}, ensure_ascii=False),
    )
    assert home.run(*command) == 0
    captured = capsys.readouterr()
    for stream in (captured.out, captured.err):
        assert not set(stream) & set("\x1b\x07\x9b\r\u202e\u2066")
    if "--json" in command:
        assert captured.out.isascii()
        shown = json.loads(captured.out)
        assert (shown[0] if command[0] == "list" else shown)["statusMessage"] == HOSTILE


def test_show_json_adds_arguments_result_questions_and_events_with_exact_numbers(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    digits = "9" * 5000
    home.task(
        "tsk_1",
        form_question("k", '{"type":"object"}'),
        result_json=f'{{"content": [], "big": {digits}, "exact": 1.100, "tiny": 1E-400}}',
    )
    assert home.run("show", "tsk_1", "--json") == 0
    text = out(capsys)
    assert digits in text
    shown = json.loads(text, parse_int=str, parse_float=Decimal)
    assert shown["arguments"] == {"n": Decimal("1.10")}
    assert str(shown["arguments"]["n"]) == "1.10"
    assert shown["result"]["exact"] == Decimal("1.100")
    assert shown["result"]["tiny"] == Decimal("1E-400")
    (question,) = shown["questions"]
    assert question["key"] == "k"
    assert question["method"] == "elicitation/create"
    assert question["state"] == "open"
    assert question["request"]["params"]["message"] == "Well?"
    assert question["draft"] is None
    assert question["response"] is None
    assert shown["error"] is None
    assert [event["kind"] for event in shown["events"]]


def test_numbers_too_long_for_python_are_shown_and_sent_as_they_came(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    digits = "9" * 5000
    key = TaskKey("lab", "tsk_1")
    params = f'{{"name": "work", "arguments": {{"n": {digits}}}}}'
    result = f'{{"content": [], "structuredContent": {{"n": {digits}}}}}'
    state = TaskState("completed", tracking="ended", result_json=result)
    home.store.add_task(NewTask(key, params_json=params, state=state))
    assert home.run("show", "tsk_1", "--json") == 0
    assert f'"arguments": {{"n": {digits}}}' in out(capsys)
    assert home.run("show", "tsk_1") == 0
    assert f'{{"n": {digits}}}' in out(capsys)


def test_show_prints_a_result_and_an_error_for_people(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    content = (
        '[{"type":"text","text":"Report\\nready"},{"type":"image","mimeType":"image/png","data":"QUJD"}]'
    )
    home.task("ok", status="completed", tracking="ended", result_json=f'{{"content": {content}}}')
    home.task("bad", status="failed", tracking="ended", error_json='{"code": -32603, "message": "no"}')
    assert home.run("show", "ok") == 0
    text = out(capsys)
    assert "Report\nready" in text
    assert "[image, image/png, 4 characters of base64]" in text
    assert home.run("show", "bad") == 0
    text = out(capsys)
    assert '{"code": -32603, "message": "no"}' in text
    assert text.splitlines()[-1] == "2027-01-15 08:00:00 UTC  added"


def test_a_task_is_named_by_exact_id_unique_prefix_or_server_and_id(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.task("abc", server="lab")
    home.task("abcdef", server="ci")
    home.task("abcxyz", server="ci")

    def shown(name: str) -> str:
        assert home.run("show", name, "--json") == 0
        row = json.loads(out(capsys))
        return f"{row['server']}/{row['taskId']}"

    assert shown("abc") == "lab/abc"
    assert shown("abcd") == "ci/abcdef"
    assert shown("ci/abcxyz") == "ci/abcxyz"
    assert home.run("show", "ab") == 2
    error = capsys.readouterr().err
    assert all(name in error for name in ("lab/abc", "ci/abcdef", "ci/abcxyz"))
    for name in ("zzz", "ci/abc", ""):
        assert home.run("show", name) == 3
        assert capsys.readouterr().err.startswith("Error: ")


def test_one_id_on_two_servers_is_ambiguous(home: Installation) -> None:
    home.task("same", server="lab")
    home.task("same", server="ci")
    assert home.run("show", "same") == 2
    assert home.run("show", "ci/same") == 0


def test_a_call_is_listed_with_its_call_id(home: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    home.store.add_task(
        NewTask(TaskKey("lab", "call-1"), kind="call", tool="ask", state=TaskState(status="input_required")),
        questions=[form_question("who", "{}")],
    )
    assert home.run("list", "--json") == 0
    (row,) = json.loads(out(capsys))
    assert row["callId"] == row["taskId"] == "call-1"
    assert row["kind"] == "call"


def test_list_refresh_looks_again_at_lost_tasks_of_known_servers_and_at_no_lost_call(
    home: Installation,
) -> None:
    assert home.run("servers", "add", "lab", "http://127.0.0.1:1/mcp") == 0
    key = home.task("tsk_1", tracking="lost")
    home.task("tsk_2", tracking="lost", server="gone")
    home.store.add_task(NewTask(TaskKey("lab", "call-1"), kind="call", state=TaskState(tracking="lost")))
    assert home.run("list", "--refresh") == 0
    assert home.engine.asked == [("refresh", key)]


def test_list_refresh_looks_at_active_tasks_first(home: Installation) -> None:
    key = home.task("a")
    home.task("b", status="completed", tracking="ended")
    assert home.run("list", "--refresh") == 0
    assert home.engine.asked == [("refresh", key)]
    assert home.engine.is_closed


def test_locate_prints_absolute_places_and_makes_nothing(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    assert home.run("locate", "--json") == 0
    places = json.loads(out(capsys))
    assert places["database"] == str(home.paths.database)
    assert set(places) >= {"config", "data", "state", "log", "database", "serversFile"}


def test_columns_line_up_with_wide_characters() -> None:
    first, second, third = columns(("A", "B"), [("日本", "x"), ("ab", "y")])
    assert [width(line.split("B")[0].split("x")[0].split("y")[0]) for line in (first, second, third)] == [
        6,
        6,
        6,
    ]


def test_a_short_id_is_long_enough_to_name_one_task_alone() -> None:
    keys = [
        TaskKey("s", id)
        for id in ("a" * 20, "a" * 15 + "b" * 5, "b", "bc", "task-1", "t" * 30, "t" * 30 + "x")
    ]
    short = short_ids(keys)
    assert short[keys[0]] == "a" * 16
    assert short[keys[5]] == "t" * 30
    for key, text in short.items():
        exact = [other for other in keys if other.id == text]
        assert (exact or [other for other in keys if other.id.startswith(text)]) == [key]
    assert short_ids([TaskKey("s", "x" * 40)]) == {TaskKey("s", "x" * 40): "x" * 12}


def test_a_cut_text_says_so_and_fits() -> None:
    assert fit("日本語テキスト", 6) == "日本…"
    assert width(fit("abcdefgh", 5)) == 5
    assert fit("abc", 3) == "abc"


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_800_000_000_123, "2027-01-15T08:00:00.123Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (10**18, None),
        (10**40, None),
        (None, None),
    ],
)
def test_a_moment_is_iso_8601_to_the_millisecond(at: int | None, text: str | None) -> None:
    assert moment(at) == text


def test_plain_json_is_ascii_on_one_line_and_means_the_same() -> None:
    text = '{\n\t"é😀": "\u202e\x7f", "n": 1.10}'
    plain = plain_json(text)
    assert plain.isascii()
    assert plain.isprintable()
    assert json.loads(plain) == json.loads(text)
    assert "1.10" in plain


@pytest.mark.parametrize(
    ("failure", "code", "told"),
    [
        ("unreachable", 4, (1, 1)),  # a server that is away is told of once, not for each of its tasks
        ("sign-in", 5, (1, 1)),
        ("faulty", 1, (2, 1)),
        ("invalid", 2, (2, 1)),
    ],
)
def test_refreshing_says_what_could_not_be_seen_and_shows_what_is_stored(
    home: Installation, capsys: pytest.CaptureFixture[str], failure: str, code: int, told: tuple[int, int]
) -> None:
    home.task("a", status_message="as stored")
    home.task("b")
    home.engine.failure = EngineError(failure, "lab is away \x1b[1m")  # type: ignore[arg-type]
    for command in (["list"], ["show", "a"]):
        assert home.run(*command, "--refresh") == code
        captured = capsys.readouterr()
        assert "as stored" in captured.out
        assert captured.err.splitlines() == ["warning: lab is away ␛[1m"] * told[len(command) - 1]
        assert home.run(*command, "--refresh", "--json") == code
        assert "as stored" in json.dumps(json.loads(capsys.readouterr().out))


def test_a_home_that_cannot_be_made_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text("")
    paths = Paths(file / "config", file / "data", file / "state")
    assert app.cli.main(["list"], Parts(paths=paths)) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"Error: {file}")
    assert error.count("\n") == 1


def test_an_argument_that_is_not_text_is_refused(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    assert home.run("show", "\udcff") == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["servers", "--help"]])
def test_asking_for_help_is_no_error(home: Installation, argv: list[str]) -> None:
    assert home.run(*argv) == 0


@pytest.mark.parametrize(
    "argv",
    [["nonsense"], ["list", "--nonsense"], ["show"], ["servers", "add", "lab"], ["servers", "allow"]],
)
def test_what_is_no_command_is_a_usage_error_in_one_line(
    home: Installation, capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    assert home.run(*argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("Error: ")
    assert line.endswith("--help")


@pytest.mark.parametrize(
    ("argv", "near"),
    [
        (["lst"], "list"),
        (["frobnicate"], None),
        (["list", "--jsn"], "--json"),
        (["list", "--frobnicate"], None),
        (["servers", "tset"], "test"),
    ],
)
def test_only_what_is_nearly_the_same_is_suggested(
    home: Installation, capsys: pytest.CaptureFixture[str], argv: list[str], near: str | None
) -> None:
    assert home.run(*argv) == 2
    error = capsys.readouterr().err
    assert argv[-1] in error
    assert ("did you mean" in error) == (near is not None)
    assert near is None or f"did you mean {near}?" in error


def test_a_wrong_value_is_named_with_the_command_that_explains_it(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    assert home.run("list", "--status", "sleeping") == 2
    error = capsys.readouterr().err
    assert "'sleeping'" in error
    assert error.endswith("See taskinbox list --help\n")


def test_a_damaged_database_says_what_to_do(home: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    home.close()
    for leftover in home.paths.data.glob("inbox.db*"):
        leftover.unlink()
    home.paths.database.write_bytes(b"not a database, but long enough to be read as one" * 100)
    assert home.run("list") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(home.paths.database) in line
    assert "move that file away" in line
    assert "taskinbox locate" in line
