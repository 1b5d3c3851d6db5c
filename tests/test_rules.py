"""Each rule of the protocol has a test that holds it, or a reason why none does."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.rulebook import pages, problems

HERE = Path(__file__).parent
TASKS = "https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/draft/tasks.md"
CORE = "https://modelcontextprotocol.io/specification/2026-07-28/"
CORE_PAGES = (
    "basic/index",
    "basic/versioning",
    "basic/patterns/mrtr",
    "basic/patterns/subscriptions",
    "basic/patterns/cancellation",
    "basic/patterns/progress",
    "basic/transports/streamable-http",
    "basic/transports/stdio",
    "basic/authorization/index",
    "basic/authorization/authorization-server-discovery",
    "basic/authorization/client-registration",
    "basic/authorization/security-considerations",
    "client/elicitation",
    "client/sampling",
    "client/roots",
    "server/discover",
    "server/tools",
    "server/utilities/caching",
    "server/utilities/pagination",
)


def test_every_rule_is_held_by_a_test_or_says_why_not() -> None:
    if lines := problems(HERE / "rules", HERE):
        pytest.fail("\n".join(lines), pytrace=False)


def test_every_page_that_binds_a_client_of_tasks_is_covered() -> None:
    assert {"observed", TASKS, *(CORE + page for page in CORE_PAGES)} <= pages(HERE / "rules")


# The check itself can fail, in each of its ways.

HEAD = 'page = "https://example.org/spec/page"\nkeywords = 1\n'
RULE = {
    "id": '"page.some-rule"',
    "anchor": '"#part"',
    "level": '"MUST"',
    "who": '"client"',
    "rule": '"Say it."',
}
MARKED = 'import pytest\n\n\n@pytest.mark.rule("page.some-rule")\ndef test_it() -> None: ...\n'


def entry(**changes: str | None) -> str:
    """One rule in TOML; ``None`` leaves a field out."""
    fields = {**RULE, **changes}
    return "[[rule]]\n" + "".join(f"{name} = {text}\n" for name, text in fields.items() if text is not None)


def found(folder: Path, manifest: str, tests: str) -> list[str]:
    """What the check says of one file of rules and one file of tests."""
    (folder / "rules").mkdir()
    (folder / "rules" / "page.toml").write_text(manifest, "utf-8")
    (folder / "part").mkdir()
    (folder / "part" / "test_part.py").write_text(tests, "utf-8")
    return problems(folder / "rules", folder)


@pytest.mark.parametrize(
    "tests",
    [
        MARKED,
        MARKED.replace("def", "async def"),
        'import pytest\npytestmark = pytest.mark.rule("page.some-rule")\n',
        'import pytest\npytestmark = [pytest.mark.x, pytest.mark.rule("page.some-rule")]\n',
        '@pytest.mark.rule("page.some-rule")\nclass TestIt:\n    def test_it(self) -> None: ...\n',
        'class TestIt:\n    @pytest.mark.rule("page.some-rule")\n    def test_it(self) -> None: ...\n',
        '@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.rule("page.some-rule"))])\n'
        "def test_it(x: int) -> None: ...\n",
    ],
)
def test_a_rule_may_be_held_in_every_place_where_pytest_takes_a_mark(tmp_path: Path, tests: str) -> None:
    assert found(tmp_path, HEAD + entry(), tests) == []


@pytest.mark.parametrize("reason", ["a server's rule", "deferred: later", "not ours: we write no servers"])
def test_a_rule_may_say_why_no_test_holds_it(tmp_path: Path, reason: str) -> None:
    assert found(tmp_path, HEAD + entry(who='"server"', why_not=f'"{reason}"'), "") == []


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ("", "page.some-rule: no test names it"),
        (MARKED + MARKED.replace("some-rule", "other-rule"), "'page.other-rule' is in no file"),
        (MARKED + "@pytest.mark.rule()\ndef test_b() -> None: ...\n", "names its rules by texts"),
        (MARKED + "@pytest.mark.rule(NAME)\ndef test_b() -> None: ...\n", "names its rules by texts"),
        (MARKED + "@pytest.mark.rule(5)\ndef test_b() -> None: ...\n", "names its rules by texts"),
        (MARKED.replace("def test_it", "def helper"), "stands at no test that runs"),
        (MARKED.replace("\ndef", '\n@pytest.mark.skip(reason="x")\ndef'), "stands at no test that runs"),
        (MARKED.replace("\ndef", "\n@pytest.mark.xfail\ndef"), "stands at no test that runs"),
        ('def helper():\n    return pytest.mark.rule("page.some-rule")\n', "stands at no test that runs"),
    ],
)
def test_marks_that_hold_no_rule_of_the_manifest_are_found(tmp_path: Path, tests: str, said: str) -> None:
    lines = found(tmp_path, HEAD + entry(), tests)
    assert any(said in line for line in lines), lines


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"why_not": '"a server\'s rule"', "who": '"server"'}, "no test should hold it"),
        ({"why_not": '"a server\'s rule"'}, "calls it a server's rule, and it is not"),
        ({"why_not": '"because"'}, "begins with none of"),
        ({"why_not": '"not ours: "'}, "gives no reason"),
        ({"why_not": '"not used: no need"'}, "no mere permission"),
        ({"why_not": "5"}, "why_not is not known, or of the wrong type"),
        ({"note": '"x"'}, "note is not known, or of the wrong type"),
        ({"covers": '"1"'}, "covers is not known, or of the wrong type"),
        ({"id": None}, "id is missing"),
        ({"anchor": None}, "anchor is missing"),
        ({"level": '""'}, "level is missing"),
        ({"who": "5"}, "who is missing"),
        ({"rule": None}, "rule is missing"),
        ({"id": '"some-rule"'}, "not of the form"),
        ({"id": '"page.Some-rule"'}, "not of the form"),
        ({"anchor": '"part"'}, "is not one"),
        ({"anchor": '"#Two words"'}, "is not one"),
        ({"level": '"must"'}, "level 'must' is not known"),
        ({"who": '"nobody"'}, "is nobody"),
        ({"rule": f'"{"x" * 241}"'}, "longer than 240"),
        ({"covers": "2"}, "the page has 1 words like MUST and MAY, and the rules stand for 2"),
        ({"level": '"fact"'}, "the rules stand for 0"),
    ],
)
def test_an_entry_that_is_wrong_is_found(tmp_path: Path, changes: dict[str, str | None], said: str) -> None:
    lines = found(tmp_path, HEAD + entry(**changes), MARKED)
    assert any(said in line for line in lines), lines


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (HEAD.replace("1", "2") + entry() * 2, "2 rules have this id"),
        (HEAD.replace("1", "-1") + entry(covers="-1"), "less than nothing"),
        (HEAD, "has no rule"),
        (HEAD.replace("https", "http") + entry(), "no address of a page"),
        ("keywords = 1\n" + entry(), "no address of a page"),
        ('page = "https://example.org/x"\n' + entry(), "the page has None words"),
        ("page = ", "page.toml: "),
    ],
)
def test_a_file_that_is_wrong_is_found(tmp_path: Path, manifest: str, said: str) -> None:
    lines = found(tmp_path, manifest, MARKED)
    assert any(said in line for line in lines), lines
