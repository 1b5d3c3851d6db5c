"""The app's tie to the engine: opened behind the first paint, watched over, closed at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from textual.worker import Worker, WorkerState

from app.engine.commands import Changes, Engine, EngineFactory
from app.tui.widgets.drafts import drafts_of

if TYPE_CHECKING:
    from app.tui.app import InboxApp

CONNECTING: Final = "Still connecting; try again in a moment."
NOT_CONNECTED: Final = "Not connected. Press R to try again."


class EngineLink:
    """Opens the engine and lets it run as work of the app; a failure of either is a banner, and can be tried
    again.
    """

    def __init__(self, app: InboxApp, connect: EngineFactory, on_changes: Callable[[Changes], None]) -> None:
        self.engine: Engine | None = None
        """The engine; ``None`` until it is open."""
        self.absence = CONNECTING
        """What to tell a person whose action needs the engine while there is none."""
        self._app = app
        self._connect = connect
        self._on_changes = on_changes
        self._opening: Worker[None] | None = None
        self._running: Worker[None] | None = None
        self._unlisten: Callable[[], None] | None = None

    def open(self) -> None:
        """Open the engine in the background, then let it run; while that goes on, or is done, nothing."""
        if self._opening is not None and not self._opening.is_finished:
            return
        if self.engine is None:
            self.absence = CONNECTING
            self._app.inbox.trouble(None)
            self._app.inbox.note("connecting…")
            self._opening = self._app.start(self._open(), "connect")
        elif self._running is None or self._running.is_finished:
            self._run(self.engine)

    async def _open(self) -> None:
        engine = await self._connect()
        if self._app.leaving:
            await engine.aclose()
            return
        self.engine = engine
        self._unlisten = engine.listen(self._on_changes)
        self._app.inbox.note("")
        self._app.inbox.reload()
        self._run(engine)

    def _run(self, engine: Engine) -> None:
        self._app.inbox.trouble(None)
        self._running = self._app.start(engine.run(), "engine")

    def observing(self, server: str) -> str:
        """Say how a server's tasks are observed; empty: they are not, just now."""
        if self.engine is None or self._running is None or self._running.is_finished:
            return ""
        return self.engine.observing(server) or ""

    async def settle(self, seconds: float) -> None:
        """Wait until the engine is open, or could not be opened, but no longer than *seconds*."""
        self.open()
        opening = self._opening
        if self.engine is None and opening is not None:
            # Asked for by polling: to await the worker's task would be to cancel it when time is up.
            for _ in range(round(seconds / 0.02)):
                if opening.is_finished:
                    return
                await asyncio.sleep(0.02)

    def ended(self, worker: Worker[object], state: WorkerState, words: str) -> bool:
        """Say what it means that *worker* is in *state*; returns whether it was the engine's."""
        inbox = self._app.inbox
        if worker is self._opening:
            if state is WorkerState.ERROR:
                self.absence = NOT_CONNECTED
                inbox.note("not connected")
                inbox.trouble(f"Can't watch tasks: {words}  Press R to try again.")
            return True
        if worker is self._running:
            if state is WorkerState.ERROR:
                inbox.trouble(f"Watching has stopped: {words}  Press R to watch again.")
            elif state is WorkerState.SUCCESS and self.engine is not None:
                inbox.trouble("Watching has ended. Press R to watch again.")
            return True
        return False

    async def close(self) -> None:
        """Save what has just been typed, and end the engine's work; what is saved is saved."""
        engine = self.engine
        if engine is None:
            return
        if self._unlisten is not None:
            self._unlisten()
        try:
            await drafts_of(self._app).save()
        finally:
            self.engine = None
            if self._running is not None:
                self._running.cancel()
            await engine.aclose()
