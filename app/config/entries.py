"""One entry of the servers file: what it may say, and what it comes to once variables are expanded."""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import SplitResult, urlsplit

from app.config.abilities import NONE, Abilities, read_abilities
from app.config.errors import ConfigError
from app.text import inert_line, is_inert

NAME_LIMIT: Final = 64
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_OURS: Final = frozenset(
    {"accept", "content-type", "content-length", "host", "connection", "transfer-encoding"}
)
_HTTP_TYPES: Final = frozenset({"http", "streamable-http", "streamableHttp"})
_SECRET: Final = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|(?:^|_)KEY$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """One entry of the servers file, as it is written there: variables are not expanded.

    It has a `url`, or a `command` that starts the server; neither, where it has a `problem`.
    """

    name: str
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    problem: str | None = None
    """Why this program can't use the entry; ``None``: it can."""
    abilities: Abilities = NONE
    """What the server may ask beside elicitations."""

    @property
    def target(self) -> str | None:
        """The URL or the command line, for a person; ``None``: it has neither."""
        return self.url if self.command is None else shlex.join((self.command, *self.args))


@dataclass(frozen=True, slots=True)
class HttpConnection:
    """What is needed to connect to a URL, variables expanded. Holds secrets: never logged, never stored."""

    name: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    warnings: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()
    """Capabilities that the server is told of beside those that every server is."""


@dataclass(frozen=True, slots=True)
class StdioConnection:
    """What is needed to start a server, variables expanded. Holds secrets: never logged, never stored."""

    name: str
    command: str
    args: tuple[str, ...] = field(repr=False)
    env: Mapping[str, str] = field(repr=False)
    cwd: Path | None
    """``None``: the folder this program runs in."""
    warnings: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()
    """As in `HttpConnection`."""


Connection: TypeAlias = HttpConnection | StdioConnection


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


def check_header(name: str, value: str) -> None:
    """Raise `ConfigError` unless this header can be sent; the value, which may be a secret, is not shown."""
    shown = inert_line(name, 80)
    if not _HEADER_NAME.fullmatch(name):
        raise ConfigError(f"{shown!r} can't be the name of a header.")
    if name.lower() in _OURS or name.lower().startswith("mcp-"):
        raise ConfigError(f"The header {shown} is set by this program; leave it out.")
    if not _HEADER_VALUE.fullmatch(value):
        raise ConfigError(
            f"The value of the header {shown} holds line breaks or characters that can't be sent."
        )


def check_command(command: str, args: Sequence[str], env: Mapping[str, str], cwd: str | None) -> None:
    """Raise `ConfigError` unless these can start a process; it need not be there."""
    if not command.strip():
        raise ConfigError("The command is empty.")
    for place, text in (("command", command), *(("arguments", arg) for arg in args), ("cwd", cwd or "")):
        if "\0" in text:
            raise ConfigError(f"The {place} can't hold a null character.")
    for name, value in env.items():
        if not name or "=" in name or "\0" in name + value:
            shown = inert_line(name, 80)
            raise ConfigError(f"{shown!r} can't be a variable of the environment, or its value can't.")
    if cwd is not None and not Path(cwd).is_absolute():
        raise ConfigError(f"The cwd {inert_line(cwd)!r} must be an absolute path.")


def read_entry(name: str, value: Any) -> ServerEntry:
    """Return the entry that *value* describes; what is wrong with it is its `ServerEntry.problem`."""
    try:
        check_name(name)
    except ConfigError as error:
        return ServerEntry(name, problem=str(error).rstrip("."))
    if not isinstance(value, dict):
        return ServerEntry(name, problem="its entry is not an object")
    found = _read_server(name, value)
    try:
        return replace(found, abilities=read_abilities(value))
    except ConfigError as error:
        return found if found.problem is not None else replace(found, problem=str(error))


def _read_server(name: str, value: Mapping[str, Any]) -> ServerEntry:
    kind = value.get("type")
    if kind is not None and kind != "stdio" and kind not in _HTTP_TYPES:
        shown = inert_line(str(kind), 40)
        return ServerEntry(name, problem=f'its type is {shown!r}; there are only "http" and "stdio"')
    if kind is None and "url" in value and "command" in value:
        return ServerEntry(name, problem='it has both a "url" and a "command"')
    if kind == "stdio" or (kind is None and "command" in value):
        return _read_command(name, value)
    url, headers = value.get("url"), value.get("headers", {})
    if not isinstance(url, str):
        return ServerEntry(name, problem='it has no "url"' if kind else 'it has no "url" and no "command"')
    if not _is_strings(headers):
        return ServerEntry(name, url, problem='its "headers" are not an object of strings')
    return ServerEntry(name, url, headers)


