"""A question in URL mode: nothing happens without consent, and the address stays at hand afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import segno
from fakes.task_app import KEY, TaskApp, ask, change, form, open_store, painted, question, texts, until
from textual.geometry import Size
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Button

from app.engine.commands import Delivery
from app.tui.screens.qr import QrScreen
from app.tui.theme import LIGHT
from app.tui.widgets.address import AddressAtHand
from app.tui.widgets.qr_code import NoCode, qr_lines
from app.tui.widgets.question_url import QuestionUrl
from storage.records import NewQuestion, TaskState
from storage.store import Store

URL = "https://login.example.com/device?code=ABCD-1234"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


def visit(url: str = URL, key: str = "go") -> NewQuestion:
    params = {"mode": "url", "message": "Please sign in", "url": url}
    return question("elicitation/create", params, key=key)


async def shown(pilot: Pilot[Any]) -> QuestionUrl:
    app = pilot.app
    assert isinstance(app, TaskApp)
    await until(pilot, lambda: len(app.view.cards) == 1 and app.view.cards[0].is_mounted)
    card = app.view.cards[0]
    assert isinstance(card, QuestionUrl)
    return card


async def press(pilot: Pilot[Any], card: QuestionUrl, kind: str) -> None:
    card.query_one(f".{kind}", Button).press()
    await pilot.pause()


@pytest.mark.rule("elicitation.host-and-consent", "elicitation.url-not-opened-without-consent")
@pytest.mark.parametrize("way", ["open", "copy", "qr"])
async def test_each_way_to_an_address_asks_first_and_then_accepts(store: Store, way: str) -> None:
    ask(store, visit())
    app = TaskApp(store)
    async with app.run_test(size=(80, 30)) as pilot:
        card = await shown(pilot)
        await press(pilot, card, way)
        assert app.focused is card.query_one(".not-now", Button)
        assert "Tell ci that you agree" in painted(app)
        await press(pilot, card, "not-now")
        assert (app.opened, app.clipboard, app.recorder.answers) == ([], "", [])
        assert not isinstance(app.screen, QrScreen)
        await press(pilot, card, way)
        await press(pilot, card, "go")
        await until(pilot, lambda: bool(app.recorder.answers))
        assert app.recorder.answers[0].response_json == '{"action": "accept"}'
        assert app.opened == ([URL] if way == "open" else [])
        assert app.clipboard == (URL if way == "copy" else "")
        assert isinstance(app.screen, QrScreen) == (way == "qr")


@pytest.mark.rule("elicitation.url-not-opened-without-consent")
async def test_a_key_in_flight_agrees_to_nothing(store: Store) -> None:
    ask(store, visit())
    app = TaskApp(store)
    app.moving.step = 0.0
    async with app.run_test(size=(80, 30)) as pilot:
        card = await shown(pilot)
        app.view.focus_question()
        await pilot.press("ctrl+s", "enter", "ctrl+s", "tab", "enter")
        await press(pilot, card, "qr")
        await press(pilot, card, "go")
        assert (app.opened, app.clipboard, app.recorder.answers) == ([], "", [])
        assert not isinstance(app.screen, QrScreen)


async def test_without_an_engine_nothing_is_copied_nor_answered(store: Store) -> None:
    ask(store, visit())
    app = TaskApp(store, connected=False)
    async with app.run_test(size=(80, 30)) as pilot:
        card = await shown(pilot)
        await press(pilot, card, "copy")
        await press(pilot, card, "go")
        assert "Still connecting" in texts(card)
        assert app.clipboard == ""


async def test_the_address_stays_at_hand_while_the_task_is_watched_and_no_longer(store: Store) -> None:
    ask(store, visit())
    app = TaskApp(store)
    async with app.run_test(size=(80, 30)) as pilot:
        card = await shown(pilot)
        await press(pilot, card, "copy")
        await press(pilot, card, "go")
        await until(pilot, lambda: bool(app.view.query(AddressAtHand)) and not app.view.cards)
        at_hand = app.view.query_one(AddressAtHand)
        assert "login.example.com" in painted(app)
        assert URL in texts(at_hand)
        for kind in ("open", "copy", "qr"):
            at_hand.query_one(f".{kind}", Button).press()
            await pilot.pause()
        await until(pilot, lambda: app.opened == [URL] and isinstance(app.screen, QrScreen))
        assert app.clipboard == URL
        assert len(app.recorder.answers) == 1
        await pilot.press("escape")
        change(store, state=TaskState(status="completed", tracking="ended", result_json='{"content": []}'))
        app.view.refresh_task()
        await until(pilot, lambda: not app.view.query(AddressAtHand))


@pytest.mark.parametrize("kind", ["decline", "dismiss"])
async def test_an_address_that_was_not_agreed_to_is_not_at_hand(store: Store, kind: str) -> None:
    ask(store, visit(), form({}, key="other"))
    app = TaskApp(store)
    app.recorder.delivery = Delivery("acknowledged")
    async with app.run_test(size=(80, 40)) as pilot:
        await until(pilot, lambda: len(app.view.cards) == 2)
        app.view.cards[0].query_one(f".{kind}", Button).press()
        await until(pilot, lambda: len(app.view.cards) == 1)
        assert not app.view.query(AddressAtHand)
    assert store.reader.questions(KEY)[0].state == "acknowledged"


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
@pytest.mark.parametrize("light", [False, True])
async def test_the_code_on_the_screen_is_black_on_white_and_is_the_addresss(
    store: Store, size: tuple[int, int], light: bool
) -> None:
    ask(store, visit())
    app = TaskApp(store)
    async with app.run_test(size=size) as pilot:
        if light:
            app.theme = LIGHT.name
        app.push_screen(QrScreen(URL, "login.example.com"))
        await until(pilot, lambda: isinstance(app.screen, QrScreen) and "▀" in painted(app))
        cells: list[list[tuple[str, str, str]]] = []
        for strip in app.screen._compositor.render_strips()[1:]:
            inked = [cell for cell in drawn(strip) if cell[1:] == ("#000000", "#ffffff")]
            if inked:
                cells.append(inked)
        assert modules(["".join(letter for letter, _, _ in line) for line in cells]) == code_of(URL)


def drawn(strip: Strip) -> list[tuple[str, str, str]]:
    """Return each character of a line with its colours."""
    found = []
    for segment in strip:
        style = segment.style
        colours = (
            [c.get_truecolor().hex if c else "" for c in (style.color, style.bgcolor)] if style else ["", ""]
        )
        found += [(letter, colours[0], colours[1]) for letter in segment.text]
    return found


def modules(lines: list[str]) -> list[list[int]]:
    """Return the modules that these lines show, without the white around them."""
    upper, lower = {"▀": 1, "█": 1}, {"▄": 1, "█": 1}
    rows = [[part.get(letter, 0) for letter in line] for line in lines for part in (upper, lower)]
    used = [number for number, row in enumerate(rows) if any(row)]
    columns = [number for number in range(len(rows[0])) if any(row[number] for row in rows)]
    return [row[columns[0] : columns[-1] + 1] for row in rows[used[0] : used[-1] + 1]]


def code_of(url: str) -> list[list[int]]:
    return [list(row) for row in segno.make(url, error="l", micro=False, encoding="utf-8").matrix]


def test_white_surrounds_a_code_on_all_sides() -> None:
    lines = qr_lines(URL, Size(80, 40))
    assert lines[0].strip() == lines[1].strip() == lines[-1].strip() == ""
    assert all(line.startswith("    ") and line.endswith("    ") for line in lines)
    assert len({len(line) for line in lines}) == 1


@pytest.mark.parametrize(("length", "words"), [(200, "needs"), (5000, "too long")])
async def test_a_code_that_does_not_fit_says_so_and_answers_nothing(
    store: Store, length: int, words: str
) -> None:
    ask(store, visit(URL + "x" * length))
    app = TaskApp(store)
    async with app.run_test(size=(80, 24)) as pilot:
        card = await shown(pilot)
        await press(pilot, card, "qr")
        assert words in texts(card)
        assert "Nothing was answered" in texts(card)
        assert app.focused is not card.query_one(".go", Button)
        assert not card.query_one(".consent").has_class("asked")
        assert not app.recorder.answers


@pytest.mark.parametrize("room", [Size(80, 23), Size(120, 35), Size(20, 10), Size(0, 0)])
def test_a_code_is_drawn_within_its_room_or_not_at_all(room: Size) -> None:
    fitting = 0
    for length in range(0, 400, 20):
        try:
            lines = qr_lines("https://example.com/" + "y" * length, room)
        except NoCode:
            continue
        fitting += 1
        assert len(lines) <= room.height
        assert all(len(line) <= room.width for line in lines)
    assert bool(fitting) == (room.height > 20)


async def test_all_ways_and_answers_stand_beside_each_other_in_the_narrow_pane(store: Store) -> None:
    ask(store, visit())
    app = TaskApp(store)
    async with app.run_test(size=(62, 30)) as pilot:
        await shown(pilot)
        for word in ("Open…", "Copy…", "QR code…", "Decline", "Dismiss"):
            assert word in painted(app)
