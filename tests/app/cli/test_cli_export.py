"""``export``: what is in the log, for other programs and for proof."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import tracemalloc
from pathlib import Path

import pytest
from fakes.cli_engine import Installation, form_question

from storage.records import NewEvent, Reply, TaskKey

HOSTILE = "\x1b[31mred\x1b]52;c;aGk=\x07\u202e\x9b2J"
DAY = 86_400_000


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    """Return the events that were printed as JSON Lines."""
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def cells(text: str) -> list[dict[str, str]]:
    """Return the rows of a CSV by column."""
    return list(csv.DictReader(io.StringIO(text)))


def answered(home: Installation, response: str, kept: str | None = None) -> TaskKey:
    """Ask for something, and save an answer."""
    key = home.task("tsk_1", form_question("approve", '{"properties": {"n": {"default": 1.10}}}'))
    (question,) = home.questions(key)
    home.store.queue_answers(key, [Reply(question.id, question.fingerprint, response, kept)], by="ada")
    return key


def test_json_lines_have_each_event_in_its_order_with_the_protocols_names(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    home.task("tsk_1", form_question("approve", "{}"))
    home.now += 1_500
    home.store.log(NewEvent("signed_in"), server="lab")
    home.store.log(NewEvent("looked", '{"n":\n 1.10}'))
    assert home.run("export") == 0
    assert not home.engine.asked
    first, second, third = lines(capsys)
    assert first["seq"] == 1
    assert (first["at"], first["server"], first["taskId"], first["kind"]) == (
        *("2027-01-15T08:00:00.000Z", "lab"),
        *("tsk_1", "added"),
    )
    assert (second["at"], second["server"], second["taskId"]) == ("2027-01-15T08:00:01.500Z", "lab", None)
    assert (third["server"], third["data"]) == (None, {"n": 1.1})


def test_an_answer_can_be_checked_by_whoever_has_the_export(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    response = (
        '{"action": "accept", "content": {"n":  1.10, "who": "é\\u00e9", "big": 12345678901234567890123}}'
    )
    answered(home, response)
    assert home.run("export") == 0
    out = capsys.readouterr().out
    assert out.isascii()
    data = json.loads(out.splitlines()[-1])["data"]
    assert data["response"] == response
    assert data["digest"] == f"sha256:{hashlib.sha256(response.encode()).hexdigest()}"
    assert (data["by"], data["request"]["params"]["message"]) == ("ada", "Well?")
    assert '"default": 1.10' in out


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_secret_is_never_exported(
    home: Installation, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    exact = '{"action": "accept", "content": {"password": "hush-4711"}}'
    answered(home, exact, exact.replace("hush-4711", "sent, not kept"))
    assert home.run("export", "--format", form) == 0
    out = capsys.readouterr().out
    assert "hush-4711" not in out
    assert "sent, not kept" in out
    assert hashlib.sha256(exact.encode()).hexdigest() not in out


def test_a_server_and_a_time_choose_events(home: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("lab", "ci", "lab"):
        home.store.log(NewEvent("looked"), server=name)
        home.now += DAY

    def chosen(*options: str) -> list[object]:
        assert home.run("export", *options) == 0
        return [line["seq"] for line in lines(capsys)]

    assert chosen("--server", "lab") == [1, 3]
    assert chosen("--since", "2027-01-16") == [2, 3]
    assert chosen("--since", "2027-01-16T08:00:00.000Z") == [2, 3]
    assert chosen("--since", "2027-01-16T08:00:00.001") == [3]
    assert chosen("--since", "2027-01-16T10:00:00+02:00", "--server", "lab") == [3]
    assert chosen("--since", "2030-01-01") == []


@pytest.mark.parametrize("text", ["", "yesterday", "2027-13-01", "\x1b[31m", "0001-01-01T00:00:00+23:00"])
def test_a_time_that_is_none_ends_with_2(
    home: Installation, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    code = home.run("export", "--since", text)
    told = capsys.readouterr()
    assert "\x1b" not in told.err
    if text.startswith("0001"):
        assert code in (0, 2)
    else:
        assert code == 2
        assert "2026-07-28T10:30:00Z" in told.err


def test_an_unknown_server_ends_with_3_and_one_that_was_forgotten_does_not(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    assert home.run("export", "--server", "nobody") == 3
    assert "nobody" in capsys.readouterr().err
    home.store.forget(home.task("tsk_1"))
    assert home.run("export", "--server", "lab") == 0
    assert [line["kind"] for line in lines(capsys)] == ["added", "forgotten"]


def test_csv_has_flat_columns_and_what_is_left_as_json(
    home: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    answered(home, '{"action": "decline"}')
    home.store.log(NewEvent("answer_refused", '{"key": "é", "reason": "no, \\"never\\"", "n": 1.10}'))
    assert home.run("export", "--format", "csv") == 0
    added, queued, refused = cells(capsys.readouterr().out)
    assert (added["seq"], added["server"], added["taskId"], added["kind"]) == ("1", "lab", "tsk_1", "added")
    assert (queued["key"], queued["by"], queued["response"]) == ("approve", "ada", '{"action": "decline"}')
    assert json.loads(queued["request"])["method"] == "elicitation/create"
    assert queued["digest"].startswith("sha256:")
    assert (refused["key"], refused["reason"], refused["data"]) == ("é", 'no, "never"', '{"n": 1.10}')
    assert refused["at"] == "2027-01-15T08:00:00.000Z"


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_no_cell_of_a_csv_is_a_formula(
    home: Installation, capsys: pytest.CaptureFixture[str], first: str
) -> None:
    evil = f"{first}cmd|'/c calc'!A1"
    home.store.log(
        NewEvent(evil, json.dumps(dict.fromkeys(("key", "by", "reason", "response", "x"), evil))),
        TaskKey(evil, evil),
    )
    home.store.log(NewEvent("looked", json.dumps(evil)))
    assert home.run("export", "--format", "csv") == 0
    for row in cells(capsys.readouterr().out):
        for cell in row.values():
            assert not cell or cell[0] not in "=+-@\t\r\n＝＋－＠ "


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_nothing_of_a_server_reaches_the_terminal_raw(
    home: Installation, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    deep = "[" * 5_000 + "]" * 5_000
    home.store.log(
        NewEvent("x", json.dumps({"key": HOSTILE, "reason": HOSTILE, "n": HOSTILE})), TaskKey("ci", HOSTILE)
    )
    home.store.log(NewEvent("x", f'{{"key": "k", "request": {deep}}}'))
    for depth in (300, 900, 990, 1_000, 1_100):
        home.store.log(NewEvent("x", f'{{"request": {"[" * depth}{"]" * depth}}}'))
    assert home.run("export", "--format", form) == 0
    out = capsys.readouterr().out
    assert not any(bad in out for bad in "\x1b\x07\u202e\x9b")
    assert len(out.splitlines()) == (7 if form == "jsonl" else 8)


def test_a_file_is_private_and_written_whole(
    home: Installation, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    home.task("tsk_1")
    path = tmp_path / "log.jsonl"
    path.write_text("former")
    path.chmod(0o644)
    assert home.run("export", "--output", str(path)) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "1 event written" in told.err
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text())["kind"] == "added"
    assert [file.name for file in tmp_path.iterdir() if "log" in file.name or "taskinbox" in file.name] == [
        "log.jsonl"
    ]


def test_a_file_that_can_not_be_written_is_a_clear_error(
    home: Installation, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (tmp_path, tmp_path / "no" / "log", fifo, "~nobody-of-that-name/log"):
        assert home.run("export", "--output", str(path)) == 2
        told = capsys.readouterr()
        assert told.err.startswith("Error: --output")
        assert "Traceback" not in told.err
    assert fifo.is_fifo()


def test_an_empty_log_is_no_line_or_a_header(home: Installation, capsys: pytest.CaptureFixture[str]) -> None:
    assert home.run("export") == 0
    assert capsys.readouterr().out == ""
    assert home.run("export", "--format", "csv") == 0
    assert capsys.readouterr().out.startswith("seq,at,server,taskId,kind,key,")


def test_a_long_log_takes_little_memory(home: Installation, tmp_path: Path) -> None:
    with home.store.group():
        for n in range(20_000):
            home.store.log(NewEvent("looked", f'{{"n": {n}, "text": "{"x" * 1_000}"}}'))
    path = tmp_path / "log.jsonl"
    home.run("export", "--since", "2100-01-01")  # what is imported once is not what is measured
    tracemalloc.start()
    assert home.run("export", "--output", str(path)) == 0
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    with path.open() as file:
        assert [json.loads(line)["data"]["n"] for line in file] == list(range(20_000))
    assert most < 2_000_000
