"""The cases that broke other clients' forms, filled in on the screen: what goes out is what they ask for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.task_app import TaskApp, ask, open_store, question, until
from textual.pilot import Pilot

from app.tui.widgets.choice_rows import ChoiceRow, ChoicesRow, ConstantRow
from app.tui.widgets.controls import SafeInput
from app.tui.widgets.field_rows import FieldRow
from app.tui.widgets.question_form import QuestionForm
from app.tui.widgets.text_rows import TextRow
from storage.records import TaskKey
from storage.store import Store

HERE = Path(__file__).parent
OURS = HERE.parent / "forms" / "cases.json"
SHARED = HERE.parents[3] / "shared" / "cases" / "forms.json"
AT_A_TIME = 16
"""Cases in one running app: to start it takes longer than to fill in a form."""


def load(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def groups() -> list[list[dict[str, Any]]]:
    cases = [*load(SHARED), *load(OURS)[::5]]
    return [cases[at : at + AT_A_TIME] for at in range(0, len(cases), AT_A_TIME)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


class CannotBeTyped(Exception):
    """The screen offers no way to enter this: no such field, or no such choice."""


def enter(row: FieldRow, entry: Any) -> None:
    """Fill in a field by its own controls."""
    if entry is None:
        if not row.field.nullable:
            raise CannotBeTyped
        row.action_make_null()
    elif isinstance(row, ChoiceRow):
        _pick(row, [entry] if isinstance(entry, str) else entry)
    elif isinstance(row, TextRow):
        _write(row, "\n".join(entry) if isinstance(entry, list) else entry)
    else:
        raise CannotBeTyped


def _pick(row: ChoiceRow, texts: list[str]) -> None:
    places = [place for text in texts for place in row._find(text)]
    if len(set(places)) != len(texts) or (not places and not isinstance(row, ChoicesRow)):
        raise CannotBeTyped
    if isinstance(row, ChoicesRow):
        row.control.choose(set(places))  # type: ignore[union-attr]
        row.picked(places[0] if places else 0)
    else:
        row.picked(places[0])


def _write(row: TextRow, text: str) -> None:
    def put(words: str) -> None:
        if isinstance(row.control, SafeInput):
            if "\n" in words:
                raise CannotBeTyped
            row.control.value = words
        else:
            row.control.text = words
        row._typed(words)

    if text == row._shown:
        put(f"{text}x")  # as a person touches a field: by a key, and another
    put(text)


async def shown(pilot: Pilot[Any], key: TaskKey) -> QuestionForm:
    app = pilot.app
    assert isinstance(app, TaskApp)
    app.view.show(key)

    def there() -> bool:
        cards = app.view.cards
        return len(cards) == 1 and cards[0].question.task == key and cards[0].is_mounted

    await until(pilot, there)
    card = app.view.cards[0]
    assert isinstance(card, QuestionForm)
    return card


async def judge(app: TaskApp, pilot: Pilot[Any], case: dict[str, Any], key: TaskKey) -> bool:
    """Fill in and accept; returns whether that could be done on the screen at all."""
    card = await shown(pilot, key)
    rows = {row.field.name: row for row in card.fields.rows}
    try:
        for name, entry in case["typed"].items():
            if name not in rows or isinstance(rows[name], ConstantRow):
                raise CannotBeTyped
            enter(rows[name], entry)
    except CannotBeTyped:
        return False
    await pilot.pause()
    answered = len(app.recorder.answers)
    card.action_accept()
    expect = case["expect"]
    if "content" in expect:
        async with asyncio.timeout(10):
            while len(app.recorder.answers) == answered:
                await pilot.pause()
        sent = json.loads(app.recorder.answers[-1].response_json)
        expected = {"action": "accept", "content": expect["content"]}
        assert json.dumps(sent, sort_keys=True) == json.dumps(expected, sort_keys=True), case["name"]
        return True
    await pilot.pause()
    assert len(app.recorder.answers) == answered, case["name"]
    wrong = sorted(name for name, row in rows.items() if row.error)
    assert wrong == sorted(set(expect["errors"]) & rows.keys()), case["name"]
    if wrong:
        assert app.focused is not None
        first = next(row for row in card.fields.rows if row.error)
        assert first in app.focused.ancestors or isinstance(first, ConstantRow), case["name"]
    return True


@pytest.mark.rule("elicitation.responses-validated", "wire.content-as-asked")
@pytest.mark.parametrize("cases", groups(), ids=lambda cases: cases[0]["name"])
async def test_what_is_filled_in_on_the_screen_is_what_goes_out(
    store: Store, cases: list[dict[str, Any]]
) -> None:
    keys = [TaskKey("ci", f"case-{n}") for n in range(len(cases))]
    for key, case in zip(keys, cases, strict=True):
        params = {"message": case["name"], "requestedSchema": case["requestedSchema"]}
        ask(store, question("elicitation/create", params), key=key)
    app = TaskApp(store, None)
    async with app.run_test(size=(100, 40)) as pilot:
        done = [await judge(app, pilot, case, key) for key, case in zip(keys, cases, strict=True)]
    assert sum(done) >= len(cases) // 2
