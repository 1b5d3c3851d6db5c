"""Which fields ask for what must not be asked for in a form (client/elicitation)."""

from __future__ import annotations

import pytest

from app.forms.secrets import asks_for_secret

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
