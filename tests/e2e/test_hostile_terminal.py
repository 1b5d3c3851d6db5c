"""The real program in a real terminal, on a server that poisons every string it may send."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from fakes import hostile_server as hostile
from fakes.cli_program import Program
from fakes.hostile_server import HostileServer, bad, task_id
from fakes.running_inbox import home
from fakes.task_script import task
from fakes.terminal import Terminal

from app import wiring
from app.engine.commands import EngineError
from app.paths import Paths
from storage.records import TaskKey

pytestmark = [pytest.mark.terminal, pytest.mark.xdist_group("hostile")]

Json = dict[str, Any]

OUR_SEQUENCES: Final = re.compile(
    r"\x1b\[[0-9;]*m"  # styles; their numbers are looked at below
    r"|\x1b\[(?:\d+;\d+)?H"  # places on the screen
    r"|\x1b\[\?(?:7|25|1000|1003|1004|1006|1015|1016|1049|2004|2026|2048)[hl]"
    r"|\x1b\[\?(?:2026|2048)\$p"
    r"|\x1b\[[<>]\d*u"
    r"|\x1b\]22;[a-z-]*\x07"  # the pointer's shape
    r"|\r?\n|\t"
)
"""All that Textual and click write of their own; whatever else is a control character came from a server."""

_CONTROL: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufff9-\ufffb\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_MARK: Final = re.compile(r"z\d{3}q")


def faults_in(raw: bytes) -> list[str]:
    """Return every control character or sequence in *raw* that the program did not write by itself."""
    text = raw.decode("utf-8", "surrogateescape")
    rest = OUR_SEQUENCES.sub("", text)
    found = [repr(rest[max(0, m.start() - 30) : m.end() + 30]) for m in _CONTROL.finditer(rest)]
    found += [repr(m.group()) for m in OUR_SEQUENCES.finditer(text) if re.search(r"\d{5}|7777", m.group())]
    return found


def seen_in(raw: bytes) -> set[str]:
    """Return the places whose strings were drawn."""
    text = OUR_SEQUENCES.sub("", raw.decode("utf-8", "replace"))
    return {hostile.place_of(marker) for marker in set(_MARK.findall(text))}


class Scene:
    """An installation that knows a hostile server's tasks, and terminals on it."""

    def __init__(self, folder: Path, server: HostileServer) -> None:
        self.server = server
        self.paths: Paths = home(folder, hostile=server.url)
        self.program = Program(folder)
        self._terminals: list[Terminal] = []

    async def fill(self) -> None:
        """Track every task and make every call, then let the server turn."""
        engine = await wiring.open_engine(self.paths)
        for name in self.server.names:
            try:
                await engine.track("hostile", task_id(name))
            except EngineError as error:
                raise AssertionError((name, error.message)) from error
        for tool in hostile.tools()[:5]:
            await engine.call("hostile", tool["name"], "{}")
        self.server.turned = True
        for name in ("lost", "half", "rpc", "http", "status", "stop", "type"):
            try:
                await engine.refresh(TaskKey("hostile", task_id(name)))
            except EngineError:
                continue
        await engine.aclose()

    async def track(self, *ids: str) -> None:
        """Track tasks that are well."""
        engine = await wiring.open_engine(self.paths)
        for known in ids:
            await engine.track("hostile", known)
        await engine.aclose()

    def inbox(self, columns: int, rows: int) -> Terminal:
        terminal = Terminal(
            [self.program.executable],
            env={"TASKINBOX_HOME": str(self.program.home)},
            columns=columns,
            rows=rows,
        )
        self._terminals.append(terminal)
        terminal.wait_for("Needs you", "Running")
        return terminal

    def close(self) -> None:
        for terminal in self._terminals:
            terminal.close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with HostileServer() as server:
        made = Scene(tmp_path / "home", server)
        asyncio.run(made.fill())
        yield made
        made.close()