def _read_command(name: str, value: Mapping[str, Any]) -> ServerEntry:
    command, args = value.get("command"), value.get("args", [])
    env, cwd = value.get("env", {}), value.get("cwd")
    if not isinstance(command, str) or not command.strip():
        return ServerEntry(name, problem='its "command" is not a text, or is empty')
    if not isinstance(args, list) or not all(isinstance(arg, str) for arg in args):
        return ServerEntry(name, command=command, problem='its "args" are not a list of strings')
    found = ServerEntry(name, command=command, args=tuple(args))
    if not _is_strings(env):
        return ServerEntry(
            name, command=command, args=found.args, problem='its "env" is no object of strings'
        )
    if cwd is not None and not isinstance(cwd, str):
        return ServerEntry(name, command=command, args=found.args, problem='its "cwd" is not a text')
    return ServerEntry(name, command=command, args=found.args, env=env, cwd=cwd)


def _is_strings(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def expand_url(entry: ServerEntry, environ: Mapping[str, str]) -> HttpConnection:
    """Return how to connect to an entry with a URL; raises `ConfigError` that says what is wrong where."""
    assert entry.url is not None
    name = entry.name
    url = expand(entry.url, environ, f"Server {name}: the URL")
    check_url(url)
    headers = {}
    for header, value in entry.headers.items():
        expanded = expand(value, environ, f"Server {name}: the header {inert_line(header)}")
        check_header(header, expanded)
        headers[header] = expanded
    warnings = url_warnings(url, headers, written=entry.headers)
    return HttpConnection(name, url, headers, warnings, entry.abilities.declared)


def expand_command(entry: ServerEntry, environ: Mapping[str, str]) -> StdioConnection:
    """Return how to start an entry with a command; raises `ConfigError` that says what is wrong where."""
    assert entry.command is not None
    place = f"Server {entry.name}: the"
    command = expand(entry.command, environ, f"{place} command")
    args = tuple(
        expand(arg, environ, f"{place} argument {number}") for number, arg in enumerate(entry.args, 1)
    )
    env = {k: expand(v, environ, f"{place} variable {inert_line(k)}") for k, v in entry.env.items()}
    cwd = None if entry.cwd is None else expand(entry.cwd, environ, f"{place} cwd")
    check_command(command, args, env, cwd)
    folder = None if cwd is None else Path(cwd)
    warnings = command_warnings(entry.env)
    return StdioConnection(entry.name, command, args, env, folder, warnings, entry.abilities.declared)


def expand(template: str, environ: Mapping[str, str], place: str) -> str:
    """Return *template* with its variables expanded; raises `ConfigError` for one that is unset."""
    check_template(template, place)

    def value(match: re.Match[str]) -> str:
        variable, default = match.group(1), match.group(2)
        found = environ.get(variable)
        if default is not None:
            return found or default
        if found is None:
            raise ConfigError(f"{place} needs the variable {variable}, which is not set in the environment.")
        return found

    return _VARIABLE.sub(value, template)


def check_template(template: str, place: str) -> None:
    """Raise `ConfigError` for a ``${…}`` that is no variable."""
    if "${" in _VARIABLE.sub("", template):
        raise ConfigError(
            f"{place} holds a ${{…}} that can't be read; write ${{NAME}} or ${{NAME:-default}}."
        )


def url_warnings(
    url: str, headers: Mapping[str, str], *, written: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Return what a person should know of these headers; *written* are they before they were expanded."""
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


def command_warnings(written: Mapping[str, str]) -> tuple[str, ...]:
    """Return what a person should know of these variables, as they are written."""
    return tuple(
        f"{inert_line(name)} is written in clear in the servers file; ${{VARIABLE}} would keep it out."
        for name, value in written.items()
        if _SECRET.search(name) and value and "${" not in value
    )


def _is_loopback(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
