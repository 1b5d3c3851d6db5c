"""The servers file on disk: read anew at each call, written in one step."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from app.config.abilities import KEY, NONE, Abilities, written
from app.config.entries import (
    Connection,
    ServerEntry,
    check_command,
    check_header,
    check_name,
    check_template,
    check_url,
    command_warnings,
    expand_command,
    expand_url,
    read_entry,
    url_warnings,
)
from app.config.errors import ConfigError, UnknownServer
from app.paths import private_folder
from app.text import inert_line

_URL_KEYS: Final = frozenset({"url", "headers"})
_COMMAND_KEYS: Final = frozenset({"command", "args", "env", "cwd"})


class ServersFile:
    """The servers file at *path*; each call reads it anew, since other programs and editors write it, too."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def entries(self) -> dict[str, ServerEntry]:
        """Return all entries in the file's order; a missing file has none. Raises `ConfigError`."""
        return servers(self.path)

    def list(self) -> list[tuple[str, str]]:
        """Return each entry's name, and its URL or command line or (in round brackets) why it can't be used.

        Raises `ConfigError`.
        """
        return [
            (e.name, e.target if e.problem is None and e.target is not None else f"({e.problem})")
            for e in self.entries().values()
        ]

    def add(self, name: str, url: str, headers: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """Add or replace an entry; returns warnings. Raises `ConfigError`, and then nothing is written."""
        return add_server(self.path, name, url, headers)

    def add_command(
        self,
        name: str,
        command: str,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> tuple[str, ...]:
        """Add or replace an entry that is started; returns warnings. Raises `ConfigError`, as `add` does."""
        return add_command(self.path, name, command, args, env, cwd)

    def usable(self, name: str) -> ServerEntry | None:
        """Return an entry that can be used; ``None`` where there is none, or the file can't be read."""
        try:
            entry = self.entries().get(name)
        except ConfigError:
            return None
        return None if entry is None or entry.problem is not None else entry

    def abilities(self, name: str) -> Abilities:
        """Return what a server may ask beside elicitations; nothing where its entry can't be used."""
        entry = self.usable(name)
        return NONE if entry is None else entry.abilities

    def remove(self, name: str) -> None:
        """Remove an entry. Raises `ConfigError`, `UnknownServer` among them."""
        remove_server(self.path, name)


def servers(path: Path) -> dict[str, ServerEntry]:
    """Return the entries of the servers file at *path*, in its order; a missing file has none.

    Raises `ConfigError` when the file can't be read. An entry that is wrong in itself is returned with its
    `ServerEntry.problem`: one bad entry does not hide the others.
    """
    found = _read(path).get("mcpServers")
    return {name: read_entry(name, value) for name, value in (found or {}).items()}


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
        check_header(header, value)
        check_template(value, f"the header {header}")
    check_template(url, "the URL")
    _put(path, name, _URL_KEYS, {"url": url, "headers": headers})
    return url_warnings(url, headers)


def add_command(
    path: Path,
    name: str,
    command: str,
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
) -> tuple[str, ...]:
    """Add or replace the entry *name*, a server that is started; nothing is started now.

    Otherwise like `add_server`.
    """
    check_name(name)
    env = dict(env or {})
    check_command(command, args, env, None if cwd is not None and "${" in cwd else cwd)
    for text, place in ((command, "the command"), *((arg, "an argument") for arg in args)):
        check_template(text, place)
    for variable, value in env.items():
        check_template(value, f"the variable {variable}")
    check_template(cwd or "", "the cwd")
    _put(path, name, _COMMAND_KEYS, {"command": command, "args": list(args), "env": env, "cwd": cwd})
    return command_warnings(env)


def _put(path: Path, name: str, ours: frozenset[str], new: Mapping[str, Any]) -> None:
    """Write an entry. What it held before and this program does not know is kept, unless it was of the other
    kind, whose settings mean nothing here."""
    document = _read(path)
    entries = document.setdefault("mcpServers", {})
    old = entries.get(name)
    entry: dict[str, Any] = {}
    if isinstance(old, dict) and not old.keys() & ((_URL_KEYS | _COMMAND_KEYS) - ours):
        entry = dict(old)
    if any(entry.get(key) != new.get(key) for key in ("url", "command")):
        entry.pop(KEY, None)  # what one server may ask was not allowed to another
    for key, value in new.items():
        if value:
            entry[key] = value
        else:
            entry.pop(key, None)
    if read_entry(name, entry).problem is not None:
        entry.pop("type", None)
    entries[name] = entry
    _write(path, document)


def set_abilities(path: Path, name: str, change: Callable[[Abilities], Abilities]) -> Abilities:
    """Change what the server *name* may ask beside elicitations; returns what it is then.

    Raises `UnknownServer` where there is none, `ConfigError` for an unusable file or entry; then nothing is
    written.
    """
    document = _read(path)
    entries = document.get("mcpServers") or {}
    if name not in entries:
        raise UnknownServer(f"No server named {inert_line(name)} in {path}.")
    entry = read_entry(name, entries[name])
    if entry.problem is not None:
        raise ConfigError(f"Server {inert_line(name)} in {path} can't be used: {entry.problem}.")
    new = change(entry.abilities)
    if new != entry.abilities:
        ours = written(new, entries[name].get(KEY))
        changed = {**entries[name], KEY: ours}
        if not ours:
            del changed[KEY]
        if (problem := read_entry(name, changed).problem) is not None:
            raise ConfigError(f"Server {inert_line(name)} is left as it is: {problem}.")
        entries[name] = changed
        _write(path, document)
    return new


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
    entries = _read(path).get("mcpServers") or {}
    if name not in entries:
        raise UnknownServer(
            f"No server named {inert_line(name)} in {path}. "
            "`taskinbox servers list` shows those there are, `taskinbox servers add NAME URL` adds one."
        )
    entry = read_entry(name, entries[name])
    if entry.problem is not None:
        raise ConfigError(f"Server {inert_line(name)} in {path} can't be used: {entry.problem}.")
    found: Callable[[ServerEntry, Mapping[str, str]], Connection]
    found = expand_url if entry.command is None else expand_command
    try:
        return found(entry, environ)
    except ConfigError as error:
        said = str(error)
        raise ConfigError(
            said if said.startswith("Server ") else f"Server {name} in {path}: {said}"
        ) from None


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
