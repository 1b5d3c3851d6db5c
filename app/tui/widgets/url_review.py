"""What a person should know about an address before it is opened; pure, and never fetched."""

from __future__ import annotations

import ipaddress
import webbrowser
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from app.text import is_inert

_LONGEST: Final = 8000
"""Characters; longer addresses are not opened: browsers and their launchers cut them."""


@dataclass(frozen=True, slots=True)
class UrlReview:
    """An address, taken apart."""

    url: str
    scheme: str
    host: str
    """As it stands in the address, port included; empty where there is none."""
    warnings: tuple[str, ...]
    problem: str | None
    """Why it is not opened from here; ``None``: it may be."""


def review_url(url: str) -> UrlReview:
    """Take *url* apart and say what is odd about it (elicitation in URL mode, "Safe URL handling")."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        credentials = parts.username is not None or parts.password is not None
    except ValueError:
        return UrlReview(url, "", "", (), "This is not a valid address.")
    scheme = parts.scheme.lower()
    shown = f"[{host}]" if ":" in host else host
    if port is not None:
        shown = f"{shown}:{port}"
    return UrlReview(
        url, scheme, shown, _warnings(scheme, host, port, credentials), _problem(url, scheme, host)
    )


def _problem(url: str, scheme: str, host: str) -> str | None:
    if scheme not in ("http", "https"):
        return "Only http and https addresses are opened from here."
    if not host:
        return "This address names no host."
    if not is_inert(url) or any(character.isspace() for character in url):
        return "This address holds spaces or control characters."
    if "\\" in url:
        return "This address holds a backslash: browsers may read another host in it than is shown here."
    if len(url) > _LONGEST:
        return "This address is too long."
    return None


def _warnings(scheme: str, host: str, port: int | None, credentials: bool) -> tuple[str, ...]:
    found: list[str] = []
    if scheme == "http":
        found.append("Not encrypted: what you enter there can be read on the way.")
    if credentials:
        found.append("The address carries a user name: what stands before the @ is not the host.")
    if any(label.startswith("xn--") for label in host.lower().split(".")) or not host.isascii():
        found.append("The host's name has letters from other alphabets, which can imitate another name.")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        if host == "localhost" or host.endswith(".localhost"):
            found.append("This is your own computer.")
    else:
        found.append(
            "This is your own computer." if address.is_loopback else "A bare IP address, not a name."
        )
    if port is not None and port not in (80, 443):
        found.append(f"An unusual port: {port}.")
    return tuple(found)


def open_in_browser(url: str) -> bool:
    """Open *url* in the person's browser; ``False`` where there is none. Blocks: call it in a thread.

    A text browser would take this very terminal away from the inbox, so it does not count as one.
    """
    if review_url(url).problem is not None:
        return False
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    text_browser = isinstance(browser, webbrowser.GenericBrowser) and not isinstance(
        browser, webbrowser.BackgroundBrowser
    )
    return not text_browser and browser.open(url, new=2)
