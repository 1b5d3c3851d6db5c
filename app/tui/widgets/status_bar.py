"""The lines above and below the list: servers and their health, what is wrong, and the keys."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual import events
from textual.content import Content
from textual.widget import Widget

from app.text import inert_line
from app.tui.widgets.inert import InertText, Part, joined, joined_line
from app.tui.words import Status, Tone

TONE_STYLES: dict[Tone, str] = {
    "ask": "$text-warning",
    "run": "$text-primary",
    "good": "$text-success",
    "bad": "$text-error",
    "quiet": "$quiet",
}


class StatusBar(Widget):
    """One line: the program's name, each server's health, and how many tasks need the person."""

    DEFAULT_CSS = """
    StatusBar {
        height: 1;
        background: $surface;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._servers: tuple[tuple[str, Status], ...] = ()
        self._need = 0
        self._note = ""

    def show(self, servers: Sequence[tuple[str, Status]], need: int, note: str = "") -> None:
        """Show the servers' health, the number of tasks that need the person, and a word such as
        connecting…
        """
        state = (tuple(servers), need, note)
        if state != (self._servers, self._need, self._note):
            self._servers, self._need, self._note = state
            self.refresh()

    def render(self) -> Content:
        """Draw the line; servers that are well give way first where there is little room."""
        width = self.size.width
        name = " taskinbox  "
        need = f"{self._need:,} need you " if self._need != 1 else "1 needs you "
        if not self._need:
            need = "nothing needs you "
        note = f"{self._note}  " if self._note else ""
        shown = self._fitting(width - len(name) - len(need) - len(note) - 1)
        used = len(name) + sum(cell_len(text) for text, _ in shown) + len(note) + len(need)
        right: Part = (need, "bold $text-warning" if self._need else "$quiet")
        gap = " " * max(1, width - used)
        return joined_line((name, "bold $primary"), *shown, gap, (note, "$quiet"), right)

    def _fitting(self, room: int) -> list[tuple[str, str]]:
        def words(name: str, status: Status) -> tuple[str, str]:
            return f"{status.mark} {inert_line(name, 24)} {status.word}  ", TONE_STYLES[status.tone]

        troubled = [words(*server) for server in self._servers if server[1].tone in ("bad", "ask")]
        others = [words(*server) for server in self._servers if server[1].tone not in ("bad", "ask")]
        in_order = [words(*server) for server in self._servers]
        if sum(cell_len(text) for text, _ in in_order) <= room:
            return in_order
        kept: list[tuple[str, str]] = []
        more = len("+99 more")
        for part in troubled + others:
            if sum(cell_len(text) for text, _ in [*kept, part]) + more > room:
                break
            kept.append(part)
        left_out = len(in_order) - len(kept)
        return [*kept, (f"+{left_out} more", "$quiet")]


class Banner(InertText):
    """What is wrong with the program itself, until it is mended; takes no room while all is well."""

    DEFAULT_CSS = """
    Banner {
        display: none;
        height: auto;
        max-height: 3;
        padding: 0 1;
        background: $error-muted;
        color: $text-error;
    }
    Banner.-shown { display: block; }
    """

    def say(self, text: str | None) -> None:
        """Show *text*; ``None``: all is well again."""
        self.set_class(text is not None, "-shown")
        self.show(joined(("! ", "bold"), text or ""))


class KeyBar(Widget):
    """The keys that do something here, in our own words; a click does the same."""

    DEFAULT_CSS = """
    KeyBar {
        height: 1;
        dock: bottom;
        background: $surface;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._keys: tuple[tuple[str, str, str], ...] = ()
        self._spans: list[tuple[int, int, str]] = []

    def show(self, keys: Sequence[tuple[str, str, str]]) -> None:
        """Show these: key, word, and the action of the screen that the word names, if any."""
        if tuple(keys) != self._keys:
            self._keys = tuple(keys)
            self.refresh()

    def render(self) -> Content:
        """Draw as many as there is room for; the most needed come first."""
        parts: list[Part] = [" "]
        at = 1
        self._spans = []
        for key, word, action in self._keys:
            length = cell_len(key) + 1 + len(word)
            if at + length > self.size.width:
                break
            parts += [(key, "bold $primary"), (f" {word}", "$quiet"), "  "]
            if action:
                self._spans.append((at, at + length, action))
            at += length + 2
        return joined_line(*parts)

    async def on_click(self, event: events.Click) -> None:
        """Do what the word under the pointer says."""
        for start, end, action in self._spans:
            if start <= event.x < end:
                await self.screen.run_action(action)
