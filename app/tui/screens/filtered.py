"""A screen with a list that can be filtered: the line to type in, and what its keys do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.screen import Screen

if TYPE_CHECKING:
    from app.tui.widgets.filter_bar import FilterBar


class FilteredScreen(Screen[None]):
    """Keeps what is typed; the screen below it shows what matches."""

    def __init__(self) -> None:
        super().__init__()
        self.filter_text = ""
        self._filter: FilterBar | None = None

    def show_filtered(self) -> None:
        """Show what matches `filter_text`."""
        raise NotImplementedError

    def focus_list(self) -> None:
        """Give the list the focus."""
        raise NotImplementedError

    def action_filter(self) -> None:
        """Type a filter."""
        bar = self.make_filter()
        bar.display = True
        if bar.input.is_attached:
            # At once: the next letter may be here already, and is not a command.
            self.set_focus(bar.input)
        else:
            bar.call_after_refresh(bar.input.focus)

    def prepare_filter(self) -> None:
        """Make the filter's line before it is wanted, so that it takes the first letter at once."""
        if self.query_one("#left").is_mounted:
            self.make_filter()

    def make_filter(self) -> FilterBar:
        """Return the filter's line; made after the first paint, so that it is there when it is wanted."""
        if self._filter is None:
            from app.tui.widgets.filter_bar import FilterBar

            self._filter = FilterBar()
            self._filter.display = False
            self.query_one("#left").mount(self._filter, before=0)
        return self._filter

    def on_filter_bar_typed(self, message: FilterBar.Typed) -> None:
        """Show what matches."""
        if message.text != self.filter_text:
            self.filter_text = message.text
            self.show_filtered()

    def on_filter_bar_done(self) -> None:
        """Go on to what was found."""
        self.focus_list()
        if not self.filter_text:
            self.clear_filter()

    def clear_filter(self) -> None:
        """Show everything again."""
        if self._filter is not None:
            self._filter.display = False
            self._filter.input.value = ""
        if self.filter_text:
            self.filter_text = ""
            self.show_filtered()
