"""What is kept of an answer that holds secrets: everything but those.

A field asks for a secret where its form says so (`app.forms.secrets`). Inside of objects, and where a form
has no fields of its own (its content is written as JSON), the names in the schema and in the content decide.
What can't be looked through is not kept at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import simplejson
from simplejson import RawJSON

from app.forms.jsonvalues import MAX_DEPTH, MAX_NODES, measure
from app.forms.model import Field, SchemaRefused
from app.forms.reading import read_form
from app.forms.secrets import asks_for_secret

NOT_KEPT: Final = "sent, not kept"
"""Stands in place of a secret wherever an answer is shown, logged or kept."""

_NAMED: Final = re.compile(r'"([^"]{1,200})"\s*:')
_SHORT: Final = 4
"""Characters below which a secret is not looked for in other texts: it would be found in any."""


def without_secrets(request_json: str, response_json: str, *, instead: str = NOT_KEPT) -> str | None:
    """Return a response as it is kept; ``None``: it holds no secret, and is kept as it is.

    Both are JSON: an input request (``{"method": …, "params": …}``), and the response to it. All but the
    secrets stays, numbers to the letter; *instead* stands in place of each.
    """
    secrets = _secrets(request_json)
    if secrets is None:
        return None
    try:
        response = _loaded(response_json)
    except _Unreadable:
        return json.dumps({"content": instead})
    content = response.get("content") if isinstance(response, dict) else None
    if not isinstance(content, dict | list):
        return None
    if measure(content) is not None:
        return str(simplejson.dumps({**response, "content": instead}, ensure_ascii=False))
    found: list[Any] = []
    kept = secrets.taken_out(content, found, instead)
    return str(simplejson.dumps({**response, "content": kept}, ensure_ascii=False)) if found else None


def secrets_in(request_json: str, response_json: str) -> tuple[str, ...]:
    """Return the texts of a response's secrets, to be looked for elsewhere; very short ones are left out."""
    secrets = _secrets(request_json)
    found: list[Any] = []
    try:
        response = _loaded(response_json)
    except _Unreadable:
        return ()
    content = response.get("content") if isinstance(response, dict) else None
    if secrets is not None and isinstance(content, dict | list) and measure(content) is None:
        secrets.taken_out(content, found)
    texts = {text for value in found for text in _texts(value) if len(text) >= _SHORT}
    return tuple(sorted(texts, key=lambda text: (-len(text), text)))


def draft_without_secrets(request_json: str, draft_json: str) -> str | None:
    """Return a draft (``{field: entry}``) without what was typed for secrets; ``None``: nothing is left."""
    secrets = _secrets(request_json)
    if secrets is None:
        return draft_json
    try:
        draft = json.loads(draft_json)
    except (ValueError, RecursionError):
        draft = None
    if not isinstance(draft, dict):  # nobody can say what is in it
        return None if secrets.are_asked_for else draft_json
    kept = {name: entry for name, entry in draft.items() if not secrets.are_typed(name, entry)}
    if len(kept) == len(draft):
        return draft_json
    return json.dumps(kept, ensure_ascii=False) if kept else None


class _Unreadable(Exception):
    """A text is not JSON that says one thing."""


