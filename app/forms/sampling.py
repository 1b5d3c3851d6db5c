"""Sampling: what a server wants a model to be asked, and a reply that a person writes in the model's place.

Page: client/sampling; the shapes are ``CreateMessageRequestParams`` and ``CreateMessageResult`` of the
published schema. Tools in sampling are not offered, so a reply holds none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

from app.forms.form import Form
from app.forms.jsonvalues import encode, is_double
from app.forms.model import Entry, Field, Filled
from app.forms.reading import read_form
from app.text import inert_line

METHOD: Final = "sampling/createMessage"
MODEL: Final = "human"
"""The model that a reply names where nobody says otherwise: no model wrote it."""
STOP_REASON: Final = "endTurn"

CHARS_PER_TOKEN: Final = 4
"""Characters of English text in a token, on average. Text beyond ASCII takes more tokens: two characters."""
CHARS_PER_TOKEN_MOST: Final = 8
"""No language's text holds more characters a token than this over a whole reply: what is longer is over."""

_META: Final = {"type": "object"}
_WORDS: Final = {
    "type": "object",
    "properties": {"type": {"const": "text"}, "text": {"type": "string"}, "_meta": _META},
    "required": ["type", "text"],
}
_MEDIA: Final = {
    "type": "object",
    "properties": {
        "type": {"enum": ["image", "audio"]},
        "data": {"type": "string", "pattern": "^[A-Za-z0-9+/]*={0,2}$"},
        "mimeType": {"type": "string", "minLength": 1},
        "_meta": _META,
    },
    "required": ["type", "data", "mimeType"],
}
RESULT: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "role": {"const": "assistant"},
        "content": {"anyOf": [_WORDS, _MEDIA, {"type": "array", "items": {"anyOf": [_WORDS, _MEDIA]}}]},
        "model": {"type": "string", "minLength": 1},
        "stopReason": {"type": "string", "not": {"const": "toolUse"}},
        "_meta": _META,
    },
    "required": ["role", "content", "model"],
}
"""``CreateMessageResult`` without tools, which need a capability of their own, and by the assistant."""

_FIELDS: Final = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "title": "Reply", "format": "multiline", "minLength": 1},
        "model": {"type": "string", "title": "Model", "default": MODEL, "minLength": 1},
        "stopReason": {"type": "string", "title": "Stopped because", "default": STOP_REASON},
    },
    "required": ["text", "model"],
}


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation; the strings are the server's, not yet made inert."""

    role: str
    parts: tuple[str, ...]
    """Texts as they came; anything else is described in words, never shown raw."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """What is asked; the strings are the server's, but `faults`, which are ours."""

    messages: tuple[Message, ...]
    system_prompt: str | None
    settings: tuple[tuple[str, str], ...]
    """Preferences and limits, as (our name, what the server says)."""
    max_tokens: int | None
    """The most tokens that the reply may have; ``None``: the server named no limit that can be read."""
    stop_sequences: tuple[str, ...]
    faults: tuple[str, ...]


def read_sampling(params: Mapping[str, Any]) -> Sampling:
    """Return what a request's *params* ask for; whatever they hold, nothing is raised."""
    faults: list[str] = []
    listed = params.get("messages")
    messages = tuple(_message(one) for one in listed) if isinstance(listed, list) else ()
    max_tokens = _whole(params.get("maxTokens"))
    if max_tokens is None:
        faults.append("The server names no limit of tokens, which it must.")
    system = params.get("systemPrompt")
    stops = params.get("stopSequences")
    return Sampling(
        messages,
        system if isinstance(system, str) else None,
        tuple(_settings(params)),
        max_tokens,
        tuple(s for s in stops if isinstance(s, str)) if isinstance(stops, list) else (),
        tuple(faults),
    )


def estimate(text: str) -> int:
    """Return about how many tokens *text* has. Each model counts in its own way; none can be asked here."""
    plain = sum(1 for char in text if char < "\x80")
    return math.ceil(plain / CHARS_PER_TOKEN + (len(text) - plain) / 2)


