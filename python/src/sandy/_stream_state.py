"""What has come of a process's output and nobody has read, and what is to be written to it. No input or output in here."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from sandy._chunk import Chunk
from sandy._exchange import Credits, Reply
from sandy._input import Input
from sandy._process_requests import Track, to_chunk

if TYPE_CHECKING:
    from sandy._channel import Channel
    from sandy._wire import Frame


class StreamState:
    """The two directions of a process's data. It knows nothing of the process, so that this one is collected at its last use.

    Attributes:
        chunks: Output that was received; at most a window of it, as credit is given only for what is taken.
        track: Where the output is.
        input: What is to be written.
        drained: How many `drained` events have come.
    """

    def __init__(self, offset: int) -> None:
        """Begins at an offset of the output."""
        self.chunks: deque[Chunk] = deque()
        self.track = Track(offset)
        self.input = Input()
        self.drained = 0
        self._credits = Credits()

    @property
    def offset(self) -> int:
        """Of the next chunk."""
        return self.chunks[0].offset if self.chunks else self.track.at

    def on_event(self, channel: Channel, frame: Frame) -> None:
        """Takes an event."""
        event = frame.header.get("ev")
        if event in ("stdout", "stderr"):
            chunk = to_chunk(frame)
            self.track.take(chunk)
            if chunk:
                self.chunks.append(chunk)
            else:
                self._give_back(channel, 0)
        elif event == "lost":
            self.track.lose(Reply(frame.header).number("bytes"))
        elif event == "credit":
            self.input.credited(frame)
            self.pump(channel)
        elif event == "drained":
            self.drained += 1

    def take(self, channel: Channel) -> Chunk:
        """The next chunk, which makes room for more."""
        chunk = self.chunks.popleft()
        self._give_back(channel, len(chunk))
        return chunk

    def pump(self, channel: Channel) -> None:
        """Sends what the process can take of its input."""
        while (frame := self.input.next_frame()) is not None:
            channel.post(*frame)

    def _give_back(self, channel: Channel, size: int) -> None:
        send = self._credits.consumed(size)
        if send is not None:
            channel.post(send.fields)
