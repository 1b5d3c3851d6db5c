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


def test_how_many_tokens_is_no_secret() -> None:
    assert not asks_for_secret("tokens", None, {"type": "integer"}, "number")


def secrets_of(message: object, **properties: Any) -> list[str]:
    form = read_form({"type": "object", "properties": properties}, message)
    return [field.name for field in form.fields if field.secret]


@pytest.mark.parametrize(
    "message",
    [
        "Enter your password",
        "Please provide your GitHub token.",
        "What is your PIN?",
        "Paste the API key of the build farm",
        "The one-time code that was sent to you",
        "Credit card number, please",
    ],
)
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
        ("Which API key?", {"value": {"type": "string", "enum": ["a", "b"]}}),
        (None, {"value": TEXT}),
        (["Enter your password"], {"value": TEXT}),
    ],
)
def test_a_message_makes_a_secret_of_nothing_else(message: object, properties: dict[str, Any]) -> None:
    assert secrets_of(message, **properties) == []