class SamplingForm:
    """The reply as a form: its text, the model's name, why it stopped; `fill` makes the whole response."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        self.sampling = read_sampling(params)
        form = read_form(_FIELDS)
        most = self.sampling.max_tokens
        hints = {"text": "" if most is None else f"at most {most:,} tokens", "model": "who wrote it"}
        fields = tuple(replace(field, hint=hints.get(field.name, field.hint)) for field in form.fields)
        self._form: Form = replace(form, fields=fields)

    @property
    def form(self) -> Form:
        """The fields as a form of its own, whose content is not yet the response."""
        return self._form

    @property
    def fields(self) -> tuple[Field, ...]:
        """Its fields, in order."""
        return self._form.fields

    def fill(self, entries: Mapping[str, Entry]) -> Filled:
        """Return the response that *entries* make, or an error for each field that can't be sent so."""
        filled = self._form.fill(entries)
        errors, warnings = dict(filled.errors), dict(filled.warnings)
        if not filled.ok:
            return Filled({}, "{}", errors, warnings)
        text, stop = filled.content["text"], filled.content.get("stopReason")
        if stop == "toolUse":
            errors["stopReason"] = "tools are not offered here"
        self._judge(text, errors, warnings, "text")
        result: dict[str, Any] = {
            "role": "assistant",
            "content": {"type": "text", "text": text},
            "model": filled.content["model"],
        }
        if stop:
            result["stopReason"] = stop
        return Filled(result, encode(result), errors, warnings)

    def fill_json(self, text: str) -> Filled:
        """Return the response that *text*, a ``CreateMessageResult``, is; or what is wrong with it."""
        filled = read_form(RESULT).fill_json(text)
        if not filled.ok:
            return filled
        errors, warnings = dict(filled.errors), dict(filled.warnings)
        unknown = [inert_line(n, 60) for n in filled.content if n not in RESULT["properties"]]
        if unknown:
            warnings[""] = f"the published result has no {', '.join(unknown[:5])}"
        content = filled.content["content"]
        blocks = content if isinstance(content, list) else [content]
        self._judge("".join(b["text"] for b in blocks if b["type"] == "text"), errors, warnings, "content")
        return Filled(filled.content, filled.content_json, errors, warnings)

    def _judge(self, text: str, errors: dict[str, str], warnings: dict[str, str], name: str) -> None:
        """Hold *text* to the request's limits. The client keeps to ``maxTokens`` ("Sampling Parameters")."""
        most = self.sampling.max_tokens
        if most is not None and len(text) > most * CHARS_PER_TOKEN_MOST:
            errors[name] = f"{len(text):,} characters are more than {most:,} tokens can hold"
        elif most is not None and (about := estimate(text)) > most:
            warnings[name] = f"about {about:,} tokens, and at most {most:,} are allowed"
        for stop in self.sampling.stop_sequences:
            if stop and stop in text:
                warnings.setdefault(name, f"it holds {inert_line(stop, 40)!r}, at which a model would stop")


def _message(value: Any) -> Message:
    if not isinstance(value, dict):
        return Message("‹no role›", (_raw("a message that can't be read", value),))
    role, content = value.get("role"), value.get("content")
    blocks = content if isinstance(content, list) else [content]
    return Message(role if isinstance(role, str) else "‹no role›", tuple(_block(block) for block in blocks))


def _block(block: Any) -> str:
    kind = block.get("type") if isinstance(block, dict) else None
    text = block.get("text") if isinstance(block, dict) else None
    if kind == "text" and isinstance(text, str):
        return text
    if kind in ("image", "audio") and isinstance(block.get("data"), str):
        mime = block.get("mimeType")
        named = inert_line(mime, 80) if isinstance(mime, str) else "no type named"
        return f"‹{kind}, {named}, {_size(block['data'])}, not shown›"
    return _raw("a part that is no text", block)


def _size(data: str) -> str:
    size = len(data) * 3 // 4
    return f"about {size:,} bytes" if size < 10_000 else f"about {size // 1024:,} KB"


def _raw(what: str, value: Any) -> str:
    return f"‹{what}: {_shown(value)}›"


def _settings(params: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    limit = params.get("maxTokens")
    if limit is not None:
        most = _whole(limit)
        yield "At most", _shown(limit) if most is None else f"{most:,} tokens"
    if "temperature" in params:
        yield "Temperature", _shown(params["temperature"])
    if "stopSequences" in params:
        yield "Stops at", _shown(params["stopSequences"])
    wishes = params.get("modelPreferences")
    if isinstance(wishes, dict):
        hints = wishes.get("hints")
        names = [h.get("name") for h in hints if isinstance(h, dict)] if isinstance(hints, list) else []
        if shown := [name for name in names if isinstance(name, str)]:
            yield "Model like", ", ".join(shown)
        for key in ("intelligencePriority", "speedPriority", "costPriority"):
            if key in wishes:
                yield f"{key.removesuffix('Priority').capitalize()} matters", f"{_shown(wishes[key])} of 1"
    elif wishes is not None:
        yield "Model like", _shown(wishes)
    if (context := params.get("includeContext")) not in (None, "none"):
        yield (
            "Context wished",
            f"{context if isinstance(context, str) else _shown(context)} (nothing is added)",
        )
    if params.get("metadata") is not None:
        yield "For the provider", _shown(params["metadata"])


def _whole(value: Any) -> int | None:
    """Return *value* where it is a whole number, however it is written; JSON knows one kind of number."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return int(value) if is_double(value) and value == int(value) else None


def _shown(value: Any) -> str:
    try:
        return inert_line(encode(value), 2_000)
    except (RecursionError, ValueError, ArithmeticError):
        return "‹too deep or too long to be shown›"


def blocks_of(sampling: Sampling) -> Sequence[tuple[str, str]]:
    """Return (who, what) for everything that is said, the system prompt first."""
    told = [("system prompt", sampling.system_prompt)] if sampling.system_prompt is not None else []
    return [*told, *((m.role, "\n".join(m.parts)) for m in sampling.messages)]
