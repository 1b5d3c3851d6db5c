"""Times as a person reads them, in the local time zone."""

from __future__ import annotations

from datetime import UTC, datetime


def clock_time(ms: int, now: int, *, seconds: bool = False) -> str:
    """Return ``10:30``, with the day where it is not that of *now*; both in milliseconds since the epoch."""
    try:
        then = datetime.fromtimestamp(ms / 1000, tz=UTC).astimezone()
        today = datetime.fromtimestamp(now / 1000, tz=UTC).astimezone()
    except (ValueError, OverflowError, OSError):
        return "at an impossible time"
    shown = then.strftime("%H:%M:%S" if seconds else "%H:%M")
    return shown if then.date() == today.date() else f"{then.strftime('%Y-%m-%d')} {shown}"
