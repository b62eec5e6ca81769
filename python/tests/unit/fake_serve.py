"""A `sandy serve` in a thread of the test, over a real socketpair: it speaks the wire protocol and does what a test says."""

from __future__ import annotations

import array
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sandy import _process

Header = dict[str, Any]


@dataclass
class Request:
    """A request as the server got it, and how to answer it."""

    peer: Peer
    header: Header
    args: list[bytes]
    data: bytes

    def event(self, ev: str, payload: bytes = b"", **fields: Any) -> None:
        self.peer.send({"id": self.header["id"], "ev": ev, **fields}, payload)

    def end(self, payload: bytes = b"", **fields: Any) -> None:
        self.event("end", payload, **fields)

    def exited(self, code: int = 0, **fields: Any) -> None:
        self.end(reason="exited", code=code, wall_ms=1, user_ms=2, system_ms=3, max_rss_kib=4, **fields)

    def next(self) -> Request:
        """The next frame of this connection: input, credit, cancel."""
        return self.peer.receive()


class DisconnectedError(Exception):
    """The client closed its connection."""


class Peer:
    """The server's end of one connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.descriptors: deque[int] = deque()
        self._buffer = b""

    def receive(self) -> Request:
        header_size, payload_size = struct.unpack("<II", self._take(8))
        header = json.loads(self._take(header_size))
        payload = self._take(payload_size)
        args, at = [], 0
        for length in header.get("args", []):
            args.append(payload[at : at + length])
            at += length
        return Request(self, header, args, payload[at:])

    def send(self, header: Header, payload: bytes = b"") -> None:
        text = json.dumps(header).encode()
        self.raw(struct.pack("<II", len(text), len(payload)) + text + payload)

    def raw(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise DisconnectedError from error

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            try:
                data, ancillary, _, _ = self.socket.recvmsg(1 << 20, 1024)
            except OSError as error:
                raise DisconnectedError from error
            for _, _, rights in ancillary:
                numbers = array.array("i")
                numbers.frombytes(rights)
                self.descriptors.extend(numbers)
            if not data:
                raise DisconnectedError
            self._buffer += data
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken


Handler = Callable[[Request], None]


@dataclass
class FakeServe:
    """The server: `on["exec"] = handler` says what it does; `seen` has what it was asked."""

    on: dict[str, Handler] = field(default_factory=dict)
    seen: list[Request] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)
    disconnected: threading.Event = field(default_factory=threading.Event)
    connections: int = 0
    sandboxes: int = 0
    started: int = 0
    child: subprocess.Popen[bytes] | None = None

    def spawn(self) -> _process.Serve:
        """Stands in for `_process.spawn_serve`; a process that only waits is the child."""
        ours, theirs = socket.socketpair()
        self.started += 1
        # It ends when the client's end of its input closes: never left behind.
        reader, writer = os.pipe()
        self.child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=reader)
        os.close(reader)
        self._serve(theirs, writer)
        return _process.Serve(ours, self.child, os.memfd_create("stderr"))

    def _serve(self, sock: socket.socket, lifeline: int | None = None) -> None:
        thread = threading.Thread(target=self._run, args=(Peer(sock), lifeline), daemon=True)
        self.threads.append(thread)
        thread.start()

    def _run(self, peer: Peer, lifeline: int | None) -> None:
        try:
            while True:
                self._answer(peer.receive())
        except DisconnectedError:
            self.disconnected.set()
        finally:
            peer.socket.close()
            if lifeline is not None:
                os.close(lifeline)

    def _answer(self, request: Request) -> None:
        op = request.header["op"]
        if op != "credit":
            self.seen.append(request)
        if op in self.on:
            self.on[op](request)
        elif op == "hello":
            request.end(version=1, program="sandy 0")
        elif op == "connect":
            self.connections += 1
            self._serve(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, fileno=request.peer.descriptors.popleft()))
            request.end()
        elif op == "create":
            self.sandboxes += 1
            strings = [b"/workspace", b"/home/user"]
            lengths = [len(string) for string in strings]
            request.end(b"".join(strings), sandbox=f"sb{self.sandboxes}", degraded=["limits.memory"], args=lengths)
        elif op == "exec":
            request.exited()
        elif op in ("credit", "eof", "data", "cancel"):
            pass  # for a request that has just ended
        else:
            request.end()

    def requests(self, op: str) -> list[Request]:
        return [request for request in self.seen if request.header["op"] == op]
