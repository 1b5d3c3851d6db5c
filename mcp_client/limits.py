"""How much of a server's time and output is taken before a request is given up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one server's replies; every one of them ends in an `McpError`, never in exhausted memory."""

    reply_bytes: int = 16 * 1024 * 1024
    """Bytes of one reply, notifications on its stream included, counted after decompression."""
    request_seconds: float = 60.0
    """From the first attempt to connect to the last byte of the reply."""
    call_seconds: float = 300.0
    """The same for a request that runs a tool."""
    connect_seconds: float = 10.0
    """For one connection, TLS included."""
    probe_seconds: float = 20.0
    """For a server on stdio to say what it speaks, counted from its start."""
    ack_seconds: float = 10.0
    """From asking for a subscription to its acknowledgement."""
    idle_seconds: float = 300.0
    """How long a stream over HTTP may be silent before it is taken for dead; comments count as life."""
    exit_seconds: float = 2.0
    """How long a server on stdio is given to exit, once by itself and once more when asked to terminate."""
    depth: int = 128
    """Nesting of arrays and objects in a reply."""
    pages: int = 100
    """Pages of one list."""
    tools: int = 10_000
    """Tools of one list."""
    redirects: int = 3
    """Redirects followed, all to the same origin."""
    connections: int = 20
    """Connections open to one server at the same time."""
