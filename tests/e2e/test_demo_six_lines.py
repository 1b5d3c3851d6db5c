"""A task from its call to its end, by a script that knows HTTP and JSON and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fakes.demo import PATIENCE, DemoProcess

SCRIPT = Path(__file__).parents[2] / "docs" / "examples" / "six_lines.py"


def test_the_script_prints_these_six_lines(tmp_path: Path) -> None:
    # Slow enough that the task is still at work when it is looked at first.
    with DemoProcess(tmp_path / "data", speed=0.5) as demo:
        ran = subprocess.run(
            [sys.executable, str(SCRIPT), demo.url],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == (
        "id=0 resultType=complete status=ack\n"
        "id=1 resultType=task status=working\n"
        "id=2 resultType=complete status=working\n"
        "id=3 resultType=complete status=input_required\n"
        "id=4 resultType=complete status=ack\n"
        "id=5 resultType=complete status=completed\n"
    )
