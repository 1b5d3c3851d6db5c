"""Calls a tool: pick a server, pick a tool, fill in its arguments, run it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Button, Input, OptionList, Select
from textual.widgets.option_list import Option

from app.engine.commands import CallOutcome, Engine, EngineError, ToolInfo, ToolListing
from app.text import plural
from app.tui.messages import OpenTask
from app.tui.widgets.controls import SafeInput
from app.tui.widgets.form_fields import FormFields
from app.tui.widgets.host import host_of, in_background, is_alive
from app.tui.widgets.inert import InertLine, InertText, Part, content, joined, joined_line, line, say
from app.tui.widgets.raw_form import form_of
from app.tui.widgets.result_view import FailureView, ResultView
from app.tui.widgets.status_bar import KeyBar
from storage.records import TaskKey

WIDE = 100
"""Columns from which the list of tools stands beside the form."""


_KEYS = (
    ("esc", "back", "back"),
    ("tab", "next", "app.focus_next"),
    ("⏎", "choose", ""),
    ("^S", "run", "run"),
    ("^R", "reset field", ""),
)


class CallScreen(Screen[None]):
    """The whole way from a server to a call's outcome, on one screen."""

    CSS_PATH = "call_tool.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 - Textual's own declaration
    AUTO_FOCUS = "#servers"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Back", id="call.back"),
        Binding("ctrl+s", "run", "Run", id="call.run"),
    ]

    def __init__(self, servers: Sequence[str] | None = None, server: str | None = None) -> None:
        super().__init__()
        self._given = servers
        self._server_asked_for = server
        self.names: list[str] = []
        self.server: str | None = None
        self.tools: tuple[ToolInfo, ...] = ()
        self.tool: ToolInfo | None = None
        self.fields: FormFields | None = None
        self.outcome: CallOutcome | None = None
        self.running = False
        self._shown: list[int] = []
        self._leaving = False
        self._filter = SafeInput(compact=True, placeholder="find a tool", id="find")
        self._list = OptionList(id="tools", compact=True)
        self._words = InertText("", id="words")
        self._about = InertText("", id="about", limit=4000)
        self._form = VerticalScroll(id="form", can_focus=False)
        self._status = InertText("", id="outcome-words")
        self._outcome = VerticalScroll(id="outcome", can_focus=False)
        self._run = Button(content("Run ^S"), "success", compact=True, id="run")
        self._open = Button(content("Open it"), "primary", compact=True, id="open")
        self._back = Button(content("Back"), compact=True, id="back")
        self._keys = KeyBar()
        self._keys.show(_KEYS)

    def compose(self) -> ComposeResult:
        yield InertLine("Call a tool", "bold", id="title")
        with Horizontal(id="pick"):
            yield InertText("Server", id="server-label")
            yield Select[int]([], prompt="choose a server", id="servers", compact=True)
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield self._filter
                yield self._words
                yield self._list
            with Vertical(id="right"):
                yield self._about
                yield self._form
                yield self._status
                yield self._outcome
                with Horizontal(id="buttons"):
                    yield self._run
                    yield self._open
                    yield self._back
        yield self._keys

    def on_mount(self) -> None:
        """List the servers; with one alone, its tools at once."""
        self.names = self._server_names()
        select = self._select
        # The index is the value: a name may be anything.
        select.set_options([(line(name), index) for index, name in enumerate(self.names)])
        self._open.display = self._run.display = self._filter.display = False
        if not self.names:
            self._say_words("There is no server yet. Leave with Escape and press s to add one.")
            return
        wanted = self._server_asked_for or (self.names[0] if len(self.names) == 1 else None)
        if wanted is not None and wanted in self.names:
            select.value = self.names.index(wanted)
        else:
            self._say_words("Choose a server above; its tools come here.")

    @property
    def _select(self) -> Select[int]:
        return cast("Select[int]", self.query_one("#servers", Select))

    def _server_names(self) -> list[str]:
        if self._given is not None:
            return list(self._given)
        configured: Callable[[], Sequence[str]] | None = getattr(self.app, "server_names", None)
        names = list(configured()) if configured is not None else []
        return names or [record.name for record in host_of(self).reader.servers()]

    def _engine(self) -> Engine | None:
        engine = host_of(self).engine
        if engine is None:
            say(self.app, "Still connecting: try again in a moment.", "warning")
        return engine

    # tools

    def on_select_changed(self, event: Select.Changed) -> None:
        """Another server: its tools."""
        event.stop()
        if not isinstance(event.value, int) or isinstance(event.value, bool):
            return
        self.server = self.names[event.value]
        self.tools = ()
        self._show_tools("")
        self._choose(None)
        self._load_tools()

    def _load_tools(self) -> None:
        engine = host_of(self).engine
        if engine is None:
            # The program has only just started: as soon as it is connected.
            self._say_words("Connecting…")
            self.set_timer(0.2, self._load_tools)
            return
        if self.server is not None:
            self._say_words(f"Asking {self.server} for its tools…")
            self.run_worker(
                self._list_tools(engine, self.server), group="tools", exclusive=True, exit_on_error=False
            )

    async def _list_tools(self, engine: Engine, server: str) -> None:
        try:
            listing = await engine.tools(server)
        except EngineError as error:
            if server == self.server:
                self._say_words(f"✗ {error.message}")
            return
        if server == self.server:
            self._take_tools(listing)

    def _take_tools(self, listing: ToolListing) -> None:
        self.tools = listing.tools
        lines = [plural(len(listing.tools), "tool"), *(f"! {warning}" for warning in listing.warnings)]
        self._say_words("\n".join(lines) if self.tools else "This server has no tools.")
        self._filter.display = len(self.tools) > 8
        self._show_tools(self._filter.value)
        if self.focused is self._select and self.tools:
            self._list.focus()

    def _say_words(self, text: str) -> None:
        self._words.show(text, "$text-muted")

    def _show_tools(self, wanted: str) -> None:
        wanted = wanted.casefold()
        self._shown = [
            index
            for index, tool in enumerate(self.tools)
            if wanted in f"{tool.name}\n{tool.title or ''}\n{tool.description or ''}".casefold()
        ]
        self._list.set_options([Option(_tool_line(self.tools[index])) for index in self._shown])
        self._list.highlighted = 0 if self._shown else None

    def on_key(self, event: events.Key) -> None:
        """Letters typed on the list find a tool."""
        if self.focused in (self._list, self._filter) and event.is_printable and self.tools:
            event.stop()
            event.prevent_default()
            self._filter.display = True
            self.set_focus(self._filter)
            self._filter._forward_event(events.Key(event.key, event.character))

    def on_input_changed(self, event: Input.Changed) -> None:
        """Narrow the list to what is typed above it."""
        if event.input is self._filter:
            self._show_tools(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in the filter goes to the list."""
        if event.input is self._filter:
            self._list.focus()

    async def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """A tool was chosen: its form."""
        if event.option_list is self._list and not self.running:
            fields = self._choose(self.tools[self._shown[event.option_index]])
            if fields is not None:
                await self._form.mount(fields)
                if not fields.focus_first():
                    self._run.focus()

    def _choose(self, tool: ToolInfo | None) -> FormFields | None:
        self.tool = tool
        self.outcome = None
        self._form.remove_children()
        self._outcome.remove_children()
        self._say("")
        self._open.display = False
        self._run.display = tool is not None
        self.set_class(tool is not None, "-chosen")
        self.fields = None
        if tool is None:
            self._about.show("")
            return None
        self._about.show(_about(tool))
        self.fields = FormFields(form_of(tool.input_schema))
        return self.fields

    # running

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Run, open what came of it, or leave."""
        if event.button is self._run:
            self.action_run()
        elif event.button is self._open:
            self._go_to_outcome()
        elif event.button is self._back:
            self.dismiss(None)

    def action_run(self) -> None:
        """Call the tool, once, if its arguments are valid."""
        if self.running or self.server is None or self.tool is None or self.fields is None:
            return
        filled = self.fields.judge()
        if filled is None:
            self._say("Not called: see what is marked with ✗.", "$text-error")
            return
        engine = self._engine()
        if engine is None:
            return
        self._set_running(True)
        self._open.display = False
        self._outcome.remove_children()
        self._say(f"Calling {self.tool.name} on {self.server}…")
        work = self._call(engine, self.server, self.tool.name, filled.content_json)
        # For the app, not for this screen: the call goes on when somebody leaves.
        in_background(self.app, work, group="calls")

    async def _call(self, engine: Engine, server: str, tool: str, arguments_json: str) -> None:
        app = self.app
        try:
            outcome = await engine.call(server, tool, arguments_json, on_progress=self._progress)
        except EngineError as error:
            if is_alive(self):
                self._set_running(False)
                self._say(f"✗ {error.message}", "$text-error")
            else:
                say(app, error.message, "error")
            return
        if is_alive(self):
            self._set_running(False)
            self._show_outcome(outcome)
        else:
            say(app, _outcome_words(outcome)[0])

    def _progress(self, text: str) -> None:
        if is_alive(self) and self.running:
            self._say(text)

    def _set_running(self, running: bool) -> None:
        self.running = running
        self._run.disabled = running
        self._list.disabled = running
        self._select.disabled = running
        if self.fields is not None:
            for row in self.fields.rows:
                row.freeze(running)

    def _show_outcome(self, outcome: CallOutcome) -> None:
        self.outcome = outcome
        words, style = _outcome_words(outcome)
        self._say(words, style)
        self._outcome.remove_children()
        if outcome.result_json is not None:
            bad = '"isError": true' in outcome.result_json or '"isError":true' in outcome.result_json
            self._outcome.mount(ResultView(outcome.result_json, is_error=bad))
        if outcome.error_json is not None:
            self._outcome.mount(FailureView(outcome.error_json))
        self._open.label = content("Answer its questions" if outcome.kind == "input_required" else "Open it")
        self._open.display = True
        # Enter goes on from here, and a key in flight does nothing worse than to show the task.
        self._open.focus()

    def _go_to_outcome(self) -> None:
        if self.outcome is not None:
            key: TaskKey = self.outcome.key
            self.app.post_message(OpenTask(key))

    def _say(self, text: str, style: str = "") -> None:
        self._status.display = bool(text)
        self._status.show(text, style)

    def action_back(self) -> None:
        """Leave; typed arguments are given up only by a second press."""
        typed = self.fields is not None and bool(self.fields.entries) and self.outcome is None
        if typed and not self.running and not self._leaving:
            self._leaving = True
            self._say("Escape again to leave: what you typed here is not kept.", "$text-warning")
            return
        self.dismiss(None)

    def on_form_fields_changed(self, event: FormFields.Changed) -> None:
        """Something is typed: leaving asks again."""
        event.stop()
        self._leaving = False

    def on_descendant_blur(self, _event: events.DescendantBlur) -> None:
        """Keep the chosen tool in sight where its list shrinks to a line."""
        self.call_after_refresh(self._list.scroll_to_highlight)


def _tool_line(tool: ToolInfo) -> Content:
    title = f"  {tool.title}" if tool.title and tool.title != tool.name else ""
    return joined_line((tool.name, "bold"), (title, "$text-muted"))


def _about(tool: ToolInfo) -> Content:
    parts: list[Part] = [(tool.name, "bold")]
    if tool.title and tool.title != tool.name:
        parts.append(f"  {tool.title}")
    if tool.description:
        parts.append((f"\n{tool.description}", "$text-muted"))
    claims = [
        words
        for name, words in (("destructiveHint", "may destroy"), ("readOnlyHint", "only reads"))
        if tool.annotations.get(name) is True
    ]
    if claims:
        parts.append((f"\nThe server says: {', '.join(claims)}.", "$text-warning"))
    return joined(*parts)


def _outcome_words(outcome: CallOutcome) -> tuple[str, str]:
    known = {
        "task": ("✓ It is a task now, and goes on by itself.", "$text-success"),
        "complete": ("✓ Done.", "$text-success"),
        "input_required": ("! It asks something before it begins.", "$text-warning"),
        "failed": ("✗ The server refused the call.", "$text-error"),
        "unknown": (
            "? No reply came: whether it ran is not known. You decide in the inbox.",
            "$text-warning",
        ),
    }
    words, style = known[outcome.kind]
    return (f"{words} {outcome.message}" if outcome.message else words), style
