"""What a person should know about an address before it is opened; pure, and never fetched.

The rules are those of client/elicitation ("Safe URL Handling"); how a browser reads a host is the URL
Standard's (host parsing): what is shown here must be where it would go.
"""

from __future__ import annotations

import ipaddress
import unicodedata
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from app.text import inert_line, is_inert

LONGEST: Final = 8000
"""Characters; longer addresses are not opened: browsers and their launchers cut them."""

_LONGEST_LABEL: Final = 63
_PORTS: Final = {"http": 80, "https": 443}
_SCRIPTS: Final = ("Latin", "Cyrillic", "Greek", "Armenian", "Cherokee")
"""Alphabets with letters that look like another's."""


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


def review_url(url: str, server_url: str | None = None) -> UrlReview:
    """Take *url* apart and say what is odd about it.

    *server_url* is the address of the server that asks; ``None``: it has none (a program that was started).
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return UrlReview(url, "", "", (), "This is not a valid address.")
    shown = f"[{host}]" if ":" in host else host
    if port is not None:
        shown = f"{shown}:{port}"
    warnings = [*_way_warnings(parts, port), *_host_warnings(host), *_origin_warnings(parts, server_url)]
    return UrlReview(url, parts.scheme.lower(), shown, tuple(warnings), _problem(url, parts, host))


def origin_of(url: str) -> str | None:
    """Return scheme, host and port of a web address as one text; ``None``: it is none."""
    try:
        parts = urlsplit(url)
        return _origin(parts)
    except ValueError:
        return None


def _origin(parts: SplitResult) -> str | None:
    scheme, host = parts.scheme.lower(), _as_read(parts.hostname or "")
    if scheme not in _PORTS or not host:
        return None
    port = _PORTS[scheme] if parts.port is None else parts.port
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}" if port == _PORTS[scheme] else f"{scheme}://{shown}:{port}"


def _problem(url: str, parts: SplitResult, host: str) -> str | None:
    if parts.scheme.lower() not in _PORTS:
        return "Only http and https addresses are opened from here."
    if not host:
        return "This address names no host."
    if not is_inert(url) or any(character.isspace() for character in url):
        return "This address holds spaces or control characters."
    if "\\" in url:
        return "This address holds a backslash: browsers may read another host in it than is shown here."
    if "%" in host:
        return "The host is written with percent signs: browsers read another one in it than is shown here."
    if len(url) > LONGEST:
        return "This address is too long."
    return None


def _way_warnings(parts: SplitResult, port: int | None) -> list[str]:
    found = []
    if parts.scheme.lower() == "http":
        found.append("Not encrypted: what you enter there can be read on the way.")
    if parts.username is not None or parts.password is not None:
        found.append("The address carries a user name or password: what stands before the @ is not the host.")
    if port is not None and port not in _PORTS.values():
        found.append(f"An unusual port: {port}.")
    return found


def _origin_warnings(parts: SplitResult, server_url: str | None) -> list[str]:
    own = origin_of(server_url) if server_url is not None else None
    if own is None or _origin(parts) in (own, None):
        return []
    return [f"Another place than the server that asks, which is {inert_line(own, 200)}."]


def _host_warnings(host: str) -> list[str]:
    read = _as_read(host)
    labels = [_decoded(label) for label in read.split(".")]
    found = []
    if any(label.startswith("xn--") for label in read.split(".")) or not host.isascii():
        decoded = ".".join(labels)
        reads = f" It reads {inert_line(decoded, 200)}." if decoded != host.lower() else ""
        found.append(
            f"The host's name has letters from other alphabets, which can imitate another name.{reads}"
        )
    for label in labels:
        scripts = _scripts_of(label)
        if len(scripts) > 1:
            mixed = " and ".join(scripts)
            found.append(f"“{inert_line(label, 70)}” mixes {mixed} letters, as imitations do.")
    return found + _place_warnings(read)


def _place_warnings(read: str) -> list[str]:
    if read == "localhost" or read.endswith(".localhost"):
        return ["This is your own computer."]
    address = _address(read)
    if address is None:
        return []
    if address.is_loopback or address.is_unspecified:
        return ["This is your own computer."]
    plain = "" if str(address) == read else f" It is {address}."
    near = " It is in your own network." if address.is_private else ""
    return [f"A bare IP address, not a name.{plain}{near}"]


def _as_read(host: str) -> str:
    """Return *host* as a browser reads it: compatibility forms and other dots replaced, in lower case."""
    if host.isascii():
        return host.lower()
    return unicodedata.normalize("NFKC", host).replace("\u3002", ".").lower()


def _decoded(label: str) -> str:
    """Return what a label in punycode reads; any other as it is."""
    if not label.startswith("xn--") or len(label) > _LONGEST_LABEL:
        return label
    try:
        return label[4:].encode("ascii").decode("punycode")
    except ValueError:
        return label


def _scripts_of(label: str) -> list[str]:
    names = [unicodedata.name(letter, "") for letter in label[:200] if letter.isalpha()]
    return [script for script in _SCRIPTS if any(name.startswith(f"{script.upper()} ") for name in names)]


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address that a browser reads in *host*: ``2130706433`` and ``0x7f.1`` are some, too."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        numbers = [_number(part) for part in host.removesuffix(".").split(".")]
        if len(numbers) > 4 or any(number > 255 for number in numbers[:-1]):
            return None
        value = numbers[-1]
        if value >= 256 ** (5 - len(numbers)):
            return None
        for place, number in enumerate(numbers[:-1]):
            value += number << (8 * (3 - place))
        return ipaddress.IPv4Address(value)
    except ValueError:
        return None


def _number(text: str) -> int:
    if not text.isascii() or not text.isalnum() or len(text) > 20:
        raise ValueError(text)
    if text.startswith("0x"):
        return int(text[2:] or "0", 16)
    return int(text, 8) if text.startswith("0") else int(text)