SECTIONS: Final = {"needs-you": "1", "running": "2", "finished": "3", "lost": "4"}
PATIENCE: Final = 45.0
"""Seconds; forms as large as these take a busy machine a while."""


class Walk:
    """A person at the terminal, who looks at everything."""

    def __init__(self, scene: Scene, columns: int, rows: int) -> None:
        self.scene = scene
        self.wide = columns >= 110
        self._seen: set[str] = set()
        self._looked = 0
        self.terminal = scene.inbox(columns, rows)
        self.wait(lambda s: "connecting" not in s, "the engine")

    def press(self, *names: str, moment: float = 0.15) -> None:
        """Press keys one by one; each is given a moment to be drawn, where it draws anything."""
        for name in names:
            before = len(self.terminal.raw)
            self.terminal.send(name)
            deadline = time.monotonic() + moment
            while len(self.terminal.raw) == before and time.monotonic() < deadline:
                time.sleep(0.005)
        self.alive()

    def settle(self) -> None:
        """Wait until nothing has been drawn for a moment, so that no step is passed over unseen."""
        self.terminal.wait_quiet(0.05, 1)

    def alive(self) -> None:
        """Fail where the program has ended or shows that it failed."""
        shown = self.terminal.text()
        assert self.terminal.process.poll() is None, shown
        assert "Traceback" not in shown, shown
        assert "That failed" not in shown, shown

    def wait(self, holds: Callable[[str], bool], what: str) -> str:
        """Return the screen once it *holds*."""
        return self.terminal.wait_until(holds, what, PATIENCE)

    def shows(self, *texts: str) -> str:
        """Return the screen once it shows all *texts*."""
        return self.wait(lambda s: all(text in s for text in texts), f"{texts}")

    @property
    def seen(self) -> set[str]:
        """The places whose strings have been drawn so far."""
        end = len(self.terminal.raw)
        self._seen |= seen_in(bytes(self.terminal.raw[max(0, self._looked - 200) : end]))
        self._looked = end
        return self._seen

    def drawn(self, *places: str) -> None:
        """Return once the strings of these *places* have been drawn, be it cut short."""

        def missing() -> list[str]:
            return sorted(set(places) - self.seen)

        try:
            self.wait(lambda _: not missing(), f"{places}")
        except AssertionError as error:
            raise AssertionError(f"never drawn: {missing()}\n{error}") from None

    def sight(self, *places: str, key: str = "tab", presses: int = 40) -> None:
        """Walk on with *key* until the strings of *places* have been drawn."""
        for _ in range(presses):
            if not set(places) - self.seen:
                return
            self.press(key, moment=2)
            self.settle()
        self.drawn(*places)

    def read(self, *places: str, presses: int = 20) -> None:
        """Walk on with Tab, and page through whatever scrolls there, until *places* have been drawn."""
        for _ in range(presses):
            for key in ("tab", "pagedown", "pagedown", "pagedown"):
                if not set(places) - self.seen:
                    return
                self.press(key)
                self.settle()
        self.drawn(*places)

    def to_list(self) -> None:
        """Leave whatever is open, filters included."""
        self.terminal.press_until("escape", lambda s: "n call" in s and not filtered(s))

    def reach(self, key: str, words: str) -> None:
        """Press a key that leads to *words*; again where it was lost behind an escape."""
        for _ in range(3):
            self.press(key)
            try:
                self.terminal.wait_for(words, timeout=PATIENCE / 3)
                return
            except AssertionError:
                self.alive()
        self.shows(words)

    def find(self, section: str, text: str) -> None:
        """Filter a section's list down to one task, and give the list the focus."""
        self.to_list()
        # A key right behind an escape is alt and that key to a terminal: it may take another one.
        self.terminal.press_until(SECTIONS[section], lambda s: text in rows_in(s))
        self.settle()
        self.reach("/", "Escape clears")
        self.settle()
        for _ in range(5):
            self.press(text)
            try:
                self.terminal.wait_until(lambda s: rows_in(s) == [text], f"{text} alone in the list", 5)
                break
            except AssertionError:
                self.alive()  # what is typed before the field has the focus goes nowhere
        else:
            raise AssertionError(f"{text} is not found; the screen was\n{self.terminal.text()}")
        self.press("enter")
        self.wait(lambda _: self.list_has_focus(), "the list to have the focus")

    def open(self, section: str, text: str) -> None:
        """Open a task."""
        self.find(section, text)
        self.press("enter")
        self.shows("Overview", "Timeline", "Raw")

    def click_until(self, text: str, holds: Callable[[str], bool]) -> None:
        """Click *text* until that has happened: the screen may be laid out anew under the pointer."""
        self.terminal.click_until(text, holds, patience=5)
        self.alive()

    def list_has_focus(self) -> bool:
        """Say whether keys go to the list: its highlighted line is then bold."""
        cells = self.terminal.screen.buffer
        return any(cells[row][0].data == "▌" and cells[row][1].bold for row in range(len(cells)))

    def end(self) -> None:
        """Leave the program by its own key, and look at all that it wrote."""
        self.to_list()
        for _ in range(10):
            self.terminal.send("q")
            try:
                assert self.terminal.wait_ended(4) == 0
                break
            except subprocess.TimeoutExpired:
                self.alive()
        self.terminal.drained()
        assert faults_in(bytes(self.terminal.raw)) == []


