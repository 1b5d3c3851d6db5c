"""The controls of a form, made safe: what is pasted is inert, choices are known by their index.

Textual's own inputs keep only the first line of a paste, draw escape sequences raw, and read labels as
markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rich.cells import cell_len, chop_cells
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.document._document import Location
from textual.geometry import Size
from textual.message import Message
from textual.reactive import Reactive, reactive
from textual.widget import Widget
from textual.widgets import Input, OptionList, TextArea
from textual.widgets.option_list import Option

from app.text import inert, inert_line, is_inert
from app.tui.widgets.inert import joined, joined_line

PASTE_LIMIT: Final = 1_000_000
"""Characters of one paste; what is beyond is left out."""

LINE_ENDS: Final = "pasted line ends were \\r\\n, and are sent as \\n"
"""Told of a paste from Windows; says nothing where lines are only what parts the texts."""


class PasteAltered(Message):
    """A paste was not taken to the letter."""

    def __init__(self, control: Widget, how: Sequence[str]) -> None:
        super().__init__()
        self.pasted_into = control
        self.how = tuple(how)
        """What became of it, in words for a person."""

    @property
    def control(self) -> Widget:
        """The control that was pasted into."""
        return self.pasted_into


def taken(pasted: str) -> tuple[str, list[str]]:
    """Return a paste as a control can hold it, and in words what of it that changed."""
    text = line_ends(pasted)
    told = [LINE_ENDS] if "\r\n" in pasted else []
    if not is_inert(text):
        told.append("the paste held control characters; each is sent as a sign that stands for it")
    if len(text) > PASTE_LIMIT:
        told.append(f"the paste was cut after {PASTE_LIMIT:,} characters")
    return inert(text, PASTE_LIMIT), told


class SafeInput(Input):
    """A single line. A paste of several lines is offered to the row, which may turn into a text area.

    Masked, it holds the lines itself, and to the letter: it draws none of them.
    """

    # Textual lays the whole screen out again at each key, for inputs as wide as their text; these are not.
    virtual_size = Reactive(Size(0, 0), layout=False)

    class SeveralLines(Message):
        """Several lines were pasted into a single line."""

        def __init__(self, control: SafeInput, text: str) -> None:
            super().__init__()
            self.input = control
            self.text = text

        @property
        def control(self) -> SafeInput:
            """The input that was pasted into."""
            return self.input

    def _position_to_cell(self, position: int) -> int:
        # Masked, each character takes one cell: a line end and a tab, too.
        return position if self.password else super()._position_to_cell(position)

    def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        self._take(event.text)

    def action_paste(self) -> None:
        """Paste what was copied within the program."""
        self._take(self.app.clipboard)

    def _take(self, pasted: str) -> None:
        line = pasted.strip("\r\n")
        several = "\n" in line or "\r" in line
        text, told = taken(pasted if several else line)
        if not several and line != pasted:
            told.append("the line end of the paste was left out")
        if several and not self.password:
            start, end = sorted(self.selection)
            self.post_message(self.SeveralLines(self, self.value[:start] + text + self.value[end:]))
        else:
            if "\t" in text and not self.password:
                text = text.replace("\t", " ")
                told.append("a pasted tab is sent as a space")
            if self.selection.is_empty:
                self.insert_text_at_cursor(text)
            else:
                self.replace(text, *self.selection)
        if told:
            self.post_message(PasteAltered(self, told))


class SafeTextArea(TextArea):
    """Several lines; Tab leaves it."""

    async def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        text, told = taken(event.text)
        await super()._on_paste(events.Paste(text))
        if told:
            self.post_message(PasteAltered(self, told))

    def action_paste(self) -> None:
        """Paste what was copied within the program."""
        self.post_message(events.Paste(self.app.clipboard))


class MaskedTextArea(SafeTextArea):
    """Several lines of a secret: a dot for each character, and no more told of them than by a masked line.

    Nothing is wrapped, matched or gone over by words: that would show where its words end.
    """

    DEFAULT_CSS = "MaskedTextArea { scrollbar-size-horizontal: 0; }"

    def __init__(self, text: str, *, placeholder: str = "") -> None:
        super().__init__(text, compact=True, soft_wrap=False, placeholder=placeholder)
        self.match_cursor_bracket = False

    def get_line(self, line_index: int) -> Text:
        """Return what is drawn for a line."""
        return Text("•" * len(self.document.get_line(line_index)), end="", no_wrap=True)

    def get_cursor_line_start_location(self, smart_home: bool = False) -> Location:
        """Return the beginning of the line, whatever blanks are there."""
        return super().get_cursor_line_start_location(smart_home=False)

    def get_cursor_word_left_location(self) -> Location:
        """Return the beginning of the line."""
        row, column = self.cursor_location
        return (row, 0) if column else super().get_cursor_word_left_location()

    def get_cursor_word_right_location(self) -> Location:
        """Return the end of the line."""
        row, column = self.cursor_location
        end = len(self.document.get_line(row))
        return (row, end) if column < end else super().get_cursor_word_right_location()

    def action_delete_word_right(self) -> None:
        """Delete the rest of the line."""
        if self.selection.is_empty:
            self._delete_via_keyboard(self.selection.end, self.get_cursor_word_right_location())
        else:
            super().action_delete_word_right()

    def action_cut(self) -> None:
        """Cut what is selected; where nothing is, no line gets into the clipboard unseen."""
        if not self.selection.is_empty:
            super().action_cut()


def line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


async def _take_key(widget: Widget, event: events.Key, actions: Mapping[str, str]) -> None:
    action = actions.get(event.key)
    if action is not None:
        event.stop()
        event.prevent_default()
        await widget.run_action(action)


_INLINE_KEYS: Final = {
    "left": "move(-1)",
    "up": "move(-1)",
    "right": "move(1)",
    "down": "move(1)",
    "space": "pick",
    "enter": "pick",
}
_LIST_KEYS: Final = {
    "up": "cursor_up",
    "down": "cursor_down",
    "home": "first",
    "end": "last",
    "space": "select",
    "enter": "select",
}


class Picked(Message):
    """A person picked an option."""

    def __init__(self, control: Widget, index: int) -> None:
        super().__init__()
        self.picker = control
        self.index = index

    @property
    def control(self) -> Widget:
        """The control in which it was picked."""
        return self.picker


MARK: Final = 4
"""Cells of ``( ) ``."""


@dataclass(frozen=True, slots=True)
class OptionPlace:
    """Where (a line of) an option stands, in cells."""

    index: int
    text: str
    x: int
    y: int
    first: bool = True
    """It begins here, with its mark."""


def option_places(labels: Sequence[str], width: int) -> list[OptionPlace]:
    """Place options beside each other where they fit into *width*, else below; no label is ever cut."""
    places: list[OptionPlace] = []
    x = y = 0
    for index, label in enumerate(labels):
        length = MARK + cell_len(label)
        if x and x + length > width:
            x, y = 0, y + 1
        if length <= width or width <= MARK:
            places.append(OptionPlace(index, label, x, y))
            x += length + 3
            continue
        for number, piece in enumerate(chop_cells(label, width - MARK)):
            places.append(OptionPlace(index, piece, 0, y, first=not number))
            y += 1
        x = 0
    return places


class InlineChoice(Widget):
    """A few short options, on one line where they fit: arrow keys move, Space or Enter or a click picks."""

    DEFAULT_CSS = """
    InlineChoice {
        width: 1fr;
        height: auto;
        text-wrap: nowrap;
    }
    InlineChoice:focus { background: $surface; }
    """
    can_focus = True

    chosen: reactive[int | None] = reactive(None)
    at: reactive[int] = reactive(0)

    def __init__(self, labels: Sequence[str], chosen: int | None = None) -> None:
        super().__init__()
        self.labels = [inert_line(label, 60) for label in labels]
        self.set_reactive(InlineChoice.chosen, chosen)
        self.set_reactive(InlineChoice.at, chosen or 0)

    def render(self) -> Content:
        parts: list[str | tuple[str, str]] = []
        for option in option_places(self.labels, self.size.width):
            style = "bold" if option.index == self.chosen else ""
            if self.has_focus and option.index == self.at:
                style = "bold reverse"
            if option.x == 0:
                parts.append("\n" if parts else "")
            else:
                parts.append("   ")
            mark = "(•)" if option.index == self.chosen else "( )"
            parts.append((f"{mark if option.first else '   '} {option.text}", style))
        return joined(*parts)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return as many lines as the options take."""
        return max((option.y for option in option_places(self.labels, width)), default=0) + 1

    async def on_key(self, event: events.Key) -> None:
        """Take the keys here: as bindings, they would act on whatever has the focus by then."""
        await _take_key(self, event, _INLINE_KEYS)

    def on_focus(self) -> None:
        """Show where the arrow keys are."""
        self.refresh()

    def on_blur(self) -> None:
        """Hide it again."""
        self.refresh()

    def action_move(self, step: int) -> None:
        """Move to a neighbour."""
        self.at = (self.at + step) % len(self.labels)

    def action_pick(self) -> None:
        """Pick where the arrow keys are."""
        self.chosen = self.at
        self.post_message(Picked(self, self.at))

    def on_click(self, event: events.Click) -> None:
        """Pick what was clicked."""
        for option in option_places(self.labels, self.size.width):
            if event.y == option.y and option.x <= event.x < option.x + MARK + cell_len(option.text):
                self.at = option.index
                self.action_pick()
                return


