"""Who asks: a bearer token stands for a principal of a tenant, and tasks belong to the tenant.

The file of tokens is JSON, token by token:

```json
{
  "a-long-random-token": {"tenant": "acme", "principal": "ada"},
  "another-random-token": {"tenant": "acme", "principal": "build-agent"}
}
```

Everybody of a tenant sees, answers and cancels its tasks, so that a person can answer what an agent began;
who called and who answered is recorded. Without such a file everybody is one local tenant.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.demo_server.errors import ServeError

TOKEN_LENGTH: Final = 16
"""The fewest characters of a token: shorter ones can be guessed."""
NAME_LENGTH: Final = 200
"""The most characters of a tenant's or principal's name."""
FILE_LIMIT: Final = 1024 * 1024
"""Bytes of a file of tokens."""

# What a bearer token may consist of: RFC 6750, section 2.1.
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_BEARER: Final = re.compile(rf"bearer +({_TOKEN.pattern})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent one request."""

    tenant: str
    """Owns the tasks."""
    principal: str
    """Who of the tenant it is."""


LOCAL: Final = Caller("local", "local")
"""Everybody, where the service runs without tokens."""


class Owners:
    """Tells callers by their tokens, of which it keeps hashes alone."""

    def __init__(self, callers: Mapping[str, Caller] | None = None) -> None:
        """Know *callers* by token; with ``None`` everybody is `LOCAL`."""
        self._callers = None if callers is None else [(_hash(token), who) for token, who in callers.items()]

    def caller_of(self, authorization: str | None) -> Caller | None:
        """Return who sent this ``Authorization`` header; ``None``: nobody who is known here."""
        if self._callers is None:
            return LOCAL
        given = _BEARER.fullmatch((authorization or "").strip())
        if given is None:
            return None
        hashed = _hash(given[1])
        found = None
        # Each is compared, whichever fits: how long it takes tells nothing about the tokens.
        for known, caller in self._callers:
            if hmac.compare_digest(known, hashed):
                found = caller
        return found


def load(path: Path) -> Owners:
    """Read a file of tokens, once.

    Raises:
        ServeError: it can't be read, or isn't in the form shown above; no token is in the message.
    """
    try:
        with open(path, "rb") as file:
            text = file.read(FILE_LIMIT + 1)
        if len(text) > FILE_LIMIT:
            raise ServeError(f"the file of tokens {path} is larger than {FILE_LIMIT} bytes")
        entries = json.loads(text, object_pairs_hook=_once)
    except OSError as error:
        raise ServeError(f"the file of tokens {path} can't be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        # The parser's own words could quote a token.
        raise ServeError(
            f"the file of tokens {path} isn't JSON in UTF-8, or has something in it twice"
        ) from None
    if not isinstance(entries, dict) or not entries:
        raise ServeError(f'the file of tokens {path} must be an object, {{"TOKEN": {{"tenant": …}}, …}}')
    return Owners({token: _caller(path, n, token, who) for n, (token, who) in enumerate(entries.items(), 1)})


def exposure(path: Path) -> str | None:
    """Say that others can read the file of tokens; ``None``: they can't, or there is no such file."""
    if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
        return f"other users of this machine can read the tokens in {path}; chmod 600 it"
    return None


def _caller(path: Path, number: int, token: str, who: object) -> Caller:
    where = f"entry {number} of the file of tokens {path}"
    if len(token) < TOKEN_LENGTH or _TOKEN.fullmatch(token) is None:
        allowed = "letters, digits and ._~+/-, with = at the end"
        raise ServeError(f"{where}: a token has at least {TOKEN_LENGTH} characters: {allowed}")
    if not isinstance(who, dict) or who.keys() != {"tenant", "principal"}:
        raise ServeError(f"{where}: a token stands for a tenant and a principal, and for nothing else")
    for name, value in who.items():
        if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= NAME_LENGTH:
            raise ServeError(f"{where}: {name} must be a name of 1 to {NAME_LENGTH} printable characters")
    return Caller(who["tenant"], who["principal"])


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError
    return entries


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
