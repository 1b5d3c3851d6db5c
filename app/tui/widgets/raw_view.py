"""What was sent and received, as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, TextArea

from app.text import inert
from app.tui.screens.save_file import SaveFileScreen
from app.tui.widgets.inert import InertLine, content
from app.tui.widgets.json_view import dump, load
from storage.records import QuestionRecord, TaskRecord


def raw_text(record: TaskRecord, questions: Sequence[QuestionRecord]) -> str:
    """Return all JSON of a task as one JSON text."""

    def value(text: str | None) -> object:
        loaded = load(text)
        return text if loaded is None else loaded

    state = record.state
    whole: dict[str, object] = {
        "request": {"method": record.method, "params": value(record.params_json)},
    }
    for name, text in (("lastReply", state.snapshot_json), ("result", state.result_json)):
        if text is not None:
            whole[name] = value(text)
    if state.error_json is not None:
        whole["error"] = value(state.error_json)
    whole["questions"] = [
        {
            "key": question.key,
            "state": question.state,
            "request": value(question.request_json),
            "response": value(question.response_json),
        }
        for question in questions
    ]
    return dump(whole)


class RawView(Vertical):
    """One JSON text to be read, searched by eye, copied and saved."""

    DEFAULT_CSS = """
    RawView { height: 1fr; }
    RawView > Horizontal { height: 1; }
    RawView TextArea { height: 1fr; background: $background; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._text = ""
        self._area = TextArea("", read_only=True, compact=True, show_line_numbers=False)
        self._head = InertLine("")

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield self._head
            yield Button(content("Save…"), compact=True)
        yield self._area

    def show(self, record: TaskRecord, questions: Sequence[QuestionRecord]) -> None:
        """Show the JSON of this task; the same again costs nothing and scrolls nowhere."""
        text = raw_text(record, questions)
        if text == self._text:
            return
        self._text = text
        self._head.show("Everything sent and received, but for typed secrets", "$text-muted")
        self._area.load_text(inert(text))

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Save all of it, however long."""
        event.stop()
        data = self._text.encode("utf-8", "backslashreplace")
        self.app.push_screen(SaveFileScreen(data, "task.json"))
