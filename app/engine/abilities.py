"""What this installation answers, server by server: what is declared to a server, and what is not answered.

Elicitations and tasks are answered for every server. Sampling and roots are deprecated, and stand in for a
server only where a person turned them on for it (docs/decisions/0014).
"""

from __future__ import annotations

from app.config import Connection
from mcp_client import ClientCapabilities


def capabilities(connection: Connection) -> ClientCapabilities:
    """Return what is declared with every request: exactly what is answered (basic/patterns/mrtr)."""
    return ClientCapabilities(
        sampling={} if "sampling" in connection.declared else None,
        roots={} if "roots" in connection.declared else None,
    )
