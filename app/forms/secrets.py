"""Does a field ask for what must not be asked for in a form?

The specification forbids it (client/elicitation.mdx): servers must not use form mode for passwords, API keys,
access tokens or payment credentials. Some do; such a field is masked, warned about, and left out of drafts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NO_WORD: Final = re.compile(r"[^a-z0-9]+")

# All of them are matched against text without accents and in lower case, with one blank between words
# (`_plain`): "Clé d'API" is "cle d api".
_CODE: Final = (
    r"(?:(?:2 ?|two ?)fa(?:ctor)?|mfa|two step|one ?time|single use|verification|recovery|security|back ?up"
    r"|auth|authentication|authenticator|authorization|login|sign ?in|access|sms|otp|pin) ?code"
)
_CLEAR: Final = (
    # English
    rf"passwords?|pass ?phrases?|pass ?codes?|api ?keys?|cvv2?|cvc2?|otps?|totp|{_CODE}s?"
    r"|(?:private|secret|signing|ssh|encryption|decryption|access|security|master|recovery) ?keys?"
    r"|one ?time ?pins?|pin (?:number|nummer)|(?:seed|recovery|secret|mnemonic) ?phrases?"
    r"|(?:credit|debit|bank|payment) ?cards?|card(?: s)? ?numbers?"
    # German
    r"|\w*(?:pass|kenn)w(?:ort|orter|oerter|orte)s?|(?:api|zugangs|zugriffs) ?schlue?ssel"
    r"|(?:privat|geheim)e[nrs]? schlue?ssel|geheimzahl(?:en)?|geheim(?:code|nummer)s?|zugangs(?:daten|codes?)"
    r"|(?:einmal|sicherheits|bestae?tigungs|wiederherstellungs|verifizierungs) ?codes?"
    r"|(?:kredit|bank|debit)?kartennummern?|kreditkarten?|kartenprue?f(?:nummer|ziffer)"
    # French
    r"|mots? ?de ?passe|phrases? (?:de passe|secretes?)|codes? (?:pin|secrets?)|cles? (?:privees?|secretes?)"
    r"|(?:cles?|jetons?) (?:api|d api|d acces|de l api|d authentification)"
    r"|codes? (?:a usage unique|de (?:verification|securite|recuperation|connexion)|d acces)"
    r"|numeros? de (?:la |votre )?carte|cartes? (?:bancaires?|de credit|de paiement)|cryptogramme"
    # Spanish
    r"|contrasen(?:i)?as?|claves? (?:secretas?|privadas?|api|de (?:la )?api|de acceso|de seguridad)"
    r"|codigos? (?:secretos?|de (?:verificacion|seguridad|acceso|recuperacion|un solo uso))"
    r"|numeros? de (?:la |su |tu )?tarjetas?|tarjetas? de (?:credito|debito)|frases? semilla"
    # Portuguese
    r"|senhas?|palavras? passe|chaves? (?:secretas?|privadas?|api|d[ae] api|de acesso|de seguranca)"
    r"|codigos? (?:pin|secretos?|de (?:verificacao|seguranca|acesso|recuperacao|uso unico))"
    r"|numeros? d[eo] (?:seu )?cart(?:ao|oes)|cart(?:ao|oes) de (?:credito|debito)"
    # Italian
    r"|parol[ae] d ordine|chiav[ei] (?:segret[ae]|privat[ae]|api|dell api|di accesso|d accesso)"
    r"|codic[ei] (?:pin|segret[oi]|monouso|di (?:verifica|sicurezza|accesso|recupero)|d accesso)"
    r"|numer[oi] (?:di|della) (?:tua )?carta|cart[ae] di (?:credito|debito)"
)
"""What means a secret wherever it is said: in a name, a title, a description, a message."""

_NAMES: Final = re.compile(
    rf"\b(?:{_CLEAR}|passwd|passkeys?|pwd|mdp|secrets?|credentials?|pin|pan|pass word"
    r"|card no|cc number|geheimnis|secreto|segredo|segreto|credenciales|credenciais|credenziali)\b"
)
_TEXT_NAMES: Final = re.compile(
    r"\b(?:tokens?|jwt|bearer|jetons?)\b"
    r"|passw(?:or)?d|passphrase|passcode|apikey|(?:access|auth|api|bearer|refresh|id|session)tokens?\b"
    r"|clientsecret|(?:private|secret|access|signing)key|cardnumber|cardno\b|creditcard|debitcard"
    r"|passwort|kennwort|contrasena|motdepasse"
)
"""What means a secret in a text, and something else in a number (how many tokens); names in one word, too."""

_TOLD: Final = re.compile(
    rf"\b(?:{_CLEAR}"
    r"|(?:access|auth|api|bearer|refresh|id|secret|security|session|github|gitlab|slack|bot) ?tokens?"
    r"|(?:zugriffs|zugangs) ?tokens?|tokens? (?:de acceso|de acesso|di accesso|d acces)"
    r"|(?:your|ihre?n?|votre|tu|su|sua|seu|tuo) (?:\w+ )?(?:pins?|tokens?|jetons?)"
    r"(?! (?:name|symbol|count|limit|budget)))\b"
)
_TOLD_OF_NUMBER: Final = re.compile(rf"\b(?:your pin|{_CODE}|cvv2?|cvc2?|otp|card(?: s)? number)\b")
"""What a message tells of a number that is a secret: one, not how many."""

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
    return kind in ("text", "list") and isinstance(description, str) and _told(description, _TOLD)


def message_asks_for_secret(message: str, name: str, kind: str) -> bool:
    """Say whether the message above a form's only field asks for a secret, where its name tells nothing."""
    if name.lower() not in _NAMELESS:
        return False
    if kind in ("integer", "number"):
        return _told(message, _TOLD_OF_NUMBER)
    return kind in ("text", "list") and _told(message, _TOLD)


def _told(text: str, words: re.Pattern[str]) -> bool:
    return bool(words.search(_NO_WORD.sub(" ", _plain(text[:2000]).lower())))


def _named(text: str, kind: str) -> bool:
    words = " ".join(word.lower() for word in _WORD.findall(_plain(text[:200])))
    if _NAMES.search(words):
        return True
    return kind in ("text", "list", "json") and bool(_TEXT_NAMES.search(words))


def _plain(text: str) -> str:
    """Return *text* without the accents and the width of its letters."""
    apart = unicodedata.normalize("NFKD", text)
    return "".join(letter for letter in apart if not unicodedata.combining(letter))
