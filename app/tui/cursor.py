"""Which task of a list is highlighted, by its key and never by its line.

Lists change while a person's finger is on a key. A highlight that is only a line number moves to another
task when a row above it goes, and the next key acts on the wrong one. So:

- A row that comes, goes or moves leaves the highlight on its task, wherever that now stands.
- When the highlighted task itself leaves, *nothing* is highlighted any more: its place is remembered, and
  only a fresh move of the person highlights a neighbour.
- When the person put it away (`let_go`), the highlight goes on to the next one, as when working through a
  pile.
- In a list that was opened empty, the first task to arrive is highlighted: no key could have meant another.
"""

from __future__ import annotations

from collections.abc import Sequence

from storage.records import TaskKey


class ListCursor:
    """An ordered list of tasks and the one that is highlighted."""

    def __init__(self) -> None:
        self.keys: list[TaskKey] = []
        self.key: TaskKey | None = None
        """The highlighted task; ``None``: there is none."""
        self.place = 0
        """Its line, or where it would have stood."""
        self._lines: dict[TaskKey, int] = {}
        self.departed: TaskKey | None = None
        """The task that was highlighted and left by itself, until the person moves."""
        self._leaving: set[TaskKey] = set()

    def line_of(self, key: TaskKey) -> int | None:
        """Return the line on which a task stands."""
        return self._lines.get(key)

    def open(self, keys: Sequence[TaskKey], key: TaskKey | None = None) -> None:
        """Begin with another list, as the person asked: at *key* when it is there, else at the top."""
        self._take(keys)
        self._leaving.clear()
        self.departed = None
        self.place = self._lines.get(key, 0) if key is not None else 0
        self.key = self.keys[self.place] if self.keys else None

    def let_go(self, key: TaskKey) -> None:
        """Expect a task to leave because the person put it away: its neighbour may be highlighted."""
        self._leaving.add(key)

    def keep(self, key: TaskKey) -> None:
        """Take `let_go` back: it came to nothing."""
        self._leaving.discard(key)

    def replace(self, keys: Sequence[TaskKey], *, renamed: TaskKey | None = None) -> None:
        """Take in the list as it now is.

        *renamed* is the highlighted task's new key, where it has one: a call that became a task.
        """
        old, old_place, was_empty = self.keys, self.place, not self.keys
        self._take(keys)
        key = self.key
        if key is not None and key not in self._lines and renamed is not None and renamed in self._lines:
            key = self.key = renamed
        if key is not None and key in self._lines:
            self.place = self._lines[key]
            return
        if key is None and was_empty and self.departed is None:
            self.place = 0
            self.key = self.keys[0] if self.keys else None
            return
        self.place = self._neighbour(old, old_place)
        put_away = key is not None and key in self._leaving
        self.key = None
        if key is not None and put_away:
            self._leaving.discard(key)
            self.move_to(self.place)
        elif key is not None:
            self.departed = key

    def move_to(self, line: int) -> None:
        """Highlight what stands on a line, or the nearest line there is."""
        if self.keys:
            self.place = max(0, min(line, len(self.keys) - 1))
            self.key = self.keys[self.place]
            self.departed = None

    def step(self, lines: int) -> None:
        """Move by so many lines; from a gap, the first step down goes to what now stands in it."""
        if self.key is None and lines > 0:
            lines -= 1
        self.move_to(self.place + lines)

    def _take(self, keys: Sequence[TaskKey]) -> None:
        self.keys = list(keys)
        self._lines = {key: line for line, key in enumerate(self.keys)}

    def _neighbour(self, old: list[TaskKey], place: int) -> int:
        """Return the new line of the first old row at or below *place* that is still there, or the end."""
        for key in old[place:]:
            line = self._lines.get(key)
            if line is not None:
                return line
        return len(self.keys)
