"""The inbox's shell: sections, the highlight, the filter, and what happens when the engine fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.shell import Entries, Shell, asked, painted, until
from textual.widgets import Button, TextArea

from app.engine.commands import Changes, EngineError
from app.tui.messages import OpenTask
from app.tui.screens.confirm import Confirm
from app.tui.screens.help import Help
from app.tui.screens.task import TaskScreen
from app.tui.widgets.drafts import drafts_of
from app.tui.widgets.filter_bar import FilterBar
from app.tui.widgets.section_tabs import SectionTabs
from app.tui.widgets.status_bar import Banner
from app.tui.widgets.task_view import TaskView
from storage.errors import StoreUnreadable
from storage.records import ServerRecord, TaskKey

NARROW = (80, 24)
WIDE = (130, 36)


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    yield made
    made.store.close()


def banner(inbox: Shell) -> str:
    found = inbox.screen.query_one(Banner)
    return found.text if found.has_class("-shown") else ""


async def test_the_list_is_drawn_from_the_store_before_the_engine_is_there(tmp_path: Path) -> None:
    inbox = Shell(tmp_path, connects=False)
    inbox.add("tsk_1", "approve")
    async with inbox.app.run_test(size=NARROW, notifications=True) as pilot:
        await pilot.pause()
        assert inbox.app.engine is None
        shown = painted(inbox.app)
        assert "deploy" in shown
        assert "! 1 question" in shown
        assert "connecting…" in shown
        await pilot.press("c")
        await until(pilot, lambda: "Still connecting" in painted(inbox.app))
        inbox.gate.set()
        await until(pilot, lambda: inbox.engine.runs == 1)
        assert "connecting…" not in painted(inbox.app)


async def test_each_section_shows_its_count_and_its_tasks(inbox: Shell) -> None:
    inbox.add("tsk_ask", "approve")
    inbox.add("tsk_run")
    inbox.add("tsk_run2")
    inbox.add("tsk_done", status="completed", tracking="ended")
    inbox.add("tsk_lost", tracking="lost", reason="gone")
    inbox.add("tsk_away", status="completed", tracking="ended")
    inbox.store.archive(TaskKey("ci", "tsk_away"))
    async with inbox.app.run_test(size=NARROW) as pilot:
        await pilot.pause()
        assert inbox.screen.query_one(SectionTabs).counts == inbox.store.reader.counts()
        first = painted(inbox.app).splitlines()[1]
        assert "Needs you 1 │ Running 2 │ Finished 1 │ Lost 1 │ Archived 1" in first
        for key, ids in (
            ("1", ["tsk_ask"]),
            ("2", ["tsk_run2", "tsk_run"]),
            ("3", ["tsk_done"]),
            ("4", ["tsk_lost"]),
            ("5", ["tsk_away"]),
        ):
            await pilot.press(key)
            assert sorted(inbox.listed) == sorted(ids)
        await pilot.press("right")
        assert inbox.screen.section == "needs-you"
        await pilot.press("left", "left")
        assert inbox.screen.section == "lost"
        await pilot.press("tab")
        assert inbox.screen.section == "archived"


async def test_a_click_chooses_a_section_and_a_task_and_a_double_click_opens_it(inbox: Shell) -> None:
    inbox.add("tsk_a")
    inbox.add("tsk_b")
    async with inbox.app.run_test(size=NARROW) as pilot:
        await pilot.click("#sections", offset=(16, 0))
        assert inbox.screen.section == "running"
        await pilot.click("#tasks", offset=(5, 1))
        assert inbox.highlighted == inbox.listed[1]
        await pilot.click("#tasks", offset=(5, 0), times=2)
        await until(pilot, lambda: isinstance(inbox.app.screen, TaskScreen))
        assert inbox.app.screen.key == TaskKey("ci", inbox.listed[0])


async def test_the_highlight_stays_on_its_task_when_rows_above_it_go_or_come(inbox: Shell) -> None:
    keys = [inbox.add(f"tsk_{n}", "approve") for n in range(6)]
    async with inbox.app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: inbox.app.engine is not None)
        await pilot.press("down", "down", "down")
        assert inbox.highlighted == "tsk_3"
        inbox.end(keys[0])
        inbox.end(keys[1])
        await until(pilot, lambda: inbox.listed == ["tsk_2", "tsk_3", "tsk_4", "tsk_5"])
        assert inbox.highlighted == "tsk_3"
        await pilot.press("c")
        await asked(inbox, pilot)
        assert "tsk_3" in painted(inbox.app)


async def test_a_key_pressed_right_after_a_move_acts_on_the_task_moved_to(inbox: Shell) -> None:
    for n in range(3):
        inbox.add(f"tsk_{n}", "approve")
    async with inbox.app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: inbox.app.engine is not None)
        inbox.tasks.action_step(1)
        inbox.screen.action_cancel()  # before any message about the move is handled
        await asked(inbox, pilot)
        await until(pilot, lambda: "tsk_1" in painted(inbox.app))


async def test_when_the_highlighted_task_leaves_no_key_acts_on_its_neighbour(inbox: Shell) -> None:
    keys = [inbox.add(f"tsk_{n}", "approve") for n in range(4)]
    async with inbox.app.run_test(size=NARROW, notifications=True) as pilot:
        await until(pilot, lambda: inbox.app.engine is not None)
        await pilot.press("down")
        inbox.end(keys[1])
        await until(pilot, lambda: len(inbox.listed) == 3)
        assert inbox.highlighted is None
        for key in ("c", "e", "f", "a", "enter"):
            await pilot.press(key)
        await until(pilot, lambda: "Choose a task first" in painted(inbox.app))
        assert inbox.engine.again == []
        assert inbox.store.reader.counts()["archived"] == 0
        await pilot.press("down")
        assert inbox.highlighted == "tsk_2"


async def test_beside_the_list_the_task_that_left_stays_shown_and_is_the_one_meant(inbox: Shell) -> None:
    keys = [inbox.add(f"tsk_{n}", "approve") for n in range(3)]
    async with inbox.app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: bool(inbox.screen.query(TaskView)))
        view = inbox.screen.query_one(TaskView)
        await until(pilot, lambda: view.key == keys[0] and inbox.app.engine is not None)
        inbox.end(keys[0])
        await until(pilot, lambda: len(inbox.listed) == 2)
        await pilot.pause(0.15)
        assert inbox.highlighted is None
        assert view.key == keys[0]
        await pilot.press("f")
        await asked(inbox, pilot)
        assert "tsk_0" in painted(inbox.app)


async def test_archiving_one_after_another_goes_down_the_list(inbox: Shell) -> None:
    for n in range(4):
        inbox.add(f"tsk_{n}", status="completed", tracking="ended")
    async with inbox.app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: inbox.app.engine is not None)
        await pilot.press("3")
        order = list(inbox.listed)
        await pilot.press("down", "e")
        await until(pilot, lambda: len(inbox.listed) == 3)
        assert inbox.highlighted == order[2]
        await pilot.press("e")
        await until(pilot, lambda: len(inbox.listed) == 2)
        assert inbox.highlighted == order[3]
        await pilot.press("5", "e")
        await until(pilot, lambda: inbox.store.reader.counts()["archived"] == 1)


@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_cancelling_asks_first_with_the_safe_button_focused(
    inbox: Shell, size: tuple[int, int]
) -> None:
    key = inbox.add("tsk_9", "approve", server="prod", tool="drop_table")
    async with inbox.app.run_test(size=size) as pilot:
        await until(pilot, lambda: inbox.app.engine is not None)
        await pilot.press("c")
        await asked(inbox, pilot)
        shown = painted(inbox.app)
        assert "prod" in shown
        assert "drop_table" in shown
        assert "tsk_9" in shown
        assert inbox.app.focused is inbox.app.screen.query_one("#confirm-keep", Button)
        await pilot.press("enter")
        await until(pilot, lambda: not isinstance(inbox.app.screen, Confirm))
        assert inbox.engine.again == []
        await pilot.press("c")
        await asked(inbox, pilot)
        await pilot.press("right", "enter")
        await until(pilot, lambda: inbox.engine.again == [("cancel", key)])


async def test_a_confirmation_acts_on_the_task_it_named_whatever_the_list_does_meanwhile(
    inbox: Shell,
) -> None:
    keys = [inbox.add(f"tsk_{n}") for n in range(3)]
    async with inbox.app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: inbox.app.engine is not None)
        await pilot.press("2")
        meant = inbox.highlighted
        await pilot.press("c")
        await asked(inbox, pilot)
        inbox.end(next(key for key in keys if key.id != meant))
        await until(pilot, lambda: len(inbox.listed) == 2)
        await pilot.press("right", "enter")
        await until(pilot, lambda: inbox.engine.again == [("cancel", TaskKey("ci", meant or ""))])


async def test_forgetting_asks_first_and_escape_keeps_it(inbox: Shell) -> None:
    inbox.add("tsk_1", status="completed", tracking="ended")
    async with inbox.app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: inbox.app.engine is not None)
        await pilot.press("3", "f")
        await asked(inbox, pilot)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(inbox.app.screen, Confirm))
        assert inbox.store.reader.counts()["finished"] == 1
        await pilot.press("f")
        await asked(inbox, pilot)
        await pilot.press("tab", "enter")
        await until(pilot, lambda: inbox.listed == [])
        assert inbox.store.reader.counts()["finished"] == 0


async def test_a_failed_action_is_said_and_changes_nothing_else(inbox: Shell) -> None:
    inbox.add("tsk_1", status="completed", tracking="ended")
    inbox.engine.trouble = EngineError("unreachable", "[/foo] no")
    async with inbox.app.run_test(size=NARROW, notifications=True) as pilot:
        await until(pilot, lambda: inbox.app.engine is not None)
        await pilot.press("3", "e")
        await until(pilot, lambda: "[/foo] no" in painted(inbox.app))
        assert inbox.highlighted == "tsk_1"
        inbox.add("tsk_2", status="completed", tracking="ended")
        inbox.store.archive(TaskKey("ci", "tsk_1"))
        inbox.engine.changed(TaskKey("ci", "tsk_1"))
        await until(pilot, lambda: inbox.listed == ["tsk_2"])
        assert inbox.highlighted is None, "it left by itself now"


async def test_an_engine_event_never_puts_a_screen_in_the_way(inbox: Shell) -> None:
    async with inbox.app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: inbox.app.engine is not None)
        key = inbox.add("tsk_new", "approve")
        inbox.engine.changed(key)
        await until(pilot, lambda: inbox.listed == ["tsk_new"])
        assert inbox.app.screen is inbox.screen
        assert "1 needs you" in painted(inbox.app)


async def test_the_filter_looks_at_server_tool_id_and_message(inbox: Shell) -> None:
    inbox.add("tsk_1", server="ci", tool="deploy", status_message="Compiling the kernel")
    inbox.add("tsk_2", server="lab", tool="report")
    inbox.add("tsk_3", server="lab", tool="[b]odd[/foo]")
    async with inbox.app.run_test(size=NARROW) as pilot:
        await pilot.press("2", "slash")
        for text, found in (
            ("KERNEL", ["tsk_1"]),
            ("lab", ["tsk_2", "tsk_3"]),
            ("tsk_2", ["tsk_2"]),
            ("repo", ["tsk_2"]),
            ("[/foo]", ["tsk_3"]),
        ):
            inbox.screen.query_one(FilterBar).input.value = text
            await until(pilot, lambda found=found: sorted(inbox.listed) == found)
        await pilot.press("x")
        await until(pilot, lambda: inbox.listed == [])
        assert "Nothing matches." in painted(inbox.app)
        await pilot.press("escape")
        await until(pilot, lambda: len(inbox.listed) == 3)
        assert inbox.app.focused is inbox.tasks


@pytest.mark.parametrize("tab", range(1, 6))
async def test_an_empty_section_says_so(inbox: Shell, tab: int) -> None:
    words = ["waiting for you.", "Nothing is running.", "finished yet.", "Nothing is lost.", "is archived."]
    async with inbox.app.run_test(size=NARROW, notifications=True) as pilot:
        await pilot.press(str(tab))
        assert words[tab - 1] in painted(inbox.app)
        await pilot.press("enter", "a", "c", "e", "f", "r", "up", "down", "pageup", "end")
        assert inbox.app.screen is inbox.screen


async def test_without_a_server_it_says_how_to_add_one(tmp_path: Path) -> None:
    inbox = Shell(tmp_path)
    inbox.servers.urls.clear()
    async with inbox.app.run_test(size=NARROW) as pilot:
        await pilot.pause()
        assert "taskinbox servers add NAME URL" in painted(inbox.app)


async def test_a_crash_of_the_engine_is_a_banner_and_watching_can_begin_again(inbox: Shell) -> None:
    inbox.add("tsk_1", "approve")
    async with inbox.app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: inbox.engine.runs == 1)
        inbox.engine.crash.set()
        await until(pilot, lambda: "Watching has stopped" in banner(inbox))
        assert "[/foo] a bug ␛[31m" in painted(inbox.app)
        assert inbox.app.return_code is None
        await pilot.press("down", "R")
        await until(pilot, lambda: inbox.engine.runs == 2)
        assert banner(inbox) == ""


async def test_a_failure_to_connect_is_a_banner_and_can_be_tried_again(tmp_path: Path) -> None:
    inbox = Shell(tmp_path)
    inbox.connect_error = OSError("[/foo] no such file")
    inbox.add("tsk_1", "approve")
    async with inbox.app.run_test(size=NARROW, notifications=True) as pilot:
        await until(pilot, lambda: "[/foo] no such file" in banner(inbox))
        assert inbox.app.engine is None
        await pilot.press("c")
        await until(pilot, lambda: "Not connected. Press R" in painted(inbox.app))
        inbox.connect_error = None
        await pilot.press("R")
        await until(pilot, lambda: inbox.engine.runs == 1)
        assert banner(inbox) == ""


async def test_a_store_that_cannot_be_read_is_a_banner_and_the_screen_stays(
    inbox: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = inbox.add("tsk_1", "approve")
    async with inbox.app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: inbox.engine.runs == 1)

        def unreadable(*_args: object, **_named: object) -> None:
            raise StoreUnreadable("the disk is gone")

        for method in ("counts", "keys", "rows", "servers", "task"):
            monkeypatch.setattr(inbox.app.reader, method, unreadable)
        inbox.engine.changed(key)
        await until(pilot, lambda: "the disk is gone" in banner(inbox))
        assert inbox.listed == ["tsk_1"]
        assert inbox.app.return_code is None


async def test_leaving_closes_the_engine(inbox: Shell) -> None:
    async with inbox.app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: inbox.engine.runs == 1)
        await pilot.press("q")
    assert inbox.engine.closed
    assert inbox.app.return_code == 0


async def test_servers_show_their_health_in_words(inbox: Shell) -> None:
    inbox.servers.urls.update(lab="https://lab", prod="https://prod", new="https://new")
    now = inbox.clock.now
    inbox.engine.ways.update(ci="polling", lab="polling", prod="subscribed")
    inbox.store.set_server(ServerRecord("ci", "ok", now))
    inbox.store.set_server(ServerRecord("lab", "sign-in", now))
    inbox.store.set_server(ServerRecord("prod", "unreachable", now - 180_000, "refused"))
    async with inbox.app.run_test(size=(140, 24)) as pilot:
        await until(pilot, lambda: "● ci polling" in painted(inbox.app))
        line = painted(inbox.app).splitlines()[0]
        for words in (
            "● ci polling",
            "○ lab sign-in needed",
            "○ prod unreachable 3m",
            "○ new not contacted yet",
        ):
            assert words in line


async def test_many_servers_never_push_the_count_off_the_line(inbox: Shell) -> None:
    inbox.servers.urls.update({f"server-{n}": "https://x" for n in range(30)})
    inbox.add("tsk_1", "approve")
    async with inbox.app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: inbox.engine.runs == 1)
        await pilot.pause()
        line = painted(inbox.app).splitlines()[0]
        assert line.rstrip().endswith("1 needs you")
        assert "more" in line


async def test_enter_opens_the_task_over_a_narrow_list_and_beside_a_wide_one(inbox: Shell) -> None:
    key = inbox.add("tsk_1", "approve")
    async with inbox.app.run_test(size=NARROW) as pilot:
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(inbox.app.screen, TaskScreen))
        await pilot.press("escape")
        if isinstance(inbox.app.screen, TaskScreen):
            await pilot.press("escape")
        await until(pilot, lambda: inbox.app.screen is inbox.screen)
        await pilot.resize_terminal(*WIDE)
        await until(pilot, lambda: bool(inbox.screen.query(TaskView)))
        view = inbox.screen.query_one(TaskView)
        await until(pilot, lambda: view.key == key)
        inbox.tasks.focus()
        await pilot.press("enter")
        await until(pilot, lambda: inbox.app.focused is not None and view in inbox.app.focused.ancestors)
        await pilot.resize_terminal(*NARROW)
        await until(pilot, lambda: inbox.app.focused is inbox.tasks)
        await until(pilot, lambda: view.key is None)


async def test_the_list_survives_any_size(inbox: Shell) -> None:
    for n in range(30):
        inbox.add(f"tsk_{n}", "approve", tool="デプロイ" * 9)
    async with inbox.app.run_test(size=NARROW) as pilot:
        await pilot.press("end")
        for size in ((20, 6), (40, 10), (110, 24), (200, 50), (109, 24), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert inbox.highlighted == inbox.listed[-1]
            assert (inbox.tasks.size.width >= size[0] - 1) is (size[0] < 110)
            top = round(inbox.tasks.scroll_y)
            assert top <= 29 < top + max(1, inbox.tasks.size.height)


async def test_a_call_that_becomes_a_task_keeps_the_highlight(inbox: Shell) -> None:
    from fakes.stored import writes

    from storage.records import NewTask, TaskState

    call = TaskKey("ci", "call-1")
    inbox.add("tsk_0")
    inbox.store.add_task(NewTask(call, kind="call", tool="ask_first", state=TaskState()))
    async with inbox.app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: inbox.engine.runs == 1)
        await pilot.press("2")
        inbox.tasks.highlight(call)
        became = NewTask(TaskKey("ci", "tsk_new"), tool="ask_first", state=TaskState(status="working"))
        inbox.store.change_task(call, writes(became=became))
        inbox.engine.changed(call, became.key)
        await until(pilot, lambda: "tsk_new" in inbox.listed)
        assert inbox.highlighted == "tsk_new"


HOSTILE = [
    "[/foo] x",
    "[@click=app.quit]x[/]",
    "\x1b]52;c;ZXZpbA==\x07",
    "\x1b[31mred\x9b0m",
    "a\u202eb\u2066c",
    "👩‍👩‍👧‍👦 デプロイ",
]


@pytest.mark.rule("wire.text-inert")
@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_hostile_text_in_every_field_is_only_text(
    tmp_path: Path, text: str, size: tuple[int, int]
) -> None:
    inbox = Shell(tmp_path, servers=Entries({text: "https://x"}))
    inbox.store.set_server(ServerRecord(text, "faulty", inbox.clock.now, message=text))
    inbox.add(text, text, server=text, tool=text, status_message=text, problem=text)
    inbox.add(text + "2", server=text, tool=text, status_message=text)
    inbox.add(text + "3", server=text, tool=text, tracking="lost", reason=text, status=text)
    async with inbox.app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: inbox.engine.runs == 1)
        for keys in (("1", "c"), ("escape", "2", "f"), ("escape", "4", "f"), ("escape", "s"), ("d",)):
            await pilot.press(*keys)
            await pilot.pause(0.12)
            shown = painted(inbox.app)
            assert not {c for c in shown if c < " " and c != "\n"}
            assert not set("\x7f\x9b\u202e\u2066") & set(shown)
        assert inbox.app.return_code is None


async def test_help_names_the_keys_and_the_words(inbox: Shell) -> None:
    async with inbox.app.run_test(size=NARROW) as pilot:
        await pilot.press("question_mark")
        assert isinstance(inbox.app.screen, Help)
        await pilot.press("escape")
        assert inbox.app.screen is inbox.screen


async def test_the_palette_finds_every_command(inbox: Shell) -> None:
    async with inbox.app.run_test(size=NARROW) as pilot:
        await pilot.press("ctrl+p", *"dark or light")
        await pilot.pause(0.3)
        await pilot.press("enter")
        await until(pilot, lambda: inbox.app.theme == "taskinbox-light")


async def test_ages_go_on_without_reading_the_store(inbox: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox.add("tsk_1", "approve", created_at=inbox.clock.now, ttl_ms=590_000)
    async with inbox.app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: inbox.engine.runs == 1)
        await pilot.pause(0.15)
        assert "9m left" in painted(inbox.app)
        monkeypatch.setattr(inbox.app.reader, "rows", None)
        inbox.clock.now += 300_000
        inbox.screen.tick()
        await pilot.pause()
        assert "4m left" in painted(inbox.app)
        inbox.clock.now += 300_000
        inbox.screen.tick()
        await pilot.pause()
        assert "expired" in painted(inbox.app)


async def test_a_change_of_a_server_is_read_again(inbox: Shell) -> None:
    async with inbox.app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: inbox.engine.runs == 1)
        inbox.store.set_server(ServerRecord("ci", "ok", inbox.clock.now))
        inbox.engine.ways["ci"] = "polling"
        for listener in inbox.engine.listeners:
            listener(Changes(servers=frozenset({"ci"})))
        await until(pilot, lambda: "● ci polling" in painted(inbox.app))


@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_each_server_says_how_its_tasks_are_observed(inbox: Shell, size: tuple[int, int]) -> None:
    inbox.servers.urls.update(lab="https://lab", idle="https://idle")
    for name in ("ci", "lab", "idle"):
        inbox.store.set_server(ServerRecord(name, "ok", inbox.clock.now))
    inbox.engine.ways.update(ci="subscribed", lab="polling")

    def first_line() -> str:
        return painted(inbox.app).splitlines()[0]

    async with inbox.app.run_test(size=size) as pilot:
        await until(pilot, lambda: "● ci subscribed  ● lab polling  ● idle ok " in first_line())
        inbox.engine.ways = {"lab": "subscribed"}
        for listener in inbox.engine.listeners:
            listener(Changes(servers=frozenset({"ci", "lab"})))
        await until(pilot, lambda: "● ci ok  ● lab subscribed  ● idle ok " in first_line())


async def test_nothing_is_observed_while_the_engine_stands_still(inbox: Shell) -> None:
    inbox.store.set_server(ServerRecord("ci", "ok", inbox.clock.now))
    inbox.engine.ways["ci"] = "subscribed"
    async with inbox.app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: "● ci subscribed" in painted(inbox.app))
        inbox.engine.crash.set()
        await until(pilot, lambda: "● ci ok" in painted(inbox.app))


@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_another_screen_can_open_a_task_wherever_it_stands(inbox: Shell, size: tuple[int, int]) -> None:
    inbox.add("tsk_ask", "approve")
    key = inbox.add("tsk_done", status="completed", tracking="ended")
    async with inbox.app.run_test(size=size) as pilot:
        await until(pilot, lambda: inbox.engine.runs == 1)
        await pilot.press("question_mark")
        inbox.app.screen.post_message(OpenTask(key))
        await until(pilot, lambda: inbox.highlighted == "tsk_done")
        assert inbox.screen.section == "finished"
        if size == NARROW:
            await until(pilot, lambda: isinstance(inbox.app.screen, TaskScreen))
            await until(pilot, lambda: "tsk_done" in painted(inbox.app))
        else:
            assert inbox.app.screen is inbox.screen
            await until(pilot, lambda: bool(inbox.screen.query(TaskView)))
            await until(pilot, lambda: inbox.screen.query_one(TaskView).key == key)


async def test_a_task_over_the_list_follows_what_changes_and_asks_before_cancelling(inbox: Shell) -> None:
    key = inbox.add("tsk_1", "approve")
    async with inbox.app.run_test(size=NARROW) as pilot:
        await until(pilot, lambda: inbox.engine.runs == 1)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(inbox.app.screen, TaskScreen))
        view = inbox.app.screen.query_one(TaskView)
        await until(pilot, lambda: inbox.app.focused is not None and view in inbox.app.focused.ancestors)
        assert isinstance(inbox.app.focused, TextArea)
        inbox.app.screen.set_focus(None)
        await pilot.press("c")
        await asked(inbox, pilot)
        await pilot.press("right", "enter")
        await until(pilot, lambda: inbox.engine.again == [("cancel", key)])
        inbox.end(key, "cancelled")
        await until(pilot, lambda: "cancelled" in painted(inbox.app))


async def test_what_was_typed_just_before_leaving_is_saved(inbox: Shell) -> None:
    key = inbox.add("tsk_1", "approve")
    question = inbox.store.reader.questions(key)[0]
    async with inbox.app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: inbox.engine.runs == 1)
        drafts_of(inbox.app).keep(question.id, '{"a": "b"}')
        inbox.app.exit()
    assert inbox.engine.drafts == [(question.id, '{"a": "b"}')]
    assert inbox.engine.closed
