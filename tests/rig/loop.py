"""One thread that waits for all listening sockets of the rig."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import threading
from collections.abc import Callable


class Loop:
    """Calls what was registered for a socket whenever that can be read."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._read, self._write = os.pipe()
        self._selector.register(self._read, selectors.EVENT_READ)
        self._settled: list[threading.Event] = []
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="rig", daemon=True)

    def register(self, sock: socket.socket, ready: Callable[[], object]) -> None:
        """Before `start`. `ready` does not block."""
        sock.setblocking(False)
        self._selector.register(sock, selectors.EVENT_READ, ready)

    def start(self) -> None:
        self._thread.start()

    def settle(self) -> None:
        """Returns when all is handled that had arrived when it was called."""
        event = threading.Event()
        self._settled.append(event)
        os.write(self._write, b"x")
        assert event.wait(10), "the rig's thread hangs"

    def close(self) -> None:
        self._stop = True
        os.write(self._write, b"x")
        self._thread.join(10)
        assert not self._thread.is_alive(), "the rig's thread hangs"
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()
        os.close(self._read)
        os.close(self._write)

    def _run(self) -> None:
        while not self._stop:
            self._handle(None)
            while self._settled:
                waiting, self._settled = self._settled, []
                while self._handle(0):
                    pass
                for event in waiting:
                    event.set()

    def _handle(self, timeout: float | None) -> bool:
        """Whether there was anything."""
        ready = self._selector.select(timeout)
        for key, _ in ready:
            if key.fileobj == self._read:
                os.read(self._read, 64)
            else:
                with contextlib.suppress(BlockingIOError):
                    key.data()
        return bool(ready)
