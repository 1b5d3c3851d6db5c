"""Asks where to save something, and saves it; never over a file that is there without being told to."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input

from app.text import byte_size
from app.tui.widgets.controls import SafeInput
from app.tui.widgets.inert import InertText, content, say


class SaveFileScreen(ModalScreen[Path | None]):
    """A path to be typed; the result is where it was saved, or ``None``."""

    DEFAULT_CSS = """
    SaveFileScreen { align: center middle; background: $background 60%; }
    SaveFileScreen > Vertical {
        width: 76; max-width: 95%; height: auto; padding: 1 2; background: $panel; border: round $border;
    }
    SaveFileScreen Input { margin: 1 0; }
    SaveFileScreen .problem { color: $text-error; }
    SaveFileScreen Horizontal { height: 1; margin: 1 0 0 0; }
    SaveFileScreen Button { margin: 0 1 0 0; }
    SaveFileScreen Button:focus { background: $primary; color: $background; text-style: bold; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Back")]

    def __init__(self, data: bytes, file_name: str, *, folder: Path | None = None) -> None:
        super().__init__()
        self._data = data
        start = (folder or default_folder()) / file_name
        self._path = SafeInput(str(start), compact=True, select_on_focus=False)
        self._problem = InertText("", classes="problem")
        self._replace_offered: Path | None = None
        self._save = Button(content("Save"), "success", compact=True)
        self._back = Button(content("Back"), compact=True)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield InertText(f"Save {byte_size(len(self._data))} to this file:")
            yield self._path
            yield self._problem
            with Horizontal():
                yield self._save
                yield self._back

    def on_mount(self) -> None:
        """Begin at the path."""
        self._problem.display = False
        self._path.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Another path: an offer to replace the former is void."""
        event.stop()
        self._replace_offered = None
        self._save.label = content("Save")
        self._problem.display = False

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes to the button."""
        event.stop()
        self._save.focus()

    async def on_button_pressed(self, event: Button.Pressed) -> None:
        """Save, or leave."""
        event.stop()
        if event.button is self._back:
            self.dismiss(None)
            return
        try:
            path = typed_path(self._path.value)
            replace = self._replace_offered == path
            await asyncio.to_thread(write_file, path, self._data, replace=replace)
        except FileExistsError:
            self._replace_offered = path
            self._save.label = content("Replace it")
            self._tell("There is already a file of this name.")
        except (OSError, ValueError) as error:
            self._tell(getattr(error, "strerror", None) or str(error))
        else:
            say(self.app, f"Saved {path}")
            self.dismiss(path)

    def _tell(self, text: str) -> None:
        self._problem.display = True
        self._problem.show(text)

    def action_leave(self) -> None:
        """Leave without saving."""
        self.dismiss(None)


def default_folder() -> Path:
    """Return the person's downloads folder where there is one, else the home folder."""
    downloads = Path.home() / "Downloads"
    return downloads if downloads.is_dir() else Path.home()


def typed_path(text: str) -> Path:
    """Return the path that was typed; ``~`` is the home folder. Raises `ValueError`."""
    try:
        return Path(text.strip()).expanduser()
    except RuntimeError as error:
        raise ValueError(str(error)) from error


def write_file(path: Path, data: bytes, *, replace: bool) -> None:
    """Write *data*; raises `FileExistsError` where a file is there and *replace* is not set, or `OSError`."""
    with path.open("wb" if replace else "xb") as file:
        file.write(data)
