"""The servers: how each is, and adding, testing and removing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import OptionList

from app.config import ConfigError
from app.engine.commands import EngineError, ServerReport
from app.text import inert_line, plural
from app.tui.columns import fit
from app.tui.screens.add_server import AddServer, NewServer
from app.tui.screens.confirm import Confirm
from app.tui.widgets.inert import InertLine, InertText, Part, joined, joined_line, say
from app.tui.widgets.status_bar import TONE_STYLES, KeyBar
from app.tui.words import NO_SERVERS, server_health
from storage.errors import StorageError

if TYPE_CHECKING:
    from app.tui.app import InboxApp


class ServersScreen(Screen[None]):
    """A list of the servers file's entries; what was found about the highlighted one stands below it."""

    CSS = """
    ServersScreen #servers-title { background: $surface; padding: 0 1; }
    ServersScreen #servers-list { height: 1fr; border: none; padding: 0; background: $background;
        text-wrap: nowrap; text-overflow: ellipsis; }
    ServersScreen #servers-list:focus { background-tint: $foreground 0%; }
    ServersScreen #servers-none { display: none; padding: 1 2; height: 1fr; }
    ServersScreen.-empty #servers-list { display: none; }
    ServersScreen.-empty #servers-none { display: block; }
    ServersScreen #servers-about {
        height: auto; max-height: 50%; min-height: 5; padding: 0 1;
        border-top: solid $border-blurred; scrollbar-size-vertical: 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "Back to the inbox", id="servers.back"),
        Binding("a", "add", "Add a server", id="servers.add"),
        Binding("t,enter", "test", "Test it", id="servers.test"),
        Binding("d,delete", "remove", "Remove it…", id="servers.remove"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._entries: list[tuple[str, str]] = []
        self._found: dict[str, Content] = {}
        """What the tests of this visit found, by server."""

    @property
    def inbox_app(self) -> InboxApp:
        """The app this screen is part of."""
        return cast("InboxApp", self.app)

    def compose(self) -> ComposeResult:
        """Lay out the list and what is known of the highlighted server."""
        yield InertLine(joined_line(("Servers", "bold $primary")), id="servers-title")
        yield OptionList(id="servers-list")
        yield InertText(id="servers-none")
        with VerticalScroll(id="servers-about", can_focus=False):
            yield InertText(id="servers-report")
        yield KeyBar()

    def on_mount(self) -> None:
        """Show the servers file."""
        self.query_one(KeyBar).show(
            (
                ("a", "add", "add"),
                ("t", "test", "test"),
                ("d", "remove", "remove"),
                ("esc", "back to the inbox", "back"),
            )
        )
        self.refresh_servers()
        self.set_focus(self.query_one(OptionList))

    def tick(self) -> None:
        """Let the ages go on, and show what the engine has learned meanwhile."""
        self.refresh_servers()

    def refresh_servers(self, highlight: str | None = None) -> None:
        """Read the servers file and what is known of each server again; the highlight stays on its server."""
        chosen = highlight or self.chosen
        nothing = joined((NO_SERVERS[0], "bold"), "\nPress a to add one.")
        file = self.inbox_app.servers_file
        try:
            self._entries = list(file.list()) if file is not None else []
        except ConfigError as error:
            self._entries = []
            nothing = joined(("The servers file can't be read.", "bold $text-error"), f"\n{error}")
        lines = self._lines()
        self.set_class(not lines, "-empty")
        self.query_one("#servers-none", InertText).show(nothing)
        options = self.query_one(OptionList)
        if [str(options.get_option_at_index(i).prompt) for i in range(options.option_count)] != [
            str(line) for line in lines
        ]:
            options.clear_options().add_options(lines)
        names = [name for name, _ in self._entries]
        if lines and (options.highlighted is None or chosen != self.chosen):
            options.highlighted = names.index(chosen) if chosen in names else 0
        self._show_about()

    def _lines(self) -> list[Content]:
        known = {record.name: record for record in self.inbox_app.reader.servers()}
        now = self.inbox_app.clock()
        width = max((cell_len(inert_line(name, 24)) for name, _ in self._entries), default=0)
        lines = []
        for name, url in self._entries:
            health = server_health(known.get(name), now, self.inbox_app.observing(name))
            lines.append(
                joined_line(
                    (f" {health.mark} ", TONE_STYLES[health.tone]),
                    (fit(inert_line(name, 24), width), "bold"),
                    (f"  {fit(health.word, 22)}  ", TONE_STYLES[health.tone]),
                    url,
                )
            )
        return lines

    @property
    def chosen(self) -> str | None:
        """The highlighted server's name."""
        line = self.query_one(OptionList).highlighted
        return self._entries[line][0] if line is not None and line < len(self._entries) else None

    def on_option_list_option_highlighted(self) -> None:
        """Show what is known of it."""
        self._show_about()

    def on_option_list_option_selected(self) -> None:
        """Enter or a click: test it."""
        self.action_test()

    def _show_about(self) -> None:
        name = self.chosen
        report = self.query_one("#servers-report", InertText)
        if name is None:
            report.show("")
        elif name in self._found:
            report.show(self._found[name])
        else:
            record = next((r for r in self.inbox_app.reader.servers() if r.name == name), None)
            parts: list[Part] = [(name, "bold")]
            if record is not None and record.message:
                parts.append(f"\n{record.message}")
            report.show(joined(*parts, ("\nPress t to contact it and see what it is.", "$quiet")))

    def action_back(self) -> None:
        """Go back to the inbox."""
        self.dismiss(None)

    def action_add(self) -> None:
        """Fill in a new server."""
        self.app.push_screen(AddServer(self._save), self._added)

    def _save(self, new: NewServer) -> tuple[str, ...]:
        file = self.inbox_app.servers_file
        if file is None:
            raise ConfigError("There is no servers file here.")
        if any(name == new.name for name, _ in file.list()):
            raise ConfigError(f"There is a server named {new.name} already; remove it first.")
        return tuple(file.add(new.name, new.url, new.headers))

    def _added(self, new: NewServer | None) -> None:
        if new is not None:
            self.refresh_servers(new.name)
            self.inbox_app.start(self._reload(), "servers")

    async def _reload(self) -> None:
        self.inbox_app.reread_servers()
        if self.inbox_app.engine is not None:
            await self.inbox_app.engine.reload_servers()

    def action_remove(self) -> None:
        """Remove the highlighted server, after a confirmation."""
        name = self.chosen
        if name is not None:
            self.inbox_app.start(self._remove(name, dict(self._entries)[name]), "servers")

    async def _remove(self, name: str, url: str) -> None:
        words = "Its tasks are no longer watched; our records of them stay. Adding it again takes them up."
        question = Confirm(
            "Remove this server?", (("server", name), ("url", url)), words, keep="Keep it", act="Remove it"
        )
        if not await self.app.push_screen_wait(question):
            return
        file = self.inbox_app.servers_file
        try:
            if file is not None:
                file.remove(name)
        except ConfigError as error:
            say(self.app, str(error), "error", timeout=10)
            return
        self._found.pop(name, None)
        await self._reload()
        say(self.app, f"Removed {name}.")
        if self.is_running:
            self.refresh_servers()

    def action_test(self) -> None:
        """Contact the highlighted server, and say what it is."""
        name = self.chosen
        if name is not None:
            self.inbox_app.start(self._test(name), "servers")

    async def _test(self, name: str) -> None:
        engine = self.inbox_app.engine
        if engine is None:
            say(self.app, self.inbox_app.no_engine_words, "warning")
            return
        self._report(name, joined((name, "bold"), ("\nContacting it…", "$quiet")))
        try:
            report = await engine.test_server(name)
        except (EngineError, StorageError) as error:
            self._report(name, joined((name, "bold"), ("\n✗ ", "$text-error"), f"{error}"))
        else:
            self._report(name, report_words(report))

    def _report(self, name: str, words: Content) -> None:
        self._found[name] = words
        if self.is_running:
            self._show_about()


def report_words(report: ServerReport) -> Content:
    """Return what a test found, for a person; every string in it is the server's."""
    parts: list[Part] = [(report.name, "bold"), ("  ✓ ", "$text-success"), report.title, "\n"]
    parts.append(f"protocol {', '.join(report.versions) or '(not said)'} · {plural(report.tools, 'tool')} · ")
    parts.append("has tasks" if report.has_tasks else ("has no tasks: calls end at once", "$text-warning"))
    for warning in report.warnings:
        parts.append((f"\n! {warning}", "$text-warning"))
    if report.instructions:
        parts += [("\nIt says of itself: ", "$quiet"), report.instructions]
    return joined(*parts)
