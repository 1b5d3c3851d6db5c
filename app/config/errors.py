"""What can be wrong with the servers file."""

from __future__ import annotations


class ConfigError(Exception):
    """The servers file, or what was to be put into it, is not usable; the message says where and what to
    do."""


class UnknownServer(ConfigError):
    """The servers file has no such entry."""
