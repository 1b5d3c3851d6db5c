"""Which fields ask for what must not be asked for in a form (client/elicitation)."""

from __future__ import annotations

from typing import Any

import pytest

from app.forms import read_form
from app.forms.secrets import asks_for_secret

TEXT = {"type": "string"}
SECRET = [
    "password", "userpassword", "dbPassword", "card_no", "cardnumber", "creditcard", "creditCardNumber",
    "access_tokens", "accesstoken", "tokens", "authtoken", "clientsecret", "privatekey", "totp", "mfa_code",
    "pincode", "passkey", "seed_phrase", "cc_number", "PAN", "Ｐassword", "API keys",
    "One-time code", "oneTimeCode", "one_time_password", "2FA code", "2faCode", "two-factor code",
    "security token", "pass phrase", "PIN code",
    "login code", "backup codes", "Authentication code", "session token", "recovery key", "card's number",
    "Passwort", "Passwörter", "Datenbankpasswort", "Kennwort", "Einmalcode", "Geheimzahl", "API-Schlüssel",
    "Zugangsdaten", "Kreditkartennummer", "Sicherheitscode", "Bestätigungscode", "privater Schlüssel",
    "mot de passe", "mot_de_passe", "Mot-de-passe", "Clé d'API", "clé privée", "code à usage unique", "jeton",
    "Numéro de carte", "code de vérification",
    "contraseña", "Contraseñas", "contrasena", "clave secreta", "código de verificación", "número de tarjeta",
    "senha", "senhaDoUsuario", "palavra-passe", "chave de API", "código de segurança", "número do cartão",
    "parola d'ordine", "chiave privata", "codice di verifica", "numero di carta", "credenziali",
]  # fmt: skip
PLAIN = [
    "name",
    "company",
    "spanish",
    "keyboard",
    "discard",
    "tokenizer",
    "compass",
    "monkey",
    "pinned",
    "panel",
    "keyword",
    "passport",
    "passenger",
    "bypass",
    "secretary",
    "postal code",
    "source_code",
    "error code",
    "discount code",
    "country code",
    "one time",
    "time code",
    "security level",
    "2FA",
    "public key",
    "primary key",
    "card type",
    "Kartenart",
    "Kennzeichen",
    "Kenntnis",
    "Wort",
    "Passfoto",
    "Schlüsselwort",
    "mot clé",
    "passe",
    "code postal",
    "carte",
    "palabra clave",
    "clave",
    "código postal",
    "tarjeta",
    "resenha",
    "desenha",
    "palavra-chave",
    "senhor",
    "parola chiave",
    "codice fiscale",
    "carta d'identità",
]


@pytest.mark.parametrize("name", SECRET)
def test_a_name_that_means_a_secret_is_one_as_name_and_as_title(name: str) -> None:
    assert asks_for_secret(name, None, {}, "text")
    assert asks_for_secret("value", name, {}, "text")


@pytest.mark.parametrize("name", PLAIN)
def test_a_name_that_only_looks_like_one_is_none(name: str) -> None:
    assert not asks_for_secret(name, name, {}, "text")


@pytest.mark.parametrize(
    "told", ["Your GitHub token", "Your PIN", "Passwords", "The API keys", "Your card's number and CVC"]
)
def test_a_description_tells_it_too(told: str) -> None:
    assert asks_for_secret("value", None, {"description": told}, "text")


@pytest.mark.parametrize("name", ["tokens", "access_tokens", "max_session_tokens", "jetons"])
def test_how_many_tokens_is_no_secret(name: str) -> None:
    assert not asks_for_secret(name, None, {"type": "integer"}, "number")


def secrets_of(message: object, **properties: Any) -> list[str]:
    form = read_form({"type": "object", "properties": properties}, message)
    return [field.name for field in form.fields if field.secret]


MESSAGES = [
    "Enter your password",
    "Please provide your GitHub token.",
    "What is your PIN?",
    "Paste the API key of the build farm",
    "The one-time code that was sent to you",
    "Credit card number, please",
    "Please enter the 2FA code from your app",
    "Type the one time password",
    "Your security token, please",
    "Bitte das Passwort eingeben",
    "Wie lautet Ihre PIN?",
    "Saisissez votre mot de passe",
    "Introduzca su contraseña (CONTRASEÑA)",
    "Digite a sua senha",
    "Inserisci il codice di verifica",
]


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("name", ["value"])
def test_the_message_tells_it_of_a_list_too(name: str, message: str) -> None:
    assert secrets_of(message, **{name: {"type": "array", "items": TEXT}}) == [name]


@pytest.mark.parametrize(
    "message", ["What is your PIN?", "The 6-digit verification code", "Your CVC, please"]
)
def test_a_message_that_asks_for_a_secret_number_makes_one_of_it(message: str) -> None:
    assert secrets_of(message, value={"type": "integer"}) == ["value"]


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("name", ["value", "Answer", "input"])
def test_the_message_tells_where_the_only_field_has_a_name_that_does_not(name: str, message: str) -> None:
    assert secrets_of(message, **{name: TEXT}) == [name]


@pytest.mark.parametrize(
    ("message", "properties"),
    [
        ("Enter your name", {"value": TEXT}),
        ("Why should the password be reset?", {"reason": TEXT}),
        ("Enter your user name and password", {"value": TEXT, "note": TEXT}),
        ("Shall the password be reset?", {"value": {"type": "boolean"}}),
        ("How many API keys?", {"value": {"type": "integer"}}),
        ("At what time? Code review is at ten.", {"value": TEXT}),
        ("Quel est le mot juste ?", {"value": TEXT}),
        ("Welches Wort passt?", {"value": TEXT}),
        ("What is your token name?", {"value": TEXT}),
        ("Which API key?", {"value": {"type": "string", "enum": ["a", "b"]}}),
        (None, {"value": TEXT}),
        (["Enter your password"], {"value": TEXT}),
    ],
)
def test_a_message_makes_a_secret_of_nothing_else(message: object, properties: dict[str, Any]) -> None:
    assert secrets_of(message, **properties) == []
