"""What counts as having passed the official conformance suite, and what only looks like it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conformance import client
from conformance.run import main, server
from conformance.summary import CLIENT, SERVER, TASKS, Scenario, Unreadable, read, report, scenario

PASSED = {"status": "SUCCESS", "name": "Good"}
INITIALIZE = {"status": "SKIPPED", "name": "ClientMcpMethodHeader_initialize"}


def failing(status: str, name: str = "Bad") -> dict[str, Any]:
    return {"status": status, "name": name, "errorMessage": "why\nand more"}


def test_a_scenario_whose_checks_all_succeeded_passes() -> None:
    counted = scenario("one", [PASSED, PASSED, {"status": "INFO", "name": "Log"}])
    assert (counted.verdict(2), counted.passed, counted.problems(2)) == ("PASS", 2, [])


@pytest.mark.parametrize("status", ["FAILURE", "WARNING", "SKIPPED"])
def test_a_failure_a_warning_and_a_skipped_check_each_fail_with_their_first_line(status: str) -> None:
    counted = scenario("one", [PASSED, failing(status)])
    assert counted.verdict(1) == "FAIL"
    assert counted.problems(1 if status == "SKIPPED" else 2) == [f"{status.lower()}: Bad: why"]


def test_a_check_of_a_method_that_the_revision_does_not_have_may_be_skipped() -> None:
    assert scenario("one", [PASSED, INITIALIZE]).verdict(1) == "PASS"


def test_nothing_checked_is_void_even_where_nothing_failed() -> None:
    assert scenario("one", []).verdict(1) == "VOID"
    assert scenario("one", [INITIALIZE]).verdict(0) == "VOID"


def test_fewer_checks_than_a_client_that_sends_everything_gets_are_a_failure() -> None:
    counted = scenario("one", [PASSED])
    assert (counted.verdict(2), counted.problems(2)) == ("FAIL", ["1 checks were made, not 2"])


def test_a_driver_that_failed_is_a_failure_whatever_the_checks_say() -> None:
    counted = scenario("one", [PASSED], exit_code=1)
    assert (counted.verdict(1), counted.problems(1)) == ("FAIL", ["the suite ended with 1"])


@pytest.mark.parametrize("checks", [{}, None, [1], [{"status": "MAYBE"}], [{"name": "no status"}]])
def test_results_of_another_shape_are_not_counted(checks: Any) -> None:
    with pytest.raises(Unreadable, match="one"):
        scenario("one", checks)


def test_one_run_is_read_and_none_or_two_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="0 results"):
        read(tmp_path, "one")
    for run in ("one-1", "one-2"):
        (tmp_path / run).mkdir()
        (tmp_path / run / "checks.json").write_text(json.dumps([PASSED]))
        if run == "one-1":
            assert read(tmp_path, "one", 3) == Scenario("one", 1, (), 3)
    with pytest.raises(Unreadable, match="2 results"):
        read(tmp_path, "one")


def test_a_half_written_result_is_refused(tmp_path: Path) -> None:
    (tmp_path / "checks.json").write_text("[{")
    with pytest.raises(Unreadable, match="no JSON"):
        read(tmp_path, "one")


def test_the_report_is_good_only_when_every_expected_scenario_passed() -> None:
    wanted = {"one": 1, "two": 1}
    one, two = scenario("one", [PASSED]), scenario("two", [PASSED])
    lines, good = report([one, two], wanted)
    assert good
    assert lines[-1] == "2 of 2 checks, 2 of 2 scenarios, 0 warnings"
    lines, good = report([one], wanted)
    assert not good
    assert "VOID two" in "\n".join(lines)
    lines, good = report([one, two, scenario("three", [PASSED])], wanted)
    assert not good
    assert "three" in lines[-2]
    lines, good = report([one, scenario("two", [PASSED, failing("WARNING")])], wanted)
    assert not good
    assert lines[-1] == "2 of 2 checks, 1 of 2 scenarios, 1 warnings"


def test_the_driver_knows_every_scenario_that_is_counted() -> None:
    assert client.SCENARIOS.keys() == CLIENT.keys()
    assert sum(CLIENT.values()) == 64


def test_a_server_is_held_to_the_numbers_that_are_known() -> None:
    assert (len(TASKS), sum(TASKS.values())) == (9, 44)
    assert (len(SERVER), sum(SERVER.values())) == (7, 73)


def test_the_version_is_left_out_where_it_would_leave_out_the_scenario() -> None:
    arguments = server("http://127.0.0.1:1/mcp")
    for name in TASKS:
        assert "--spec-version" not in arguments(name)
    for name in SERVER:
        assert list(arguments(name))[-2:] == ["--spec-version", "2026-07-28"]


def test_nothing_runs_without_the_suite(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for arguments in ([], [str(tmp_path)], [str(tmp_path), "more"]):
        assert main(arguments) == 2
    assert capsys.readouterr().err.count("usage:") == 3


async def test_the_driver_refuses_a_scenario_that_it_does_not_know(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await client.main(["http://127.0.0.1:1/mcp"], {"MCP_CONFORMANCE_SCENARIO": "auth/x"}) == 2
    assert "'auth/x'" in capsys.readouterr().err


async def test_the_driver_says_in_one_line_that_a_server_is_not_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert await client.main(["http://127.0.0.1:1/mcp"], {"MCP_CONFORMANCE_SCENARIO": "tools_call"}) == 1
    said = capsys.readouterr().err
    assert said.startswith("tools_call: TransportError: ")
    assert said.count("\n") == 1