def fits_inline(labels: Sequence[str]) -> bool:
    """Say whether *labels* are few and short enough for one line."""
    return len(labels) <= 4 and sum(cell_len(inert_line(label, 60)) + 7 for label in labels) <= 36


class PickList(OptionList):
    """Options one below the other, for one choice or several: Space, Enter or a click picks."""

    DEFAULT_CSS = """
    PickList {
        height: auto;
        max-height: 8;
        border: none;
        padding: 0;
        background: transparent;
    }
    PickList > .option-list--option-highlighted { background: transparent; }
    PickList:focus > .option-list--option-highlighted { background: $block-cursor-background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("space", "select", "Pick", show=False)]

    def __init__(self, labels: Sequence[str], chosen: set[int], *, several: bool) -> None:
        self.labels = [inert_line(label, 200) for label in labels]
        self.chosen = set(chosen)
        self.several = several
        self._shown = list(range(len(labels)))
        super().__init__(*(Option(self._prompt(index)) for index in self._shown), markup=False, compact=True)

    async def on_key(self, event: events.Key) -> None:
        """Take the keys here: as bindings, they would act on whatever has the focus by then."""
        await _take_key(self, event, _LIST_KEYS)

    def _prompt(self, index: int) -> Content:
        on = index in self.chosen
        mark = ("[x]" if on else "[ ]") if self.several else ("(•)" if on else "( )")
        return joined_line((f"{mark} {self.labels[index]}", "bold" if on else ""))

    def choose(self, chosen: set[int]) -> None:
        """Show these as chosen."""
        changed = self.chosen ^ chosen
        self.chosen = set(chosen)
        for place, index in enumerate(self._shown):
            if index in changed:
                self.replace_option_prompt_at_index(place, self._prompt(index))

    def narrow(self, text: str) -> None:
        """Show only the options that hold *text*, whatever their case."""
        wanted = text.casefold()
        self._shown = [index for index, label in enumerate(self.labels) if wanted in label.casefold()]
        self.set_options([Option(self._prompt(index)) for index in self._shown])

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Turn the place in the list into the index of the choice."""
        event.stop()
        index = self._shown[event.option_index]
        if self.several:
            self.choose(self.chosen ^ {index})
        else:
            self.choose({index})
        self.post_message(Picked(self, index))
