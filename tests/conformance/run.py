"""Run the client scenarios of the official conformance suite: ``python -m conformance.run FOLDER``.

FOLDER is where ``tests/conformance/setup`` has installed the suite; results go to FOLDER/results. The exit
code is 0 when every check of every scenario passed, without a warning and without one that was left out.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from conformance.summary import EXPECTED, Scenario, Unreadable, read, report

DRIVER: Final = Path(__file__).with_name("client.py")
REVISION: Final = "2026-07-28"
TIMEOUT: Final = 60
"""Seconds for one scenario."""
AT_ONCE: Final = 2


def run(folder: Path, name: str) -> Scenario | Unreadable:
    """Run one scenario and count what it checked; return why it can't be counted where that is so."""
    results = folder / "results" / name
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    # Without exec, the suite's timeout would end the shell alone and leave a driver that hangs.
    driver = f"exec {shlex.quote(sys.executable)} {shlex.quote(str(DRIVER))}"
    suite = folder / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    command = [str(folder / "node"), str(suite), "client", "--command", driver]
    command += ["--scenario", name, "--spec-version", REVISION]
    command += ["--timeout", str(TIMEOUT * 1000), "-o", str(results)]
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


def main(arguments: list[str]) -> int:
    """Run all scenarios, print the table, and return the exit code."""
    folder = Path(arguments[0] if len(arguments) == 1 else "").resolve()
    if not (folder / "node").exists():
        print("usage: python -m conformance.run FOLDER; make conformance makes the folder", file=sys.stderr)
        return 2
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(partial(run, folder), EXPECTED))
    lines, good = report(result for result in results if isinstance(result, Scenario))
    print("\n".join(lines))
    for result in results:
        if isinstance(result, Unreadable):
            print(result, file=sys.stderr)
    if not good:
        print(f"What the suite and the driver said is in {folder / 'results'}.", file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
