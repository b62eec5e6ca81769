"""What arrived at the rig."""

from __future__ import annotations

import dataclasses
import socket

KEPT = 1 << 20  # bytes of a connection


@dataclasses.dataclass
class Request:
    """One of HTTP. Of a head that can't be read, `method` is empty and `target` is the head."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: int = 0  # bytes that came
    digest: str = ""  # SHA-256 of them, once all came

    def all(self, name: str) -> list[str]:
        """The values of a header."""
        return [value for key, value in self.headers if key.lower() == name.lower()]


@dataclasses.dataclass
class Connection:
    """One that was accepted, whatever came of it."""

    host: str
    service: str
    peer: object
    sock: socket.socket = dataclasses.field(repr=False)
    received: bytearray = dataclasses.field(default_factory=bytearray)  # the first of what the client sent; of TLS, what was in it
    total: int = 0  # bytes of that
    hello: bool = False  # TLS: whether a first byte came at all
    server_name: str | None = None  # TLS: the one that was asked for
    requests: list[Request] = dataclasses.field(default_factory=list)
    ended: bool = False

    def add(self, data: bytes) -> None:
        self.received += data[: max(0, KEPT - len(self.received))]
        self.total += len(data)
