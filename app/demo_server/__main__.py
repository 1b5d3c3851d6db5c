"""``python -m app.demo_server``: the service alone, with its speed as an option: for tests."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from app.demo_server.errors import ServeError
from app.demo_server.server import POLL_INTERVAL_MS, STEP_SECONDS, serve
from app.demo_server.worker import LEASE_MS


def main() -> int:
    """Serve until a signal; print the line that names the URL once connections are accepted."""
    parser = argparse.ArgumentParser(prog="python -m app.demo_server")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tools", default="demo")
    parser.add_argument("--speed", type=float, default=STEP_SECONDS, help="seconds per step")
    parser.add_argument(
        "--poll-ms", type=int, default=POLL_INTERVAL_MS, help="the interval that clients are told"
    )
    parser.add_argument("--lease-ms", type=int, default=LEASE_MS, help="how long a dead process's work waits")
    parser.add_argument("--tokens", type=Path)
    parser.add_argument("--limit-polling", action="store_true")
    options = parser.parse_args()
    try:
        serve(
            options.port,
            options.data,
            options.tools,
            _announce,
            step_seconds=options.speed,
            poll_ms=options.poll_ms,
            lease_ms=options.lease_ms,
            tokens=options.tokens,
            limit_polling=options.limit_polling,
        )
    except ServeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _announce(url: str) -> None:
    print(f"taskinbox demo service at {url}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