def rows_in(shown: str) -> list[str]:
    """Return how the ids of the listed tasks begin: ``t-form``."""
    return re.findall(r"^[ ▌]hostile +([a-z]+-[a-z]*-?)", shown, re.MULTILINE)


def filtered(shown: str) -> bool:
    """Say whether the filter's line is shown."""
    return re.search(r"^ / ", shown, re.MULTILINE) is not None


SIZES: Final = pytest.mark.parametrize(("columns", "rows"), [(120, 36), (80, 24)])


@SIZES
def test_every_section_and_every_task_is_looked_at(scene: Scene, columns: int, rows: int) -> None:
    walk = Walk(scene, columns, rows)
    for section, number in SECTIONS.items():
        walk.press(number)
        walk.wait(lambda s: len(rows_in(s)) > 1, section)
        walk.press(*["down"] * 12, moment=0.05)
    walk.drawn("tool.ask.name", "tool.vanish.name", *(f"{name}.id" for name in scene.server.names))
    if not walk.wide:
        walk.drawn("work.message", "word.message", "large.message", "rpc.error", "done.message")

    walk.open("needs-you", "t-form-")
    walk.shows("Accept ^S")
    walk.sight("form.key", "form.message", "form.boolean")
    walk.sight("form.enum name", "form.const title", "form.item title", "form.number")
    if walk.wide:
        walk.drawn("form.title", "form.pattern title")
    walk.click_until("Show JSON", lambda s: "Hide JSON" in s)
    walk.click_until("Timeline", lambda s: "status changed" in s)
    walk.click_until("Raw", lambda s: "Everything sent and received" in s)
    walk.click_until("Overview", lambda s: "Hide JSON" in s)

    for name, places in LOOKED_AT.items():
        section = TASK_SECTIONS[name]
        walk.open(section, f"t-{name}-")
        walk.sight(*places)
    walk.open("lost", "t-lost-")
    walk.click_until("Timeline", lambda s: "lost" in s)
    walk.end()


TASK_SECTIONS: Final = {
    "url": "needs-you",
    "other": "needs-you",
    "odd": "needs-you",
    "done": "finished",
    "failed": "finished",
}
LOOKED_AT: Final = {
    "url": ("url.fair.message", "url.poisoned.message", "url.address", "url.scheme.message", "url.script"),
    "other": ("sampling.key", "sampling.prompt", "roots.key", "unknown.method"),
    "odd": ("odd.dialect.message", "odd.type.message", "odd.mode.message"),
    "done": ("result.text", "result.uri", "result.blob mime", "result.image mime", "structured.key"),
    "failed": ("failed.error", "failed.message"),
}
"""By a task's name, the places whose strings come into sight when one goes through it with Tab."""


