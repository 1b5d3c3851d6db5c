"""Sampling and roots: what is read of a request, and what may be sent for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.forms import roots
from app.forms.sampling import (
    CHARS_PER_TOKEN_MOST,
    MODEL,
    SamplingForm,
    blocks_of,
    estimate,
    read_sampling,
)

PUBLISHED = Path(__file__).parents[3].parent / "shared" / "spec" / "mcp-2026-07-28.schema.json"


def asks(*messages: Any, **params: Any) -> dict[str, Any]:
    return {"messages": list(messages), "maxTokens": 100, **params}


def says(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": {"type": "text", "text": text}}


def published(name: str) -> Draft202012Validator:
    if not PUBLISHED.is_file():
        pytest.skip("the published schema is not beside this repository")
    schema = json.loads(PUBLISHED.read_text())
    return Draft202012Validator({**schema, "$ref": f"#/$defs/{name}"})


def test_the_whole_conversation_is_read_and_nothing_that_is_no_text_is_shown_raw() -> None:
    data = "QUJD" * 10_000
    found = read_sampling(
        asks(
            says("one"),
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "two"}, {"type": "text", "text": "3"}],
            },
            {"role": "user", "content": {"type": "image", "data": data, "mimeType": "image/png"}},
            {"role": "user", "content": {"type": "audio", "data": "QUJD"}},
            {"role": "user", "content": {"type": "tool_use", "id": "c", "name": "rm", "input": {}}},
            {"role": 7, "content": None},
            "nonsense",
            systemPrompt="Be brief.",
        )
    )
    said = blocks_of(found)
    assert said[:3] == [("system prompt", "Be brief."), ("user", "one"), ("assistant", "two\n3")]
    assert said[3] == ("user", "‹image, image/png, about 29 KB, not shown›")
    assert said[4] == ("user", "‹audio, no type named, about 3 bytes, not shown›")
    assert '"tool_use"' in said[5][1]
    assert said[6][0] == said[7][0] == "‹no role›"
    assert data not in str(said)


def test_preferences_and_limits_are_all_told() -> None:
    found = read_sampling(
        asks(
            maxTokens=12,
            temperature=0.1,
            stopSequences=["END"],
            includeContext="thisServer",
            metadata={"a": 1},
            modelPreferences={
                "hints": [{"name": "sonnet"}, {"name": "claude"}, 7, {}],
                "costPriority": 0.3,
                "speedPriority": 0,
                "intelligencePriority": 1,
            },
        )
    )
    told = dict(found.settings)
    assert told["At most"] == "12 tokens"
    assert told["Temperature"] == "0.1"
    assert told["Stops at"] == '["END"]'
    assert told["Model like"] == "sonnet, claude"
    assert told["Cost matters"] == "0.3 of 1"
    assert told["Speed matters"] == "0 of 1"
    assert told["Intelligence matters"] == "1 of 1"
    assert told["Context wished"].startswith("thisServer")
    assert told["For the provider"] == '{"a": 1}'
    assert found.faults == ()
    assert read_sampling({"messages": []}).faults


@pytest.mark.rule("sampling.stop-reason")
def test_a_reply_is_exactly_the_published_result() -> None:
    form = SamplingForm(asks(says("?")))
    filled = form.fill({"text": "Paris"})
    assert filled.ok
    assert json.loads(filled.content_json) == {
        "role": "assistant",
        "content": {"type": "text", "text": "Paris"},
        "model": MODEL,
        "stopReason": "endTurn",
    }
    mine = form.fill({"text": "Paris", "model": "m-1", "stopReason": "out of ink"})
    assert json.loads(mine.content_json)["stopReason"] == "out of ink"
    assert "stopReason" not in json.loads(form.fill({"text": "x", "stopReason": ""}).content_json)
    validator = published("CreateMessageResult")
    for one in (filled, mine):
        assert not list(validator.iter_errors(json.loads(one.content_json)))


@pytest.mark.parametrize(
    ("entries", "field"),
    [
        ({}, "text"),
        ({"text": ""}, "text"),
        ({"text": "x", "model": ""}, "model"),
        ({"text": "x", "stopReason": "toolUse"}, "stopReason"),
        ({"text": "\ud800"}, "text"),
        ({"text": "x", "other": "y"}, "other"),
    ],
)
def test_what_can_not_be_a_reply_names_its_field(entries: Any, field: str) -> None:
    assert list(SamplingForm(asks()).fill(entries).errors) == [field]


@pytest.mark.rule("sampling.max-tokens")
def test_a_reply_that_may_be_over_the_limit_is_warned_of_and_one_that_must_be_is_refused() -> None:
    form = SamplingForm(asks(maxTokens=10))
    assert "text" not in form.fill({"text": "x" * 40}).warnings
    assert "about 11 tokens" in form.fill({"text": "x" * 41}).warnings["text"]
    longest = "x" * (10 * CHARS_PER_TOKEN_MOST)
    assert form.fill({"text": longest}).ok
    assert "81 characters" in form.fill({"text": longest + "x"}).errors["text"]
    assert not form.fill_json(
        json.dumps({"role": "assistant", "model": "m", "content": [{"type": "text", "text": longest}] * 2})
    ).ok
    assert SamplingForm({"messages": []}).fill({"text": "x" * 100_000}).ok  # the server named none
    assert estimate("") == 0
    assert estimate("日本日本") > estimate("xxxx")


def test_a_stop_sequence_within_the_reply_is_warned_of() -> None:
    assert (
        "would stop" in SamplingForm(asks(stopSequences=["END", ""])).fill({"text": "a END"}).warnings["text"]
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = [
    "messages",
    "maxTokens",
    "systemPrompt",
    "modelPreferences",
    "stopSequences",
    "metadata",
    "temperature",
]


@given(st.dictionaries(st.sampled_from(NAMES), JSON | st.lists(st.dictionaries(st.text(), JSON))), st.text())
def test_whatever_a_server_sends_is_read_and_a_reply_that_is_accepted_is_valid(
    params: Any, text: str
) -> None:
    filled = SamplingForm(params).fill({"text": text})
    if not filled.ok:
        assert set(filled.errors) == {"text"}
        return
    result = json.loads(filled.content_json)
    assert result["content"] == {"type": "text", "text": text}
    assert not list(published("CreateMessageResult").iter_errors(result))
    assert SamplingForm(params).fill_json(filled.content_json).content == filled.content


@given(JSON | st.fixed_dictionaries({"role": JSON, "content": JSON, "model": JSON}))
def test_json_that_is_accepted_as_a_reply_is_a_published_result(value: Any) -> None:
    filled = SamplingForm(asks()).fill_json(json.dumps(value))
    if filled.ok:
        assert not list(published("CreateMessageResult").iter_errors(json.loads(filled.content_json)))
    else:
        assert filled.errors


@pytest.mark.rule("roots.file-uri")
@given(st.lists(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1)))
def test_a_folder_becomes_a_file_address_that_names_it_and_nothing_else(parts: list[str]) -> None:
    folder = "/" + "/".join(part for part in parts if part not in (".", ".."))
    (root,) = roots.roots_of([folder])
    address = urlsplit(root["uri"])
    assert (address.scheme, address.netloc, address.query, address.fragment) == ("file", "", "", "")
    assert unquote(address.path, errors="strict").rstrip("/") == str(Path(folder)).rstrip("/")
    assert root["uri"].isascii()
    assert not list(published("ListRootsResult").iter_errors(json.loads(roots.roots_json([folder]))))
    assert roots.fill_json(roots.roots_json([folder]), [folder]).ok


@pytest.mark.rule("roots.exposed-with-care")
@pytest.mark.parametrize(
    "uri",
    [
        "file:///home",
        "file:///home/me/..",
        "file:///home/me/../you",
        "file:///home/me/",
        "file://host/home/me",
        "FILE:///home/me",
        "https://x",
        "file:///home/me%2f..",
    ],
)
def test_no_other_folder_than_an_allowed_one_can_be_told(uri: str) -> None:
    assert not roots.fill_json(json.dumps({"roots": [{"uri": uri}]}), ["/home/me"]).ok


def test_some_of_the_allowed_folders_or_none_may_be_told_and_named_in_another_way() -> None:
    allowed = ["/home/me", "/srv"]
    for given_ in ([], [{"uri": "file:///srv"}], [{"uri": "file:///srv", "name": "Data"}]):
        assert roots.fill_json(json.dumps({"roots": given_}), allowed).ok
