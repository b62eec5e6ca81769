"""The start and the end of an output, as a sandbox keeps it, or as is kept here of what is streamed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sandy._wire import Frame

_UTF8_MAX: Final = 4


class Output:
    """The kept bytes of one stream."""

    def __init__(self) -> None:
        """Begins empty."""
        self.head: list[bytes | bytearray] = []
        self.tail: list[bytes | bytearray] = []
        self.omitted = 0

    def add(self, frame: Frame) -> None:
        """Takes a frame of what the sandbox has kept."""
        (self.tail if frame.header.get("tail") is True else self.head).append(frame.payload)

    def at_line_start(self) -> bool:
        """Whether what comes next would begin a line."""
        last = next((piece for piece in reversed([*self.head, *self.tail]) if piece), b"\n")
        return last.endswith(b"\n")

    def join(self) -> bytes:
        """All of it, with a line that stands for what was left out."""
        if not self.omitted:
            return b"".join(self.head) + b"".join(self.tail)
        marker = f"\n[sandy] {self.omitted} bytes of output were left out here\n".encode()
        return b"".join((*self.head, marker, *self.tail))

    def text(self) -> str:
        """The same as text, with replacement marks for what is no UTF-8."""
        if not self.omitted:
            return str(b"".join(self.head) + b"".join(self.tail), "utf-8", "replace")
        # The cut may go through a character: its halves count as left out, so that no replacement mark stands for a good one.
        head, tail = b"".join(self.head), b"".join(self.tail)
        end = len(head) - _partial_at_end(head)
        begin = _partial_at_start(tail)
        omitted = self.omitted + len(head) - end + begin
        marker = f"\n[sandy] {omitted} bytes of output were left out here\n"
        return str(head[:end], "utf-8", "replace") + marker + str(tail[begin:], "utf-8", "replace")


class KeptOutput(Output):
    """Keeps the first and the last half of so many bytes of a stream, as the agent does (src/agent/kept_output.h)."""

    def __init__(self, capacity: int) -> None:
        """Keeps at most `capacity` bytes, and twice the last half for a moment."""
        super().__init__()
        self._head, self._tail = bytearray(), bytearray()
        self.head, self.tail = [self._head], [self._tail]
        self._head_limit = capacity - capacity // 2
        self._tail_limit = capacity // 2

    def keep(self, piece: bytes) -> None:
        """Takes the next bytes."""
        room = self._head_limit - len(self._head)
        if room:
            self._head += piece[:room]
            piece = piece[room:]
        self._tail += piece
        # Folding only when the tail is twice too long keeps the cost at about one copy a byte.
        if len(self._tail) > 2 * self._tail_limit:
            self.fold()

    def fold(self) -> None:
        """Leaves out what is too much; to be called once after the last bytes."""
        excess = len(self._tail) - self._tail_limit
        if excess > 0:
            del self._tail[:excess]
            self.omitted += excess


def _partial_at_end(data: bytes) -> int:
    for back in range(1, min(_UTF8_MAX, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:  # noqa: PLR2004 - a continuation byte
            continue
        needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1  # noqa: PLR2004
        return back if needed > back else 0
    return 0


def _partial_at_start(data: bytes) -> int:
    count = 0
    while count < min(_UTF8_MAX - 1, len(data)) and data[count] & 0xC0 == 0x80:  # noqa: PLR2004
        count += 1
    return count
