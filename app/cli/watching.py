"""``watch``: a line for each change, until there is something to do or nothing to wait for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from app.cli.exits import CommandError, Exit
from app.cli.output import message_words, short_key, status_words
from app.cli.parts import Parts, resolve, run_async, running
from app.cli.tasks import json_option
from app.engine.commands import Changes, Engine
from app.text import inert, inert_line
from storage.records import QuestionRecord, Reader, TaskKey, TaskRecord

if TYPE_CHECKING:
    import asyncio


Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class Until(Enum):
    """What watching waits for."""

    INPUT = "input"
    """An open question, or the end."""
    END = "end"
    FOREVER = "forever"


class Report(Protocol):
    """Prints one change."""

    def __call__(
        self, task: TaskRecord, questions: Sequence[QuestionRecord], *, to_stderr: bool = False
    ) -> None: ...


def _seconds(_ctx: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise click.BadParameter("must be a number of seconds, 0 or more.")
    return value


def timeout_option(help: str) -> Callable[[Decorated], Decorated]:
    """Return the option ``--timeout`` with that help."""
    return click.option("--timeout", type=float, metavar="SECONDS", callback=_seconds, help=help)


@click.command()
@click.argument("task", required=False)
@click.option(
    "--until",
    type=click.Choice(["input", "end"]),
    help="End at the first open question (or the task's end), or at the end alone.",
)
@timeout_option("Give up after this long (exit 7).")
@json_option
@click.pass_obj
def watch(parts: Parts, task: str | None, until: str | None, timeout: float | None, as_json: bool) -> None:
    """Print a line for each change, until TASK ends or needs input.

    Without TASK: all active tasks, until interrupted (or as --until says: the first that needs input; the end
    of all).
    """
    with parts.reader() as reader:
        key = resolve(reader, task) if task is not None else None
        goal = Until(until) if until else Until.INPUT if key else Until.FOREVER
        report: Report = print_json if as_json else print_change

        async def work() -> int:
            async with parts.engine() as engine:
                return await follow(engine, reader, key, goal, timeout, report=report)

        raise click.exceptions.Exit(run_async(work()))


def verdict(task: TaskRecord, until: Until) -> int | None:
    """Return the exit code with which watching *task* ends now; ``None``: it goes on."""
    state = task.state
    if state.tracking != "active":
        is_good = state.tracking == "ended" and state.status == "completed" and not state.is_error
        return Exit.DONE if is_good else Exit.FAILED
    if task.open_questions and until is Until.INPUT:
        return Exit.INPUT_REQUIRED
    return None


async def follow(
    engine: Engine,
    reader: Reader,
    key: TaskKey | None,
    until: Until,
    timeout: float | None,
    *,
    report: Report | None,
    to_stderr: bool = False,
) -> int:
    """Run the engine and report changes of *key* (``None``: of every active task); returns the exit code."""
    import asyncio

    changed = asyncio.Event()
    touched: set[TaskKey] = set()

    def hear(changes: Changes) -> None:
        touched.update(changes.tasks)
        changed.set()

    said: dict[TaskKey, str] = {}

    def say(task: TaskRecord, questions: Sequence[QuestionRecord]) -> None:
        if report is None:
            return
        line = change_line(task, questions)
        if report is print_change and said.get(task.key) == line:
            return  # what changed is not in the line: an answer under way, say
        said[task.key] = line
        report(task, questions, to_stderr=to_stderr)

    stop = engine.listen(hear)  # before the first look, so that nothing falls between
    try:
        look = _one(reader, key, until, say) if key is not None else _all(reader, touched, until, say)
        if (code := look()) is not None:
            return code
        async with running(engine) as work:
            return await _loop(look, changed, work, timeout)
    finally:
        stop()


async def _loop(
    look: Callable[[], int | None], changed: asyncio.Event, work: asyncio.Task[None], timeout: float | None
) -> int:
    """Look after each change until there is a verdict, the time is over, or the engine has ended."""
    import asyncio

    deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
    while True:
        waiter = asyncio.create_task(changed.wait())
        left = None if deadline is None else max(0.0, deadline - asyncio.get_running_loop().time())
        try:
            await asyncio.wait([waiter, work], timeout=left, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()
        changed.clear()
        if (code := look()) is not None:
            return code
        if work.done():
            work.result()
            raise CommandError(Exit.FAILED, "Watching ended by itself; the log says why.")
        if deadline is not None and asyncio.get_running_loop().time() >= deadline:
            return Exit.TIMED_OUT


Say = Callable[[TaskRecord, Sequence[QuestionRecord]], None]


def _gist(task: TaskRecord, questions: Sequence[QuestionRecord]) -> tuple[object, ...]:
    """Return what makes a change worth a line."""
    state = task.state
    return (
        task.key,
        state.status,
        state.status_message,
        state.tracking,
        state.problem,
        state.cancel_requested_at,
        tuple((q.id, q.state) for q in questions),
    )


def _one(reader: Reader, key: TaskKey, until: Until, say: Say) -> Callable[[], int | None]:
    """Return what looks at one task; a call that became a task is followed into it."""
    last: tuple[object, ...] | None = None

    def look() -> int | None:
        nonlocal last
        task = reader.task(key)
        if task is None:
            raise CommandError(Exit.UNKNOWN, f"{inert_line(str(key))} was forgotten.")
        questions = reader.questions(task.key)
        gist = _gist(task, questions)
        if gist != last:
            last = gist
            say(task, questions)
        return verdict(task, until)

    return look


def _all(reader: Reader, touched: set[TaskKey], until: Until, say: Say) -> Callable[[], int | None]:
    """Return what looks at every active task, and at those that changed."""
    last: dict[TaskKey, tuple[object, ...]] = {}
    touched.update(row.key for row in reader.list_rows() if row.state.tracking == "active")

    def look() -> int | None:
        keys, asks = sorted(touched), False
        touched.clear()
        for key in keys:
            task = reader.task(key)
            if task is None:
                continue
            questions = reader.questions(task.key)
            gist = _gist(task, questions)
            if last.get(task.key) != gist:
                last[task.key] = gist
                say(task, questions)
            asks = asks or verdict(task, Until.INPUT) == Exit.INPUT_REQUIRED
        if until is Until.INPUT and asks:
            return Exit.INPUT_REQUIRED
        if until is not Until.FOREVER and not any(r.state.tracking == "active" for r in reader.list_rows()):
            return Exit.DONE
        return None

    return look


def change_line(task: TaskRecord, questions: Sequence[QuestionRecord]) -> str:
    """Return one change as a line: which task, its status, what it says, what it asks."""
    asks = [short_key(q.key) for q in questions if q.is_open]
    parts = [inert_line(str(task.key)), inert_line(status_words(task))]
    if text := inert_line(message_words(task)):
        parts.append(text)
    if asks:
        parts.append(f"asks: {', '.join(asks)}")
    return "  ".join(parts)


def print_change(task: TaskRecord, questions: Sequence[QuestionRecord], *, to_stderr: bool = False) -> None:
    """Print one change for a person, at once."""
    click.echo(inert(change_line(task, questions)), err=to_stderr)


def print_json(task: TaskRecord, questions: Sequence[QuestionRecord], *, to_stderr: bool = False) -> None:
    """Print one change as a line of JSON, at once."""
    from app.cli.shapes import row_shape, to_json

    click.echo(to_json(row_shape(task, [q.key for q in questions if q.is_open])), err=to_stderr)
