"""What one look at a task found, free of wire models, so that `reconcile` is pure and easy to drive."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import simplejson

TERMINAL: Final = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class Asked:
    """One outstanding input request."""

    key: str
    method: str
    request_json: str
    """``{"method": …, "params": …}``."""
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Observed:
    """A task as its server described it: times in milliseconds since the epoch, JSON as text."""

    status: str
    status_message: str | None = None
    created_at: int | None = None
    last_updated_at: int | None = None
    ttl_ms: int | None = None
    poll_interval_ms: int | None = None
    """``None``: this reply suggests nothing; an earlier suggestion stays."""
    asked: tuple[Asked, ...] = ()
    is_error: bool = False
    result_json: str | None = None
    error_json: str | None = None
    snapshot_json: str | None = None
    faults: tuple[str, ...] = ()
    """What was wrong with the reply and could be read all the same."""
    by: Literal["poll", "subscription"] = "poll"

    @property
    def is_terminal(self) -> bool:
        """Say whether the task is over."""
        return self.status in TERMINAL


def to_json(value: object, *, sort_keys: bool = False) -> str:
    """Return *value* as JSON text, numbers exact."""
    return simplejson.dumps(
        value, use_decimal=True, ensure_ascii=False, sort_keys=sort_keys, separators=(", ", ": ")
    )


def fingerprint(request: Mapping[str, Any]) -> str:
    """Return a digest of what an input request asks: its method and parameters, whatever the order of keys.

    ``_meta`` is left out: it is about the message, not part of what a person is asked, and a server that puts
    a time there would otherwise ask something new at every look.
    """
    params = request.get("params")
    if isinstance(params, Mapping):
        params = {name: value for name, value in params.items() if name != "_meta"}
    canonical = to_json([request.get("method"), params], sort_keys=True)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def asked(key: str, request: Mapping[str, Any]) -> Asked:
    """Return the input request *request* that the server named *key*."""
    return Asked(key, str(request.get("method")), to_json(request), fingerprint(request))
