"""Where things are kept; imports nothing heavy.

``TASKINBOX_HOME`` moves config, data and state under one folder. Folders are made 0700, files 0600: what the
jobs of agents ask about is nobody else's business.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Paths:
    """The folders of one installation."""

    config: Path
    data: Path
    state: Path

    @property
    def servers_file(self) -> Path:
        """The servers file, in the ``mcpServers`` form that other hosts use."""
        return self.config / "mcp.json"

    @property
    def database(self) -> Path:
        """The inbox's database."""
        return self.data / "inbox.db"

    @property
    def demo(self) -> Path:
        """The embedded task service's own folder."""
        return self.data / "demo"

    @property
    def log(self) -> Path:
        """The program's log."""
        return self.state / "taskinbox.log"

    @property
    def stderr(self) -> Path:
        """The folder for what servers that this program starts write to their stderr."""
        return self.state / "stderr"

    def make(self) -> Paths:
        """Make the folders that are missing, readable by nobody else."""
        for folder in (self.config, self.data, self.state):
            private_folder(folder)
        return self


def find(environ: dict[str, str] | os._Environ[str] = os.environ) -> Paths:
    """Return the folders of this installation, without making them."""
    home = environ.get("TASKINBOX_HOME")
    if home:
        root = Path(home).expanduser().absolute()
        return Paths(root / "config", root / "data", root / "state")
    import platformdirs

    dirs = platformdirs.PlatformDirs("taskinbox", appauthor=False)
    return Paths(dirs.user_config_path, dirs.user_data_path, dirs.user_state_path)


def private_folder(folder: Path) -> None:
    """Make *folder* (and what is missing above it) with mode 0700; raises `OSError` where that can't be."""
    missing = []
    for part in (folder, *folder.parents):
        if part.exists():
            break
        missing.append(part)
    for part in reversed(missing):  # mkdir's own `parents` would make them readable by others
        part.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)


def private_file(path: Path) -> None:
    """Make *path* if it is missing, and its mode 0600."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)
