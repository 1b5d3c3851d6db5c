"""The opaque state of a call that stopped at questions: signed, bound to call and caller, and short-lived.

Nothing about such a call is stored. What a client brings back is an attacker's input until its signature, its
expiry, and the caller and call it belongs to, have been checked (the specification's page on multi round-trip
requests).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any, Final

from app.demo_server.errors import INVALID_PARAMS, RpcError
from app.demo_server.owners import Caller

LIFETIME_MS: Final = 24 * 3600 * 1000
"""How long a person may take to answer: overnight is normal."""


class Seal:
    """Makes and checks request states with one key, which must outlive the process."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def make(self, caller: Caller, tool: str, arguments: Mapping[str, Any], now_ms: int) -> str:
        """Return a state for this call by this caller."""
        until = now_ms + LIFETIME_MS
        payload = json.dumps({"call": _digest(caller, tool, arguments), "until": until}).encode()
        return f"{_encode(payload)}.{_encode(self._sign(payload))}"

    def check(
        self, state: object, caller: Caller, tool: str, arguments: Mapping[str, Any], now_ms: int
    ) -> None:
        """Raise `RpcError` (-32602) unless *state* was made here, for this very call, and is still good."""
        payload = self._verified(state)
        if payload["call"] != _digest(caller, tool, arguments):
            raise RpcError(INVALID_PARAMS, "requestState belongs to another call")
        if payload["until"] < now_ms:
            raise RpcError(INVALID_PARAMS, "requestState has expired; call the tool again")

    def _verified(self, state: object) -> dict[str, Any]:
        refused = RpcError(INVALID_PARAMS, "requestState was not made by this service")
        if not isinstance(state, str):
            raise refused
        head, _, tail = state.partition(".")
        try:
            payload, signature = _decode(head), _decode(tail)
        except (binascii.Error, ValueError):
            raise refused from None
        if not hmac.compare_digest(signature, self._sign(payload)):
            raise refused
        verified: dict[str, Any] = json.loads(payload)
        return verified

    def _sign(self, payload: bytes) -> bytes:
        return hmac.digest(self._key, payload, "sha256")


def _digest(caller: Caller, tool: str, arguments: Mapping[str, Any]) -> str:
    call = [caller.tenant, caller.principal, tool, arguments]
    return hashlib.sha256(json.dumps(call, sort_keys=True).encode()).hexdigest()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
