"""What a tool's result is made of, taken apart for the screen; pure."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.text import byte_size
from app.tui.widgets.json_view import dump, load

_UNSAFE_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")

_ENDINGS: Final[dict[str, str]] = {
    "application/json": ".json",
    "application/pdf": ".pdf",
    "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg",
    "audio/wav": ".wav",
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/svg+xml": ".svg",
    "image/webp": ".webp",
    "text/csv": ".csv",
    "text/html": ".html",
    "text/markdown": ".md",
    "text/plain": ".txt",
}


@dataclass(frozen=True, slots=True)
class Block:
    """One piece of a result."""

    title: str
    """Our words, with the server's types and names in it."""
    text: str
    """What is shown; the server's."""
    data: bytes | None
    """What "Save…" writes; ``None``: there is nothing to save."""
    file_name: str
    """A suggestion, safe on every platform."""


def read_blocks(result_json: str | None) -> tuple[Block, ...]:
    """Take a tool's result apart: content blocks, then structured content (server/tools, "Tool Result")."""
    result = load(result_json)
    if not isinstance(result, Mapping):
        return (_text_block("Result", result_json or "", "result.txt"),) if result_json else ()
    blocks: list[Block] = []
    content = result.get("content")
    structured = result.get("structuredContent")
    for index, item in enumerate(content if isinstance(content, list) else []):
        if structured is not None and _repeats(item, structured):
            continue
        blocks.append(_block(item, f"result-{index + 1}"))
    if structured is not None:
        blocks.append(_text_block("Structured content", dump(structured), "structured.json"))
    if not blocks:
        known = {"content", "structuredContent", "isError", "resultType", "_meta"}
        rest = {key: value for key, value in result.items() if key not in known}
        if rest:
            blocks.append(_text_block("Result", dump(rest), "result.json"))
    return tuple(blocks)


def _repeats(item: Any, structured: Any) -> bool:
    """Servers repeat the structured content as text for older clients; once is enough."""
    if not isinstance(item, Mapping) or item.get("type") != "text" or not isinstance(item.get("text"), str):
        return False
    return bool(load(item["text"]) == structured)


def _block(item: Any, stem: str) -> Block:
    if not isinstance(item, Mapping):
        return _text_block("Content that is not valid", dump(item), f"{stem}.json")
    kind = item.get("type")
    if kind == "text" and isinstance(item.get("text"), str):
        return _text_block("Text", item["text"], f"{stem}.txt")
    if kind in ("image", "audio"):
        return _binary("Image" if kind == "image" else "Audio", item, item.get("data"), stem, "")
    if kind == "resource_link":
        return _link(item, stem)
    if kind == "resource" and isinstance(item.get("resource"), Mapping):
        return _resource(item["resource"], stem)
    return _text_block(f"Content of an unknown kind: {kind}", dump(item), f"{stem}.json")


def _text_block(title: str, text: str, name: str) -> Block:
    return Block(title, text, text.encode("utf-8", "backslashreplace"), name)


def _link(item: Mapping[str, Any], stem: str) -> Block:
    lines = [str(item.get("uri", "‹no address›"))]
    for key in ("title", "name", "description", "mimeType"):
        if isinstance(item.get(key), str):
            lines.append(f"{key}: {item[key]}")
    size = item.get("size")
    if size is not None and not isinstance(size, bool):
        lines.append(f"size: {size} bytes")
    return Block("Link to a resource (not opened from here)", "\n".join(lines), None, stem)


def _resource(resource: Mapping[str, Any], stem: str) -> Block:
    uri = str(resource.get("uri", ""))
    mime = _mime(resource)
    if isinstance(resource.get("text"), str):
        name = safe_name(uri, mime, stem)
        text = resource["text"]
        return Block(
            f"Resource · {mime or 'text'} · {uri}", text, text.encode("utf-8", "backslashreplace"), name
        )
    return _binary("Resource", resource, resource.get("blob"), stem, uri)


def _binary(title: str, item: Mapping[str, Any], encoded: Any, stem: str, uri: str) -> Block:
    mime = _mime(item)
    heading = f"{title} · {mime or 'type not given'}"
    try:
        data = base64.b64decode(encoded, validate=True) if isinstance(encoded, str) else None
    except (binascii.Error, ValueError):
        data = None
    if data is None:
        return Block(heading, f"{uri}\nIts data is not valid base64.".strip(), None, stem)
    text = f"{uri}\n{byte_size(len(data))}".strip()
    return Block(heading, text, data, safe_name(uri, mime, stem))


def _mime(item: Mapping[str, Any]) -> str:
    mime = item.get("mimeType")
    return mime if isinstance(mime, str) else ""


def safe_name(uri: str, mime: str, stem: str) -> str:
    """Return a file name from the end of *uri*, else *stem*, with an ending that fits *mime*."""
    last = uri.split("?")[0].split("#")[0].rstrip("/").rsplit("/", 1)[-1]
    name = _UNSAFE_NAME.sub("-", last).strip(".-")[:80] or stem
    ending = _ENDINGS.get(mime.split(";")[0].strip().lower(), "")
    return name if "." in name or not ending else name + ending
