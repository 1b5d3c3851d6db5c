"""The servers file: ``mcp.json``, in the ``mcpServers`` form that other hosts use.

```json
{"mcpServers": {"ci": {"url": "https://ci.example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}}}
```

Reading names needs the standard library alone, so that listing the inbox stays quick; `connection` validates
an entry in full, and expands ``${VAR}`` and ``${VAR:-default}``, when a program is about to connect. What
this program does not know is kept when it rewrites the file.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from app.paths import private_folder
from app.text import inert_line, is_inert

NAME_LIMIT: Final = 64
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_OURS: Final = frozenset(
    {"accept", "content-type", "content-length", "host", "connection", "transfer-encoding"}
)
_HTTP_TYPES: Final = frozenset({"http", "streamable-http", "streamableHttp"})
STDIO_UNSUPPORTED: Final = "it is started with a command, and stdio servers are not supported yet"


class ConfigError(Exception):
    """The servers file, or what was to be put into it, is not usable; the message says where and what to
    do."""


class UnknownServer(ConfigError):
    """The servers file has no such entry."""


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """One entry of the servers file, as it is written there: variables are not expanded."""

    name: str
    url: str | None
    headers: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None
    """Why this program can't use the entry; ``None``: it can."""


@dataclass(frozen=True, slots=True)
class Connection:
    """What is needed to connect, variables expanded. Holds secrets: never logged, never stored."""

    name: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    warnings: tuple[str, ...] = ()


