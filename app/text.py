"""The one place where untrusted text is made inert.

Every string that a server can influence passes through `inert` (or `inert_line`) on its way to a screen or a
terminal; what is stored stays as it came. Textual strips only five of the control characters, so a raw CSI or
OSC 52 sequence would otherwise reach the terminal from any widget.
"""

from __future__ import annotations

import re
from typing import Final

PREVIEW_LIMIT: Final = 64 * 1024
"""Characters of one text shown on a screen; longer ones are cut, and say how much was left out."""

LINE_LIMIT: Final = 500
"""Characters of one line in a list or a message."""

# C0 without tab and newline, DEL, C1; bidirectional controls; line and paragraph separators; interlinear
# annotations; the byte order mark; lone surrogates; tag characters. ZWJ and ZWNJ are left alone: scripts and
# emoji need them.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufff9-\ufffb\ufeff"
    "\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)  # the control pictures: ␛ for ESC, ␍ for CR
    if code == 0x7F:
        return "\u2421"
    return f"\\u{{{code:x}}}"


def inert(text: str, limit: int = PREVIEW_LIMIT) -> str:
    """Make *text* safe to draw: control characters become visible, and it is cut to *limit* characters."""
    cut = len(text) - limit
    if cut > 0:
        text = text[:limit]
    safe = _UNSAFE.sub(_escape, text)
    return f"{safe}… ({cut:,} more characters)" if cut > 0 else safe


def inert_line(text: str, limit: int = LINE_LIMIT) -> str:
    """Make *text* safe to draw on a single line: as `inert`, with line breaks and tabs shown as spaces."""
    head = text[: limit + 1]
    flat = " ".join(head.replace("\r\n", "\n").replace("\r", "\n").replace("\t", " ").split("\n"))
    safe = _UNSAFE.sub(_escape, flat[:limit])
    return f"{safe}…" if len(text) > limit else safe


def is_inert(text: str) -> bool:
    """Say whether `inert` would leave *text* as it is, its length aside.

    A default that a server put in a form must not silently go back changed: where this is false, the field is
    marked.
    """
    return _UNSAFE.search(text) is None


def plural(count: int, noun: str) -> str:
    """Return ``1 question`` or ``3 questions``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def duration(milliseconds: int) -> str:
    """Return a length of time in one or two units: ``45s``, ``12m``, ``2h 5m``, ``3d 4h``."""
    seconds = max(0, milliseconds) // 1000
    if seconds < 60:
        return f"{seconds}s"
    minutes = seconds // 60
    if minutes < 60:
        return f"{minutes}m"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}h {minutes}m" if minutes and hours < 10 else f"{hours}h"
    days, hours = divmod(hours, 24)
    return f"{days}d {hours}h" if hours and days < 10 else f"{days}d"


def byte_size(count: int) -> str:
    """Return a size for people: ``812 bytes``, ``4.2 KB``, ``1.3 MB``."""
    if count < 1000:
        return plural(count, "byte")
    size = float(count)
    for unit in ("KB", "MB", "GB"):
        size /= 1000
        if size < 1000:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} TB"
