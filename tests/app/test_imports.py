"""Two threads that import at once, as the screens and the engine do after the first paint."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

APP = Path(__file__).resolve().parents[2] / "app"

SCRIPT = """
import importlib.abc, sys, threading

begun, reading = threading.Event(), threading.Event()

class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "app.forms.assigning":  # the package has begun
            begun.set()
            reading.wait(20)
        if name == "app.forms.choosing" and threading.current_thread().name == "second":
            reading.set()
        return None

sys.meta_path.insert(0, Watch())
failed = []

def load(module):
    try:
        __import__(module)
    except BaseException as error:
        failed.append(f"{module}: {type(error).__name__}: {error}")
    reading.set()

first = threading.Thread(target=load, args=("app.forms",))
first.start()
begun.wait(20)
second = threading.Thread(target=load, args=("app.forms.reading",), name="second")
second.start()
first.join(30)
second.join(30)
print(failed, first.is_alive(), second.is_alive())
"""


def test_a_package_that_two_threads_begin_at_once_is_whole_for_both() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[] False False", done.stdout + done.stderr


def packages() -> Iterator[str]:
    for init in APP.rglob("__init__.py"):
        if any(isinstance(node, ast.ImportFrom) for node in ast.parse(init.read_text()).body):
            yield ".".join(("app", *init.parent.relative_to(APP).parts))


@pytest.mark.parametrize("package", sorted(packages()))
def test_no_module_asks_its_own_package_for_what_that_imports_from_its_modules(package: str) -> None:
    for path in (APP.parent / package.replace(".", "/")).glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom):
                assert node.module != package, f"{path.name}:{node.lineno}"
