"""An address that a server asks a person to open is never contacted from here (client/elicitation, "Safe URL
Handling")."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.mcp_server import ScriptedServer
from fakes.task_app import TaskApp, ask, open_store, painted, question, until
from textual.widgets import Button

from app.tui.widgets.inert import InertText
from app.tui.widgets.question_url import QuestionUrl


@pytest.mark.rule("elicitation.url-not-fetched", "elicitation.url-domain-highlighted")
async def test_an_address_is_shown_reviewed_and_answered_without_being_fetched(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    async with ScriptedServer() as site:
        ask(store, question("elicitation/create", {"mode": "url", "message": "m", "url": site.url}))
        app = TaskApp(store)
        async with app.run_test(size=(100, 30)) as pilot:
            await until(pilot, lambda: len(app.view.cards) == 1 and site.url in painted(app))
            card = app.view.cards[0]
            assert isinstance(card, QuestionUrl)
            host = card.query_one(".host", InertText)
            assert host.text == f"Host  127.0.0.1:{site.port}"
            assert host.styles.text_style.bold
            card.query_one(".open", Button).press()
            await pilot.pause()
            card.query_one(".go", Button).press()
            await until(pilot, lambda: bool(app.recorder.answers))
            assert app.opened == [site.url]
        assert site.connections == 0
    store.close()
