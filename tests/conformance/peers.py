"""Talk to servers that nobody here wrote: ``python -m conformance.peers FOLDER [--write]``.

FOLDER is where ``tests/conformance/setup`` has installed the suite. Prints a table of what was found and
compares it with the one in docs/peers.md, which ``--write`` replaces. Exit codes: 0 the same, 1 another one,
2 called wrongly. Servers that are kept beside the repository (``../shared/peers``) are left out where there
are none.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from conformance.probes import PROBES, Meeting, Tools, probe
from fakes.peers import free_port, running

from mcp_client import McpClient, StdioTransport

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "peers.md"
SHARED: Final = ROOT.parent / "shared" / "peers"
FASTMCP: Final = ROOT / "tests" / "fakes" / "fastmcp_peer.py"
BEGIN: Final = "<!-- make peers: what follows is measured -->"
END: Final = "<!-- end of what is measured -->"
TOKEN: Final = {"Authorization": "Bearer alice-token"}
AT_ONCE: Final = 2

TS_TOOLS: Final = Tools(
    call=("greet", {"name": "Ada", "region": "eu é"}),
    asks_first=("ask_first", {}),
    task=("slow", {"ms": 300}),
    long=("slow", {"ms": 30_000}),
    asks=("ask", {}),
    steps=("progress", {}),
    structured=("add", {"a": 1, "b": 2.5}),
    mirrored=("greet", {"name": "Ada", "region": "eu é"}),
    announces=("announce", {}),
)
FASTMCP_TOOLS: Final = Tools(
    call=("plain_sync", {}),
    asks_first=("mrtr_sync", {}),
    task=("slow", {"steps": 2, "pause": 0.2}),
    long=("slow", {"steps": 30}),
    asks=("ask_two", {}),
    steps=("plain_sync", {}),
    structured=("plain_sync", {}),
)
EXT_TOOLS: Final = Tools(
    asks_first=("test_tool_with_task", {}),
    task=("slow", {"seconds": 1}),
    long=("slow", {"seconds": 30}),
    asks=("ask", {}),
)
AUTH_TOOLS: Final = Tools(task=("slow", {"seconds": 1}), long=("slow", {"seconds": 30}))


@dataclass(frozen=True, slots=True)
class Peer:
    """One server over one transport."""

    name: str
    transport: str
    command: tuple[str, ...]
    """What starts it; over HTTP, ``PORT`` stands for the port."""
    tools: Tools = field(default_factory=Tools)
    environment: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    secured: bool = False

    @property
    def over_http(self) -> bool:
        """Say whether it is reached over HTTP."""
        return self.transport != "stdio"


def peers(folder: Path) -> Iterator[Peer]:
    """Yield every peer that can run on this machine."""
    node, installed = str(folder / "node"), folder / "node_modules" / "@modelcontextprotocol"
    script = folder / "ts_server.mjs"  # beside node_modules, or its imports would find nothing
    script.write_bytes(Path(__file__).with_name("ts_server.mjs").read_bytes())
    sdk = f"TypeScript SDK {version(installed / 'server')}"
    yield Peer(sdk, "HTTP, JSON or SSE", (node, str(script), "http", "PORT", "auto"), TS_TOOLS)
    yield Peer(sdk, "HTTP, SSE", (node, str(script), "http", "PORT", "sse"), TS_TOOLS)
    yield Peer(sdk, "stdio", (node, str(script), "stdio"), TS_TOOLS)
    yield from legacy(node, installed)
    library = f"fastmcp-tasks {importlib.metadata.version('fastmcp-tasks')}"
    python = sys.executable
    yield Peer(library, "HTTP, SSE", (python, str(FASTMCP), "PORT"), FASTMCP_TOOLS)
    yield Peer(library, "HTTP, JSON", (python, str(FASTMCP), "PORT", "--json"), FASTMCP_TOOLS)
    run = (
        f"import runpy; runpy.run_path({str(FASTMCP)!r})['server'].run(transport='stdio', show_banner=False)"
    )
    yield Peer(library, "stdio", (python, "-c", run), FASTMCP_TOOLS)
    extended, secured = SHARED / "fastmcp_ext_server.py", SHARED / "fastmcp_auth_server.py"
    if extended.exists():
        command = (python, str(extended), "PORT")
        yield Peer(f"{library}, listening", "HTTP, SSE", command, EXT_TOOLS, {"PING": "1"})
    if secured.exists():
        command = (python, str(secured), "PORT")
        yield Peer(f"{library}, token", "HTTP, SSE", command, AUTH_TOOLS, headers=TOKEN, secured=True)


def legacy(node: str, installed: Path) -> Iterator[Peer]:
    """Yield the servers of the first TypeScript SDK."""
    everything = installed / "server-everything"
    name, script = f"server-everything {version(everything)}", str(everything / "dist" / "index.js")
    loopback = f"--import={Path(__file__).with_name('loopback.mjs').as_uri()}"
    yield Peer(name, "HTTP, SSE", (node, loopback, script, "streamableHttp"), environment={"PORT": "PORT"})
    yield Peer(name, "stdio", (node, script, "stdio"))
    for short, arguments in (("memory", ()), ("filesystem", (str(installed),))):
        server = installed / f"server-{short}"
        command = (node, str(server / "dist" / "index.js"), *arguments)
        yield Peer(f"server-{short} {version(server)}", "stdio", command)


def version(package: Path) -> str:
    """Return the version of an installed npm package."""
    return str(json.loads((package / "package.json").read_bytes())["version"])


@contextmanager
def started(peer: Peer, log: Path) -> Iterator[str]:
    """Run a peer that is reached over HTTP and yield its endpoint."""
    port = str(free_port())
    command = [port if part == "PORT" else part for part in peer.command]
    added = {name: port if value == "PORT" else value for name, value in peer.environment.items()}
    with running(["env", *(f"{name}={value}" for name, value in added.items()), *command], int(port), log):
        yield f"http://127.0.0.1:{port}/mcp"


@asynccontextmanager
async def met(peer: Peer, folder: Path) -> AsyncIterator[Meeting]:
    """Start a peer and connect to it."""
    if peer.over_http:
        with started(peer, folder / "log") as url:

            def again(headers: Mapping[str, str]) -> McpClient:
                return McpClient.http(url, headers=headers)

            async with again(peer.headers) as client:
                yield Meeting(client, peer.tools, again, peer.secured)
    else:
        transport = StdioTransport(peer.command[0], peer.command[1:], env=peer.environment)
        async with McpClient(transport) as client:
            yield Meeting(client, peer.tools)


async def measure(peer: Peer) -> dict[str, str]:
    """Return a cell for each column."""
    cells = {"server": peer.name, "transport": peer.transport}
    with tempfile.TemporaryDirectory() as folder:
        async with met(peer, Path(folder)) as meeting:
            for column in PROBES:
                cells[column] = await probe(column, meeting)
    return cells


def measured(peer: Peer) -> dict[str, str]:
    """Return a row of the table; one that says so where the peer did not start."""
    try:
        return asyncio.run(measure(peer))
    except pytest.fail.Exception as error:
        return {"server": peer.name, "transport": peer.transport, "revision": str(error).partition("\n")[0]}


def table(rows: Iterable[Mapping[str, str]]) -> list[str]:
    """Write rows as a Markdown table, the lines of its heading first."""
    columns = ("server", "transport", *PROBES)
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return lines + ["| " + " | ".join(row.get(column, "") for column in columns) + " |" for row in rows]


def differences(page: str, found: list[str]) -> list[str]:
    """Say how the table of *page* differs from the one *found*, a line each."""
    known = page.partition(BEGIN)[2].partition(END)[0].split("\n")
    wrong = [f"docs/peers.md does not say: {line}" for line in found if line not in known]
    if SHARED.exists():
        wrong += [
            f"docs/peers.md says, but nobody found: {line}" for line in known if line and line not in found
        ]
    return wrong


def main(arguments: list[str]) -> int:
    """Measure all peers, print the table, compare or replace the page's, and return the exit code."""
    names = [argument for argument in arguments if argument != "--write"]
    folder = Path(names[0] if len(names) == 1 else "").resolve()
    if not (folder / "node").exists():
        print("usage: python -m conformance.peers FOLDER [--write]; make peers makes it", file=sys.stderr)
        return 2
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = table(pool.map(measured, peers(folder)))
    print("\n".join(found))
    page = PAGE.read_text(encoding="utf-8")
    if "--write" in arguments:
        before, after = page.partition(BEGIN)[0], page.partition(END)[2]
        PAGE.write_text("\n".join([before + BEGIN, *found, END + after]), encoding="utf-8")
        return 0
    wrong = differences(page, found)
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
