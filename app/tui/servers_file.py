"""What the screen needs of the servers file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from app.config import Abilities


class ServersFile(Protocol):
    """The servers file, as `app.config` implements it; each method raises `app.config.ConfigError`."""

    def list(self) -> Sequence[tuple[str, str]]:
        """Return each entry's name, and its URL or why it has none."""

    def add(self, name: str, url: str, headers: Mapping[str, str] | None = None) -> Sequence[str]:
        """Add or replace an entry; returns warnings for a person."""

    def abilities(self, name: str) -> Abilities:
        """Return what a server may ask beside elicitations; raises nothing."""

    def remove(self, name: str) -> None:
        """Remove an entry."""