@SIZES
def test_a_sampling_request_is_looked_at_where_it_was_turned_on(
    scene: Scene, columns: int, rows: int
) -> None:
    scene.program.run("servers", "allow", "hostile", "--sampling")
    walk = Walk(scene, columns, rows)
    walk.open("needs-you", "t-other-")
    walk.read("sampling.key", "sampling.prompt", "sampling.hint")
    walk.terminal.press_until("tab", lambda s: "Refuse" in s)  # the buttons are below what was just seen
    walk.end()
    assert scene.server.sent("tasks/update") == []


@SIZES
def test_tools_servers_dialogs_and_notices_are_looked_at(scene: Scene, columns: int, rows: int) -> None:
    walk = Walk(scene, columns, rows)
    calls = len(scene.server.sent("tools/call"))
    walk.reach("n", "7 tools")
    walk.sight("tool.complete.name", "tool.task.name", "tool.refuse.name", key="down")
    walk.press("home", "enter")
    walk.shows("Nothing to fill in.", "Run ^S")
    walk.click_until("Run ^S", lambda s: "Run ^S" not in s or "Done." in s)
    walk.shows("Done.")
    walk.drawn("result.text")
    assert len(scene.server.sent("tools/call")) == calls + 1
    walk.to_list()

    walk.reach("s", "back to the inbox")
    walk.press("t")
    walk.drawn("discover.title")
    walk.to_list()
    walk.reach("?", "the sections; also")
    walk.terminal.press_until("escape", lambda s: "the sections; also" not in s)
    walk.reach("ctrl+p", "Search for commands")
    walk.press("servers")
    walk.terminal.press_until("escape", lambda s: "Servers" not in s and "commands" not in s)

    walk.find("running", "t-rpc-")
    walk.press("r")
    walk.wait(lambda s: "looking" in s or "Refused" in s, "the notice")
    walk.reach("c", "Cancel this task?")
    walk.shows("t-rpc-")
    walk.press("escape")
    walk.wait(lambda s: "Cancel this task?" not in s, "the dialog to go")
    assert scene.server.sent("tasks/cancel") == []
    walk.reach("c", "Cancel this task?")
    walk.shows("t-rpc-")
    walk.click_until("Cancel the task", lambda s: "Cancel this task?" not in s)
    walk.drawn("cancel.error")
    assert [sent["taskId"] for sent in scene.server.sent("tasks/cancel")] == [task_id("rpc")]

    walk.open("finished", "t-done-")
    walk.shows("Save…")
    walk.terminal.press_until("tab", lambda s: "Save…" in s)
    walk.end()
    assert scene.server.sent("tasks/update") == []


@SIZES
def test_several_at_once_saved_replies_and_a_code_for_a_phone_are_looked_at(
    scene: Scene, columns: int, rows: int
) -> None:
    walk = Walk(scene, columns, rows)
    walk.find("needs-you", "t-answer-")
    walk.press("space")
    walk.shows("answer 1 marked")
    walk.reach("A", "to be answered together")
    walk.drawn("answer.message", "answer.key")
    walk.terminal.press_until("space", lambda s: "(•) Yes" in s)
    walk.reach("ctrl+l", "No reply to this question is saved")
    walk.press("mine", "tab")
    walk.terminal.press_calmly("enter", lambda s: "They only fill in the form" in s)
    walk.terminal.press_calmly("escape", lambda s: "They only fill in" not in s)
    walk.reach("ctrl+o", "Accept sends exactly this")
    walk.to_list()

    walk.open("needs-you", "t-url-")
    walk.sight("url.fair.message")
    walk.click_until("QR code…", lambda s: "Tell hostile that you agree" in s)
    walk.click_until("Show", lambda s: "for your phone" in s)
    walk.shows("▀▀▀▀")
    walk.end()
    (sent,) = scene.server.sent("tasks/update")
    assert sent["inputResponses"] == {"a": {"action": "accept"}}


