"""A few calls, so that the demo's inbox opens with something in every section."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Final, Literal

from app.cli.output import words
from app.cli.parts import Parts, running
from app.engine.commands import Answer, Engine, EngineError
from app.text import inert_line
from storage.records import Reader, TaskKey

PATIENCE: Final = 20.0
"""Seconds until what is not ready is left to become so before the person's eyes."""

GONE: Final = "task-of-last-week"
"""A task that the service does not know."""


async def seed_finished(parts: Parts, server: str) -> None:
    """Fill Needs you, Finished, Lost and Archived; the service should be working fast."""
    with parts.reader() as reader:
        async with parts.engine() as engine, running(engine):
            seeds = _Seeds(engine, reader, server)
            await asyncio.gather(
                _forgiving(seeds.report("small")),
                _forgiving(seeds.report("medium", archive=True)),
                _forgiving(seeds.until("flaky_job", "{}", "end")),
                _forgiving(seeds.until("broken_tool", "{}", "end")),
                _forgiving(seeds.until("deploy_service", '{"service": "checkout"}', "input")),
                _forgiving(seeds.until("generate_report", '{"size": "large"}', "input")),
                _forgiving(seeds.until("approve_in_browser", "{}", "input")),
                _forgiving(seeds.call("ask_first", "{}")),
                _forgiving(seeds.lost()),
            )


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
    """The calls, on one engine that is running."""

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

    async def lost(self) -> None:
        """A task made elsewhere that its server does not know any more."""
        await self.engine.track(self.server, GONE)

    async def _wait(self, key: TaskKey, until: Literal["input", "end"]) -> None:
        await self.engine.wait_for(key, until)
