"""Does a field ask for what must not be asked for in a form?

The specification forbids it (client/elicitation.mdx): servers must not use form mode for passwords, API keys,
access tokens or payment credentials. Some do; such a field is masked, warned about, and left out of drafts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_WORDS: Final = frozenset(
    (
        "password",
        "passwords",
        "passwd",
        "passphrase",
        "passcode",
        "passcodes",
        "passkey",
        "pincode",
        "pwd",
        "secret",
        "secrets",
        "credential",
        "credentials",
        "cvv",
        "cvc",
        "pin",
        "otp",
        "totp",
        "pan",
        "apikey",
        "apikeys",
    )
)
_TEXT_WORDS: Final = frozenset(("token", "tokens", "jwt", "bearer"))
"""Words that mean a secret in a text, and something else in a number (how many tokens)."""
_PAIRS: Final = frozenset(
    (
        "api key",
        "api keys",
        "access key",
        "private key",
        "secret key",
        "signing key",
        "ssh key",
        "encryption key",
        "card number",
        "credit card",
        "debit card",
        "security code",
        "pass phrase",
        "pass word",
        "recovery code",
        "verification code",
        "mfa code",
        "card no",
        "cc number",
        "seed phrase",
        "recovery phrase",
    )
)
_JOINED: Final = re.compile(
    r"passw(?:or)?d|passphrase|passcode|apikey|(?:access|auth|api|bearer|refresh|id)tokens?$|clientsecret|"
    r"(?:private|secret|access|signing)key|cardnumber|cardno$|creditcard|debitcard"
)
"""Names that are written in one word."""
_TOLD: Final = re.compile(
    r"\b(?:passwords?|passphrase|passcode|api[ -]?keys?|(?:access|auth|api|bearer|secret|github) tokens?|"
    r"secret key|private key|seed phrase|card(?:'s)? number|credit card|cvv|cvc|your (?:pin|token)|otp|"
    r"(?:one[ -]time|verification|recovery|security|2fa|mfa) code)\b",
    re.IGNORECASE,
)
_NAMELESS: Final = frozenset(
    ("value", "answer", "input", "response", "text", "reply", "data", "content", "result", "field", "")
)
"""Names that say nothing of what is asked for: libraries wrap a single value in such a field."""


WARNING: Final = "asks for a secret; servers must not ask for passwords, tokens or cards in a form"


def asks_for_secret(name: str, title: Any, schema: Mapping[str, Any], kind: str) -> bool:
    """Say whether a field seems to ask for a password, a token, a card number or the like."""
    if kind in ("boolean", "choice", "choices", "constant"):
        return False
    items = schema.get("items")
    formats = (schema.get("format"), items.get("format") if isinstance(items, dict) else None)
    if "password" in formats or schema.get("writeOnly") is True:
        return True
    if _named(name, kind) or (isinstance(title, str) and _named(title, kind)):
        return True
    description = schema.get("description")
    return (
        kind in ("text", "list") and isinstance(description, str) and bool(_TOLD.search(description[:2000]))
    )


def message_asks_for_secret(message: str, name: str, kind: str) -> bool:
    """Say whether the message above a form's only field asks for a secret, where its name tells nothing."""
    return kind == "text" and name.lower() in _NAMELESS and bool(_TOLD.search(message[:2000]))


def _named(text: str, kind: str) -> bool:
    plain = unicodedata.normalize("NFKC", text[:200])
    words = [word.lower() for word in _WORD.findall(plain)]
    if any(word in _WORDS for word in words):
        return True
    if kind in ("text", "list", "json") and any(_JOINED.search(word) for word in words):
        return True
    if kind in ("text", "list", "json") and any(word in _TEXT_WORDS for word in words):
        return True
    return any(f"{one} {two}" in _PAIRS for one, two in pairwise(words))
