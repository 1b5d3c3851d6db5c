"""Opening an address in the person's browser."""

from __future__ import annotations

import webbrowser

from app.urls import review_url


def open_in_browser(url: str) -> bool:
    """Open *url* in the person's browser; ``False`` where there is none. Blocks: call it in a thread.

    A text browser would take this very terminal away from the inbox, so it does not count as one.
    """
    if review_url(url).problem is not None:
        return False
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    text_browser = isinstance(browser, webbrowser.GenericBrowser) and not isinstance(
        browser, webbrowser.BackgroundBrowser
    )
    return not text_browser and browser.open(url, new=2)
