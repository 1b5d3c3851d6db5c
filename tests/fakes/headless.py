"""The engine without a screen, as a process that a test may kill: ``python headless.py HOME VERB …``.

``run`` watches until it is killed; ``answer SERVER ID KEY CONTENT`` and ``call SERVER TOOL`` do that and end.
A line ``ready`` on stdout says that the engine is open.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Headless:
    """One such process."""

    def __init__(self, home: Path, *words: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(home), *words],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    async def ready(self) -> Headless:
        """Return once the engine is open."""
        assert self._process.stdout is not None
        line = await asyncio.to_thread(self._process.stdout.readline)
        assert line == b"ready\n", "the engine did not open"
        return self

    def kill(self) -> None:
        """End it with SIGKILL: it gets to tidy nothing."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    async def ended(self) -> int:
        """Return its exit code once it has ended by itself."""
        return await asyncio.to_thread(self._process.wait, 30)


async def _main(home: str, verb: str, *words: str) -> None:
    from app import paths, wiring
    from app.engine.commands import Answer
    from storage.records import TaskKey

    here = paths.find({"TASKINBOX_HOME": home})
    engine = await wiring.open_engine(here)
    print("ready", flush=True)
    if verb == "run":
        await engine.run()
    elif verb == "call":
        await engine.call(words[0], words[1], "{}")
    else:
        server, task_id, name, content = words
        key = TaskKey(server, task_id)
        question = next(q for q in wiring.open_reader(here).questions(key) if q.key == name)
        await engine.answer(key, [Answer(question, "accept", content)])
    await engine.aclose()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
