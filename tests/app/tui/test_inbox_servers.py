"""The servers screen: what is known of each, adding, testing, removing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.shell import Entries, Shell, asked, painted, until
from textual.widgets import Button, Input, OptionList

from app.engine.commands import EngineError, ServerReport
from app.tui.screens.add_server import AddServer
from app.tui.screens.servers import ServersScreen
from storage.records import ServerRecord

SIZE = (100, 30)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path, servers=Entries({"ci": "https://ci/mcp", "lab": "https://lab/mcp"}))
    yield made
    made.store.close()


def chosen(shell: Shell) -> str | None:
    screen = shell.app.screen
    assert isinstance(screen, ServersScreen)
    return screen.chosen


async def test_each_server_is_listed_with_its_health_and_its_url(shell: Shell) -> None:
    shell.store.set_server(ServerRecord("lab", "unreachable", shell.clock.now - 60_000, "connection refused"))
    async with shell.app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: shell.engine.runs == 1)
        await pilot.press("s")
        shown = painted(shell.app)
        assert "not contacted yet" in shown
        assert "unreachable 1m" in shown
        assert "https://lab/mcp" in shown
        await pilot.press("down")
        await until(pilot, lambda: "connection refused" in painted(shell.app))


async def test_each_server_is_listed_with_the_way_its_tasks_are_observed(shell: Shell) -> None:
    for name in ("ci", "lab"):
        shell.store.set_server(ServerRecord(name, "ok", shell.clock.now))
    shell.engine.ways.update(ci="subscribed", lab="polling")
    async with shell.app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: shell.engine.runs == 1)
        await pilot.press("s")
        lines = painted(shell.app).splitlines()
        assert any("ci" in line and "subscribed" in line and "https://ci/mcp" in line for line in lines)
        assert any("lab" in line and "polling" in line for line in lines)


async def test_adding_saves_the_header_as_it_was_written_and_reloads_the_engine(shell: Shell) -> None:
    async with shell.app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: shell.engine.runs == 1)
        await pilot.press("s", "a")
        await pilot.press(*"new", "enter", *"https://x/mcp", "enter", *"Authorization", "enter")
        shell.app.screen.query_one("#add-value", Input).value = "Bearer ${TOKEN}"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(shell.app.screen, ServersScreen))
        assert shell.servers.urls["new"] == "https://x/mcp"
        assert shell.servers.headers["new"] == {"Authorization": "Bearer ${TOKEN}"}
        await until(pilot, lambda: shell.engine.reloads == 1)
        assert chosen(shell) == "new"


async def test_a_refused_server_is_said_beside_the_fields_and_nothing_typed_is_lost(shell: Shell) -> None:
    async with shell.app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: shell.engine.runs == 1)
        await pilot.press("s", "a", *"new", "tab", *"ftp:x", "ctrl+s")
        await until(pilot, lambda: "must begin with http" in painted(shell.app))
        assert isinstance(shell.app.screen, AddServer)
        url = shell.app.screen.query_one("#add-url", Input)
        assert url.value == "ftp:x"
        url.value = "https://x"
        shell.app.screen.query_one("#add-header", Input).value = "X-Key"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "both a name and a value" in painted(shell.app))
        shell.app.screen.query_one("#add-name", Input).value = "ci"
        shell.app.screen.query_one("#add-header", Input).value = ""
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "a server named ci already" in painted(shell.app))
        await pilot.press("escape")
        assert list(shell.servers.urls) == ["ci", "lab"]
        assert shell.engine.reloads == 0


async def test_testing_shows_what_the_server_is_or_why_it_cannot_be_reached(shell: Shell) -> None:
    shell.engine.report = ServerReport(
        "ci", "[/foo] Build farm 2.1", ("2026-07-28",), True, 7, "Be nice.\x1b[31m", ("odd capability",)
    )
    async with shell.app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: shell.engine.runs == 1)
        await pilot.press("s", "t")
        await until(pilot, lambda: "[/foo] Build farm 2.1" in painted(shell.app))
        shown = painted(shell.app)
        for words in ("2026-07-28", "7 tools", "has tasks", "odd capability", "Be nice.␛[31m"):
            assert words in shown
        shell.engine.report = EngineError("unreachable", "lab can't be reached: [/foo]")
        await pilot.press("down", "enter")
        await until(pilot, lambda: "lab can't be reached: [/foo]" in painted(shell.app))


async def test_removing_asks_first_and_the_highlight_stays_on_a_server(shell: Shell) -> None:
    async with shell.app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: shell.engine.runs == 1)
        await pilot.press("s", "down", "d")
        await asked(shell, pilot)
        assert "https://lab/mcp" in painted(shell.app)
        assert shell.app.focused is shell.app.screen.query_one("#confirm-keep", Button)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(shell.app.screen, ServersScreen))
        assert "lab" in shell.servers.urls
        await pilot.press("d")
        await asked(shell, pilot)
        await pilot.press("right", "enter")
        await until(pilot, lambda: "lab" not in shell.servers.urls and shell.engine.reloads == 1)
        await until(pilot, lambda: isinstance(shell.app.screen, ServersScreen) and chosen(shell) == "ci")
        assert shell.app.screen.query_one(OptionList).option_count == 1


async def test_a_server_added_above_by_another_program_leaves_the_highlight_on_its_server(
    shell: Shell,
) -> None:
    async with shell.app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: shell.engine.runs == 1)
        await pilot.press("s", "down")
        assert chosen(shell) == "lab"
        shell.servers.urls = {"above": "https://a", **shell.servers.urls}
        assert isinstance(shell.app.screen, ServersScreen)
        shell.app.screen.tick()
        await pilot.pause()
        assert chosen(shell) == "lab"


async def test_without_servers_the_screen_says_how_to_add_one(tmp_path: Path) -> None:
    shell = Shell(tmp_path, servers=Entries({"ci": "https://ci"}))
    shell.servers.urls.clear()
    async with shell.app.run_test(size=SIZE) as pilot:
        await pilot.press("s")
        assert "Press a to add one." in painted(shell.app)
        await pilot.press("t", "d", "enter", "escape")
        assert shell.app.screen is shell.screen
