"""Who asks: a bearer token stands for a principal of a tenant, and tasks belong to the tenant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent one request."""

    tenant: str
    """Owns the tasks: whoever belongs to it sees, answers and cancels them all."""
    principal: str
    """Who of the tenant it is; recorded with the calls and answers that it makes."""


LOCAL: Final = Caller("local", "local")
"""Everybody, where the service runs without tokens."""
