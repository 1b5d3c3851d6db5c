"""The sections and how many tasks each holds."""

from __future__ import annotations

from collections.abc import Mapping

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from app.tui.widgets.inert import Part, joined_line
from app.tui.words import SECTION_NAMES
from storage.records import SECTIONS, Section


class SectionTabs(Widget):
    """One line of section names; a click chooses one. It never has the focus: keys work from anywhere."""

    DEFAULT_CSS = """
    SectionTabs {
        height: 1;
        background: $surface;
    }
    """

    class Chosen(Message):
        """The person clicked a section."""

        def __init__(self, section: Section) -> None:
            super().__init__()
            self.section = section

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._counts: Mapping[Section, int] = {}
        self._active: Section = "needs-you"
        self._spans: list[tuple[int, int, Section]] = []

    @property
    def counts(self) -> Mapping[Section, int]:
        """How many tasks each section holds, as shown."""
        return self._counts

    def show(self, counts: Mapping[Section, int], active: Section) -> None:
        """Show these counts, and this section as the open one."""
        if (counts, active) != (self._counts, self._active):
            self._counts, self._active = dict(counts), active
            self.refresh()

    def render(self) -> Content:
        """Draw the line, and note what stands where for the mouse."""
        parts: list[Part] = []
        self._spans = []
        at = 0
        for section in SECTIONS:
            count = self._counts.get(section, 0)
            label = f" {SECTION_NAMES[section]}{f' {count:,}' if count else ''} "
            if parts:
                parts.append(("│", "$faint"))
                at += 1
            parts.append((label, self._style(section, count)))
            self._spans.append((at, at + len(label), section))
            at += len(label)
        return joined_line(*parts)

    def _style(self, section: Section, count: int) -> str:
        if section == self._active:
            return "bold $block-cursor-foreground on $block-cursor-background"
        if section == "needs-you" and count:
            return "bold $text-warning"
        return "$foreground" if count else "$faint"

    def on_click(self, event: events.Click) -> None:
        """Choose the section under the pointer."""
        for start, end, section in self._spans:
            if start <= event.x < end:
                self.post_message(self.Chosen(section))
