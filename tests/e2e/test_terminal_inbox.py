"""The real program in a real terminal: started, answered by keys, killed, started again."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.demo import DemoProcess
from fakes.proxy import Proxy
from fakes.running_inbox import home
from fakes.terminal import Terminal

from app import wiring
from app.paths import Paths
from storage.records import QuestionRecord, TaskKey

pytestmark = pytest.mark.terminal

TASKINBOX = str(Path(sys.executable).with_name("taskinbox"))


class Installation:
    """A home folder, the commands on it, and the inbox in a terminal."""

    def __init__(self, folder: Path, url: str) -> None:
        self.paths: Paths = home(folder, demo=url)
        self.env = {"TASKINBOX_HOME": str(folder)}
        self._terminals: list[Terminal] = []

    def run(self, *words: str, expect: int = 0) -> Any:
        """Run a command; return what it printed, as JSON where it is."""
        done = subprocess.run(
            [TASKINBOX, *words], env={**os.environ, **self.env}, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == expect, (done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout) if "--json" in words else done.stdout

    def inbox(self, columns: int = 120, rows: int = 36) -> Terminal:
        """Open the inbox in a terminal."""
        terminal = Terminal([TASKINBOX], env=self.env, columns=columns, rows=rows)
        self._terminals.append(terminal)
        terminal.wait_for("Needs you", "Running")
        return terminal

    def questions(self, key: TaskKey) -> list[QuestionRecord]:
        """Read a task's questions from the store."""
        reader = wiring.open_reader(self.paths)
        try:
            return reader.questions(key)
        finally:
            reader.close()

    def events(self, key: TaskKey) -> list[str]:
        """Read the names of a task's events from the store."""
        reader = wiring.open_reader(self.paths)
        try:
            return [event.kind for event in reader.events(key)]
        finally:
            reader.close()

    def close(self) -> None:
        """End the terminals."""
        for terminal in self._terminals:
            terminal.close()


@pytest.fixture
def proxy(demo: DemoProcess) -> Iterator[Proxy]:
    with Proxy(demo.port) as between:
        yield between


@pytest.fixture
def here(tmp_path: Path, proxy: Proxy) -> Iterator[Installation]:
    installation = Installation(tmp_path / "home", proxy.url)
    yield installation
    installation.close()


def call(here: Installation, tool: str, arguments: str) -> TaskKey:
    made = here.run("call", "demo", tool, "--args", arguments, "--json")
    assert made["resultType"] == "task", made
    return TaskKey("demo", made["taskId"])


def until_saved(terminal: Terminal, holds: Callable[[], bool], what: str, timeout: float = 20) -> None:
    """Wait until the store *holds*, looking after whatever the program draws (its clock ticks)."""
    terminal.wait_until(lambda _: holds(), what, timeout)


def approve(terminal: Terminal) -> None:
    """Say yes in the form of generate_report, and accept, by keys alone."""
    terminal.send("a")
    terminal.wait_for("Approve the outline", "Accept ^S")
    # A key that comes before the question has the focus, or right after it appeared, does nothing.
    terminal.press_until("space", lambda shown: "(•) Yes" in shown)
    terminal.press_calmly("ctrl+s", lambda shown: "Accept ^S" not in shown or "sending" in shown.lower())


@pytest.mark.rule("tasks.observed-after-update")
@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 36), (200, 50)])
def test_a_question_is_answered_by_keys_and_its_result_is_seen(
    here: Installation, columns: int, rows: int
) -> None:
    key = call(here, "generate_report", '{"size": "small"}')
    terminal = here.inbox(columns, rows)
    terminal.wait_for("Needs you 1", "generate_report")
    approve(terminal)
    terminal.wait_for('"approved": true')
    leave(terminal)
    terminal.wait_for("Finished 1")
    terminal.press_until("3", lambda shown: "generate_report" in shown and "completed" in shown)
    terminal.send("enter")
    terminal.wait_for('"approved": true')
    assert here.run("show", key.id, "--json")["result"]["structuredContent"]["approved"] is True
    leave(terminal)
    quit_with_q(terminal)
    assert here.events(key).count("answer_acknowledged") == 1


