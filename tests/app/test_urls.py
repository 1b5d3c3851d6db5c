"""What is said of an address before a person opens it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.text import is_inert
from app.urls import origin_of, review_url


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
        ("https://me:secret@example.com/", "user name or password"),
        ("https://xn--pypal-4ve.com/", "It reads pаypal.com"),
        ("https://xn--pypal-4ve.com/", "“pаypal” mixes Latin and Cyrillic"),
        ("https://pαypal.com/", "mixes Latin and Greek"),
        ("https://аррӏе.com/", "other alphabets"),
        ("https://ｅｘａｍｐｌｅ.com/", "It reads example.com"),
        ("https://example。com/", "other alphabets"),
        ("http://2130706433/", "your own computer"),
        ("http://0x7f.1/", "your own computer"),
        ("http://0/", "your own computer"),
        ("http://0300.0250.1/", "192.168.0.1"),
        ("http://192.168.0.1/", "in your own network"),
        ("https://[fe80::1]/", "bare IP address"),
        ("https://xn--999999999999999999999999/", "other alphabets"),
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
        "https://ex%61mple.com/",
        "https://good.com%2eevil.com/",
    ],
)
def test_an_address_that_is_not_plainly_for_the_web_is_never_opened(url: str) -> None:
    assert review_url(url).problem is not None


@pytest.mark.parametrize("url", ["https://bücher.example/", "https://日本語.jp/", "https://пример.рф/"])
def test_a_name_in_one_alphabet_mixes_nothing(url: str) -> None:
    assert not any("mixes" in text for text in review_url(url).warnings)


@pytest.mark.parametrize(
    ("url", "server", "warned"),
    [
        ("https://ci.example.com/go", "https://ci.example.com/mcp", False),
        ("https://ci.example.com:443/go", "https://CI.example.com/mcp", False),
        ("https://login.example.com/go", "https://ci.example.com/mcp", True),
        ("https://ci.example.com:8443/go", "https://ci.example.com/mcp", True),
        ("http://ci.example.com/go", "https://ci.example.com/mcp", True),
        ("https://login.example.com/go", "${CI_URL}/mcp", False),
        ("https://login.example.com/go", None, False),
        ("https://login.example.com/go", "python -m server", False),
    ],
)
def test_another_place_than_the_servers_own_is_said(url: str, server: str | None, warned: bool) -> None:
    assert any("Another place" in text for text in review_url(url, server).warnings) == warned


@given(st.text(), st.text())
def test_no_text_is_too_odd_to_be_reviewed(url: str, server: str) -> None:
    for odd in (url, f"https://{url}/", f"http://{url}"):
        review = review_url(odd, server)
        assert all(is_inert(warning) for warning in review.warnings)
        assert review.problem is None or review.problem.endswith(".")
    origin_of(url)
