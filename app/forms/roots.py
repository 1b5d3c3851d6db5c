"""Roots: the folders that a person lets a server know of, as it is told of them.

Page: client/roots; the shape is ``ListRootsResult`` of the published schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from app.forms.jsonvalues import encode
from app.forms.model import Filled
from app.forms.reading import read_form

METHOD: Final = "roots/list"

RESULT: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "roots": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "uri": {"type": "string", "pattern": "^file://"},
                    "name": {"type": "string"},
                    "_meta": {"type": "object"},
                },
                "required": ["uri"],
            },
        },
        "_meta": {"type": "object"},
    },
    "required": ["roots"],
}


def roots_of(folders: Sequence[str]) -> list[dict[str, str]]:
    """Return *folders*, absolute paths, as roots: a ``file://`` URI each, and the last part as its name."""
    paths = [Path(folder) for folder in folders]
    return [{"uri": path.as_uri(), "name": path.name or str(path)} for path in paths]


def roots_json(folders: Sequence[str]) -> str:
    """Return the response that tells of *folders*, exactly as it is sent."""
    return encode({"roots": roots_of(folders)})


def fill_json(text: str, folders: Sequence[str]) -> Filled:
    """Return the response that *text*, a ``ListRootsResult``, is; or what is wrong with it.

    It may leave out some of *folders*, and name them in another way; others it can't tell of.
    """
    filled = read_form(RESULT).fill_json(text)
    if not filled.ok:
        return filled
    allowed = {root["uri"] for root in roots_of(folders)}
    others = [root["uri"] for root in filled.content["roots"] if root["uri"] not in allowed]
    errors = {"roots": f"not allowed for this server: {', '.join(others[:3])}"} if others else {}
    return Filled(filled.content, filled.content_json, errors, filled.warnings)
