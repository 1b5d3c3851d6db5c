"""One connection to the database file: opened safely, its errors named, its transactions explicit."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from storage.errors import StorageError, StoreBusy, StoreUnreadable

BUSY_TIMEOUT_MS: Final = 10_000
"""How long a write waits for another program's transaction."""

LOG_TIMEOUT_MS: Final = 250
"""How long emptying the write-ahead log waits for those who read or write; it is tried again later."""

_UNREADABLE: Final = frozenset(
    {
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_AUTH,
    }
)

_ERRORS: Final = (sqlite3.Error, UnicodeEncodeError, OverflowError)
"""What sqlite3 raises for a statement: the last two for values that SQLite can't hold."""

Row = tuple[Any, ...]


class Connection:
    """A connection in autocommit mode; used by one thread at a time, though not always the same one.

    Everything it raises is a `StorageError`. A lone surrogate or an integer past 64 bits, which SQLite can't
    hold, is one, too: nothing of that statement is stored.
    """

    def __init__(self, path: Path) -> None:
        """Open *path* for reading and writing; the file must exist. Raises `StoreUnreadable`."""
        self.path = path
        self._is_synced: bool | None = None
        self._has_erased = False
        try:
            self._sqlite = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=rw",
                uri=True,
                timeout=BUSY_TIMEOUT_MS / 1000,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
        except _ERRORS as error:
            raise _named(error, path) from error

    def configure(self) -> None:
        """Set what holds for this connection alone, and the journal mode, which holds for the file."""
        self.run("PRAGMA foreign_keys = ON")
        self.run("PRAGMA trusted_schema = OFF")
        deadline = time.monotonic() + BUSY_TIMEOUT_MS / 1000
        # SQLite doesn't wait for a lock while it changes the journal mode, so two programs that open a new
        # file at the same moment would otherwise fail.
        while self.value("PRAGMA journal_mode") != "wal":
            try:
                self.run("PRAGMA journal_mode = WAL")
            except StoreBusy:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        self.run("PRAGMA journal_size_limit = 16777216")
        # What is deleted is overwritten where that costs no write of its own; `erasing` does it everywhere.
        self.run("PRAGMA secure_delete = FAST")
        self.sync_commits(False)

    def sync_commits(self, is_synced: bool) -> None:
        """Say whether the next commits reach the disk before they return; not inside a transaction."""
        if self._is_synced is not is_synced:
            self.run(f"PRAGMA synchronous = {'FULL' if is_synced else 'NORMAL'}")
            self._is_synced = is_synced

    @contextmanager
    def erasing(self) -> Iterator[None]:
        """Overwrite with zeros what is deleted inside, on pages that become free, too."""
        self.run("PRAGMA secure_delete = ON")
        try:
            yield
        finally:
            self.run("PRAGMA secure_delete = FAST")
        self._has_erased = True

    def empty_log(self) -> None:
        """Cut the write-ahead log to nothing where it may hold what was erased; not inside a transaction.

        Someone who is in the middle of reading or writing may keep it from that, or a full disk: what is
        committed stays so, and the next commit tries again.
        """
        if not self._has_erased:
            return
        self.run(f"PRAGMA busy_timeout = {LOG_TIMEOUT_MS}")
        try:
            self._has_erased = self.value("PRAGMA wal_checkpoint(TRUNCATE)") != 0
        except StorageError:
            pass
        finally:
            self.run(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")

    def run(self, sql: str, parameters: Sequence[object] = ()) -> sqlite3.Cursor:
        """Execute one statement."""
        try:
            return self._sqlite.execute(sql, parameters)
        except _ERRORS as error:
            raise _named(error, self.path) from error

    def insert(self, sql: str, parameters: Sequence[object] = ()) -> int:
        """Execute an INSERT and return the new row's number."""
        row = self.run(sql, parameters).lastrowid
        assert row is not None
        return row

    def all(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Return all rows of a query."""
        try:
            return self._sqlite.execute(sql, parameters).fetchall()
        except _ERRORS as error:
            raise _named(error, self.path) from error

    def one(self, sql: str, parameters: Sequence[object] = ()) -> Row | None:
        """Return a query's first row."""
        try:
            row: Row | None = self._sqlite.execute(sql, parameters).fetchone()
        except _ERRORS as error:
            raise _named(error, self.path) from error
        return row

    def value(self, sql: str, parameters: Sequence[object] = ()) -> Any:
        """Return the first column of a query's first row; ``None`` when there is no row."""
        row = self.one(sql, parameters)
        return None if row is None else row[0]

    @property
    def in_transaction(self) -> bool:
        """Say whether a transaction is open."""
        return self._sqlite.in_transaction

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the write lock; commit at the end, roll back on any exception. Raises `StoreBusy`."""
        self.run("BEGIN IMMEDIATE")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            self._undo("ROLLBACK")
            raise

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what is done inside when it raises, and leave the transaction around it as it was."""
        self.run("SAVEPOINT verb")
        try:
            yield
        except BaseException:
            self._undo("ROLLBACK TO verb")
            self._undo("RELEASE verb")
            raise
        self.run("RELEASE verb")

    def close(self) -> None:
        """Close the connection; what is committed stays."""
        try:
            self._sqlite.close()
        except _ERRORS as error:
            raise _named(error, self.path) from error

    def _undo(self, sql: str) -> None:
        # Some errors (a full disk, a failed read) make SQLite roll back by itself; then there is nothing to
        # undo, and the first error is the one to report.
        if self._sqlite.in_transaction:
            with suppress(sqlite3.Error):
                self._sqlite.execute(sql)


def _named(error: Exception, path: Path) -> StorageError:
    if isinstance(error, UnicodeEncodeError):
        return StorageError("a text holds a lone surrogate, which is not a character and can't be stored")
    if isinstance(error, OverflowError):
        return StorageError("a number does not fit into 64 bits and can't be stored")
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(
            f"another program kept {path} locked for {BUSY_TIMEOUT_MS // 1000} seconds; try again"
        )
    if code in _UNREADABLE:
        return StoreUnreadable(f"{path} can't be read or written as the inbox's database: {error}")
    if code == sqlite3.SQLITE_FULL:
        return StorageError(f"the disk is full: nothing more can be stored in {path}")
    return StorageError(f"{path}: {error}")
