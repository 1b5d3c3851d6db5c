"""Forms that broke other clients, each with the right value: our own cases and the shared ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.forms import read_form

HERE = Path(__file__).parent
SHARED = HERE.parents[3] / "shared" / "cases" / "forms.json"


def load(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def judge(case: dict[str, Any]) -> None:
    """The content, exactly as it would be sent, or the fields that must be refused."""
    expect = case["expect"]
    filled = read_form(case["requestedSchema"]).fill(case["typed"])
    if "content" in expect:
        assert filled.errors == {}
        sent = json.loads(filled.content_json)
        assert json.dumps(sent, sort_keys=True) == json.dumps(expect["content"], sort_keys=True)
    else:
        assert sorted(filled.errors) == sorted(expect["errors"])
        assert all(reason.strip() for reason in filled.errors.values())
    for name in expect.get("warns", ()):
        assert filled.warnings[name].strip()


@pytest.mark.skipif(not SHARED.exists(), reason="the shared cases are not beside this repository")
@pytest.mark.parametrize("case", load(SHARED), ids=lambda case: case["name"])
def test_a_shared_case_is_filled_in_as_it_must_be(case: dict[str, Any]) -> None:
    judge(case)


@pytest.mark.parametrize("case", load(HERE / "cases.json"), ids=lambda case: case["name"])
def test_a_case_is_filled_in_as_it_must_be(case: dict[str, Any]) -> None:
    judge(case)
