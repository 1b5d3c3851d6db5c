"""A result or a failure: what is long is cut, what is binary described, and all of it can be saved."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Button

from app.tui.screens.save_file import SaveFileScreen
from app.tui.widgets.inert import InertLine, InertText, content, joined
from app.tui.widgets.json_view import dump, load
from app.tui.widgets.result_blocks import Block, read_blocks


class BlockView(Vertical):
    """One piece of a result, with its "Save…"."""

    DEFAULT_CSS = """
    BlockView { height: auto; margin: 0 0 1 0; }
    BlockView > Horizontal { height: 1; }
    BlockView Button { min-width: 9; }
    BlockView Button:focus { background: $primary; color: $background; text-style: bold; }
    BlockView .title { text-style: bold; color: $text-muted; }
    BlockView .text { padding: 0 0 0 2; }
    """

    def __init__(self, block: Block) -> None:
        super().__init__()
        self.block = block

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield InertLine(self.block.title, classes="title")
            if self.block.data is not None:
                yield Button(content("Save…"), compact=True, classes="save")
        yield InertText(self.block.text or "‹empty›", classes="text")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Ask where to save it."""
        event.stop()
        if self.block.data is not None:
            self.app.push_screen(SaveFileScreen(self.block.data, self.block.file_name))


class ResultView(Vertical):
    """A tool's result, whole."""

    DEFAULT_CSS = """
    ResultView { height: auto; border: round $success; border-title-color: $text-success; padding: 0 1; }
    ResultView.bad { border: round $error; border-title-color: $text-error; }
    """

    def __init__(self, result_json: str | None, *, is_error: bool = False) -> None:
        super().__init__()
        self.result_json = result_json
        self.set_class(is_error, "bad")
        self.border_title = "The tool says it failed" if is_error else "Result"

    def compose(self) -> ComposeResult:
        blocks = read_blocks(self.result_json)
        if not blocks:
            yield InertText("‹nothing›", "$text-muted")
        for block in blocks:
            yield BlockView(block)


class FailureView(Vertical):
    """The JSON-RPC error that ended a task."""

    DEFAULT_CSS = """
    FailureView { height: auto; border: round $error; border-title-color: $text-error; padding: 0 1; }
    """

    def __init__(self, error_json: str) -> None:
        super().__init__()
        self.error_json = error_json
        self.border_title = "Failed"

    def compose(self) -> ComposeResult:
        error = load(self.error_json)
        if not isinstance(error, dict):
            yield InertText(self.error_json)
            return
        message = error.get("message")
        yield InertText(
            joined(
                (f"{message if message is not None else '‹no message›'}", "bold"),
                f"\ncode {error.get('code')}",
            )
        )
        if "data" in error:
            yield InertText(joined(("\ndata\n", "$text-muted"), dump(error["data"])))
