"""Draw the pictures of the README: the real inbox on the real embedded service, in a throw-away folder.

Run with ``make screenshots``. Textual writes SVG, cairosvg turns it into PNG with a font of the machine.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import cairosvg
from textual.pilot import Pilot

from app import wiring
from app.cli.demo import NAME, service
from app.cli.demo_seed import seed_finished, seed_forgotten, seed_running
from app.cli.parts import Parts, run_async
from app.paths import find, private_folder
from app.tui.app import InboxApp

HERE = Path(__file__).parent
WIDE = (124, 36)
NARROW = (80, 24)
PATIENCE = 30.0
WIDTH = 1240
"""Pixels of a picture of the wide form."""


class Camera:
    """Looks at the running inbox, waits for what a picture is to show, and takes it."""

    def __init__(self, app: InboxApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    def text(self) -> str:
        """Return what is on the screen, line by line."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text for strip in strips)

    async def until(self, *texts: str) -> None:
        """Wait until the screen shows every one of *texts*."""
        await self.until_true(lambda: all(text in self.text() for text in texts), f"{texts!r}")

    async def until_true(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until it *holds*."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > deadline:
                sys.exit(f"The screen never showed {what}; it was\n{self.text()}")
            await self.pilot.pause(0.05)

    async def take(self, name: str) -> None:
        """Save the screen as it is now."""
        await self.pilot.pause(0.3)  # let what was drawn settle
        svg = self.app.export_screenshot(title="taskinbox")
        # The picture is made here, with a font from here.
        svg = re.sub(r"@font-face\s*\{[^}]*\}", "", svg)
        svg = svg.replace("Fira Code", "DejaVu Sans Mono")
        width = round(WIDTH * self.app.size.width / WIDE[0])
        cairosvg.svg2png(svg.encode(), write_to=str(HERE / f"{name}.png"), output_width=width)
        print(HERE / f"{name}.png")


async def take_all(parts: Parts) -> None:
    """Take every picture."""
    async with _Running(parts, WIDE) as camera:
        await camera.until("Needs you 4", "Running 1", "Approve build 4711")
        await camera.take("inbox")
        await camera.pilot.press("down")
        await camera.until("Approve this outline")
        await camera.pilot.press("a", "space")
        await camera.take("question")
        camera.app.action_other_theme()
        await camera.take("inbox-light")
        camera.app.action_other_theme()
        await camera.pilot.press("escape", "3")
        await camera.until("Finished 3", "Structured content")
        await camera.take("finished")
        await camera.pilot.press("n")
        await camera.until("generate_report", "deploy_service")
        await camera.take("call")
    async with _Running(parts, NARROW) as camera:
        await camera.until("Needs you 4", "deploy_service")
        await camera.take("narrow-inbox")
        await camera.pilot.press("a")
        await camera.until("Approve build 4711", "Accept")
        await camera.take("narrow-form")


class _Running:
    def __init__(self, parts: Parts, size: tuple[int, int]) -> None:
        self._reader = wiring.open_reader(parts.paths)
        self._app = InboxApp(
            self._reader, wiring.engine_factory(parts.paths), wiring.servers_file(parts.paths)
        )
        self._running = self._app.run_test(size=size)

    async def __aenter__(self) -> Camera:
        pilot = await self._running.__aenter__()
        camera = Camera(self._app, pilot)
        await camera.until_true(lambda: self._app.engine is not None, "an engine")
        return camera

    async def __aexit__(self, *exc: object) -> None:
        await self._running.__aexit__(None, None, None)
        self._reader.close()


@contextmanager
def _seeded() -> Iterator[Parts]:
    """An installation with something in every section, and its service."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {"TASKINBOX_HOME": folder}
        parts = Parts(find(environ).make(), environ)
        private_folder(parts.paths.demo)
        with tempfile.TemporaryDirectory() as scratch, service(parts, Path(scratch), 0.0):
            forgotten = run_async(seed_forgotten(parts, NAME))
        with service(parts, parts.paths.demo, 0.0):
            run_async(seed_finished(parts, NAME, forgotten))
        with service(parts, parts.paths.demo):
            run_async(seed_running(parts, NAME))
            yield parts


def main() -> None:
    """Draw them all."""
    with _seeded() as parts:
        asyncio.run(take_all(parts))


if __name__ == "__main__":
    main()