def leave(terminal: Terminal) -> None:
    """Go back to the list: the keys on the last line are the list's again."""
    terminal.press_until("escape", lambda shown: "n call" in shown)


def quit_with_q(terminal: Terminal) -> None:
    """Leave the program. A q right behind an escape is alt+q to a terminal, so it may take another one."""
    for _ in range(5):
        terminal.send("q")
        try:
            assert terminal.wait_ended(4) == 0
            return
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError(f"q does not end it; the screen was\n{terminal.text()}")


@pytest.mark.parametrize(("button", "action"), [("Decline", "decline"), ("Dismiss", "cancel")])
def test_declining_and_dismissing_by_mouse_are_two_answers(
    here: Installation, proxy: Proxy, button: str, action: str
) -> None:
    key = call(here, "generate_report", '{"size": "small"}')
    terminal = here.inbox()
    terminal.wait_for("Needs you 1", "Approve the outline", button)
    terminal.click_until(button, lambda shown: "Accept ^S" not in shown)
    terminal.wait_for("Finished 1")
    (question,) = here.questions(key)
    assert json.loads(question.response_json or "") == {"action": action}
    assert proxy.passed["tasks/update"] == 1


@pytest.mark.rule("tasks.ids-persisted")
@pytest.mark.parametrize(("watching", "times"), [("tasks/get", 3), ("subscriptions/listen", 1)])
def test_killed_while_it_watches_it_finds_its_tasks_again(
    here: Installation, proxy: Proxy, watching: str, times: int
) -> None:
    if watching == "tasks/get":
        proxy.hold("subscriptions/listen")  # as a server that takes none
    key = call(here, "long_build", '{"minutes": 600}')
    terminal = here.inbox()
    terminal.wait_for("Running 1")
    proxy.wait_passed(watching, times)
    terminal.kill()
    before = proxy.passed[watching]
    again = here.inbox()
    again.wait_for("Running 1")
    proxy.wait_passed(watching, before + times)
    again.send("2")
    again.wait_for("long_build")
    assert here.run("list", "--json")[0]["taskId"] == key.id


def test_killed_while_a_form_is_half_filled_it_still_has_what_was_typed(here: Installation) -> None:
    key = call(here, "deploy_service", '{"service": "checkout"}')
    terminal = here.inbox()
    terminal.wait_for("Needs you 1")
    terminal.send("a")
    terminal.wait_for("Accept ^S")
    terminal.press_until("tab", lambda _: replicas_takes_a_digit(here, key, terminal))
    terminal.kill()
    (question,) = here.questions(key)
    again = here.inbox()
    again.wait_for("Needs you 1")
    again.send("a")
    again.press_until("tab", lambda shown: bool(re.search(r"Replicas \* .*\b37\b", shown)))
    (question,) = here.questions(key)
    assert question.state == "open", "a draft is not an answer"


def replicas_takes_a_digit(here: Installation, key: TaskKey, terminal: Terminal) -> bool:
    """Type 7 into what has the focus; say whether it is Replicas (3 by default), by its draft."""
    terminal.send("end", "7")
    try:
        until_saved(
            terminal, lambda: "37" in (here.questions(key)[0].draft_json or ""), "the draft", timeout=3
        )
    except AssertionError:
        return False
    return True


def test_killed_between_saving_an_answer_and_sending_it_it_delivers_it_once(
    here: Installation, proxy: Proxy
) -> None:
    key = call(here, "generate_report", '{"size": "small"}')
    terminal = here.inbox()
    terminal.wait_for("Needs you 1")
    proxy.hold("tasks/get")
    proxy.hold("tasks/update")
    approve(terminal)
    until_saved(
        terminal, lambda: here.questions(key)[0].state in ("queued", "sent"), "the answer to be saved"
    )
    terminal.kill()
    assert proxy.passed["tasks/update"] == 0
    saved = here.questions(key)[0].response_json
    proxy.release()
    again = here.inbox()
    again.wait_for("Finished 1", timeout=40)
    assert proxy.passed["tasks/update"] == 1
    (question,) = here.questions(key)
    assert (question.state, question.response_json) == ("settled", saved)
    assert here.events(key).count("question_asked") == 1


