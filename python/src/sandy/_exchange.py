"""Requests and their replies as generators, so that the blocking and the asyncio client share one logic.

An exchange yields a `Send` (it gets nothing back) or `RECEIVE` (it gets the next frame of its request), and returns its
result. It may make several requests, one after the other. It does no input or output on the connection itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from sandy._errors import ProtocolError
from sandy._wire import LEAST_CHARGE, MAX_ARGS, MAX_DATA, MAX_REQUEST_PAYLOAD, WINDOW, Frame, join_args

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

T = TypeVar("T")

FILE_PATIENCE: Final = 300.0
"""Seconds without any frame after which a file operation is given up: what answers may be under attack from within."""

_CREDIT_STEP: Final = WINDOW // 4
"""Bytes that are consumed before they are given back: a frame for each payload would double the traffic."""


class Send(NamedTuple):
    """A frame to send.

    `fields` is its header without the id, `payload` the buffers of its payload. `new` starts a request (the connection
    chooses the id), else the frame belongs to the open one. `patience` is how many seconds the request's next frame may
    take to come; None is for ever.
    """

    fields: dict[str, Any]
    payload: tuple[bytes | memoryview, ...] = ()
    new: bool = False
    patience: float | None = None


class Receive:
    """The type of `RECEIVE`."""


RECEIVE: Final = Receive()

Exchange = Generator[Send | Receive, Frame | None, T]


_NO_FRAME: Final = Frame({}, b"")


@dataclass(frozen=True, slots=True)
class Reply:
    """How a request ended.

    Attributes:
        end: The header of its last frame.
        body: Payloads of its `data` events, joined.
        last: Its last frame.
        cut: Whether `body` was left incomplete because it grew over the caller's limit.
    """

    end: dict[str, Any]
    body: bytes = b""
    last: Frame = _NO_FRAME
    cut: bool = False

    @property
    def error(self) -> str | None:
        """The word for what failed, or None."""
        error = self.end.get("error")
        return error if error is None else str(error)

    @property
    def detail(self) -> str:
        """The text for a person that came with an error; may be empty."""
        return str(self.end.get("detail", ""))

    def number(self, name: str) -> int:
        """A field that the protocol says is a number."""
        value = self.end.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int):
            msg = f"field {name} of a reply is not a number: {value!r}"
            raise ProtocolError(msg)
        return value


def start(
    op: str,
    args: Sequence[bytes] = (),
    data: bytes = b"",
    *,
    patience: float | None = FILE_PATIENCE,
    **fields: object,
) -> Send:
    """The frame that opens a request. Fields that are None are left out.

    Raises:
        ValueError: If it is larger than the protocol allows.
    """
    header: dict[str, Any] = {"op": op} | {name: value for name, value in fields.items() if value is not None}
    if not args:
        return Send(header, (data,) if data else (), new=True, patience=patience)
    if len(args) > MAX_ARGS:
        msg = f"{len(args)} strings are too many for one request: at most {MAX_ARGS} are possible"
        raise ValueError(msg)
    header["args"], joined = join_args(args)
    if len(joined) + len(data) > MAX_REQUEST_PAYLOAD:
        msg = f"{len(joined) + len(data)} bytes are too many for one request: at most {MAX_REQUEST_PAYLOAD} are possible"
        raise ValueError(msg)
    return Send(header, (joined, data) if data else (joined,), new=True, patience=patience)


class Credits:
    """Gives back stream bytes as they are consumed."""

    def __init__(self) -> None:
        """Starts with nothing consumed."""
        self._consumed = 0

    def consumed(self, size: int) -> Send | None:
        """Counts an event with `size` bytes; the frame to send, if it is time for one."""
        self._consumed += max(size, LEAST_CHARGE)
        if self._consumed < _CREDIT_STEP:
            return None
        send = Send({"op": "credit", "bytes": self._consumed})
        self._consumed = 0
        return send


def receive() -> Exchange[Frame]:
    """Waits for the next frame of the open request."""
    frame = yield RECEIVE
    if frame is None:
        msg = "an exchange asked for a frame and got none"
        raise AssertionError(msg)
    return frame


def request(
    opening: Send, on_data: Callable[[bytes | bytearray], object] | None = None, *, limit: int | None = None
) -> Exchange[Reply]:
    """A request whose reply is `data` events and an end.

    Args:
        opening: The frame that opens it.
        on_data: Gets each piece of the reply; where it is None the pieces are kept, and joined in the Reply.
        limit: Cancels the request when the kept pieces grow over so many bytes.
    """
    pieces: list[bytes | bytearray] = []
    size = 0
    cut = False
    credit = Credits()
    yield opening
    while True:
        frame = yield from receive()
        event = frame.header.get("ev")
        if event == "end":
            return Reply(frame.header, b"".join(pieces), frame, cut)
        if event != "data":
            continue
        if on_data is not None:
            on_data(frame.payload)
        elif not cut:
            pieces.append(frame.payload)
            size += len(frame.payload)
            if limit is not None and size > limit:
                cut = True
                yield Send({"op": "cancel"})
        send = credit.consumed(len(frame.payload))
        if send is not None:
            yield send


class Feed:
    """The sending side of flow control: pieces of input, as many at a time as the receiver allows."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        """Takes pieces of any size; they are cut to frames."""
        self._pieces = pieces
        self._queue: deque[memoryview] = deque()
        self._window = WINDOW
        self._ended = False

    def credited(self, frame: Frame) -> None:
        """Takes a `credit` event."""
        count = frame.header.get("bytes")
        if type(count) is not int or count < 0:
            msg = f"a credit of {count!r} bytes"
            raise ProtocolError(msg)
        self._window = min(self._window + count, WINDOW)

    def next_send(self) -> Send | None:
        """The next frame, or None if credit is needed first or all was sent."""
        if self._ended or self._window <= 0:
            return None
        while not self._queue:
            piece = next(self._pieces, None)
            if piece is None:
                self._ended = True
                return Send({"op": "eof"})
            if piece:
                self._queue.append(memoryview(piece))
        piece_view = self._queue.popleft()
        size = min(len(piece_view), MAX_DATA, self._window)
        if size < len(piece_view):
            self._queue.appendleft(piece_view[size:])
        self._window -= size
        return Send({"op": "data"}, (piece_view[:size],))
