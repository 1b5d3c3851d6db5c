"""What the widgets need of the app they run in: the store to read, the engine to ask, the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol, cast

from textual.app import App
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widget import Widget

from app.config import NONE, Abilities
from app.engine.commands import Engine
from storage.records import Reader


class Host(Protocol):
    """The app, as the task view and the call screen see it."""

    @property
    def reader(self) -> Reader:
        """The store's reading half."""

    @property
    def engine(self) -> Engine | None:
        """The engine; ``None`` until it has connected."""

    @property
    def clock(self) -> Callable[[], int]:
        """The time, in milliseconds since the epoch."""


def host_of(node: DOMNode) -> Host:
    """Return the app that *node* runs in, as a host."""
    return cast(Host, node.app)


def now_ms(node: DOMNode) -> int:
    """Return the time by the app's clock, in milliseconds since the epoch."""
    clock = getattr(node.app, "clock", None)
    return int(clock()) if callable(clock) else time.time_ns() // 1_000_000


def abilities_of(node: DOMNode, server: str) -> Abilities:
    """Return what a server may ask beside elicitations, as the servers file says now."""
    abilities = getattr(node.app, "abilities", None)
    return abilities(server) if callable(abilities) else NONE


def server_url(node: DOMNode, server: str) -> str | None:
    """Return the address of a server; ``None``: it has none, or it is not known."""
    address_of = getattr(node.app, "server_url", None)
    found = address_of(server) if callable(address_of) else None
    return found if isinstance(found, str) else None


def let_keys_act(node: DOMNode) -> None:
    """Tell the app that what was to have the focus has it, or will never have it."""
    release = getattr(node.app, "release_keys", None)
    if callable(release):
        # Behind the change of the focus itself, which takes the same way.
        node.app.call_later(release)


def is_alive(widget: Widget) -> bool:
    """Say whether *widget* is still somewhere on a screen: work that it began may end after it has gone."""
    if not (widget.is_running and widget.is_attached):
        return False
    screen = widget if isinstance(widget, Screen) else widget.screen
    return screen in widget.app.screen_stack


def in_background(app: App[Any], work: Any, *, group: str) -> None:
    """Run the coroutine *work* for the app itself: it goes on when the widget that began it is gone.

    An answer on its way, or a call, must not end because somebody looked at another task meanwhile.
    """
    app.run_worker(work, group=group, exit_on_error=False, exclusive=False)
