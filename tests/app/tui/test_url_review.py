"""What is said of an address before a person opens it."""

from __future__ import annotations

import pytest

from app.tui.widgets.url_review import open_in_browser, review_url


@pytest.mark.rule("elicitation.url-domain-highlighted")
@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.com/a?b#c", "example.com"),
        ("https://good.com@evil.com/", "evil.com"),
        ("https://EXAMPLE.com:8443/", "example.com:8443"),
        ("https://[::1]:80/", "[::1]:80"),
    ],
)
def test_the_host_is_the_one_that_a_browser_would_go_to(url: str, host: str) -> None:
    assert review_url(url).host == host
    assert review_url(url).problem is None


@pytest.mark.rule("elicitation.url-https", "elicitation.url-care", "elicitation.url-warned-about")
@pytest.mark.parametrize(
    ("url", "warning"),
    [
        ("http://example.com/", "Not encrypted"),
        ("https://good.com@evil.com/", "before the @"),
        ("https://xn--pypal-4ve.com/", "other alphabets"),
        ("https://pаypal.com/", "other alphabets"),
        ("https://93.184.216.34/", "bare IP address"),
        ("https://127.0.0.1/", "your own computer"),
        ("https://localhost/", "your own computer"),
        ("https://example.com:8443/", "unusual port"),
    ],
)
def test_what_is_odd_about_an_address_is_said(url: str, warning: str) -> None:
    assert any(warning in text for text in review_url(url).warnings)


def test_a_plain_address_has_no_warning() -> None:
    assert review_url("https://example.com/authorise?id=1").warnings == ()


@pytest.mark.rule("elicitation.url-valid", "elicitation.url-care")
@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "ftp://example.com/",
        "https:///no-host",
        "https://good.com\\@evil.com/",
        "https://exa mple.com/",
        "https://example.com/\x1b]52;c;x\x07",
        "https://example.com/\u202egnp.exe",
        "https://[::1/",
        "https://example.com:99999/",
        "https://example.com/" + "a" * 9000,
        "--help",
    ],
)
def test_an_address_that_is_not_plainly_for_the_web_is_never_opened(url: str) -> None:
    assert review_url(url).problem is not None
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
