"""Routing headers: basic/transports/streamable-http, Request Metadata and Value Encoding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_client import InvalidRequest
from mcp_client.headers import checked, decode_value, encode_value, routing_name


@pytest.mark.rule(
    "http.values-base64",
    "http.names-are-usually-plain",
    "http.markers-exact",
    "http.lookalikes-encoded",
    "wire.header-encoding",
)
@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("us-west1", "us-west1"),
        ("inner space and\ttab", "inner space and\ttab"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?base64?half", "=?base64?half"),
        ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
        ("", "=?base64??="),
    ],
)
def test_a_value_is_encoded_as_the_page_shows(value: str, sent: str) -> None:
    assert encode_value(value) == sent


@pytest.mark.rule("http.name-encoded", "http.values-base64", "wire.header-encoding")
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back_from_its_header(value: str) -> None:
    sent = encode_value(value)
    assert decode_value(sent) == value
    assert sent == sent.strip()
    assert all(0x20 <= ord(character) <= 0x7E or character == "\t" for character in sent)


@pytest.mark.rule("http.lookalikes-encoded")
@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1))
def test_visible_ascii_is_left_alone_unless_it_looks_encoded(value: str) -> None:
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        assert encode_value(value) == value


def test_half_a_surrogate_pair_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(InvalidRequest):
        encode_value("\ud800")


@pytest.mark.parametrize("value", ["=?base64?%%%?=", "=?base64?/w==?="])
def test_what_only_looks_encoded_is_an_error(value: str) -> None:
    with pytest.raises(ValueError, match="encoded"):
        decode_value(value)


@pytest.mark.rule("http.method-and-name-headers", "tasks.mcp-name-is-task-id", "wire.meta-and-headers")
@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "t", "taskId": "x"}, "t"),
        ("prompts/get", {"name": "p"}, "p"),
        ("resources/read", {"uri": "file:///a", "name": "x"}, "file:///a"),
        ("tasks/get", {"taskId": "id", "name": "x"}, "id"),
        ("tasks/update", {"taskId": "id"}, "id"),
        ("tasks/cancel", {"taskId": "id"}, "id"),
        ("vendor/thing", {"uri": "u"}, "u"),
        ("tools/list", {}, None),
        ("tools/call", {"name": 5}, None),
    ],
)
def test_the_routing_name_comes_from_the_field_the_method_names(
    method: str, params: dict[str, object], name: str | None
) -> None:
    assert routing_name(method, params) == name


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Test": "a\r\nX-Evil: 1"},
        {"X-Test": "a\nb"},
        {"X-Test": " padded"},
        {"X-Test": "snow☃"},
        {"X Test": "a"},
        {"X-Test\r\nX-Evil": "a"},
        {"": "a"},
        {"Mcp-Name": "other"},
        {"mcp-protocol-version": "1"},
        {"Content-Length": "0"},
        {"Transfer-Encoding": "chunked"},
        {"Mcp-Param-Region": "x"},
        {"Cookie": "a=b"},
    ],
)
def test_a_header_of_the_user_that_cannot_or_must_not_be_sent_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        list(checked(headers))
    assert "X-Evil: 1" not in str(refused.value), "values may be secrets"


def test_ordinary_headers_of_the_user_pass() -> None:
    headers = {"Authorization": "Bearer abc.def==", "X-Empty": ""}
    assert dict(checked(headers)) == headers
