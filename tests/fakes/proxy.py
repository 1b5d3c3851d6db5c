"""A proxy between the inbox and a server: it counts what passes and can stop it at a chosen instant."""

from __future__ import annotations

import re
import socket
import threading
from collections import Counter
from typing import Final

_METHOD: Final = re.compile(rb"(?im)^mcp-method: *([^\r\n]+)")


class Proxy:
    """Listens on a port of its own and passes bytes on to *port*, a thread a direction.

    Each request's head is looked at for its ``Mcp-Method``. `hold` stops requests of a method before they
    reach the server; `swallow` lets them through and keeps their replies.
    """

    def __init__(self, port: int) -> None:
        self.target = port
        self.passed: Counter[str] = Counter()
        """Requests that went on to the server, by method."""
        self._changed = threading.Condition()
        self._holding: set[str] = set()
        self._swallowing: set[str] = set()
        self._held: Counter[str] = Counter()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """The endpoint as seen through the proxy."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/mcp"

    def hold(self, method: str) -> None:
        """Let no request of *method* through until `release`; what is held then goes nowhere."""
        with self._changed:
            self._holding.add(method)

    def swallow(self, method: str) -> None:
        """Pass requests of *method* on and keep their replies until `release`."""
        with self._changed:
            self._swallowing.add(method)

    def release(self) -> None:
        """Let everything through again."""
        with self._changed:
            self._holding.clear()
            self._swallowing.clear()

    def wait_held(self, method: str, count: int = 1, timeout: float = 30) -> None:
        """Return once *count* requests of *method* were held, or had their replies kept."""
        with self._changed:
            done = self._changed.wait_for(lambda: self._held[method] >= count, timeout)
            assert done, f"no {method} came within {timeout:g} s; passed so far: {dict(self.passed)}"

    def wait_passed(self, method: str, count: int = 1, timeout: float = 30) -> None:
        """Return once *count* requests of *method* went on to the server."""
        with self._changed:
            done = self._changed.wait_for(lambda: self.passed[method] >= count, timeout)
            assert done, f"{method} came {self.passed[method]} times within {timeout:g} s"

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *exc: object) -> None:
        self._closed = True
        for one in [self._listener, *self._sockets]:
            one.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target), 5)
            except OSError:
                near.close()
                continue
            far.settimeout(None)
            self._sockets += [near, far]
            swallowing = threading.Event()
            threading.Thread(target=self._up, args=(near, far, swallowing), daemon=True).start()
            threading.Thread(target=self._down, args=(far, near, swallowing), daemon=True).start()

    def _up(self, near: socket.socket, far: socket.socket, swallowing: threading.Event) -> None:
        try:
            while chunk := near.recv(65536):
                for found in _METHOD.findall(chunk):
                    method = found.decode().strip()
                    with self._changed:
                        if method in self._holding:
                            self._held[method] += 1
                            self._changed.notify_all()
                            return
                        if method in self._swallowing:
                            swallowing.set()
                        self.passed[method] += 1
                        self._changed.notify_all()
                far.sendall(chunk)
        except OSError:
            pass
        finally:
            if not swallowing.is_set():
                _end(far)

    def _down(self, far: socket.socket, near: socket.socket, swallowing: threading.Event) -> None:
        try:
            while chunk := far.recv(65536):
                if swallowing.is_set():
                    with self._changed:
                        for method in self._swallowing:
                            self._held[method] += 1
                        self._changed.notify_all()
                    continue
                near.sendall(chunk)
        except OSError:
            pass
        finally:
            if not swallowing.is_set():
                _end(near)


def _end(one: socket.socket) -> None:
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