class ServersFile:
    """The servers file at *path*; each call reads it anew, since other programs and editors write it, too."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def entries(self) -> dict[str, ServerEntry]:
        """Return all entries in the file's order; a missing file has none. Raises `ConfigError`."""
        return servers(self.path)

    def list(self) -> list[tuple[str, str]]:
        """Return each entry's name, and its URL or (in round brackets) why it has none.

        Raises `ConfigError`.
        """
        return [(e.name, e.url or f"({e.problem})") for e in self.entries().values()]

    def add(self, name: str, url: str, headers: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """Add or replace an entry; returns warnings. Raises `ConfigError`, and then nothing is written."""
        return add_server(self.path, name, url, headers)

    def remove(self, name: str) -> None:
        """Remove an entry. Raises `ConfigError`, `UnknownServer` among them."""
        remove_server(self.path, name)


def servers(path: Path) -> dict[str, ServerEntry]:
    """Return the entries of the servers file at *path*, in its order; a missing file has none.

    Raises `ConfigError` when the file can't be read. An entry that is wrong in itself is returned with its
    `ServerEntry.problem`: one bad entry does not hide the others.
    """
    found = _read(path).get("mcpServers")
    return {name: _entry(name, value) for name, value in (found or {}).items()}


def add_server(path: Path, name: str, url: str, headers: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Add or replace the entry *name*, contacting nobody; returns warnings for a person.

    Keys of an existing entry that this program does not know are kept. Raises `ConfigError` when the name,
    the URL or a header is not acceptable; then nothing is written.
    """
    check_name(name)
    headers = dict(headers or {})
    if "${" not in url:
        check_url(url)
    for header, value in headers.items():
        _check_header(header, value)
        _check_template(value, f"the header {header}")
    _check_template(url, "the URL")
    document = _read(path)
    entries = document.setdefault("mcpServers", {})
    old = entries.get(name)
    entry: dict[str, Any] = dict(old) if isinstance(old, dict) and "command" not in old else {}
    entry["url"] = url
    if headers:
        entry["headers"] = headers
    else:
        entry.pop("headers", None)
    entries[name] = entry
    _write(path, document)
    return _warnings(url, headers)


def remove_server(path: Path, name: str) -> None:
    """Remove the entry *name*.

    Raises `UnknownServer` where there is none, `ConfigError` for an unusable file.
    """
    document = _read(path)
    entries = document.get("mcpServers") or {}
    if name not in entries:
        raise UnknownServer(f"No server named {inert_line(name)} in {path}.")
    del entries[name]
    _write(path, document)


def connection(path: Path, name: str, environ: Mapping[str, str] = os.environ) -> Connection:
    """Validate the entry *name* in full and expand its variables from *environ*.

    Raises `UnknownServer`, or `ConfigError` naming the server, the place and, where one is unset, the
    variable.
    """
    import pydantic

    entries = _read(path).get("mcpServers") or {}
    if name not in entries:
        raise UnknownServer(
            f"No server named {inert_line(name)} in {path}. "
            "`taskinbox servers list` shows those there are, `taskinbox servers add NAME URL` adds one."
        )
    entry = _entry(name, entries[name])
    if entry.problem is not None:
        raise ConfigError(f"Server {inert_line(name)} in {path} can't be used: {entry.problem}.")

    class HttpEntry(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="allow", strict=True)
        url: str
        headers: dict[str, str] = pydantic.Field(default_factory=dict)
        type: str | None = None

    try:
        valid = HttpEntry.model_validate(entries[name])
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"Server {name} in {path}: {inert_line(where)}: {first['msg']}.") from None
    url = _expand(valid.url, environ, f"Server {name}: the URL")
    try:
        check_url(url)
    except ConfigError as error:
        raise ConfigError(f"Server {name} in {path}: {error}") from None
    headers = {}
    for header, value in valid.headers.items():
        expanded = _expand(value, environ, f"Server {name}: the header {inert_line(header)}")
        _check_header(header, expanded)
        headers[header] = expanded
    return Connection(name, url, headers, _warnings(url, headers, written=valid.headers))


def check_name(name: str) -> None:
    """Raise `ConfigError` unless *name* can name a server: 1 to 64 characters, without "/" and white
    space, and not beginning like an option."""
    if not 1 <= len(name) <= NAME_LIMIT:
        raise ConfigError(f"A server's name has 1 to {NAME_LIMIT} characters, this one {len(name)}.")
    if name.startswith("-"):
        raise ConfigError(
            f'A server\'s name does not begin with "-", as an option does: {inert_line(name)!r}.'
        )
    if "/" in name or any(c.isspace() for c in name) or not name.isprintable() or not is_inert(name):
        raise ConfigError(
            f"A server's name has no \"/\", white space or control characters: {inert_line(name)!r} won't do."
        )


def check_url(url: str) -> None:
    """Raise `ConfigError` unless *url* is an http or https address without credentials in it."""
    if not url.isprintable() or " " in url or not is_inert(url):
        raise ConfigError(f"The URL {inert_line(url)!r} holds spaces or control characters.")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise ConfigError(f"The URL can't be read: {error}.") from None
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"The URL must begin with http:// or https:// and name a host: {inert_line(url)!r}."
        )
    if parts.username is not None or parts.password is not None:
        raise ConfigError(
            "The URL holds credentials, which end up in logs; use a header with a variable instead, such as "
            'Authorization: "Bearer ${TOKEN}".'
        )
    if parts.fragment:
        raise ConfigError("The URL has a fragment (#…), which no server ever sees; leave it out.")


def _entry(name: str, value: Any) -> ServerEntry:
    try:
        check_name(name)
    except ConfigError as error:
        return ServerEntry(name, None, problem=str(error).rstrip("."))
    if not isinstance(value, dict):
        return ServerEntry(name, None, problem="its entry is not an object")
    if "command" in value or value.get("type") == "stdio":
        return ServerEntry(name, None, problem=STDIO_UNSUPPORTED)
    kind = value.get("type")
    if kind is not None and kind not in _HTTP_TYPES:
        shown = inert_line(str(kind), 40)
        return ServerEntry(name, None, problem=f'its type is {shown!r}, and only "http" is supported')
    url, headers = value.get("url"), value.get("headers", {})
    if not isinstance(url, str):
        return ServerEntry(name, None, problem='it has no "url"')
    if not isinstance(headers, dict) or not all(isinstance(v, str) for v in headers.values()):
        return ServerEntry(name, url, problem='its "headers" are not an object of strings')
    return ServerEntry(name, url, headers)


def _expand(template: str, environ: Mapping[str, str], place: str) -> str:
    _check_template(template, place)

    def value(match: re.Match[str]) -> str:
        variable, default = match.group(1), match.group(2)
        found = environ.get(variable)
        if default is not None:
            return found or default
        if found is None:
            raise ConfigError(f"{place} needs the variable {variable}, which is not set in the environment.")
        return found

    return _VARIABLE.sub(value, template)


def _check_template(template: str, place: str) -> None:
    if "${" in _VARIABLE.sub("", template):
        raise ConfigError(
            f"{place} holds a ${{…}} that can't be read; write ${{NAME}} or ${{NAME:-default}}."
        )


def _check_header(name: str, value: str) -> None:
    shown = inert_line(name, 80)
    if not _HEADER_NAME.fullmatch(name):
        raise ConfigError(f"{shown!r} can't be the name of a header.")
    if name.lower() in _OURS or name.lower().startswith("mcp-"):
        raise ConfigError(f"The header {shown} is set by this program; leave it out.")
    if not _HEADER_VALUE.fullmatch(value):  # the value may be a secret, so it is not repeated
        raise ConfigError(
            f"The value of the header {shown} holds line breaks or characters that can't be sent."
        )


def _warnings(
    url: str, headers: Mapping[str, str], *, written: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    found = []
    if headers and url.lower().startswith("http://") and not _is_loopback(urlsplit(_VARIABLE.sub("0", url))):
        names = ", ".join(headers)
        found.append(f"{names} would travel unencrypted: the URL is plain http and not of this machine.")
    for header, value in (written if written is not None else headers).items():
        if header.lower() in ("authorization", "cookie", "x-api-key") and "${" not in value:
            found.append(
                f"{header} is written in clear in the servers file; ${{VARIABLE}} would keep it out."
            )
    return tuple(found)


def _is_loopback(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text; save it as UTF-8.") from None
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}.") from None
    if not text.strip():
        return {}
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"{path}, line {error.lineno}, column {error.colno}: {error.msg}. "
            "Correct it there, or move the file away."
        ) from None
    except (RecursionError, ValueError):
        raise ConfigError(f"{path} is nested too deeply, or holds a number that is too long.") from None
    if not isinstance(document, dict) or not isinstance(document.get("mcpServers", {}), dict | None):
        raise ConfigError(
            f'{path} must hold an object such as {{"mcpServers": {{"ci": {{"url": "https://…"}}}}}}.'
        )
    if document.get("mcpServers") is None:
        document.pop("mcpServers", None)
    return document


def _write(path: Path, document: Mapping[str, Any]) -> None:
    """Replace the file in one step, readable by nobody else; a link stays a link."""
    try:
        target = path.resolve()
        if not target.parent.is_dir():
            private_folder(target.parent)
        handle, name = tempfile.mkstemp(prefix=".mcp-", suffix=".json", dir=target.parent)  # mode 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(document, file, indent=2, ensure_ascii=False)
                file.write("\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except UnicodeEncodeError:
        raise ConfigError(f"{path} was left as it is: it would hold characters that are not text.") from None
    except OSError as error:
        raise ConfigError(f"{path} can't be written: {error.strerror}.") from None
