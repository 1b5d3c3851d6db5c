"""The keys, and the words a person meets."""

from __future__ import annotations

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen

from app.tui.widgets.inert import InertLine, InertText, joined, joined_line

KEYS: Final = (
    ("The list", ""),
    ("↑ ↓  k j", "move; also Page up, Page down, Home, End"),
    ("1 to 5", "the sections; also ← →"),
    ("Enter", "open the task"),
    ("a", "answer: go to its first open question"),
    ("Space  A", "mark tasks that ask the same; answer all marked together"),
    ("c", "cancel the task, after asking you"),
    ("e", "archive it, or bring it back"),
    ("f", "forget it: delete our record, after asking you"),
    ("r", "look at it now"),
    ("/", "filter by server, tool, id or message; Escape clears"),
    ("n", "call a tool"),
    ("s", "servers: add, test, remove"),
    ("Ctrl+P", "every command by name; themes, too"),
    ("R", "connect again, or watch again, after a failure"),
    ("q", "quit; tasks go on at their servers"),
    ("[ ]", "the task: overview, timeline, JSON"),
    ("A question", ""),
    ("Tab", "the next field; Shift+Tab the one before"),
    ("Ctrl+S", "accept: send what is filled in"),
    ("Ctrl+Z  Ctrl+Y", "undo, over all fields of the form; redo"),
    ("Ctrl+G", "write a text in your own editor (VISUAL or EDITOR)"),
    ("PageDown", "read a long question on, PageUp back"),
    ("Ctrl+O", "show exactly what Accept would send"),
    ("Ctrl+L", "saved replies to this question: they fill in the form, and send nothing"),
    ("Ctrl+R  Ctrl+N", "a field: back to untouched; null, where that is an answer"),
    ("Escape", "back to the list; what you typed is kept"),
)
WORDS: Final = (
    ("Needs you", "a task, or a call not yet a task, with at least one open question"),
    ("Running", "being worked on, or all its questions answered"),
    ("Finished", "completed, failed or cancelled"),
    ("Lost", "the server no longer knows it, or it can't be read; our record stays"),
    ("Archived", "put away by you; new activity brings it back"),
    ("Accept", "send your answer"),
    ("Decline", "tell the server that you refuse"),
    ("Dismiss", "tell the server that you do not choose; the task itself goes on"),
    ("Cancel task", "ask the server to stop the work; it may still complete"),
    ("time left", "before the server may forget the task"),
)


class Help(ModalScreen[None]):
    """Keys and words; any of Escape, q and ? closes it."""

    DEFAULT_CSS = """
    Help { align: center middle; background: $background 60%; }
    Help > Vertical {
        width: 84; max-width: 96%; height: auto; max-height: 94%;
        border: round $border; background: $surface; padding: 0 1;
    }
    Help VerticalScroll { height: auto; max-height: 100%; scrollbar-size-vertical: 1; }
    Help InertText { width: 1fr; }
    Help #help-close { color: $quiet; margin-top: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "close", "Close", id="help.close")
    ]

    def compose(self) -> ComposeResult:
        """Lay out both tables."""
        with Vertical(), VerticalScroll():
            for key, words in KEYS:
                if words:
                    yield InertText(joined((f"  {key:<15}", "bold $primary"), words))
                else:
                    yield InertLine(joined_line((key, "bold")))
            yield InertLine(joined_line(("Words", "bold")))
            for word, meaning in WORDS:
                yield InertText(joined((f"  {word:<13}", "bold $primary"), meaning))
            yield InertLine("Escape closes this.", id="help-close")

    def on_mount(self) -> None:
        """Let the arrow keys scroll."""
        self.query_one(VerticalScroll).focus()

    def action_close(self) -> None:
        """Go back."""
        self.dismiss(None)
