"""A result taken apart: nothing lost, nothing repeated, nothing opened."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from app.tui.widgets.json_view import pretty, response_content
from app.tui.widgets.result_blocks import read_blocks, safe_name


def blocks(*content: Any, **more: Any) -> list[str]:
    return [block.title for block in read_blocks(json.dumps({"content": list(content), **more}))]


@pytest.mark.rule("tools.structured-as-text-too")
def test_text_that_only_repeats_the_structured_content_is_shown_once() -> None:
    value = {"a": 1, "b": [True, None]}
    assert blocks({"type": "text", "text": json.dumps(value)}, structuredContent=value) == [
        "Structured content"
    ]
    assert blocks({"type": "text", "text": "1"}, structuredContent={"a": 1}) == ["Text", "Structured content"]


@pytest.mark.rule("tools.embedded-resources")
def test_binary_content_is_described_by_type_and_size_and_kept_whole() -> None:
    data = bytes(range(256)) * 20
    image = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(data).decode()}
    (block,) = read_blocks(json.dumps({"content": [image]}))
    assert block.title == "Image · image/png"
    assert block.text == "5.1 KB"
    assert block.data == data
    assert block.file_name == "result-1.png"


@pytest.mark.parametrize("result", ["null", "7", '"x"', "[]", "not json", "{}", '{"content": 7}', "[" * 9000])
def test_a_result_that_is_no_result_ends_nothing(result: str) -> None:
    for block in read_blocks(result):
        assert isinstance(block.text, str)


@pytest.mark.rule("tools.resource-links")
def test_a_link_is_text_and_has_nothing_to_save() -> None:
    link = {"type": "resource_link", "uri": "https://example.com/x", "name": "x", "size": 12}
    (block,) = read_blocks(json.dumps({"content": [link]}))
    assert block.data is None
    assert "https://example.com/x" in block.text


@pytest.mark.parametrize(
    ("uri", "mime", "name"),
    [
        ("file:///a/../../etc/passwd", "", "passwd"),
        ("file:///a/..", "text/plain", "stem.txt"),
        ("https://x/y/r%20p.pdf?q=/etc#f", "application/pdf", "r-20p.pdf"),
        ("x://a/.hidden", "", "hidden"),
        ("x://a/\x1b[31m", "image/png", "31m.png"),
        ("", "application/json; charset=utf-8", "stem.json"),
    ],
)
def test_a_suggested_file_name_is_plain_whatever_the_server_says(uri: str, mime: str, name: str) -> None:
    assert safe_name(uri, mime, "stem") == name


def test_numbers_are_shown_with_every_digit_they_came_with() -> None:
    text = '{"a": 1.10, "b": 123456789012345678901234567890, "c": 1e400}'
    shown = pretty(text)
    assert "1.10" in shown
    assert "123456789012345678901234567890" in shown
    assert "Infinity" not in shown


def test_the_content_of_an_answer_comes_back_exactly() -> None:
    assert response_content('{"action": "accept", "content": {"n": 0.10}}') == '{"n": 0.10}'
    assert response_content('{"action": "decline"}') is None
    assert response_content("nonsense") is None
