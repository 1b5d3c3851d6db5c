"""Opening an address in the person's browser."""

from __future__ import annotations

import subprocess
import threading
import webbrowser
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

from app.urls import review_url

IN_THE_TERMINAL: Final = frozenset(
    {
        *("www-browser", "lynx", "w3m", "links", "links2", "elinks", "felinks", "edbrowse", "retawq"),
        *("netrik", "browsh", "carbonyl", "cha", "chawan"),
        *("echo", "printf"),  # a habit of people without a browser: to be shown the address
    }
)
"""Programs that show an address in the terminal they are started from."""

SOON_S: Final = 2.0
"""Seconds that a program is given to say by its exit code that it opens nothing; one that is still running
then is taken for a browser."""


def open_in_browser(url: str) -> bool:
    """Open *url* in the person's browser; ``False`` where there is none. Blocks: call it in a thread.

    A text browser would take this very terminal away from the inbox, so it does not count as one. Any other
    program that ``BROWSER`` names may be a script that opens one elsewhere: it is started apart from the
    terminal, and goes on by itself.
    """
    if review_url(url).problem is not None:
        return False
    try:
        browser = webbrowser.get()
    except (webbrowser.Error, ValueError, IndexError):  # the last two: BROWSER is no command line
        return False
    program = PurePath(browser.name).name.lower()
    if program.removesuffix(".exe") in IN_THE_TERMINAL:
        return False
    if isinstance(browser, webbrowser.GenericBrowser):
        # Its own open() would share this terminal with it, and wait for its end.
        return _start(browser.name, browser.args, url)
    return browser.open(url, new=2)


def _start(program: str, arguments: Sequence[str], url: str) -> bool:
    """Start *program* with *url* for each ``%s`` in its arguments; ``False``: it opens nothing."""
    if any("%s" in text and len(text.split()) > 1 for text in arguments):
        return False  # a command line inside of an argument (sh -c "… %s"): a shell would read the address
    command = [program, *(text.replace("%s", url) for text in arguments)]
    nothing = subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
        )
    except OSError:
        return False
    try:
        return process.wait(SOON_S) == 0
    except subprocess.TimeoutExpired:
        # Somebody has to wait for its end, or it stays behind as a zombie.
        threading.Thread(target=process.wait, name="browser", daemon=True).start()
        return True
