"""What is to be written to a process: a queue that is sent as fast as the process takes it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from sandy._errors import ProtocolError
from sandy._wire import MAX_DATA, WINDOW

if TYPE_CHECKING:
    from sandy._wire import Frame


class Piece:
    """A part of the input that somebody waits for; `left` is what was not sent."""

    __slots__ = ("left",)

    def __init__(self, data: bytes) -> None:
        """Takes all of the data."""
        self.left = memoryview(data)


class Input:
    """The sending side of flow control for pieces that are added at any time. Not safe for threads: its owner locks."""

    def __init__(self) -> None:
        """Is empty and open."""
        self._queue: deque[Piece] = deque()
        self._window = WINDOW
        self.closed = False
        self._told = False

    def add(self, data: bytes) -> Piece:
        """Queues some bytes."""
        piece = Piece(data)
        if data:
            self._queue.append(piece)
        return piece

    def close(self) -> None:
        """No more comes."""
        self.closed = True

    def discard(self, piece: Piece) -> None:
        """Takes back what was not sent of a piece."""
        piece.left = piece.left[:0]

    def credited(self, frame: Frame) -> None:
        """Takes a `credit` event."""
        count = frame.header.get("bytes")
        if type(count) is not int or count < 0:
            msg = f"a credit of {count!r} bytes"
            raise ProtocolError(msg)
        self._window = min(self._window + count, WINDOW)

    def next_frame(self) -> tuple[dict[str, object], memoryview | bytes] | None:
        """Fields and payload of the next frame; None if credit is needed first, or there is nothing to send."""
        while self._queue and not self._queue[0].left:
            self._queue.popleft()
        if self._queue:
            if self._window <= 0:
                return None
            piece = self._queue[0]
            size = min(len(piece.left), MAX_DATA, self._window)
            data, piece.left = piece.left[:size], piece.left[size:]
            self._window -= size
            return {"op": "data"}, data
        if self.closed and not self._told:
            self._told = True
            return {"op": "eof"}, b""
        return None
