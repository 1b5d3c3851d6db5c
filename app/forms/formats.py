"""The four formats of the elicitation subset; any other format is ignored, as JSON Schema says.

Each is judged by the standard that JSON Schema names: RFC 5321 (email), RFC 3986 (uri), RFC 3339 (date and
date-time).
"""

from __future__ import annotations

import re
from typing import Final

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_LOCAL: Final = re.compile(rf'{_ATOM}(?:\.{_ATOM})*|"(?:[ !#-\[\]-~]|\\[ -~])*"')
_DOMAIN: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*|\[[0-9A-Za-z:.-]+\]")

_URI: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:"
    r"(?://(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*@)?"
    r"(?:\[[0-9A-Fa-fv:.]+\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?(?=[/?#]|\Z)|(?!//))"
    r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*"
    r"(?:\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"
    r"(?:#(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"
)
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile(
    r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

NAMES: Final = {
    "email": "email address",
    "uri": "URI, as https://…",
    "date": "date, YYYY-MM-DD",
    "date-time": "date and time with an offset, as 2026-08-01T10:00:00+02:00",
}
"""What each format that is checked is called to a person."""


def format_problem(name: str | None, text: str) -> str | None:
    """Say in what way *text* breaks the format *name*; ``None``: it doesn't, or the format is not known."""
    if name == "email":
        return None if _is_email(text) else "not an email address"
    if name == "uri":
        return None if _is_uri(text) else "not a URI (it needs a scheme, as in https://…, and no spaces)"
    if name == "date":
        return None if _is_date(text) else "not a date of the calendar, written YYYY-MM-DD"
    if name == "date-time":
        return _date_time_problem(text)
    return None


def _is_email(text: str) -> bool:
    local, at, domain = text.rpartition("@")
    if not at or len(local) > 64 or len(domain) > 255:
        return False
    return _LOCAL.fullmatch(local) is not None and _DOMAIN.fullmatch(domain) is not None


def _is_uri(text: str) -> bool:
    return _URI.fullmatch(text) is not None


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = (int(part) for part in match.groups())
    if not 1 <= month <= 12:
        return False
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= day <= _DAYS[month - 1] + leap


def _date_time_problem(text: str) -> str | None:
    expected = "not a date and time, written as 2026-08-01T10:00:00+02:00"
    if not _is_date(text[:10]) or text[10:11] not in ("T", "t"):
        return expected
    match = _TIME.fullmatch(text, 11)
    if match is None:
        without = _TIME.fullmatch(text[11:] + "Z")
        return "the offset from UTC is missing (Z, or as +02:00)" if without else expected
    hour, minute, second = (int(match.group(index)) for index in (1, 2, 3))
    sign, off_hour, off_minute = match.group(4) or "+", int(match.group(5) or 0), int(match.group(6) or 0)
    if hour > 23 or minute > 59 or second > 60 or off_hour > 23 or off_minute > 59:
        return expected
    if second == 60:
        # A leap second is the last second of a day in UTC.
        offset = (off_hour * 60 + off_minute) * (-1 if sign == "-" else 1)
        if (hour * 60 + minute - offset) % 1440 != 1439:
            return expected
    return None
