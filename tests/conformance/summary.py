"""What the official suite really checked, counted from the files that it leaves behind.

The suite's own exit code and its ticks hide four things: a scenario that checked nothing, a check that was
skipped since it had nothing to look at, a warning, and a driver that failed. Here, each of them fails.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

STATUSES: Final = ("SUCCESS", "FAILURE", "WARNING", "SKIPPED", "INFO")

CLIENT: Final[Mapping[str, int]] = {
    "tools_call": 2,
    "request-metadata": 8,
    "http-standard-headers": 9,
    "http-custom-headers": 18,
    "http-invalid-tool-headers": 12,
    "sep-2322-client-request-state": 5,
    "json-schema-ref-no-deref": 1,
    "json-schema-2020-12-preservation": 9,
}
"""How many checks each scenario makes of a client that does all of it; fewer: something was not sent."""

TASKS: Final[Mapping[str, int]] = {
    "tasks-lifecycle": 9,
    "tasks-capability-negotiation": 5,
    "tasks-wire-fields": 4,
    "tasks-request-state-removal": 3,
    "tasks-mrtr-input": 4,
    "tasks-request-headers": 5,
    "tasks-dispatch-and-envelope": 9,
    "tasks-required-task-error": 3,
    "tasks-mrtr-composition": 2,
}
"""The same of a server, for the Tasks extension; ``tasks-status-notifications`` checks nothing yet."""

SERVER: Final[Mapping[str, int]] = {
    "server-stateless": 28,
    "caching": 7,
    "dns-rebinding-protection": 2,
    "tools-list": 4,
    "http-header-validation": 14,
    "http-custom-header-server-validation": 10,
    "json-schema-2020-12": 8,
}
"""The same of a server that has tools alone, for the revision itself."""

MAY_BE_SKIPPED: Final = frozenset(
    {
        # 2026-07-28 does not have these methods.
        "ClientMcpMethodHeader_initialize",
        "ClientMcpMethodHeader_notifications_initialized",
        # The service has no resources, and its lists never change.
        "ResourcesReadCachingHints",
        "ServerSendsPromptsListChangedOnSubscription",
        "ServerSendsToolsListChangedOnSubscription",
    }
)
"""Checks of what there is not: the only ones that may be skipped."""


class Unreadable(Exception):
    """The suite left something else behind than the results of one run; the message says what."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One check that did not succeed."""

    status: str
    name: str
    message: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario's checks. ``INFO`` entries count for nothing."""

    name: str
    passed: int
    findings: tuple[Finding, ...]
    exit_code: int = 0
    """Of the suite, which passes on the driver's."""

    @property
    def checked(self) -> int:
        """Return how many checks were made: those that passed, failed or warned."""
        return self.passed + sum(finding.status != "SKIPPED" for finding in self.findings)

    def problems(self, expected: int) -> list[str]:
        """Return why this scenario does not count as passed, a line each; empty: it does."""
        found = [
            f"{finding.status.lower()}: {finding.name}{': ' if finding.message else ''}{finding.message}"
            for finding in self.findings
            if finding.status != "SKIPPED" or finding.name not in MAY_BE_SKIPPED
        ]
        if self.checked != expected:
            found.append(f"{self.checked} checks were made, not {expected}")
        if self.exit_code:
            found.append(f"the suite ended with {self.exit_code}")
        return found

    def verdict(self, expected: int) -> str:
        """Return ``PASS``, ``FAIL``, or ``VOID`` where nothing was checked."""
        if not self.checked:
            return "VOID"
        return "FAIL" if self.problems(expected) else "PASS"


def read(folder: Path, name: str, exit_code: int = 0) -> Scenario:
    """Return the one run of scenario *name* whose results are under *folder*.

    Raises `Unreadable` where there is none, more than one, or what is there is no list of checks.
    """
    files = sorted(folder.rglob("checks.json"))
    if len(files) != 1:
        raise Unreadable(f"{name}: {len(files)} results in {folder}, not one.")
    try:
        checks = json.loads(files[0].read_bytes())
    except ValueError as error:
        raise Unreadable(f"{name}: {files[0]} is no JSON: {error}") from None
    return scenario(name, checks, exit_code)


def scenario(name: str, checks: Any, exit_code: int = 0) -> Scenario:
    """Count *checks*, the list that the suite writes. Raises `Unreadable` for anything else."""
    if not isinstance(checks, list) or not all(isinstance(check, dict) for check in checks):
        raise Unreadable(f"{name}: the checks are not a list of objects.")
    counts = Counter(str(check.get("status")) for check in checks)
    unknown = sorted(counts.keys() - set(STATUSES))
    if unknown:
        raise Unreadable(f"{name}: checks with the unknown status {', '.join(unknown)}.")
    findings = tuple(
        Finding(check["status"], str(check.get("name")), _first_line(check.get("errorMessage")))
        for check in checks
        if check["status"] not in ("SUCCESS", "INFO")
    )
    return Scenario(name, counts["SUCCESS"], findings, exit_code)


def _first_line(message: Any) -> str:
    return str(message or "").partition("\n")[0][:300]


def report(scenarios: Iterable[Scenario], expected: Mapping[str, int]) -> tuple[list[str], bool]:
    """Return a table, a line each, and whether everything in *expected* passed and nothing else ran."""
    found = {entry.name: entry for entry in scenarios}
    lines, passed, warnings, good = [], 0, 0, 0
    for name, checks in expected.items():
        entry = found.pop(name, None) or Scenario(name, 0, ())
        verdict = entry.verdict(checks)
        lines.append(f"{verdict} {name:<37}{entry.passed:>3} of {checks}")
        if verdict != "PASS":
            lines += [f"     {problem}" for problem in entry.problems(checks)]
        good += verdict == "PASS"
        passed += entry.passed
        warnings += sum(finding.status == "WARNING" for finding in entry.findings)
    lines += [f"FAIL {name}: nobody expects this scenario" for name in found]
    wanted = sum(expected.values())
    lines.append(f"{passed} of {wanted} checks, {good} of {len(expected)} scenarios, {warnings} warnings")
    return lines, good == len(expected) and not found
