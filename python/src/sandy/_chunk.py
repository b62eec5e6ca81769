"""What a process has written: pieces of it as they come, and what is kept of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

Stream: TypeAlias = Literal["stdout", "stderr"]


class Chunk(bytes):
    """Some bytes of a process's output, of any length but 0. It is a `bytes`.

    Attributes:
        stream: Which output they are of; with merged outputs, and a terminal, always `"stdout"`.
        offset: Bytes of both outputs together that came before, since the process started.
    """

    stream: Stream
    offset: int

    def __new__(cls, data: bytes | bytearray = b"", stream: Stream = "stdout", offset: int = 0) -> Self:
        """Copies the bytes."""
        self = super().__new__(cls, data)
        self.stream = stream
        self.offset = offset
        return self

    @property
    def end(self) -> int:
        """The offset of what comes after it."""
        return self.offset + len(self)


@dataclass(frozen=True, slots=True)
class Log:
    """What a sandbox keeps of a process's output.

    Attributes:
        chunks: The output, in the order in which it came.
        offset: Where it begins: what was asked for, or where more is lost, behind that.
        next_offset: Where the next read goes on.
        lost: Bytes from the offset that was asked for on that are not kept any more, wherever they were.
        running: Whether the process was running then.
    """

    chunks: tuple[Chunk, ...]
    offset: int
    next_offset: int
    lost: int
    running: bool

    @property
    def data(self) -> bytes:
        """Both outputs together."""
        return b"".join(self.chunks)

    @property
    def stdout(self) -> bytes:
        """Standard output alone."""
        return b"".join(chunk for chunk in self.chunks if chunk.stream == "stdout")

    @property
    def stderr(self) -> bytes:
        """Standard error alone; empty where the outputs were merged."""
        return b"".join(chunk for chunk in self.chunks if chunk.stream == "stderr")
