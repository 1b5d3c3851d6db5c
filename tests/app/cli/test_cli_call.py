"""``call``, ``add``, ``tools`` and the verbs on one task."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from fakes.cli_engine import Installation, change, form_question

from app.engine.commands import CallOutcome, EngineError, ServerReport, ToolInfo, ToolListing
from storage.records import NewTask, TaskKey, TaskState
from storage.store import Store

SCHEMA = {
    "type": "object",
    "properties": {"size": {"type": "integer"}, "name": {"type": ["string", "null"]}},
    "required": ["size"],
}


def stdin(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))


def test_a_call_that_became_a_task_prints_its_handle(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    key = home.task("tsk_1", ttl_ms=5000)
    home.engine.outcome = CallOutcome("task", key)
    assert home.run("call", "lab", "work", "--args", '{"n": 1.10}') == 0
    captured = capsys.readouterr()
    assert captured.out == "lab/tsk_1\n"
    assert "half way␛[31m" in captured.err
    assert home.engine.asked == [("call", "lab", "work", '{"n": 1.10}')]
    assert home.run("call", "lab", "work", "--json") == 0
    shape = json.loads(capsys.readouterr().out)
    assert (shape["resultType"], shape["server"], shape["taskId"]) == ("task", "lab", "tsk_1")
    assert (shape["status"], shape["ttlMs"]) == ("working", 5000)


@pytest.mark.parametrize(("is_error", "code"), [("false", 0), ("true", 1)])
def test_a_call_that_is_complete_prints_its_result(
    home: Installation, capsys: pytest.CaptureFixture[str], is_error: str, code: int
) -> None:
    result = f'{{"content": [{{"type": "text", "text": "done\\u001b[1m"}}], "isError": {is_error}}}'
    key = TaskKey("lab", "call-1")
    home.store.add_task(NewTask(key, kind="call", state=TaskState("completed", tracking="ended")))
    home.engine.outcome = CallOutcome("complete", key, result_json=result)
    assert home.run("call", "lab", "work") == code
    assert capsys.readouterr().out == "done␛[1m\n"
    assert home.run("call", "lab", "work", "--json") == code
    shape = json.loads(capsys.readouterr().out)
    assert (shape["resultType"], shape["result"]) == ("complete", json.loads(result))


def test_a_call_that_asks_first_ends_with_6_and_its_questions(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    key = TaskKey("lab", "call-1")
    home.store.add_task(
        NewTask(key, kind="call", state=TaskState("input_required")),
        questions=[form_question("who", '{"properties": {"name": {"type": "string"}}}')],
    )
    home.engine.outcome = CallOutcome("input_required", key)
    assert home.run("call", "lab", "work", "--json") == 6
    shape = json.loads(capsys.readouterr().out)
    assert (shape["resultType"], shape["callId"]) == ("input_required", "call-1")
    assert [question["key"] for question in shape["questions"]] == ["who"]
    assert home.run("call", "lab", "work") == 6
    captured = capsys.readouterr()
    assert captured.out == "lab/call-1\n"
    assert "| Well?" in captured.err


@pytest.mark.parametrize("kind", ["failed", "unknown"])
def test_a_call_that_was_refused_or_is_unknown_ends_with_1(
    home: Installation, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    error = '{"code": -32602, "message": "no"}'
    home.engine.outcome = CallOutcome(kind, TaskKey("lab", "call-1"), error_json=error, message="no\x1b[1m")  # type: ignore[arg-type]
    assert home.run("call", "lab", "work") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no␛[1m" in captured.err
    assert home.run("call", "lab", "work", "--json") == 1
    assert json.loads(capsys.readouterr().out)["error"] == json.loads(error)


@pytest.mark.parametrize(
    "arguments",
    ["{", "[]", "null", '{"n": NaN}', '{"n": 1, "n": 2}', '{"s": "\\ud800"}', "@/no/file", "[" * 10**5],
)
def test_malformed_arguments_are_a_usage_error_and_nothing_is_sent(
    home: Installation, capsys: pytest.CaptureFixture[str], arguments: str
) -> None:
    assert home.run("call", "lab", "work", "--args", arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not home.engine.asked


def test_arguments_come_from_a_file_or_from_stdin_byte_for_byte(
    home: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home.engine.outcome = CallOutcome("complete", TaskKey("lab", "call-1"), result_json="{}")
    file = tmp_path / "args.json"
    file.write_text('{"n": 1.10, "é": 12345678901234567890123}\n')
    assert home.run("call", "lab", "work", "--args", f"@{file}") == 0
    stdin(monkeypatch, b'{"n": 1e2}')
    assert home.run("call", "lab", "work", "--args", "-") == 0
    stdin(monkeypatch, b'{"n": "\xff"}')
    assert home.run("call", "lab", "work", "--args", "-") == 2
    assert [what[3] for what in home.engine.asked] == [
        '{"n": 1.10, "é": 12345678901234567890123}',
        '{"n": 1e2}',
    ]


def test_arguments_by_field_go_through_the_tools_own_schema(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.engine.listing = ToolListing((ToolInfo("work", None, None, SCHEMA, {}),))
    home.engine.outcome = CallOutcome("complete", TaskKey("lab", "call-1"), result_json="{}")
    assert home.run("call", "lab", "work", "--field", "size=3", "--null", "name") == 0
    assert json.loads(str(home.engine.asked[-1][3])) == {"size": 3, "name": None}
    home.engine.asked.clear()
    assert home.run("call", "lab", "work", "--field", "size=big") == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("size: ")
    assert home.run("call", "lab", "other", "--field", "size=3") == 1
    assert home.run("call", "lab", "work", "--field", "size=3", "--args", "{}") == 2
    assert [what[0] for what in home.engine.asked] == ["tools", "tools"]


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ([{"status": "completed", "tracking": "ended", "result_json": '{"content": []}'}], 0),
        (
            [
                {"status_message": "half"},
                {"status": "failed", "tracking": "ended", "error_json": '{"code": 1}'},
            ],
            1,
        ),
        ([{"status": "completed", "tracking": "ended", "is_error": True, "result_json": "{}"}], 1),
        ([{"status": "cancelled", "tracking": "ended"}], 1),
        ([{"tracking": "lost", "reason": "gone"}], 1),
    ],
)
def test_waiting_for_a_call_ends_as_its_task_does(
    home: Installation, capsys: pytest.CaptureFixture[str], steps: list[dict[str, object]], code: int
) -> None:
    key = home.task("tsk_1")
    home.engine.outcome = CallOutcome("task", key)
    home.engine.script = [lambda store, step=step: change(store, key, **step) for step in steps]  # type: ignore[misc]
    assert home.run("call", "lab", "work", "--wait", "--json") == code
    captured = capsys.readouterr()
    shape = json.loads(captured.out)
    assert shape["resultType"] == "task"
    assert shape["tracking"] == steps[-1]["tracking"]


def test_waiting_for_a_call_that_asks_ends_with_6(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    key = home.task("tsk_1", form_question("sure", "{}"))
    home.engine.outcome = CallOutcome("task", key)
    assert home.run("call", "lab", "work", "--wait") == 6
    captured = capsys.readouterr()
    assert captured.out == "lab/tsk_1\n"
    assert "sure" in captured.err


def test_waiting_has_an_end_when_the_time_is_over(home: Installation) -> None:
    key = home.task("tsk_1")
    home.engine.outcome = CallOutcome("task", key)
    assert home.run("call", "lab", "work", "--wait", "--timeout", "0") == 7
    assert home.run("call", "lab", "work", "--timeout", "1") == 2


def test_add_tracks_a_task_by_its_id(home: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    assert home.run("add", "lab", "tsk_7", "--json") == 0
    assert json.loads(capsys.readouterr().out)["taskId"] == "tsk_7"
    assert home.engine.asked == [("track", "lab", "tsk_7", None)]


@pytest.mark.parametrize(
    "handle",
    [
        '{"resultType": "task", "taskId": "tsk_7", "status": "working"}',
        '{"jsonrpc": "2.0", "id": 1, "result": {"resultType": "task", "taskId": "tsk_7"}}',
        '{"task": {"taskId": "tsk_7"}}',
    ],
)
def test_add_reads_a_handle_from_stdin(
    home: Installation, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], handle: str
) -> None:
    stdin(monkeypatch, handle.encode())
    assert home.run("add", "lab", "-") == 0
    assert capsys.readouterr().out == "lab/tsk_7\n"
    assert home.engine.asked == [("track", "lab", "tsk_7", handle)]


@pytest.mark.parametrize("handle", ["", "{}", "[]", '{"taskId": 7}', '{"taskId": ""}'])
def test_a_handle_that_names_no_task_is_a_usage_error(
    home: Installation, monkeypatch: pytest.MonkeyPatch, handle: str
) -> None:
    stdin(monkeypatch, handle.encode())
    assert home.run("add", "lab", "-") == 2
    assert not home.engine.asked


def test_cancel_says_what_the_server_was_asked(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    key = home.task("tsk_1")
    assert home.run("cancel", "tsk", "--json") == 0
    captured = capsys.readouterr()
    assert captured.err == "Asked to cancel␛]52;c;eA==␇.\n"
    assert json.loads(captured.out)["taskId"] == "tsk_1"
    assert home.engine.asked == [("cancel", key)]


def test_archive_puts_away_and_brings_back_and_forget_deletes(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.task("tsk_1", status="completed", tracking="ended")

    def section() -> str:
        capsys.readouterr()
        assert home.run("list", "--json") == 0
        return str(json.loads(capsys.readouterr().out)[0]["section"])

    assert home.run("archive", "tsk_1") == 0
    assert section() == "archived"
    assert home.run("archive", "tsk_1", "--undo") == 0
    assert section() == "finished"
    assert home.run("forget", "tsk_1") == 0
    assert home.run("show", "tsk_1") == 3


def test_tools_lists_names_arguments_and_warnings(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = ToolInfo("work\x1b[1m", "Work", "Works.\nMore.", SCHEMA, {"readOnlyHint": True})
    home.engine.listing = ToolListing((tool,), ("one was left out \x07",))
    assert home.run("tools", "lab") == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[1].split("  ") == ["work␛[1m", "size*, name", "Work: Works."]
    assert captured.err == "warning: one was left out ␇\n"
    assert home.run("tools", "lab", "--json") == 0
    (shape,) = json.loads(capsys.readouterr().out)
    assert shape["inputSchema"] == SCHEMA
    assert shape["name"] == "work\x1b[1m"


def test_servers_are_added_listed_tested_and_removed(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        home.run("servers", "add", "lab", "https://lab.example/mcp", "--header", "Authorization: Bearer ${T}")
        == 0
    )
    assert home.run("servers", "list", "--json") == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert (entry["name"], entry["url"], entry["state"]) == ("lab", "https://lab.example/mcp", "unknown")
    saved = json.loads(home.paths.servers_file.read_text())["mcpServers"]["lab"]
    assert saved["headers"] == {"Authorization": "Bearer ${T}"}
    home.engine.report = ServerReport(
        "lab", "Lab 2\x1b[1m", ("2026-07-28",), False, 3, "be nice\x07", ("old",)
    )
    assert home.run("servers", "test", "lab") == 0
    captured = capsys.readouterr()
    assert "Lab 2␛[1m" in captured.out
    assert "| be nice␇" in captured.out
    assert captured.err == "warning: old\n"
    assert home.run("servers", "test", "lab", "--json") == 0
    assert json.loads(capsys.readouterr().out)["tasks"] is False
    assert home.run("servers", "remove", "lab") == 0
    assert home.run("servers", "remove", "lab") == 3


@pytest.mark.parametrize(
    "argv",
    [
        ["lab", "server-command"],
        ["lab", "ftp://x.example/"],
        ["lab", "http://user:pass@x.example/"],
        ["a/b", "http://x.example/"],
        ["lab", "http://x.example/", "--header", "no colon"],
    ],
)
def test_a_server_that_cannot_be_used_is_refused_and_nothing_is_written(
    home: Installation, capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    assert home.run("servers", "add", *argv) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not home.paths.servers_file.exists()


def test_a_broken_servers_file_is_one_line_with_its_place(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.paths.servers_file.write_text('{"mcpServers": {\n')
    assert home.run("servers", "list") == 2
    error = capsys.readouterr().err
    assert str(home.paths.servers_file) in error
    assert "line 2" in error


def test_a_server_that_cannot_be_reached_ends_with_4_and_one_line(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.engine.failure = EngineError("unreachable", "lab is unreachable")
    for argv in (["servers", "test", "lab"], ["tools", "lab"], ["call", "lab", "work"], ["add", "lab", "x"]):
        assert home.run(*argv) == 4
        assert capsys.readouterr().err.splitlines()[-1] == "Error: lab is unreachable"


def test_an_interrupted_call_says_where_it_is_kept(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.store.add_task(NewTask(TaskKey("lab", "call-0"), kind="call", tool="work"))

    def interrupted(store: Store) -> None:
        lost = TaskState("working", tracking="lost", reason="Outcome unknown.")
        store.add_task(NewTask(TaskKey("lab", "call-1"), kind="call", tool="work", state=lost))
        raise KeyboardInterrupt

    home.engine.on_call = interrupted
    assert home.run("call", "lab", "work") == 130
    captured = capsys.readouterr()
    assert captured.err.splitlines()[-1] == "call-1: outcome unknown; taskinbox show call-1"
    assert "call-0" not in captured.err


def test_a_call_of_unknown_outcome_is_repeated_when_a_person_says_so(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    key = TaskKey("lab", "call-1")
    home.store.add_task(NewTask(key, kind="call", tool="work", state=TaskState(tracking="lost")))
    home.engine.outcome = CallOutcome("complete", key, result_json='{"content": [{"text": "done"}]}')
    for wrong in (["lab"], ["--args", "{}"], ["--field", "a=1"], ["lab", "work"]):
        assert home.run("call", "--again", "call-1", *wrong) == 2
    assert home.run("call", "--again", "call-9") == 3
    capsys.readouterr()
    assert home.run("call", "--again", "call-1") == 0
    assert home.engine.asked == [("call_again", key)]
    assert capsys.readouterr().out == "done\n"


@pytest.mark.parametrize("argv", [[], ["lab"]])
def test_a_call_without_server_or_tool_is_a_usage_error(
    home: Installation, capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    assert home.run("call", *argv) == 2
    assert capsys.readouterr().err.endswith("See taskinbox call --help\n")


def test_the_help_says_that_a_timeout_needs_wait(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    assert home.run("call", "--help") == 0
    assert "With --wait: give up" in capsys.readouterr().out


def test_a_call_whose_outcome_is_unknown_offers_what_to_do(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    key = TaskKey("lab", "call-1")
    home.store.add_task(NewTask(key, kind="call", tool="work", state=TaskState(tracking="lost")))
    home.engine.outcome = CallOutcome("unknown", key)
    assert home.run("call", "lab", "work") == 1
    assert "`taskinbox call --again call-1`" in capsys.readouterr().err
