"""What is kept of an answer: all but its secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.forms.redacting import NOT_KEPT, draft_without_secrets, secrets_in, without_secrets

SECRET = "correct-horse"


def request(schema: Any, method: str = "elicitation/create") -> str:
    return json.dumps({"method": method, "params": {"message": "?", "requestedSchema": schema}})


def form(**properties: Any) -> str:
    return request({"type": "object", "properties": properties})


def accept(content: str) -> str:
    return f'{{"action": "accept", "content": {content}}}'


def kept(request_json: str, content: Any) -> Any:
    """Return the content as it is kept."""
    found = without_secrets(request_json, accept(json.dumps(content)))
    return content if found is None else json.loads(found)["content"]


TEXT = {"type": "string"}


def test_only_the_secret_is_taken_out_and_numbers_stay_to_the_letter() -> None:
    asked = form(password=TEXT, ratio={"type": "number"}, big={"type": "integer"}, user=TEXT)
    response = accept('{"ratio": 1.50E+1, "password": "x y", "big": 12345678901234567890123, "user": "é"}')
    assert without_secrets(asked, response) == (
        '{"action": "accept", "content": {"ratio": 1.50E+1, "password": "sent, not kept", '
        '"big": 12345678901234567890123, "user": "é"}}'
    )


@pytest.mark.parametrize(
    ("asked", "response"),
    [
        (form(user=TEXT), accept('{"user": "ada"}')),
        (form(password=TEXT), accept("{}")),
        (form(password=TEXT), accept('{"password": null}')),
        (form(password={"type": "boolean"}), accept('{"password": false}')),
        (form(password=TEXT), '{"action": "decline"}'),
        (form(password=TEXT), '{"action": "cancel"}'),
        (
            request({}, "sampling/createMessage"),
            '{"role": "assistant", "content": {"type": "text", "text": "password"}, "model": "m"}',
        ),
        (form(token_limit={"type": "integer"}), accept('{"token_limit": 5}')),
    ],
)
def test_an_answer_without_secrets_is_kept_as_it_is(asked: str, response: str) -> None:
    assert without_secrets(asked, response) is None
    assert secrets_in(asked, response) == ()


@pytest.mark.parametrize("value", ["", "x", 1234, ["a", "b"], {"a": 1}])
def test_a_secret_of_any_kind_is_taken_out(value: Any) -> None:
    assert kept(form(pin={}), {"pin": value, "n": 1}) == {"pin": NOT_KEPT, "n": 1}


@pytest.mark.parametrize(
    ("schema", "content", "left"),
    [
        # by more than its name
        (
            {"properties": {"x": {"type": "string", "format": "password"}, "y": TEXT}},
            {"x": SECRET, "y": "b"},
            {"x": NOT_KEPT, "y": "b"},
        ),
        # inside an object
        (
            {"properties": {"login": {"type": "object", "properties": {"user": TEXT, "password": TEXT}}}},
            {"login": {"user": "ada", "password": SECRET}},
            {"login": {"user": "ada", "password": NOT_KEPT}},
        ),
        # inside an object that only the schema knows to be one's of a secret
        (
            {
                "properties": {"login": {"$ref": "#/$defs/login"}},
                "$defs": {"login": {"type": "object", "properties": {"k": {"writeOnly": True}, "u": {}}}},
            },
            {"login": [{"k": SECRET, "u": 1}]},
            {"login": [{"k": NOT_KEPT, "u": 1}]},
        ),
        # a form without fields
        (
            {"type": "object", "additionalProperties": True},
            {"host": "h", "apiKey": SECRET, "deep": [{"token": SECRET, "n": 2}]},
            {"host": "h", "apiKey": NOT_KEPT, "deep": [{"token": NOT_KEPT, "n": 2}]},
        ),
        # a schema of which no form can be made, and none at all
        ({"type": "string"}, {"password": SECRET, "a": 1}, {"password": NOT_KEPT, "a": 1}),
        (None, {"password": SECRET, "a": 1}, {"password": NOT_KEPT, "a": 1}),
        # a name that the schema does not have
        ({"properties": {"a": {}}}, {"a": 1, "secret": SECRET}, {"a": 1, "secret": NOT_KEPT}),
        # the form's word counts for its own fields
        (
            {
                "properties": {
                    "code": {"type": "string"},
                    "more": {"type": "object", "properties": {"code": {"format": "password"}}},
                }
            },
            {"code": "blue", "more": {"code": SECRET}},
            {"code": "blue", "more": {"code": NOT_KEPT}},
        ),
    ],
)
def test_secrets_are_found_wherever_they_are(schema: Any, content: Any, left: Any) -> None:
    assert kept(request(schema), content) == left
    assert secrets_in(request(schema), accept(json.dumps(content))) == (SECRET,)


def test_what_can_not_be_looked_through_is_not_kept_at_all() -> None:
    deep = "[" * 200 + f'"{SECRET}"' + "]" * 200
    asked = form(password=TEXT)
    for content in (f'{{"a": {deep}}}', f'{{"a": "{SECRET}", "a": 1}}'):
        found = without_secrets(asked, accept(content))
        assert found is not None
        assert SECRET not in found
        assert json.loads(found)["content"] == NOT_KEPT
    found = without_secrets(asked, accept("[" * 100_000))
    assert found is not None
    assert "[" not in found


@given(st.recursive(st.text() | st.integers() | st.none(), lambda inner: st.dictionaries(st.text(), inner)))
def test_whatever_the_content_a_secret_in_it_is_not_kept(other: Any) -> None:
    found = kept(form(password=TEXT), {"other": other, "password": SECRET})
    assert found["password"] == NOT_KEPT
    assert SECRET not in json.dumps(found)


def test_what_the_message_asks_for_is_not_kept() -> None:
    asked = request({"type": "object", "properties": {"value": TEXT}}).replace('"?"', '"Enter your password"')
    assert kept(asked, {"value": SECRET}) == {"value": NOT_KEPT}
    assert draft_without_secrets(asked, json.dumps({"value": SECRET})) is None
    assert secrets_in(asked, accept(json.dumps({"value": SECRET}))) == (SECRET,)


def test_secrets_to_look_for_are_those_long_enough_the_longest_first() -> None:
    asked = form(password=TEXT, pin={"type": "integer"}, otp=TEXT)
    assert secrets_in(asked, accept('{"password": "horse", "pin": 123456, "otp": "abc"}')) == (
        "123456",
        "horse",
    )


@pytest.mark.parametrize(
    ("schema", "draft", "left"),
    [
        ({"properties": {"user": TEXT, "password": TEXT}}, {"user": "a", "password": "b"}, {"user": "a"}),
        ({"properties": {"password": TEXT}}, {"password": "b"}, None),
        ({"properties": {"user": TEXT}}, {"user": "my password: x"}, {"user": "my password: x"}),
        ({"additionalProperties": True}, {"": '{"password": "b"}'}, None),
        ({"additionalProperties": True}, {"": '{"user": "b"}'}, {"": '{"user": "b"}'}),
        ({"additionalProperties": {"properties": {"password": TEXT}}}, {"": '{"a": {"password": "b'}, None),
        ({"additionalProperties": True}, {"": '{"password": "b'}, None),
        ({"additionalProperties": True}, {"": '{"user": "b'}, {"": '{"user": "b'}),
        (
            {"properties": {"login": {"type": "object", "properties": {"password": TEXT}}, "n": TEXT}},
            {"login": '{"password": "b"}', "n": "1"},
            {"n": "1"},
        ),
    ],
)
def test_a_draft_is_kept_without_what_was_typed_for_a_secret(schema: Any, draft: Any, left: Any) -> None:
    found = draft_without_secrets(request(schema), json.dumps(draft))
    assert (None if found is None else json.loads(found)) == left


def test_a_draft_that_can_not_be_read_is_kept_only_where_no_secret_is_asked_for() -> None:
    for draft in ('{"user": "a', "[1]", "[" * 100_000):
        assert draft_without_secrets(form(user=TEXT), draft) == draft
        assert draft_without_secrets(form(user=TEXT, password=TEXT), draft) is None
