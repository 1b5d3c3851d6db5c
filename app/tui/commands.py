"""Every command of the inbox by name, for the palette. All words are our own: the palette reads them as
markup.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from textual.command import DiscoveryHit, Hit, Hits, Provider

COMMANDS: Final = (
    ("Open the task", "See it whole: questions, result, timeline", "open"),
    ("Answer its first question", "Go to the form", "answer"),
    ("Mark it", "To answer the same question of several tasks together", "mark"),
    ("Answer the marked together", "After a list of what will be answered", "answer_marked"),
    ("Cancel the task…", "Ask its server to stop it, after asking you", "cancel"),
    ("Archive it, or bring it back", "Archived tasks return when something happens", "archive"),
    ("Forget it…", "Delete our record of it, after asking you", "forget"),
    ("Look at it now", "Ask its server once, at once", "look"),
    ("Call a tool", "Pick a server and a tool, and fill in its arguments", "call"),
    ("Servers", "Add, test and remove servers", "servers"),
    ("Filter the list", "By server, tool, id or message", "filter"),
    ("Section: Needs you", "What waits for your answer", "section('needs-you')"),
    ("Section: Running", "What is being worked on", "section('running')"),
    ("Section: Finished", "What is completed, failed or cancelled", "section('finished')"),
    ("Section: Lost", "What its server no longer knows", "section('lost')"),
    ("Section: Archived", "What you put away", "section('archived')"),
    ("Dark or light", "Change between the two themes", "app.other_theme"),
    ("Connect again", "After a failure", "app.reconnect"),
    ("Keys and words", "Help", "help"),
)


class InboxCommands(Provider):
    """Finds commands by their names."""

    async def discover(self) -> Hits:
        """Offer all of them while nothing is typed."""
        for name, words, action in COMMANDS:
            yield DiscoveryHit(name, partial(self.screen.run_action, action), help=words)

    async def search(self, query: str) -> Hits:
        """Offer those whose name matches."""
        matcher = self.matcher(query)
        for name, words, action in COMMANDS:
            score = matcher.match(name)
            if score > 0:
                run = partial(self.screen.run_action, action)
                yield Hit(score, matcher.highlight(name), run, help=words)
