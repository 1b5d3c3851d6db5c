"""Hostile schemas and inputs cost bounded time and memory, and nothing else but `SchemaRefused` is raised."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from app.forms import SchemaRefused, read_form

LIMIT = 15.0
"""Seconds on a busy machine; without the bounds each of these takes minutes or all memory."""


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    begin = time.monotonic()
    yield
    assert time.monotonic() - begin < LIMIT


def one(schema: Any, **root: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"f": schema}, **root}


@pytest.mark.rule("wire.ref-not-fetched")
@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|a)*$", "(.*)*x", "(a?){500}a{500}", "((a?){30}){30}$"])
def test_a_catastrophic_pattern_is_searched_in_bounded_time(pattern: str) -> None:
    text = "a" * 100_000 + "!"
    read_form(one({"type": "string", "pattern": pattern})).fill({"f": text})
    nested = {
        "type": "object",
        "patternProperties": {pattern: False},
        "additionalProperties": {"pattern": pattern},
    }
    read_form(one(nested)).fill({"f": json.dumps({text: text})})


def test_many_patterns_on_a_long_text_are_not_all_searched() -> None:
    schema = {"not": {"allOf": [{"pattern": f"((a?){{30}}){{{n % 30 + 1}}}$|{n}"} for n in range(3000)]}}
    read_form(one(schema)).fill({"f": json.dumps("a" * 200_000)})
    simple = {"allOf": [{"pattern": f"a+{n}?$"} for n in range(3000)]}
    filled = read_form(one(simple)).fill({"f": json.dumps("a" * 200_000)})
    assert filled.errors == {"f": "too complex to be checked here"}


def test_a_pattern_that_is_too_much_for_a_long_text_is_left_to_the_server() -> None:
    form = read_form(one({"type": "string", "pattern": "^((b?){30}){30}$"}))
    assert form.fill({"f": "a"}).errors
    filled = form.fill({"f": "a" * 100_000})
    assert filled.ok
    assert "not checked" in filled.warnings["f"]


def test_what_can_not_be_computed_is_never_an_error() -> None:
    unknown = {"pattern": "(?=x)"}
    for schema in (
        {"type": "string", **unknown},
        {"type": "string", "not": unknown},
        {"oneOf": [unknown, {"type": "string"}]},
        {"if": unknown, "then": {"const": 1}},
        {"type": "object", "patternProperties": {"(?=x)": False}, "additionalProperties": False},
    ):
        form = read_form(one(schema))
        text = (
            '{"y": 1}' if schema.get("type") == "object" else "y" if form.fields[0].kind == "text" else '"y"'
        )
        filled = form.fill({"f": text})
        assert filled.errors == {}
        assert "not checked" in filled.warnings["f"]


@pytest.mark.rule("index.schema-bounded")
def test_a_schema_that_is_nested_too_deep_is_refused() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(100_000):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(SchemaRefused, match="nested"):
        read_form(schema)


@pytest.mark.rule("index.schema-bounded")
def test_a_schema_of_too_many_parts_is_refused() -> None:
    many = one({"anyOf": [{"type": "string", "minLength": n} for n in range(25_000)]})
    with pytest.raises(SchemaRefused, match="subschemas"):
        read_form(many)
    with pytest.raises(SchemaRefused, match="values"):
        read_form(one({"enum": list(range(300_000))}))


def test_json_that_is_nested_too_deep_is_refused() -> None:
    form = read_form(one({}))
    assert "levels deep" in form.fill({"f": "[" * 100_000}).errors["f"]
    assert "levels deep" in form.fill({"f": "[" * 200 + "]" * 200}).errors["f"]
    assert "levels deep" in form.fill({"f": '{"a":' * 50_000}).errors["f"]


@pytest.mark.rule("index.schema-bounded")
@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_references_that_double_at_each_level_end(keyword: str) -> None:
    levels = 40
    defs: dict[str, Any] = {
        f"L{n}": {keyword: [{"$ref": f"#/$defs/L{n + 1}"}, {"$ref": f"#/$defs/L{n + 1}"}]}
        for n in range(levels)
    }
    defs[f"L{levels}"] = {"type": "object"}
    form = read_form(one({"$ref": "#/$defs/L0"}, **{"$defs": defs}))
    assert form.fill({"f": "[]"}).errors


def test_references_in_circles_end() -> None:
    for schema in (
        {"$ref": "#/properties/f"},
        {"allOf": [{"$ref": "#/properties/f"}]},
        {"anyOf": [{"$ref": "#/properties/f"}, {"type": "null"}]},
        {"not": {"$ref": "#/properties/f"}},
        {"$ref": "#"},
    ):
        form = read_form(one(schema))
        form.fill({"f": "1"})
        form.fill({"f": '{"f": {"f": 1}}'})


def test_an_enumeration_of_five_thousand_is_a_choice() -> None:
    titled = {"oneOf": [{"const": f"v{n}", "title": f"T{n}"} for n in range(5000)]}
    form = read_form(one(titled))
    assert len(form.fields[0].choices) == 5000
    assert form.fill({"f": "T4999"}).content == {"f": "v4999"}
    assert len(form.fill({"f": "T"}).errors["f"]) < 500


def test_ten_thousand_properties_are_one_json_text() -> None:
    form = read_form({"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(10_000)}})
    assert form.whole
    assert "10000 fields" in form.fields[0].warnings[0]
    assert form.fill({"": '{"p9": "x"}'}).content == {"p9": "x"}
    assert form.fill({"": '{"p9": 1}'}).errors == {"": "p9: a text is expected"}


@pytest.mark.parametrize(
    "number", ["9" * 4301, "1e999999999999999999", "1e-999999999", "0." + "0" * 5000 + "1"]
)
def test_a_number_of_absurd_size_is_refused_at_once(number: str) -> None:
    for schema in ({"type": "integer"}, {"type": "number", "multipleOf": 0.001}, {"multipleOf": 3}):
        assert read_form(one(schema)).fill({"f": number}).errors


def test_an_integer_of_four_thousand_digits_is_exact() -> None:
    digits = "7" * 4000
    form = read_form(one({"type": "integer", "minimum": 0, "multipleOf": 7}))
    assert form.fill({"f": digits}).content_json == f'{{"f": {digits}}}'


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 10**5000, -(10**400)], ids=range(4))
def test_bounds_and_defaults_of_absurd_size_do_no_harm(value: Any) -> None:
    for kind in ("integer", "number"):
        for keyword in ("minimum", "maximum", "multipleOf", "exclusiveMinimum", "default", "const"):
            form = read_form(one({"type": kind, keyword: value}))
            json.loads(form.fill({"f": "1"}).content_json)
            form.fill({})
    form = read_form(one({"enum": [value, "x"]}))
    assert form.fill({"f": "x"}).content == {"f": "x"}


def test_messages_hold_no_control_characters_and_are_short() -> None:
    evil = "\x1b[31m" + "x" * 10_000 + "\u202e\n"
    schema = {
        "type": "object",
        "properties": {
            "c": {"enum": [evil, "b"]},
            "s": {"type": "string", "pattern": f"^{'y' * 50}\x1b$"},
            "r": {"$ref": evil},
            "o": {"type": "object", "required": [evil], "properties": {evil: {"enum": [evil]}}},
        },
        "required": [evil],
        "dependentRequired": {"c": [evil]},
    }
    form = read_form(schema)
    filled = form.fill({"c": "?", "s": "x", "r": "1", "o": "{}"})
    texts = [*filled.errors.values(), *filled.warnings.values(), *(field.hint for field in form.fields)]
    texts.append(form.fill({"c": "b", "o": json.dumps({evil: 1}), evil: "1"}).errors["o"])
    assert len(filled.errors) == 4
    for text in texts:
        assert len(text) < 1000
        assert all(character.isprintable() for character in text), text


KEYWORDS = [
    "type",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "items",
    "prefixItems",
    "contains",
    "minItems",
    "maxItems",
    "uniqueItems",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "title",
    "description",
    "default",
    "enumNames",
    "$ref",
    "$defs",
    "definitions",
    "$anchor",
    "$dynamicRef",
    "$recursiveRef",
    "unevaluatedProperties",
    "unevaluatedItems",
    "writeOnly",
    "$id",
    "id",
]


@pytest.mark.rule("index.schema-valid")
@pytest.mark.parametrize("keyword", KEYWORDS)
def test_nothing_in_a_keyword_of_the_wrong_type_raises(keyword: str) -> None:
    wrong: list[Any] = [None, True, 0, -1, 1.5, "x", [], [1], ["x"], {}, {"x": 1}, [None], {"a": []}]
    for value in wrong:
        for base in ({}, {"type": "string"}, {"type": "array"}, {"type": "object"}):
            form = read_form(one({**base, keyword: value}, required=["f"]))
            for entry in ("", "x", "1", '{"x": 1}', ["x", "y"], None):
                form.fill({"f": entry})
            form.fill({})
        try:
            form = read_form({"type": "object", "properties": {"a": {"type": "string"}}, keyword: value})
        except SchemaRefused:
            continue
        form.fill({"a": "x"})
        form.fill_json('{"a": "x", "b": 1}')


def test_importing_the_forms_loads_no_validator_and_filling_plain_fields_neither() -> None:
    script = """
import sys
from app.forms import read_form
form = read_form({"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "integer"}},
                  "required": ["a"], "additionalProperties": False})
assert form.fill({"a": "x", "n": "3"}).ok
assert not {"jsonschema", "referencing", "re2", "textual", "pydantic"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
