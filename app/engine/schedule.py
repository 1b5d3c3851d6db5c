"""When to look at a task next: pure.

`pollIntervalMs` is a suggestion that SHOULD be honoured and may change with every reply (the Tasks page,
"Task Polling"); a server may leave it out, or ask for a pace that would hammer it.
"""

from __future__ import annotations

from typing import Final

DEFAULT_MS: Final = 5_000
"""Where the server suggests nothing."""
FLOOR_MS: Final = 500
"""No server is asked more often, whatever it suggests."""
CEILING_MS: Final = 300_000
"""No task is looked at more seldom, whatever its server suggests: a question must be seen in useful time."""
JITTER: Final = 0.1
"""Tasks that were started together do not stay in step."""
QUICK_MS: Final = (500, 1_000, 2_000)
"""Looks after an acknowledgement, which is eventually consistent: soon, then less soon, never faster than
these."""
BACKOFF_FIRST_MS: Final = 1_000
BACKOFF_MOST_MS: Final = 60_000
SAFETY_TIMES: Final = 10
SAFETY_LEAST_MS: Final = 60_000
"""A task that a stream tells of is still looked at, this many times more seldom and within these bounds: an
open stream may be one that tells nothing any more."""
GRACE_S: Final = 5.0
"""What a look found before the stream told of it may still be on its way; after this long it is not."""
REFUSED_MS: Final = 600_000
"""A server that does not take subscriptions is asked again after this long."""
LIVED_WELL_S: Final = 60.0
"""A stream that was open this long was no failure, however it ended."""
LOST_LOOKS_MS: Final = (30_000, 120_000, 600_000)
"""A server that restarts may know the task again a little later; then it is left to a person."""


def interval(poll_interval_ms: int | None) -> int:
    """Return the pause between two looks in milliseconds, within the bounds, without jitter."""
    if poll_interval_ms is None or poll_interval_ms <= 0:
        return DEFAULT_MS
    return min(max(poll_interval_ms, FLOOR_MS), CEILING_MS)


def next_look(poll_interval_ms: int | None, chance: float, *, quick: int | None = None) -> float:
    """Return the seconds until the next look at a task that was just seen.

    *chance* is from 0 up to 1. *quick* counts the looks since an acknowledgement of an answer or a
    cancellation (0: none yet); ``None``: there was none lately.
    """
    pause = interval(poll_interval_ms)
    if quick is not None and quick < len(QUICK_MS):
        pause = min(pause, QUICK_MS[quick])
    return _jittered(pause, chance, JITTER)


def safety_look(poll_interval_ms: int | None, chance: float) -> float:
    """Return the seconds until the next look at a task that a stream tells of."""
    pause = max(SAFETY_TIMES * interval(poll_interval_ms), SAFETY_LEAST_MS)
    return _jittered(min(pause, CEILING_MS), chance, JITTER)


def fall_back(poll_interval_ms: int | None, chance: float) -> float:
    """Return the seconds until the first look at a task whose stream has just ended: somewhere within one
    interval, so that all tasks of the stream do not come at once."""
    return interval(poll_interval_ms) * chance / 1000


def listen_again(failures: int, chance: float) -> float:
    """Return the seconds until a stream is opened again after *failures* (1 or more) short-lived ones."""
    pause = min(BACKOFF_FIRST_MS << min(max(failures, 1) - 1, 16), BACKOFF_MOST_MS)
    return _jittered(pause, chance, 0.25)


def after_refusal(chance: float) -> float:
    """Return the seconds until a server that refused a subscription is asked for one again."""
    return _jittered(REFUSED_MS, chance, JITTER)


def after_failure(failures: int, poll_interval_ms: int | None, chance: float) -> float:
    """Return the seconds until the next attempt after *failures* (1 or more) failed ones in a row.

    Doubles from a second up to a minute, spread over ±25 %, so that many tasks of one server that comes back
    do not arrive together; never sooner than half of the task's own interval.
    """
    pause = min(BACKOFF_FIRST_MS << min(max(failures, 1) - 1, 16), BACKOFF_MOST_MS)
    return _jittered(max(pause, min(interval(poll_interval_ms) // 2, BACKOFF_MOST_MS)), chance, 0.25)


def after_loss(looks: int, chance: float) -> float | None:
    """Return the seconds until a lost task is looked at again, after *looks* of them; ``None``: no more."""
    return _jittered(LOST_LOOKS_MS[looks], chance, JITTER) if looks < len(LOST_LOOKS_MS) else None


def _jittered(milliseconds: int, chance: float, spread: float) -> float:
    return milliseconds * (1 - spread + 2 * spread * chance) / 1000
