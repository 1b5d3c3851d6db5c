"""Reads the manifest of the protocol's rules (tests/rules) and the marks of the tests, and says where the two
disagree."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeGuard

LEVELS: Final = frozenset({"MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "RECOMMENDED", "fact"})
"""`fact`: not a rule of a page but something that was seen, or that the page says without a keyword."""
SIDES: Final = frozenset({"client", "server", "both"})
LONGEST: Final = 240
"""Characters of a paraphrase: a rule that needs more is two rules."""
OBSERVED: Final = "observed"
"""In place of a page's address: what was seen of servers and libraries, and no page says."""
REASONS: Final = ("a server's rule", "deferred: ", "not ours: ", "not used: ", "not testable: ")
"""How a reason begins. `not used` is for permissions alone; `not ours` says what this client does not do."""

_ID: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\.[a-z0-9]+(?:-[a-z0-9]+)*")
_PAGE: Final = re.compile(r"https://[a-z0-9.-]+/[A-Za-z0-9/._-]+")
_ANCHOR: Final = re.compile(r"#[a-z0-9_-]*")
_FIELDS: Final = {"id": str, "anchor": str, "level": str, "who": str, "rule": str}
_OPTIONAL: Final = {"why_not": str, "covers": int}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, as one of the files in tests/rules states it."""

    id: str
    level: str
    who: str
    why_not: str | None
    """Why no test holds it; ``None``: a test must."""


def problems(rules: Path, tests: Path) -> list[str]:
    """Return a line for each way in which the manifest in *rules* and the tests under *tests* disagree."""
    found, wrong = read_manifest(rules)
    marked, unclear = read_marks(tests)
    wrong += unclear
    known = {rule.id: rule for rule in found}
    wrong += [
        f"{where}: the rule {name!r} is in no file of the manifest."
        for name, places in marked.items()
        if name not in known
        for where in places
    ]
    for rule in known.values():
        if rule.why_not is None and rule.id not in marked:
            wrong.append(f"{rule.id}: no test names it, and no reason says why.")
        if rule.why_not is not None and rule.id in marked:
            wrong.append(
                f"{rule.id}: no test should hold it ({rule.why_not}), but {marked[rule.id][0]} does."
            )
    return wrong


def read_manifest(folder: Path) -> tuple[list[Rule], list[str]]:
    """Return the rules of all files in *folder*, and what is wrong with them."""
    rules: list[Rule] = []
    wrong: list[str] = []
    for file in sorted(folder.glob("*.toml")):
        try:
            page = tomllib.loads(file.read_text("utf-8"))
        except ValueError as error:
            wrong.append(f"{file.name}: {error}")
            continue
        wrong += [f"{file.name}: {line}" for line in _page_faults(page)]
        for number, entry in enumerate(page.get("rule", ()), 1):
            faults = list(_entry_faults(entry))
            wrong += [f"{file.name}, rule {number} ({entry.get('id')}): {line}" for line in faults]
            if not faults:
                rules.append(Rule(entry["id"], entry["level"], entry["who"], entry.get("why_not")))
    counted = Counter(rule.id for rule in rules)
    wrong += [f"{name}: {times} rules have this id." for name, times in counted.items() if times > 1]
    return rules, wrong


def pages(folder: Path) -> set[str]:
    """Return the addresses of the pages that the manifest covers."""
    return {tomllib.loads(file.read_text("utf-8"))["page"] for file in folder.glob("*.toml")}


def _page_faults(page: dict[str, Any]) -> Iterator[str]:
    address, keywords, entries = page.get("page"), page.get("keywords"), page.get("rule")
    if not isinstance(address, str) or not (address == OBSERVED or _PAGE.fullmatch(address)):
        yield f"page: {address!r} is no address of a page."
    if not isinstance(entries, list) or not entries:
        yield "it has no rule."
        return
    covered = sum(_covers(entry) for entry in entries)
    if keywords != covered:
        yield f"the page has {keywords} words like MUST and MAY, and the rules stand for {covered}."


def _covers(entry: dict[str, Any]) -> int:
    covers = entry.get("covers", 0 if entry.get("level") == "fact" else 1)
    return covers if isinstance(covers, int) else 0


def _entry_faults(entry: dict[str, Any]) -> Iterator[str]:
    for name, kind in _FIELDS.items():
        if not isinstance(entry.get(name), kind) or not entry[name]:
            yield f"{name} is missing."
            return
    for name, value in entry.items():
        if name not in _FIELDS and not isinstance(value, _OPTIONAL.get(name, ())):
            yield f"{name} is not known, or of the wrong type."
    if not _ID.fullmatch(entry["id"]):
        yield "the id is not of the form page.some-words."
    if not _ANCHOR.fullmatch(entry["anchor"]):
        yield f"the anchor {entry['anchor']!r} is not one."
    if entry["level"] not in LEVELS:
        yield f"the level {entry['level']!r} is not known."
    if entry["who"] not in SIDES:
        yield f"who: {entry['who']!r} is nobody."
    if len(entry["rule"]) > LONGEST:
        yield f"the paraphrase is longer than {LONGEST} characters."
    if _covers(entry) < 0:
        yield "covers is less than nothing."
    yield from _reason_faults(entry)


def _reason_faults(entry: dict[str, Any]) -> Iterator[str]:
    reason = entry.get("why_not")
    if not isinstance(reason, str):
        return
    if not reason.startswith(REASONS):
        yield f"why_not begins with none of {', '.join(map(repr, REASONS))}."
    elif reason.endswith(": "):
        yield "why_not gives no reason."
    if reason.startswith("a server's rule") and entry["who"] != "server":
        yield "why_not calls it a server's rule, and it is not."
    if reason.startswith("not used: ") and entry["level"] not in ("MAY", "fact"):
        yield "why_not leaves out what is no mere permission."


def read_marks(folder: Path) -> tuple[dict[str, list[str]], list[str]]:
    """Return where under *folder* each rule is named by a mark, and which marks hold nothing."""
    marked: dict[str, list[str]] = {}
    wrong: list[str] = []
    for file in sorted(folder.rglob("test_*.py")):
        tree = ast.parse(file.read_text("utf-8"), str(file))
        held = {id(call) for call in _held(tree)}
        for call in filter(_is_rule, ast.walk(tree)):
            where = f"{file.relative_to(folder).as_posix()}:{call.lineno}"
            names = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
            if not names or len(names) != len(call.args) or not all(isinstance(n, str) for n in names):
                wrong.append(f"{where}: a mark names its rules by texts.")
            elif id(call) not in held:
                wrong.append(f"{where}: the mark stands at no test that runs.")
            else:
                for name in names:
                    marked.setdefault(str(name), []).append(where)
    return marked, wrong


def _held(tree: ast.Module) -> Iterator[ast.Call]:
    """Yield the marks that stand at a test, a class of tests, or the module; not those of skipped tests."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets
        ):
            yield from (mark for mark in ast.walk(node.value) if _is_rule(mark))
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from _of(node)
            for part in node.body:
                yield from _of(part)
        else:
            yield from _of(node)


def _of(node: ast.stmt) -> Iterator[ast.Call]:
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    if not node.name.startswith(("test_", "Test")):
        return
    inside = [part for decorator in node.decorator_list for part in ast.walk(decorator)]
    if not any(_names(part, "skip") or _names(part, "xfail") for part in inside):
        yield from (mark for mark in inside if _is_rule(mark))


def _is_rule(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and _names(node.func, "rule")


def _names(node: ast.AST, name: str) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "mark"
    )