def test_answers_act_on_the_question_that_is_shown(scene: Scene) -> None:
    walk = Walk(scene, 120, 36)
    for name in ("answer", "refuse"):
        walk.open("needs-you", f"t-{name}-")
        walk.shows("Accept ^S")
        walk.drawn(f"{name}.message", f"{name}.key")
        walk.terminal.press_until("space", lambda s: "(•) Yes" in s)
        walk.terminal.press_calmly("ctrl+s", lambda s: "Accept ^S" not in s or "refused" in s)
        if name == "answer":
            walk.wait(lambda s: "1 earlier question" in s, "the answered question")
            walk.drawn("answered.message")
        else:
            walk.drawn("refuse.error")
    walk.end()
    expected = [
        {
            "taskId": task_id(name),
            "inputResponses": {bad(f"{name}.key"): {"action": "accept", "content": {"yes": True}}},
        }
        for name in ("answer", "refuse")
    ]
    sent = [{k: v for k, v in params.items() if k != "_meta"} for params in scene.server.sent("tasks/update")]
    # A refused answer is open again, and ^S pressed once more sends it once more.
    assert [one for number, one in enumerate(sent) if one not in sent[:number]] == expected


def test_the_command_line_writes_nothing_of_a_servers_raw(scene: Scene) -> None:
    program = scene.program
    ids = {name: f"t-{name}-" for name in ("form", "other", "done", "failed", "lost", "rpc", "large")}
    commands = [("list",), ("list", "--json"), ("servers", "list"), ("servers", "test", "hostile")]
    commands += [("tools", "hostile"), ("tools", "hostile", "--json")]
    commands += [("show", known, *more) for known in ids.values() for more in ((), ("--json",))]
    commands += [("show", ids["rpc"], "--refresh"), ("cancel", ids["rpc"]), ("call", "hostile", "form")]
    commands += [("answer", "t-refuse-", "--accept", '{"yes": true}')]
    commands += [("watch", ids["rpc"], "--timeout", "1"), ("answer", "t-form-", "--field", "nothing=1")]
    commands += [("export",), ("export", "--format", "csv"), ("export", "--server", "hostile")]
    seen: set[str] = set()
    for command in commands:
        done = program.run(*command, code=None)
        for stream in (done.stdout, done.stderr):
            assert faults_in(stream.encode()) == [], command
            seen |= seen_in(stream.encode())
        if "--json" in command:
            json.loads(done.stdout)
    wanted = {"form.message", "form.key", "result.text", "structured.key", "failed.error", "failed.data"}
    wanted |= {"discover.title", "discover.instructions", "tool.task.name", "cancel.error", "refuse.error"}
    wanted |= {"rpc.error", "lost.id", "unknown.message", "tool.bad header", "large.message"}
    assert wanted <= seen, wanted - seen


@pytest.mark.parametrize(
    "command",
    [
        ("list",),
        ("show", "t-form-"),
        ("show", "t-done-"),
        ("tools", "hostile"),
        ("servers", "test", "hostile"),
        ("export",),
        ("export", "--format", "csv"),
    ],
    ids=" ".join,
)
def test_the_command_line_writes_nothing_raw_to_a_terminal(scene: Scene, command: tuple[str, ...]) -> None:
    with Terminal(
        scene.program.command(*command), env={"TASKINBOX_HOME": str(scene.program.home)}
    ) as terminal:
        terminal.wait_ended(PATIENCE)
        raw = terminal.drained()
    assert faults_in(raw) == []
    assert len(seen_in(raw)) > 1


def test_half_a_character_is_refused_with_a_clear_word_and_the_others_go_on(scene: Scene) -> None:
    shown = scene.program.json("show", "t-half-")
    assert "surrogate" in shown["problem"] or "half" in shown["problem"], shown["problem"]
    assert shown["status"] == "working"
    done = scene.program.run("show", "t-half-", "--refresh", code=None)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert scene.program.json("show", "t-work-", "--refresh")["statusMessage"] == bad("work.message")


