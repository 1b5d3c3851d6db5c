"""An address as a QR code, for a phone: two modules a character, black on white in every theme."""

from __future__ import annotations

from typing import Final

import segno
from textual.content import Content
from textual.geometry import Size

from app.tui.widgets.inert import joined

QUIET: Final = (4, 2)
"""Modules of white around the code: what ISO/IEC 18004 asks for, and what cameras still take."""

_INK: Final = "#000000 on #ffffff"
_BLOCKS: Final = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}


class NoCode(Exception):
    """There is no such code, or no room for it; the message says so."""


def qr_lines(text: str, room: Size) -> list[str]:
    """Return the lines of *text*'s QR code, for a place of *room* cells. Raises `NoCode`."""
    try:
        code = segno.make(text, error="l", micro=False, encoding="utf-8")
    except segno.DataOverflowError:
        raise NoCode("This address is too long for a QR code: copy it instead.") from None
    dark = [[bool(module) for module in row] for row in code.matrix]
    for quiet in QUIET:
        width = len(dark) + 2 * quiet
        if width <= room.width and (width + 1) // 2 <= room.height:
            return _drawn(dark, quiet)
    raise NoCode(
        f"Its QR code needs {width} columns and {(width + 1) // 2} lines, and here are {room.width} and "
        f"{room.height}: make the window larger, or copy the address instead."
    )


def _drawn(dark: list[list[bool]], quiet: int) -> list[str]:
    size = len(dark)

    def at(x: int, y: int) -> bool:
        x, y = x - quiet, y - quiet
        return 0 <= x < size and 0 <= y < size and dark[y][x]

    width = size + 2 * quiet
    return ["".join(_BLOCKS[at(x, y), at(x, y + 1)] for x in range(width)) for y in range(0, width, 2)]


def qr_content(lines: list[str]) -> Content:
    """Return the code's *lines* as something a widget can show, in its own two colours."""
    return Content("\n").join(joined((line, _INK)) for line in lines)
