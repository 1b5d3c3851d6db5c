"""Nothing that a server writes is markup, an action or a control sequence by the time it is drawn."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.widgets import Button, OptionList

from app.tui.widgets.inert import InertLine, InertText, cell, content, joined, joined_line, line, say

HOSTILE = {
    "closing tag": "[/foo] x",
    "live action": "[@click=app.bell]x[/]",
    "colour": "\x1b[31mred\x1b[0m",
    "clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "c1": "\x9b31mred",
    "bidi": "abc\u202edef\u2066ghi",
    "tags": "\U000e0041\U000e0042",
    "surrogate": "a\ud800b",
    "backspace": "safe\x08\x08\x08evil",
    "cr": "good\revil",
    "cjk": "デプロイ 承認 部署",
    "zwj": "👩‍👩‍👧‍👦 family 🏳️‍🌈",
}
DANGEROUS = {
    *(chr(c) for c in range(0x20) if chr(c) not in "\n\t"),
    *(chr(c) for c in range(0x7F, 0xA0)),
    *"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f",
    *(chr(c) for c in range(0xD800, 0xE000)),
    *(chr(c) for c in range(0xE0000, 0xE0080)),
}


class Everything(App[None]):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.hostile = text
        self.belled = False

    def compose(self) -> ComposeResult:
        yield InertText(self.hostile, id="text")
        yield InertLine(self.hostile, id="line")
        yield Button(content(self.hostile))
        yield OptionList(content(self.hostile), joined(self.hostile, ("x", "bold")))

    def action_bell(self) -> None:
        self.belled = True


def painted(app: App[None]) -> str:
    return "\n".join(
        "".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()
    )


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
async def test_hostile_text_is_drawn_as_text_and_nothing_else(text: str) -> None:
    app = Everything(text)
    async with app.run_test(size=(80, 24)) as pilot:
        say(app, text, "error")
        await pilot.pause()
        shown = painted(app)
        assert not DANGEROUS & set(shown)
        await pilot.click("#text", offset=(0, 0))
        await pilot.click("#line", offset=(0, 0))
        app.query_one("#text", InertText).update(text)
        app.query_one("#line", InertLine).show("other")
        await pilot.pause()
        assert "other" in painted(app)
        assert not app.belled
        assert app.return_code is None


def test_markup_is_kept_as_the_characters_it_is_made_of() -> None:
    assert content("[b]x[/b] [/foo]").plain == "[b]x[/b] [/foo]"
    assert joined("[/foo]", ("[b]", "bold")).plain == "[/foo][b]"
    assert cell("[red]x").plain == "[red]x"


def test_a_line_stays_a_line() -> None:
    assert line("one\ntwo\tthree").plain == "one two three"
    assert joined_line("one\n", ("two\r\nthree", "bold")).plain == "one two three"
    assert "\n" not in cell("one\ntwo").plain
    assert content("one\ntwo").plain == "one\ntwo"


async def test_showing_the_same_text_again_draws_nothing() -> None:
    app = Everything("same")
    async with app.run_test() as pilot:
        widget = app.query_one("#text", InertText)
        await pilot.pause()
        before = widget.content
        widget.show("same")
        assert widget.content is before
        widget.show("other")
        assert widget.text == "other"
