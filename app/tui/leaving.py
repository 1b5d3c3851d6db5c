"""Leaving at any instant: no error of a widget half built, no key in the wrong place, nothing typed lost."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from textual import events
from textual.app import App

from app.tui.widgets.drafts import drafts_of
from app.tui.widgets.inert import say

if TYPE_CHECKING:
    from app.tui.engine_link import EngineLink

HELD_LONGEST: Final = 10.0
"""Seconds for a task to come to the screen, at most."""

log = logging.getLogger(__name__)

PATIENCE: Final = 8.0
"""Seconds that leaving waits for an engine which is to save what was typed before it was there."""


class LeavesSafely(App[None]):
    """What the app does so that a person may leave, or type ahead, whenever they like."""

    _link: EngineLink

    def __init__(self) -> None:
        super().__init__()
        self._left = False
        self._was_running = False
        self._leave_anyway = False
        self._redelivered: events.Key | None = None
        self._held = False
        self._released_at = 0.0
        self.pressed_at: float | None = None
        """When what is being handled was pressed, by the clock that events are stamped with."""

    @property
    def leaving(self) -> bool:
        """Say whether the screens are being taken down, or soon will be."""
        return self._left or (self._was_running and not self.is_running)

    def on_ready(self) -> None:
        """From here on, "not running" means "over"."""
        self._was_running = True

    def exit(self, *args: Any, **more: Any) -> None:
        """Leave: from now on nothing is drawn, whatever the engine tells."""
        self._left = True
        super().exit(*args, **more)

    def _handle_exception(self, error: Exception) -> None:
        # Textual's own widgets stumble when they are taken down while they are being built (Tabs looks for a
        # tab that has gone): no reason for a traceback in the terminal of somebody who only left.
        if self.leaving:
            log.info("while leaving: %s", type(error).__name__, exc_info=error)
            return
        super()._handle_exception(error)

    async def action_quit(self) -> None:
        """Leave. What was typed before there was an engine is saved first, or said to be lost."""
        typed = drafts_of(self).unsaved and self._link.engine is None
        if not typed or self._leave_anyway:
            self.exit()
            return
        self._leave_anyway = True
        say(self, "Saving what you typed… Quit again to leave without it.")
        self.run_worker(self._leave_when_saved(), group="leave", exit_on_error=False)

    async def _leave_when_saved(self) -> None:
        await self._link.settle(PATIENCE)
        if self._link.engine is None:
            say(
                self,
                "Not connected, so what you typed can't be kept. Quit again to leave without it.",
                "warning",
                timeout=15,
            )
            return
        await drafts_of(self).save()
        self.exit()

    def hold_keys(self) -> None:
        """Let no key act until `release_keys`: a task is on its way to the screen, and what is typed for its
        form must not be a command of the list, nor of another task. Such keys are lost, not kept for later.
        """
        self._held = True
        self.set_timer(HELD_LONGEST, self.release_keys)

    def release_keys(self) -> None:
        """Let keys act again: what was to have the focus has it."""
        if self._held:
            self._held = False
            self._released_at = events.Event().time

    async def on_event(self, event: events.Event) -> None:
        """Note when something was pressed, however late its turn comes."""
        # Not of a click: that one is made from the others when their turn comes.
        if isinstance(event, events.Key | events.MouseDown | events.MouseUp):
            self.pressed_at = event.time
        await super().on_event(event)

    def on_key(self, event: events.Key) -> None:
        """Let no letter act that was typed ahead of a change of the focus.

        Keys that follow each other within a moment are handed to whatever had the focus before the first of
        them has changed it, and come here when that had no use for them: they would act as commands.
        """
        if event.key == "escape":
            self.release_keys()
        elif self._held or event.time < self._released_at:
            event.stop()
            event.prevent_default()
            return
        focused = self.focused
        if event is self._redelivered or focused is None:
            return
        if focused.check_consume_key(event.key, event.character):
            event.stop()
            event.prevent_default()
            if getattr(focused, "takes_what_follows", False):
                self._redelivered = again = events.Key(event.key, event.character)
                focused._forward_event(again)
