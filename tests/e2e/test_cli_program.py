"""The command line as a shell sees it: the real executable, against the real service over a socket."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.cli_program import PATIENCE, Program
from fakes.demo import DemoProcess

pytestmark = pytest.mark.e2e


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[DemoProcess]:
    with DemoProcess(tmp_path / "demo-service") as process:
        yield process


@pytest.fixture
def lab(tmp_path: Path, demo: DemoProcess) -> Program:
    """An installation that knows the service as ``lab``."""
    program = Program(tmp_path / "home")
    program.run("servers", "add", "lab", demo.url)
    return program


def start(lab: Program, tool: str, arguments: str = "{}") -> str:
    task = lab.json("call", "lab", tool, "--args", arguments)
    assert task["resultType"] == "task"
    return str(task["taskId"])


def test_a_job_from_call_to_approved_answer_to_result(lab: Program) -> None:
    task = start(lab, "generate_report", '{"size": "small"}')
    assert (
        lab.run("watch", task, "--timeout", "30", code=6)
        .stdout.splitlines()[-1]
        .endswith("asks: approve_outline")
    )
    (row,) = lab.json("list")
    assert (row["section"], row["openQuestions"]) == ("needs-you", ["approve_outline"])

    refused = lab.run("answer", task, "approve_outline", "--field", "approved=maybe", code=2)
    assert refused.stderr.startswith("approved: ")
    shown = lab.run("answer", task, "--field", "approved=true", "--dry-run")
    assert json.loads(shown.stdout) == {"action": "accept", "content": {"approved": True}}
    (row,) = lab.json("list")
    assert row["section"] == "needs-you"

    answered = lab.json("answer", task, "--field", "approved=true")
    assert answered["state"] == "acknowledged"
    assert lab.run("answer", task, "approve_outline", "--decline", code=3).stderr.count("was answered") == 1
    lab.run("watch", task, "--until", "end", "--timeout", "30")
    done = lab.json("show", task)
    assert (done["status"], done["section"]) == ("completed", "finished")
    assert done["arguments"] == {"size": "small"}
    assert done["result"]["structuredContent"] == {"size": "small", "approved": True}
    (question,) = done["questions"]
    assert question["state"] == "settled"
    assert question["response"] == {"action": "accept", "content": {"approved": True}}
    assert "The small report is ready" in lab.run("show", task).stdout
    lab.run("archive", task)
    assert lab.json("list")[0]["section"] == "archived"
    lab.run("forget", task)
    assert lab.json("list") == []
    lab.run("show", task, code=3)


def test_a_form_with_every_kind_of_field_is_refused_with_a_line_for_each(lab: Program) -> None:
    task = start(lab, "deploy_service", '{"service": "checkout"}')
    lab.run("watch", task, "--timeout", "30", code=6)
    request = lab.json("show", task)["questions"][0]["request"]
    required = request["params"]["requestedSchema"]["required"]
    without_default = [
        name for name in required if "default" not in request["params"]["requestedSchema"]["properties"][name]
    ]
    refused = lab.run("answer", task, "--defaults", code=2)
    named = [line.split(": ")[0] for line in refused.stderr.splitlines() if not line.startswith("warning: ")]
    assert named == without_default
    assert named


def test_questions_before_a_task_are_a_call_that_goes_on_when_answered(lab: Program) -> None:
    asked = lab.json("call", "lab", "ask_first", code=6)
    assert asked["resultType"] == "input_required"
    assert asked["callId"].startswith("call-")
    (question,) = asked["questions"]
    assert lab.run("watch", asked["callId"], "--timeout", "30", code=6)
    answered = lab.json("answer", asked["callId"], question["key"], "--field", "name=Ada")
    assert answered["outcome"]["resultType"] == "task"
    lab.run("watch", asked["callId"], "--timeout", "30")
    assert "Everything is ready for Ada." in lab.run("show", asked["callId"]).stdout


@pytest.mark.rule("elicitation.three-actions")
def test_url_mode_is_consent_without_content(lab: Program) -> None:
    task = start(lab, "approve_in_browser")
    lab.run("watch", task, "--timeout", "30", code=6)
    done = lab.run("answer", task, "--accept", "{}")
    assert "host: approvals.example.com" in done.stderr
    lab.run("watch", task, "--until", "end", "--timeout", "30")
    assert lab.json("show", task)["questions"][0]["response"] == {"action": "accept"}


@pytest.mark.parametrize(("tool", "status"), [("flaky_job", "failed"), ("broken_tool", "completed")])
def test_waiting_for_a_job_that_goes_wrong_ends_with_1(lab: Program, tool: str, status: str) -> None:
    task = lab.json("call", "lab", tool, "--wait", "--timeout", "30", code=1)
    assert task["status"] == status
    assert task["error"] if status == "failed" else task["result"]["isError"]


def test_waiting_for_a_job_that_asks_ends_with_6_and_for_a_long_one_with_7(lab: Program) -> None:
    asked = lab.json(
        "call", "lab", "generate_report", "--field", "size=small", "--wait", "--timeout", "30", code=6
    )
    assert asked["openQuestions"] == ["approve_outline"]
    lab.run("call", "lab", "long_build", "--args", '{"minutes": 60}', "--wait", "--timeout", "0.5", code=7)


def test_an_immediate_result_is_printed_as_text(lab: Program) -> None:
    assert lab.run("call", "lab", "echo", "--field", "text=hello").stdout.splitlines()[0] == "hello"
    complete = lab.json("call", "lab", "echo", "--args", '{"text": "hé"}')
    assert complete["resultType"] == "complete"
    assert complete["result"]["structuredContent"] == {"text": "hé"}


def test_cancelling_is_asked_of_the_server_and_watched(lab: Program) -> None:
    task = start(lab, "long_build", '{"minutes": 60}')
    lab.run("cancel", task)
    lab.run("watch", task, "--timeout", "30", code=1)
    assert lab.json("show", task)["status"] == "cancelled"


def test_a_task_made_elsewhere_is_added_by_id_or_handle(
    lab: Program, tmp_path: Path, demo: DemoProcess
) -> None:
    other = Program(tmp_path / "other")
    other.run("servers", "add", "svc", demo.url)
    handle = other.run("call", "svc", "long_build", "--args", '{"minutes": 60}', "--json").stdout
    task = json.loads(handle)["taskId"]
    added = lab.json("add", "lab", task)
    assert (added["server"], added["taskId"], added["status"]) == ("lab", task, "working")
    lab.run("forget", task)
    assert lab.json("add", "lab", "-", stdin=handle)["taskId"] == task
    lab.run("add", "lab", "-", stdin="{", code=2)


def test_an_answer_given_while_the_server_is_away_is_saved_and_delivered_by_whoever_runs_next(
    lab: Program, demo: DemoProcess
) -> None:
    task = start(lab, "generate_report", '{"size": "small"}')
    lab.run("watch", task, "--timeout", "30", code=6)
    demo.kill()
    saved = lab.json("answer", task, "--field", "approved=true", code=4)
    assert saved["state"] == "saved"
    assert lab.json("show", task)["questions"][0]["state"] == "queued"
    demo.start()
    lab.run("watch", task, "--until", "end", "--timeout", "60")
    done = lab.json("show", task)
    assert done["result"]["structuredContent"]["approved"] is True
    assert done["questions"][0]["state"] == "settled"


def test_what_can_not_be_reached_ends_with_4_and_nothing_is_left_behind(
    lab: Program, demo: DemoProcess
) -> None:
    demo.kill()
    for argv in (
        ["servers", "test", "lab"],
        ["tools", "lab"],
        ["call", "lab", "echo", "--args", '{"text": "x"}'],
    ):
        done = lab.run(*argv, code=4)
        assert done.stdout == ""
        assert done.stderr.startswith("Error: ")
        assert len(done.stderr.splitlines()) == 1
    assert lab.json("list") == []


def test_names_that_are_not_there_have_their_exit_codes(lab: Program) -> None:
    lab.run("call", "nowhere", "echo", code=3)
    lab.run("add", "nowhere", "x", code=3)
    lab.run("add", "lab", "no-such-task", code=3)
    lab.run("call", "lab", "no_such_tool", code=1)
    lab.run("call", "lab", "echo", "--args", '{"text": ', code=2)
    lab.run("cancel", "no-such-task", code=3)
    assert [row["tool"] for row in lab.json("list")] == ["no_such_tool"]


def test_servers_are_tested_and_tools_listed(lab: Program) -> None:
    report = lab.json("servers", "test", "lab")
    assert report["tasks"] is True
    assert "2026-07-28" in report["supportedVersions"]
    assert lab.json("servers", "list")[0]["state"] == "ok"
    tools = {tool["name"]: tool for tool in lab.json("tools", "lab")}
    assert tools["generate_report"]["inputSchema"]["required"] == ["size"]
    assert "generate_report" in lab.run("tools", "lab").stdout


def test_an_interrupted_watch_ends_with_130(lab: Program) -> None:
    task = start(lab, "long_build", '{"minutes": 60}')
    with lab.start("watch", task) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        _, errors = watching.communicate(timeout=PATIENCE)
    assert watching.returncode == 130
    assert "Traceback" not in errors


def test_a_reader_that_goes_away_is_no_error_of_ours(tmp_path: Path) -> None:
    with Program(tmp_path / "home").start("list", "--json") as listing:
        assert listing.stdout is not None
        listing.stdout.close()
        listing.stdout = None
        _, errors = listing.communicate(timeout=PATIENCE)
    assert (listing.returncode, errors) == (141, "")


def test_a_broken_database_is_one_line(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    database = Path(program.json("locate")["database"])
    program.run("list")
    for file in database.parent.glob(database.name + "*"):
        file.unlink()
    database.write_bytes(b"this is not a database, and long enough to look like one" * 100)
    done = program.run("list", code=1)
    assert done.stderr.startswith("Error: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_call_that_is_interrupted_while_the_server_thinks_is_kept_as_unknown(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        program.run("servers", "add", "mute", f"http://127.0.0.1:{silent.getsockname()[1]}/mcp")
        silent.settimeout(PATIENCE)
        with program.start("call", "mute", "charge_card") as calling:
            connection, _ = silent.accept()
            with connection:
                assert b"charge_card" in connection.recv(65536)
                calling.send_signal(signal.SIGINT)
                _, errors = calling.communicate(timeout=PATIENCE)
    assert calling.returncode == 130
    assert "Traceback" not in errors
    program.run("list", "--refresh", code=None)
    (row,) = program.json("list")
    assert (row["kind"], row["tool"], row["section"]) == ("call", "charge_card", "lost")
    assert "Outcome unknown" in row["reason"]


@pytest.mark.parametrize("argv", [[], ["demo"]])
def test_the_inbox_needs_a_terminal(tmp_path: Path, argv: list[str]) -> None:
    done = Program(tmp_path / "home").run(*argv, code=2)
    assert "needs a terminal" in done.stderr
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_the_service_alone_says_where_it_is_and_ends_when_asked(tmp_path: Path, how: signal.Signals) -> None:
    program = Program(tmp_path / "home")
    with program.start("demo-server", "--data", str(tmp_path / "data")) as service:
        assert service.stdout is not None
        line = service.stdout.readline()
        assert line.startswith("taskinbox demo service at http://127.0.0.1:")
        program.run("servers", "add", "lab", line.split()[-1])
        program.run("servers", "test", "lab")
        service.send_signal(how)
        _, errors = service.communicate(timeout=PATIENCE)
    assert (service.returncode, errors) == (0, "")


def test_the_service_on_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = Program(tmp_path / "home").run("demo-server", "--port", port, code=1)
    assert port in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_service_ends_with_the_program_that_started_it(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "app", "demo-server", "--until-stdin-closes"]
    service = subprocess.Popen(
        [*command, "--data", str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert service.stdout is not None
    assert service.stdin is not None
    assert service.stdout.readline()
    service.stdin.close()
    assert service.wait(PATIENCE) == 0
    service.stdout.close()
