"""What servers that this program starts write to their stderr: the newest of it, in a private file each.

Several programs may run a server of the same name at the same time, and write into one file. Nothing here is
worth failing for: where a file can't be written, the log says so once.
"""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from pathlib import Path
from typing import Final

CAP: Final = 256 * 1024
"""Bytes of one file; past it, the older half is dropped."""
LAST: Final = 5
"""Lines that are shown where something went wrong."""
_LINE: Final = 300
"""Characters of one line that are shown."""

log = logging.getLogger(__name__)


class StderrFile:
    """The file of one server."""

    def __init__(self, folder: Path, server: str) -> None:
        self.path = stderr_path(folder, server)
        self._failed = False

    def write(self, data: bytes) -> None:
        """Append *data*."""
        try:
            self._append(data)
        except OSError as error:
            if not self._failed:
                log.warning("%s can't be written: %s", self.path, error.strerror)
            self._failed = True

    def _append(self, data: bytes) -> None:
        with contextlib.suppress(FileExistsError):
            self.path.parent.mkdir(mode=0o700)
        file = os.open(self.path, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600)
        try:
            os.write(file, data[-CAP:])
            size = os.fstat(file).st_size
            newest = os.pread(file, CAP // 2, size - CAP // 2) if size > CAP else b""
        finally:
            os.close(file)
        if newest:
            self._replace(newest.partition(b"\n")[2] or newest)

    def _replace(self, newest: bytes) -> None:
        handle, name = tempfile.mkstemp(prefix=".stderr-", dir=self.path.parent)  # mode 0600
        with os.fdopen(handle, "wb") as file:
            file.write(newest)
        os.replace(name, self.path)


def stderr_path(folder: Path, server: str) -> Path:
    """Return where the stderr of *server* is kept."""
    return folder / f"{server}.log"


def last_lines(text: str, count: int = LAST) -> tuple[str, ...]:
    """Return the last lines of *text* that say anything, cut where they are long; as they came otherwise."""
    said = [line.rstrip() for line in text.splitlines() if line.strip()]
    return tuple(line if len(line) <= _LINE else f"{line[:_LINE]}…" for line in said[-count:])


def last_kept(folder: Path, server: str, count: int = LAST) -> tuple[str, ...]:
    """Return the last lines that are kept of *server*; none where there is no file."""
    try:
        text = stderr_path(folder, server).read_bytes().decode("utf-8", "replace")
    except OSError:
        return ()
    return last_lines(text, count)
