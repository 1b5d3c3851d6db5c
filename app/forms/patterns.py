"""Servers' regular expressions, searched in linear time.

JSON Schema's patterns are ECMA-262 regular expressions that may match anywhere. RE2 has no backtracking, so a
hostile pattern can't hang the program. What it can't compile (look-around, back-references) is not checked.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

MAX_PATTERN: Final = 2000
"""Characters of one pattern."""

UNCHECKED: Final = "its pattern is not checked here; the server decides"

MAX_WORK: Final = 30_000_000
"""Instructions of a compiled pattern times bytes of the text: at worst, about a second."""

_MEMORY: Final = 1 << 20
"""Bytes one compiled pattern may take: with nested repetition a short pattern could take gigabytes."""

_CODE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}|(.))", re.DOTALL)
_FOREIGN: Final = re.compile(r"(?:^|[^\\])(?:\\\\)*(?:\\[QEaAzCcG]|\[\[:)")
"""What RE2 accepts and ECMA-262 reads otherwise."""


@lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> Any | None:
    """Return *pattern* compiled; ``None`` where the bounded engine can't compute it."""
    if len(pattern) > MAX_PATTERN or _FOREIGN.search(pattern):
        return None
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    options.never_capture = True  # finding groups is what takes RE2 long
    try:
        return re2.compile(_CODE.sub(_code, pattern), options)
    except (re2.error, UnicodeEncodeError):
        return None


def work(pattern: str, text: str) -> int | None:
    """Return how much work a search is; ``None`` where it can't be done, or would be too much."""
    compiled = compile_pattern(pattern)
    if compiled is None:
        return None
    size = int(compiled.programsize) * (len(text) if text.isascii() else 4 * len(text))
    return size if size <= MAX_WORK else None


def found(pattern: str, text: str) -> bool:
    """Say whether *pattern* matches somewhere in *text*; also true where that is not computed here."""
    if work(pattern, text) is None:
        return True
    try:
        return compile_pattern(pattern).search(text) is not None  # type: ignore[union-attr]
    except UnicodeEncodeError:
        return True


def _code(match: re.Match[str]) -> str:
    digits = match.group(1) or match.group(2)
    return f"\\x{{{digits}}}" if digits else match.group()
