"""Run the scenarios of the official conformance suite: ``python -m conformance.run FOLDER``.

The client's are run against `McpClient`, the server's against ``taskinbox demo-server --tools conformance``.
FOLDER is where ``tests/conformance/setup`` has installed the suite; results go to FOLDER/results. The exit
code is 0 when every check of every scenario passed, without a warning and without one that was left out.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from conformance.summary import CLIENT, SERVER, TASKS, Scenario, Unreadable, read, report

DRIVER: Final = Path(__file__).with_name("client.py")
REVISION: Final = "2026-07-28"
TIMEOUT: Final = 60
"""Seconds for one scenario."""
AT_ONCE: Final = 2

Arguments = Callable[[str], Sequence[str]]
"""The suite's command line for a scenario."""


def run(folder: Path, name: str, arguments: Sequence[str]) -> Scenario | Unreadable:
    """Run one scenario and count what it checked; return why it can't be counted where that is so."""
    results = folder / "results" / name
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    suite = folder / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    command = [str(folder / "node"), str(suite), *arguments, "--scenario", name, "-o", str(results)]
    log = results / "log"
    try:
        with log.open("wb") as output:
            ended = subprocess.run(
                command,
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=TIMEOUT + 30,
            )
        return read(results, name, ended.returncode)
    except subprocess.TimeoutExpired:
        return Unreadable(f"{name}: the suite hung.")
    except Unreadable as error:
        return Unreadable(f"{error} The suite said:\n{log.read_text(errors='replace')}")


def client(name: str) -> Sequence[str]:
    """Let the suite test the client."""
    # Without exec, the suite's timeout would end the shell alone and leave a driver that hangs.
    driver = f"exec {shlex.quote(sys.executable)} {shlex.quote(str(DRIVER))}"
    return ["client", "--command", driver, "--spec-version", REVISION, "--timeout", str(TIMEOUT * 1000)]


def server(url: str) -> Arguments:
    """Let the suite test the service at *url*."""
    # With a version, the suite leaves out the scenarios of the extension, and calls that a success.
    return lambda name: ["server", "--url", url, *([] if name in TASKS else ["--spec-version", REVISION])]


@contextmanager
def service() -> Iterator[str]:
    """Run the service with the suite's tools, on data of its own; yields its URL."""
    with tempfile.TemporaryDirectory() as home:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "app", "demo-server", "--tools", "conformance"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TASKINBOX_HOME": home},
        )
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip().rpartition(" ")[2]
        finally:
            process.terminate()
            process.communicate(timeout=TIMEOUT)


def leg(folder: Path, title: str, wanted: Mapping[str, int], arguments: Arguments) -> bool:
    """Run the scenarios of *wanted*, print a table, and say whether all is well."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(lambda name: run(folder, name, arguments(name)), wanted))
    lines, good = report((result for result in results if isinstance(result, Scenario)), wanted)
    print(f"{title}:", *lines, sep="\n", flush=True)
    for result in results:
        if isinstance(result, Unreadable):
            print(result, file=sys.stderr)
    return good


def main(arguments: list[str]) -> int:
    """Run all scenarios, print the tables, and return the exit code."""
    folder = Path(arguments[0] if len(arguments) == 1 else "").resolve()
    if not (folder / "node").exists():
        print("usage: python -m conformance.run FOLDER; make conformance makes the folder", file=sys.stderr)
        return 2
    good = leg(folder, "client", CLIENT, client)
    with service() as url:
        good &= leg(folder, "server, tasks", TASKS, server(url))
        good &= leg(folder, "server, the revision itself", SERVER, server(url))
    if not good:
        print(f"What the suite and the driver said is in {folder / 'results'}.", file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
