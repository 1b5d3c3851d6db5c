"""What has been typed and not yet sent, on its way to the store.

Kept for the app, not for a widget: a draft outlives the card it was typed in, and is saved once the engine
has connected. The newest text wins; each is written about 150 ms after the last key, or at once when a field
is left.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final
from weakref import WeakKeyDictionary

from textual.app import App

from app.engine.commands import EngineError
from app.tui.widgets.host import host_of, in_background
from storage.records import QuestionRecord

DELAY: Final = 0.15
"""Seconds between the last key and the draft's way to the store."""

RETRY: Final = 0.5
"""Seconds until the next attempt while there is no engine."""


class Drafts:
    """The drafts of one running app."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._typed: dict[int, str | None] = {}
        self._unsaved: set[int] = set()
        self._scheduled = False
        self._lock = asyncio.Lock()

    def of(self, question: QuestionRecord) -> str | None:
        """Return the newest draft of *question*: the one typed here, else the stored one."""
        return self._typed.get(question.id, question.draft_json)

    def keep(self, question_id: int, draft_json: str | None) -> None:
        """Keep a draft (``None``: nothing is typed any more); it is saved shortly."""
        self._typed[question_id] = draft_json
        self._unsaved.add(question_id)
        self._schedule(DELAY)

    def drop(self, question_id: int) -> None:
        """Forget a draft that has become an answer."""
        self._typed.pop(question_id, None)
        self._unsaved.discard(question_id)

    @property
    def unsaved(self) -> bool:
        """Say whether something typed has not reached the store yet."""
        return bool(self._unsaved)

    def save_soon(self) -> None:
        """Save now, in the background."""
        if self._unsaved:
            in_background(self._app, self.save(), group="drafts")

    async def save(self) -> None:
        """Save every draft that is not saved yet; without an engine, try again a little later."""
        async with self._lock:
            engine = host_of(self._app).engine
            while engine is not None and self._unsaved:
                question_id = self._unsaved.pop()
                try:
                    await engine.save_draft(question_id, self._typed.get(question_id))
                except EngineError:
                    # The question is not open any more: its card says so, and still shows what was typed.
                    continue
                except BaseException:
                    self._unsaved.add(question_id)
                    raise
        if self._unsaved:
            self._schedule(RETRY)

    def _schedule(self, delay: float) -> None:
        if not self._scheduled and self._app.is_running:
            self._scheduled = True
            self._app.set_timer(delay, self._due, name="drafts")

    def _due(self) -> None:
        self._scheduled = False
        self.save_soon()


_OF_APP: WeakKeyDictionary[App[Any], Drafts] = WeakKeyDictionary()


def drafts_of(app: App[Any]) -> Drafts:
    """Return the drafts of *app*."""
    drafts = _OF_APP.get(app)
    if drafts is None:
        drafts = _OF_APP[app] = Drafts(app)
    return drafts
