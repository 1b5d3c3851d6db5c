"""Sampling and roots with the real program in a real terminal, and a real server that asks for both."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakes.peers import fastmcp_url
from fakes.running_inbox import home
from fakes.terminal import Terminal

from app import wiring
from app.paths import Paths
from storage.records import QuestionRecord, TaskKey

__all__ = ["fastmcp_url"]

pytestmark = pytest.mark.terminal

TASKINBOX = str(Path(sys.executable).with_name("taskinbox"))
DRAFTER = "import json, sys; m = json.load(sys.stdin)['params']['messages']; print('Drafted:', len(m))"


class Asked:
    """An installation whose server has asked, and a terminal on it."""

    def __init__(self, folder: Path, url: str) -> None:
        self.paths: Paths = home(folder / "home", real=url)
        self.env = {"TASKINBOX_HOME": str(folder / "home")}
        self.folder = folder / "my project"
        self.folder.mkdir()
        draft = shlex.join([sys.executable, "-c", DRAFTER])
        self.run("servers", "allow", "real", "--sampling", "--root", str(self.folder), "--draft-with", draft)
        made = json.loads(self.run("call", "real", "ask_sampling_roots", "--json"))
        self.key = TaskKey("real", made["taskId"])
        self.run("watch", self.key.id, "--until", "input", expect=6)

    def run(self, *words: str, expect: int = 0) -> str:
        done = subprocess.run(
            [TASKINBOX, *words], env={**os.environ, **self.env}, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == expect, (done.returncode, done.stdout, done.stderr)
        return done.stdout

    def question(self, method: str) -> QuestionRecord:
        reader = wiring.open_reader(self.paths)
        try:
            return next(q for q in reader.questions(self.key) if q.method == method)
        finally:
            reader.close()

    def by_command(self, method: str, *said: str) -> None:
        """Answer one of the two questions from the shell."""
        self.run("answer", self.key.id, self.question(method).key, *said)

    def response(self, method: str) -> Any:
        return json.loads(self.question(method).response_json or "null")


@pytest.fixture
def asked(tmp_path: Path, fastmcp_url: str) -> Asked:
    return Asked(tmp_path, fastmcp_url)


def begin(terminal: Terminal) -> None:
    """Stand in the only question."""
    terminal.wait_for("Needs you")
    terminal.send("a")
    terminal.wait_for("real asks")


@pytest.mark.rule("sampling.approval")
@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 36)])
def test_a_reply_is_typed_and_the_job_goes_on(asked: Asked, columns: int, rows: int) -> None:
    asked.by_command("roots/list", "--defaults")
    with Terminal([TASKINBOX], env=asked.env, columns=columns, rows=rows) as terminal:
        begin(terminal)
        terminal.wait_for("at most 10")
        terminal.press_calmly("ctrl+s", lambda shown: "Not sent" in shown)  # with nothing typed
        assert asked.response("sampling/createMessage") is None
        terminal.send(*"Hello")
        terminal.wait_for("about 2 tokens")
        terminal.send("ctrl+s")
        terminal.wait_for("completed")
    reply = asked.response("sampling/createMessage")
    assert reply["content"] == {"type": "text", "text": "Hello"}
    assert reply["model"] == "human"
    assert "CreateMessageResult" in asked.run("show", asked.key.id)


@pytest.mark.rule("roots.consent", "roots.file-uri")
@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 36)])
def test_a_list_of_folders_is_sent_as_it_is_shown(asked: Asked, columns: int, rows: int) -> None:
    asked.by_command("sampling/createMessage", "--field", "text=Hello")
    with Terminal([TASKINBOX], env=asked.env, columns=columns, rows=rows) as terminal:
        begin(terminal)
        terminal.wait_for("Send this list ^S", "my project")
        # A key right after the question appeared does nothing.
        terminal.press_calmly("ctrl+s", lambda _: asked.question("roots/list").response_json is not None)
        terminal.wait_for("completed")
    assert asked.response("roots/list") == {"roots": [{"uri": asked.folder.as_uri(), "name": "my project"}]}
    assert "ListRootsResult" in asked.run("show", asked.key.id)


def test_a_command_drafts_when_its_button_is_pressed_and_the_draft_is_not_sent_by_itself(
    asked: Asked,
) -> None:
    asked.by_command("roots/list", "--defaults")
    with Terminal([TASKINBOX], env=asked.env, columns=120, rows=36) as terminal:
        begin(terminal)
        terminal.wait_for("Show JSON")
        assert "Drafted" not in terminal.text()
        terminal.click_until(" Draft ", lambda shown: "Drafted: 1" in shown)
        terminal.wait_for("Drafted: 1", "read it, change it")
        assert asked.response("sampling/createMessage") is None
        terminal.wait_until(
            lambda _: "Drafted: 1" in (asked.question("sampling/createMessage").draft_json or ""), "the draft"
        )


@pytest.mark.rule("sampling.human-in-the-loop")
def test_a_refusal_stays_here_across_restarts_and_is_taken_back(asked: Asked) -> None:
    asked.by_command("roots/list", "--defaults")
    with Terminal([TASKINBOX], env=asked.env, columns=120, rows=36) as terminal:
        begin(terminal)
        terminal.wait_for("Show JSON")
        terminal.click_until("Refuse", lambda shown: "You refused" in shown)
        terminal.wait_for("You refused", "Ask me again")
        terminal.kill()
    with Terminal([TASKINBOX], env=asked.env, columns=120, rows=36) as terminal:
        terminal.wait_for("Running 1")
        terminal.send("2", "enter")
        terminal.wait_for("You refused", "Ask me again")
        # The program may still be connecting, and says so then.
        terminal.click_until("Ask me again", lambda shown: "Send ^S" in shown)
    assert asked.question("sampling/createMessage").is_open
    assert asked.response("sampling/createMessage") is None
