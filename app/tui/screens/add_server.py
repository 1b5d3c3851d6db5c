"""Filling in a new server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input

from app.config import ConfigError
from app.tui.widgets.inert import InertLine, InertText, content, say


@dataclass(frozen=True, slots=True)
class NewServer:
    """What was filled in; ``${VAR}`` in the URL and the headers is not expanded."""

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


class AddServer(ModalScreen[NewServer | None]):
    """Name, URL and at most one header. Saving contacts nobody."""

    DEFAULT_CSS = """
    AddServer { align: center middle; background: $background 60%; }
    AddServer #add-box {
        width: 72; max-width: 96%; height: auto; max-height: 96%;
        padding: 0 2; border: round $border; background: $surface; scrollbar-size-vertical: 1;
    }
    AddServer #add-title { text-style: bold; margin-bottom: 1; }
    AddServer Input { height: 1; border: none; padding: 0 1; background: $panel; margin-bottom: 1; }
    AddServer Input:focus {
        border: none; background-tint: $foreground 0%; background: $block-cursor-background;
    }
    AddServer #add-hint { color: $text-muted; }
    AddServer #add-error { color: $text-error; display: none; }
    AddServer #add-error.-shown { display: block; }
    AddServer #add-buttons { height: 1; margin: 1 0; align-horizontal: right; }
    AddServer Button { margin-left: 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Add nothing", id="add.leave"),
        Binding("ctrl+s", "save", "Add it", id="add.save"),
    ]

    def __init__(self, save: Callable[[NewServer], Sequence[str]]) -> None:
        """Take *save*, which stores a server and returns warnings, or raises `ConfigError`."""
        super().__init__()
        self._save = save

    def compose(self) -> ComposeResult:
        """Lay out the fields."""
        with VerticalScroll(id="add-box", can_focus=False):
            yield InertText("Add a server", id="add-title")
            yield InertLine("Name: how you want to call it here")
            yield Input(placeholder="ci", id="add-name")
            yield InertLine("URL of its MCP endpoint")
            yield Input(placeholder="https://ci.example.com/mcp", id="add-url")
            yield InertLine("Header, where it needs one")
            yield Input(placeholder="Authorization", id="add-header")
            yield InertLine("Value of the header")
            yield Input(placeholder="Bearer ${CI_TOKEN}", id="add-value")
            yield InertText(
                "${NAME} is taken from the environment when connecting: a secret written so is never stored.",
                id="add-hint",
            )
            yield InertText(id="add-error")
            with Horizontal(id="add-buttons"):
                yield Button(content("Leave it"), id="add-leave", compact=True)
                yield Button(content("Add  ^S"), variant="primary", id="add-save", compact=True)

    def _typed(self, field_id: str) -> str:
        return self.query_one(f"#add-{field_id}", Input).value.strip()

    def action_save(self) -> None:
        """Store it, or say beside the fields why not."""
        name, url, header = (self._typed(field_id) for field_id in ("name", "url", "header"))
        value = self._typed("value")
        if bool(header) != bool(value):
            self._refuse("A header needs both a name and a value.")
            return
        new = NewServer(name, url, {header: value} if header else {})
        try:
            warnings = self._save(new)
        except ConfigError as error:
            self._refuse(str(error))
            return
        say(self.app, "\n".join((f"Added {name}.", *warnings)), "warning" if warnings else "information")
        self.dismiss(new)

    def _refuse(self, why: str) -> None:
        error = self.query_one("#add-error", InertText)
        error.show(f"✗ {why}")
        error.add_class("-shown")
        error.scroll_visible(animate=False)

    def action_leave(self) -> None:
        """Add nothing."""
        self.dismiss(None)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes to the next field, and saves from the last one."""
        if event.input.id == "add-value":
            self.action_save()
        else:
            self.focus_next()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Save or leave."""
        event.stop()
        if event.button.id == "add-save":
            self.action_save()
        else:
            self.action_leave()
