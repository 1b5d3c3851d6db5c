"""NAME=TEXT on a command line means the same as typing into the form."""

from __future__ import annotations

import pytest

from app.forms import Form, UnknownField, parse_assignments, read_form


@pytest.fixture
def form() -> Form:
    return read_form(
        {
            "type": "object",
            "properties": {
                "a": {"type": "string"},
                "a=b": {"type": "string"},
                "": {"type": "string"},
                "n": {"type": ["integer", "null"]},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
        }
    )


def test_the_name_is_the_longest_that_fits_before_an_equals_sign(form: Form) -> None:
    assert parse_assignments(form, ["a=b=c=d"]) == {"a=b": "c=d"}
    assert parse_assignments(form, ["a=c=d"]) == {"a": "c=d"}
    assert parse_assignments(form, ["a=b"]) == {"a": "b"}
    assert parse_assignments(form, ["=x"]) == {"": "x"}


def test_an_empty_text_is_cleared_and_a_name_given_twice_has_several_values(form: Form) -> None:
    assert parse_assignments(form, ["a=", "tags=x", "tags=y"]) == {"a": "", "tags": ["x", "y"]}
    assert form.fill(parse_assignments(form, ["tags=x"])).content == {"tags": ["x"]}
    assert form.fill(parse_assignments(form, ["tags=x", "tags=x"])).content == {"tags": ["x", "x"]}
    assert set(form.fill(parse_assignments(form, ["a=x", "a=y"])).errors) == {"a"}


def test_null_is_the_value_null(form: Form) -> None:
    entries = parse_assignments(form, [], ["n"])
    assert entries == {"n": None}
    assert form.fill(entries).content_json == '{"n": null}'


@pytest.mark.parametrize(
    ("texts", "nulls", "name"),
    [(["z=1"], [], "z"), (["a"], [], "a"), ([], ["z"], "z"), (["n=1"], ["n"], "n"), (["\x1b=1"], [], "\x1b")],
)
def test_what_names_no_field_is_told_by_its_name(
    form: Form, texts: list[str], nulls: list[str], name: str
) -> None:
    with pytest.raises(UnknownField) as caught:
        parse_assignments(form, texts, nulls)
    assert caught.value.name == name
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) > len(name)
