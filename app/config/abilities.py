"""What a person lets one server ask beyond forms and web pages: text for a model's place, and folders.

It stands in the server's entry of the servers file, under a key of ours that other hosts leave alone:

```json
"taskinbox": {"sampling": true, "samplingCommand": ["draft", "--short"], "roots": ["/home/me/project"]}
```
Nothing is on by itself (docs/decisions/0014).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from app.config.errors import ConfigError
from app.text import inert_line, is_inert

KEY: Final = "taskinbox"
ROOTS_MOST: Final = 100
_SAMPLING: Final = "sampling"
_COMMAND: Final = "samplingCommand"
_ROOTS: Final = "roots"


@dataclass(frozen=True, slots=True)
class Abilities:
    """What this installation answers to one server beside elicitations."""

    sampling: bool = False
    """A person writes what a model would have said (client/sampling)."""
    sampling_command: tuple[str, ...] = ()
    """A command and its arguments that may draft such a reply when asked to; empty: there is none."""
    roots: tuple[str, ...] = ()
    """The folders that the server may be told of, as absolute paths (client/roots); empty: none."""

    @property
    def declared(self) -> tuple[str, ...]:
        """The names of the capabilities that the server is told of for these."""
        return (*((_SAMPLING,) if self.sampling else ()), *((_ROOTS,) if self.roots else ()))


NONE: Final = Abilities()


def read_abilities(entry: Any) -> Abilities:
    """Return what the entry of a server allows.

    Raises `ConfigError` saying what is wrong in it, as a clause: "its "taskinbox" …".
    """
    found = entry.get(KEY) if isinstance(entry, dict) else None
    if found is None:
        return NONE
    if not isinstance(found, dict):
        raise ConfigError(f'its "{KEY}" is not an object')
    sampling, command, roots = found.get(_SAMPLING, False), found.get(_COMMAND, []), found.get(_ROOTS, [])
    if not isinstance(sampling, bool):
        raise ConfigError(f'its "{KEY}" has a "{_SAMPLING}" that is neither true nor false')
    if not _is_texts(command) or (command and not command[0].strip()) or "\0" in "".join(command):
        raise ConfigError(f'its "{KEY}" has a "{_COMMAND}" that is no list of a command and its arguments')
    if not _is_texts(roots):
        raise ConfigError(f'its "{KEY}" has "{_ROOTS}" that are not a list of folders')
    if len(roots) > ROOTS_MOST:
        raise ConfigError(f'its "{KEY}" has more than {ROOTS_MOST} "{_ROOTS}"')
    for root in roots:
        if (problem := root_problem(root)) is not None:
            raise ConfigError(f'its "{KEY}" has a root that {problem}: {inert_line(root, 200)!r}')
    return Abilities(sampling, tuple(command), tuple(dict.fromkeys(roots)))


def root_problem(path: str) -> str | None:
    """Say why *path* can't stand for a folder in the servers file; ``None``: it can. It need not be there."""
    if not os.path.isabs(path):
        return "is not an absolute path"
    if ".." in Path(path).parts:
        return 'goes up with ".."'
    if not path.isprintable() or not is_inert(path):
        return "holds control characters"
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return "is not UTF-8 text"
    return None


def folder(path: str) -> str:
    """Return the true place of the folder *path*, as it is kept; raises `ConfigError` where it is none.

    Links are followed now, so that what a server is told later is what was seen here.
    """
    try:
        place = Path(path).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"The folder {inert_line(path, 200)!r} can't be used: {why}.") from None
    if not place.is_dir():
        raise ConfigError(f"{inert_line(path, 200)!r} is not a folder.")
    if (problem := root_problem(str(place))) is not None:
        raise ConfigError(f"The folder {inert_line(path, 200)!r} {problem}.")
    return str(place)


def written(abilities: Abilities, before: Any) -> dict[str, Any]:
    """Return the object to be written for *abilities*; what *before* held that is not ours stays."""
    kept: Mapping[str, Any] = before if isinstance(before, dict) else {}
    new: dict[str, Any] = {k: v for k, v in kept.items() if k not in (_SAMPLING, _COMMAND, _ROOTS)}
    if abilities.sampling:
        new[_SAMPLING] = True
    if abilities.sampling_command:
        new[_COMMAND] = list(abilities.sampling_command)
    if abilities.roots:
        new[_ROOTS] = list(abilities.roots)
    return new


def _is_texts(value: Any) -> bool:
    return (
        isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(v, str) for v in value)
    )


def present(roots: Sequence[str]) -> tuple[str, ...]:
    """Return those of *roots* that are folders which can be looked into now."""
    return tuple(root for root in roots if os.path.isdir(root) and os.access(root, os.R_OK | os.X_OK))