@dataclass(frozen=True, slots=True)
class _Secrets:
    """What one form asks for, and must not."""

    fields: Mapping[str, Field]
    """The form's fields; none where its content is one JSON text."""
    named: frozenset[str]
    """The names that the schema, wherever in it, describes as those of secrets."""

    @property
    def are_asked_for(self) -> bool:
        """Say whether the form seems to ask for any."""
        return bool(self.named) or any(field.secret for field in self.fields.values())

    def taken_out(self, content: Any, found: list[Any], instead: str = NOT_KEPT) -> Any:
        """Return *content* with *instead* in place of its secrets, which are added to *found*."""
        if not isinstance(content, dict):
            return self._inside(content, found, instead)
        return {n: self._member(v, found, instead, self._is_asked_for(n, v)) for n, v in content.items()}

    def are_typed(self, name: str, entry: Any) -> bool:
        """Say whether an entry of a draft is a secret, or JSON with one in it."""
        field = self.fields.get(name)
        if field is not None and (field.secret or field.kind != "json"):
            return field.secret
        if field is None and name:
            return self._sounds_secret(name, entry)
        try:
            value = _loaded(entry) if isinstance(entry, str) else entry
        except _Unreadable:
            # Half a text may hold half a secret.
            named = _NAMED.findall(entry)
            return bool(self.named) or any(self._sounds_secret(one, "") for one in named)
        found: list[Any] = []
        self._inside(value if measure(value) is None else None, found, "")
        return bool(found)

    def _is_asked_for(self, name: str, value: Any) -> bool:
        field = self.fields.get(name)
        if field is None:
            return self._sounds_secret(name, value)
        if not field.secret or field.kind != "json" or not isinstance(value, dict | list):
            return field.secret
        return asks_for_secret(name, field.title, field.schema, "json")  # else it is for what it holds

    def _sounds_secret(self, name: str, value: Any) -> bool:
        return name in self.named or asks_for_secret(name, None, {}, _kind(value))

    def _member(self, value: Any, found: list[Any], instead: str, is_secret: bool) -> Any:
        if is_secret and value is not None and not isinstance(value, bool):
            found.append(value)
            return instead
        return self._inside(value, found, instead)

    def _inside(self, value: Any, found: list[Any], instead: str) -> Any:
        if isinstance(value, dict):
            return {n: self._member(v, found, instead, self._sounds_secret(n, v)) for n, v in value.items()}
        if isinstance(value, list):
            return [self._inside(item, found, instead) for item in value]
        return value


@lru_cache(maxsize=8)
def _secrets(request_json: str) -> _Secrets | None:
    """Return what an input request asks for; ``None``: it is no form."""
    try:
        request = simplejson.loads(request_json, use_decimal=True)
    except (ValueError, ArithmeticError, RecursionError):
        return _Secrets({}, frozenset())
    if not isinstance(request, dict) or request.get("method") != "elicitation/create":
        return None
    params = request.get("params")
    params = params if isinstance(params, dict) else {}
    schema = params.get("requestedSchema")
    if not isinstance(schema, dict):
        return _Secrets({}, frozenset())
    return _Secrets(_fields(schema, params.get("message")), frozenset(_named_secrets(schema)))


def _fields(schema: Mapping[str, Any], message: object) -> dict[str, Field]:
    try:
        form = read_form(schema, message)
    except SchemaRefused:
        return {}
    return {} if form.whole else {field.name: field for field in form.fields}


def _named_secrets(schema: Mapping[str, Any]) -> Iterator[str]:
    level: list[Any] = [schema]
    seen = 0
    for _ in range(MAX_DEPTH * 2):
        below: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                below += node.values()
                properties = node.get("properties")
                if isinstance(properties, dict):
                    yield from (name for name, part in properties.items() if _is_described(name, part))
            elif isinstance(node, list):
                below += node
        seen += len(below)
        if not below or seen > MAX_NODES:
            return
        level = below


def _is_described(name: str, part: Any) -> bool:
    if not isinstance(part, dict):
        return asks_for_secret(name, None, {}, "text")
    if part.get("type") == "boolean" or "enum" in part or "const" in part:
        return False
    kind = "number" if part.get("type") in ("integer", "number") else "text"
    return asks_for_secret(name, part.get("title"), part, kind)


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, list):
        return "list"
    return "json" if isinstance(value, dict) else "number"


def _loaded(text: str) -> Any:
    """Read JSON, numbers as they are written; raises `_Unreadable`, also for a name that comes twice."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise _Unreadable
        return found

    try:
        return simplejson.loads(text, parse_int=RawJSON, parse_float=RawJSON, object_pairs_hook=members)
    except (ValueError, RecursionError):
        raise _Unreadable from None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, RawJSON):
        yield value.encoded_json
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
