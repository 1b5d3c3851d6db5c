"""Which browser opens an address, and which addresses none does."""

from __future__ import annotations

import pytest

from app.tui.widgets.browser import open_in_browser


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "--help", "https://a b/", ""])
def test_an_address_that_is_not_plainly_for_the_web_reaches_no_browser(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import webbrowser

    monkeypatch.setattr(webbrowser, "get", lambda: pytest.fail("a browser was looked for"))
    assert open_in_browser(url) is False


@pytest.mark.rule("elicitation.url-opened-outside")
def test_without_a_graphical_browser_nothing_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    import webbrowser

    opened: list[str] = []
    text_browser = webbrowser.GenericBrowser("w3m")
    monkeypatch.setattr(text_browser, "open", lambda url, new=0: opened.append(url) or True)
    monkeypatch.setattr(webbrowser, "get", lambda: text_browser)
    assert open_in_browser("https://example.com/") is False
    assert opened == []
