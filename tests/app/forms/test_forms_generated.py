"""For generated schemas and inputs: what is accepted validates, and what is refused is named.

The judge is jsonschema as it is published, on the JSON that would be sent, and shares nothing with the forms.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.forms import ABSENT, read_form
from app.forms.filling import entry_for
from app.forms.jsonvalues import decode

WORDS = st.sampled_from(
    ["", "a", "b", "ab", "x y", "0", "1", "true", "null", "é😀", "1.5", "a@b.c", "2024-01-01"]
)
SCALARS = st.one_of(WORDS, st.integers(-3, 12), st.booleans(), st.none(), st.sampled_from([0.5, 1.5, 2.0]))
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
SMALL = st.integers(0, 3)
PATTERNS = st.sampled_from(["^a", "[0-9]+", "b", "^.{1,2}$"])


def some(**keywords: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=keywords)


STRING = some(minLength=SMALL, maxLength=SMALL, pattern=PATTERNS, default=SCALARS, title=WORDS).map(
    lambda keywords: {"type": "string", **keywords}
)
NUMBER = st.builds(
    lambda kind, keywords: {"type": kind, **keywords},
    st.sampled_from(["integer", "number"]),
    some(
        minimum=st.integers(-3, 3),
        maximum=st.integers(0, 9),
        exclusiveMinimum=st.integers(-3, 1),
        exclusiveMaximum=st.integers(5, 9),
        multipleOf=st.integers(1, 3),
        default=SCALARS,
    ),
)
TITLED = st.lists(st.builds(lambda v, t: {"const": v, "title": t}, SCALARS, WORDS), min_size=1, max_size=4)
CHOICE = st.one_of(
    st.builds(lambda values: {"enum": values}, st.lists(SCALARS, min_size=1, max_size=4)),
    st.builds(lambda values: {"type": "string", "enum": values}, st.lists(SCALARS, min_size=1, max_size=4)),
    st.builds(lambda key, branches: {key: branches}, st.sampled_from(["oneOf", "anyOf"]), TITLED),
    st.builds(lambda value: {"const": value}, SCALARS),
)
PLAIN = st.one_of(STRING, NUMBER, CHOICE, st.just({"type": "boolean"}), st.just({"type": "null"}))


def wrapped(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(lambda s: {"anyOf": [s, {"type": "null"}]}, inner),
        st.builds(lambda s: {"oneOf": [s, {"type": "null"}]}, inner),
        st.builds(lambda s, t: {"allOf": [s], "title": t}, inner, WORDS),
        st.builds(lambda s, t: {"allOf": [s, t]}, inner, inner),
        st.builds(lambda s, t: {"anyOf": [s, t]}, inner, inner),
        st.builds(lambda s, t: {"oneOf": [s, t], "type": ["string", "integer", "null"]}, inner, inner),
        st.builds(lambda s, t: {**s, "not": t}, inner, inner),
        st.builds(
            lambda s, k: {"type": "array", "items": s, **k},
            inner,
            some(minItems=SMALL, maxItems=SMALL, uniqueItems=st.booleans(), default=JSON, contains=inner),
        ),
        st.builds(
            lambda p, r, k: {"type": "object", "properties": p, "required": r, **k},
            st.dictionaries(WORDS, inner, max_size=2),
            st.lists(WORDS, max_size=1),
            some(additionalProperties=st.booleans(), unevaluatedProperties=st.booleans()),
        ),
        st.just({"$ref": "#/$defs/D"}),
        st.just({"$ref": "#/$defs/D", "default": 1}),
        st.booleans(),
    )


PROPERTY = st.one_of(
    PLAIN, wrapped(PLAIN), wrapped(st.one_of(PLAIN, wrapped(PLAIN).filter(lambda s: s not in (True, False))))
)
SCHEMA = st.builds(
    lambda properties, required, defs, root: {
        "type": "object",
        "properties": properties,
        "required": required,
        "$defs": {"D": defs},
        **root,
    },
    st.dictionaries(WORDS, PROPERTY, max_size=3),
    st.lists(WORDS, max_size=2, unique=True),
    PLAIN,
    some(
        additionalProperties=st.booleans(),
        minProperties=SMALL,
        maxProperties=SMALL,
        dependentRequired=st.dictionaries(WORDS, st.lists(WORDS, max_size=1), max_size=1),
        propertyNames=st.just({"maxLength": 2}),
    ),
)
ENTRY = st.one_of(
    WORDS, JSON.map(json.dumps), st.lists(WORDS, max_size=3), st.none(), st.integers(-5, 15).map(str)
)


@pytest.mark.rule("elicitation.responses-validated")
@settings(max_examples=400, deadline=None)
@given(SCHEMA, st.dictionaries(WORDS, ENTRY, max_size=4))
def test_what_is_accepted_validates_and_what_is_refused_is_named(
    schema: dict[str, Any], entries: dict[str, Any]
) -> None:
    form = read_form(schema)
    names = {field.name for field in form.fields}
    filled = form.fill(entries)
    assert set(filled.errors) <= names | set(entries) | {""}
    assert all(reason.strip() for reason in filled.errors.values())
    if filled.ok:
        Draft202012Validator(schema).validate(json.loads(filled.content_json))
        assert decode(filled.content_json) == filled.content


@settings(max_examples=300, deadline=None)
@given(PROPERTY, PLAIN, JSON)
def test_a_value_the_schema_admits_can_be_typed(schema: Any, defs: dict[str, Any], value: Any) -> None:
    """The other direction: what is valid is not refused, as whole content or as a field's text."""
    whole = {"type": "object", "properties": {"f": schema}, "required": ["f"], "$defs": {"D": defs}}
    admitted = Draft202012Validator(whole).is_valid({"f": value})
    form = read_form(whole)
    assert form.fill_json(json.dumps({"f": value})).ok == admitted
    (field,) = form.fields
    entry = entry_for(field, decode(json.dumps(value)))
    # An empty text or list is how a field is cleared, which may mean another value than the empty one.
    if admitted and entry not in ("", [], [""]):
        filled = form.fill({"f": entry})
        assert filled.errors == {}
        assert decode(filled.content_json) == {"f": decode(json.dumps(value))}


@pytest.mark.rule("elicitation.defaults-filled-in")
@settings(max_examples=200, deadline=None)
@given(PROPERTY, PLAIN)
def test_a_default_is_sent_untouched_exactly_when_it_is_valid(schema: Any, defs: dict[str, Any]) -> None:
    whole = {"type": "object", "properties": {"f": schema}, "required": ["f"], "$defs": {"D": defs}}
    form = read_form(whole)
    (field,) = form.fields
    filled = form.fill({})
    if field.initial() is ABSENT or field.default_problem is not None:
        assert set(filled.errors) == {"f"}
    else:
        assert filled.ok
        Draft202012Validator(whole).validate(json.loads(filled.content_json))
