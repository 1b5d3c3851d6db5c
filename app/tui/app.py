"""The program: it draws the inbox from the store, then opens the engine behind it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from app.config import NONE, Abilities
from app.engine.commands import Changes, Engine, EngineFactory
from app.tui import messages
from app.tui.actions import TaskActions
from app.tui.engine_link import EngineLink
from app.tui.leaving import LeavesSafely
from app.tui.screens.inbox import InboxScreen
from app.tui.screens.kept_true import Shows, Ticks
from app.tui.servers_file import ServersFile
from app.tui.theme import DARK, LIGHT, THEMES, VARIABLES
from app.tui.widgets.inert import say
from storage.errors import StorageError
from storage.records import Reader, TaskKey

log = logging.getLogger(__name__)


def wall_clock() -> int:
    """Return the time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class InboxApp(LeavesSafely):
    """One inbox. Screens read `reader` and act through `engine`; `changed` tells them what to read again."""

    TITLE = "taskinbox"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("R", "reconnect", "Connect again", id="app.reconnect", show=False),
    ]

    def __init__(
        self,
        reader: Reader,
        connect: EngineFactory,
        servers_file: ServersFile | None = None,
        *,
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        super().__init__()
        self.reader = reader
        self.servers_file = servers_file
        self.clock = clock
        self.actions = TaskActions(self)
        self.inbox = InboxScreen()
        self._link = EngineLink(self, connect, self._on_changes)
        self._servers: dict[str, str] = {}
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = DARK.name

    @property
    def engine(self) -> Engine | None:
        """The engine; ``None`` until it is open."""
        return self._link.engine

    @property
    def no_engine_words(self) -> str:
        """What to tell a person whose action needs the engine while there is none."""
        return self._link.absence

    def observing(self, server: str) -> str:
        """Say how a server's tasks are observed: ``subscribed``, ``polling``; empty: they are not, just
        now."""
        return self._link.observing(server)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return our own colours, for themes that have none of them."""
        return VARIABLES

    def get_default_screen(self) -> Screen[Any]:
        """Return the inbox: it is the screen below all others."""
        return self.inbox

    def on_mount(self) -> None:
        """Draw the inbox; only after its first paint open what talks to the network."""
        self.set_interval(1.0, self._tick)
        self.inbox.call_after_refresh(self._open_engine)

    def _tick(self) -> None:
        if self.leaving:
            return
        screen = self.screen
        if screen.is_mounted and isinstance(screen, Ticks):
            screen.tick()

    def abilities(self, server: str) -> Abilities:
        """Return what a server may ask beside elicitations, as the servers file says now."""
        return NONE if self.servers_file is None else self.servers_file.abilities(server)

    def server_names(self) -> list[str]:
        """Return the servers of the servers file, as last read."""
        return list(self._servers)

    def server_url(self, server: str) -> str | None:
        """Return a server's address in the servers file, as last read; ``None``: it has none there."""
        if not self._servers:
            self.reread_servers()
        return self._servers.get(server)

    def reread_servers(self) -> None:
        """Read the servers file's names again."""
        if self.servers_file is not None:
            from app.config import ConfigError

            try:
                self._servers = dict(self.servers_file.list())
            except ConfigError as error:
                self.inbox.trouble(f"{error}")

    def _open_engine(self) -> None:
        self.reread_servers()
        self._link.open()

    def action_reconnect(self) -> None:
        """Open the engine again, or let it watch again, where that has failed."""
        self._link.open()

    def start(self, work: Coroutine[Any, Any, None], group: str) -> Worker[None]:
        """Run *work* for the app: it outlives the screen that wanted it, and a failure ends only itself."""
        return self.run_worker(work, group=group, exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """The one policy for work that failed: it is logged and said, and the program goes on."""
        if self.leaving:
            return
        worker, error = event.worker, event.worker.error
        words = f"{error}" or type(error).__name__
        if event.state is WorkerState.ERROR:
            log.error("work of group %s failed", worker.group, exc_info=error)
        if not self._link.ended(worker, event.state, words) and event.state is WorkerState.ERROR:
            say(self, f"That failed: {words}", "error", timeout=10)

    def action_other_theme(self) -> None:
        """Change between dark and light."""
        self.theme = LIGHT.name if self.theme == DARK.name else DARK.name

    def _on_changes(self, changes: Changes) -> None:
        if self.leaving:
            return
        # An engine event never pushes a screen: keys in flight would answer it.
        if changes.servers:
            self.reread_servers()
        self.inbox.changed(changes)
        try:
            for screen in self.screen_stack:
                if isinstance(screen, Shows):
                    screen.refresh_task()
        except StorageError as error:
            self.inbox.trouble(f"The store can't be read: {error}")

    def expect_departure(self, key: TaskKey, expected: bool = True) -> None:
        """Let the list's highlight go on to the next task when this one leaves: the person sent it off."""
        self.inbox.expect_departure(key, expected)

    def on_open_task(self, message: messages.OpenTask) -> None:
        """Show a task in the inbox, whichever screen asked."""
        self._return_to_inbox()
        self.inbox.go_to(message.key)

    def _return_to_inbox(self) -> None:
        while len(self.screen_stack) > 1 and self.screen is not self.inbox:
            self.pop_screen()

    def on_cancel_requested(self, message: messages.CancelRequested) -> None:
        """Confirm, then cancel."""
        self.actions.cancel(message.key)

    def on_archive_requested(self, message: messages.ArchiveRequested) -> None:
        """Put away, or bring back."""
        self.actions.archive(message.key, message.archive)

    def on_refresh_requested(self, message: messages.RefreshRequested) -> None:
        """Look at a task now."""
        self.actions.look(message.key)

    async def on_unmount(self) -> None:
        """Save what has just been typed, and end the engine's work; what is saved is saved."""
        await self._link.close()


def run(reader: Reader, connect: EngineFactory, servers_file: ServersFile | None = None) -> int:
    """Run the inbox until it is left; returns the exit code, which is not 0 when it crashed."""
    app = InboxApp(reader, connect, servers_file)
    asyncio.run(app.run_async())
    return app.return_code or 0
