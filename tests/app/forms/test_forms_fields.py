"""What a person is shown of a field: its words, its choices, its warnings, its default."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import pytest

from app.forms import ABSENT, Field, SchemaRefused, read_form, secrets
from app.forms.schemas import Dialect


def field(schema: Any, name: str = "f", required: bool = True, **root: Any) -> Field:
    form = read_form(
        {"type": "object", "properties": {name: schema}, "required": [name] if required else [], **root}
    )
    (only,) = form.fields
    return only


@pytest.mark.parametrize(
    ("schema", "kind", "hint"),
    [
        ({"type": "string"}, "text", ""),
        ({"type": "string", "minLength": 3, "maxLength": 20}, "text", "3 to 20 characters"),
        ({"type": "string", "maxLength": 1}, "text", "up to 1 character"),
        ({"type": "string", "format": "email"}, "text", "email address"),
        ({"type": "string", "format": "date"}, "text", "date, YYYY-MM-DD"),
        ({"type": "string", "pattern": "^a"}, "text", "matching ^a"),
        ({"type": "integer", "minimum": 1, "maximum": 10}, "integer", "whole number, 1 to 10"),
        ({"type": "number", "exclusiveMinimum": 0}, "number", "number, more than 0"),
        (
            {"type": "number", "multipleOf": 0.5, "maximum": 2},
            "number",
            "number, at most 2, a multiple of 0.5",
        ),
        ({"type": "boolean"}, "boolean", "true or false"),
        ({"enum": ["a"]}, "choice", ""),
        ({"const": 5}, "constant", "always 5"),
        ({"type": "null"}, "constant", "always null"),
        (
            {"type": "array", "items": {"enum": ["a"]}, "minItems": 1, "maxItems": 2},
            "choices",
            "1 or 2 choices",
        ),
        ({"type": "array", "items": {"type": "string"}}, "list", "any number of texts"),
        ({"type": "object"}, "json", "JSON, an object"),
        ({}, "json", "JSON"),
    ],
)
def test_a_field_says_what_it_expects(schema: dict[str, Any], kind: str, hint: str) -> None:
    read = field(schema)
    assert (read.kind, read.hint) == (kind, hint)


def test_the_title_beside_a_reference_wins_over_the_one_behind_it() -> None:
    defs = {"E": {"enum": ["x"], "title": "Class", "description": "Behind"}}
    read = field({"$ref": "#/$defs/E", "title": "Here"}, **{"$defs": defs})
    assert (read.title, read.description) == ("Here", "Behind")
    assert field({"$ref": "#/$defs/E"}, **{"$defs": defs}).title == "Class"
    assert field({"type": "string"}).title == "f"


def test_choices_show_titles_and_each_has_a_text_that_names_it_alone() -> None:
    values = [1, "1", True, "true", "", "x", Decimal("2.5")]
    schema = {"enum": [1, "1", True, "true", "", "x", 2.5]}
    read = field(schema)
    assert [choice.value for choice in read.choices] == values
    form = read_form({"type": "object", "properties": {"f": schema}})
    for choice in read.choices:
        sent = form.fill({"f": choice.entry}).content["f"]
        assert (type(sent), sent) == (type(choice.value), choice.value)
    assert len({choice.label for choice in read.choices}) == len(values)


def test_choices_that_share_a_title_are_told_apart() -> None:
    read = field({"oneOf": [{"const": 1, "title": "One"}, {"const": "1", "title": "One"}]})
    assert [choice.label for choice in read.choices] == ["One (1)", 'One ("1")']
    form = read_form({"type": "object", "properties": {"f": dict(read.node)}})
    assert [form.fill({"f": choice.entry}).content_json for choice in read.choices] == [
        '{"f": 1}',
        '{"f": "1"}',
    ]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "default": "x"},
        {"type": "string", "default": ""},
        {"type": "integer", "default": 12345678901234567890},
        {"type": "number", "default": 0.1},
        {"type": "boolean", "default": False},
        {"type": ["string", "null"], "default": None},
        {"enum": [1, "1"], "default": 1},
        {"enum": [1, "1"], "default": "1"},
        {"enum": ["", "a"], "default": "a"},
        {"oneOf": [{"const": "a", "title": "A"}], "default": "a"},
        {"type": "array", "items": {"enum": ["a", "b"]}, "default": ["b", "a"]},
        {"type": "array", "items": {"type": "string"}, "default": ["b", ""]},
        {"type": "object", "default": {"a": [1.5, None]}},
        {"const": None},
        {"const": [1]},
        {"default": None},
    ],
)
def test_a_default_typed_as_it_is_shown_is_the_default(schema: dict[str, Any]) -> None:
    form = read_form({"type": "object", "properties": {"f": schema}, "required": ["f"]})
    entry = form.fields[0].initial()
    assert entry is not ABSENT
    untouched = form.fill({})
    assert untouched.ok
    assert form.fill({"f": entry}).content_json == untouched.content_json


def test_without_a_default_there_is_nothing_to_show() -> None:
    assert field({"type": "string"}).initial() is ABSENT


def test_a_default_that_breaks_its_own_schema_is_flagged() -> None:
    read = field({"type": "integer", "default": "many"})
    assert read.has_default
    assert read.default == "many"
    assert read.initial() == '"many"'
    assert read.default_problem == "a whole number is expected"


@pytest.mark.rule("elicitation.no-secrets-by-form")
@pytest.mark.parametrize("name", ["password", "apiKey", "access_token", "CVV", "card-number", "db_passwd"])
def test_a_name_that_asks_for_a_secret_is_masked_and_warned_about(name: str) -> None:
    read = field({"type": "string"}, name)
    assert read.secret
    assert any("secret" in warning for warning in read.warnings)


@pytest.mark.rule("elicitation.no-secrets-by-form-again")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "format": "password"},
        {"type": "string", "writeOnly": True},
        {"type": "string", "title": "Your API key"},
        {"type": "string", "description": "Paste your access token"},
        {"anyOf": [{"type": "string", "format": "password"}, {"type": "null"}]},
        {"type": "object", "properties": {"login": {"type": "object", "properties": {"password": {}}}}},
    ],
)
def test_a_secret_is_known_by_more_than_its_name(schema: dict[str, Any]) -> None:
    assert field(schema).secret


def test_a_content_of_one_json_text_is_warned_about_and_not_masked() -> None:
    schema = {"additionalProperties": {"type": "object", "properties": {"password": {"type": "string"}}}}
    form = read_form(schema)
    assert form.whole
    (whole,) = form.fields
    assert not whole.secret
    assert secrets.WARNING in whole.warnings
    (other,) = read_form({"additionalProperties": True}).fields
    assert secrets.WARNING not in other.warnings


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("max_tokens", {"type": "integer"}),
        ("token_limit", {"type": "integer"}),
        ("spinner", {"type": "string"}),
        ("compass", {"type": "string"}),
        ("reset_password", {"type": "boolean"}),
        ("shipping", {"type": "string"}),
    ],
)
def test_a_name_that_only_sounds_like_a_secret_is_left_alone(name: str, schema: dict[str, Any]) -> None:
    assert not field(schema, name).secret


def test_secrets_are_not_shown_in_a_review() -> None:
    form = read_form(
        {"type": "object", "properties": {"password": {"type": "string"}, "n": {"type": "integer"}}}
    )
    filled = form.fill({"password": "hunter2", "n": "3"})
    assert form.describe(filled.content) == [("password", "••••••"), ("n", "3")]


def test_a_review_shows_titles_and_tells_unset_empty_null_and_false_apart() -> None:
    form = read_form(
        {
            "type": "object",
            "properties": {
                "c": {"oneOf": [{"const": "r", "title": "Red"}], "title": "Colour"},
                "e": {"type": "string"},
                "z": {"type": ["string", "null"]},
                "b": {"type": "boolean"},
                "u": {"type": "string"},
                "m": {"type": "array", "items": {"enum": ["x", "y"]}},
            },
            "required": ["z"],
        }
    )
    filled = form.fill({"c": "Red", "e": "", "z": "", "b": "false", "m": []})
    assert form.describe(filled.content) == [
        ("Colour", "Red"),
        ("e", "(an empty text)"),
        ("z", "null"),
        ("b", "no"),
        ("m", "none"),
    ]


@pytest.mark.rule("index.schema-refused", "wire.schema-dialects")
@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ([], "not a JSON object"),
        ({"type": "string"}, "does not describe an object"),
        ({"type": ["array", "null"]}, "does not describe an object"),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "type": "object"}, "draft-04"),
        ({"$schema": "https://example.org/mine", "type": "object"}, "dialect"),
    ],
)
def test_what_is_no_schema_of_an_object_is_refused_with_a_reason(schema: Any, words: str) -> None:
    with pytest.raises(SchemaRefused, match=words):
        read_form(schema)


@pytest.mark.rule(
    "index.schema-explicit", "index.schema-2020-12", "index.schema-default", "wire.schema-dialects"
)
@pytest.mark.parametrize(
    "dialect",
    [
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2019-09/schema",
    ],
)
def test_the_known_dialects_are_read(dialect: str) -> None:
    form = read_form({"$schema": dialect, "type": "object", "properties": {"o": {"type": "object"}}})
    assert form.fill({"o": "{}"}).content == {"o": {}}
    assert form.fill({"o": "[]"}).errors == {"o": "an object is expected"}


@pytest.mark.rule("index.schema-2020-12", "index.schema-default")
def test_a_schema_that_names_no_dialect_is_read_as_2020_12() -> None:
    """``prefixItems`` is of 2020-12; in draft-07 it means nothing."""
    pair = {"type": "array", "prefixItems": [{"type": "integer"}], "items": False}
    schema = {"type": "object", "properties": {"t": pair}}
    form = read_form(schema)
    assert form.fill({"t": "[1]"}).ok
    assert form.fill({"t": '["x"]'}).errors == {"t": "[0]: a whole number is expected"}
    assert not form.fill({"t": "[1, 2]"}).ok
    older = read_form({**schema, "$schema": "http://json-schema.org/draft-07/schema#"})
    assert older.fill({"t": "[]"}).ok
    assert not older.fill({"t": '["x"]'}).ok  # there, "items": false stands for every item


@pytest.mark.rule("index.schema-documented", "index.schema-documented-again")
def test_the_dialects_that_are_read_are_documented() -> None:
    page = Path(__file__).parents[3] / "docs" / "decisions" / "0007-patterns-and-schemas-of-strangers.md"
    sentence = next(part for part in page.read_text("utf-8").split(". ") if "Dialects that are read" in part)
    assert set(re.findall(r"draft-\d\d|20\d\d-\d\d", sentence)) == set(get_args(Dialect))


@pytest.mark.rule("index.schema-validated", "wire.schema-dialects")
def test_tuples_of_draft_07_are_validated_as_such() -> None:
    form = read_form(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"t": {"type": "array", "items": [{"type": "integer"}], "additionalItems": False}},
        }
    )
    assert form.fill({"t": "[1]"}).ok
    assert form.fill({"t": '["x"]'}).errors == {"t": "[0]: a whole number is expected"}
    assert not form.fill({"t": "[1, 2]"}).ok


def test_an_error_inside_json_says_where() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
    form = read_form({"type": "object", "properties": {"o": {"type": "object", "properties": {"i": inner}}}})
    assert form.fill({"o": '{"i": {"a": [1, "x"]}}'}).errors == {"o": "i.a[1]: a whole number is expected"}


def test_a_union_says_what_each_of_its_shapes_has_against_the_value() -> None:
    form = read_form(
        {"type": "object", "properties": {"u": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}}
    )
    assert form.fill({"u": "[]"}).errors == {"u": "a text is expected; or a whole number is expected"}


def test_an_object_of_names_of_ones_own_is_one_json_text() -> None:
    form = read_form({"type": "object", "additionalProperties": {"type": "integer"}})
    assert form.whole
    assert form.fill({}).content_json == "{}"
    assert form.fill({"": '{"a": 1}'}).content_json == '{"a": 1}'
    assert form.fill({"": '{"a": "x"}'}).errors == {"": "a: a whole number is expected"}
    assert not form.fill({"": "[]"}).ok


def test_a_union_of_objects_is_one_json_text() -> None:
    form = read_form(
        {
            "type": "object",
            "oneOf": [
                {"properties": {"k": {"const": "a"}, "x": {"type": "integer"}}, "required": ["k", "x"]},
                {"properties": {"k": {"const": "b"}}, "required": ["k"]},
            ],
        }
    )
    assert form.whole
    assert not form.fill({}).ok
    assert form.fill({"": '{"k": "b"}'}).ok
    assert not form.fill({"": '{"k": "a"}'}).ok


def test_a_schema_behind_a_reference_has_its_fields() -> None:
    form = read_form(
        {
            "$ref": "#/$defs/In",
            "$defs": {"In": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}},
        }
    )
    assert [read.name for read in form.fields] == ["a"]
    assert form.fill({"a": "1"}).content_json == '{"a": 1}'
    assert set(form.fill({}).errors) == {"a"}


def test_whole_content_is_validated_field_by_field() -> None:
    form = read_form(
        {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "s": {"type": "string", "format": "email"}},
            "required": ["n", "s"],
        }
    )
    assert form.fill_json('{"n": 3.0, "s": "a@b.c"}').content_json == '{"n": 3, "s": "a@b.c"}'
    assert set(form.fill_json('{"n": "x", "s": "y"}').errors) == {"n", "s"}
    assert form.fill_json('{"n": 1}').errors == {"s": "required here"}
    assert set(form.fill_json("[]").errors) == {""}
    assert set(form.fill_json('{"n": 1').errors) == {""}


@pytest.mark.rule("wire.content-as-asked")
def test_what_is_sent_is_exact_where_a_float_would_not_be() -> None:
    form = read_form({"type": "object", "properties": {"n": {"type": "number"}, "o": {}}})
    filled = form.fill({"n": "0.1000000000000000000000000001", "o": "[12345678901234567890.5]"})
    assert filled.content_json == '{"n": 0.1000000000000000000000000001, "o": [12345678901234567890.5]}'
    assert filled.content["n"] == Decimal("0.1000000000000000000000000001")


@pytest.mark.rule("index.schema-valid")
def test_malformed_keywords_of_the_form_itself_are_told() -> None:
    form = read_form({"type": "object", "properties": {"s": {"type": "string"}}, "required": "s"})
    assert form.warnings == ("a malformed “required” in its description is ignored",)
    assert form.fill({}).content == {}
    assert set(form.fill({}).warnings) == {""}


@pytest.mark.parametrize("properties", [[], "x", 5, None])
def test_properties_that_are_none_are_left_out(properties: Any) -> None:
    form = read_form({"type": "object", "properties": properties})
    assert form.fields == ()
    assert form.warnings


def test_content_given_as_json_is_refused_name_by_name() -> None:
    schema = {
        "type": "object",
        "required": ["a", "b", "c"],
        "additionalProperties": False,
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "integer", "maximum": 3},
            "c": {"type": "boolean"},
            "d": {"type": "string", "maxLength": 2},
        },
    }
    errors = read_form(schema).fill_json('{"b": 4, "d": "long", "x": 1, "y": 2}').errors
    assert errors == {
        "a": "required here",
        "b": errors["b"],
        "c": "required here",
        "d": errors["d"],
        "x": "there is no such field",
        "y": "there is no such field",
    }


def test_more_missing_fields_than_one_validation_looks_at_are_all_named() -> None:
    names = [f"f{number:02}" for number in range(50)]
    properties = {name: {"type": "integer", "minimum": 1} for name in names}
    form = read_form({"type": "object", "required": names, "properties": properties})
    assert list(form.fill_json("{}").errors) == names
    assert sorted(form.fill_json(json.dumps(dict.fromkeys(names, 0))).errors) == names


def test_names_that_a_pattern_admits_are_no_strangers() -> None:
    schema = {"type": "object", "patternProperties": {"^x-": {}}, "additionalProperties": False}
    assert set(read_form(schema).fill_json('{"x-a": 1, "y": 2}').errors) == {"y"}


def test_a_text_in_a_field_for_whole_numbers_is_told_of_whole_numbers() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "x": {"type": "number"}}}
    errors = read_form(schema).fill({"n": "three", "x": "three"}).errors
    assert errors["n"] == "not a whole number (digits alone)"
    assert "decimals" in errors["x"]