def test_killed_after_sending_and_before_the_acknowledgement_it_asks_first_and_sends_nothing_more(
    here: Installation, proxy: Proxy
) -> None:
    key = call(here, "generate_report", '{"size": "small"}')
    terminal = here.inbox()
    terminal.wait_for("Needs you 1")
    proxy.swallow("tasks/update")
    approve(terminal)
    proxy.wait_held("tasks/update")
    terminal.kill()
    assert here.questions(key)[0].state == "sent"
    proxy.release()
    again = here.inbox()
    again.wait_for("Finished 1", timeout=40)
    assert proxy.passed["tasks/update"] == 1
    (question,) = here.questions(key)
    assert question.state == "settled"
    assert here.run("show", key.id, "--json")["result"]["structuredContent"]["approved"] is True


def test_a_killed_server_is_said_to_be_unreachable_and_its_tasks_go_on_when_it_is_back(
    here: Installation, demo: DemoProcess, proxy: Proxy
) -> None:
    key = call(here, "generate_report", '{"size": "small"}')
    terminal = here.inbox()
    terminal.wait_for("Needs you 1")
    demo.kill()
    terminal.wait_for("unreachable", timeout=40)
    terminal.wait_for("Needs you 1")
    approve(terminal)
    until_saved(
        terminal, lambda: here.questions(key)[0].state in ("queued", "sent"), "the answer to be saved"
    )
    demo.start()
    terminal.wait_for("Finished 1", timeout=90)
    (question,) = here.questions(key)
    assert question.state == "settled"
    assert here.events(key).count("question_asked") == 1
    assert here.events(key).count("answer_acknowledged") == 1


def test_an_answer_from_a_command_reaches_the_open_inbox(here: Installation, proxy: Proxy) -> None:
    key = call(here, "generate_report", '{"size": "small"}')
    terminal = here.inbox()
    terminal.wait_for("Needs you 1")
    here.run("answer", key.id, "--field", "approved=true")
    terminal.wait_for("Finished 1")
    assert proxy.passed["tasks/update"] == 1


def test_the_demo_opens_alive_with_something_in_every_section_and_ends_its_service(tmp_path: Path) -> None:
    env = {"TASKINBOX_HOME": str(tmp_path / "home")}
    with Terminal([TASKINBOX, "demo"], env=env) as terminal:
        shown = terminal.wait_for("Needs you 4", "Running", "Finished 3", "Lost 1", "Archived 1", timeout=60)
        assert "Running 0" not in shown
        terminal.send("q")
        assert terminal.wait_ended() == 0
    with Terminal([TASKINBOX, "demo"], env=env) as terminal:
        terminal.wait_for("Needs you 4", "Finished", "Lost 1", "Archived 1", timeout=60)


def test_in_no_terminal_it_says_what_it_needs(tmp_path: Path) -> None:
    done = subprocess.run(
        [TASKINBOX],
        env={**os.environ, "TASKINBOX_HOME": str(tmp_path / "home")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "terminal" in done.stderr
    assert "Traceback" not in done.stderr


def test_letters_behind_a_slash_are_a_filter_and_no_commands(here: Installation, proxy: Proxy) -> None:
    key = call(here, "generate_report", '{"size": "small"}')
    terminal = here.inbox()
    terminal.wait_for("Needs you 1")
    terminal.send("1/cefrq")
    terminal.wait_for("cefrq", "Nothing matches")
    assert here.run("list", "--json")[0]["section"] == "needs-you"
    assert proxy.passed["tasks/cancel"] == 0
    terminal.press_until("escape", lambda shown: "Nothing matches" not in shown)
    assert here.questions(key)[0].state == "open"
