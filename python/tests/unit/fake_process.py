"""A process of the fake server: its side of an open `spawn` or `attach` request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fake_serve import Request

WINDOW = 1_048_576
FORKS = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
STARTED = {"process": 1, "pid": 7, "started_ms": 0, "tty": False}
END = {"reason": "exited", "code": 3, "wall_ms": 1, "user_ms": 2, "system_ms": 3, "max_rss_kib": 4}


class FakeProcess:
    """Says what a test has it say, with flow control, and remembers what came in."""

    def __init__(self, request: Request, number: int = 1, offset: int = 0, **started: Any) -> None:
        self.request = request
        self.number = number
        self.offset = offset
        self.window = WINDOW
        self.input = b""
        self.frames: list[str] = []
        fields = {"process": number, "pid": 7, "started_ms": 1_700_000_000_123, "tty": False, "offset": offset, **started}
        request.event("started", **fields)

    def write(self, data: bytes, stream: str = "stdout") -> None:
        """Waits for credit as the server does."""
        while self.window < max(len(data), 256):
            self.take()
        self.window -= max(len(data), 256)
        self.request.event(stream, data, offset=self.offset)
        self.offset += len(data)

    def take(self) -> Request:
        """One frame of the client's."""
        frame = self.request.next()
        op = frame.header["op"]
        if op == "credit":
            self.window += frame.header["bytes"]
        else:
            self.frames.append(op)
        if op == "data":
            self.input += frame.data
        return frame

    def read(self, size: int) -> bytes:
        """Input of so many bytes, given back as it is read."""
        while len(self.input) < size:
            frame = self.take()
            if frame.header["op"] == "data":
                self.request.event("credit", bytes=len(frame.data))
        data, self.input = self.input[:size], self.input[size:]
        return data

    def until(self, op: str) -> Request:
        while True:
            frame = self.take()
            if frame.header["op"] == op:
                return frame

    def exit(self, code: int = 0, **fields: Any) -> None:
        self.request.exited(code, process=self.number, **fields)


def process(act: Callable[[FakeProcess], object], **started: Any) -> Callable[[Request], None]:
    def handle(request: Request) -> None:
        act(FakeProcess(request, **started))

    return handle


def hello(it: FakeProcess) -> None:
    it.write(b"out")
    it.write(b"err", "stderr")
    it.write(b"more")
    it.exit(3)


def echo(it: FakeProcess) -> None:
    """Writes what it reads, as `cat` does: it reads no more while nobody takes its output."""
    while it.input or "eof" not in it.frames:
        if not it.input:
            it.take()
            continue
        data, it.input = it.input[:100_000], it.input[100_000:]
        it.request.event("credit", bytes=len(data))
        it.write(data)
    it.exit()


def listed(request: Request, **end: Any) -> None:
    request.event("data", b"make\0test\0", **STARTED, **end)
    request.end()
