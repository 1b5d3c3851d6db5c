"""The only way text reaches the screen: made inert by `app.text`, and never read as markup.

The one module that imports Textual's Static, Label or Markdown (ruff TID251 holds the others to it). A
``str`` given to those is console markup: ``[/foo] x`` ends the program, ``[@click=app.quit]x[/]`` is a live
action, and a raw escape sequence reaches the terminal. What this module returns is `Content` or
`rich.text.Text`, whose text is only text; every other widget takes one of those where it would take a
``str``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rich.text import Text
from textual.content import Content
from textual.visual import VisualType
from textual.widgets import Static

from app.text import LINE_LIMIT, PREVIEW_LIMIT, inert, inert_line

if TYPE_CHECKING:
    from textual.app import App

Severity = Literal["information", "warning", "error"]

Part = str | tuple[str, str]
"""A piece of text, or a piece of text and its style (``bold``, ``$text-error``, ``bold $primary``)."""


def content(text: str, style: str = "", *, limit: int = PREVIEW_LIMIT) -> Content:
    """Return *text*, which may be anybody's, as something a widget can show; line breaks stay."""
    safe = inert(text, limit)
    return Content.styled(safe, style) if style else Content(safe)


def line(text: str, style: str = "", *, limit: int = LINE_LIMIT) -> Content:
    """Return *text* as `content` does, on a single line."""
    safe = inert_line(text, limit)
    return Content.styled(safe, style) if style else Content(safe)


def joined(*parts: Part) -> Content:
    """Return several pieces, each made inert, one after the other; line breaks stay."""
    pieces: list[str | tuple[str, str]] = []
    for part in parts:
        if isinstance(part, str):
            pieces.append(inert(part))
        else:
            pieces.append((inert(part[0]), part[1]))
    return Content.assemble(*pieces)


def joined_line(*parts: Part) -> Content:
    """Return several pieces, each made inert and put on one line."""
    pieces: list[str | tuple[str, str]] = []
    for part in parts:
        if isinstance(part, str):
            pieces.append(inert_line(part))
        else:
            pieces.append((inert_line(part[0]), part[1]))
    return Content.assemble(*pieces)


def cell(text: str, style: str = "") -> Text:
    """Return *text* on one line for what takes Rich's text: cells, tree labels."""
    return Text(inert_line(text), style=style, no_wrap=True, overflow="ellipsis")


def say(
    app: App[Any], text: str, severity: Severity = "information", *, timeout: float | None = None
) -> None:
    """Show *text*, which may be anybody's, as a passing notice; `App.notify` alone reads it as markup."""
    app.notify(inert(text, LINE_LIMIT), severity=severity, timeout=timeout, markup=False)


class InertText(Static):
    """A block of text, of as many lines as it takes."""

    DEFAULT_CSS = """
    InertText {
        width: 1fr;
        height: auto;
    }
    """

    def __init__(
        self,
        text: str | Content = "",
        style: str = "",
        *,
        limit: int = PREVIEW_LIMIT,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        self._limit = limit
        super().__init__(self._made(text, style), markup=False, name=name, id=id, classes=classes)

    def _made(self, text: str | Content, style: str = "") -> Content:
        return content(text, style, limit=self._limit) if isinstance(text, str) else text

    @property
    def text(self) -> str:
        """The text as it is shown."""
        return str(self.visual)

    def show(self, text: str | Content, style: str = "") -> None:
        """Show another text; the same text again costs nothing."""
        made = self._made(text, style)
        shown = self.content
        if isinstance(shown, Content) and shown.is_same(made):
            return
        super().update(made)

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        """As `show`, under the name that Textual's own code uses."""
        super().update(self._made(content) if isinstance(content, str) else content, layout=layout)


class InertLine(InertText):
    """A single line of text, cut with an ellipsis where the room ends."""

    DEFAULT_CSS = """
    InertLine {
        width: 1fr;
        height: 1;
        text-wrap: nowrap;
        text-overflow: ellipsis;
    }
    """

    def __init__(
        self,
        text: str | Content = "",
        style: str = "",
        *,
        limit: int = LINE_LIMIT,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(text, style, limit=limit, name=name, id=id, classes=classes)

    def _made(self, text: str | Content, style: str = "") -> Content:
        return line(text, style, limit=self._limit) if isinstance(text, str) else text
