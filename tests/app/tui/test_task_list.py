"""Ten thousand tasks cost what a screenful costs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence

import pytest
from fakes.reader import NOW, MemoryReader, record
from textual.app import App, ComposeResult

from app.tui.theme import VARIABLES
from app.tui.widgets.task_list import KEPT_ROWS, OVERSCAN, ListHead, TaskList
from storage.records import TaskKey, TaskRow

SIZE = (100, 30)


class Listing(App[None]):
    def __init__(self, reader: MemoryReader) -> None:
        super().__init__()
        self.reader = reader
        self.lines_drawn = 0
        self.heard: list[TaskKey | None] = []

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return VARIABLES

    def compose(self) -> ComposeResult:
        app = self

        class Counting(TaskList):
            def render_line(self, y: int):  # type: ignore[no-untyped-def]
                app.lines_drawn += 1
                return super().render_line(y)

        self.tasks: TaskList = Counting(self.read, lambda: NOW, id="tasks")
        yield ListHead(self.tasks)
        yield self.tasks

    def read(self, keys: Sequence[TaskKey]) -> Mapping[TaskKey, TaskRow]:
        return self.reader.rows(keys)

    def on_mount(self) -> None:
        self.tasks.open("running", self.reader.keys("running"))
        self.tasks.focus()

    def on_task_list_highlighted(self) -> None:
        self.heard.append(self.tasks.highlighted)


def many(count: int) -> MemoryReader:
    return MemoryReader(*(record("demo", f"tsk_{n}", status_message=f"step {n}") for n in range(count)))


def painted(app: App[None]) -> str:
    return "\n".join(
        "".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()
    )


async def test_only_rows_in_sight_are_read_however_many_there_are() -> None:
    app = Listing(many(10_000))
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        assert app.reader.rows_read <= 2 * (SIZE[1] + OVERSCAN)
        await pilot.press("end")
        assert "step 9999" in painted(app)
        assert app.reader.rows_read <= 5 * (SIZE[1] + OVERSCAN)
        for _ in range(3):
            await pilot.press("home", "pagedown", "pagedown", "end", "pageup")
        assert len(app.tasks._rows) <= KEPT_ROWS + SIZE[1] + 2 * OVERSCAN


async def test_a_step_draws_two_lines_and_a_changed_row_draws_one() -> None:
    app = Listing(many(10_000))
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        app.lines_drawn = 0
        await pilot.press("down")
        assert app.lines_drawn == 2
        app.lines_drawn = 0
        key = TaskKey("demo", "tsk_7")
        old = app.reader.tasks[key]
        app.reader.put(record("demo", "tsk_7", status_message="another step"))
        app.tasks.reread({key, TaskKey("demo", "tsk_9000")})
        await pilot.pause()
        assert app.lines_drawn == 1
        assert "another step" in painted(app)
        app.reader.put(old)
        app.tasks.reread({TaskKey("demo", "tsk_9000")})
        await pilot.pause()
        assert app.lines_drawn == 1, "a change out of sight draws nothing"


async def test_the_highlighted_line_keeps_its_place_on_the_screen_when_rows_above_it_go() -> None:
    app = Listing(many(500))
    async with app.run_test(size=SIZE) as pilot:
        app.tasks.highlight(TaskKey("demo", "tsk_300"))
        await pilot.pause()
        line = app.tasks._cursor.place - round(app.tasks.scroll_y)
        app.reader.drop(*(TaskKey("demo", f"tsk_{n}") for n in range(0, 280, 2)))
        app.tasks.replace(app.reader.keys("running"))
        await pilot.pause()
        assert app.tasks.highlighted == TaskKey("demo", "tsk_300")
        assert app.tasks._cursor.place - round(app.tasks.scroll_y) == line
        assert "step 300" in painted(app)


async def test_scrolling_with_the_wheel_leaves_the_highlight_where_it_is() -> None:
    app = Listing(many(500))
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("down")
        app.tasks.scroll_to(y=200, animate=False)
        await pilot.pause()
        assert app.tasks.highlighted == TaskKey("demo", "tsk_1")
        await pilot.press("down")
        assert round(app.tasks.scroll_y) <= 2, "a step brings it back in sight"


async def test_the_same_list_again_says_nothing_and_draws_nothing() -> None:
    app = Listing(many(100))
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        app.heard.clear()
        app.lines_drawn = 0
        app.tasks.replace(app.reader.keys("running"))
        await pilot.pause()
        assert app.heard == []
        assert app.lines_drawn == 0


@pytest.mark.parametrize("count", [100, 10_000])
async def test_a_key_is_on_the_screen_in_a_moment(count: int) -> None:
    app = Listing(many(count))
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        times = []
        for n in range(40):
            at = time.perf_counter()
            app.tasks.action_page(1 if n % 2 else -1) if n % 4 < 2 else app.tasks.action_step(1)
            key = app.tasks.highlighted
            assert key is not None
            assert f"step {key.id[4:]} " in painted(app)
            times.append((time.perf_counter() - at) * 1000)
        replace_times = []
        for n in range(10):
            app.reader.drop(TaskKey("demo", f"tsk_{n}"))
            keys = app.reader.keys("running")
            at = time.perf_counter()
            app.tasks.replace(keys)
            assert painted(app)
            replace_times.append((time.perf_counter() - at) * 1000)
        p95 = statistics.quantiles(times, n=20)[-1]
        print(
            f"{count} rows: key to paint median {statistics.median(times):.1f} ms, p95 {p95:.1f} ms; "
            f"a row removed {statistics.median(replace_times):.1f} ms"
        )
        assert statistics.median(times) < 100
        assert statistics.median(replace_times) < 200
