"""Which browser opens an address, and which addresses none does."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Callable
from pathlib import Path

import pytest

from app.tui.widgets import browser
from app.tui.widgets.browser import IN_THE_TERMINAL, open_in_browser

URL = "https://example.com/pay?id=1&to=$(id);x"

Named = Callable[[str], None]


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Named:
    """Let ``BROWSER`` be what is given, as for a program that starts anew."""

    def name(command: str) -> None:
        monkeypatch.setattr(webbrowser, "_tryorder", None)
        monkeypatch.setattr(webbrowser, "_browsers", {})
        monkeypatch.delenv("DISPLAY", raising=False)
        monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
        monkeypatch.setenv("BROWSER", command)

    return name


def script(folder: Path, body: str, name: str = "open-elsewhere") -> Path:
    """Return a program in *folder*, which finds its folder in ``$here``."""
    path = folder / name
    path.write_text(f"#!/bin/sh\nhere='{folder}'\n{body}\n")
    path.chmod(0o755)
    return path


NOTE = 'for word in "$@"; do echo "$word" >> "$here/given"; done'


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "--help", "https://a b/", ""])
def test_an_address_that_is_not_plainly_for_the_web_reaches_no_browser(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "get", lambda: pytest.fail("a browser was looked for"))
    assert open_in_browser(url) is False


@pytest.mark.rule("elicitation.url-opened-outside")
@pytest.mark.parametrize("name", sorted(IN_THE_TERMINAL))
@pytest.mark.parametrize("way", ["{}", "{} %s", "{} %s &"])
def test_a_browser_that_would_take_the_terminal_opens_nothing(
    name: str, way: str, named: Named, tmp_path: Path
) -> None:
    named(way.format(script(tmp_path, NOTE, name)))
    assert open_in_browser(URL) is False
    assert not (tmp_path / "given").exists()


def test_a_text_browser_that_the_system_knows_opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for text_browser in (webbrowser.GenericBrowser("w3m"), webbrowser.Elinks("elinks")):
        monkeypatch.setattr(text_browser, "open", lambda *_, **__: pytest.fail("it was opened"))
        monkeypatch.setattr(webbrowser, "get", lambda found=text_browser: found)
        assert open_in_browser(URL) is False


@pytest.mark.rule("elicitation.url-opened-outside")
@pytest.mark.parametrize(
    ("way", "given"),
    [("{}", [URL]), ("{} --new %s", ["--new", URL]), ("{} --url=%s &", [f"--url={URL}"])],
)
def test_a_script_opens_the_address_and_writes_nothing_to_the_terminal(
    way: str, given: list[str], named: Named, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    named(way.format(script(tmp_path, f"{NOTE}\necho out\necho err >&2\ncat")))
    assert open_in_browser(URL) is True
    assert (tmp_path / "given").read_text().splitlines() == given
    assert capfd.readouterr() == ("", "")


def test_a_browser_that_stays_open_is_not_waited_for(
    named: Named, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser, "SOON_S", 0.01)
    os.mkfifo(tmp_path / "until")
    os.mkfifo(tmp_path / "ended")
    named(str(script(tmp_path, 'read line < "$here/until"; echo "$line" > "$here/ended"')))
    assert open_in_browser(URL) is True
    (tmp_path / "until").write_text("closed\n")  # opened once the browser reads: it was running all along
    assert (tmp_path / "ended").read_text() == "closed\n"


@pytest.mark.parametrize("body", ["exit 1", "kill -9 $$"])
def test_a_script_that_fails_at_once_has_opened_nothing(body: str, named: Named, tmp_path: Path) -> None:
    named(str(script(tmp_path, body)))
    assert open_in_browser(URL) is False


@pytest.mark.parametrize("way", ["{}", "{} %s", "'{} %s", "%s", " "])
def test_a_browser_that_is_not_there_opens_nothing(way: str, named: Named, tmp_path: Path) -> None:
    named(way.format(tmp_path / "none"))
    assert open_in_browser(URL) is False


@pytest.mark.parametrize("way", ["sh -c '{} %s'", "sh -c '{} %s' &"])
def test_no_shell_is_given_an_address_to_read(way: str, named: Named, tmp_path: Path) -> None:
    named(way.format(script(tmp_path, NOTE)))
    assert open_in_browser(URL) is False
    assert not (tmp_path / "given").exists()
