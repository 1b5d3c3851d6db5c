"""A few calls, so that the demo's inbox opens with something in every section."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Final, Literal

from app.cli.output import words
from app.cli.parts import Parts
from app.engine.commands import Answer, Engine, EngineError
from app.text import inert_line
from storage.records import Reader, TaskKey

PATIENCE: Final = 20.0
"""Seconds until what is not ready is left to become so before the person's eyes."""

PAUSE: Final = 0.03
"""Seconds between two looks."""


async def seed_forgotten(parts: Parts, server: str) -> TaskKey | None:
    """Call something on a service whose data will be gone, as after a crash without a backup."""
    with parts.reader() as reader:
        async with parts.engine() as engine:
            await _forgiving(_Seeds(engine, reader, server).call("long_build", '{"minutes": 60}'))
        return next((row.key for row in reader.list_rows(server=server)), None)


async def seed_finished(parts: Parts, server: str, forgotten: TaskKey | None) -> None:
    """Fill Needs you, Finished, Lost and Archived; the service should be working fast.

    One after the other, so that the list has the same order each time: the one with most to see first.
    """
    with parts.reader() as reader:
        async with parts.engine() as engine:
            seeds = _Seeds(engine, reader, server)
            await _forgiving(seeds.until("deploy_service", '{"service": "checkout"}', "input"))
            await _forgiving(seeds.until("generate_report", '{"size": "large"}', "input"))
            await _forgiving(seeds.until("approve_in_browser", "{}", "input"))
            await _forgiving(seeds.call("ask_first", "{}"))
            await _forgiving(seeds.report("medium", archive=True))
            await _forgiving(seeds.until("broken_tool", "{}", "end"))
            await _forgiving(seeds.until("flaky_job", "{}", "end"))
            await _forgiving(seeds.report("small"))
            if forgotten is not None:
                await _forgiving(engine.refresh(forgotten))


async def seed_running(parts: Parts, server: str) -> None:
    """Fill Running; the service should be working at its usual speed."""
    with parts.reader() as reader:
        async with parts.engine() as engine:
            await _forgiving(_Seeds(engine, reader, server).call("long_build", '{"minutes": 10}'))


async def _forgiving(work: Awaitable[Any]) -> None:
    """Do *work*; a demo with a call less is still a demo, so a failure is only told."""
    try:
        async with asyncio.timeout(PATIENCE):
            await work
    except EngineError as error:
        words(f"warning: {inert_line(error.message)}")
    except TimeoutError:
        words("warning: a part of the demo is not ready yet.")


class _Seeds:
    """The calls, on one engine."""

    def __init__(self, engine: Engine, reader: Reader, server: str) -> None:
        self.engine, self.reader, self.server = engine, reader, server

    async def call(self, tool: str, arguments: str) -> TaskKey:
        return (await self.engine.call(self.server, tool, arguments)).key

    async def until(self, tool: str, arguments: str, until: Literal["input", "end"]) -> TaskKey:
        key = await self.call(tool, arguments)
        await self._wait(key, until)
        return key

    async def report(self, size: str, *, archive: bool = False) -> None:
        """A report whose outline was approved, through to its end."""
        key = await self.until("generate_report", f'{{"size": "{size}"}}', "input")
        for question in self.reader.questions(key):
            if question.is_open:
                await self.engine.answer(key, [Answer(question, "accept", '{"approved": true}')])
        await self._wait(key, "end")
        if archive:
            await self.engine.archive(key)

    async def _wait(self, key: TaskKey, until: Literal["input", "end"]) -> None:
        """Look until it is so: the service is our own and fast, so its poll interval is not waited for."""
        while True:
            await self.engine.refresh(key)
            task = self.reader.task(key)
            if task is None or task.state.tracking != "active" or (until == "input" and task.open_questions):
                return
            await asyncio.sleep(PAUSE)