def test_a_default_with_control_characters_is_marked_and_never_goes_back_silently(scene: Scene) -> None:
    done = scene.program.run("answer", "t-form-", "--field", "ok=true", "--dry-run", code=None)
    told = done.stdout + done.stderr
    assert "control characters" in told, told
    assert "7777m" not in done.stdout, done.stdout


def test_the_log_holds_no_control_characters(scene: Scene) -> None:
    walk = Walk(scene, 80, 24)
    walk.wait(lambda _: len(scene.server.of("tasks/get")) > 50, "some rounds of polls")
    walk.end()
    text = scene.paths.log.read_text()
    assert text
    assert [
        repr(text[m.start() - 40 : m.end() + 40]) for m in _CONTROL.finditer(text) if m.group() not in "\n"
    ] == []


def nested(levels: int) -> Json:
    found: Json = {"type": "string"}
    for _ in range(levels):
        found = {"type": "object", "properties": {"d": found}}
    return found


def asking(field: Json, count: int = 1) -> Json:
    """Return what a task that asks *count* questions with that field shows."""
    schema = {"type": "object", "properties": {"field": field}}
    return {
        "status": "input_required",
        "inputRequests": {
            f"q{n}": {
                "method": "elicitation/create",
                "params": {"mode": "form", "message": f"number {n}", "requestedSchema": schema},
            }
            for n in range(count)
        },
    }


FLOODS: Final[dict[str, Json]] = {
    "many": asking({"type": "boolean"}, 10_000),
    "enum": asking({"type": "string", "enum": [f"v{n}" for n in range(5_000)]}),
    "pattern": asking({"type": "string", "pattern": "^(a+)+$", "default": "a" * 5_000 + "!"}),
    "deep": asking(nested(50)),
    "words": {"statusMessage": "w" * 10_000_000},
    "large": {"statusMessage": "w" * 20_000_000},
    "result": {"status": "completed", "result": {"content": [{"type": "text", "text": "word " * 2_000_000}]}},
}
"""Replies so large, deep or costly that reading or drawing them may hold up everything else."""


def spent(pid: int) -> float:
    """Return the seconds of processor time a process has used: a busy machine does not count against it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to tell processor time")
@pytest.mark.parametrize("names", [tuple(n for n in FLOODS if n != "many"), ("many",)], ids="+".join)
def test_floods_hold_up_neither_keys_nor_other_tasks(tmp_path: Path, names: tuple[str, ...]) -> None:
    with HostileServer() as server:
        scene = Scene(tmp_path / "home", server)
        ids = [f"x-{name}" for name in names] + ["x-calm"]
        for known in ids:
            server.show(known)
        asyncio.run(scene.track(*ids))
        walk = Walk(scene, 120, 36)
        try:
            for name in names:
                held_up_by(walk, name)
            server.show("x-calm", "completed", result={})
            done = 2 if "result" in names else 1
            walk.wait(lambda s: f"Finished {done}" in s, "the other task to go on")
            walk.end()
        finally:
            scene.close()


def held_up_by(walk: Walk, name: str) -> None:
    """Let a task become a flood, show it, and hold the program to answering keys all the same."""
    server, pid = walk.scene.server, walk.terminal.process.pid
    server.tasks[f"x-{name}"] = {**task(f"x-{name}"), **FLOODS[name]}
    asked = len(server.of("tasks/get"))
    walk.wait(lambda _: len(server.of("tasks/get")) > asked + 12, "some rounds of polls")
    sections = {"input_required": "needs-you", "completed": "finished"}
    walk.find(sections.get(FLOODS[name].get("status", ""), "running"), f"x-{name}")
    for _ in range(2):
        before = spent(pid)
        walk.terminal.send("?")
        walk.shows("the sections; also")
        took = spent(pid) - before
        assert took < 2, f"{name}: a key took {took:.1f} s of processor time"
        walk.terminal.send("?")
        walk.wait(lambda s: "the sections; also" not in s, "the help to go")
