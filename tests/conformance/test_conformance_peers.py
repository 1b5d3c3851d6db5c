"""The table of servers: what is measured and what is written must be the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance import peers
from conformance.peers import BEGIN, END, PAGE, differences, table
from conformance.probes import PROBES, Meeting, Tools, probe

from mcp_client import McpClient

ROW = {"server": "one", "transport": "HTTP", "revision": "2026-07-28"}


def page(*rows: dict[str, str]) -> str:
    return "\n".join(["# Heading", BEGIN, *table(rows), END, "| another | table |"])


def test_a_page_that_says_what_was_measured_is_right() -> None:
    assert differences(page(ROW), table([ROW])) == []


def test_a_cell_that_has_changed_is_named_in_both_directions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(peers, "SHARED", tmp_path)
    wrong = differences(page(ROW), table([{**ROW, "task": "no"}]))
    assert len(wrong) == 2
    assert wrong[0].startswith("docs/peers.md does not say: | one | HTTP | 2026-07-28 |")
    assert wrong[1].startswith("docs/peers.md says, but nobody found: | one |")


def test_rows_of_servers_that_this_machine_lacks_are_not_missed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(peers, "SHARED", tmp_path / "absent")
    assert differences(page(ROW, {**ROW, "server": "two"}), table([ROW])) == []


def test_the_page_has_a_row_of_every_column_for_each_peer() -> None:
    measured = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].strip().splitlines()
    assert measured[:2] == table([])
    assert len(measured) > 10
    assert {row.count("|") for row in measured} == {len(PROBES) + 3}


async def test_a_peer_that_fails_a_probe_is_told_of_in_its_cell_not_by_a_traceback() -> None:
    async with McpClient.http("http://127.0.0.1:1/mcp") as client:
        cell = await probe("list", Meeting(client, Tools()))
    assert cell.startswith("no: TransportError: ")
    assert "|" not in cell
