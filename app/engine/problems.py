"""Words for what went wrong between us and a server, and the failure a command reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from app.engine.commands import TOO_OLD, EngineError, Failure
from app.text import inert_line
from mcp_client import (
    PROTOCOL_VERSION,
    AuthRequired,
    ClientCapabilities,
    InvalidRequest,
    LegacyServer,
    McpError,
    ProtocolError,
    ServerError,
    TransportError,
)
from storage.records import TaskKey

UNREACHABLE: Final = "Unreachable: "
"""How the words for an outage begin."""


def failure_of(error: McpError) -> Failure:
    """Return the kind of failure that *error* is."""
    match error:
        case InvalidRequest():
            return "invalid"
        case TransportError():
            return "unreachable"
        case AuthRequired():
            return "sign-in"
        case ServerError() | LegacyServer():
            return "refused"
        case _:
            return "faulty"


def describe(error: McpError) -> str:
    """Return what happened in one line, the server's words made inert; the same error gives the same
    words."""
    said = inert_line(error.message, 300).strip()
    match error:
        case InvalidRequest():
            return f"This can't be sent: {said}"
        case TransportError():
            return f"{UNREACHABLE}{said}"
        case AuthRequired():
            return f"Sign-in needed: {said}"
        case LegacyServer():
            return f"{TOO_OLD}{said} It needs an update to a release that speaks {PROTOCOL_VERSION}."
        case ServerError():
            return f"Refused: {said} ({error.code}){_meaning(error)}"
        case ProtocolError(field=str(field)):
            return f"Invalid reply: {said} (in {inert_line(field, 80)})"
        case _:
            return f"Invalid reply: {said}"


def _meaning(error: ServerError) -> str:
    """Return what a refusal means beyond the server's own words, as a sentence that follows them."""
    wanted = error.required_capabilities
    if wanted is not None and _is_always_declared(wanted):
        named = _names(wanted)
        return (
            f". The server misses {named}, which every request of ours declares: the fault is the server's."
        )
    if wanted is not None:
        return f". The server wants a client that offers {_names(wanted)}; this installation does not."
    if error.supported is not None and PROTOCOL_VERSION in error.supported:
        return f". The server supports {PROTOCOL_VERSION} by its own words: the fault is the server's."
    if error.supported is not None:
        versions = (
            ", ".join(inert_line(version, 20) for version in error.supported[:5]) or "none that it names"
        )
        return f". The server supports {versions}; this program speaks {PROTOCOL_VERSION}."
    if error.is_legacy:
        return ". The server seems to speak an older revision of MCP."
    return ""


def _is_always_declared(wanted: Mapping[str, Any]) -> bool:
    """Say whether every client of ours declares all of *wanted*."""
    declared = ClientCapabilities().to_wire()
    return bool(wanted) and all(
        name in declared and isinstance(inner, dict) and inner.keys() <= declared[name].keys()
        for name, inner in wanted.items()
    )


def _names(capabilities: Mapping[str, Any]) -> str:
    """Name capabilities: ``sampling``, ``elicitation.url``, or an extension's identifier."""
    found: list[str] = []
    for name, value in list(capabilities.items())[:5]:
        inner = [key for key in value if isinstance(key, str)][:5] if isinstance(value, dict) else []
        if name == "extensions":
            found += inner
        else:
            found += [f"{name}.{one}" for one in inner] or [name]
    return ", ".join(inert_line(one, 60) for one in found) or "more than it says"


def engine_error(server: str, error: McpError, *, doing: str, is_test: bool = False) -> EngineError:
    """Return *error* as a command reports it: server, what was being done, what happened, what to do next."""
    kind = failure_of(error)
    next_step = {
        "unreachable": "" if is_test else f" `taskinbox servers test {server}` checks it.",
        "sign-in": " Put a valid token into its headers in the servers file.",
        "faulty": " The fault is the server's; its log may say more.",
    }.get(kind, "")
    # An id or a tool's name may be long; what happened must still be read where a notice is cut.
    return EngineError(kind, f"Server {server}, {inert_line(doing, 80)}: {describe(error)}{next_step}")


def unknown_task(key: TaskKey) -> EngineError:
    """Return the error for a task that is not in the inbox."""
    return EngineError(
        "unknown-task",
        f"{inert_line(key.id, 200)} of server {inert_line(key.server, 80)} is not in the inbox. "
        "`taskinbox list` shows what is.",
    )
