"""Which programs are alive: exact, by locks that the operating system releases when a program dies.

A program that claims an answer is named by its `Presence.owner`. Leases would have to guess after a suspend
or under load; a file lock is held exactly as long as its process lives, SIGKILL included.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Literal

from storage.errors import StorageError

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int, how: Literal["hold", "look"]) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _lock(descriptor: int, how: Literal["hold", "look"]) -> bool:
        # Those who only look share the lock, so that they don't take each other for the living holder.
        kind = fcntl.LOCK_EX if how == "hold" else fcntl.LOCK_SH
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


_OWNER: Final = re.compile(r"[0-9]+-[0-9a-f]+")


def _token() -> str:
    return secrets.token_hex(8)


class Presence:
    """A program's sign of life: a locked file, for as long as it lives or until `close`."""

    def __init__(self, folder: Path, owner: str, descriptor: int) -> None:
        """Hold *descriptor*, the locked file of *owner*; `enter` is the usual way."""
        self._folder = folder
        self._descriptor: int | None = descriptor
        self.owner: Final = owner
        """Names this program; never used again."""

    @classmethod
    def enter(cls, folder: Path, *, token: Callable[[], str] = _token) -> Presence:
        """Make this program known in *folder* (made 0700), and clean up after those that died.

        *token* returns random hexadecimal digits. Raises `StorageError` where the folder can't be used.
        """
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _clean(folder)
            while True:
                owner = f"{os.getpid()}-{token()}"
                descriptor = _take(folder / f"{owner}.lock")
                if descriptor is not None:
                    return cls(folder, owner, descriptor)
        except OSError as error:
            raise StorageError(f"{folder} can't be used: {error.strerror or error}") from error

    def is_dead(self, owner: str) -> bool:
        """Say whether the program *owner* is gone.

        While another program cleans up after it, it may still count as alive.

        Raises `StorageError` where that can't be found out.
        """
        if owner == self.owner:
            return self._descriptor is None
        if not _OWNER.fullmatch(owner):
            return True
        try:
            descriptor = os.open(self._folder / f"{owner}.lock", os.O_RDWR)
        except FileNotFoundError:
            return True
        except OSError as error:
            raise StorageError(f"can't tell whether {owner} is alive: {error.strerror or error}") from error
        try:
            return _lock(descriptor, "look")
        finally:
            os.close(descriptor)

    def has_others(self) -> bool:
        """Say whether another program is alive. Raises `StorageError` where that can't be found out."""
        others = {path.stem for path in self._folder.glob("*.lock")} - {self.owner}
        return any(not self.is_dead(other) for other in others)

    def close(self) -> None:
        """Leave: from now on the others take this program for dead."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)
            with suppress(OSError):
                (self._folder / f"{self.owner}.lock").unlink()

    def __enter__(self) -> Presence:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave."""
        self.close()


def _take(path: Path) -> int | None:
    """Make and lock *path*; ``None`` when it was there, or was cleaned up between making and locking it."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    except FileExistsError:
        return None
    if _lock(descriptor, "hold"):
        with suppress(FileNotFoundError):
            if os.path.samestat(path.stat(), os.fstat(descriptor)):
                return descriptor
    os.close(descriptor)
    return None


def _clean(folder: Path) -> None:
    for path in folder.glob("*.lock"):
        try:
            descriptor = os.open(path, os.O_RDWR)
        except OSError:
            continue
        if _lock(descriptor, "hold"):
            with suppress(OSError):
                path.unlink()
        os.close(descriptor)
